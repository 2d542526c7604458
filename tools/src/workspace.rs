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

/// Builds the release binary of the command-line program and returns its path.
///
/// # Errors
/// It does not build.
pub fn build_posthaste() -> Result<PathBuf> {
    run(cargo().args(["build", "--quiet", "--release", "--package", "posthaste"]))?;
    Ok(target().join("release/posthaste"))
}

/// Builds the binary with its assertions and overflow checks, as the tests use it, and returns its path.
///
/// # Errors
/// It does not build.
pub fn build_posthaste_debug() -> Result<PathBuf> {
    run(cargo().args(["build", "--quiet", "--package", "posthaste"]))?;
    Ok(target().join("debug/posthaste"))
}
