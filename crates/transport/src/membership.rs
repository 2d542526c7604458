//! A path's side of its connection's membership in a group: what the group policy is to hear of it, kept until the
//! router fetches it.

use std::collections::VecDeque;

use posthaste_policy::group::{Fluctuation, MemberEventKind};
use posthaste_policy::{CongestionState, Phase};
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
}

impl Membership {
    /// The membership of a connection that has something in flight, or will have at once.
    pub(crate) fn new(idle_since: Option<Time>) -> Self {
        Self { events: VecDeque::new(), idle_since }
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

    /// The last packet in flight is accounted for.
    pub(crate) fn on_idle(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    /// A round trip has begun.
    pub(crate) fn on_round(&mut self) {
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

    /// Losses have proved to be none, and that led the controller from one state to another.
    pub(crate) fn on_refutation(&mut self, before: CongestionState, after: CongestionState) {
        if after.window > before.window {
            self.events.push_back(MemberEventKind::Undone);
        }
    }
}
