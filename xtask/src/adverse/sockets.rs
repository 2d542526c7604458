//! `cargo xtask adverse --sockets`: the binary's two ends over real sockets, with a relay between them that loses,
//! reorders, repeats and changes datagrams, and with ends that are killed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Arguments;
use super::case::{Case, Event};
use super::trial::{Outcome, play};
use crate::Result;
use crate::site::Programs;
use crate::workspace::build_posthaste_debug;

/// Cases at once: they wait more than they compute.
const JOBS: u64 = 8;

/// All outcomes.
#[derive(Debug, Default)]
struct Sum {
    cases: u64,
    faults: u64,
    restarts: u64,
    killed: u64,
    failed: u64,
    cut_off: u64,
    visits: [u64; 6],
    slowest: Duration,
}

impl Sum {
    fn add(&mut self, case: &Case, outcome: &Result<Outcome>) {
        self.cases += 1;
        self.restarts += u64::from(case.event == Event::Restart);
        self.killed += u64::from(case.event == Event::ClientKilled);
        let Ok(outcome) = outcome else {
            self.faults += 1;
            return;
        };
        self.failed += u64::from(outcome.failed);
        self.cut_off += outcome.cut_off;
        self.slowest = self.slowest.max(outcome.took);
        let visits = &outcome.visits;
        let counts = [visits.all, visits.whole, visits.moved, visits.reset, visits.uploads, visits.failed];
        for (sum, count) in self.visits.iter_mut().zip(counts) {
            *sum += count;
        }
    }

    fn print(&self, took: Duration) {
        let [all, whole, moved, reset, uploads, failed] = self.visits;
        println!("{} cases in {:.0} s, {} faults", self.cases, took.as_secs_f64(), self.faults);
        println!("servers killed and started again {}, clients killed {}", self.restarts, self.killed);
        println!("transfers that ended early, and were continued {}", self.failed);
        println!("clients that gave up in an outage of their path {}", self.cut_off);
        println!("slowest file {:.1} s", self.slowest.as_secs_f64());
        println!(
            "visits {all}: whole {whole}, whole after another address {moved}, given up {reset}, \
             whole after an upload that ended early {uploads}, failed with their server {failed}"
        );
    }
}

/// Runs the cases; true if none shows a fault.
pub(super) fn run(arguments: &Arguments) -> Result<bool> {
    // Not a release build: debug assertions and overflow checks are part of the test.
    let programs = Programs::with(build_posthaste_debug()?)?;
    let next = AtomicU64::new(arguments.from);
    let end = arguments.from + arguments.seeds;
    let sum = Mutex::new(Sum::default());
    let began = Instant::now();
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            let case = Case::drawn(seed);
            let outcome = play(&case, &programs);
            match &outcome {
                Ok(outcome) if arguments.verbose => {
                    println!("ok     {case}; {:.1} s", outcome.took.as_secs_f64());
                }
                Ok(_) => {}
                Err(error) => {
                    println!("FAULT  {case}\n       {error}");
                    println!("       again: cargo xtask adverse --sockets --seeds 1 --from {seed}");
                }
            }
            sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(&case, &outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.unwrap_or(JOBS).max(1) {
            scope.spawn(work);
        }
    });
    let sum = sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    sum.print(began.elapsed());
    Ok(sum.faults == 0)
}
