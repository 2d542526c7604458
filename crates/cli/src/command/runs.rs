//! Many runs, a few at a time, until the last or Ctrl-C.

use tokio::task::JoinSet;

use crate::exit::Failure;
use crate::interrupt::Interrupts;

/// The runs under way.
pub(super) type Running<R> = JoinSet<Result<R, Failure>>;

/// A command that makes many runs.
pub(super) trait Campaign {
    /// What a run comes to.
    type Run: Send + 'static;

    /// Starts the next run; false if all have been started.
    fn start(&mut self, running: &mut Running<Self::Run>) -> bool;

    /// Takes a run that has ended.
    ///
    /// # Errors
    /// End the command.
    fn take(&mut self, run: Self::Run) -> Result<(), Failure>;

    /// Has the runs under way end early.
    fn stop(&mut self, running: &mut Running<Self::Run>);
}

/// Makes all runs, `parallel` at a time. True if it was interrupted; all runs have ended then.
///
/// # Errors
/// The first of a run's; the others are told to end.
pub(super) async fn make_all<C: Campaign>(
    campaign: &mut C,
    parallel: usize,
    interrupts: &mut Interrupts,
) -> Result<bool, Failure> {
    let mut running = Running::new();
    let mut was_interrupted = false;
    loop {
        while running.len() < parallel && !was_interrupted && campaign.start(&mut running) {}
        tokio::select! {
            ended = running.join_next() => {
                let run = match ended {
                    None => return Ok(was_interrupted),
                    Some(Err(error)) if error.is_cancelled() => continue,
                    Some(Err(error)) => Err(Failure::runtime(format!("a run failed: {error}"))),
                    Some(Ok(run)) => run,
                };
                if let Err(failure) = run.and_then(|run| campaign.take(run)) {
                    campaign.stop(&mut running);
                    return Err(failure);
                }
            }
            () = interrupts.next(), if !was_interrupted => {
                was_interrupted = true;
                campaign.stop(&mut running);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts to five, and notes how many runs there were at a time.
    #[derive(Default)]
    struct Count {
        started: u64,
        taken: Vec<u64>,
        most: usize,
        failing: Option<u64>,
        was_stopped: bool,
    }

    impl Campaign for Count {
        type Run = u64;

        fn start(&mut self, running: &mut Running<u64>) -> bool {
            if self.started == 5 {
                return false;
            }
            self.started += 1;
            let (number, is_failing) = (self.started, self.failing == Some(self.started));
            running.spawn(async move {
                tokio::task::yield_now().await;
                if is_failing { Err(Failure::runtime("on purpose")) } else { Ok(number) }
            });
            self.most = self.most.max(running.len());
            true
        }

        fn take(&mut self, run: u64) -> Result<(), Failure> {
            self.taken.push(run);
            Ok(())
        }

        fn stop(&mut self, _: &mut Running<u64>) {
            self.was_stopped = true;
        }
    }

    #[tokio::test]
    async fn all_runs_are_made_a_few_at_a_time_and_an_error_ends_them() {
        let mut interrupts = Interrupts::catch().unwrap();
        let mut count = Count::default();
        assert!(!make_all(&mut count, 2, &mut interrupts).await.unwrap());
        count.taken.sort_unstable();
        assert_eq!((count.taken.as_slice(), count.most, count.was_stopped), (&[1, 2, 3, 4, 5][..], 2, false));

        let mut count = Count { failing: Some(2), ..Count::default() };
        assert!(make_all(&mut count, 1, &mut interrupts).await.is_err());
        assert_eq!((count.taken.as_slice(), count.started, count.was_stopped), (&[1][..], 2, true));
    }
}
