//! What measurements of stacks that take turns have in common: their order, whether the machine was quiet meanwhile, and the
//! options of the commands.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use crate::Result;

/// Share of all processor time that others may have had, in percent; a run with more is void.
pub(super) const MAX_OTHERS: f64 = 10.0;
/// Attempts at a run that is void.
const ATTEMPTS: u32 = 3;

/// What comes before a measurement, and what is kept of it.
#[derive(Debug, Clone, Args)]
pub(super) struct Means {
    /// Only get and build everything
    #[arg(long)]
    pub(super) prepare: bool,
    /// Measure what --prepare has built, without looking for changes
    #[arg(long, conflicts_with = "prepare")]
    pub(super) as_built: bool,
    /// Also write every run here
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

/// What all processes have had since a moment.
#[derive(Debug)]
pub(super) struct Watch {
    busy: Duration,
    began: Instant,
}

impl Watch {
    /// Begins now.
    pub(super) fn start() -> Result<Self> {
        Ok(Self { busy: busy_time()?, began: Instant::now() })
    }

    /// Seconds since.
    pub(super) fn wall(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Share of all processor time since that others had than those that had `own`, in percent.
    pub(super) fn others(&self, own: Duration) -> Result<f64> {
        let cores = std::thread::available_parallelism()?.get() as f64;
        let others = busy_time()?.saturating_sub(self.busy + own).as_secs_f64();
        Ok(others / self.wall() / cores * 100.0)
    }
}

/// A run, again if `others`, in percent, says that others disturbed it. It may be void even so.
pub(super) fn quiet<T>(mut run: impl FnMut() -> Result<T>, others: impl Fn(&T) -> f64) -> Result<T> {
    let mut outcome = run()?;
    for _ in 1..ATTEMPTS {
        if others(&outcome) > MAX_OTHERS {
            outcome = run()?;
        }
    }
    Ok(outcome)
}

/// All of `all`, in another order each round: who comes first does not stay the same.
pub(super) fn turned<T>(all: &[T], round: usize) -> impl Iterator<Item = &T> {
    (0..all.len()).map(move |index| &all[(index + round) % all.len()])
}

/// Time that all cores were not idle, of everybody (`/proc/stat`, in hundredths of a second).
fn busy_time() -> Result<Duration> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().ok_or("nothing in /proc/stat")?;
    let fields: Vec<u64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let idle = fields
        .get(3)
        .zip(fields.get(4))
        .map(|(idle, wait)| idle + wait)
        .ok_or("no idle time in /proc/stat")?;
    let all: u64 = fields.iter().take(8).sum();
    Ok(Duration::from_millis((all - idle) * 10))
}

#[cfg(test)]
mod tests {
    use super::{MAX_OTHERS, quiet, turned};

    #[test]
    fn each_is_first_in_a_round_and_a_disturbed_run_is_made_again() {
        let orders: Vec<Vec<u32>> =
            (0..3).map(|round| turned(&[1, 2, 3], round).copied().collect()).collect();
        assert_eq!(orders, [vec![1, 2, 3], vec![2, 3, 1], vec![3, 1, 2]]);
        let mut shares = [MAX_OTHERS + 1.0, 0.0, 50.0].into_iter();
        let kept = quiet(|| Ok(shares.next().unwrap_or(99.0)), |share| *share);
        assert_eq!(kept.ok(), Some(0.0));
        let mut runs = 0;
        let busy = || {
            runs += 1;
            Ok(100.0 + f64::from(runs))
        };
        assert_eq!(quiet(busy, |share| *share).ok(), Some(103.0), "the last of three, which is void");
    }
}
