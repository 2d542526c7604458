//! A path whose connection is a member of a group: what the group is told of it, and what it orders.

use posthaste_policy::group::{Action, MemberEventKind, MemberId, MemberView, SILENT_PROBE_TIMEOUTS};
use posthaste_policy::sample::RttView;
use posthaste_policy::{CongestionState, FlowShare, Lead, Pacing};
use posthaste_units::{ByteCount, Time};

use super::PathControl;
use crate::group::membership::Membership;

impl PathControl {
    /// From now on what happens here is kept for a group policy, too; `tells_acks` if it wants to know of each.
    pub(crate) fn join_group(&mut self, now: Time, tells_acks: bool) {
        let idle_since = self.in_flight.is_zero().then_some(now);
        self.membership = Some(Box::new(Membership::new(idle_since, tells_acks)));
    }

    /// Ends that; the window that held until now, if the path was a member's. A controller that was done without takes
    /// over as it has come to stand, one that was a part of a flow is a whole one.
    pub(crate) fn leave_group(&mut self) -> Option<ByteCount> {
        let window = self.congestion_state().window;
        let membership = self.membership.take()?;
        if membership.has_share() {
            self.congestion.take_share(&FlowShare { controllers: 1, window, slow_start_threshold: None });
        }
        Some(window)
    }

    /// What the group is to hear next.
    pub(crate) fn next_member_event(&mut self) -> Option<MemberEventKind> {
        self.membership.as_mut()?.next_event()
    }

    /// The path as a member of a group.
    pub(crate) fn member_view(&self, id: MemberId) -> MemberView {
        MemberView {
            id,
            congestion: self.congestion_state(),
            model_rate: self.congestion.model_rate(),
            least_window: self.max_datagram_size * 2,
            rtt: self.rtt.view(),
            idle_since: self.membership.as_ref().and_then(|membership| membership.idle_since()),
            silent_since: self.silent_since(),
            in_flight: self.in_flight,
            delivered: self.sampler.delivered(),
            lost: self.sampler.lost(),
        }
    }

    /// Since when the peer has been silent, as a group policy counts it.
    fn silent_since(&self) -> Option<Time> {
        let unanswered = self.unanswered?;
        (unanswered.probe_timeouts >= SILENT_PROBE_TIMEOUTS).then_some(unanswered.since)
    }

    /// Carries out what a group policy has ordered.
    pub(crate) fn obey(&mut self, now: Time, action: &Action) {
        match action {
            Action::Adjust(adjustment) => self.congestion.adjust(adjustment),
            Action::Share(share) => {
                self.congestion.take_share(share);
                if let Some(membership) = &mut self.membership {
                    membership.share();
                }
            }
            Action::Congestion { sent_at } => {
                self.congestion.on_congestion_experienced(now, *sent_at, self.in_flight);
            }
            Action::Lead(lead) => {
                if let Some(membership) = &mut self.membership {
                    membership.lead(*lead);
                }
            }
        }
    }

    /// The group is to hear of what the controller has made of an ack or a loss.
    pub(super) fn note_reaction(&mut self, now: Time, before: CongestionState, sent_at: Time) {
        if let Some(membership) = &mut self.membership {
            membership.on_reaction(before, self.congestion.state(), sent_at);
        }
        self.note_idle(now);
    }

    /// Packets have left the flight, for whatever reason: the group is to know if they were the last.
    pub(super) fn note_idle(&mut self, now: Time) {
        if let Some(membership) = self.membership.as_mut().filter(|_| self.in_flight.is_zero()) {
            membership.on_idle(now);
        }
    }

    fn led(&self) -> Option<&Lead> {
        self.membership.as_ref()?.led()
    }

    /// The window that holds: the group's, if it has taken the controller's place.
    pub(crate) fn window(&self) -> ByteCount {
        self.led().map_or_else(|| self.congestion.window(), |lead| lead.window)
    }

    /// Where the controller stands, with the window that holds.
    pub(super) fn congestion_state(&self) -> CongestionState {
        let state = self.congestion.state();
        self.led().map_or(state, |lead| CongestionState { window: lead.window, ..state })
    }

    /// The pacing of controller or group.
    pub(super) fn own_pacing(&self, rtt: &RttView) -> Option<Pacing> {
        self.led().map_or_else(|| self.congestion.pacing(rtt), |lead| lead.pacing)
    }
}
