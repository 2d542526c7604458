//! `cargo xtask api`: the public API of the libraries as text, compared with the files in `docs/api`.
//!
//! It is read from rustdoc's pages, since rustdoc's JSON needs a nightly toolchain. Another toolchain may print the same
//! API in other words: the message names the version that wrote the files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use clap::Args;

use crate::Result;
use crate::workspace::{cargo, root, run as run_command, target};

/// The packages whose API is kept.
const LIBRARIES: [&str; 5] = ["units", "policy", "transport", "endpoint", "http"];

/// Begins the first line of each file.
const WRITTEN_BY: &str = "# cargo xtask api --write, ";

/// Of `cargo xtask api`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Write the API to docs/api instead of comparing it
    #[arg(long)]
    write: bool,
}

/// Builds the documentation, then compares or writes; false if the API differs from the files.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let mut doc = cargo();
    doc.args(["doc", "--quiet", "--no-deps"]);
    for library in LIBRARIES {
        doc.args(["--package", &format!("posthaste-{library}")]);
    }
    run_command(&mut doc)?;
    if arguments.write {
        return write().map(|()| true);
    }
    compare()
}

/// Compares the documentation that has been built with the files.
pub(super) fn compare() -> Result<bool> {
    let mut changed = Vec::new();
    let mut written_by = String::new();
    for library in LIBRARIES {
        let file = root().join("docs/api").join(format!("{library}.txt"));
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        let (head, before) = before.split_once('\n').unwrap_or_default();
        head.trim_start_matches(WRITTEN_BY).clone_into(&mut written_by);
        let lines = changes(before, &of(library)?);
        changed.extend(lines.into_iter().map(|line| format!("posthaste-{library} {line}")));
    }
    for line in &changed {
        eprintln!("{line}");
    }
    if !changed.is_empty() {
        eprintln!(
            "The public API differs from docs/api. If that is intended, run `cargo xtask api --write` and describe the \
             change in CHANGELOG.md. (The files were written with {written_by}; this is {}.)",
            toolchain()?
        );
    }
    Ok(changed.is_empty())
}

fn write() -> Result<()> {
    let folder = root().join("docs/api");
    std::fs::create_dir_all(&folder)?;
    for library in LIBRARIES {
        let text = format!("{WRITTEN_BY}{}\n{}", toolchain()?, of(library)?);
        std::fs::write(folder.join(format!("{library}.txt")), text)?;
    }
    Ok(())
}

/// The version of rustdoc, without its date.
fn toolchain() -> Result<String> {
    let rustdoc = std::env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    let output = Command::new(rustdoc).arg("--version").current_dir(root()).output()?;
    let version = String::from_utf8(output.stdout)?;
    Ok(version.split(" (").next().unwrap_or_default().trim().to_owned())
}

/// Lines that have gone (`-`) and come (`+`).
fn changes(before: &str, now: &str) -> Vec<String> {
    let missing = |from: &str, other: &str, sign: char| {
        let lines: BTreeSet<&str> = other.lines().collect();
        let gone = from.lines().filter(|line| !lines.contains(line));
        gone.map(|line| format!("{sign} {line}")).collect::<Vec<_>>()
    };
    [missing(before, now, '-'), missing(now, before, '+')].concat()
}

/// The API of a library whose pages have been built: a line for each item, member and implemented trait.
fn of(library: &str) -> Result<String> {
    let folder = target().join("doc").join(format!("posthaste_{library}"));
    let mut all = String::new();
    for page in pages(&folder)? {
        let html = std::fs::read_to_string(folder.join(&page))?;
        let place = page.trim_end_matches(".html").replace('/', "::");
        for line in lines(&html) {
            writeln!(all, "{place}: {line}")?;
        }
    }
    Ok(all)
}

/// The pages of all items and of the modules that they are in. (Pages of items that have gone stay in the folder, so the
/// list is the one in `all.html`.)
fn pages(folder: &Path) -> Result<BTreeSet<String>> {
    let all = folder.join("all.html");
    let html = std::fs::read_to_string(&all).map_err(|error| format!("{}: {error}", all.display()))?;
    Ok(linked(&html))
}

