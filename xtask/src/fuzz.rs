//! `cargo xtask fuzz`: every fuzz target for a while, as `fuzz/README.md` describes by hand.

use std::path::Path;
use std::process::Command;

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
    /// Files of fuzz/src/bin without their ending; default all
    targets: Vec<String>,
}

/// Runs the targets one after the other; true if nothing was found.
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
    let mut failed = Vec::new();
    for target in chosen {
        eprintln!("fuzzing {target} for {} s", arguments.seconds);
        if !fuzz_one(&folder, target, arguments.seconds)? {
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() {
        println!("nothing found in {}", chosen.join(", "));
    } else {
        println!("FAILED: {}; the inputs are in fuzz/artifacts", failed.join(", "));
    }
    Ok(failed.is_empty())
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

fn fuzz_one(folder: &Path, target: &str, seconds: u32) -> Result<bool> {
    let (found, artifacts) = (format!("target/corpus/{target}"), format!("artifacts/{target}/"));
    std::fs::create_dir_all(folder.join(&found))?;
    std::fs::create_dir_all(folder.join(&artifacts))?;
    let seeds = format!("corpus/{target}");
    if !folder.join(&seeds).is_dir() {
        return Err(format!("fuzz/{seeds} is missing: every target has at least one seed").into());
    }
    let mut command = in_folder(folder);
    command.args(["run", "--locked", "--release", "--quiet", "--bin", target, "--", &found, &seeds]);
    command.arg(format!("-max_total_time={seconds}")).arg(format!("-timeout={INPUT_TIMEOUT}"));
    command.arg(format!("-rss_limit_mb={MEMORY}")).arg(format!("-artifact_prefix={artifacts}"));
    // libFuzzer's progress is for a person who watches; the end of it tells the rest.
    command.arg("-print_final_stats=1").arg("-verbosity=0");
    Ok(command.status()?.success())
}
