//! Policies of the seam `silence`: what a silent peer means.

use posthaste_policy::Constant;
use posthaste_units::Duration;

pub mod collapse;
pub mod freeze;

/// Doubling stops here in the first two minutes of a silence, so that an outage ends for the transfer when it ends for the
/// path. RFC 9002 has no such bound; what it protects, a network that has broken down, gets one small probe a second.
const CEILING: Duration = Duration::from_secs(1);
/// A path on which the probe timeout itself is longer gets at least this many of them.
const CEILING_TIMEOUTS: u64 = 2;
/// Probe timeouts in a row from which on doubling goes on: whoever is away for this long may be away for ever.
const CEILING_ENDS: u32 = 120;
/// And stops here: RFC 8961 section 4, rule 3c lets a back-off be bounded at 60 s or more.
const GREATEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Doublings that a u64 shift can hold; with any timeout above a nanosecond the bound above comes first.
const GREATEST_DOUBLINGS: u32 = 40;

/// The wait before the next probe: twice the last up to a second, and after two minutes up to a minute.
fn back_off(base: Duration, count: u32) -> Duration {
    // spec: rfc9002 6.2.1 back-off-doubles
    let ceiling = CEILING.max(base * CEILING_TIMEOUTS);
    let doublings = |count: u32| 1 << count.min(GREATEST_DOUBLINGS);
    match count.checked_sub(CEILING_ENDS) {
        None => (base * doublings(count)).min(ceiling),
        // A base above the bound is the path's own: it is never cut.
        Some(further) => (ceiling * doublings(further)).min(GREATEST_TIMEOUT.max(base)),
    }
}

fn back_off_constant() -> Constant {
    let (first, last) = (CEILING.as_secs_f64(), GREATEST_TIMEOUT.as_secs_f64());
    Constant::new("back-off", format!("x2 each, at most {first} s, after {CEILING_ENDS} probes {last} s"))
}
