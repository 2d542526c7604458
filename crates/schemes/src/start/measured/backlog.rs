//! The queue that a path as slow as its handshake looked would have in front of each packet: what comes without it has
//! come over a faster one.
//!
//! A client that computes for some milliseconds between its acknowledgements makes any path look slow, and packets that
//! are then paced apart never tell better by how far apart they arrive. But they tell by their round trips.

use posthaste_policy::sample::{AckSample, SentSample};
use posthaste_units::{ByteCount, Duration, Rate, Time};

use super::train::{LEAST_SPREAD, Shown};

/// How much more of a queue a packet must have been due to meet than the first: less is jitter.
const LEAST_QUEUE: Duration = Duration::from_millis(25);
/// Most packets that are looked at.
const MOST_PACKETS: usize = 64;

/// What would wait at a bottleneck of the supposed rate.
#[derive(Debug, Clone, Default)]
pub(super) struct Backlog {
    waiting: ByteCount,
    at: Time,
    /// The number of each packet that has left, and what waits once it is there, itself included.
    packets: Vec<(u64, ByteCount)>,
    acked: usize,
    /// What waited with the packet that was acknowledged first, and its round trip.
    first: Option<(ByteCount, Duration)>,
}

impl Backlog {
    /// A packet leaves, the path's rate being `rate` as the handshake looked.
    pub(super) fn on_sent(&mut self, sent: &SentSample, rate: Rate) {
        if self.packets.len() < MOST_PACKETS {
            let served = rate.bytes_in(sent.now.since(self.at));
            self.waiting = self.waiting - served + sent.bytes;
            self.at = sent.now;
            self.packets.push((sent.number, self.waiting));
        }
    }

    /// The least rate at which the newest packet of `ack` can have come, if on a path of this `rate` a queue was due. Where
    /// a packet is missing, it may have been dropped, and nothing has waited for it.
    pub(super) fn on_ack(&mut self, ack: &AckSample<'_>, rate: Rate) -> Option<Shown> {
        let number_of = |number: u64| self.packets.iter().position(|&(known, _)| known == number);
        self.acked += ack.packets.iter().filter(|packet| number_of(packet.number).is_some()).count();
        let newest = ack.packets.last()?;
        let index = number_of(newest.number)?;
        let (_, waiting) = *self.packets.get(index)?;
        // Not the estimator's sample, which leaves the receiver's delay in where the handshake took longer (RFC 9002 section
        // 5.3).
        let rtt = ack.now.since(newest.sent_at).saturating_sub(ack.ack_delay);
        let (waited, least) = *self.first.get_or_insert((waiting, rtt));
        let more = waiting - waited;
        let met = rtt.saturating_sub(least).max(LEAST_SPREAD);
        let is_due = rate.time_for(more) >= LEAST_QUEUE && self.acked == index + 1;
        is_due.then(|| Shown { rate: Rate::from_transfer(more, met), is_least: true })
    }
}
