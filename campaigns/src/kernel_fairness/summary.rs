//! What the runs of a cell, and of its baseline, come to.

use serde::Serialize;

use super::cells::{Cell, Contender, Rival};
use super::ends::Shares;
use super::journal::Journal;
use super::run::Conditions;
use crate::median;

/// A cell's figures: medians over its runs. Rates in bits a second.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub(super) cell: Cell,
    pub(super) runs: usize,
    /// The profile's goodput.
    pub(super) contender: f64,
    /// Mean goodput of a kernel flow.
    pub(super) kernel: f64,
    /// The same beside one more kernel CUBIC flow instead.
    pub(super) kernel_alone: f64,
    /// The profile's part of all goodput, as a multiple of its fair part.
    pub(super) share: f64,
    /// Least and greatest share of a run.
    pub(super) shares: (f64, f64),
    /// Jain's index over all flows.
    pub(super) jain: f64,
    /// What a kernel flow loses, as part of what it has in the baseline.
    pub(super) harm: f64,
    /// Greatest 99th percentile of the emulator's lateness in any run, in seconds.
    pub(super) lateness: f64,
}

/// The summaries of all cells that have runs, baselines aside.
pub(super) fn all(cells: &[Cell], journal: &Journal, conditions: &Conditions) -> Vec<Summary> {
    let profiles = cells.iter().filter(|cell| matches!(cell.contender, Contender::Profile(_)));
    profiles.filter_map(|cell| of(cell, journal, conditions)).collect()
}

fn of(cell: &Cell, journal: &Journal, conditions: &Conditions) -> Option<Summary> {
    let baseline = cell.baseline();
    let runs: Vec<&Shares> = journal.of(cell, conditions).map(|entry| &entry.shares).collect();
    let alone: Vec<&Shares> = journal.of(&baseline, conditions).map(|entry| &entry.shares).collect();
    if runs.is_empty() || alone.is_empty() {
        return None;
    }
    let over =
        |shares: &[&Shares], figure: fn(&Shares) -> f64| median(shares.iter().map(|shares| figure(shares)));
    // Where all flows are CUBIC they are alike: the mean of all says more than that of some.
    let baseline_mean = if cell.rival == Rival::Cubic { mean_of_all } else { mean };
    let (kernel, kernel_alone) = (over(&runs, mean), over(&alone, baseline_mean));
    let entries = journal.of(cell, conditions).chain(journal.of(&baseline, conditions));
    Some(Summary {
        cell: cell.clone(),
        runs: runs.len(),
        contender: over(&runs, |shares| shares.contender),
        kernel,
        kernel_alone,
        share: over(&runs, share),
        shares: bounds(runs.iter().map(|shares| share(shares))),
        jain: over(&runs, jain),
        harm: (kernel_alone - kernel) / kernel_alone,
        lateness: entries.map(|entry| entry.lateness).fold(0.0, f64::max),
    })
}

/// Least and greatest value.
pub(super) fn bounds(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
}

/// Mean goodput of a kernel flow.
fn mean(shares: &Shares) -> f64 {
    shares.kernel.iter().sum::<f64>() / shares.kernel.len() as f64
}

/// The same, with the contender for one of them.
fn mean_of_all(shares: &Shares) -> f64 {
    (shares.kernel.iter().sum::<f64>() + shares.contender) / (shares.kernel.len() + 1) as f64
}

fn share(shares: &Shares) -> f64 {
    let all = shares.contender + shares.kernel.iter().sum::<f64>();
    shares.contender / all * (shares.kernel.len() + 1) as f64
}

/// Jain, Chiu, Hawe 1984: the square of the sum over the number times the sum of squares.
fn jain(shares: &Shares) -> f64 {
    let all = || shares.kernel.iter().chain([&shares.contender]);
    let sum: f64 = all().sum();
    let squares: f64 = all().map(|rate| rate * rate).sum();
    sum * sum / ((shares.kernel.len() + 1) as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::super::journal::Entry;
    use super::*;

    fn is_near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-9
    }

    #[test]
    fn figures_of_a_cell_follow_from_its_runs_and_its_baselines() {
        let conditions = Conditions { rtt: 40.0, warm_up: 1.0, seconds: 1.0 };
        let contender = Contender::Profile("standard".to_owned());
        let cell = Cell { contender, rival: Rival::Cubic, flows: 2, megabits: 10.0, buffer: 1.0 };
        let mut journal = Journal::open(None).unwrap();
        let mut note = |cell: Cell, contender: f64, kernel: [f64; 2]| {
            let shares = Shares { contender, kernel: kernel.to_vec() };
            let conditions = conditions.clone();
            journal.add(Entry { cell, conditions, seed: 1, shares, lateness: 1e-4, origin: None }).unwrap();
        };
        note(cell.baseline(), 6.0, [4.0, 2.0]);
        note(cell.clone(), 6.0, [1.0, 2.0]);
        let cells = [cell.baseline(), cell];
        let summaries = all(&cells, &journal, &conditions);
        let [summary] = &summaries[..] else { panic!("{summaries:?}") };
        assert!(is_near(summary.kernel, 1.5) && is_near(summary.kernel_alone, 4.0));
        assert!(is_near(summary.harm, 0.625), "of what it has beside one more CUBIC flow");
        assert!(is_near(summary.share, 6.0 / 9.0 * 3.0));
        assert!(is_near(summary.jain, 81.0 / (3.0 * 41.0)));
        assert!(
            is_near(summary.shares.0, summary.share) && is_near(summary.shares.1, summary.share),
            "one run"
        );
        assert!(all(&cells, &Journal::open(None).unwrap(), &conditions).is_empty());
        // BBR's flows are not like the CUBIC flow that they meet.
        let bbr = cells.map(|cell| Cell { rival: Rival::Bbr, ..cell });
        let mut journal = Journal::open(None).unwrap();
        for (cell, contender, kernel) in [(&bbr[0], 6.0, [4.0, 2.0]), (&bbr[1], 6.0, [1.0, 2.0])] {
            let shares = Shares { contender, kernel: kernel.to_vec() };
            let (cell, conditions) = (cell.clone(), conditions.clone());
            journal.add(Entry { cell, conditions, seed: 1, shares, lateness: 1e-4, origin: None }).unwrap();
        }
        assert!(is_near(all(&bbr, &journal, &conditions)[0].kernel_alone, 3.0));
        // Three runs: the figure is the median's, the spread that of all.
        for contender in [1.0, 3.0] {
            let shares = Shares { contender, kernel: vec![1.0, 2.0] };
            let (cell, conditions) = (bbr[1].clone(), conditions.clone());
            journal.add(Entry { cell, conditions, seed: 2, shares, lateness: 1e-4, origin: None }).unwrap();
        }
        let summary = all(&bbr, &journal, &conditions).remove(0);
        assert!(is_near(summary.share, 1.5), "{summary:?}");
        assert!(is_near(summary.shares.0, 0.75) && is_near(summary.shares.1, 2.0), "{summary:?}");
    }
}
