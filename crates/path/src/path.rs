//! The stages put together.

use bytes::Bytes;
use posthaste_units::{ByteCount, Rng, Time};

use crate::bottleneck::Link;
use crate::config::{ConfigError, Outage, PathConfig};
use crate::flight::UnderWay;
use crate::impairment::Medium;
use crate::jitter::Delays;
use crate::packet::Packet;
use crate::stats::PathStats;

/// One emulated direction for packets of type `P`.
#[derive(Debug)]
pub struct Path<P = Bytes> {
    capacity: ByteCount,
    link: Option<Link<P>>,
    medium: Medium,
    outage: Option<Outage>,
    delays: Delays,
    under_way: UnderWay<P>,
    stats: PathStats,
}

impl<P: Packet> Path<P> {
    /// A direction as `config` says, with its own generator.
    ///
    /// # Errors
    /// Names the first value of `config` that is out of range.
    pub fn new(config: PathConfig, mut rng: Rng) -> Result<Self, ConfigError> {
        config.validate()?;
        let medium = Medium::new(&config, &mut rng);
        let delays = Delays::new(config.delay, config.jitter, rng.fork());
        let link = config.bottleneck.map(|bottleneck| Link::new(&bottleneck, config.header, &mut rng));
        let stats = PathStats::default();
        let (capacity, outage) = (config.capacity, config.outage);
        Ok(Self { capacity, link, medium, outage, delays, under_way: UnderWay::new(), stats })
    }

    /// A packet enters at `now`, which must not be earlier than that of any call before.
    pub fn on_packet(&mut self, now: Time, packet: P) {
        self.advance(now);
        self.stats.offered += 1;
        if self.held_bytes() + packet.length() > self.capacity {
            self.stats.overflowed += 1;
        } else if let Some(link) = &mut self.link {
            link.offer(now, packet);
        } else {
            self.enter_medium(now, packet);
        }
    }

    /// The next packet that has arrived by `now`; call until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<P> {
        self.advance(now);
        let packet = self.under_way.pop(now)?;
        self.stats.delivered += 1;
        self.stats.delivered_bytes += packet.length().get();
        Some(packet)
    }

    /// When to call [`Path::poll`] next; `None` if nothing waits. It may be early (a packet leaves the bottleneck
    /// but has yet to propagate), never late.
    pub fn next_timeout(&self) -> Option<Time> {
        let event = self.link.as_ref().and_then(Link::next_event);
        event.into_iter().chain(self.under_way.next_arrival()).min()
    }

    /// Bytes waiting in the bottleneck's queue, headers included, as of the last call with a time; without the
    /// packet in transmission.
    pub fn queue_bytes(&self) -> ByteCount {
        self.link.as_ref().map_or(ByteCount::ZERO, Link::queue_bytes)
    }

    /// Bytes waiting, in transmission and under way.
    pub fn held_bytes(&self) -> ByteCount {
        self.link.as_ref().map_or(ByteCount::ZERO, Link::held_bytes) + self.under_way.bytes()
    }

    /// Packets waiting, in transmission and under way, copies included.
    pub fn held_packets(&self) -> usize {
        self.link.as_ref().map_or(0, Link::held_packets) + self.under_way.packets()
    }

    /// Counts since the start.
    pub fn stats(&self) -> PathStats {
        let Some(queue) = self.link.as_ref().map(Link::counts) else { return self.stats };
        PathStats {
            overflowed: self.stats.overflowed + queue.overflowed,
            managed: queue.managed,
            marked: queue.marked,
            peak_queue_bytes: queue.peak,
            ..self.stats
        }
    }

    /// Moves everything that has left the bottleneck by `now` into the medium, as all calls with a time do, and does
    /// nothing else. `now` must not be earlier than that of any call before.
    pub fn advance(&mut self, now: Time) {
        while let Some((departure, packet)) = self.link.as_mut().and_then(|link| link.depart(now)) {
            self.enter_medium(departure, packet);
        }
    }

    fn enter_medium(&mut self, now: Time, mut packet: P) {
        let fate = self.medium.draw();
        let on_time = self.delays.arrival(now);
        if fate.lost || self.outage.is_some_and(|outage| outage.covers(now)) {
            self.stats.lost += 1;
            return;
        }
        let copy = fate.duplicated.then(|| packet.clone());
        if let Some(draw) = fate.corruption {
            self.stats.corrupted += 1;
            packet.flip_bit(draw);
        }
        self.stats.reordered += u64::from(!fate.extra_delay.is_zero());
        self.under_way.push(on_time + fate.extra_delay, packet);
        if let Some(copy) = copy {
            self.stats.duplicated += 1;
            self.under_way.push(on_time, copy);
        }
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
