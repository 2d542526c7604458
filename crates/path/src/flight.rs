//! Packets under way, by time of arrival.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use posthaste_units::{ByteCount, Time};

use crate::packet::Packet;

/// Packets under way: the earliest arrival comes out first, among equals the first that entered.
///
/// Nearly all packets enter in the order in which they arrive, so a plain queue holds those, and only the others
/// cost a heap's work.
#[derive(Debug)]
pub(crate) struct UnderWay<P> {
    in_order: VecDeque<Flight<P>>,
    early: BinaryHeap<Flight<P>>,
    next_sequence: u64,
    bytes: ByteCount,
}

impl<P: Packet> UnderWay<P> {
    pub(crate) fn new() -> Self {
        Self { in_order: VecDeque::new(), early: BinaryHeap::new(), next_sequence: 0, bytes: ByteCount::ZERO }
    }

    pub(crate) fn push(&mut self, arrival: Time, packet: P) {
        self.bytes += packet.length();
        let flight = Flight { arrival, sequence: self.next_sequence, packet };
        self.next_sequence += 1;
        if self.in_order.back().is_none_or(|last| last.arrival <= arrival) {
            self.in_order.push_back(flight);
        } else {
            self.early.push(flight);
        }
    }

    /// When the first packet arrives.
    pub(crate) fn next_arrival(&self) -> Option<Time> {
        let first = self.in_order.front().map(|flight| flight.arrival);
        let early = self.early.peek().map(|flight| flight.arrival);
        first.into_iter().chain(early).min()
    }

    /// The first packet, if it has arrived by `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<P> {
        let flight = if self.early.peek() > self.in_order.front() {
            // The heap's order: what is greater comes first, and anything is greater than nothing.
            self.early.peek().filter(|flight| flight.arrival <= now)?;
            self.early.pop()?
        } else {
            self.in_order.front().filter(|flight| flight.arrival <= now)?;
            self.in_order.pop_front()?
        };
        self.bytes -= flight.packet.length();
        Some(flight.packet)
    }

    pub(crate) fn bytes(&self) -> ByteCount {
        self.bytes
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = &P> {
        self.in_order.iter().chain(&self.early).map(|flight| &flight.packet)
    }

    pub(crate) fn packets(&self) -> usize {
        self.in_order.len() + self.early.len()
    }
}

/// A packet under way; the greatest is the one that arrives first.
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
