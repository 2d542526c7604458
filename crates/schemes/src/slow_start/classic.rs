//! Slow start `classic`: the window grows by what is acknowledged until a loss or a mark ends it.
//!
//! - Claims: the capacity is found in log2(BDP / initial window) round trips, whatever the delay does.
//! - Source: RFC 9002 section 7.3.1, RFC 5681 section 3.1.
//! - Use when: delay says nothing (a wildly jittering radio), or as the baseline.
//! - Breaks when: the buffer is deep: the window overshoots to twice the capacity and loses up to half a window.
//!
//! The policy itself is the seam's own: profiles have it that name no other.

use posthaste_policy::{Description, SlowStart, SlowStartFactory};
use posthaste_units::ByteCount;
use serde::Deserialize;

use crate::Entry;

pub use posthaste_policy::slow_start::{CLASSIC as TEXT, Classic};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::slow_start::<Parameters>(TEXT);

/// Parameters of [`Classic`]: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {}

impl SlowStartFactory for Parameters {
    fn build(&self, max_datagram_size: ByteCount) -> Box<dyn SlowStart> {
        Classic.build(max_datagram_size)
    }

    fn describe(&self) -> Description {
        Classic.describe()
    }
}
