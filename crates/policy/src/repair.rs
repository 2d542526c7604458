//! The seam `repair`: what is sent again before anyone has said that it was lost.
//!
//! Loss detection (RFC 9002 section 6) repairs what the peer's acks show to be missing, a round trip later. A repair
//! policy spends a bounded number of bytes to have the peer complete sooner. What it sends is in flight, is acknowledged and
//! lost like everything else, leaves only when nothing else wants to and window and pacer permit it, and never counts as
//! demand: the sender is application-limited.

use std::fmt::Debug;

use posthaste_units::{ByteCount, Duration, Rate, Time};

use crate::sample::{PacketSpace, RttView};
use crate::{Description, PolicyText};

/// What a repair policy is shown when nothing new waits to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailView {
    /// The time.
    pub now: Time,
    /// When a packet with something new last left.
    pub last_new_at: Time,
    /// True if no stream has unsent data, and at least one whose end has been sent has unacknowledged data. A stream
    /// that may go on does not count.
    pub is_tail: bool,
    /// Bytes of 1-RTT packets that are outstanding.
    pub unacked: ByteCount,
    /// Bytes in flight.
    pub in_flight: ByteCount,
    /// The congestion window.
    pub window: ByteCount,
    /// The size of a datagram.
    pub max_datagram_size: ByteCount,
    /// The bottleneck's rate, of controllers that have a model of it.
    pub rate: Option<Rate>,
    /// The RTT estimate.
    pub rtt: RttView,
    /// The latest RTT sample less the least one.
    pub queue: Duration,
    /// Bytes of stream data sent for the first time.
    pub sent: ByteCount,
    /// Bytes of copies sent so far.
    pub copied: ByteCount,
    /// Packets acknowledged on the path.
    pub acked_packets: u64,
    /// Packets declared lost on the path.
    pub lost_packets: u64,
}

/// What to send again now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairStep {
    /// Nothing, and ask again only when something has happened.
    Nothing,
    /// Nothing before this time.
    Until(Time),
    /// A copy of the youngest outstanding packet of ended streams that has no copy yet.
    Newest,
    /// A copy of the youngest retransmission of ended streams that has fewer copies than this.
    Retransmission {
        /// Copies of one packet, 1 or more.
        copies: u8,
    },
}

/// Sends data again before it is known to be lost; see the module.
pub trait Repair: Debug + Send {
    /// Copies of the first flight of the handshake (RFC 9000 section 8.1 permitting), in a datagram of their own after
    /// the others: of an Initial at a client, of the datagram with the `ServerHello` at a server.
    ///
    /// The delay after which the copy leaves, where nothing limits what may be sent; `None` for no copy.
    fn handshake_copy(&self) -> Option<Duration> {
        None
    }

    /// Asked whenever nothing new waits in `space` and window and pacer would let a packet out.
    fn next(&mut self, _space: PacketSpace, _tail: &TailView) -> RepairStep {
        RepairStep::Nothing
    }
}

/// Builds the repair policy of each connection.
///
/// Implemented by every `Fn() -> impl Repair`.
pub trait RepairFactory: Send + Sync {
    /// The policy of one connection.
    fn build(&self) -> Box<dyn Repair>;

    /// What the policy says of itself.
    fn describe(&self) -> Description {
        Description::default()
    }
}

impl<F, R> RepairFactory for F
where
    F: Fn() -> R + Send + Sync,
    R: Repair + 'static,
{
    fn build(&self) -> Box<dyn Repair> {
        Box::new(self())
    }
}

/// Nothing is repaired before it is known to be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nothing;

impl Repair for Nothing {}

impl RepairFactory for Nothing {
    fn build(&self) -> Box<dyn Repair> {
        Box::new(Self)
    }

    fn describe(&self) -> Description {
        Description::of(NONE)
    }
}

/// What the choice `none` says of itself.
pub const NONE: PolicyText = PolicyText {
    name: "none",
    claims: "no byte is sent again before it is known to be lost",
    source: "RFC 9002 section 6: loss detection and probe timeouts alone",
    use_when: "every byte counts more than time",
    breaks_when: "paths lose packets at random: each lost tail costs a round trip, each lost handshake a second",
};
