use posthaste_policy::Phase;
use posthaste_units::Duration;

use super::*;
use crate::group::testing::{member, obey, orders};
use crate::testing::{DATAGRAM, datagrams};

const NOW: Time = Time::from_nanos(1_000_000_000);
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// A group whose members have joined with these windows.
fn joined(windows: &[u64], phase: Phase) -> (Ensemble, Vec<MemberView>) {
    let mut group = Ensemble::new();
    let mut members = Vec::new();
    for (id, window) in windows.iter().enumerate() {
        members.push(member(id as u64, *window, phase));
        let orders = orders(&mut group, NOW, id as u64, MemberEventKind::Joined, &members);
        obey(&mut members, &orders);
    }
    (group, members)
}

fn windows(members: &[MemberView]) -> Vec<f64> {
    members.iter().map(|view| datagrams(view.congestion.window)).collect()
}

#[test]
fn a_late_member_gets_its_part_of_what_the_others_know() {
    let (mut group, mut members) = joined(&[120], Phase::CongestionAvoidance);
    members.push(member(1, 10, Phase::SlowStart));
    let division = orders(&mut group, NOW, 1, MemberEventKind::Joined, &members);
    assert!(
        division.iter().all(|order| matches!(order.action, Action::Share(share) if share.controllers == 2))
    );
    obey(&mut members, &division);
    assert_eq!(windows(&members), [65.0, 65.0], "what it brought is counted in");
    assert!(members.iter().all(|view| view.congestion.phase == Phase::CongestionAvoidance));
}

#[test]
fn members_that_join_in_slow_start_stay_in_it() {
    let (_, members) = joined(&[4, 4, 4], Phase::SlowStart);
    assert_eq!(windows(&members), [4.0; 3]);
    assert!(members.iter().all(|view| view.congestion.phase == Phase::SlowStart));
}

#[test]
fn a_member_that_ends_leaves_its_part_to_the_others() {
    let (mut group, mut members) = joined(&[30, 30, 30], Phase::CongestionAvoidance);
    members.remove(1);
    let left = MemberEventKind::Left { window: DATAGRAM * 30 };
    let division = orders(&mut group, NOW, 1, left, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [45.0, 45.0]);
    members.remove(0);
    let left = MemberEventKind::Left { window: DATAGRAM * 45 };
    let division = orders(&mut group, NOW, 0, left, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [90.0], "the last has all of it");
    members.clear();
    let left = MemberEventKind::Left { window: DATAGRAM * 90 };
    assert_eq!(orders(&mut group, NOW, 2, left, &members), []);
}

#[test]
fn a_member_that_pauses_leaves_its_part_after_a_round_trip_and_gets_it_back_at_once() {
    let (mut group, mut members) = joined(&[40, 40], Phase::CongestionAvoidance);
    members[0].idle_since = Some(NOW);
    let soon = NOW + Duration::from_millis(49);
    assert_eq!(orders(&mut group, soon, 1, MemberEventKind::Round, &members), [], "not within a round trip");
    let later = NOW + Duration::from_millis(50);
    let division = orders(&mut group, later, 1, MemberEventKind::Round, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [2.0, 80.0]);
    members[0].idle_since = None;
    let division = orders(&mut group, later, 0, MemberEventKind::Resumed, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [40.0, 40.0], "and nothing for the pause");
}

/// Two members, of which the second has paused and left its part to the first.
fn one_of_two_pauses(phase: Phase) -> (Ensemble, Vec<MemberView>) {
    let (mut group, mut members) = joined(&[40, 40], phase);
    members[1].idle_since = Some(NOW);
    let division = orders(&mut group, NOW + Duration::from_millis(50), 0, MemberEventKind::Round, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [80.0, 2.0]);
    (group, members)
}

/// The first of them leaves, and the second goes on a second later.
fn the_other_goes_on(group: &mut Ensemble, members: &mut Vec<MemberView>) {
    let later = NOW + Duration::from_secs(1);
    let window = members.remove(0).congestion.window;
    let bequest = orders(group, later, 0, MemberEventKind::Left { window }, members);
    obey(members, &bequest);
    members[0].idle_since = None;
    let division = orders(group, later + Duration::from_secs(1), 1, MemberEventKind::Resumed, members);
    obey(members, &division);
}

