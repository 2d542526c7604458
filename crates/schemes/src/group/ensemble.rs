//! Group `ensemble`: parallel connections that are one flow to everybody else.
//!
//! - Claims: N connections of a client take the share of one, a late one starts with what the others know, and one
//!   that pauses or ends leaves its part to those that go on.
//! - Source: our own, after the Congestion Manager (RFC 3124) and coupled control (RFC 6356, RFC 8699); the safe form of
//!   `coordinated`.
//! - Use when: clients open several connections to one server and others share their path.
//! - Breaks when: the connections take different paths (then one's loss holds the others back for nothing).
//! - Experiments: `cg-share`, `cg-late`.
//!
//! How: a flow that meets congestion steps back once a round trip, and adds so much a round trip. So a member's
//! congestion is all members', once a round trip, since each has a recovery period that begins with it; and each of n busy
//! members adds a n-th. Slow start ends for all at once. The whole window is divided equally among the busy members. If
//! the last of these leaves, one that pauses inherits it, to go on where that one stood.
//!
//! A member whose client has vanished, or is out of reach, is not busy from its second probe timeout in a row on. What
//! it had goes to the others. After a silence that several shared it does not: the first of them to be heard again gets
//! nothing of the rest, whose windows persistent congestion takes.

use posthaste_policy::group::{
    Action, Fluctuation, Group, MemberEvent, MemberEventKind, MemberId, MemberView, Order,
    SILENT_PROBE_TIMEOUTS,
};
use posthaste_policy::{
    Adjustment, CongestionFactory, Constant, Description, FlowShare, GroupFactory, PolicyText, Seam,
};
use posthaste_units::{ByteCount, Time};
use serde::Deserialize;

use super::is_busy;
use crate::{Entry, Need, Property};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "ensemble",
    claims: "parallel connections take the share of one flow, and a late one starts with what the others know",
    source: "after RFC 3124, RFC 6356 and RFC 8699; the safe form of `coordinated`",
    use_when: "clients open several connections to one server and others share their path",
    breaks_when: "the connections take different paths; a controller with a model of the path has `joint` instead",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::group::<Parameters>(TEXT).needing(&[Need {
    seam: Seam::Congestion,
    property: Property::CutByLoss,
    reason: "it divides windows that losses cut, and a BBR has a model instead: [group.joint] with \
             [congestion.bbr3], or [group.coordinated] with either BBR",
}]);

/// Parameters of [`Ensemble`]: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {}

impl Parameters {
    /// The constants, for people.
    pub fn constants() -> Vec<Constant> {
        vec![
            Constant::new("busy", "something in flight within the last round trip"),
            Constant::new(
                "silent, so not busy",
                format!("from {SILENT_PROBE_TIMEOUTS} probe timeouts in a row on"),
            ),
        ]
    }
}

impl GroupFactory for Parameters {
    fn build(&self, _congestion: &dyn CongestionFactory) -> Option<Box<dyn Group>> {
        Some(Box::new(Ensemble::new()))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(Self::constants())
    }
}

/// A member as it stood before its last step back.
#[derive(Debug, Clone, Copy)]
struct Before {
    member: MemberId,
    window: ByteCount,
    slow_start_threshold: ByteCount,
}

/// One flow of several connections; see the module.
#[derive(Debug, Clone, Default)]
pub struct Ensemble {
    /// The members that share the window, by number.
    busy: Vec<MemberId>,
    /// The sum of their thresholds as it was last; `None` if one of them has none.
    thresholds: Option<ByteCount>,
    /// The member whose congestion made the others step back last, and they before that.
    stepped_back: Option<(MemberId, Vec<Before>)>,
    /// When a silence of a member ended last.
    answered_at: Option<Time>,
}

impl Ensemble {
    /// A group without members.
    pub const fn new() -> Self {
        Self { busy: Vec::new(), thresholds: None, stepped_back: None, answered_at: None }
    }

    /// Divides the window anew if others than before are busy. `left` is the window of a member that is gone.
    fn divide(
        &mut self,
        event: &MemberEvent,
        left: ByteCount,
        members: &[MemberView],
        orders: &mut Vec<Order>,
    ) {
        let joins = |view: &MemberView| event.kind == MemberEventKind::Joined && view.id == event.member;
        let is_busy = |view: &&MemberView| is_busy(view, event.now) || joins(view);
        let busy: Vec<MemberId> = members.iter().filter(is_busy).map(|view| view.id).collect();
        let had_part = self.busy.contains(&event.member);
        let is_bequest = busy.is_empty() && had_part && matches!(event.kind, MemberEventKind::Left { .. });
        let busy = if is_bequest { self.heirs(left, members) } else { busy };
        if is_bequest && busy.is_empty() {
            self.busy.clear();
            self.thresholds = None;
        }
        if busy == self.busy || busy.is_empty() {
            return;
        }
        // The least window of one that goes on after a pause was no part of the whole.
        let holders = members.iter().filter(|view| self.busy.contains(&view.id) || joins(view));
        let total: ByteCount = holders.map(|view| self.worth(view)).sum();
        let total = if had_part { total + left } else { total };
        let share = total / busy.len() as u64;
        // One that joins where nobody has a part is on its own.
        let is_alone = self.busy.is_empty() && event.kind == MemberEventKind::Joined;
        let threshold = (!is_alone).then(|| self.threshold(share, busy.len(), members));
        for view in members {
            let (window, slow_start_threshold) = if busy.contains(&view.id) {
                (share.max(view.least_window), threshold)
            } else if self.busy.contains(&view.id) {
                // What it held is the others' until it has something to send again.
                (view.least_window, Some(view.least_window))
            } else {
                continue;
            };
            let share = FlowShare { controllers: busy.len() as u32, window, slow_start_threshold };
            orders.push(Order { member: view.id, action: Action::Share(share) });
        }
        self.busy = busy;
        // Windows of another division are nothing to go back to.
        self.stepped_back = None;
    }

