use posthaste_policy::group::Fluctuation;
use posthaste_units::Duration;

use super::*;
use crate::group::testing::{member, obey, orders};
use crate::testing::{DATAGRAM, datagrams};

const NOW: Time = Time::from_nanos(1_000_000_000);

fn fluctuation(prior: u64) -> MemberEventKind {
    fluctuation_of(prior, NOW)
}

/// One that a packet shows which was sent at `sent_at`.
fn fluctuation_of(prior: u64, sent_at: Time) -> MemberEventKind {
    MemberEventKind::Fluctuation {
        cause: Fluctuation::SlowStartExit,
        prior_window: DATAGRAM * prior,
        sent_at,
    }
}

/// The end of the round trip `count`.
fn after(count: u64) -> Time {
    NOW + Duration::from_millis(50 * count)
}

fn in_slow_start(size: u64, window: u64) -> Vec<MemberView> {
    (0..size).map(|id| member(id, window, Phase::SlowStart)).collect()
}

/// The number of the fluctuation that ends slow start for a group of this size, and the gain then.
fn exit(size: u64) -> (u32, f64) {
    let mut group = Coordinated::new(Parameters::default());
    let mut members = in_slow_start(size, 1000);
    for count in 1..100 {
        let prior = members[0].congestion.window.get() / DATAGRAM.get();
        // Each is about packets that were sent after the one before.
        let (sent_at, now) = (after(u64::from(2 * count)), after(u64::from(2 * count + 1)));
        let orders = orders(&mut group, now, 0, fluctuation_of(prior, sent_at), &members);
        obey(&mut members, &orders);
        if group.is_slow_start_over {
            return (count, group.gain);
        }
    }
    panic!("slow start never ends");
}

#[test]
fn the_published_counts_of_fluctuations_end_slow_start() {
    // The paper's figures for two and six connections, and what follows from its recursion for three and for one.
    assert!((Coordinated::new(Parameters::default()).next_gain(1) - 1.0).abs() < 1e-9, "at once");
    for (size, count, gain) in [(2, 5, 1.035), (3, 8, 1.045), (6, 18, 1.047)] {
        let (fluctuations, last) = exit(size);
        assert_eq!(fluctuations, count, "{size} connections");
        assert!((last - gain).abs() < 0.0005, "{size} connections: {last}");
    }
}

#[test]
fn a_fluctuation_scales_all_windows_and_puts_only_the_affected_member_back_into_slow_start() {
    let mut group = Coordinated::new(Parameters::default());
    let mut members = in_slow_start(3, 90);
    members[1] = member(1, 30, Phase::CongestionAvoidance);
    // 90 + 63 + 90 in all; g_1 = (0.7 + 2 * 1.5) / 2.7.
    let orders = orders(&mut group, NOW, 1, fluctuation(90), &members);
    let share = 243.0 * (3.7 / 2.7) / 1.5 / 3.0;
    assert_eq!(orders.len(), 3);
    for order in &orders {
        let Action::Adjust(adjustment) = order.action else { panic!("{order:?}") };
        assert!((datagrams(adjustment.window.unwrap()) - share).abs() < 0.01);
        let restarts = (order.member == MemberId(1)).then_some(ByteCount::MAX);
        assert_eq!(adjustment.slow_start_threshold, restarts);
    }
}

#[test]
fn fluctuations_of_one_round_trip_are_one_step_of_the_recursion() {
    let mut group = Coordinated::new(Parameters::default());
    let mut members = in_slow_start(3, 90);
    let first = orders(&mut group, after(1), 1, fluctuation_of(90, NOW), &members);
    obey(&mut members, &first);
    let (gain, window) = (group.gain, members[0].congestion.window);
    // The same overflow at another member: sent before the windows were reduced.
    members[2] = member(2, 40, Phase::Recovery);
    let second = orders(&mut group, after(1), 2, fluctuation_of(57, NOW), &members);
    assert_eq!(second.len(), 1, "{second:?}");
    obey(&mut members, &second);
    assert!((group.gain - gain).abs() < 1e-9);
    assert_eq!(members[2].congestion.window, window, "back with the others");
    assert_eq!(members[2].congestion.phase, Phase::SlowStart);
    // Sent after it: the next step.
    let third = orders(&mut group, after(3), 0, fluctuation_of(57, after(2)), &members);
    assert_eq!(third.len(), 3);
    assert!(group.gain < gain);
}

#[test]
fn the_last_fluctuation_ends_slow_start_for_all_and_for_good() {
    let mut group = Coordinated { gain: 1.05, ..Coordinated::new(Parameters::default()) };
    let mut members = in_slow_start(2, 100);
    let last = orders(&mut group, NOW, 0, fluctuation(100), &members);
    obey(&mut members, &last);
    assert_eq!(
        members.iter().map(|view| datagrams(view.congestion.window)).collect::<Vec<_>>(),
        [70.0, 100.0]
    );
    assert!(members.iter().all(|view| view.congestion.phase == Phase::CongestionAvoidance));
    assert_eq!(orders(&mut group, NOW, 1, fluctuation(100), &members), [], "from here on each reacts alone");
}

