//! Limits on the length of files. Clippy's `too_many_lines` limits functions (`clippy.toml`).

use std::path::Path;

use super::files;
use crate::Result;

/// Lines that a source file may have.
const FILE_LINES: usize = 600;
/// Lines that a test file may have.
const TEST_FILE_LINES: usize = 1_000;

/// Each file that is too long, as a message.
pub(super) fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for path in files::with_extensions(root, &["rs", "py", "go"])? {
        let lines = std::fs::read_to_string(&path)?.lines().count();
        let limit = if files::is_test(root, &path) { TEST_FILE_LINES } else { FILE_LINES };
        if lines >= limit {
            let name = path.strip_prefix(root).unwrap_or(&path).display();
            faults.push(format!("{name}: {lines} lines, fewer than {limit} are allowed"));
        }
    }
    Ok(faults)
}
