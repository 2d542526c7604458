//! Group `coordinated`: parallel connections that learn from each other's events.
//!
//! - Claims: N connections start as one would, and what one of them finds out about the path all of them use: fewer
//!   slow starts end too early, and no connection is left behind with a small window.
//! - Source: the paper on coordinated parallel QUIC connections (mQUIC), sections 3 and 4; `d'` is 1.0 as its own
//!   figures demand (printed as 1.05 its recursion never ends). Its equations 2 to 5 relate windows that are one round
//!   trip apart, so fluctuations of several members within one round trip are one step of the recursion.
//! - Use when: the bottleneck is the client's own (a private network, one's own access link), or to repeat the paper.
//! - Breaks when: others share the bottleneck: after slow start the members are N flows and take N flows' share, up to
//!   17 times their windows are raised against a signal of congestion (RFC 9002 section 7.3.1 is then not kept).
//! - Experiments: `cg-baseline`, `cg-gain`, `cg-sync`, `cg-count`.

use posthaste_policy::group::{Action, Group, MemberEvent, MemberEventKind, MemberId, MemberView, Order};
use posthaste_policy::{
    Adjustment, CongestionFactory, Constant, Description, GroupFactory, Phase, PolicyText,
};
use posthaste_units::{ByteCount, Rate, Time};
use serde::Deserialize;

use super::mean_window;
use crate::Entry;

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "coordinated",
    claims: "parallel connections start as one, and share what each finds out about the path",
    source: "mQUIC, with d' = 1.0",
    use_when: "the bottleneck is the client's own, or to repeat the paper",
    breaks_when: "others share the bottleneck: N connections take the share of N flows, and more in slow start",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::group::<Parameters>(TEXT);

/// `g_0`: the growth of all windows that is assumed a round trip of slow start, and the greatest ratio of windows
/// that is left alone after it.
const INITIAL_GAIN: f64 = 1.5;
/// `b`: the part of its window that the affected member keeps.
const REDUCTION: f64 = 0.7;
/// `d`: slow start goes on while the gain is at least this.
const LEAST_GAIN: f64 = 1.05;
/// `d'`: the gain of the affected member.
const AFFECTED_GAIN: f64 = 1.0;
/// The greatest ratio of rates of model-based members that is left alone.
const RATE_RATIO: f64 = 2.0;

/// How much is coordinated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Slow start by network fluctuation events, windows or rates after it.
    #[default]
    Full,
    /// Only windows: levelled after each fluctuation, and after slow start where they have drifted apart. Each member
    /// leaves slow start on its own.
    WindowsOnly,
}

/// Parameters of [`Coordinated`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// How much is coordinated: `full` or `windows-only`.
    pub extent: Extent,
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let extent = match self.extent {
            Extent::Full => "full",
            Extent::WindowsOnly => "windows-only",
        };
        vec![
            Constant::new("extent", extent),
            Constant::new("g_0", INITIAL_GAIN),
            Constant::new("b", REDUCTION),
            Constant::new("d", LEAST_GAIN),
            Constant::new("d'", format!("{AFFECTED_GAIN:.1}")),
            Constant::new("greatest ratio of rates", format!("{RATE_RATIO:.1}")),
        ]
    }
}

impl GroupFactory for Parameters {
    fn build(&self, _congestion: &dyn CongestionFactory) -> Option<Box<dyn Group>> {
        Some(Box::new(Coordinated::new(*self)))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// Coordination as the paper has it; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Coordinated {
    parameters: Parameters,
    /// `g_(i-1)`.
    gain: f64,
    /// All members have left slow start for good.
    is_slow_start_over: bool,
    /// The only member has left slow start.
    has_left_alone: bool,
    /// When a fluctuation last changed the windows of all.
    reduced_at: Option<Time>,
    /// When windows or rates were last compared.
    compared_at: Option<Time>,
}

impl Coordinated {
    /// A group without members.
    pub const fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            gain: INITIAL_GAIN,
            is_slow_start_over: false,
            has_left_alone: false,
            reduced_at: None,
            compared_at: None,
        }
    }

    /// `g_i` of a group of this size after another fluctuation.
    fn next_gain(&self, size: usize) -> f64 {
        let others = size as f64 - 1.0;
        (REDUCTION * AFFECTED_GAIN + others * self.gain) / (REDUCTION + others)
    }

    /// A fluctuation while the members are in slow start.
    fn on_fluctuation(
        &mut self,
        event: &MemberEvent,
        prior_window: ByteCount,
        sent_at: Time,
        members: &[MemberView],
        orders: &mut Vec<Order>,
    ) {
        let affected = event.member;
        let reduced = ByteCount::from_f64(prior_window.as_f64() * REDUCTION);
        if let [alone] = members {
            // The recursion ends at once for one connection: that is the end of its own slow start. Those that join it
            // later begin with the recursion.
            if !std::mem::replace(&mut self.has_left_alone, true) {
                orders.push(Order { member: alone.id, action: Action::Adjust(leave_slow_start(reduced)) });
            }
            return;
        }
        self.has_left_alone = false;
        // What was sent before the last reduction says nothing of the windows after it.
        if self.reduced_at.is_some_and(|at| sent_at <= at) {
            orders.push(Order { member: affected, action: Action::Adjust(back_with(affected, members)) });
            return;
        }
        self.reduced_at = Some(event.now);
        let window = |member: &MemberView| {
            if member.id == affected { reduced } else { member.congestion.window }
        };
        self.gain = self.next_gain(members.len());
        self.is_slow_start_over = self.gain < LEAST_GAIN;
        let total: ByteCount = members.iter().map(window).sum();
        let share = total.as_f64() * self.gain / INITIAL_GAIN / members.len() as f64;
        for member in members {
            let adjustment = if self.is_slow_start_over {
                leave_slow_start(window(member))
            } else {
                let begins_anew = member.id == affected;
                Adjustment {
                    window: Some(ByteCount::from_f64(share)),
                    slow_start_threshold: begins_anew.then_some(ByteCount::MAX),
                    ..Adjustment::default()
                }
            };
            orders.push(Order { member: member.id, action: Action::Adjust(adjustment) });
        }
    }

    /// A fluctuation where only windows are coordinated: all get the mean, and the affected member has left slow start.
    fn level_after_fluctuation(
        &mut self,
        event: &MemberEvent,
        sent_at: Time,
        members: &[MemberView],
        orders: &mut Vec<Order>,
    ) {
        if members.len() < 2 || self.reduced_at.is_some_and(|at| sent_at <= at) {
            return;
        }
        self.reduced_at = Some(event.now);
        let mean = mean_window(members);
        for member in members {
            // Those that have left slow start must not begin it again with a window below their threshold.
            let adjustment = if member.id == event.member || !is_starting(member) {
                leave_slow_start(mean)
            } else {
                Adjustment { window: Some(mean), ..Adjustment::default() }
            };
            orders.push(Order { member: member.id, action: Action::Adjust(adjustment) });
        }
    }

    /// Once a round trip: members whose windows or rates have drifted apart get the mean.
    fn compare(&mut self, event: &MemberEvent, members: &[MemberView], orders: &mut Vec<Order>) {
        let round_trip =
            members.iter().find(|member| member.id == event.member).map(|view| view.rtt.smoothed);
        let is_due = match (self.compared_at, round_trip) {
            (Some(at), Some(round_trip)) => event.now.since(at) >= round_trip,
            _ => true,
        };
        if !is_due {
            return;
        }
        self.compared_at = Some(event.now);
        let adjustment = match rates(members) {
            Some(rates) if self.parameters.extent == Extent::Full => level_rates(&rates),
            Some(_) => None,
            // In slow start the windows are the fluctuations' business.
            None if self.parameters.extent == Extent::Full && !self.is_slow_start_over => None,
            None => level_windows(members),
        };
        let Some(adjustment) = adjustment else { return };
        orders.extend(
            members.iter().map(|member| Order { member: member.id, action: Action::Adjust(adjustment) }),
        );
    }
}

