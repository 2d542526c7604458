//! One object, as fast as it comes.

use posthaste_units::Time;

use super::Exchange;
use super::sequence::{Next, Plan, Sequence};
use super::workload::ENDLESS;

/// Connects at a given time and downloads one object.
pub type Bulk = Sequence<BulkPlan>;

/// The plan of [`Bulk`]: one object.
#[derive(Debug)]
pub struct BulkPlan {
    bytes: u64,
}

impl Bulk {
    /// A download of `bytes` by the client at `host`, begun at `start_at`.
    pub fn new(host: usize, bytes: u64, start_at: Time) -> Self {
        Self::with_plan(host, BulkPlan::new(bytes), start_at)
    }

    /// A download that lasts until the run ends.
    pub fn endless(host: usize, start_at: Time) -> Self {
        Self::new(host, ENDLESS, start_at)
    }
}

impl BulkPlan {
    /// An object of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self { bytes }
    }
}

impl Plan for BulkPlan {
    fn next(&mut self, now: Time, last: Option<&Exchange>) -> Option<Next> {
        last.is_none().then_some(Next { at: now, bytes: self.bytes })
    }
}
