//! Policies of the seam `silence`: what a silent peer means.

use posthaste_policy::Constant;
use posthaste_units::Duration;

pub mod collapse;
pub mod freeze;

/// Doubling stops here: RFC 8961 section 4, rule 3c lets a back-off be bounded at 60 s or more.
const GREATEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Doublings that a u64 shift can hold; with any timeout above a nanosecond the bound above comes first.
const GREATEST_DOUBLINGS: u32 = 40;

/// The wait before the next probe: twice the last, up to a minute.
fn back_off(base: Duration, count: u32) -> Duration {
    // spec: rfc9002 6.2.1 back-off-doubles
    // A base above the bound is the path's own: it is never cut.
    (base * (1 << count.min(GREATEST_DOUBLINGS))).min(GREATEST_TIMEOUT.max(base))
}

fn back_off_constant() -> Constant {
    Constant::new("back-off", format!("x2 each, at most {} s", GREATEST_TIMEOUT.as_secs_f64()))
}
