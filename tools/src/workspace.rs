//! Where things are, and building them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// The folder of the root Cargo.toml.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Cargo's target folder of the root workspace.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |target| root().join(target))
}

/// Cargo, as the toolchain that runs this program has it.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs `command` to its end with its output on the terminal.
///
/// # Errors
/// It cannot be started or ends with a failure; the message holds the command.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

/// The command-line program: the one that the variable `POSTHASTE` names, otherwise a release build.
///
/// # Errors
/// It does not build, or there is none where the variable says.
pub fn build_posthaste() -> Result<PathBuf> {
    given_or_built("release", &["--release"])
}

/// The command-line program: the one that the variable `POSTHASTE` names, otherwise a build with assertions and overflow
/// checks, as the tests use it.
///
/// # Errors
/// It does not build, or there is none where the variable says.
pub fn build_posthaste_debug() -> Result<PathBuf> {
    given_or_built("debug", &[])
}

/// The program that `given` names, by its absolute path, otherwise what `build` makes.
///
/// # Errors
/// There is none, or it does not build.
pub fn program(given: Option<&Path>, build: impl FnOnce() -> Result<PathBuf>) -> Result<PathBuf> {
    given.map_or_else(build, existing)
}

fn existing(program: &Path) -> Result<PathBuf> {
    program.canonicalize().map_err(|error| format!("{}: {error}", program.display()).into())
}

fn given_or_built(folder: &str, profile: &[&str]) -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("POSTHASTE") {
        let given = Path::new(&given);
        eprintln!("using {}, which POSTHASTE names", given.display());
        return existing(given);
    }
    run(cargo().args(["build", "--quiet", "--package", "posthaste"]).args(profile))?;
    Ok(target().join(folder).join("posthaste"))
}
