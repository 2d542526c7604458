//! `cargo xtask fuzz`: every fuzz target for a while, as `fuzz/README.md` describes by hand.

use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;

use crate::Result;
use crate::workspace::{cargo, root, run};

/// A single input may take this long, in seconds.
const INPUT_TIMEOUT: u32 = 10;
/// Memory that a target may use, in MB: decoding never needs as much.
const MEMORY: u32 = 1_024;

/// Of `cargo xtask fuzz`.
#[derive(Debug, Args)]
#[command(
    after_help = "Starts from fuzz/corpus/TARGET, keeps what it finds in fuzz/target/corpus/TARGET, and leaves a
failing input in fuzz/artifacts/TARGET; fuzz/README.md says how to replay it."
)]
pub(crate) struct Arguments {
    /// For each target
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Targets at a time; default one a core
    #[arg(long)]
    jobs: Option<NonZero<usize>>,
    /// Of the fuzzer's random numbers: as many executions from one seed and the same corpus are the same executions;
    /// default another one each time
    #[arg(long, value_name = "N")]
    seed: Option<NonZero<u32>>,
    /// Only build
    #[arg(long)]
    prepare: bool,
    /// Files of fuzz/src/bin without their ending; default all
    targets: Vec<String>,
}

/// Runs the targets, several at a time; true if nothing was found.
pub(crate) fn fuzz(arguments: &Arguments) -> Result<bool> {
    let folder = root().join("fuzz");
    let all = targets(&folder)?;
    if let Some(unknown) = arguments.targets.iter().find(|target| !all.contains(target)) {
        return Err(format!("no target {unknown:?}; there are {}", all.join(", ")).into());
    }
    let chosen = if arguments.targets.is_empty() { &all } else { &arguments.targets };
    // The coverage flags come from fuzz/.cargo/config.toml, which Cargo finds by the working directory; flags
    // from outside would replace them and leave the fuzzer blind.
    let mut build = in_folder(&folder);
    run(build.args(["build", "--locked", "--release", "--bins", "--quiet"]))?;
    if arguments.prepare {
        return Ok(true);
    }
    let failed = fuzz_all(&folder, chosen, arguments)?;
    if failed.is_empty() {
        println!("nothing found in {}", chosen.join(", "));
    } else {
        println!("FAILED: {}; the inputs are in fuzz/artifacts", failed.join(", "));
    }
    Ok(failed.is_empty())
}

/// The names of the targets that found something, in the order of `chosen`.
fn fuzz_all<'a>(folder: &Path, chosen: &'a [String], arguments: &Arguments) -> Result<Vec<&'a str>> {
    let jobs = arguments.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZero::get);
    let jobs = jobs.min(chosen.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut outcomes = Vec::new();
        while let Some((index, target)) = take(&next, chosen) {
            eprintln!("fuzzing {target} for {} s", arguments.seconds);
            // A fault of one target must not end the others: it is told when all have had their time.
            let outcome = fuzz_one(folder, target, arguments, jobs == 1);
            let outcome = outcome.map_err(|fault| format!("{target}: {fault}"));
            outcomes.push((index, target, outcome));
        }
        outcomes
    };
    let mut outcomes = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("a worker does not panic"))
            .collect::<Vec<_>>()
    });
    outcomes.sort_by_key(|(index, ..)| *index);
    let mut failed = Vec::new();
    for (_, target, outcome) in outcomes {
        if !outcome? {
            failed.push(target);
        }
    }
    Ok(failed)
}

fn take<'a>(next: &AtomicUsize, chosen: &'a [String]) -> Option<(usize, &'a str)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    chosen.get(index).map(|target| (index, target.as_str()))
}

fn in_folder(folder: &Path) -> Command {
    let mut command = cargo();
    command.current_dir(folder).env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    command
}

fn targets(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.join("src/bin"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

fn fuzz_one(folder: &Path, target: &str, arguments: &Arguments, alone: bool) -> Result<bool> {
    let (found, artifacts) = (format!("target/corpus/{target}"), format!("artifacts/{target}/"));
    std::fs::create_dir_all(folder.join(&found))?;
    std::fs::create_dir_all(folder.join(&artifacts))?;
    let seeds = format!("corpus/{target}");
    if !folder.join(&seeds).is_dir() {
        return Err(format!("fuzz/{seeds} is missing: every target has at least one seed").into());
    }
    let mut command = in_folder(folder);
    command.args(["run", "--locked", "--release", "--quiet", "--bin", target, "--", &found, &seeds]);
    command.arg(format!("-max_total_time={}", arguments.seconds)).arg(format!("-timeout={INPUT_TIMEOUT}"));
    command.arg(format!("-rss_limit_mb={MEMORY}")).arg(format!("-artifact_prefix={artifacts}"));
    // Zero is libFuzzer's word for a seed of its own.
    command.arg(format!("-seed={}", arguments.seed.map_or(0, NonZero::get)));
    // libFuzzer's progress is for a person who watches; the end of it tells the rest.
    command.arg("-print_final_stats=1").arg("-verbosity=0");
    if alone {
        return Ok(command.status()?.success());
    }
    // At the end: the lines of targets that run at once would mix.
    let output = command.output()?;
    eprint!(
        "== {target}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.status.success())
}
