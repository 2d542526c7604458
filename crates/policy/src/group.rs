//! The seam `group`: several connections of one client to one server, coordinated at the sender.
//!
//! A group policy sees its members as plain values and answers with [`Order`]s, which the transport carries out: it
//! touches no connection itself, so that the order in which things happen is the order of the events alone.

pub mod coordinated;
pub mod ensemble;
pub mod joint;

use std::fmt::Debug;

use posthaste_units::{ByteCount, Rate, Time};

use crate::sample::{RttView, SpuriousSample};
use crate::{Adjustment, CongestionState, FlowShare, Lead, PolicyText};

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

/// What the choice `plain` says of itself.
pub const PLAIN: PolicyText = PolicyText {
    name: "plain",
    claims: "each connection is on its own",
    source: "RFC 9002: a controller for each path of each connection",
    use_when: "clients open one connection, as they do over HTTP/3",
    breaks_when: "a client opens several: each takes a flow's share, and finds the capacity for itself",
};

/// True if the member has had something in flight within the last round trip, and its peer is not silent.
fn is_busy(view: &MemberView, now: Time) -> bool {
    view.silent_since.is_none() && view.idle_since.is_none_or(|since| now.since(since) < view.rtt.smoothed)
}

/// The mean of the members' windows; zero without members.
fn mean_window(members: &[MemberView]) -> ByteCount {
    let total: ByteCount = members.iter().map(|member| member.congestion.window).sum();
    total / (members.len() as u64).max(1)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::Phase;
    use crate::testing::{DATAGRAM, milliseconds, steady_rtt};

    /// A busy member with a window of so many datagrams.
    pub(crate) fn member(id: u64, datagrams: u64, phase: Phase) -> MemberView {
        let window = DATAGRAM * datagrams;
        let slow_start_threshold = (phase != Phase::SlowStart).then_some(window);
        MemberView {
            id: MemberId(id),
            congestion: CongestionState { window, slow_start_threshold, phase },
            model_rate: None,
            least_window: DATAGRAM * 2,
            rtt: steady_rtt(milliseconds(50)),
            idle_since: None,
            silent_since: None,
            in_flight: ByteCount::ZERO,
            delivered: ByteCount::ZERO,
            lost: ByteCount::ZERO,
        }
    }

    /// What the policy orders for this event.
    pub(crate) fn orders(
        group: &mut dyn Group,
        now: Time,
        member: u64,
        kind: MemberEventKind,
        members: &[MemberView],
    ) -> Vec<Order> {
        let mut orders = Vec::new();
        group.on_event(&MemberEvent { now, member: MemberId(member), kind }, members, &mut orders);
        orders
    }

    /// Carries the orders out on the views, as controllers would.
    pub(crate) fn obey(members: &mut [MemberView], orders: &[Order]) {
        for order in orders {
            let Some(view) = members.iter_mut().find(|view| view.id == order.member) else { continue };
            let threshold = match order.action {
                Action::Adjust(adjustment) => {
                    view.congestion.window = adjustment.window.unwrap_or(view.congestion.window);
                    view.model_rate = adjustment.rate.or(view.model_rate);
                    adjustment.slow_start_threshold
                }
                Action::Share(share) => {
                    view.congestion.window = share.window;
                    share.slow_start_threshold
                }
                Action::Lead(lead) => {
                    view.congestion.window = lead.window;
                    None
                }
                Action::Congestion { .. } => {
                    view.congestion.window = ByteCount::from_f64(view.congestion.window.as_f64() * 0.7);
                    Some(view.congestion.window)
                }
            };
            match threshold {
                Some(ByteCount::MAX) => {
                    view.congestion.slow_start_threshold = None;
                    view.congestion.phase = Phase::SlowStart;
                }
                Some(threshold) => {
                    view.congestion.slow_start_threshold = Some(threshold);
                    view.congestion.phase = Phase::CongestionAvoidance;
                }
                None => {}
            }
        }
    }
}
