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
    /// Only these libraries (repeatable): endpoint, endpoint-minimal, http, quinn
    #[arg(long = "library", value_name = "NAME")]
    libraries: Vec<String>,
}

/// A library: its name here, its package, the workspace that it is in, and further arguments of cargo. quinn has what
/// interop needs: tokio, rustls and aws-lc.
const LIBRARIES: [(&str, &str, &str, &[&str]); 4] = [
    ("endpoint", "posthaste-endpoint", "Cargo.toml", &[]),
    ("endpoint-minimal", "posthaste-endpoint", "Cargo.toml", &["--no-default-features"]),
    ("http", "posthaste-http", "Cargo.toml", &[]),
    ("quinn", "quinn", "interop/Cargo.toml", &[]),
];

/// The same for all, whatever the workspaces' profiles are.
const SETTINGS: [(&str, &str); 4] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
    ("CARGO_INCREMENTAL", "0"),
];

/// Packages of the libraries for which the root workspace has a lower optimisation level in release mode: here they have
/// the one of all others, so that all libraries are compiled alike.
const LOWERED: [&str; 2] = ["toml", "winnow"];

/// Builds all libraries and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let is_chosen = |name: &str| {
        arguments.libraries.is_empty() || arguments.libraries.iter().any(|chosen| chosen == name)
    };
    if let Some(unknown) =
        arguments.libraries.iter().find(|chosen| LIBRARIES.iter().all(|(name, ..)| name != *chosen))
    {
        return Err(format!(
            "no library {unknown:?}; there are {}",
            LIBRARIES.map(|library| library.0).join(", ")
        )
        .into());
    }
    println!("{:<18}{:>10}{:>12}{:>10}", "library", "seconds", "CPU s", "crates");
    for (name, package, manifest, more) in LIBRARIES.into_iter().filter(|(name, ..)| is_chosen(name)) {
        crate::workspace::run(cargo().args(["fetch", "--quiet", "--manifest-path", manifest]))?;
        let folder = tempfile::tempdir()?;
        let mut command: Command = cargo();
        command.args(["build", "--release", "--package", package, "--manifest-path", manifest]);
        command.args(more).arg("--target-dir").arg(folder.path()).envs(SETTINGS);
        for lowered in LOWERED {
            command.arg("--config").arg(format!("profile.release.package.{lowered}.opt-level=3"));
        }
        let (began, before) = (Instant::now(), children_cpu()?);
        let output = command.output()?;
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), children_cpu()?.saturating_sub(before));
        let told = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!("{package} does not build: {told}").into());
        }
        let crates = told.lines().filter(|line| line.trim_start().starts_with("Compiling")).count();
        println!("{name:<18}{seconds:>10.1}{:>12.1}{crates:>10}", cpu.as_secs_f64());
    }
    Ok(true)
}
