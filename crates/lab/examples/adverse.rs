//! Many adverse cases in parallel, a table of how they ended, and how to repeat what failed: `cargo xtask adverse`
//! builds this with debug assertions and overflow checks, and passes its arguments on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use posthaste_lab::adverse::{Case, Ending, Outcome, Rival, Theme, run_traced};
use posthaste_transport::{ConnectionId, QlogSink, Side};

struct Options {
    seeds: u64,
    from: u64,
    only: Option<Rival>,
    jobs: u64,
    is_verbose: bool,
    traces: Option<PathBuf>,
}

const USAGE: &str =
    "adverse [--seeds N] [--from N] [--stack ours|noq|quinn] [--jobs N] [--verbose] [--qlog FOLDER]";

fn options() -> Result<Options, String> {
    let jobs = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let mut options = Options { seeds: 1000, from: 0, only: None, jobs, is_verbose: false, traces: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64, String> {
            let value = words.next().ok_or(format!("{word}: a number is missing"))?;
            value.parse().map_err(|error| format!("{word} {value}: {error}"))
        };
        match word.as_str() {
            "--seeds" => options.seeds = number()?,
            "--from" => options.from = number()?,
            "--jobs" => options.jobs = number()?.max(1),
            "--verbose" => options.is_verbose = true,
            "--qlog" => options.traces = Some(words.next().ok_or("--qlog: a folder is missing")?.into()),
            "--stack" => {
                let name = words.next().ok_or("--stack: a name is missing")?;
                options.only = Some(name.parse().map_err(|error| format!("--stack: {error}"))?);
            }
            _ => return Err(format!("{word}: unknown; {USAGE}")),
        }
    }
    Ok(options)
}

/// A file for each end of ours.
struct Traces {
    folder: PathBuf,
    seed: u64,
}

impl QlogSink for Traces {
    fn open(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Write + Send + Sync>> {
        let name = format!("{}_{side:?}_{original_destination}.sqlog", self.seed).to_lowercase();
        match File::create(self.folder.join(&name)) {
            Ok(file) => Some(Box::new(BufWriter::new(file))),
            Err(error) => {
                eprintln!("{name}: {error}");
                None
            }
        }
    }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::FAILURE;
        }
    };
    let next = AtomicU64::new(options.from);
    let end = options.from.saturating_add(options.seeds);
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let case = Case::draw(seed, options.only);
                    let outcome = run_traced(
                        &case,
                        options.traces.clone().map(|folder| Arc::new(Traces { folder, seed }) as _),
                    );
                    if options.is_verbose {
                        println!("{case:#?}\n{outcome:#?}");
                    }
                    results.lock().expect("no holder panics").insert(seed, (case, outcome));
                }
            });
        }
    });
    let results = results.into_inner().expect("no holder panics");
    print_table(&results);
    let failed = print_failures(&results, options.only);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Which cases a row counts.
type Filter = Box<dyn Fn(&Case) -> bool>;

/// A row for each theme, stack met and role of ours.
fn print_table(results: &BTreeMap<u64, (Case, Outcome)>) {
    println!(
        "{:<24}{:>6}{:>10}{:>11}{:>8}{:>14}",
        "case", "runs", "complete", "timed out", "failed", "most packets"
    );
    let mut rows: Vec<(String, Filter)> = Vec::new();
    for theme in Theme::ALL {
        rows.push((theme.to_string(), Box::new(move |case| case.theme == theme)));
    }
    for rival in Rival::ALL {
        for (role, is_client) in [("client", true), ("server", false)] {
            let name = if rival == Rival::Ours {
                "both ends ours".to_owned()
            } else {
                format!("our {role}, {rival}")
            };
            rows.push((name, Box::new(move |case| case.rival == rival && case.is_client_ours == is_client)));
        }
    }
    rows.push(("all".to_owned(), Box::new(|_| true)));
    for (name, is_in) in rows {
        let of_row: Vec<&Outcome> =
            results.values().filter(|(case, _)| is_in(case)).map(|(_, outcome)| outcome).collect();
        if of_row.is_empty() {
            continue;
        }
        let count = |is: fn(&Ending) -> bool| of_row.iter().filter(|outcome| is(&outcome.ending)).count();
        println!(
            "{name:<24}{:>6}{:>10}{:>11}{:>8}{:>14}",
            of_row.len(),
            count(|ending| *ending == Ending::Complete),
            count(|ending| *ending == Ending::TimedOut),
            count(|ending| matches!(ending, Ending::Failed(_))),
            of_row.iter().map(|outcome| outcome.packets).max().unwrap_or(0),
        );
    }
}

/// Their number.
fn print_failures(results: &BTreeMap<u64, (Case, Outcome)>, only: Option<Rival>) -> usize {
    let mut failed = 0;
    for (seed, (case, outcome)) in results {
        let Ending::Failed(fault) = &outcome.ending else { continue };
        failed += 1;
        println!(
            "\nFAILED: seed {seed}, {} theme, client {}, server {}",
            case.theme, case.client, case.server
        );
        println!("  {}: {}", fault.kind(), fault.detail());
        println!("  at {:.3} s after {} packets", outcome.at.as_secs_f64(), outcome.packets);
        let stack = only.map_or(String::new(), |rival| format!(" --stack {rival}"));
        println!("  repeat: cargo xtask adverse --from {seed} --seeds 1{stack} --verbose");
    }
    failed
}
