//! A path's side of its connection's membership in a group: what the group policy is to hear of it, kept until the
//! router fetches it.

use std::collections::VecDeque;

use posthaste_policy::group::{Fluctuation, MemberAck, MemberEventKind, MemberLoss};
use posthaste_policy::sample::{AckSample, LossSample, SpuriousSample};
use posthaste_policy::{CongestionState, Lead, Phase};
use posthaste_units::Time;

/// Events kept for the group. The router fetches them after each call, which causes few; of a flood, only the news
/// that a round trip has begun are left out.
const KEPT_EVENTS: usize = 32;

/// What the group has not heard yet.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    events: VecDeque<MemberEventKind>,
    /// Since when nothing has been in flight.
    idle_since: Option<Time>,
    /// The group wants to hear of each ack and loss.
    tells_acks: bool,
    /// What the group has in the place of the controller.
    led: Option<Lead>,
    /// The group has made the controller a part of a flow.
    has_share: bool,
}

impl Membership {
    /// The membership of a connection that has something in flight, or will have at once.
    pub(crate) fn new(idle_since: Option<Time>, tells_acks: bool) -> Self {
        Self { events: VecDeque::new(), idle_since, tells_acks, led: None, has_share: false }
    }

    pub(crate) fn idle_since(&self) -> Option<Time> {
        self.idle_since
    }

    pub(crate) fn next_event(&mut self) -> Option<MemberEventKind> {
        self.events.pop_front()
    }

    /// A packet leaves.
    pub(crate) fn on_sent(&mut self) {
        if self.idle_since.take().is_some() {
            self.events.push_back(MemberEventKind::Resumed);
        }
    }

    /// Acks come again after a silence.
    pub(crate) fn on_answer(&mut self) {
        self.events.push_back(MemberEventKind::Answered);
    }

    /// The last packet in flight is accounted for.
    pub(crate) fn on_idle(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    /// A round trip has begun.
    fn on_round(&mut self) {
        if self.events.len() < KEPT_EVENTS {
            self.events.push_back(MemberEventKind::Round);
        }
    }

    /// Packets, the newest sent at `sent_at`, were acknowledged, lost or marked, and that led the controller from one
    /// state to another.
    pub(crate) fn on_reaction(&mut self, before: CongestionState, after: CongestionState, sent_at: Time) {
        let is_new_threshold = after.slow_start_threshold != before.slow_start_threshold;
        let cause = match after.phase {
            // Losses within a recovery period move no threshold.
            Phase::Recovery if is_new_threshold => Fluctuation::Congestion,
            // A threshold that was known is reached without an event.
            Phase::CongestionAvoidance if before.slow_start_threshold.is_none() && is_new_threshold => {
                Fluctuation::SlowStartExit
            }
            _ => return,
        };
        let prior_window = before.window;
        self.events.push_back(MemberEventKind::Fluctuation { cause, prior_window, sent_at });
    }

    /// What the group has in the place of the controller, if anything.
    pub(crate) fn led(&self) -> Option<&Lead> {
        self.led.as_ref()
    }

    /// The group takes the controller's place.
    pub(crate) fn lead(&mut self, lead: Lead) {
        self.led = Some(lead);
    }

    /// True if the controller is a part of a flow.
    pub(crate) fn has_share(&self) -> bool {
        self.has_share
    }

    /// The controller is a part of a flow from now on.
    pub(crate) fn share(&mut self) {
        self.has_share = true;
    }

    /// Packets have arrived.
    pub(crate) fn on_acked(&mut self, sample: &AckSample<'_>) {
        if sample.round_started {
            self.on_round();
        }
        let Some(newest) = sample.packets.last() else { return };
        let ack = MemberAck { acked: sample.acked, sent_at: newest.sent_at, app_limited: newest.app_limited };
        self.tell(MemberEventKind::Acked(ack));
        if sample.newly_marked > 0 {
            self.tell(MemberEventKind::Marked { sent_at: newest.sent_at });
        }
    }

    /// Packets are lost.
    pub(crate) fn on_lost(&mut self, sample: &LossSample<'_>, is_persistent: bool) {
        let (Some(oldest), Some(newest)) = (sample.packets.first(), sample.packets.last()) else { return };
        self.tell(MemberEventKind::Lost(MemberLoss {
            packets: sample.packets.len() as u64,
            bytes: sample.bytes,
            oldest_sent_at: oldest.sent_at,
            newest_sent_at: newest.sent_at,
        }));
        if is_persistent {
            self.tell(MemberEventKind::Collapsed);
        }
    }

    /// Keeps an event for a group that is told of such. Sums of bytes are in the member's view: what is left out of a
    /// flood is not lost.
    fn tell(&mut self, event: MemberEventKind) {
        if self.tells_acks && self.events.len() < KEPT_EVENTS {
            self.events.push_back(event);
        }
    }

    /// Losses have proved to be none, and that led the controller from one state to another.
    pub(crate) fn on_refutation(
        &mut self,
        before: CongestionState,
        after: CongestionState,
        spurious: &SpuriousSample,
    ) {
        self.tell(MemberEventKind::Refuted(*spurious));
        if after.window > before.window {
            self.events.push_back(MemberEventKind::Undone);
        }
    }
}
