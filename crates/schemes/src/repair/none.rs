//! Repair `none`: nothing is sent again before it is known to be lost.
//!
//! - Claims: no byte is spent on what may have arrived.
//! - Source: RFC 9002 section 6: loss detection and probe timeouts alone.
//! - Use when: every byte counts more than time.
//! - Breaks when: paths lose packets at random: each lost tail costs a round trip, each lost handshake a second.
//!
//! The policy itself is the seam's own: profiles have it that name no other.

use posthaste_policy::{Description, Repair, RepairFactory};
use serde::Deserialize;

use crate::Entry;

pub use posthaste_policy::repair::{NONE as TEXT, Nothing};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::repair::<Parameters>(TEXT);

/// Parameters of [`Nothing`]: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {}

impl RepairFactory for Parameters {
    fn build(&self) -> Box<dyn Repair> {
        Nothing.build()
    }

    fn describe(&self) -> Description {
        Nothing.describe()
    }
}
