//! The queue in front of a bottleneck.

mod codel;
mod drop_tail;

use std::collections::VecDeque;

use posthaste_units::{ByteCount, Duration, Time};

use crate::config::ConfigError;
use crate::packet::Packet;

pub use codel::CoDel;
use codel::Control;
pub use drop_tail::DropTail;

/// What a queue does about senders that fill it. Whatever it is, a packet that would make the waiting bytes exceed
/// the queue's size is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// Nothing else, except for marking.
    DropTail(DropTail),
    /// Controlled delay (RFC 8289).
    CoDel(CoDel),
}

impl Default for Discipline {
    fn default() -> Self {
        Self::DropTail(DropTail::default())
    }
}

impl Discipline {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::DropTail(_) => Ok(()),
            Self::CoDel(codel) => codel.validate(),
        }
    }
}

/// What a queue has done.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueueCounts {
    /// Packets that found no room.
    pub(crate) overflowed: u64,
    /// Packets that active queue management dropped.
    pub(crate) managed: u64,
    /// Packets that were given a Congestion Experienced mark.
    pub(crate) marked: u64,
    /// The most bytes that have ever waited.
    pub(crate) peak: ByteCount,
}

/// Packets that wait.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: ByteCount,
    limit: ByteCount,
    header: ByteCount,
    mark_above: Option<ByteCount>,
    control: Option<Control>,
    counts: QueueCounts,
}

#[derive(Debug)]
struct Waiting<P> {
    packet: P,
    since: Time,
}

impl<P: Packet> Queue<P> {
    pub(crate) fn new(limit: ByteCount, header: ByteCount, discipline: Discipline) -> Self {
        let (mark_above, control) = match discipline {
            Discipline::DropTail(drop_tail) => (drop_tail.mark_above, None),
            Discipline::CoDel(codel) => (None, Some(Control::new(codel))),
        };
        let (bytes, counts) = (ByteCount::ZERO, QueueCounts::default());
        Self { waiting: VecDeque::new(), bytes, limit, header, mark_above, control, counts }
    }

    /// Takes a packet; false if it was dropped. `is_idle`: nothing waits and the link is free, so there is room.
    pub(crate) fn push(&mut self, now: Time, mut packet: P, is_idle: bool) -> bool {
        let bytes = self.bytes + self.charge(&packet);
        if bytes > self.limit && !is_idle {
            self.counts.overflowed += 1;
            return false;
        }
        if self.mark_above.is_some_and(|threshold| bytes > threshold) && packet.is_ecn_capable() {
            packet.mark_congestion_experienced();
            self.counts.marked += 1;
        }
        self.bytes = bytes;
        self.waiting.push_back(Waiting { packet, since: now });
        true
    }

    /// The packet whose transmission begins at `now`, and the bytes that management dropped on the way to it.
    pub(crate) fn pop(&mut self, now: Time) -> (Option<P>, ByteCount) {
        let mut dropped = ByteCount::ZERO;
        while let Some(Waiting { mut packet, since }) = self.waiting.pop_front() {
            let length = self.charge(&packet);
            self.bytes -= length;
            let Some(control) = &mut self.control else { return (Some(packet), dropped) };
            if !control.signals(now, now.since(since), length, self.bytes) {
                return (Some(packet), dropped);
            }
            if control.marks() && packet.is_ecn_capable() {
                packet.mark_congestion_experienced();
                self.counts.marked += 1;
                return (Some(packet), dropped);
            }
            self.counts.managed += 1;
            dropped += packet.length();
        }
        if let Some(control) = &mut self.control {
            control.on_empty();
        }
        (None, dropped)
    }

    /// Notes the bytes that wait now, once it is known whether the newcomer does.
    pub(crate) fn note_peak(&mut self) {
        self.counts.peak = self.counts.peak.max(self.bytes);
    }

    /// Bytes that wait, headers included.
    pub(crate) fn bytes(&self) -> ByteCount {
        self.bytes
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = &P> {
        self.waiting.iter().map(|waiting| &waiting.packet)
    }

    pub(crate) fn packets(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn counts(&self) -> QueueCounts {
        self.counts
    }

    /// What the link charges a packet for.
    pub(crate) fn charge(&self, packet: &P) -> ByteCount {
        packet.length() + self.header
    }
}

/// The longest interval of [`CoDel`].
pub(crate) const MAX_INTERVAL: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests;
