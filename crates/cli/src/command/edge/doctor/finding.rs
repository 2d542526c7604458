//! The outcome of one check.

use serde::Serialize;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    /// Visitors are served, but not as well as they could be.
    Warning,
    /// Visitors are not served, or not over HTTP/3.
    Failed,
    /// Not checked.
    Skipped,
}

impl State {
    /// For a terminal, all of one width.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Ok => "\x1b[32mok\x1b[0m     ",
            Self::Warning => "\x1b[33mwarning\x1b[0m",
            Self::Failed => "\x1b[1;31mFAILED\x1b[0m ",
            Self::Skipped => "skipped",
        }
    }
}

/// One check and what to do about it.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) state: State,
    pub(super) detail: String,
    /// What to do next; null if nothing need be done.
    pub(super) next: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, state: State::Ok, detail: detail.into(), next: None }
    }

    pub(super) fn skipped(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, state: State::Skipped, detail: detail.into(), next: None }
    }

    pub(super) fn warning(check: &'static str, detail: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, state: State::Warning, detail: detail.into(), next: Some(next.into()) }
    }

    pub(super) fn failed(check: &'static str, detail: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, state: State::Failed, detail: detail.into(), next: Some(next.into()) }
    }
}
