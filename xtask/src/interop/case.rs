//! What every pair has to do.

use std::time::Duration;

use posthaste_path::{PathConfig, Reordering};

use crate::Result;

/// A case.
#[derive(Debug)]
pub(crate) struct Case {
    /// On the command line and in tables.
    pub(crate) name: &'static str,
    /// The file that is fetched; `None` fetches the small files.
    pub(crate) file: Option<&'static str>,
    /// Requests in flight at once.
    pub(crate) parallel: usize,
    /// Through the impairing relay.
    pub(crate) lossy: bool,
    /// Bound for the client.
    pub(crate) timeout: Duration,
}

/// All of them.
pub(crate) const CASES: [Case; 4] = [
    Case::direct("handshake", Some("small.bin"), 1, 20),
    Case::direct("transfer", Some("ten-megabytes.bin"), 1, 60),
    Case::direct("parallel", None, 100, 40),
    Case { lossy: true, ..Case::direct("lossy", Some("one-megabyte.bin"), 1, 90) },
];

impl Case {
    const fn direct(name: &'static str, file: Option<&'static str>, parallel: usize, seconds: u64) -> Self {
        Self { name, file, parallel, lossy: false, timeout: Duration::from_secs(seconds) }
    }
}

/// The case called `name`.
pub(crate) fn find(name: &str) -> Result<&'static Case> {
    CASES.iter().find(|case| case.name == name).ok_or_else(|| {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        format!("no case {name:?}; there are {}", names.join(", ")).into()
    })
}

/// Each direction of the lossy case: 20 ms there and back, 5 % loss, 5 % overtaken.
pub(crate) fn lossy_path() -> PathConfig {
    PathConfig {
        delay: posthaste_units::Duration::from_millis(10),
        loss: 0.05,
        reordering: Reordering {
            probability: 0.05,
            extra_delay: posthaste_units::Duration::from_millis(5),
            ..Reordering::default()
        },
        ..PathConfig::default()
    }
}
