//! Outages: for a time nothing of what is sent arrives, as between two cells or satellites.
//!
//! A queue that others keep full takes a packet whenever one leaves it, so that some of whatever is sent arrives. Where
//! all of a long stretch is lost, the path was away, and says nothing of what it can carry.

use posthaste_policy::Constant;
use posthaste_policy::sample::PacketSample;
use posthaste_units::{Duration, Time};

/// Packets in a row that are an outage, and what the link would have delivered meanwhile, at least: a burst can meet a
/// full queue as a whole.
const LEAST_PACKETS: u64 = 32;
const LEAST_MISSED: f64 = 64.0;
/// The time in which they left, at least.
const LEAST_TIME: Duration = Duration::from_millis(16);

/// The constants, for people.
pub(super) fn constants() -> [Constant; 1] {
    [Constant::new(
        "outage",
        format!(
            "more than {LEAST_PACKETS} packets in a row that are lost, sent in more than {LEAST_TIME} and the time of \
             {LEAST_MISSED} packets: no sign of others"
        ),
    )]
}

/// True if nothing arrives of so many packets in a row that left in `time`, on a link of `rate` packets a second.
pub(super) fn is_outage(packets: u64, time: Duration, rate: f64) -> bool {
    packets > LEAST_PACKETS && time > LEAST_TIME && time.as_secs_f64() * rate > LEAST_MISSED
}

/// Packets in a row that have been lost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    packets: u64,
    sent_from: Time,
}

impl Run {
    /// A packet is lost on a link of `rate` packets a second; it `continues` the run if the one before it was lost. True
    /// if the run is an outage.
    pub(super) fn on_lost(&mut self, packet: &PacketSample, continues: bool, rate: f64) -> bool {
        if !continues {
            *self = Self { packets: 0, sent_from: packet.sent_at };
        }
        self.packets += 1;
        is_outage(self.packets, packet.sent_at.since(self.sent_from), rate)
    }
}
