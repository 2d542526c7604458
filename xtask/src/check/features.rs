//! The table of the edge's features: a test's name that no test has any more would pass, and show nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::Result;

/// The page.
const PAGE: &str = "docs/guide/edge-features.md";

/// Each command `cargo test` of the page by which no test runs, as a message.
pub(super) fn faults(root: &Path) -> Result<Vec<String>> {
    let page = std::fs::read_to_string(root.join(PAGE))?;
    let mut tests = HashMap::new();
    let mut faults = Vec::new();
    for command in page.split('`').filter(|text| text.starts_with("cargo test -p ")) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let package = root.join("crates").join(folder(words[3]));
        if !tests.contains_key(&package) {
            tests.insert(package.clone(), names(&package)?);
        }
        let missing = missing(&words[4..], &tests[&package]);
        faults.extend(missing.into_iter().map(|word| format!("{PAGE}: `{command}`: no test has {word:?}")));
    }
    Ok(faults)
}

/// The folder of a package.
fn folder(package: &str) -> &str {
    match package {
        "posthaste" => "cli",
        other => other.strip_prefix("posthaste-").unwrap_or(other),
    }
}

/// Names of tests that run by none of the tests `all`: the words behind `-p PACKAGE`.
fn missing<'a>(words: &[&'a str], all: &[String]) -> Vec<&'a str> {
    let mut all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut missing = Vec::new();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "--test" => {
                let program = words.next().unwrap_or_default();
                let inside = format!("tests::{program}::");
                // `all` has the others as modules.
                all.retain(|name| {
                    name.starts_with(&inside) || program == "all" && name.starts_with("tests::")
                });
                if all.is_empty() {
                    missing.push(program);
                }
            }
            "--bin" => drop(words.next()),
            "--lib" | "--" | "--ignored" => {}
            filter if all.iter().any(|name| name.contains(filter)) => {}
            filter => missing.push(filter),
        }
    }
    missing
}

/// The tests of a package: the path of the file and the function, joined as in Rust.
fn names(package: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for place in ["src", "tests"] {
        let folder = package.join(place);
        if folder.is_dir() {
            for path in super::files::with_extensions(&folder, &["rs"])? {
                let file: PathBuf = path.strip_prefix(package)?.with_extension("");
                let parts: Vec<_> =
                    file.components().map(|part| part.as_os_str().to_string_lossy()).collect();
                let module = parts.join("::");
                let text = std::fs::read_to_string(&path)?;
                names.extend(functions(&text).map(|function| format!("{module}::{function}")));
            }
        }
    }
    Ok(names)
}

/// Functions with an attribute that makes them tests.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
        std::mem::take(&mut is_test).then(|| name.split('(').next().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_are_found_and_others_are_not() {
        let text =
            "fn a() {}\n#[test]\n#[ignore]\nfn b() {}\n    #[tokio::test]\n    async fn c_d() {}\nfn e() {}";
        assert_eq!(functions(text).collect::<Vec<_>>(), ["b", "c_d"]);
        let all = ["src::config::tests::b".to_owned(), "tests::edge::c_d".to_owned()];
        let missing = |words: &'static str| missing(&words.split(' ').collect::<Vec<_>>(), &all);
        assert_eq!(missing("--test edge"), Vec::<&str>::new());
        assert_eq!(missing("--test edge c_d"), Vec::<&str>::new());
        assert_eq!(missing("--test all edge"), Vec::<&str>::new());
        assert_eq!(missing("--bin posthaste config"), Vec::<&str>::new());
        assert_eq!(missing("-- config c_ d_d"), ["d_d"]);
        assert_eq!(missing("--test edge config"), ["config"]);
        assert_eq!(missing("--test other"), ["other"]);
    }
}
