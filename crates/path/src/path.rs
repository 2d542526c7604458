//! The stages put together.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use bytes::Bytes;
use posthaste_units::{ByteCount, Rng, Time};

use crate::bottleneck::Link;
use crate::config::{ConfigError, PathConfig};
use crate::impairment::Fate;
use crate::packet::Packet;

/// What has become of the packets so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathStats {
    /// Packets handed in.
    pub offered: u64,
    /// Packets handed out, copies included.
    pub delivered: u64,
    /// Bytes handed out, copies included.
    pub delivered_bytes: u64,
    /// Packets that the medium lost.
    pub lost: u64,
    /// Packets that a full queue, or a direction at its capacity, dropped.
    pub overflowed: u64,
    /// Packets that were given a copy.
    pub duplicated: u64,
    /// Packets with a flipped bit.
    pub corrupted: u64,
    /// Packets that were held back to be overtaken.
    pub reordered: u64,
}

impl PathStats {
    /// What was counted after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            offered: self.offered - earlier.offered,
            delivered: self.delivered - earlier.delivered,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            lost: self.lost - earlier.lost,
            overflowed: self.overflowed - earlier.overflowed,
            duplicated: self.duplicated - earlier.duplicated,
            corrupted: self.corrupted - earlier.corrupted,
            reordered: self.reordered - earlier.reordered,
        }
    }
}

impl std::ops::AddAssign for PathStats {
    fn add_assign(&mut self, other: Self) {
        self.offered += other.offered;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.lost += other.lost;
        self.overflowed += other.overflowed;
        self.duplicated += other.duplicated;
        self.corrupted += other.corrupted;
        self.reordered += other.reordered;
    }
}

/// One emulated direction for packets of type `P`.
#[derive(Debug)]
pub struct Path<P = Bytes> {
    config: PathConfig,
    rng: Rng,
    link: Option<Link<P>>,
    under_way: BinaryHeap<Flight<P>>,
    next_sequence: u64,
    held_bytes: ByteCount,
    stats: PathStats,
}

impl<P: Packet> Path<P> {
    /// A direction as `config` says, with its own generator.
    ///
    /// # Errors
    /// Names the first value of `config` that is out of range.
    pub fn new(config: PathConfig, rng: Rng) -> Result<Self, ConfigError> {
        config.validate()?;
        let link = config.bottleneck.map(Link::new);
        let (under_way, stats) = (BinaryHeap::new(), PathStats::default());
        Ok(Self { config, rng, link, under_way, next_sequence: 0, held_bytes: ByteCount::ZERO, stats })
    }

    /// A packet enters at `now`, which must not be earlier than that of any call before.
    pub fn on_packet(&mut self, now: Time, packet: P) {
        self.advance(now);
        self.stats.offered += 1;
        let length = packet.length();
        if self.held_bytes + length > self.config.capacity {
            self.stats.overflowed += 1;
            return;
        }
        let Some(link) = &mut self.link else {
            self.held_bytes += length;
            self.enter_medium(now, packet);
            return;
        };
        if link.offer(now, packet) {
            self.held_bytes += length;
        } else {
            self.stats.overflowed += 1;
        }
    }

    /// The next packet that has arrived by `now`; call until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<P> {
        self.advance(now);
        if self.under_way.peek()?.arrival > now {
            return None;
        }
        let packet = self.under_way.pop()?.packet;
        self.held_bytes -= packet.length();
        self.stats.delivered += 1;
        self.stats.delivered_bytes += packet.length().get();
        Some(packet)
    }

    /// When to call [`Path::poll`] next; `None` if nothing waits. It may be early (a packet leaves the bottleneck
    /// but has yet to propagate), never late.
    pub fn next_timeout(&self) -> Option<Time> {
        let departure = self.link.as_ref().and_then(Link::next_departure);
        let arrival = self.under_way.peek().map(|flight| flight.arrival);
        departure.into_iter().chain(arrival).min()
    }

    /// Bytes waiting and under way.
    pub fn held_bytes(&self) -> ByteCount {
        self.held_bytes
    }

    /// Counts since the start.
    pub fn stats(&self) -> PathStats {
        self.stats
    }

    /// Moves everything that has left the bottleneck by `now` into the medium.
    fn advance(&mut self, now: Time) {
        while let Some((departure, packet)) = self.link.as_mut().and_then(|link| link.depart(now)) {
            self.enter_medium(departure, packet);
        }
    }

    fn enter_medium(&mut self, now: Time, mut packet: P) {
        let fate = Fate::draw(&self.config, &mut self.rng);
        if fate.lost {
            self.held_bytes -= packet.length();
            self.stats.lost += 1;
            return;
        }
        let on_time = now + self.config.delay;
        let copy = fate.duplicated.then(|| packet.clone());
        if fate.corrupted {
            self.stats.corrupted += 1;
            packet.flip_bit(fate.bit_draw);
        }
        self.stats.reordered += u64::from(!fate.extra_delay.is_zero());
        self.push(on_time + fate.extra_delay, packet);
        if let Some(copy) = copy {
            self.held_bytes += copy.length();
            self.stats.duplicated += 1;
            self.push(on_time, copy);
        }
    }

    fn push(&mut self, arrival: Time, packet: P) {
        self.under_way.push(Flight { arrival, sequence: self.next_sequence, packet });
        self.next_sequence += 1;
    }
}

/// A packet under way. The heap yields the earliest arrival, among equals the first that entered.
#[derive(Debug)]
struct Flight<P> {
    arrival: Time,
    sequence: u64,
    packet: P,
}

impl<P> Ord for Flight<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.arrival, other.sequence).cmp(&(self.arrival, self.sequence))
    }
}

impl<P> PartialOrd for Flight<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Flight<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Flight<P> {}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
