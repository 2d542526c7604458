//! Upstreams: one or several, and how they are looked after.

use serde::{Deserialize, Serialize};

use super::Span;

/// `to`: the URL of an application, or those of several that serve the same.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a URL such as \"http://127.0.0.1:3000\", or a list of URLs")]
pub enum Targets {
    /// One.
    One(String),
    /// Several; each request goes to the one with the fewest open requests.
    Several(Vec<String>),
}

impl Targets {
    /// The URLs, in their order.
    pub fn urls(&self) -> &[String] {
        match self {
            Self::One(url) => std::slice::from_ref(url),
            Self::Several(urls) => urls,
        }
    }
}

impl From<String> for Targets {
    fn from(url: String) -> Self {
        Self::One(url)
    }
}

impl std::fmt::Display for Targets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.urls().join(", "))
    }
}

/// `health`: upstreams are asked for this path, and get no requests while they do not answer with a status below 400.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HealthConfig {
    /// Path and query.
    pub path: String,
    /// Time between two checks of an upstream. Default 5 s.
    #[serde(default = "every")]
    pub every: Span,
    /// Time for a check. Default 2 s.
    #[serde(default = "timeout")]
    pub timeout: Span,
    /// Checks in a row that fail before the upstream is left out. Default 3.
    #[serde(default = "failures")]
    pub failures: u32,
}

fn every() -> Span {
    Span::from_secs(5)
}

fn timeout() -> Span {
    Span::from_secs(2)
}

fn failures() -> u32 {
    3
}
