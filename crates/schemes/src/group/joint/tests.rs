use posthaste_policy::Phase;
use posthaste_policy::group::{MAX_MEMBERS, MemberAck, MemberLoss};
use posthaste_policy::sample::SpuriousSample;
use posthaste_units::{Duration, Time};
use proptest::prelude::*;

use super::*;
use crate::group::testing::{member, obey, orders};
use crate::testing::{DATAGRAM, datagrams};

const NOW: Time = Time::from_nanos(1_000_000_000);
const ROUND_TRIP: Duration = Duration::from_millis(50);

fn new() -> Joint {
    Joint::new(bbr3::Parameters::default())
}

/// A group whose members have joined with windows of so many datagrams.
fn joined(windows: &[u64]) -> (Joint, Vec<MemberView>) {
    let mut group = new();
    let mut members = Vec::new();
    for (id, window) in windows.iter().enumerate() {
        members.push(member(id as u64, *window, Phase::SlowStart));
        tell(&mut group, NOW, id as u64, MemberEventKind::Joined, &mut members);
    }
    (group, members)
}

/// Tells the group, and carries out what it orders.
fn tell(group: &mut Joint, now: Time, id: u64, kind: MemberEventKind, members: &mut [MemberView]) -> usize {
    let orders = orders(group, now, id, kind, members);
    obey(members, &orders);
    orders.len()
}

fn windows(members: &[MemberView]) -> Vec<f64> {
    members.iter().map(|view| datagrams(view.congestion.window)).collect()
}

fn total(members: &[MemberView]) -> f64 {
    windows(members).iter().sum()
}

/// The sum of the members' rates, in bytes a second, as they were told last.
fn rate(group: &Joint) -> f64 {
    let pacing = group.told.as_ref().and_then(|told| told.pacing).unwrap();
    pacing.rate.as_bytes_per_second() as f64
}

/// All members send a datagram each in turn, one a millisecond in all, which arrives after a round trip: 1.2 MB/s.
fn run(group: &mut Joint, members: &mut [MemberView], from: Time, milliseconds: u64) -> Time {
    let mut now = from;
    for step in 0..milliseconds {
        now += Duration::from_millis(1);
        let index = step as usize % members.len();
        members[index].delivered += DATAGRAM;
        members[index].in_flight = DATAGRAM * 50 / members.len() as u64;
        let sent_at = now - ROUND_TRIP;
        let ack = MemberAck { acked: DATAGRAM, sent_at, app_limited: false };
        let id = members[index].id.0;
        tell(group, now, id, MemberEventKind::Acked(ack), members);
    }
    now
}

#[test]
fn members_that_join_at_the_beginning_bring_their_part_of_the_initial_window() {
    let (_, members) = joined(&[4, 4, 4]);
    assert_eq!(windows(&members), [4.0; 3]);
}

#[test]
fn what_all_deliver_together_is_the_models_rate_however_many_they_are() {
    for count in [1, 2, 3, 8] {
        let (mut group, mut members) = joined(&vec![4; count]);
        run(&mut group, &mut members, NOW, 2_000);
        let rate = rate(&group);
        assert!((1_000_000.0..1_600_000.0).contains(&rate), "{count} members: {rate}");
        // Two bandwidth-delay products of 50 datagrams, and a little for the quanta.
        let total = total(&members);
        assert!((50.0..125.0).contains(&total), "{count} members: {total}");
    }
}

#[test]
fn a_late_member_gets_its_part_at_once_and_nobody_more_than_before() {
    let (mut group, mut members) = joined(&[10]);
    let now = run(&mut group, &mut members, NOW, 1_000);
    let before = total(&members);
    members.push(member(1, 10, Phase::SlowStart));
    tell(&mut group, now, 1, MemberEventKind::Joined, &mut members);
    let after = windows(&members);
    // Equal, as far as whole datagrams can be divided.
    assert!((after[0] - after[1]).abs() <= 1.0, "{after:?}");
    assert!((total(&members) - before).abs() < 1.0, "{before} became {after:?}");
}