#[test]
fn windows_that_drift_apart_are_levelled_once_a_round_trip() {
    let mut group = Coordinated { is_slow_start_over: true, ..Coordinated::new(Parameters::default()) };
    let avoiding = |id, window| member(id, window, Phase::CongestionAvoidance);
    let near = [avoiding(0, 100), avoiding(1, 150)];
    assert_eq!(orders(&mut group, NOW, 0, MemberEventKind::Round, &near), [], "a ratio of 1.5 is left alone");
    let far = [avoiding(0, 100), avoiding(1, 152)];
    let soon = NOW + Duration::from_millis(49);
    assert_eq!(orders(&mut group, soon, 0, MemberEventKind::Round, &far), [], "not twice in a round trip");
    let mut far = far.to_vec();
    let levelled = orders(&mut group, NOW + Duration::from_millis(50), 1, MemberEventKind::Round, &far);
    obey(&mut far, &levelled);
    assert!(far.iter().all(|view| view.congestion.window == DATAGRAM * 126));
    assert!(far.iter().all(|view| view.congestion.phase == Phase::CongestionAvoidance));
}

#[test]
fn with_windows_alone_fluctuations_level_windows_and_slow_start_is_each_members_own() {
    let mut group = Coordinated::new(Parameters { extent: Extent::WindowsOnly });
    let mut members = in_slow_start(3, 90);
    members[1] = member(1, 60, Phase::CongestionAvoidance);
    let levelled = orders(&mut group, after(1), 1, fluctuation_of(90, NOW), &members);
    obey(&mut members, &levelled);
    assert!(members.iter().all(|view| view.congestion.window == DATAGRAM * 80));
    assert_eq!(members[0].congestion.phase, Phase::SlowStart);
    assert_eq!(members[1].congestion.phase, Phase::CongestionAvoidance);
    let same = fluctuation_of(80, NOW);
    assert_eq!(orders(&mut group, after(1), 0, same, &members), [], "of the same round trip");
    let mixed = [member(0, 10, Phase::SlowStart), member(1, 90, Phase::CongestionAvoidance)];
    assert_eq!(orders(&mut group, NOW, 1, MemberEventKind::Round, &mixed), [], "one is still finding out");
    let both = [member(0, 10, Phase::Recovery), member(1, 90, Phase::CongestionAvoidance)];
    let next = fluctuation_of(90, after(2));
    assert_eq!(orders(&mut group, after(3), 1, next, &both), [], "the comparison once a round does it");
    assert_eq!(orders(&mut group, after(3), 1, MemberEventKind::Round, &both).len(), 2);
}

#[test]
fn members_with_a_model_share_rates_and_nothing_else() {
    let rated = |id, megabytes: u64| MemberView {
        model_rate: Some(Rate::from_bytes_per_second(megabytes * 1_000_000)),
        ..member(id, 100, Phase::Named("probe_bw_cruise"))
    };
    let mut group = Coordinated::new(Parameters::default());
    let mut members = [rated(0, 1), rated(1, 4), rated(2, 1)];
    assert_eq!(orders(&mut group, NOW, 0, fluctuation(100), &members), []);
    let levelled = orders(&mut group, NOW, 0, MemberEventKind::Round, &members);
    obey(&mut members, &levelled);
    assert!(members.iter().all(|view| view.model_rate == Some(Rate::from_bytes_per_second(2_000_000))));
    assert!(members.iter().all(|view| datagrams(view.congestion.window).eq(&100.0)));
    let near = [rated(0, 2), rated(1, 4)];
    let later = NOW + Duration::from_secs(1);
    assert_eq!(orders(&mut group, later, 0, MemberEventKind::Round, &near), [], "a ratio of 2 is left alone");
}

#[test]
fn what_a_connection_finds_before_others_have_joined_ends_no_slow_start_but_its_own() {
    let mut group = Coordinated::new(Parameters::default());
    let mut members = in_slow_start(1, 100);
    let own = orders(&mut group, NOW, 0, fluctuation(100), &members);
    obey(&mut members, &own);
    assert_eq!(members[0].congestion.window, DATAGRAM * 70);
    assert_eq!(members[0].congestion.phase, Phase::CongestionAvoidance);
    assert_eq!(orders(&mut group, NOW, 0, fluctuation(100), &members), [], "it has left: each reacts alone");
    members.extend([1, 2].map(|id| member(id, 10, Phase::SlowStart)));
    let coordinated = orders(&mut group, NOW, 1, fluctuation(10), &members);
    assert_eq!(coordinated.len(), 3, "the first of eight for three");
    assert!((group.gain - 3.7 / 2.7).abs() < 1e-9, "{}", group.gain);
}
