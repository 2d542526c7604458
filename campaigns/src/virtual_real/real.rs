//! The real side: `posthaste race` as a child process.

use std::path::{Path, PathBuf};
use std::process::Command;

use posthaste_campaign::quota::Quota;
use posthaste_campaign::raced::Run;
use posthaste_units::Duration;

use crate::Result;
use crate::cells::Cell;
use crate::raced::race;

/// UDP payload at most: the default of the transport, which `posthaste race --bare` sends from the first on.
pub(super) const DATAGRAM: u16 = 1452;

/// Time after which a run is given up, on both sides.
pub(super) const TIMEOUT: Duration = Duration::from_secs(300);

/// Lateness at the 99th percentile, in seconds, from which on a run is void.
const LATEST: f64 = 1e-3;

/// Runs are made for so many times the number that is wanted, at most.
const MAX_ATTEMPTS: u64 = 4;

/// How to run it.
pub(super) struct RealTime {
    pub(super) program: PathBuf,
    pub(super) profile: String,
    /// Runs it before all programs of ordinary priority.
    pub(super) has_priority: bool,
}

/// What the runs of a cell have shown.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// The runs that count.
    pub(super) runs: Vec<RealRun>,
    /// Runs that do not count.
    pub(super) void: u64,
    /// Greatest 99th percentile of lateness among the runs that count, in seconds.
    pub(super) lateness: f64,
}

/// A run that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RealRun {
    /// Seed of its path.
    pub(super) seed: u64,
    /// Seconds it took, infinite if it failed.
    pub(super) seconds: f64,
}

impl RealTime {
    /// Runs the cell until enough runs count, or too many were void.
    pub(super) fn measure(&self, cell: &Cell) -> Result<Measured> {
        let mut measured = Measured::default();
        let mut quota = Quota::new(cell.runs, MAX_ATTEMPTS);
        while let Some(seeds) = quota.next(measured.runs.len() as u64, u64::MAX) {
            let runs = seeds.end() - seeds.start() + 1;
            self.runs(cell, runs, *seeds.start())?.into_iter().for_each(|run| measured.add(&run));
        }
        Ok(measured)
    }

    fn runs(&self, cell: &Cell, runs: u64, seed: u64) -> Result<Vec<Run>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("path.toml");
        std::fs::write(&path, cell.path)?;
        let mut command = Command::new(if self.has_priority { Path::new("chrt") } else { &self.program });
        if self.has_priority {
            command.args(["--rr", "1"]).arg(&self.program);
        }
        command
            .args(["race", "--bare", "--json", "--no-html", "--profiles", &self.profile, "--path"])
            .arg(&path);
        command.args(["--object", &format!("{}B", cell.object()?.get())]);
        command.args(["--runs", &runs.to_string(), "--seed", &seed.to_string()]);
        command.args(["--parallel", &cell.parallel.to_string()]);
        command.args(["--timeout", &TIMEOUT.as_secs_f64().to_string()]);
        let report = race(&mut command)?;
        Ok(report.profiles.into_iter().flat_map(|profile| profile.runs).collect())
    }
}

impl Measured {
    fn add(&mut self, run: &Run) {
        if run.lateness.p99 > LATEST || run.missed > 0 {
            self.void += 1;
        } else {
            self.runs.push(RealRun { seed: run.seed, seconds: run.seconds.unwrap_or(f64::INFINITY) });
            self.lateness = self.lateness.max(run.lateness.p99);
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_campaign::raced::Lateness;

    use super::*;

    fn run(seed: u64, seconds: Option<f64>, lateness: f64, missed: u64) -> Run {
        let lateness = Lateness { p99: lateness, ..Lateness::default() };
        Run { seed, seconds, lateness, missed, ..Run::default() }
    }

    #[test]
    fn late_runs_and_those_with_alien_losses_are_void_but_failures_count() {
        let mut measured = Measured::default();
        for run in [
            run(1, Some(1.0), 2e-4, 0),
            run(2, Some(1.0), 2e-3, 0),
            run(3, Some(1.0), 0.0, 1),
            run(4, None, 0.0, 0),
        ] {
            measured.add(&run);
        }
        let valid = [RealRun { seed: 1, seconds: 1.0 }, RealRun { seed: 4, seconds: f64::INFINITY }];
        assert_eq!((measured.runs.as_slice(), measured.void), (&valid[..], 2));
        assert!((measured.lateness - 2e-4).abs() < 1e-12);
    }
}
