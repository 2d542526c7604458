//! The budget, and who bounded the flight.

use posthaste_policy::FlowShare;
use posthaste_policy::congestion::PathLimits;
use posthaste_policy::group::{Action, MemberId};
use posthaste_units::Rate;

use super::*;
use crate::packet::space::PacketSpace;
use crate::recovery::testing::{Harness, at_millis};

const DATA: PacketSpace = PacketSpace::Data;

fn budget(harness: &mut Harness, app_wants: bool) -> Budget {
    harness.path.budget(harness.now, app_wants)
}

fn with_window(datagrams: u64) -> Harness {
    let harness = Harness::new();
    harness.log().window = datagrams * 1200;
    harness
}

/// Paces at `rate` bytes a millisecond.
fn pace(harness: &Harness, rate: u64, burst: u64) {
    let rate = Rate::from_bytes_per_second(rate * 1000);
    harness.log().pacing = Some(Pacing { rate, burst: ByteCount::new(burst) });
}

/// Sends what the budget permits, or `limit` datagrams and then says that it has run dry.
fn fill(harness: &mut Harness, limit: usize) -> usize {
    for sent in 0..limit {
        if budget(harness, true).bytes.is_zero() {
            return sent;
        }
        harness.send(DATA);
    }
    harness.path.on_app_limited(harness.now);
    limit
}

#[test]
fn the_start_policy_gives_the_first_window() {
    let harness = Harness::new();
    assert_eq!(harness.path.state().window.get(), 120_000);
    assert!(!harness.path.rtt().is_measured);
}

#[test]
fn a_budget_is_what_the_window_has_room_for() {
    // spec: rfc9002 7 within-window
    // (window, in flight) -> budget; `budget::room` has the table.
    for ((window, in_flight), expected) in
        [((12_700, 0), 12_000), ((12_700, 10_800), 1200), ((12_700, 12_000), 700), ((12_500, 12_000), 0)]
    {
        let mut harness = with_window(0);
        harness.log().window = window;
        if in_flight > 0 {
            harness.send_as(DATA, in_flight, true, true);
        }
        let answer = budget(&mut harness, true);
        assert_eq!(answer.bytes.get(), expected, "window {window}, in flight {in_flight}");
        assert_eq!(answer.limited_by, Limit::Window);
    }
}

#[test]
fn the_rest_of_a_window_waits_for_the_pacer_as_a_whole_datagram_does() {
    let mut harness = with_window(0);
    harness.log().window = 3_000;
    pace(&harness, 1200, 2_400);
    assert_eq!(fill(&mut harness, 2), 2);
    let until = at_millis(1);
    assert_eq!(
        budget(&mut harness, true),
        Budget { bytes: ByteCount::ZERO, limited_by: Limit::Pacer { until } }
    );
    harness.now = until;
    assert_eq!(budget(&mut harness, true), Budget { bytes: ByteCount::new(600), limited_by: Limit::Window });
}

#[test]
fn the_pacer_bounds_the_batch_and_says_when_to_come_back() {
    // spec: rfc9002 7.7 paced-or-bounded
    let mut harness = with_window(100);
    pace(&harness, 2400, 12_000);
    let answer = budget(&mut harness, true);
    // All ten at once; then two a millisecond.
    assert_eq!(answer.bytes.get(), 12_000);
    assert_eq!(answer.limited_by, Limit::Pacer { until: at_millis(1) });
    assert_eq!(fill(&mut harness, 100), 10);
    let answer = budget(&mut harness, true);
    assert_eq!(answer, Budget { bytes: ByteCount::ZERO, limited_by: Limit::Pacer { until: at_millis(1) } });
    assert_eq!(fill(harness.at(1), 100), 2);
    // Late by 1.5 ms: nothing is lost.
    harness.now = at_millis(3) + Duration::from_micros(500);
    assert_eq!(fill(&mut harness, 100), 6 - 1);
    // The half datagram of credit is kept.
    harness.now = at_millis(4);
    assert_eq!(fill(&mut harness, 100), 1);
}

#[test]
fn a_window_below_the_burst_decides() {
    let mut harness = with_window(4);
    pace(&harness, 1200, 12_000);
    assert_eq!(budget(&mut harness, true), Budget { bytes: ByteCount::new(4800), limited_by: Limit::Window });
}

