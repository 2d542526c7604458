//! Wording that is refused in README, docs and the help of the command line.

use std::path::Path;

use super::files;
use crate::Result;

/// A pattern in lower case, and what to write instead.
const PATTERNS: [(&str, &str); 19] = [
    ("inside of", "inside"),
    ("used wrongly", "usage error"),
    ("beside", "compared with, next to, alongside"),
    ("all the same", "still, anyway"),
    ("is none", "does not exist"),
    ("are none of", "are not"),
    ("there is none", "does not exist"),
    ("for good", "permanently"),
    ("of no account", "irrelevant"),
    ("so many times", "N times"),
    ("so many seconds", "this many seconds"),
    ("so many bytes", "this many bytes"),
    ("whoever", "name the actor"),
    ("who comes back", "returning clients"),
    ("could not be read here", "state the limitation, or leave it out"),
    ("have still to be made", "state the limitation, or leave it out"),
    ("were not had", "state the limitation, or leave it out"),
    ("has to have it", "required support"),
    ("of its own accord", "itself"),
];

/// Pages that are not rewritten yet, and how many matches each still has. These numbers only go down.
const NOT_REWRITTEN: [(&str, usize); 0] = [];

/// Help texts of the command line.
const HELP: &str = "crates/cli/src/args";

/// Each match beyond what its file may have, as a message.
pub(super) fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for path in files::with_extensions(root, &["md", "rs"])? {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if !is_checked(&name) {
            continue;
        }
        let found = matches(&std::fs::read_to_string(&path)?);
        let allowed = NOT_REWRITTEN.iter().find(|(file, _)| *file == name).map_or(0, |(_, count)| *count);
        if found.len() > allowed {
            faults.extend(
                found
                    .iter()
                    .map(|(line, pattern, better)| format!("{name}:{line}: \"{pattern}\": write {better}")),
            );
            faults.push(format!("{name}: {} matches, {allowed} are allowed", found.len()));
        } else if found.len() < allowed {
            faults.push(format!("{name}: {} matches: lower its number in check/prose.rs", found.len()));
        }
    }
    Ok(faults)
}

fn is_checked(name: &str) -> bool {
    let extension = Path::new(name).extension().unwrap_or_default();
    let is_page = extension == "md" && (name.starts_with("docs/") || !name.contains('/'));
    let is_help = extension == "rs" && name.starts_with(HELP);
    (is_page && name != "CHANGELOG.md") || is_help
}

/// Line number, pattern and advice of each match.
fn matches(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let lines = text.lines().map(str::to_lowercase).enumerate();
    lines
        .flat_map(|(index, line)| {
            let found = PATTERNS.iter().filter(move |(pattern, _)| has_words(&line, pattern));
            found.map(move |(pattern, better)| (index + 1, *pattern, *better))
        })
        .collect()
}

/// What stands before the name of an option, in help and in its definition.
const OPTION: [&str; 2] = ["--", "long = \""];

/// True if `line` has `words` between word boundaries, and not as the name of an option.
fn has_words(line: &str, words: &str) -> bool {
    line.match_indices(words).any(|(start, found)| {
        let is_letter = |character: char| character.is_alphanumeric() || character == '_';
        let before = &line[..start];
        !before.ends_with(is_letter)
            && !OPTION.iter().any(|option| before.ends_with(option))
            && !line[start + found.len()..].starts_with(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_and_parts_of_words_are_not() {
        let found = matches("Ours Beside theirs\nbesides, foreseeable, --beside\nIt is none.");
        let short: Vec<_> = found.iter().map(|(line, pattern, _)| (*line, *pattern)).collect();
        assert_eq!(short, [(1, "beside"), (3, "is none")]);
    }

    #[test]
    fn pages_and_help_are_checked_and_code_is_not() {
        for name in
            ["README.md", "docs/guide/serve.md", "crates/cli/src/args/lab.rs", "crates/cli/src/args.rs"]
        {
            assert!(is_checked(name), "{name}");
        }
        for name in ["CHANGELOG.md", "interop/README.md", "crates/wire/src/lib.rs"] {
            assert!(!is_checked(name), "{name}");
        }
    }
}
