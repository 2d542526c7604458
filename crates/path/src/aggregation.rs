//! Packets that leave a link together, as frames of Wi-Fi do (A-MPDU, IEEE 802.11n).
//!
//! A station that wins the air sends what waits in one go, and the receiver hands it on when the last of it is in. So
//! packets of one busy period arrive at one time: their spacing says nothing about the rate of the link.

use posthaste_units::{ByteCount, Duration, Time};

use crate::config::ConfigError;
use crate::packet::Packet;

/// How much leaves together. An aggregate ends with the packet that fills it, when its time is over, or when
/// nothing else waits for the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aggregation {
    /// Packets of an aggregate at most, above zero. 802.11n and 802.11ac acknowledge 64 in one block.
    pub packets: usize,
    /// Time from the end of its first packet to the end of its last, at most: what regulators and standards grant a
    /// station is 4 to 5.5 ms.
    pub time: Duration,
}

impl Default for Aggregation {
    fn default() -> Self {
        Self { packets: 64, time: Duration::from_millis(4) }
    }
}

impl Aggregation {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.packets == 0 || self.time.is_zero() {
            return Err(ConfigError::new("aggregate: a packet at least, and a time above zero are needed"));
        }
        Ok(())
    }
}

/// The aggregate that is being sent.
#[derive(Debug)]
pub(crate) struct Aggregator<P> {
    config: Aggregation,
    held: Vec<P>,
    bytes: ByteCount,
    deadline: Time,
}

impl<P: Packet> Aggregator<P> {
    pub(crate) fn new(config: Aggregation) -> Self {
        Self { config, held: Vec::new(), bytes: ByteCount::ZERO, deadline: Time::ZERO }
    }

    /// A packet has left the link at `departure`; `is_last` if nothing else waits there. True if the aggregate is
    /// complete with it. The caller has taken out the one before if [`Self::deadline`] was earlier.
    pub(crate) fn push(&mut self, departure: Time, packet: P, is_last: bool) -> bool {
        if self.held.is_empty() {
            self.deadline = departure + self.config.time;
        }
        self.bytes += packet.length();
        self.held.push(packet);
        is_last || self.held.len() >= self.config.packets
    }

    /// When the present aggregate ends at the latest; `None` if there is none.
    pub(crate) fn deadline(&self) -> Option<Time> {
        (!self.held.is_empty()).then_some(self.deadline)
    }

    /// Ends the aggregate; its packets in order.
    pub(crate) fn take(&mut self) -> Vec<P> {
        self.bytes = ByteCount::ZERO;
        std::mem::take(&mut self.held)
    }

    pub(crate) fn bytes(&self) -> ByteCount {
        self.bytes
    }

    pub(crate) fn held(&self) -> &[P] {
        &self.held
    }
}

#[cfg(test)]
mod tests;