/// Acknowledges all that is outstanding one RTT later and tells whether the flight counted as application-limited.
fn ack_all(harness: &mut Harness, rtt: u64) -> bool {
    harness.now += Duration::from_millis(rtt);
    let last = harness.recovery.next_number(DATA) - 1;
    harness.ack_data(&[0..=last]);
    harness.log().acks.last().expect("acknowledged").app_limited
}

#[test]
fn a_full_window_is_not_application_limited() {
    let mut harness = with_window(10);
    assert_eq!(fill(&mut harness, 100), 10);
    assert!(!ack_all(&mut harness, 50));
    // The transfer's end filled the window exactly: neither does running dry afterwards matter.
    fill(&mut harness, 10);
    harness.path.on_app_limited(harness.now);
    assert!(!ack_all(&mut harness, 50));
}

#[test]
fn a_sender_without_enough_data_is_application_limited() {
    let mut harness = with_window(10);
    fill(&mut harness, 9);
    assert!(ack_all(&mut harness, 50));
    // Bulk again: the first full flight counts.
    fill(&mut harness, 100);
    assert!(!ack_all(&mut harness, 50));
    // Idle for long, then one packet.
    harness.now += Duration::from_secs(60);
    fill(&mut harness, 1);
    assert!(ack_all(&mut harness, 50));
}

#[test]
fn a_paced_sender_that_always_has_data_is_not_application_limited() {
    let mut harness = with_window(100);
    // The rate fills less than half of the window in an RTT.
    pace(&harness, 1200, 2400);
    for _ in 0..40 {
        fill(&mut harness, 100);
        harness.now += Duration::from_millis(1);
    }
    assert!(harness.path.bytes_in_flight().get() < 60_000);
    assert!(!ack_all(&mut harness, 10));
}

#[test]
fn a_sender_that_the_pacer_merely_spreads_is_application_limited() {
    let mut harness = with_window(100);
    pace(&harness, 1200, 2400);
    // Five datagrams every 100 ms: the pacer holds three back for a moment each time, then the sender runs dry.
    for _ in 0..3 {
        let mut left = 5;
        while left > 0 {
            left -= fill(&mut harness, left);
            harness.now += Duration::from_millis(1);
        }
        assert!(ack_all(&mut harness, 50));
        harness.now += Duration::from_millis(45);
    }
}

#[test]
fn packets_of_ack_alone_do_not_fill_anything() {
    let mut harness = with_window(2);
    for _ in 0..10 {
        harness.send_as(DATA, 1200, false, false);
    }
    assert_eq!(harness.path.bytes_in_flight(), ByteCount::ZERO);
    assert!(harness.log().sent.is_empty());
}

#[test]
fn running_dry_marks_the_samples_of_what_follows() {
    let mut harness = with_window(10);
    fill(&mut harness, 2);
    assert!(harness.path.is_app_limited());
    harness.at(10).send_data(1);
    ack_all(&mut harness, 40);
    let log = harness.log();
    let app_limited: Vec<bool> = log.acks[0].packets.iter().map(|packet| packet.app_limited).collect();
    assert_eq!(app_limited, [false, false, true]);
    assert_eq!(log.acks[0].round, 1);
    drop(log);
    assert!(!harness.path.is_app_limited(), "all of the dry flight, and more, is delivered");
    // Being told so with a full window means nothing.
    fill(&mut harness, 10);
    harness.path.on_app_limited(harness.now);
    assert!(!harness.path.is_app_limited());
}

#[test]
fn the_summary_is_what_the_path_knows() {
    let mut harness = with_window(10);
    fill(&mut harness, 5);
    ack_all(&mut harness, 50);
    let summary = harness.path.summary();
    assert_eq!(summary.delivered.get(), 6000);
    assert_eq!(summary.rtt.min, Duration::from_millis(50));
    assert_eq!(summary.congestion.window.get(), 12_000);
}

