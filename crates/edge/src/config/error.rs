//! What is wrong with a configuration, where, and what would be right.

use std::fmt;
use std::ops::Range;
use std::path::Path;

/// Edits between a key and the one that was probably meant, at most.
const NEAR: usize = 3;

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    message: String,
    hint: Option<String>,
}

impl ConfigError {
    pub(crate) fn new(message: String) -> Self {
        Self { message, hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn unreadable(file: &Path, error: &std::io::Error) -> Self {
        Self::new(format!("cannot read {}: {error}", file.display()))
            .hint("`posthaste edge ... --print-config` writes such a file")
    }

    /// At a place of the file.
    pub(super) fn at(file: &Path, text: &str, span: Range<usize>, message: &str) -> Self {
        Self::new(format!("{}: {message}", place(file, text, span)))
    }

    /// What the parser says.
    pub(super) fn of_toml(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        let message = error.message().trim();
        let at = error.span().unwrap_or(0..0);
        let found = Self::at(file, text, at, &message.replace('\n', ", "));
        match meant(message) {
            Some(name) => found.hint(format!("did you mean `{name}`?")),
            None => found,
        }
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do.
    pub fn help(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "\n  {hint}"))
    }
}

impl std::error::Error for ConfigError {}

/// A place of the file, as editors and compilers name it.
pub(super) fn place(file: &Path, text: &str, span: Range<usize>) -> String {
    let (line, column) = position(text, span.start);
    format!("{}:{line}:{column}", file.display())
}

/// Line and column, both from 1, of a byte of `text`.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// The name in "unknown field `a`, expected one of `b`, `c`" that is nearest to the first.
fn meant(message: &str) -> Option<&str> {
    let mut names = message.strip_prefix("unknown field")?.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    let near = names.map(|name| (distance(unknown, name), name)).min()?;
    (near.0 <= NEAR.min(unknown.len() / 2 + 1)).then_some(near.1)
}

/// Levenshtein's distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
