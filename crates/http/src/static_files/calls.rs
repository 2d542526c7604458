//! Calls of the file system: one that does not return keeps no request for another directory waiting.
//!
//! The runtime has 512 threads for calls that block, and a mount whose server is gone holds each thread that enters it.
//! So each entry of the served directory has a share of the threads, and no request waits for a call for ever.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Calls below one entry of the served directory at a time.
const PER_ENTRY: usize = 64;

/// How long a request waits for one call. The call may hold its thread for longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Entries without a call are looked for when there are twice as many as were left the last time, and this many.
const LEAST_ENTRIES: usize = 64;

/// The shares of all entries.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    of: BTreeMap<String, Weak<Semaphore>>,
    limit: usize,
}

impl Calls {
    /// The share of what is below this entry.
    pub(super) fn below(&self, entry: &str) -> Lane {
        // The data are whole after every call, so a panic elsewhere does not spoil them.
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries.of.get(entry).and_then(Weak::upgrade);
        let free = known.unwrap_or_else(|| {
            if entries.of.len() >= entries.limit.max(LEAST_ENTRIES) {
                entries.of.retain(|_, free| free.strong_count() > 0);
                entries.limit = 2 * entries.of.len();
            }
            let free = Arc::new(Semaphore::new(PER_ENTRY));
            entries.of.insert(entry.to_owned(), Arc::downgrade(&free));
            free
        });
        Lane { free, patience: PATIENCE }
    }
}

/// The calls below one entry.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    free: Arc<Semaphore>,
    patience: Duration,
}

impl Lane {
    /// The result of `work`, which blocks.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if the file system does not answer, another kind if `work` panics.
    pub(super) async fn call<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let called = async {
            let permit = self.free.acquire_owned().await.map_err(io::Error::other)?;
            let working = spawn_blocking(move || {
                // Held as long as the thread is, whether or not somebody still waits.
                let _permit = permit;
                work()
            });
            working.await.map_err(io::Error::other)
        };
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the file system does not answer");
        timeout(self.patience, called).await.unwrap_or_else(|_| Err(late()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use super::*;

    /// What calls wait for that do not return.
    #[derive(Default)]
    struct Gate(Mutex<bool>, Condvar);

    impl Gate {
        fn pass(&self) {
            let open = self.0.lock().unwrap();
            drop(self.1.wait_while(open, |open| !*open).unwrap());
        }

        fn open(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_all();
        }
    }

    #[tokio::test]
    async fn calls_that_do_not_return_keep_others_from_nothing() {
        let calls = Calls::default();
        let gate = Arc::new(Gate::default());
        let hung: Vec<_> = (0..600)
            .map(|_| {
                let gate = Arc::clone(&gate);
                tokio::spawn(calls.below("mount").call(move || gate.pass()))
            })
            .collect();
        // More than there are threads.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let other = timeout(Duration::from_secs(5), calls.below("file").call(|| 7)).await;
        gate.open();
        assert_eq!(other.expect("the threads are used up").unwrap(), 7);
        for call in hung {
            call.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_ever_and_a_call_that_does_not_return_keeps_its_place() {
        let calls = Calls::default();
        let gate = Arc::new(Gate::default());
        let lane = || Lane { patience: Duration::from_millis(50), ..calls.below("mount") };
        for _ in 0..=PER_ENTRY {
            let gate = Arc::clone(&gate);
            let called = tokio::spawn(lane().call(move || gate.pass()));
            tokio::task::yield_now().await;
            drop(called);
        }
        let refused = lane().call(|| ()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        assert_eq!(lane().free.available_permits(), 0);
        gate.open();
        calls.below("mount").call(|| ()).await.unwrap();
    }

    #[test]
    fn entries_without_a_call_are_forgotten() {
        let calls = Calls::default();
        let held = calls.below("held");
        for number in 0..10_000 {
            calls.below(&number.to_string());
        }
        let entries = calls.0.lock().unwrap();
        assert!(entries.of.len() <= LEAST_ENTRIES && entries.of.contains_key("held"), "{}", entries.of.len());
        drop((entries, held));
    }
}