#[test]
fn a_batch_is_marked_as_a_whole() {
    let mut harness = Harness::new();
    harness.peer_ecn = Some(posthaste_wire::frame::EcnCounts::default());
    harness.path.begin_batch();
    // Validation marks ten packets for a start; the batch that holds the tenth goes on as it began.
    harness.send_data(14);
    assert!(harness.path.ecn_codepoint().is_some());
    harness.path.begin_batch();
    assert_eq!(harness.path.ecn_codepoint(), None);
    harness.peer_ecn = Some(posthaste_wire::frame::EcnCounts { ect0: 14, ect1: 0, ce: 0 });
    harness.at(50).ack_data(&[0..=13]);
    harness.path.begin_batch();
    assert!(harness.path.ecn_codepoint().is_some(), "all fourteen are accounted for");
}

#[test]
fn the_controller_hears_of_each_loss_once_excused_or_not() {
    let mut harness = with_window(100);
    harness.send_data(10);
    harness.at(5).send_data(10);
    harness.log().excused_until = Some(at_millis(0));
    // 4 and 11 arrived, and so did the last but one: what is three or more before it is lost, from both flights.
    harness.at(50).ack_data(&[18..=18, 11..=11, 4..=4]);
    let log = harness.log();
    let numbers = |notes: &[crate::recovery::testing::LossNote]| -> Vec<u64> {
        notes.iter().flat_map(|note| note.packets.iter().map(|packet| packet.number)).collect()
    };
    assert_eq!(numbers(&log.excused), [0, 1, 2, 3, 5, 6, 7, 8, 9]);
    assert_eq!(numbers(&log.losses), [10, 12, 13, 14, 15]);
    let (excused, counted) = (&log.excused[0], &log.losses[0]);
    assert_eq!(excused.prior_in_flight, 17 * 1200);
    assert_eq!((excused.in_flight, counted.prior_in_flight), (8 * 1200, 8 * 1200));
    assert_eq!((counted.in_flight, counted.lost), (3 * 1200, 14 * 1200));
    assert_eq!(excused.bytes + counted.bytes, 14 * 1200);
    drop(log);
    assert_eq!(harness.path.bytes_in_flight().get(), 3 * 1200);
    // An excused packet that had arrived after all undoes nothing; another's loss does.
    harness.at(55).ack_data(&[18..=18, 2..=2]);
    assert!(harness.log().spurious.is_empty());
    harness.at(56).ack_data(&[18..=18, 12..=12]);
    assert_eq!(harness.log().spurious.len(), 1);
}

#[test]
fn a_silence_whose_losses_are_all_excused_collapses_nothing() {
    let mut harness = with_window(100);
    harness.send_data(2);
    harness.at(50).ack_data(&[0..=1]);
    for _ in 0..6 {
        harness.send_data(2);
        harness.expire();
    }
    let now = harness.now;
    harness.log().excused_until = Some(now);
    harness.send_data(1);
    harness.now += Duration::from_millis(50);
    harness.ack_data(&[14..=14]);
    assert!(harness.seen.persistent_congestion);
    let log = harness.log();
    assert!(log.persistent.is_empty() && log.losses.is_empty());
    assert_eq!(log.excused.iter().map(|note| note.packets.len()).sum::<usize>(), 12);
}

const SIZE: ByteCount = ByteCount::new(1200);

/// A member of an `ensemble` with a window of sixty datagrams, past slow start.
fn member() -> PathControl {
    let profile = posthaste_schemes::named("mquic-cubic").expect("a profile");
    let start = profile.start();
    let limits = PathLimits { max_datagram_size: SIZE, initial_window: start.initial_window(SIZE), seed: 1 };
    let congestion = profile.congestion(limits);
    let mut path = PathControl::new(start, congestion, profile.silence(), Duration::from_millis(100), SIZE);
    path.obey(
        at_millis(0),
        &Action::Adjust(Adjustment {
            window: Some(SIZE * 60),
            slow_start_threshold: Some(SIZE * 60),
            ..Adjustment::default()
        }),
    );
    path
}

fn send_all(path: &mut PathControl, at: u64, numbers: std::ops::Range<u64>) -> Vec<(u64, Stamp)> {
    numbers.map(|number| (number, path.on_sent(at_millis(at), DATA, number, SIZE, true))).collect()
}

