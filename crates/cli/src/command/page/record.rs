//! What a run has shown, as it is kept in a journal.

use serde::{Deserialize, Serialize};

/// What the near end of a run has seen. Times are in seconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Seen {
    /// The browser with its version.
    pub(super) browser: String,
    /// The cold visit, and the warm one if it was wanted.
    pub(super) visits: Vec<Visit>,
    /// What the downloads beside it got together, bits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) background_rate: Option<f64>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
}

/// One load of the page. Figures of the page count from the start of the navigation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Visit {
    /// To the end of the load event: the page load time.
    pub(super) load: f64,
    /// First contentful paint.
    pub(super) first_paint: Option<f64>,
    /// Largest contentful paint.
    pub(super) largest_paint: Option<f64>,
    /// First byte of the document.
    pub(super) response: Option<f64>,
    /// From the first request to the last byte of the last object.
    pub(super) complete: f64,
    /// Bytes of all responses, heads included.
    pub(super) bytes: u64,
    /// In the order of the requests.
    pub(super) objects: Vec<Object>,
}

/// One request. Times count from the request for the document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Object {
    pub(super) url: String,
    /// As the browser names it: `h3`, `h2`, `http/1.1`.
    pub(super) protocol: String,
    pub(super) status: u16,
    /// Equal for requests that shared one.
    pub(super) connection: u64,
    pub(super) is_reused: bool,
    pub(super) is_cached: bool,
    /// When the page wanted it.
    pub(super) start: f64,
    /// When the request went out.
    pub(super) sent: Option<f64>,
    /// Start and end of the handshake that it waited for.
    pub(super) connecting: Option<(f64, f64)>,
    /// When the head of the response was there.
    pub(super) head: Option<f64>,
    /// When the last byte was there.
    pub(super) end: Option<f64>,
    pub(super) bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
}

/// Which run it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) page: String,
    pub(super) path: String,
    pub(super) contestant: String,
    /// From 1.
    pub(super) round: u64,
}

/// What a run was made with, as digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Build {
    /// Of the `posthaste` that ran.
    pub(super) program: String,
    /// Of the path, traces included.
    pub(super) path: String,
    /// Of the text of the server's profile, if that is a file, or of its command.
    pub(super) server: String,
}

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    #[serde(flatten)]
    pub(super) key: Key,
    pub(super) seed: u64,
    /// Downloads beside it.
    #[serde(default)]
    pub(super) background: u16,
    /// Older journals do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) build: Option<Build>,
    #[serde(flatten)]
    pub(super) seen: Seen,
    /// Attempts before this one whose emulation was worthless.
    pub(super) voided: u64,
    /// Why this one's is, too; empty if it is not.
    pub(super) faults: Vec<String>,
    /// Greater 99th percentile of lateness of both directions, in seconds; none without an emulated path.
    pub(super) lateness: Option<f64>,
    /// What the medium and the queue have dropped towards the browser.
    pub(super) dropped: Option<u64>,
    /// Wall-clock seconds of the last attempt.
    pub(super) took: f64,
}

/// First or second visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Temperature {
    /// A new profile: nothing is known of the server.
    Cold,
    /// Over new connections, with what the browser kept of TLS and QUIC sessions; nothing from its caches of files.
    Warm,
}

impl Temperature {
    pub(super) const ALL: [Self; 2] = [Self::Cold, Self::Warm];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }
}

impl Record {
    /// True if its figures count, or its failure does.
    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn visit(&self, temperature: Temperature) -> Option<&Visit> {
        self.seen.visits.get(temperature as usize)
    }
}
