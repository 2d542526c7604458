//! The outcome for programs. Times are in seconds.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::record::Record;
use super::outcome::{Outcome, Row, failures, other_hosts};

/// All that `--json` prints.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    version: &'static str,
    url: &'a str,
    /// The version of HTTP as it is, as ALPN calls it.
    as_it_is: &'static str,
    profile: &'a str,
    browsers: Vec<&'a str>,
    was_interrupted: bool,
    /// Attempts whose emulation was worthless.
    voided: u64,
    rows: &'a [Row<'a>],
    remarks: &'a [String],
    /// With the greatest number of requests in a visit.
    other_hosts: BTreeMap<String, usize>,
    failed_requests: BTreeSet<&'a str>,
    /// Every run with every request.
    runs: &'a [Record],
}

impl<'a> Report<'a> {
    pub(super) fn new(outcome: &'a Outcome<'a>) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            url: &outcome.site.url,
            as_it_is: outcome.site.protocol.alpn(),
            profile: outcome.profile,
            browsers: outcome.tally.browsers(),
            was_interrupted: outcome.tally.was_interrupted,
            voided: outcome.tally.voided(),
            rows: &outcome.rows,
            remarks: &outcome.remarks,
            other_hosts: other_hosts(outcome.tally, outcome.site),
            failed_requests: failures(outcome.tally),
            runs: &outcome.tally.records,
        }
    }
}
