//! One cell, run.

use std::path::PathBuf;

use posthaste_campaign::quota::Quota;
use serde::{Deserialize, Serialize};

use super::cells::{Cell, Contender};
use super::ends::{FILE, Shares};
use super::journal::{Entry, Journal};
use super::origin::Build;
use crate::Result;
use crate::emulated;

/// A run is made so often, until it is valid.
const MAX_ATTEMPTS: u64 = 3;

/// More than the fastest run downloads: the file takes no room on the disk.
const FILE_BYTES: u64 = 1 << 40;

/// What all cells have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Conditions {
    /// Milliseconds.
    pub(super) rtt: f64,
    pub(super) warm_up: f64,
    pub(super) seconds: f64,
}

/// Where cells are run.
pub(super) struct Ground {
    program: PathBuf,
    /// This program, which plays both ends.
    own: PathBuf,
    conditions: Conditions,
    build: Build,
}

impl Ground {
    pub(super) fn new(program: PathBuf, conditions: Conditions, build: Build) -> Result<Self> {
        Ok(Self { program, own: std::env::current_exe()?, conditions, build })
    }

    /// Runs the cell until a run is valid, and notes it; how many were not.
    pub(super) fn hold(&self, cell: &Cell, journal: &mut Journal) -> Result<u64> {
        let first = journal.of(cell, &self.conditions).count() as u64 * MAX_ATTEMPTS;
        let mut quota = Quota::new(1, MAX_ATTEMPTS);
        while let Some(attempt) = quota.next(0, 1) {
            let seed = first + attempt.start();
            let (lateness, shares) = self.run(cell, seed)?;
            if let Some(shares) = shares {
                let origin = Some(self.build.origin(&cell.contender)?);
                let (cell, conditions) = (cell.clone(), self.conditions.clone());
                journal.add(Entry { cell, conditions, seed, shares, lateness, origin })?;
                return Ok(attempt.start() - 1);
            }
            eprintln!("void: {:.2} ms late at the 99th percentile, or packets dropped", lateness * 1e3);
        }
        Ok(MAX_ATTEMPTS)
    }

    /// One run: its lateness, and what came of it if it counts.
    fn run(&self, cell: &Cell, seed: u64) -> Result<(f64, Option<Shares>)> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("www"))?;
        std::fs::File::create(folder.path().join("www").join(FILE))?.set_len(FILE_BYTES)?;
        let mut command = emulated::command(&self.program, seed);
        let delay = self.conditions.rtt / 2.0;
        let Cell { rival, flows, megabits, buffer, .. } = cell;
        let contender = match &cell.contender {
            Contender::Profile(name) => Contender::Profile(emulated::from_anywhere(name)?),
            kernel @ Contender::Kernel(_) => kernel.clone(),
        };
        command.args(["--down", &format!("rate={megabits}mbit,delay={delay}ms,queue={buffer}bdp")]);
        command.args(["--up", &format!("rate={megabits}mbit,delay={delay}ms,queue=4bdp")]);
        let priority = emulated::priority();
        let end = format!("exec {priority}'{}' fairness-end", self.own.display());
        command.args(["--far", &format!("{end} server")]);
        if let Contender::Profile(profile) = &contender {
            command.args(["--far", &emulated::server(&self.program, profile)]);
        }
        let Conditions { warm_up, seconds, .. } = self.conditions;
        command.args(["--", "sh", "-c"]).arg(format!(
            "{end} client --program '{}' --contender '{contender}' --rival {} --flows {flows} \
             --warm-up {warm_up} --seconds {seconds}",
            self.program.display(),
            rival.name()
        ));
        let run = emulated::Run::make(command, folder.path(), &format!("{cell}: a run"))?;
        let shares = run.counts()?.then(|| serde_json::from_slice(&run.output)).transpose()?;
        Ok((run.report.lateness(), shares))
    }
}