#[test]
fn what_the_last_busy_member_had_waits_for_the_first_that_goes_on() {
    let (mut group, mut members) = one_of_two_pauses(Phase::CongestionAvoidance);
    the_other_goes_on(&mut group, &mut members);
    assert_eq!(windows(&members), [80.0]);
    assert_eq!(members[0].congestion.slow_start_threshold, Some(DATAGRAM * 80));
}

#[test]
fn a_slow_start_that_its_last_member_leaves_goes_on_with_the_next() {
    let (mut group, mut members) = one_of_two_pauses(Phase::SlowStart);
    the_other_goes_on(&mut group, &mut members);
    assert_eq!(windows(&members), [80.0]);
    assert_eq!(members[0].congestion.slow_start_threshold, None, "the capacity is unknown");
}

#[test]
fn a_threshold_that_was_not_reached_is_inherited_too() {
    let (mut group, mut members) = one_of_two_pauses(Phase::CongestionAvoidance);
    // Persistent congestion (RFC 9002 section 7.6.2).
    members[0].congestion.window = DATAGRAM * 2;
    members[0].congestion.slow_start_threshold = Some(DATAGRAM * 40);
    assert_eq!(orders(&mut group, NOW + ROUND_TRIP * 2, 0, MemberEventKind::Round, &members), []);
    the_other_goes_on(&mut group, &mut members);
    assert_eq!(windows(&members), [2.0]);
    assert_eq!(members[0].congestion.slow_start_threshold, Some(DATAGRAM * 40));
}

#[test]
fn who_paused_last_inherits_and_hands_over_to_whoever_goes_on() {
    let (mut group, mut members) = joined(&[40, 40, 40], Phase::CongestionAvoidance);
    members[1].idle_since = Some(NOW);
    members[2].idle_since = Some(NOW - ROUND_TRIP);
    let division = orders(&mut group, NOW + ROUND_TRIP, 0, MemberEventKind::Round, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [120.0, 2.0, 2.0]);
    let later = NOW + Duration::from_secs(1);
    let window = members.remove(0).congestion.window;
    let bequest = orders(&mut group, later, 0, MemberEventKind::Left { window }, &members);
    obey(&mut members, &bequest);
    assert_eq!(windows(&members), [120.0, 2.0]);
    members[1].idle_since = None;
    let division = orders(&mut group, later, 2, MemberEventKind::Resumed, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [2.0, 120.0]);
    assert_eq!(members[1].congestion.slow_start_threshold, Some(DATAGRAM * 120));
}

#[test]
fn who_goes_to_another_group_takes_its_window_along() {
    let (mut group, mut members) = one_of_two_pauses(Phase::CongestionAvoidance);
    members.remove(0);
    let gone = MemberEventKind::Left { window: ByteCount::ZERO };
    let later = NOW + Duration::from_secs(1);
    assert_eq!(orders(&mut group, later, 0, gone, &members), [], "there is nothing to inherit");
    members.push(member(2, 30, Phase::CongestionAvoidance));
    let division = orders(&mut group, later, 2, MemberEventKind::Joined, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [2.0, 30.0]);
    members.pop();
    assert_eq!(orders(&mut group, later, 2, gone, &members), []);
    members[0].idle_since = None;
    let division = orders(&mut group, later, 1, MemberEventKind::Resumed, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [2.0]);
    assert_eq!(members[0].congestion.phase, Phase::SlowStart, "the capacity is as good as unknown");
}

#[test]
fn those_that_shared_the_window_and_pause_inherit_before_others() {
    let (mut group, mut members) = joined(&[40, 40, 40], Phase::CongestionAvoidance);
    for view in &mut members {
        view.idle_since = Some(NOW);
    }
    members.remove(1);
    let left = MemberEventKind::Left { window: DATAGRAM * 40 };
    let bequest = orders(&mut group, NOW + Duration::from_secs(1), 1, left, &members);
    obey(&mut members, &bequest);
    assert_eq!(windows(&members), [60.0, 60.0]);
    // One that has no part leaves none.
    let gone = MemberEventKind::Left { window: DATAGRAM * 40 };
    assert_eq!(orders(&mut group, NOW + Duration::from_secs(1), 9, gone, &members), []);
}