#[test]
fn a_member_that_ends_or_pauses_leaves_its_part_to_the_others() {
    let (mut group, mut members) = joined(&[5, 5]);
    let now = run(&mut group, &mut members, NOW, 1_000);
    let whole = total(&members);
    members[0].idle_since = Some(now);
    let later = now + ROUND_TRIP;
    tell(&mut group, later, 1, MemberEventKind::Round, &mut members);
    let paused = windows(&members);
    assert!((paused[1] - whole).abs() < 1.5 && paused[0] <= 2.0, "{whole}: {paused:?}");
    members[0].idle_since = None;
    tell(&mut group, later, 0, MemberEventKind::Resumed, &mut members);
    let resumed = windows(&members);
    assert!((resumed[0] - resumed[1]).abs() <= 1.0 && (total(&members) - whole).abs() < 1.5, "{resumed:?}");
    let left = members.remove(1);
    let kind = MemberEventKind::Left { window: left.congestion.window };
    tell(&mut group, later, 1, kind, &mut members);
    assert!((total(&members) - whole).abs() < 1.5, "{whole}: {:?}", windows(&members));
    members.clear();
    assert_eq!(tell(&mut group, later, 0, kind, &mut members), 0);
}

#[test]
fn a_silent_member_counts_for_nothing_until_it_is_heard_again() {
    let (mut group, mut members) = joined(&[5, 5]);
    let now = run(&mut group, &mut members, NOW, 1_000);
    let whole = total(&members);
    members[0].silent_since = Some(now - ROUND_TRIP * 4);
    members[0].in_flight = DATAGRAM * 40;
    members[1].in_flight = DATAGRAM * 3;
    // What is on its way to nobody is in nobody's way.
    let model = group.model.as_ref().unwrap();
    assert_eq!(merge::flight(&members, model), DATAGRAM * 3);
    members[1].delivered += DATAGRAM;
    let ack = MemberAck { acked: DATAGRAM, sent_at: now - ROUND_TRIP, app_limited: true };
    tell(&mut group, now, 1, MemberEventKind::Acked(ack), &mut members);
    assert!(group.merge.lacks_data(&members), "the other had more, but to nobody");
    let alone = windows(&members);
    assert!(alone[1] > whole * 0.9 && alone[0] <= 2.0, "{whole}: {alone:?}");
    members[0].silent_since = None;
    tell(&mut group, now, 0, MemberEventKind::Answered, &mut members);
    assert!(!group.merge.lacks_data(&members));
    let again = windows(&members);
    assert!(again[0] > whole * 0.4, "{whole}, {alone:?}: {again:?}");
}

#[test]
fn what_a_member_without_enough_data_leaves_over_is_the_others() {
    let (mut group, mut members) = joined(&[5, 5]);
    let now = run(&mut group, &mut members, NOW, 1_000);
    let whole = total(&members);
    members[0].in_flight = DATAGRAM;
    let ack = MemberAck { acked: DATAGRAM, sent_at: now - ROUND_TRIP, app_limited: true };
    members[0].delivered += DATAGRAM;
    tell(&mut group, now, 0, MemberEventKind::Acked(ack), &mut members);
    let parts = windows(&members);
    assert!((parts[1] - (whole - 1.0)).abs() < 1.5, "of {whole}: {parts:?}");
    assert!(parts[0] >= whole / 2.0 - 1.0, "it may begin again with an equal part: {parts:?}");
}

/// The member sends a datagram less often than it might, for so many round trips: the application sets the pace.
fn run_without_enough_data(
    group: &mut Joint,
    members: &mut [MemberView],
    index: usize,
    from: Time,
    round_trips: u64,
) -> Time {
    let mut now = from;
    for _ in 0..round_trips * 5 {
        now += ROUND_TRIP / 5;
        members[index].delivered += DATAGRAM;
        members[index].in_flight = DATAGRAM * 5;
        let ack = MemberAck { acked: DATAGRAM, sent_at: now - ROUND_TRIP, app_limited: true };
        let id = members[index].id.0;
        tell(group, now, id, MemberEventKind::Acked(ack), members);
    }
    now
}

/// True if the model has left Startup for good.
fn is_pipe_full(group: &Joint) -> bool {
    group.model.as_ref().unwrap().state().slow_start_threshold.is_some()
}

#[test]
fn one_that_nothing_is_known_of_yet_makes_no_full_pipe_of_anothers_want_of_data() {
    let (mut group, mut members) = joined(&[5, 5]);
    // Something of it is under way, and never acknowledged.
    members[1].in_flight = DATAGRAM;
    run_without_enough_data(&mut group, &mut members, 0, NOW, 10);
    assert!(!is_pipe_full(&group));
}

