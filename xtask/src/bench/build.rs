//! How long a library takes to compile from cold, next to quinn.

use std::process::Command;
use std::time::Instant;

use clap::Args;

use crate::Result;
use crate::process::children_cpu;
use crate::workspace::cargo;

/// Of `cargo xtask bench build`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each library with all that it needs, in release mode with the same settings, in an empty target folder.
The crates' sources are fetched before the clock starts."
)]
pub(crate) struct Arguments {
    /// Only these libraries (repeatable): endpoint, http, quinn
    #[arg(long = "library", value_name = "NAME")]
    libraries: Vec<String>,
}

/// A library: its name here, its package, and the workspace that it is in.
const LIBRARIES: [(&str, &str, &str); 3] = [
    ("endpoint", "posthaste-endpoint", "Cargo.toml"),
    ("http", "posthaste-http", "Cargo.toml"),
    ("quinn", "quinn", "interop/Cargo.toml"),
];

/// The same for all, whatever the workspaces' profiles are.
const SETTINGS: [(&str, &str); 4] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
    ("CARGO_INCREMENTAL", "0"),
];

/// Builds all libraries and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let is_chosen = |name: &str| {
        arguments.libraries.is_empty() || arguments.libraries.iter().any(|chosen| chosen == name)
    };
    if let Some(unknown) =
        arguments.libraries.iter().find(|chosen| LIBRARIES.iter().all(|(name, ..)| name != *chosen))
    {
        return Err(format!("no library {unknown:?}; there are endpoint, http and quinn").into());
    }
    println!("{:<12}{:>10}{:>12}{:>10}", "library", "seconds", "CPU s", "crates");
    for (name, package, manifest) in LIBRARIES.into_iter().filter(|(name, ..)| is_chosen(name)) {
        crate::workspace::run(cargo().args(["fetch", "--quiet", "--manifest-path", manifest]))?;
        let folder = tempfile::tempdir()?;
        let mut command: Command = cargo();
        command.args(["build", "--release", "--package", package, "--manifest-path", manifest]);
        command.arg("--target-dir").arg(folder.path()).envs(SETTINGS);
        let (began, before) = (Instant::now(), children_cpu()?);
        let output = command.output()?;
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), children_cpu()?.saturating_sub(before));
        let told = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!("{package} does not build: {told}").into());
        }
        let crates = told.lines().filter(|line| line.trim_start().starts_with("Compiling")).count();
        println!("{name:<12}{seconds:>10.1}{:>12.1}{crates:>10}", cpu.as_secs_f64());
    }
    Ok(true)
}