    /// What the window of a member counts when the whole is divided: nothing if the member is silent and another that
    /// was, too, has answered since. Then the path was silent, and persistent congestion will take the window.
    fn worth(&self, view: &MemberView) -> ByteCount {
        let has_been_shared = |since: Time| self.answered_at.is_some_and(|at| at >= since);
        let is_void = view.silent_since.is_some_and(has_been_shared);
        if is_void { ByteCount::ZERO } else { view.congestion.window }
    }

    /// The threshold of each of `count` busy members with the window `share`: where those stand that were busy before.
    fn threshold(&self, share: ByteCount, count: usize, members: &[MemberView]) -> ByteCount {
        let Some(total) = self.thresholds else {
            // The capacity is unknown yet, for a member that has left slow start in an earlier division, too.
            return ByteCount::MAX;
        };
        let before = || members.iter().filter(|view| self.busy.contains(&view.id));
        let is_avoiding = |view: &MemberView| {
            view.congestion.slow_start_threshold.is_some_and(|threshold| view.congestion.window >= threshold)
        };
        let all_avoid = before().next().is_some() && before().all(is_avoiding);
        if all_avoid { share } else { share.max(total / count as u64) }
    }

    /// Who has the window `left` by a member that is gone while nobody is busy: who else had part in it, or who paused
    /// last. If there is none left, nobody in the latter's place: its least window is no part of the whole.
    fn heirs(&self, left: ByteCount, members: &[MemberView]) -> Vec<MemberId> {
        let ids = || members.iter().map(|view| view.id);
        let holders: Vec<MemberId> = ids().filter(|id| self.busy.contains(id)).collect();
        if holders.is_empty() && !left.is_zero() {
            members.iter().max_by_key(|view| view.idle_since).map(|view| view.id).into_iter().collect()
        } else {
            holders
        }
    }

    /// Remembers how far those know the capacity that share the window, for when the last of them is gone.
    fn note_thresholds(&mut self, members: &[MemberView]) {
        let holders = || members.iter().filter(|view| self.busy.contains(&view.id));
        if holders().next().is_some() {
            self.thresholds = holders().map(|view| view.congestion.slow_start_threshold).sum();
        }
    }

    /// Whatever one has met, all have.
    fn on_fluctuation(
        &mut self,
        affected: MemberId,
        cause: Fluctuation,
        sent_at: Time,
        members: &[MemberView],
        orders: &mut Vec<Order>,
    ) {
        let others = || members.iter().filter(|view| view.id != affected);
        match cause {
            Fluctuation::Congestion => {
                let before = others().map(|view| Before {
                    member: view.id,
                    window: view.congestion.window,
                    slow_start_threshold: view.congestion.slow_start_threshold.unwrap_or(ByteCount::MAX),
                });
                self.stepped_back = Some((affected, before.collect()));
                let action = Action::Congestion { sent_at };
                orders.extend(others().map(|view| Order { member: view.id, action }));
            }
            Fluctuation::SlowStartExit => {
                let starting = others().filter(|view| view.congestion.slow_start_threshold.is_none());
                orders.extend(starting.map(|view| {
                    let slow_start_threshold = Some(view.congestion.window);
                    let adjustment = Adjustment { slow_start_threshold, ..Adjustment::default() };
                    Order { member: view.id, action: Action::Adjust(adjustment) }
                }));
            }
        }
    }

    /// The congestion was none: the others go back, too.
    fn on_undone(&mut self, member: MemberId, members: &[MemberView], orders: &mut Vec<Order>) {
        let Some((_, befores)) = self.stepped_back.take_if(|(culprit, _)| *culprit == member) else { return };
        for before in befores {
            let is_smaller =
                |view: &&MemberView| view.id == before.member && view.congestion.window < before.window;
            if members.iter().any(|view| is_smaller(&view)) {
                let adjustment = Adjustment {
                    window: Some(before.window),
                    slow_start_threshold: Some(before.slow_start_threshold),
                    ..Adjustment::default()
                };
                orders.push(Order { member: before.member, action: Action::Adjust(adjustment) });
            }
        }
    }
}

impl Group for Ensemble {
    fn on_event(&mut self, event: &MemberEvent, members: &[MemberView], orders: &mut Vec<Order>) {
        self.note_thresholds(members);
        match event.kind {
            MemberEventKind::Fluctuation { cause, sent_at, .. } => {
                self.on_fluctuation(event.member, cause, sent_at, members, orders);
            }
            MemberEventKind::Undone => self.on_undone(event.member, members, orders),
            MemberEventKind::Left { window } => self.divide(event, window, members, orders),
            MemberEventKind::Answered => {
                self.answered_at = Some(event.now);
                self.divide(event, ByteCount::ZERO, members, orders);
            }
            MemberEventKind::Joined | MemberEventKind::Resumed | MemberEventKind::Round => {
                self.divide(event, ByteCount::ZERO, members, orders);
            }
            // Not told to this policy.
            MemberEventKind::Acked(_)
            | MemberEventKind::Lost(_)
            | MemberEventKind::Marked { .. }
            | MemberEventKind::Refuted(_)
            | MemberEventKind::Collapsed => {}
        }
    }
}

#[cfg(test)]
mod tests;
