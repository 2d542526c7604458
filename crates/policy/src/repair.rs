//! The seam `repair`: data sent again before it is known to be lost.
//!
//! Loss detection (RFC 9002 section 6) repairs what the peer's acks show to be missing, a round trip later. A repair
//! policy spends a bounded number of bytes to have the peer complete sooner. What it sends is in flight, is acknowledged and
//! lost like everything else, leaves only when nothing else wants to and window and pacer permit it, and never counts as
//! demand: the sender is application-limited.

use std::fmt::Debug;

use posthaste_units::{ByteCount, Duration, Rate, Time};

use crate::sample::{PathLoss, RttView};
use crate::{Description, PolicyText};

/// The state shown to a repair policy when nothing new waits to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailView {
    /// The time.
    pub now: Time,
    /// When a packet with something new last left.
    pub last_new_at: Time,
    /// True if no stream has unsent data, and at least one whose end has been sent has unacknowledged data. A stream
    /// that may go on does not count.
    pub is_tail: bool,
    /// Bytes in flight.
    pub in_flight: ByteCount,
    /// The size of a datagram.
    pub max_datagram_size: ByteCount,
    /// The pacing rate, of controllers that pace: once a model has left its startup, near the bottleneck's rate.
    pub rate: Option<Rate>,
    /// The RTT estimate.
    pub rtt: RttView,
    /// Bytes of stream data sent for the first time on the connection.
    pub sent: ByteCount,
    /// Bytes of packets that were copies of packets with new data, on the connection. Copies of the handshake do not
    /// count.
    pub copied: ByteCount,
    /// Bytes of packets that were copies of retransmissions.
    pub guarded: ByteCount,
    /// Bytes of packets with recovery symbols, on the connection.
    pub coded: ByteCount,
    /// True if ends of streams that are under way have codes, or may have.
    pub is_coded: bool,
    /// One of them: the end of a stream that may have more recovery symbols.
    pub code: Option<CodeView>,
    /// Bytes acknowledged on the path.
    pub delivered: ByteCount,
    /// Bytes declared lost on the path.
    pub lost: ByteCount,
    /// What earlier connections lost on it, if the start policy takes it for the same path.
    pub known: PathLoss,
}

/// The end of one stream, over which there can be a code (docs/spec/tail-code.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeView {
    /// Bytes that the code covers, and that were not acknowledged when it was made, or would be if it were made now.
    pub missing: ByteCount,
    /// Bytes of packets that have left with its recovery symbols.
    pub coded: ByteCount,
}

impl TailView {
    /// The latest RTT sample less the least one: what the packet acknowledged last waited in queues.
    pub fn queue(&self) -> Duration {
        if self.rtt.is_measured { self.rtt.latest.saturating_sub(self.rtt.min) } else { Duration::ZERO }
    }
}

/// What may be sent again now: at most one packet for each answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RepairStep {
    /// The youngest outstanding retransmission that has been sent fewer times than this in all; it goes first. Below
    /// 2: no retransmission.
    pub retransmissions: u8,
    /// Only retransmissions that left at this time or later.
    pub retransmitted_from: Time,
    /// From this time on the youngest outstanding packet of ended streams that has not been copied. `None`: never.
    pub newest_from: Option<Time>,
    /// What becomes of [`TailView::code`]; it goes before copies.
    pub code: CodeStep,
}

/// What is sent of a code now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CodeStep {
    /// Nothing, of no stream's code.
    #[default]
    Wait,
    /// Nothing of this one: what has left will do. Others may be asked about.
    Enough,
    /// One packet of recovery symbols.
    Packet {
        /// Packets of them that this end of a stream is worth in all, by what is known now. If the code has not been made
        /// yet it gets symbols for these and some more.
        of: u32,
    },
}

impl RepairStep {
    /// Nothing is to be sent again.
    pub const NOTHING: Self =
        Self { retransmissions: 0, retransmitted_from: Time::ZERO, newest_from: None, code: CodeStep::Wait };
}

/// A server's answers to probes of a client that lacks its flight (RFC 9002 section 6.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HandshakeAnswers {
    /// Answers on one connection, at most. 0 for none.
    pub most: u8,
    /// Time from the flight, or from the answer before, to an answer. Clients that copy their first flight, and those whose
    /// probe timeout is shorter than the round trip, repeat what has been answered already.
    pub wait: Duration,
}

/// Sends data again before it is known to be lost; see the module.
pub trait Repair: Debug + Send {
    /// True if [`Self::next`], [`Self::handshake_copy`] and [`Self::handshake_answers`] never ask for anything: they are
    /// not called then.
    fn is_idle(&self) -> bool {
        false
    }

    /// True if this end takes codes over the ends of the peer's streams (`TAIL_CODE`), and may send them where the peer
    /// takes them: a transport parameter says so.
    fn codes(&self) -> bool {
        false
    }

    /// Copies the first flight of the handshake, once, in a datagram of its own after the others and only until the
    /// first acknowledgement: at a client the Initial, later the Handshake packet; at a server the datagram with the
    /// `ServerHello`. Never beyond the anti-amplification limit (RFC 9000 section 8.1).
    ///
    /// The delay after which the copy leaves; a server whose client is not validated, which may send three datagrams
    /// only, does not wait. `None` for no copy.
    fn handshake_copy(&self) -> Option<Duration> {
        None
    }

    /// What a server sends when an ack-eliciting packet of the handshake brings nothing new, as a client's probes do: all
    /// handshake data that are not acknowledged, as a probe timeout would, and never beyond the anti-amplification limit.
    fn handshake_answers(&self) -> HandshakeAnswers {
        HandshakeAnswers::default()
    }

    /// What of a stream is lost for the second time leaves twice, and so with each further loss, up to this share of the
    /// bytes that the stream has sent, as numerator and denominator. These copies leave like all data that are lost, in a
    /// tail or before it. `None` for none.
    fn lost_again(&self) -> Option<(u32, u32)> {
        None
    }

    /// Called whenever nothing new waits on a connection.
    fn next(&mut self, _tail: &TailView) -> RepairStep {
        RepairStep::NOTHING
    }
}

/// Builds the repair policy of each connection.
///
/// Implemented by every `Fn() -> impl Repair`.
pub trait RepairFactory: Send + Sync {
    /// The policy of one connection.
    fn build(&self) -> Box<dyn Repair>;

    /// The policy's description.
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

impl Repair for Nothing {
    fn is_idle(&self) -> bool {
        true
    }
}

impl RepairFactory for Nothing {
    fn build(&self) -> Box<dyn Repair> {
        Box::new(Self)
    }

    fn describe(&self) -> Description {
        Description::of(NONE)
    }
}

/// The description of the choice `none`.
pub const NONE: PolicyText = PolicyText {
    name: "none",
    claims: "no byte is sent again before it is known to be lost",
    source: "RFC 9002 section 6: loss detection and probe timeouts alone",
    use_when: "every byte counts more than time",
    breaks_when: "paths lose packets at random: each lost tail costs a round trip, each lost handshake a second",
};
