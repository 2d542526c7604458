//! Citations in Rust source: `// spec: rfc9000 4.1 excess-closes, 4.1 sender-keeps-limits, rfc9001 6.1 old-keys-kept`.
//! The RFC may be left out where it is that of the citation before.

use std::path::{Path, PathBuf};

use super::requirement::is_section;
use crate::Result;

/// What opens a comment that cites.
const MARK: &str = "// spec:";

/// What a citation claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The code beside it does what is demanded.
    Implemented,
    /// The test beside it fails if that is not done.
    Tested,
}

/// One citation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Citation {
    /// `rfc9000`.
    pub(super) rfc: String,
    /// `4.1 excess-closes`.
    pub(super) id: String,
    /// `crates/wire/src/lib.rs:12`.
    pub(super) place: String,
    pub(super) kind: Kind,
}

/// All citations in the Rust files of `folders` below `root`, in the order of paths and lines.
///
/// # Errors
/// What cannot be read, and comments that begin like a citation and are none.
pub(super) fn find(root: &Path, folders: &[&str]) -> Result<Vec<Citation>> {
    let mut files = Vec::new();
    for folder in folders {
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut citations = Vec::new();
    let mut faults = Vec::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap_or(&file);
        match read(path, &std::fs::read_to_string(&file)?) {
            Ok(found) => citations.extend(found),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(citations) } else { Err(faults.join("\n").into()) }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The citations of one file. What follows `mod tests {` is tests; a file of tests is so as a whole.
///
/// # Errors
/// The first comment that begins like a citation and is none.
pub(super) fn read(path: &Path, text: &str) -> std::result::Result<Vec<Citation>, String> {
    let mut kind = if is_test_file(path) { Kind::Tested } else { Kind::Implemented };
    let mut citations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("mod tests {") {
            kind = Kind::Tested;
        }
        let Some((before, cited)) = line.split_once(MARK) else { continue };
        if before.contains('"') {
            continue; // A string that shows the form.
        }
        let place = format!("{}:{}", path.display(), index + 1);
        let mut rfc = None;
        for item in cited.split(',') {
            let words: Vec<&str> = item.split_whitespace().collect();
            let (section, slug) = match (words.as_slice(), rfc) {
                ([name, section, slug], _) if name.starts_with("rfc") => {
                    rfc = Some(*name);
                    (*section, *slug)
                }
                ([section, slug], Some(_)) => (*section, *slug),
                _ => {
                    return Err(format!(
                        "{place}: `{}`: a citation reads `rfc9000 4.1 some-slug`",
                        item.trim()
                    ));
                }
            };
            if !is_section(section) {
                return Err(format!("{place}: `{section}` is no section number"));
            }
            let rfc = rfc.unwrap_or_default().to_owned();
            citations.push(Citation { rfc, id: format!("{section} {slug}"), place: place.clone(), kind });
        }
    }
    Ok(citations)
}

fn is_test_file(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem == "tests" || stem.ends_with("_tests") || path.components().any(|part| part.as_os_str() == "tests")
}