#[test]
fn one_that_has_ended_its_download_takes_nothing_of_what_another_leaves() {
    let (mut group, mut members) = joined(&[5, 5]);
    let now = run(&mut group, &mut members, NOW, 4_000);
    let rate = |group: &Joint| group.model.as_ref().unwrap().model_rate().unwrap().as_bytes_per_second();
    let before = rate(&group);
    members[1].in_flight = ByteCount::ZERO;
    members[1].idle_since = Some(now);
    let now = run_without_enough_data(&mut group, &mut members, 0, now, 200);
    // Whatever it sends now, that it had enough once says nothing of it.
    members[1].idle_since = None;
    members[1].in_flight = DATAGRAM;
    tell(&mut group, now, 1, MemberEventKind::Resumed, &mut members);
    run_without_enough_data(&mut group, &mut members, 0, now, 200);
    let after = rate(&group);
    assert!(after > before / 2, "{before} bytes a second became {after}, and the application wants a tenth");
}

#[test]
fn while_another_takes_what_one_leaves_the_whole_is_no_want_of_data() {
    let (mut group, mut members) = joined(&[5, 5]);
    run(&mut group, &mut members, NOW, 30);
    assert!(!is_pipe_full(&group));
    let mut now = NOW + Duration::from_millis(30);
    for _ in 0..20 {
        now = run_without_enough_data(&mut group, &mut members, 0, now, 1);
    }
    assert!(is_pipe_full(&group), "the other has more to send than its part");
}

#[test]
fn who_joins_and_leaves_again_and_again_adds_its_part_once() {
    let (mut group, mut members) = joined(&[5, 5]);
    for _ in 0..100 {
        let left = members.remove(1);
        let kind = MemberEventKind::Left { window: left.congestion.window };
        tell(&mut group, NOW, left.id.0, kind, &mut members);
        assert_eq!(windows(&members), [5.0], "what it brought goes with it");
        members.push(member(left.id.0 + 1, 5, Phase::SlowStart));
        tell(&mut group, NOW, left.id.0 + 1, MemberEventKind::Joined, &mut members);
        assert_eq!(windows(&members), [5.0, 5.0]);
    }
}

#[test]
fn a_reduction_stands_until_every_packet_of_a_large_loss_has_arrived() {
    let (mut group, mut members) = joined(&[5, 5]);
    let mut now = run(&mut group, &mut members, NOW, 1_000);
    let window = |group: &Joint| group.model.as_ref().unwrap().window();
    let whole = window(&group);
    let (oldest_sent_at, newest_sent_at) = (now - ROUND_TRIP, now - Duration::from_millis(1));
    let lost = MemberLoss { packets: 200, bytes: DATAGRAM * 200, oldest_sent_at, newest_sent_at };
    members[0].lost += DATAGRAM * 200;
    tell(&mut group, now, 0, MemberEventKind::Lost(lost), &mut members);
    now = run(&mut group, &mut members, now, 200);
    let reduced = window(&group);
    assert!(reduced < whole, "{whole} became {reduced}");
    let mut refute = |group: &mut Joint, packets| {
        let spurious = SpuriousSample { now, packets, sent_at: oldest_sent_at };
        tell(group, now, 0, MemberEventKind::Refuted(spurious), &mut members);
        window(group)
    };
    assert_eq!(refute(&mut group, 64), reduced);
    assert_eq!(refute(&mut group, 135), reduced, "one is still lost");
    assert!(refute(&mut group, 1) > reduced);
}

#[test]
fn a_silence_of_one_is_no_collapse_and_one_of_all_is() {
    let (mut group, mut members) = joined(&[5, 5]);
    let now = run(&mut group, &mut members, NOW, 1_000);
    let whole = total(&members);
    let lost = MemberLoss {
        packets: 2,
        bytes: DATAGRAM * 2,
        oldest_sent_at: now - Duration::from_millis(900),
        newest_sent_at: now - Duration::from_millis(100),
    };
    members[0].lost += DATAGRAM * 2;
    tell(&mut group, now, 0, MemberEventKind::Lost(lost), &mut members);
    tell(&mut group, now, 0, MemberEventKind::Collapsed, &mut members);
    assert!(total(&members) > whole / 2.0, "the other was acknowledged all the time");
    let later = now + Duration::from_secs(3);
    members[0].delivered += DATAGRAM;
    let ack = MemberAck { acked: DATAGRAM, sent_at: later - ROUND_TRIP, app_limited: false };
    tell(&mut group, later, 0, MemberEventKind::Acked(ack), &mut members);
    tell(&mut group, later, 0, MemberEventKind::Lost(lost), &mut members);
    tell(&mut group, later, 0, MemberEventKind::Collapsed, &mut members);
    assert_eq!(windows(&members), [2.0, 2.0], "the least that a connection works with");
}

