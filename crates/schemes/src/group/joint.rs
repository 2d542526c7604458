//! Group `joint`: parallel connections with one `bbr3` between them.
//!
//! - Claims: N connections of a client are one flow to everybody else; a late one sends at its part of the rate with its
//!   first flight, and one that pauses or ends leaves its part to those that go on.
//! - Source: our own, after the Congestion Manager (RFC 3124); the safe form of `coordinated` for model-based senders.
//! - Use when: clients open several connections to one server, others share their path, and BBR is wanted.
//! - Breaks when: the connections take different paths (there is one model for both).
//! - Experiment: `cg-share`.
//!
//! Why one model instead of one for each: N of them probe N times as often, each adds a datagram where one flow adds one,
//! and each takes the losses of the others' probes for the path's own; no bound on each makes of that one flow's share.
//! So what the members send, what arrives and what is lost is added up (`joint/merge.rs`), one controller hears of the
//! sums as if a single connection had sent it all, and its window and rate are divided: equally, but for what members
//! without enough data leave over. Why `bbr3`: the paper's `bbr1` passes over losses and starves whoever backs off for
//! them, so that one flow of it already takes more than a safe form may.

mod merge;

use std::any::Any;

use posthaste_policy::group::{Action, Group, MemberEvent, MemberEventKind, MemberId, MemberView, Order};
use posthaste_policy::{
    Adjustment, Congestion, CongestionFactory, Constant, Description, GroupFactory, Lead, Pacing, PathLimits,
    PolicyText, Seam,
};
use posthaste_units::{ByteCount, Rate};
use serde::Deserialize;

use crate::congestion::bbr3::{self, Bbr3};
use crate::{Entry, Need, Property};
use merge::Merge;

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "joint",
    claims: "parallel connections are one BBRv3 flow to everybody else, and a late one starts with its part",
    source: "after RFC 3124; the safe form of `coordinated` for BBR",
    use_when: "clients open several connections to one server and others share their path",
    breaks_when: "the connections take different paths: there is one model for both",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::group::<Parameters>(TEXT).needing(&[Need {
    seam: Seam::Congestion,
    property: Property::ServesGroup,
    reason: "it has one BBRv3 for all connections: it needs [congestion.bbr3]; for newreno and cubic there is \
             [group.ensemble]",
}]);

/// Parameters of [`Joint`]: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {}

impl GroupFactory for Parameters {
    fn build(&self, congestion: &dyn CongestionFactory) -> Option<Box<dyn Group>> {
        let congestion: &dyn Any = congestion;
        let parameters = *congestion.downcast_ref::<bbr3::Parameters>()?;
        Some(Box::new(Joint::new(parameters)))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(constants())
    }
}

/// A change of the whole window below a datagram, or of the rate below this part, is not worth telling the members.
const WORTH_TELLING: f64 = 0.01;

/// The constants, for people.
pub fn constants() -> Vec<Constant> {
    vec![
        Constant::new("model", "one for all members"),
        Constant::new("division", "equal, less what is not used"),
    ]
}

/// One controller for all members; see the module.
#[derive(Debug)]
pub struct Joint {
    parameters: bbr3::Parameters,
    /// Built for the first member.
    model: Option<Bbr3>,
    merge: Merge,
    /// The division that the members know of.
    told: Option<Division>,
}

/// What is divided, and by whom.
#[derive(Debug, Clone, PartialEq)]
struct Division {
    window: ByteCount,
    pacing: Option<Pacing>,
    /// Those that have something in flight and are heard, and whether they have more to send than their part.
    busy: Vec<(MemberId, bool)>,
}

impl Division {
    /// True if `next` is not worth telling to members that know of this one.
    fn is_much_like(&self, next: &Self, datagram: ByteCount) -> bool {
        let rate = |pacing: Option<Pacing>| pacing.map(|pacing| pacing.rate.as_bytes_per_second() as f64);
        let is_near = match (rate(self.pacing), rate(next.pacing)) {
            (Some(before), Some(after)) => (before - after).abs() <= before * WORTH_TELLING,
            (before, after) => before == after,
        };
        let (least, most) = (self.window.min(next.window), self.window.max(next.window));
        self.busy == next.busy && is_near && most - least < datagram
    }
}

impl Joint {
    /// A group without members, whose connections have this controller.
    pub fn new(parameters: bbr3::Parameters) -> Self {
        Self { parameters, model: None, merge: Merge::default(), told: None }
    }

    /// Another member: until anything has arrived, each brings its part of the initial window.
    fn join(&mut self, event: &MemberEvent, members: &[MemberView]) {
        let Some(view) = members.iter().find(|view| view.id == event.member) else { return };
        self.merge.join(view);
        match &mut self.model {
            None => {
                let limits = PathLimits {
                    max_datagram_size: datagram(view),
                    initial_window: view.congestion.window,
                    seed: event.now.as_nanos(),
                };
                self.model = Some(Bbr3::new(self.parameters, limits));
            }
            Some(model) if self.merge.has_delivered_nothing() => {
                let window = Some(model.window() + view.congestion.window);
                model.adjust(&Adjustment { window, ..Adjustment::default() });
            }
            Some(_) => {}
        }
    }

    /// One less: until anything has arrived, what it brought goes with it. Whoever joins and leaves again and again would
    /// add it each time otherwise.
    fn leave(&mut self, member: MemberId) {
        let brought = self.merge.leave(member);
        let model = self.model.as_mut().filter(|_| self.merge.has_delivered_nothing());
        if let (Some(brought), Some(model)) = (brought, model) {
            let window = Some(model.window() - brought);
            model.adjust(&Adjustment { window, ..Adjustment::default() });
        }
    }

