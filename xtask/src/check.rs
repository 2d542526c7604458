//! What CI refuses: formatting, lints, documentation, a public API that has changed unseen, long files, duplicated code,
//! wording.

pub(crate) mod api;
mod duplicates;
mod features;
mod files;
mod listed;
pub(crate) mod packages;
mod prose;
mod sizes;

use clap::Args;

use crate::Result;
use crate::workspace::{cargo, root, run, target};

/// The workspace of the Python packages.
const PYTHON: &str = "python/Cargo.toml";

/// Of `cargo xtask check`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Check only the text of files: length, duplicates, wording
    #[arg(long)]
    text: bool,
}

/// All checks; the first that fails is the error.
pub(crate) fn check(arguments: &Arguments) -> Result<bool> {
    let faults = faults()?;
    for fault in &faults {
        eprintln!("{fault}");
    }
    if arguments.text || !faults.is_empty() {
        return Ok(faults.is_empty());
    }
    run(cargo().args(["fmt", "--all", "--check"]))?;
    for other in ["interop/Cargo.toml", "examples/outside/Cargo.toml", PYTHON] {
        run(cargo().args(["fmt", "--all", "--check", "--manifest-path", other]))?;
    }
    let lints = ["--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    run(cargo().arg("clippy").args(lints))?;
    run(cargo().args(["clippy", "--manifest-path", PYTHON, "--target-dir"]).arg(target()).args(lints))?;
    packages::minimal()?;
    packages::single_commands()?;
    Ok(docs()? && api::compare()?)
}

/// Documentation, refusing broken links.
pub(crate) fn docs() -> Result<bool> {
    let mut command = cargo();
    command.args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
    run(&mut command)?;
    Ok(true)
}

/// What is wrong with the text of the repository's files.
fn faults() -> Result<Vec<String>> {
    let root = root();
    let mut faults = sizes::faults(&root)?;
    faults.extend(duplicates::faults(&root)?);
    faults.extend(prose::faults(&root)?);
    faults.extend(listed::faults(&root)?);
    faults.extend(features::faults(&root)?);
    Ok(faults)
}
