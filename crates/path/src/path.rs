//! The stages put together.

use bytes::Bytes;
use posthaste_units::{ByteCount, Duration, Rng, Time};

use crate::aggregation::Aggregator;
use crate::bottleneck::Link;
use crate::config::{ConfigError, Outage, PathConfig};
use crate::flight::UnderWay;
use crate::handover::Routes;
use crate::impairment::Medium;
use crate::jitter::Delays;
use crate::loss_periods::PeriodicLoss;
use crate::packet::Packet;
use crate::pauses::Receiver;
use crate::radio_frames::Framer;
use crate::stats::PathStats;
use crate::ticks::next_tick;

/// One emulated direction for packets of type `P`.
#[derive(Debug)]
pub struct Path<P = Bytes> {
    capacity: ByteCount,
    link: Option<Link<P>>,
    aggregator: Option<Aggregator<P>>,
    framer: Option<Framer>,
    medium: Medium,
    loss_periods: Option<PeriodicLoss>,
    routes: Option<Routes>,
    outage: Option<Outage>,
    delays: Delays,
    batch: Duration,
    receiver: Option<Receiver>,
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
        let link =
            config.bottleneck.map(|bottleneck| Link::new(&bottleneck, config.header, config.start, &mut rng));
        let (periods, blocks, routes) = (rng.fork(), rng.fork(), rng.fork());
        let pauses = rng.fork();
        Ok(Self {
            capacity: config.capacity,
            link,
            aggregator: config.aggregation.map(Aggregator::new),
            framer: config.frames.map(|frames| Framer::new(frames, blocks)),
            medium,
            loss_periods: config.loss_periods.map(|model| PeriodicLoss::new(model, periods)),
            routes: config.handover.map(|handover| Routes::new(handover, config.start, routes)),
            outage: config.outage,
            delays,
            batch: config.batch,
            receiver: config.pauses.map(|model| Receiver::new(model, pauses)),
            under_way: UnderWay::new(),
            stats: PathStats::default(),
        })
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
        if let Some(receiver) = &mut self.receiver {
            let arrival = self.under_way.next_arrival().filter(|&arrival| arrival <= now)?;
            if !receiver.takes_in(arrival, now) {
                return None;
            }
        }
        let packet = self.under_way.pop(now)?;
        self.stats.delivered += 1;
        self.stats.delivered_bytes += packet.length().get();
        Some(packet)
    }

    /// When to call [`Path::poll`] next; `None` if nothing waits. It may be early (a packet leaves the bottleneck
    /// but has yet to propagate), never late.
    pub fn next_timeout(&self) -> Option<Time> {
        let event = self.link.as_ref().and_then(Link::next_event);
        let aggregate = self.aggregator.as_ref().and_then(Aggregator::deadline);
        event.into_iter().chain(aggregate).chain(self.next_taken_in()).min()
    }

    /// When [`Path::poll`] may have a packet next; `None` if nothing waits. It may be early, never late. Unlike at
    /// [`Path::next_timeout`], packets leave the bottleneck in between: whoever reads what is held or counted calls
    /// [`Path::advance`] before.
    pub fn next_arrival(&self) -> Option<Time> {
        let event = self.link.as_ref().and_then(Link::next_event);
        // With an aggregator, what leaves the bottleneck changes its deadline.
        let least = if self.aggregator.is_some() { Duration::ZERO } else { self.delays.least() };
        let propagated = event.map(|departure| departure + least);
        let aggregate = self.aggregator.as_ref().and_then(Aggregator::deadline);
        propagated.into_iter().chain(aggregate).chain(self.next_taken_in()).min()
    }

    /// When the receiver takes in the first of the packets under way.
    fn next_taken_in(&self) -> Option<Time> {
        let arrival = self.under_way.next_arrival()?;
        Some(self.receiver.as_ref().map_or(arrival, |receiver| receiver.next(arrival)))
    }

    /// Bytes waiting in the bottleneck's queue, headers included, as of the last call with a time; without the
    /// packet in transmission.
    pub fn queue_bytes(&self) -> ByteCount {
        self.link.as_ref().map_or(ByteCount::ZERO, Link::queue_bytes)
    }

    /// Bytes waiting, in transmission and under way.
    pub fn held_bytes(&self) -> ByteCount {
        let aggregate = self.aggregator.as_ref().map_or(ByteCount::ZERO, Aggregator::bytes);
        self.link.as_ref().map_or(ByteCount::ZERO, Link::held_bytes) + aggregate + self.under_way.bytes()
    }

    /// Packets waiting, in transmission and under way, copies included.
    pub fn held_packets(&self) -> usize {
        let aggregate = self.aggregator.as_ref().map_or(0, |aggregator| aggregator.held().len());
        self.link.as_ref().map_or(0, Link::held_packets) + aggregate + self.under_way.packets()
    }

    /// Packets waiting, in transmission and under way, in no particular order.
    pub fn held(&self) -> impl Iterator<Item = &P> {
        let aggregate = self.aggregator.iter().flat_map(Aggregator::held);
        self.link.iter().flat_map(Link::held).chain(aggregate).chain(self.under_way.held())
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
            // A packet that ends with the aggregate's time is still of it.
            self.end_aggregate(departure - Duration::from_nanos(1));
            let is_last = self.link.as_ref().is_none_or(Link::is_idle);
            let Some(aggregator) = &mut self.aggregator else {
                self.enter_medium(departure, packet);
                continue;
            };
            if aggregator.push(departure, packet, is_last) {
                for packet in aggregator.take() {
                    self.enter_medium(departure, packet);
                }
            }
        }
        self.end_aggregate(now);
    }

    /// Ends an aggregate whose time is over by `now`.
    fn end_aggregate(&mut self, now: Time) {
        let Some(aggregator) = &mut self.aggregator else { return };
        if let Some(deadline) = aggregator.deadline().filter(|&deadline| deadline <= now) {
            for packet in aggregator.take() {
                self.enter_medium(deadline, packet);
            }
        }
    }

    fn enter_medium(&mut self, now: Time, mut packet: P) {
        let outcome = self.medium.draw();
        let is_in_burst = self.loss_periods.as_mut().is_some_and(|periods| periods.is_lost(now));
        let route = self.routes.as_mut().map_or(Some(Duration::ZERO), |routes| routes.added(now));
        let handed_on = self.framer.as_mut().map_or(now, |framer| framer.hand_on(now));
        let on_time = self.delays.arrival(handed_on, route.unwrap_or_default());
        let is_out = route.is_none() || self.outage.is_some_and(|outage| outage.covers(now));
        if outcome.lost || is_in_burst || is_out {
            self.stats.lost += 1;
            return;
        }
        let copy = outcome.duplicated.then(|| {
            let mut copy = packet.clone();
            copy.mark_duplicate();
            copy
        });
        if let Some(draw) = outcome.corruption {
            self.stats.corrupted += 1;
            packet.flip_bit(draw);
        }
        self.stats.reordered += u64::from(!outcome.extra_delay.is_zero());
        self.under_way.push(next_tick(on_time + outcome.extra_delay, self.batch), packet);
        if let Some(copy) = copy {
            self.stats.duplicated += 1;
            self.under_way.push(next_tick(on_time, self.batch), copy);
        }
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
