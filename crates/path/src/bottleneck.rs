//! A queue in front of a link that takes time.
//!
//! Capacity that varies and management at departure decide when a packet's transmission begins, so packets truly
//! wait here instead of being given a departure time on arrival.

use posthaste_units::{ByteCount, Duration, Rng, Time};

use crate::config::Bottleneck;
use crate::packet::Packet;
use crate::queue::{Queue, QueueCounts};
use crate::rate::Service;

/// The queue and the packet in transmission.
#[derive(Debug)]
pub(crate) struct Link<P> {
    queue: Queue<P>,
    service: Service,
    state: State<P>,
    /// Bytes waiting and in transmission, without headers.
    held_bytes: ByteCount,
}

#[derive(Debug)]
enum State<P> {
    /// Nothing waits.
    Idle,
    /// The next packet's transmission begins then.
    Waiting(Time),
    /// The packet has left then.
    Transmitting(Time, P),
}

impl<P: Packet> Link<P> {
    /// `start`: where in a recorded rate the clock begins.
    pub(crate) fn new(config: &Bottleneck, header: ByteCount, start: Duration, rng: &mut Rng) -> Self {
        Self {
            queue: Queue::new(config.queue, header, config.discipline),
            service: Service::new(&config.rate, start, rng),
            state: State::Idle,
            held_bytes: ByteCount::ZERO,
        }
    }

    /// Takes `packet` unless the queue drops it. The caller has taken out all departures up to `now` before.
    pub(crate) fn offer(&mut self, now: Time, packet: P) {
        let is_idle = matches!(self.state, State::Idle);
        let length = packet.length();
        if !self.queue.push(now, packet, is_idle) {
            return;
        }
        self.held_bytes += length;
        if is_idle {
            let start = self.service.start_after_idle(now);
            self.state = State::Waiting(start);
            if start <= now {
                self.begin(start);
            }
        }
        self.queue.note_peak();
    }

    /// When something happens next.
    pub(crate) fn next_event(&self) -> Option<Time> {
        match &self.state {
            State::Idle => None,
            State::Waiting(time) | State::Transmitting(time, _) => Some(*time),
        }
    }

    /// The next packet that has left by `now`, with its time of departure.
    pub(crate) fn depart(&mut self, now: Time) -> Option<(Time, P)> {
        loop {
            match self.state {
                State::Waiting(start) if start <= now => self.begin(start),
                State::Transmitting(departure, _) if departure <= now => break,
                _ => return None,
            }
        }
        let State::Transmitting(departure, packet) = std::mem::replace(&mut self.state, State::Idle) else {
            return None;
        };
        self.held_bytes -= packet.length();
        self.go_on(departure);
        Some((departure, packet))
    }

    /// What comes after a departure.
    fn go_on(&mut self, departure: Time) {
        let start = self.service.start_after(departure);
        if start <= departure || self.queue.is_empty() {
            // An empty queue's management wants to know that it is empty.
            self.begin(departure);
        } else {
            self.state = State::Waiting(start);
        }
    }

    /// Begins the transmission of the packet that the queue yields, if any.
    fn begin(&mut self, start: Time) {
        let (packet, dropped) = self.queue.pop(start);
        self.held_bytes -= dropped;
        self.state = match packet {
            Some(packet) => {
                State::Transmitting(self.service.serve(start, self.queue.charge(&packet)), packet)
            }
            None => State::Idle,
        };
    }

    /// True if nothing waits and nothing is in transmission.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Packets waiting and in transmission.
    pub(crate) fn held(&self) -> impl Iterator<Item = &P> {
        let transmitting = if let State::Transmitting(_, packet) = &self.state { Some(packet) } else { None };
        transmitting.into_iter().chain(self.queue.held())
    }

    /// Bytes waiting, headers included.
    pub(crate) fn queue_bytes(&self) -> ByteCount {
        self.queue.bytes()
    }

    /// Bytes waiting and in transmission, headers not included.
    pub(crate) fn held_bytes(&self) -> ByteCount {
        self.held_bytes
    }

    /// Packets waiting and in transmission.
    pub(crate) fn held_packets(&self) -> usize {
        self.queue.packets() + usize::from(matches!(self.state, State::Transmitting(..)))
    }

    pub(crate) fn counts(&self) -> QueueCounts {
        self.queue.counts()
    }
}