/// The pages that a list of all items leads to.
fn linked(html: &str) -> BTreeSet<String> {
    let mut pages: BTreeSet<String> = ["index.html".to_owned()].into();
    for link in html.split("<li><a href=\"").skip(1) {
        // The list begins with links to its own sections.
        let Some((page, _)) = link.split_once('"').filter(|(page, _)| !page.starts_with('#')) else {
            continue;
        };
        pages.insert(page.to_owned());
        for (end, _) in page.match_indices('/') {
            pages.insert(format!("{}/index.html", &page[..end]));
        }
    }
    pages
}

/// What a page declares: the item itself, re-exports, inherent members, and traits that it implements by itself.
fn lines(html: &str) -> Vec<String> {
    // What every type implements is behind these marks.
    let end = ["id=\"synthetic-implementations\"", "id=\"blanket-implementations\"", "id=\"implementors\""]
        .iter()
        .filter_map(|mark| html.find(mark))
        .min()
        .unwrap_or(html.len());
    let html = html.get(..end).unwrap_or(html);
    let traits = html.find("id=\"trait-implementations\"").unwrap_or(html.len());
    let (own, implemented) = html.split_at(traits);
    let mut lines = Vec::new();
    for text in between(own, "<pre class=\"rust item-decl\"><code>", "</code></pre>") {
        lines.extend(
            text.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.trim().is_empty()),
        );
    }
    lines.extend(
        between(own, "<dt id=\"reexport.", "</dt>")
            .into_iter()
            .filter_map(|text| text.split_once("pub use").map(|(_, rest)| format!("pub use{rest}"))),
    );
    lines.extend(between(own, "<h4 class=\"code-header\">", "</h4>").into_iter().map(|text| one_line(&text)));
    lines.extend(
        between(implemented, "<h3 class=\"code-header\">", "</h3>").into_iter().map(|text| one_line(&text)),
    );
    lines
}

/// The texts between two marks, without tags.
fn between(html: &str, begin: &str, end: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some((_, behind)) = rest.split_once(begin) {
        let Some((inside, behind)) = behind.split_once(end) else { break };
        // Titles of what a page folds are no part of the item.
        let unfolded: String = inside
            .split("<summary")
            .map(|part| part.split_once("</summary>").map_or(part, |(_, rest)| rest))
            .collect();
        found.push(plain(&unfolded));
        rest = behind;
    }
    found
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text without tags and entities.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for letter in html.chars() {
        match letter {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            _ if is_tag => {}
            other => text.push(other),
        }
    }
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&#39;", "'"), ("&quot;", "\""), ("&nbsp;", " "), ("&amp;", "&")];
    entities.iter().fold(text, |text, (entity, letter)| text.replace(entity, letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<pre class=\"rust item-decl\"><code>pub struct A&lt;T&gt; {\n    pub b: <a href=\"x\">B</a>,\n}</code></pre>\
        <h4 class=\"code-header\">pub fn <a>c</a>(&amp;self)\n -&gt; u8</h4>\
        <h2 id=\"trait-implementations\"></h2><h3 class=\"code-header\">impl Clone for A</h3>\
        <h4 class=\"code-header\">fn clone(&amp;self)</h4>\
        <h2 id=\"synthetic-implementations\"></h2><h3 class=\"code-header\">impl Send for A</h3>";

    #[test]
    fn a_page_becomes_its_declarations() {
        let expected =
            ["pub struct A<T> {", "    pub b: B,", "}", "pub fn c(&self) -> u8", "impl Clone for A"];
        assert_eq!(lines(PAGE), expected);
    }

    #[test]
    fn pages_are_those_of_items_and_their_modules() {
        let html = "<li><a href=\"#structs\">Structs</a></li><li><a href=\"a/b/struct.C.html\">C</a></li>";
        let pages: Vec<String> = linked(html).into_iter().collect();
        assert_eq!(pages, ["a/b/index.html", "a/b/struct.C.html", "a/index.html", "index.html"]);
    }

    #[test]
    fn changes_are_lines_that_went_or_came() {
        assert_eq!(changes("a\nb\n", "b\nc\n"), ["- a", "+ c"]);
        assert!(changes("a\n", "a\n").is_empty());
    }
}
