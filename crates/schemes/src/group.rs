//! Policies of the seam `group`: several connections of one client to one server, coordinated at the sender.

pub mod coordinated;
pub mod ensemble;
pub mod joint;
pub mod plain;

use posthaste_policy::group::MemberView;
use posthaste_units::{ByteCount, Time};

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
    use posthaste_policy::group::{Action, Group, MemberEvent, MemberEventKind, MemberId, Order};
    use posthaste_policy::{CongestionState, Phase};

    use super::*;
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