/// The affected member back in slow start, with the mean of what the others have.
fn back_with(affected: MemberId, members: &[MemberView]) -> Adjustment {
    let others = members.iter().filter(|member| member.id != affected);
    let total: ByteCount = others.map(|member| member.congestion.window).sum();
    let share = total.as_f64() / (members.len() as f64 - 1.0);
    Adjustment {
        window: Some(ByteCount::from_f64(share)),
        slow_start_threshold: Some(ByteCount::MAX),
        ..Adjustment::default()
    }
}

/// True before the end of the member's slow start.
fn is_starting(member: &MemberView) -> bool {
    member.congestion.phase == Phase::SlowStart || member.congestion.slow_start_threshold.is_none()
}

/// Congestion avoidance from this window on.
fn leave_slow_start(window: ByteCount) -> Adjustment {
    Adjustment { window: Some(window), slow_start_threshold: Some(window), ..Adjustment::default() }
}

/// The rates of members that all have a model of the path; `None` if one has not.
fn rates(members: &[MemberView]) -> Option<Vec<f64>> {
    members.iter().map(|member| member.model_rate.map(|rate| rate.as_bytes_per_second() as f64)).collect()
}

/// The least and the greatest; `None` of nothing.
fn extremes(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    Some((values.clone().reduce(f64::min)?, values.reduce(f64::max)?))
}

fn level_rates(rates: &[f64]) -> Option<Adjustment> {
    let (least, greatest) = extremes(rates.iter().copied())?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let rate = Some(Rate::from_bytes_per_second(mean as u64));
    (greatest > least * RATE_RATIO).then_some(Adjustment { rate, ..Adjustment::default() })
}

fn level_windows(members: &[MemberView]) -> Option<Adjustment> {
    if members.iter().any(is_starting) {
        return None;
    }
    let windows = members.iter().map(|member| member.congestion.window.as_f64());
    let (least, greatest) = extremes(windows)?;
    let mean = mean_window(members);
    // The threshold goes with it: a member that is raised must not begin slow start again.
    (greatest > least * INITIAL_GAIN).then_some(Adjustment {
        window: Some(mean),
        slow_start_threshold: Some(mean),
        ..Adjustment::default()
    })
}

impl Group for Coordinated {
    fn on_event(&mut self, event: &MemberEvent, members: &[MemberView], orders: &mut Vec<Order>) {
        match event.kind {
            MemberEventKind::Fluctuation { prior_window, sent_at, .. } => {
                // Model-based members leave startup by their own model.
                if rates(members).is_some() {
                    return;
                }
                match self.parameters.extent {
                    Extent::Full if self.is_slow_start_over => {}
                    Extent::Full => self.on_fluctuation(event, prior_window, sent_at, members, orders),
                    // After slow start the comparison once a round does it.
                    Extent::WindowsOnly if !members.iter().any(is_starting) => {}
                    Extent::WindowsOnly => self.level_after_fluctuation(event, sent_at, members, orders),
                }
            }
            MemberEventKind::Round => self.compare(event, members, orders),
            MemberEventKind::Joined
            | MemberEventKind::Left { .. }
            | MemberEventKind::Undone
            | MemberEventKind::Resumed
            | MemberEventKind::Answered
            | MemberEventKind::Acked(_)
            | MemberEventKind::Lost(_)
            | MemberEventKind::Marked { .. }
            | MemberEventKind::Refuted(_)
            | MemberEventKind::Collapsed => {}
        }
    }
}

#[cfg(test)]
mod tests;