    /// Lets the controller hear of what has happened to one of the members.
    fn hear(&mut self, event: &MemberEvent, members: &[MemberView]) {
        let Some(model) = &mut self.model else { return };
        let Some(view) = members.iter().find(|view| view.id == event.member) else { return };
        match event.kind {
            MemberEventKind::Acked(ack) => self.merge.on_ack(event.now, &ack, view, members, model),
            MemberEventKind::Lost(loss) => self.merge.on_loss(event.now, &loss, view, members, model),
            MemberEventKind::Marked { sent_at } => {
                model.on_congestion_experienced(event.now, sent_at, merge::flight(members, model));
            }
            MemberEventKind::Refuted(spurious) => model.on_spurious_loss(&spurious),
            // While others are acknowledged the path carries something.
            MemberEventKind::Collapsed if self.merge.was_silent_until(event.now) => {
                model.on_persistent_congestion(event.now);
            }
            MemberEventKind::Resumed => self.merge.on_resumed(event.now, view, members, model),
            _ => {}
        }
    }

    /// Divides window and rate among the busy members, if that is not as they know it.
    fn divide(&mut self, event: &MemberEvent, members: &[MemberView], orders: &mut Vec<Order>) {
        let Some(model) = &self.model else { return };
        let joins = |view: &MemberView| event.kind == MemberEventKind::Joined && view.id == event.member;
        let is_busy = |view: &&MemberView| super::is_busy(view, event.now) || joins(view);
        let busy: Vec<(MemberId, bool)> = members
            .iter()
            .filter(is_busy)
            .map(|view| (view.id, !self.merge.is_app_limited(view.id)))
            .collect();
        let Some(first) = members.first() else { return };
        let view = members.iter().find(|view| view.id == event.member).unwrap_or(first);
        let division = Division { window: model.window(), pacing: model.pacing(&view.rtt), busy };
        if self.told.as_ref().is_some_and(|told| told.is_much_like(&division, datagram(view))) {
            return;
        }
        let parts = parts(&division, members);
        let windows = in_datagrams(division.window, &parts, datagram(view));
        for (view, (part, window)) in members.iter().zip(parts.into_iter().zip(windows)) {
            orders.push(Order { member: view.id, action: Action::Lead(lead(&division, part, window, view)) });
        }
        self.told = Some(division);
    }
}

/// The part of the whole that each member gets. Members without enough data keep their equal part to begin with
/// again, but what they do not use of it is the others'.
fn parts(division: &Division, members: &[MemberView]) -> Vec<f64> {
    let busy = division.busy.len().max(1) as f64;
    let whole = division.window.as_f64().max(1.0);
    let is_hungry =
        |id: MemberId| division.busy.iter().find(|(member, _)| *member == id).map(|found| found.1);
    let used: f64 = members
        .iter()
        .filter(|view| is_hungry(view.id) == Some(false))
        .map(|view| (view.in_flight.as_f64() / whole).min(1.0 / busy))
        .sum();
    let hungry = division.busy.iter().filter(|found| found.1).count().max(1) as f64;
    let part = |view: &MemberView| match is_hungry(view.id) {
        Some(true) => (1.0 - used) / hungry,
        Some(false) => 1.0 / busy,
        None => 0.0,
    };
    members.iter().map(part).collect()
}

/// The parts of a window in whole datagrams, since what is less can go out only as a smaller one, if at all: those whose
/// parts lack least of a datagram more get one of what the others have too much. Together never more than the window.
fn in_datagrams(window: ByteCount, parts: &[f64], datagram: ByteCount) -> Vec<ByteCount> {
    let size = datagram.get().max(1);
    let exact: Vec<u64> = parts.iter().map(|part| (window.as_f64() * part) as u64).collect();
    let rest = |index: &usize| exact[*index] % size;
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(rest(index)));
    let spare = order.iter().map(rest).sum::<u64>() / size;
    let mut windows: Vec<ByteCount> =
        (0..exact.len()).map(|index| ByteCount::new(exact[index] - rest(&index))).collect();
    for index in order.into_iter().take(spare as usize) {
        windows[index] += datagram;
    }
    windows
}

fn lead(division: &Division, part: f64, window: ByteCount, view: &MemberView) -> Lead {
    let window = window.max(view.least_window);
    let pacing = division.pacing.map(|pacing| {
        // One that pauses may begin again with its equal part; it is told better as soon as it does.
        let part = if part > 0.0 { part } else { 1.0 / (division.busy.len() as f64 + 1.0) };
        let scaled = |value: u64| (value as f64 * part) as u64;
        let rate = Rate::from_bytes_per_second(scaled(pacing.rate.as_bytes_per_second()).max(1));
        Pacing { rate, burst: ByteCount::new(scaled(pacing.burst.get())).max(datagram(view)) }
    });
    Lead { window, pacing }
}

/// The size of a member's datagrams.
fn datagram(view: &MemberView) -> ByteCount {
    (view.least_window / 2).max(ByteCount::new(1))
}

impl Group for Joint {
    fn is_told_of_acks(&self) -> bool {
        true
    }

    fn on_event(&mut self, event: &MemberEvent, members: &[MemberView], orders: &mut Vec<Order>) {
        match event.kind {
            MemberEventKind::Joined => self.join(event, members),
            MemberEventKind::Left { .. } => self.leave(event.member),
            _ => self.hear(event, members),
        }
        self.divide(event, members, orders);
    }
}

#[cfg(test)]
mod tests;
