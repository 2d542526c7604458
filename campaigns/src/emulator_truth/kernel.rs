//! The kernel's side: both ends as processes around `posthaste emulate`.

use std::path::PathBuf;
use std::process::Command;

use posthaste_campaign::emulated::Emulation;
use posthaste_campaign::quota::Quota;

use super::ends::WITNESS_SERVER;
use crate::Result;
use crate::cells::Cell;
use crate::emulated;

/// Runs are made for so many times the number that is wanted, at most.
const MAX_ATTEMPTS: u64 = 3;

/// How to run it.
pub(super) struct Emulator {
    program: PathBuf,
    /// This program, which plays both ends.
    ends: PathBuf,
    /// What gives the ends real-time priority, where that is permitted.
    priority: &'static str,
}

/// Who plays the ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Players {
    /// This program.
    Ours,
    /// ping and iperf3.
    Witnesses,
}

/// What the runs of a cell have shown.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Seconds of the runs that count.
    pub(super) seconds: Vec<f64>,
    /// The paths' seeds in these runs.
    pub(super) seeds: Vec<u64>,
    /// Seconds of all datagrams' round trips in these runs.
    pub(super) round_trips: Vec<f64>,
    /// Runs that do not count.
    pub(super) void: u64,
    /// Greatest 99th percentile of lateness among the runs that count, in seconds.
    pub(super) lateness: f64,
}

impl Emulator {
    pub(super) fn new(program: PathBuf) -> Result<Self> {
        Ok(Self { program, ends: std::env::current_exe()?, priority: emulated::priority() })
    }

    /// Why nothing can be measured here.
    pub(super) fn obstacle(&self) -> Result<Option<String>> {
        emulated::obstacle(&self.program)
    }

    /// True if ping and iperf3 are there.
    pub(super) fn has_witnesses() -> bool {
        let is_there = |program: &str, argument: &str| {
            Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success())
        };
        is_there("ping", "-V") && is_there("iperf3", "--version")
    }

    /// Runs the cell until enough runs count, or too many were void.
    pub(super) fn measure(&self, cell: &Cell, controller: &str, players: Players) -> Result<Measured> {
        let mut measured = Measured::default();
        let mut quota = Quota::new(cell.runs, MAX_ATTEMPTS);
        while let Some(seeds) = quota.next(measured.seconds.len() as u64, cell.parallel) {
            let outcomes = std::thread::scope(|scope| {
                let lanes: Vec<_> = seeds
                    .map(|seed| {
                        scope.spawn(move || {
                            self.run(cell, controller, players, seed)
                                .map(|(report, output)| (seed, report, output))
                                .map_err(|error| error.to_string())
                        })
                    })
                    .collect();
                lanes
                    .into_iter()
                    .map(|lane| lane.join().map_err(|_| "a run has panicked".to_owned())?)
                    .collect::<Vec<_>>()
            });
            for outcome in outcomes {
                let (seed, report, output) = outcome?;
                measured.add(seed, &report, &output)?;
            }
        }
        Ok(measured)
    }

    /// One run: the emulator's report and what the client printed.
    fn run(&self, cell: &Cell, controller: &str, players: Players, seed: u64) -> Result<(Emulation, String)> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("path.toml"), cell.path)?;
        let end = |role: &str| {
            let object = cell.object()?.get();
            Ok::<_, Box<dyn std::error::Error>>(format!(
                "exec {}'{}' emulator-end {role} --object {object}B --controller {controller}",
                self.priority,
                self.ends.display()
            ))
        };
        let (far, near) = match players {
            Players::Ours => (end("server")?, end("client")?),
            Players::Witnesses => (WITNESS_SERVER.to_owned(), end("witness")?),
        };
        let mut command = emulated::command(&self.program, seed);
        command.args(["--path", "path.toml", "--far", &far, "--", "sh", "-c", &near]);
        let run = emulated::Run::make(command, folder.path(), "a run")?;
        run.counts()?;
        Ok((run.report, String::from_utf8(run.output)?))
    }
}

impl Measured {
    fn add(&mut self, seed: u64, report: &Emulation, output: &str) -> Result<()> {
        if !report.valid {
            self.void += 1;
            return Ok(());
        }
        self.seeds.push(seed);
        for line in output.lines() {
            match line.split_once(' ') {
                Some(("seconds", figure)) => self.seconds.push(figure.parse()?),
                Some(("rtt", figure)) => self.round_trips.push(figure.parse()?),
                _ => return Err(format!("an end has printed {line:?}").into()),
            }
        }
        self.lateness = self.lateness.max(report.lateness());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use posthaste_campaign::emulated::Direction;

    use super::*;

    #[test]
    fn void_runs_do_not_count() {
        let direction = |lateness_p99| Direction { lateness_p99, ..Direction::default() };
        let (down, up) = (direction(2e-4), direction(3e-4));
        let report = |valid| Emulation {
            valid,
            exit_code: u8::from(!valid),
            down: down.clone(),
            up: up.clone(),
            ..Emulation::default()
        };
        let mut measured = Measured::default();
        measured.add(1, &report(false), "seconds 9").unwrap();
        measured.add(2, &report(true), "rtt 0.02\nrtt 0.03\nseconds 1.5").unwrap();
        assert_eq!(
            (measured.void, measured.seconds.as_slice(), measured.seeds.as_slice()),
            (1, &[1.5][..], &[2][..])
        );
        assert!(measured.add(3, &report(true), "no figure").is_err());
        assert_eq!((measured.round_trips.len(), measured.lateness), (2, 3e-4));
    }
}
