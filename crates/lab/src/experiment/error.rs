//! Why there is no such experiment.

use std::ops::Range;

use super::span::{key_at, line_of};

/// Why an experiment cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExperimentError {
    /// No built-in experiment has the name.
    #[error("there is no experiment `{name}`; there are {}; a file's name ends in .toml", .valid.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that there are.
        valid: Vec<&'static str>,
    },
    /// The file cannot be read.
    #[error("cannot read the experiment {name}: {reason}")]
    Unreadable {
        /// The file.
        name: String,
        /// Why.
        reason: String,
    },
    /// The text is no experiment.
    #[error("experiment {name}{}: {message}", .line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Invalid {
        /// Its name, or its file.
        name: String,
        /// The line, counted from 1, where the fault is at one place.
        line: Option<usize>,
        /// The key at that place, with those above it: `run.flows.0.stack`.
        key: Option<String>,
        /// What is wrong, and what would be right.
        message: String,
    },
}

/// A fault at a place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Option<Range<usize>>,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span: Some(span), message: message.into() }
    }

    /// Its line in `text`, counted from 1, if it is at one place.
    pub(crate) fn line(&self, text: &str) -> Option<usize> {
        self.span.as_ref().map(|span| line_of(text, span.start))
    }

    /// The error of the experiment `name`, whose text is `text`.
    pub(super) fn of(self, name: &str, text: &str) -> ExperimentError {
        ExperimentError::Invalid {
            name: name.to_owned(),
            line: self.line(text),
            key: self.span.and_then(|span| key_at(text, span.start)),
            message: self.message.trim().to_owned(),
        }
    }
}
