//! The seam `group`: several connections of one client to one server, coordinated at the sender.
//!
//! A group policy sees its members as plain values and answers with [`Order`]s, which the transport carries out: it
//! touches no connection itself, so that the order in which things happen is the order of the events alone.

use std::fmt::Debug;

use posthaste_units::{ByteCount, Rate, Time};

use crate::sample::{RttView, SpuriousSample};
use crate::{Adjustment, CongestionFactory, CongestionState, Description, FlowShare, Pacing, PolicyText};

/// The most members that a group may have. The published evaluation ends at 6; 8 is what the safe form is held to.
pub const MAX_MEMBERS: usize = 8;

/// Probe timeouts in a row from which on a member counts as silent: one may be a lost tail's.
pub const SILENT_PROBE_TIMEOUTS: u32 = 2;

/// A member of a group: a connection, by the order in which the members joined. No number is used twice in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

/// A member as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberView {
    /// Which.
    pub id: MemberId,
    /// Its controller.
    pub congestion: CongestionState,
    /// The bottleneck's rate as its controller estimates it; `None` of controllers that have no such model.
    pub model_rate: Option<Rate>,
    /// The least window that its controller works with.
    pub least_window: ByteCount,
    /// Its RTT estimate.
    pub rtt: RttView,
    /// Since when it has had nothing in flight; `None` while it has.
    pub idle_since: Option<Time>,
    /// When the first of at least [`SILENT_PROBE_TIMEOUTS`] probe timeouts in a row expired; `None` of a member whose
    /// packets are acknowledged.
    pub silent_since: Option<Time>,
    /// Bytes that it has in flight.
    pub in_flight: ByteCount,
    /// Bytes that have arrived of what it has sent, in all.
    pub delivered: ByteCount,
    /// Bytes of it that were declared lost, in all.
    pub lost: ByteCount,
}

/// A member's packets have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberAck {
    /// Their sizes summed.
    pub acked: ByteCount,
    /// When the newest of them was sent.
    pub sent_at: Time,
    /// True if the member had no more to send then.
    pub app_limited: bool,
}

/// A member's packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberLoss {
    /// How many, above zero.
    pub packets: u64,
    /// Their sizes summed.
    pub bytes: ByteCount,
    /// When the oldest of them was sent.
    pub oldest_sent_at: Time,
    /// When the newest of them was sent.
    pub newest_sent_at: Time,
}

/// What has happened to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberEvent {
    /// When.
    pub now: Time,
    /// To which member.
    pub member: MemberId,
    /// What.
    pub kind: MemberEventKind,
}

/// The kinds of [`MemberEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberEventKind {
    /// It has joined: the last of the members.
    Joined,
    /// It has left, and is not among the members any more.
    Left {
        /// What it leaves to the others: its last window; zero if that has gone along with it into another group.
        window: ByteCount,
    },
    /// Its controller has begun a reduction for losses or marks, or has left slow start: a network fluctuation event.
    /// Losses within one recovery period are one event.
    Fluctuation {
        /// What the controller took for the event.
        cause: Fluctuation,
        /// Its window before it reacted.
        prior_window: ByteCount,
        /// When the newest packet was sent that the event is about.
        sent_at: Time,
    },
    /// The reduction of its last fluctuation has been undone: the losses were none.
    Undone,
    /// It has begun a round trip.
    Round,
    /// It sends again after having had nothing in flight.
    Resumed,
    /// It was silent ([`MemberView::silent_since`]), and acks come again. Told before what the first of them brings.
    Answered,
    /// Packets of it have arrived. This and what follows is told only to policies that are told of acks.
    Acked(MemberAck),
    /// Packets of it are lost.
    Lost(MemberLoss),
    /// An ack reported packets marked CE; the newest that it acknowledges was sent at this time.
    Marked {
        /// When the packet was sent.
        sent_at: Time,
    },
    /// Packets that counted as lost have arrived after all.
    Refuted(SpuriousSample),
    /// Its losses are persistent congestion (RFC 9002 section 7.6).
    Collapsed,
}

/// Why a controller reacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fluctuation {
    /// Packets were lost, or marked.
    Congestion,
    /// Slow start ended without a loss: the round-trip time has grown.
    SlowStartExit,
}

/// What a member has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Which member.
    pub member: MemberId,
    /// What.
    pub action: Action,
}

/// The kinds of [`Order`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Put the controller into this state.
    Adjust(Adjustment),
    /// Let the controller go on as one of several that count as one flow.
    Share(FlowShare),
    /// Do without the controller until told otherwise: window and pacing are these.
    Lead(Lead),
    /// Let the controller react as if a packet sent at this time had met congestion; it does so once a round trip.
    Congestion {
        /// When the packet was sent.
        sent_at: Time,
    },
}

/// What a group policy has in the place of a member's controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    /// Most bytes that may be in flight.
    pub window: ByteCount,
    /// How fast packets may leave, or `None` for as fast as the window allows.
    pub pacing: Option<Pacing>,
}

/// Coordination of the connections of one client; see the module.
pub trait Group: Debug + Send {
    /// The window that each of `size` connections begins with, where one alone would begin with `initial`.
    fn initial_window(&self, initial: ByteCount, size: usize) -> ByteCount {
        initial / size.clamp(1, MAX_MEMBERS) as u64
    }

    /// True if the policy is to be told of each ack and loss of a member, not only of what its controller makes of it.
    fn is_told_of_acks(&self) -> bool {
        false
    }

    /// Told of what happens to the members; appends what they have to do. `members` are all of them after the event,
    /// in the order of joining, at most [`MAX_MEMBERS`]. What is ordered causes no events.
    fn on_event(&mut self, event: &MemberEvent, members: &[MemberView], orders: &mut Vec<Order>);
}

/// Builds the policy of each group of connections.
///
/// Implemented by every `Fn() -> impl Group`.
pub trait GroupFactory: Send + Sync {
    /// The policy of one group, whose members have this controller; `None` if connections are not to be grouped.
    fn build(&self, congestion: &dyn CongestionFactory) -> Option<Box<dyn Group>>;

    /// What the policy says of itself.
    fn describe(&self) -> Description {
        Description::default()
    }
}

impl<F, G> GroupFactory for F
where
    F: Fn() -> G + Send + Sync,
    G: Group + 'static,
{
    fn build(&self, _congestion: &dyn CongestionFactory) -> Option<Box<dyn Group>> {
        Some(Box::new(self()))
    }
}

/// Connections are not grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Plain;

impl GroupFactory for Plain {
    fn build(&self, _congestion: &dyn CongestionFactory) -> Option<Box<dyn Group>> {
        None
    }

    fn describe(&self) -> Description {
        Description::of(PLAIN)
    }
}

/// What the choice `plain` says of itself.
pub const PLAIN: PolicyText = PolicyText {
    name: "plain",
    claims: "each connection is on its own",
    source: "RFC 9002: a controller for each path of each connection",
    use_when: "clients open one connection, as they do over HTTP/3",
    breaks_when: "a client opens several: each takes a flow's share, and finds the capacity for itself",
};