#[test]
fn a_model_that_wants_less_than_the_members_least_windows_does_not_wait_for_it_for_ever() {
    // Eight members with two datagrams each over a path that holds five: `ProbeRTT` wants four in flight.
    let (mut group, mut members) = joined(&[2; 8]);
    let (mut now, mut probing) = (NOW, 0);
    for step in 0..2_000 {
        now += Duration::from_millis(10);
        let index = step % members.len();
        members[index].delivered += DATAGRAM;
        members[index].in_flight = DATAGRAM * 2;
        let round_trip = ROUND_TRIP + Duration::from_millis(110);
        let ack = MemberAck { acked: DATAGRAM, sent_at: now - round_trip, app_limited: false };
        tell(&mut group, now, index as u64, MemberEventKind::Acked(ack), &mut members);
        let phase = group.model.as_ref().unwrap().state().phase;
        probing += u32::from(phase == Phase::Named("probe_rtt"));
    }
    assert!((1..200).contains(&probing), "{probing} of 2000 acks in ProbeRTT");
}

#[test]
fn much_loss_of_one_member_lowers_what_all_may_have_in_flight() {
    let (mut group, mut members) = joined(&[5, 5]);
    let mut now = run(&mut group, &mut members, NOW, 1_000);
    let before = total(&members);
    for _ in 0..10 {
        members[0].lost += DATAGRAM * 10;
        let lost = MemberLoss {
            packets: 10,
            bytes: DATAGRAM * 10,
            oldest_sent_at: now - ROUND_TRIP,
            newest_sent_at: now - ROUND_TRIP / 2,
        };
        tell(&mut group, now, 0, MemberEventKind::Lost(lost), &mut members);
        now = run(&mut group, &mut members, now, 100);
    }
    assert!(total(&members) < before * 0.8, "{before}: {:?}", windows(&members));
}

#[test]
fn nothing_that_members_can_do_makes_a_window_without_bound() {
    let (mut group, mut members) = joined(&[5, 5]);
    for (index, extreme) in [0, 1, u64::MAX / 2, u64::MAX].into_iter().enumerate() {
        members[0].delivered = ByteCount::new(extreme);
        members[0].lost = ByteCount::new(extreme);
        members[0].in_flight = ByteCount::new(extreme);
        let now = NOW + Duration::from_millis(index as u64);
        let ack = MemberAck { acked: ByteCount::new(extreme), sent_at: now, app_limited: index % 2 == 0 };
        tell(&mut group, now, 0, MemberEventKind::Acked(ack), &mut members);
        let loss = MemberLoss {
            packets: extreme,
            bytes: ByteCount::new(extreme),
            oldest_sent_at: now,
            newest_sent_at: now,
        };
        tell(&mut group, now, 1, MemberEventKind::Lost(loss), &mut members);
        assert!(total(&members) <= 2.0 * 68_719_476_736.0 / 1200.0);
        assert!(windows(&members).iter().all(|window| *window >= 2.0));
    }
}

proptest! {
    #[test]
    fn a_window_is_divided_into_whole_datagrams_and_less_than_one_is_left(
        window in 0..10_000_000_u64,
        weights in prop::collection::vec(1..100_u64, 1..=MAX_MEMBERS),
        datagram in 1..65_536_u64,
    ) {
        let total: u64 = weights.iter().sum();
        let parts: Vec<f64> = weights.iter().map(|weight| *weight as f64 / total as f64).collect();
        let windows = in_datagrams(ByteCount::new(window), &parts, ByteCount::new(datagram));
        let sum: u64 = windows.iter().map(|window| window.get()).sum();
        // A byte a member is lost to rounding before.
        prop_assert!(sum <= window && window - sum < datagram + weights.len() as u64, "{sum} of {window}");
        for (part, share) in parts.iter().zip(windows) {
            prop_assert_eq!(share.get() % datagram, 0);
            prop_assert!((share.as_f64() - window as f64 * part).abs() < datagram as f64 + 1.0);
        }
    }
}