fn acknowledge(path: &mut PathControl, at: u64, sent: &[(u64, Stamp)]) {
    let (largest_sent, newest) = *sent.last().expect("packets");
    let packets: Vec<_> = sent.iter().map(|(number, stamp)| stamp.sample(*number, SIZE)).collect();
    let (now, rtt_sample, newest) = (at_millis(at), Some(Duration::from_millis(50)), Some(newest));
    let ack_delay = Duration::ZERO;
    let acked =
        Acked { now, space: DATA, newest, ack_delay, rtt_sample, largest_sent, ecn_marked: 0, ecn: None };
    path.on_acked(&acked, &packets, 0);
}

#[test]
fn a_step_back_that_a_group_orders_begins_with_what_is_in_flight_then() {
    let mut path = member();
    let first = send_all(&mut path, 0, 0..50);
    acknowledge(&mut path, 50, &first);
    let second = send_all(&mut path, 60, 50..100);
    path.obey(at_millis(70), &Action::Congestion { sent_at: at_millis(65) });
    acknowledge(&mut path, 110, &second[..2]);
    // 48 in flight of 50, to become 42: two that have arrived let out two at most.
    assert!(path.window() <= SIZE * 50, "{}", path.window());
    assert!(path.window() > SIZE * 48, "{}", path.window());
}

#[test]
fn a_step_back_of_a_member_with_nothing_in_flight_leaves_it_the_reduced_window() {
    let mut path = member();
    let first = send_all(&mut path, 0, 0..50);
    acknowledge(&mut path, 50, &first);
    path.obey(at_millis(70), &Action::Congestion { sent_at: at_millis(65) });
    assert_eq!(path.window(), SIZE * 42, "there is no flight to shrink");
}

#[test]
fn a_member_that_leaves_is_a_whole_flow_again() {
    let (mut alone, mut left) = (member(), member());
    left.join_group(at_millis(0), false);
    let share = FlowShare { controllers: 4, window: SIZE * 60, slow_start_threshold: None };
    left.obey(at_millis(0), &Action::Share(share));
    assert_eq!(left.leave_group(), Some(SIZE * 60));
    assert_eq!(left.leave_group(), None, "once");
    let grown = [&mut alone, &mut left].map(|path| {
        for round in 0..10 {
            let flight = send_all(path, round * 100, round * 60..(round + 1) * 60);
            acknowledge(path, round * 100 + 50, &flight);
        }
        path.state().window
    });
    assert_eq!(grown[0], grown[1]);
    assert!(grown[0] > SIZE * 60, "{}", grown[0]);
}

/// A harness whose path is a member of a group, with an RTT of exactly 100 ms, at 1000 ms.
fn member_of_a_group() -> Harness {
    let mut harness = Harness::new();
    harness.at(900).send_data(1);
    harness.at(1000).ack_data(&[0..=0]);
    harness.path.join_group(harness.now, false);
    assert_eq!(idle_since(&harness), Some(harness.now));
    harness
}

fn idle_since(harness: &Harness) -> Option<Time> {
    harness.path.member_view(MemberId(0)).idle_since
}

#[test]
fn a_member_whose_flight_ends_in_a_lost_probe_of_the_datagram_size_is_idle() {
    let mut harness = member_of_a_group();
    harness.send_mtu_probe();
    harness.send_data(1);
    harness.at(1100).ack_data(&[2..=2]);
    assert_eq!(idle_since(&harness), None, "the probe may be under way");
    harness.expire();
    assert!(harness.path.bytes_in_flight().is_zero() && harness.log().losses.is_empty());
    assert_eq!(idle_since(&harness), Some(harness.now));
}

#[test]
fn a_member_whose_flight_ends_in_excused_losses_is_idle() {
    let mut harness = member_of_a_group();
    harness.send_data(2);
    harness.at(1100).ack_data(&[2..=2]);
    let now = harness.now;
    harness.log().excused_until = Some(now);
    harness.expire();
    assert!(harness.path.bytes_in_flight().is_zero() && harness.log().losses.is_empty());
    assert_eq!(idle_since(&harness), Some(harness.now));
}

#[test]
fn a_member_whose_flight_is_forgotten_is_idle() {
    let mut harness = member_of_a_group();
    harness.send(PacketSpace::Initial);
    harness.send_data(1);
    harness.at(1010).discard_space(PacketSpace::Initial);
    assert_eq!(idle_since(&harness), None);
    harness.at(1020).requeue_all(DATA);
    assert_eq!(idle_since(&harness), Some(at_millis(1020)));
}
