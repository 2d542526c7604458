//! A constant rate behind a drop-tail queue in bytes.
//!
//! Later disciplines (traces, `CoDel`) decide at departure, so packets truly wait here instead of being given a
//! departure time on arrival.

use std::collections::VecDeque;

use posthaste_units::{ByteCount, Time};

use crate::config::Bottleneck;
use crate::packet::Packet;

/// The queue and the packet in transmission.
#[derive(Debug)]
pub(crate) struct Link<P> {
    config: Bottleneck,
    waiting: VecDeque<P>,
    waiting_bytes: ByteCount,
    transmission: Option<Transmission<P>>,
}

/// The packet on the wire and the busy period that it belongs to.
#[derive(Debug)]
struct Transmission<P> {
    packet: P,
    busy_since: Time,
    /// Bytes of the busy period up to and including `packet`. Departures derive from this sum, so that the
    /// rounding of one packet's time never adds up.
    busy_bytes: ByteCount,
    departure: Time,
}

impl<P: Packet> Link<P> {
    pub(crate) fn new(config: Bottleneck) -> Self {
        Self { config, waiting: VecDeque::new(), waiting_bytes: ByteCount::ZERO, transmission: None }
    }

    /// Takes `packet` unless the queue is full; false if it was dropped. The caller has taken out all departures
    /// up to `now` before.
    pub(crate) fn offer(&mut self, now: Time, packet: P) -> bool {
        if self.transmission.is_none() {
            self.transmit(packet, now, ByteCount::ZERO);
            return true;
        }
        let length = packet.length();
        if self.waiting_bytes + length > self.config.queue {
            return false;
        }
        self.waiting_bytes += length;
        self.waiting.push_back(packet);
        true
    }

    /// When the packet in transmission has left.
    pub(crate) fn next_departure(&self) -> Option<Time> {
        self.transmission.as_ref().map(|transmission| transmission.departure)
    }

    /// The next packet that has left by `now`, with its time of departure.
    pub(crate) fn depart(&mut self, now: Time) -> Option<(Time, P)> {
        let done = self.transmission.take_if(|transmission| transmission.departure <= now)?;
        if let Some(next) = self.waiting.pop_front() {
            self.waiting_bytes -= next.length();
            self.transmit(next, done.busy_since, done.busy_bytes);
        }
        Some((done.departure, done.packet))
    }

    fn transmit(&mut self, packet: P, busy_since: Time, bytes_before: ByteCount) {
        let busy_bytes = bytes_before + packet.length();
        let departure = busy_since + self.config.rate.time_for(busy_bytes);
        self.transmission = Some(Transmission { packet, busy_since, busy_bytes, departure });
    }
}
