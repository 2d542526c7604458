//! What CI refuses: formatting, lints, documentation, long files.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::workspace::{cargo, root, run};

/// Lines that a source file may have.
const FILE_LINES: usize = 600;
/// Lines that a test file may have.
const TEST_FILE_LINES: usize = 1_000;
/// Folders whose files are not ours to limit.
const SKIPPED: [&str; 5] = ["target", ".git", ".venv", "artifacts", "corpus"];

/// All checks; the first that fails is the error.
pub(crate) fn check() -> Result<bool> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    for other in ["interop/Cargo.toml", "examples/outside/Cargo.toml"] {
        run(cargo().args(["fmt", "--all", "--check", "--manifest-path", other]))?;
    }
    let lints = ["--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    run(cargo().arg("clippy").args(lints))?;
    docs()?;
    let long = long_files()?;
    for (path, lines, limit) in &long {
        eprintln!("{}: {lines} lines, {limit} are allowed", path.display());
    }
    Ok(long.is_empty())
}

/// Documentation, refusing broken links.
pub(crate) fn docs() -> Result<bool> {
    let mut command = cargo();
    command.args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
    run(&mut command)?;
    Ok(true)
}

fn long_files() -> Result<Vec<(PathBuf, usize, usize)>> {
    let mut long = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !SKIPPED.contains(&name.as_str()) {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "rs" || extension == "py" || extension == "go")
            {
                let lines = std::fs::read_to_string(&path)?.lines().count();
                let limit = if is_test(&path) { TEST_FILE_LINES } else { FILE_LINES };
                if lines >= limit {
                    long.push((path, lines, limit));
                }
            }
        }
    }
    long.sort();
    Ok(long)
}

fn is_test(path: &Path) -> bool {
    let inside = path.strip_prefix(root()).unwrap_or(path);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem == "tests" || stem.ends_with("_tests") || inside.components().any(|part| part.as_os_str() == "tests")
}