#[test]
fn congestion_of_one_is_that_of_all() {
    let (mut group, mut members) = joined(&[40, 40, 40], Phase::CongestionAvoidance);
    let sent_at = NOW - Duration::from_millis(30);
    let event =
        MemberEventKind::Fluctuation { cause: Fluctuation::Congestion, prior_window: DATAGRAM * 40, sent_at };
    let steps = orders(&mut group, NOW, 1, event, &members);
    let action = Action::Congestion { sent_at };
    assert_eq!(
        steps,
        [0, 2].map(|id| Order { member: MemberId(id), action }),
        "the affected one has reacted"
    );
    obey(&mut members, &steps);
    assert_eq!(
        orders(&mut group, NOW, 0, MemberEventKind::Undone, &members),
        [],
        "another's undo undoes its own"
    );
    let undone = orders(&mut group, NOW, 1, MemberEventKind::Undone, &members);
    obey(&mut members, &undone);
    assert_eq!(windows(&members), [40.0; 3]);
    assert_eq!(orders(&mut group, NOW, 1, MemberEventKind::Undone, &members), [], "once");
}

#[test]
fn slow_start_ends_for_all_at_once() {
    let (mut group, mut members) = joined(&[40, 40], Phase::SlowStart);
    let event = MemberEventKind::Fluctuation {
        cause: Fluctuation::SlowStartExit,
        prior_window: DATAGRAM * 40,
        sent_at: NOW,
    };
    let exits = orders(&mut group, NOW, 0, event, &members);
    assert_eq!(exits.len(), 1);
    obey(&mut members, &exits);
    assert_eq!(members[1].congestion.slow_start_threshold, Some(DATAGRAM * 40));
    assert_eq!(windows(&members), [40.0, 40.0]);
}

#[test]
fn a_part_is_never_below_what_a_controller_works_with() {
    let (_, members) = joined(&[2, 2, 2, 2, 2, 2, 2, 2], Phase::CongestionAvoidance);
    assert_eq!(windows(&members), [2.0; 8]);
}

/// Half a second before [`NOW`].
const EARLIER: Time = Time::from_nanos(500_000_000);

#[test]
fn a_member_whose_peer_is_silent_hands_its_part_back_until_it_is_heard_again() {
    let (mut group, mut members) = joined(&[40, 40, 40], Phase::CongestionAvoidance);
    members[0].silent_since = Some(EARLIER);
    let division = orders(&mut group, NOW, 1, MemberEventKind::Round, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [2.0, 60.0, 60.0]);
    members[0].silent_since = None;
    let later = NOW + Duration::from_millis(100);
    let division = orders(&mut group, later, 0, MemberEventKind::Answered, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [40.0; 3]);
}

#[test]
fn nobody_inherits_from_a_silence_that_all_shared() {
    let (mut group, mut members) = joined(&[40, 40, 40], Phase::CongestionAvoidance);
    for view in &mut members {
        view.silent_since = Some(EARLIER);
    }
    // The first to be heard again has collapsed, as the others will.
    members[1].silent_since = None;
    members[1].congestion.window = DATAGRAM * 2;
    let division = orders(&mut group, NOW, 1, MemberEventKind::Answered, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [2.0; 3]);
    let soon = NOW + Duration::from_millis(50);
    members[2].silent_since = None;
    let division = orders(&mut group, soon, 2, MemberEventKind::Answered, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [2.0; 3]);

    // A silence that began after the answer is the member's own again.
    members[1].congestion.window = DATAGRAM * 30;
    members[2].congestion.window = DATAGRAM * 30;
    members[2].silent_since = Some(soon + Duration::from_millis(500));
    let later = soon + Duration::from_secs(1);
    let division = orders(&mut group, later, 1, MemberEventKind::Round, &members);
    obey(&mut members, &division);
    assert_eq!(windows(&members), [2.0, 60.0, 2.0]);
}
