//! The repository's own files.

use std::path::{Path, PathBuf};

use crate::Result;

/// Folders whose files are not checked.
const SKIPPED: [&str; 6] = ["target", ".git", ".venv", "artifacts", "corpus", "out"];

/// Files below `folder` that have one of `extensions`, in order.
pub(super) fn with_extensions(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            // What it leads to is found where it is.
            if entry.file_type()?.is_symlink() {
                continue;
            }
            let path = entry.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !SKIPPED.contains(&name.as_str()) {
                folders.push(path);
            } else if extensions.contains(&extension.as_str()) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// True for a file of tests: `tests.rs`, `*_tests.rs`, or below a folder `tests`.
pub(super) fn is_test(root: &Path, path: &Path) -> bool {
    let inside = path.strip_prefix(root).unwrap_or(path);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem == "tests" || stem.ends_with("_tests") || inside.components().any(|part| part.as_os_str() == "tests")
}
