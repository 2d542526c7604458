//! The pacing rule of window-based controllers.
//!
//! The rates are those of the most deployed QUIC stack: twice the window a round trip in slow start (the window
//! doubles in that time), 1.25 of it after, so that pacing never is what holds the window back.

use posthaste_policy::sample::RttView;
use posthaste_policy::{Constant, Pacing};
use posthaste_units::{ByteCount, Duration, Rate};

/// Window a round trip in slow start, as a ratio.
const SLOW_START_GAIN: (u64, u64) = (2, 1);
/// Window a round trip otherwise.
const AVOIDANCE_GAIN: (u64, u64) = (5, 4);
/// A burst is what the rate yields in this time: a timer finer than that is not to be had in user space, and a
/// queue of one millisecond harms nobody.
const BURST_TIME: Duration = Duration::from_millis(1);
/// Least burst: a receiver acknowledges every second packet, so singles only cost wake-ups. (Ten already lose at
/// 400 kbit/s.)
const LEAST_BURST_DATAGRAMS: u64 = 2;
/// Least burst of a small window: what a loss sets free there is much of the window, and pairs of it leave a large part
/// of a round trip apart. Ten at once bring no more than four (docs/results/lab.md).
const SMALL_WINDOW_BURST_DATAGRAMS: u64 = 4;
/// Windows up to so many datagrams are small: RFC 9002 section 7.7 lets the initial window leave at once.
const SMALL_WINDOW_DATAGRAMS: u64 = 10;
/// Greatest burst: four segmentation-offload batches of 64.
const GREATEST_BURST_DATAGRAMS: u64 = 256;

/// The rule's constants, for people.
pub(super) fn constants() -> [Constant; 2] {
    [
        Constant::new(
            "pacing",
            "2 windows a round trip in slow start, 1.25 after; none before the first RTT",
        ),
        Constant::new(
            "burst",
            format!(
                "the initial window at first; then {} ms of the rate, {LEAST_BURST_DATAGRAMS} (in windows up to \
                 {SMALL_WINDOW_DATAGRAMS}: {SMALL_WINDOW_BURST_DATAGRAMS}) to {GREATEST_BURST_DATAGRAMS} datagrams",
                BURST_TIME.as_millis()
            ),
        ),
    ]
}

/// What the rule needs to know of the controller.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub(super) window: ByteCount,
    pub(super) max_datagram_size: ByteCount,
    pub(super) in_slow_start: bool,
    /// The burst that the start of the path allows, while it does.
    pub(super) first_burst: Option<ByteCount>,
}

/// The rate and burst for a controller that stands at `view`; `None` before the first RTT sample, when there is
/// no rate to speak of and only the initial window can leave.
pub(super) fn pace(view: View, rtt: &RttView) -> Option<Pacing> {
    if !rtt.is_measured {
        return None;
    }
    let (numerator, denominator) = if view.in_slow_start { SLOW_START_GAIN } else { AVOIDANCE_GAIN };
    let rate = Rate::from_transfer(view.window, rtt.smoothed).mul_ratio(numerator, denominator);
    // An absurd RTT must not round to a rate at which nothing ever leaves.
    let rate = rate.max(Rate::from_bytes_per_second(1));
    let is_small = view.window <= view.max_datagram_size * SMALL_WINDOW_DATAGRAMS;
    let least = if is_small { SMALL_WINDOW_BURST_DATAGRAMS } else { LEAST_BURST_DATAGRAMS };
    let steady = burst(rate, view.max_datagram_size).max(view.max_datagram_size * least);
    Some(Pacing { rate, burst: view.first_burst.map_or(steady, |first| first.max(steady)) })
}

/// The burst that goes with `rate`.
pub(super) fn burst(rate: Rate, datagram: ByteCount) -> ByteCount {
    rate.bytes_in(BURST_TIME).clamp(datagram * LEAST_BURST_DATAGRAMS, datagram * GREATEST_BURST_DATAGRAMS)
}
