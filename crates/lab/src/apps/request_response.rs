//! One small exchange after another.

use posthaste_units::{Duration, Time};

use super::Exchange;
use super::sequence::{Next, Plan, Sequence};

/// Connects at a given time, then asks for an object again and again, with pauses in between.
pub type RequestResponse = Sequence<RequestResponsePlan>;

/// The plan of [`RequestResponse`].
#[derive(Debug)]
pub struct RequestResponsePlan {
    bytes: u64,
    left: u32,
    think: Duration,
}

impl RequestResponse {
    /// `count` exchanges of `bytes` each by the client at `host`, begun at `start_at`; after each but the last it
    /// pauses for `think`.
    pub fn new(host: usize, bytes: u64, count: u32, think: Duration, start_at: Time) -> Self {
        Self::with_plan(host, RequestResponsePlan::new(bytes, count, think), start_at)
    }
}

impl RequestResponsePlan {
    /// `count` exchanges of `bytes` each, with pauses of `think` in between.
    pub fn new(bytes: u64, count: u32, think: Duration) -> Self {
        Self { bytes, left: count, think }
    }
}

impl Plan for RequestResponsePlan {
    fn next(&mut self, now: Time, last: Option<&Exchange>) -> Option<Next> {
        self.left = self.left.checked_sub(1)?;
        let pause = if last.is_some() { self.think } else { Duration::ZERO };
        Some(Next { at: now + pause, bytes: self.bytes })
    }
}
