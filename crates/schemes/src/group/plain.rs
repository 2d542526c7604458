//! Group `plain`: each connection is on its own.
//!
//! - Claims: what holds for one connection holds for each of several.
//! - Source: RFC 9002: a controller for each path of each connection.
//! - Use when: clients open one connection, as they do over HTTP/3.
//! - Breaks when: a client opens several: each takes a flow's share, and finds the capacity for itself.
//!
//! The policy itself is the seam's own: profiles have it that name no other.

use posthaste_policy::{CongestionFactory, Description, Group, GroupFactory};
use serde::Deserialize;

use crate::Entry;

pub use posthaste_policy::group::{PLAIN as TEXT, Plain};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::group::<Parameters>(TEXT);

/// Parameters of [`Plain`]: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {}

impl GroupFactory for Parameters {
    fn build(&self, congestion: &dyn CongestionFactory) -> Option<Box<dyn Group>> {
        Plain.build(congestion)
    }

    fn describe(&self) -> Description {
        Plain.describe()
    }
}
