//! What a link does not model: a bad beginning, packets corrupted (and known to be), outages.

use std::cell::Cell;
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

/// What an end has heard, for those who judge its end.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// When an intact packet last reached it.
    pub(super) last: Cell<Time>,
    /// Packets that both ends had sent by then.
    pub(super) sent_by_last: Cell<u64>,
}

/// A stack in bad weather.
pub(super) struct Exposed {
    inner: Box<dyn Peer>,
    weather: Weather,
    rng: Rng,
    received: u32,
    heard: Rc<Heard>,
    /// Packets that both ends have sent.
    sent: Rc<Cell<u64>>,
}

impl Exposed {
    pub(super) fn new(inner: Box<dyn Peer>, weather: Weather, rng: Rng, sent: Rc<Cell<u64>>) -> Self {
        Self { inner, weather, rng, received: 0, heard: Rc::default(), sent }
    }

    /// Where is told what it has heard.
    pub(super) fn heard(&self) -> Rc<Heard> {
        Rc::clone(&self.heard)
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
            self.heard.last.set(now);
            self.heard.sent_by_last.set(self.sent.get());
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
        self.sent.set(self.sent.get() + 1);
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

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}
