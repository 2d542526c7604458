//! What a link does not model: a bad beginning, packets corrupted (and known to be), outages.

use std::cell::RefCell;
use std::rc::Rc;

use posthaste_path::Packet as _;
use posthaste_units::{Duration, Rng, Time};

use crate::packet::Packet;
use crate::peer::{Counters, Peer, PeerEvent, Read, Snapshot, StreamKey};

/// When nothing gets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// Never.
    None,
    /// Again and again: `up`, then nothing for `down`.
    Periodic {
        /// How long packets pass.
        up: Duration,
        /// How long they do not.
        down: Duration,
    },
    /// For ever from this time on.
    From(Time),
}

impl Outage {
    fn is_out(self, now: Time) -> bool {
        match self {
            Self::None => false,
            Self::From(start) => now >= start,
            Self::Periodic { up, down } => now.as_nanos() % (up + down).as_nanos().max(1) >= up.as_nanos(),
        }
    }
}

/// What happens to packets just before they reach an end.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// Packets that belong to the beginning.
    pub first_packets: u32,
    /// Probability that one of these is lost.
    pub first_loss: f64,
    /// Probability that one of these has a bit flipped.
    pub first_corruption: f64,
    /// Probability that a later packet has a bit flipped.
    pub corruption: f64,
    /// When none passes.
    pub outage: Outage,
}

/// When packets of both ends left and what of them arrived, for those who judge the end.
#[derive(Debug, Default)]
pub(super) struct Log {
    sent: Vec<Time>,
    /// Of those that were neither lost nor corrupted, when they had been sent.
    arrived: Vec<Time>,
}

impl Log {
    /// Packets sent from this time on, and those of them that have arrived.
    pub(super) fn since(&self, start: Time) -> (usize, usize) {
        let count = |times: &[Time]| times.iter().filter(|time| **time >= start).count();
        (count(&self.sent), count(&self.arrived))
    }
}

/// A stack in bad weather.
pub(super) struct Exposed {
    inner: Box<dyn Peer>,
    weather: Weather,
    rng: Rng,
    received: u32,
    log: Rc<RefCell<Log>>,
}

impl Exposed {
    pub(super) fn new(inner: Box<dyn Peer>, weather: Weather, rng: Rng, log: Rc<RefCell<Log>>) -> Self {
        Self { inner, weather, rng, received: 0, log }
    }
}

impl Peer for Exposed {
    fn connect(&mut self, now: Time) {
        self.inner.connect(now);
    }

    fn on_packet(&mut self, now: Time, mut packet: Packet) {
        let weather = &self.weather;
        let is_first = self.received < weather.first_packets;
        self.received = self.received.saturating_add(1);
        let (loss, corruption) =
            if is_first { (weather.first_loss, weather.first_corruption) } else { (0.0, weather.corruption) };
        let (is_lost, is_corrupted, bit) =
            (self.rng.chance(loss), self.rng.chance(corruption), self.rng.next_u64());
        if is_lost || weather.outage.is_out(now) {
            return;
        }
        if is_corrupted {
            packet.flip_bit(bit);
        } else {
            self.log.borrow_mut().arrived.push(packet.tag.sent_at);
        }
        self.inner.on_packet(now, packet);
    }

    fn on_timeout(&mut self, now: Time) {
        self.inner.on_timeout(now);
    }

    fn next_timeout(&mut self) -> Option<Time> {
        self.inner.next_timeout()
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let packet = self.inner.poll_transmit(now)?;
        self.log.borrow_mut().sent.push(now);
        Some(packet)
    }

    fn poll_event(&mut self) -> Option<PeerEvent> {
        self.inner.poll_event()
    }

    fn open(&mut self, now: Time) -> Option<StreamKey> {
        self.inner.open(now)
    }

    fn write(&mut self, now: Time, stream: StreamKey, data: &mut bytes::Bytes) {
        self.inner.write(now, stream, data);
    }

    fn finish(&mut self, now: Time, stream: StreamKey) {
        self.inner.finish(now, stream);
    }

    fn read(&mut self, now: Time, stream: StreamKey, max: usize) -> Read {
        self.inner.read(now, stream, max)
    }

    fn close(&mut self, now: Time) {
        self.inner.close(now);
    }

    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    fn counters(&self, now: Time) -> Counters {
        self.inner.counters(now)
    }
}
