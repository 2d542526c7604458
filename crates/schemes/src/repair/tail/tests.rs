use posthaste_units::Rate;
use proptest::prelude::*;

use super::*;
use posthaste_policy::sample::{PathLoss, RttView};

const DATAGRAM: u64 = 1200;
const RTT: Duration = Duration::from_millis(100);

fn packets(count: u64) -> ByteCount {
    ByteCount::new(count * DATAGRAM)
}

/// The tail of an object of 20 packets, 10 ms after its last packet; nothing is known of the path's loss.
fn view() -> TailView {
    TailView {
        now: Time::ZERO + Duration::from_millis(1010),
        last_new_at: Time::ZERO + Duration::from_millis(1000),
        is_tail: true,
        in_flight: packets(20),
        max_datagram_size: packets(1),
        rate: None,
        rtt: RttView { latest: RTT, smoothed: RTT, variance: Duration::ZERO, min: RTT, is_measured: true },
        sent: packets(20),
        copied: ByteCount::ZERO,
        coded: ByteCount::ZERO,
        is_coded: false,
        code: None,
        guarded: ByteCount::ZERO,
        delivered: ByteCount::ZERO,
        lost: ByteCount::ZERO,
        known: PathLoss::UNKNOWN,
    }
}

fn tail() -> Tail {
    Tail::new(Parameters::default())
}

fn copies_newest(tail: &mut Tail, view: &TailView) -> bool {
    tail.next(view).newest_from.is_some_and(|from| from <= view.now)
}

#[test]
fn the_newest_packets_are_copied_after_the_gap_and_only_in_a_tail() {
    let mut tail = tail();
    let step = tail.next(&view());
    assert_eq!(step.newest_from, Some(view().last_new_at + Duration::from_millis(3)));
    assert_eq!(step.retransmissions, 1, "without a loss there is nothing to guard");
    assert_eq!(tail.next(&TailView { is_tail: false, ..view() }), RepairStep::NOTHING);
}

/// Packets of recovery symbols for a tail of `length` packets on a path that has settled and lost these.
fn symbols(length: u64, settled: u64, lost: u64) -> u64 {
    let mut tail = Tail::new(Parameters { code: true, floor: 64, ..Parameters::default() });
    let step = |tail: &mut Tail, coded| {
        let code = Some(CodeView { missing: packets(length), coded: packets(coded) });
        let settled = TailView { delivered: packets(settled - lost), lost: packets(lost), ..view() };
        let sent = packets(length + settled.delivered.get() / DATAGRAM);
        tail.next(&TailView { code, is_coded: true, coded: packets(coded), sent, ..settled }).code
    };
    (0..1000).find(|coded| !matches!(step(&mut tail, *coded), CodeStep::Packet { .. })).expect("an end")
}

#[test]
fn a_code_has_symbols_for_what_is_likely_to_be_lost_and_a_margin() {
    // Nothing is known: one packet in ten.
    assert_eq!([1, 17, 84].map(|length| symbols(length, 0, 0)), [3, 6, 16]);
    // 8 % and 1 % of many.
    assert_eq!([705, 1588].map(|length| symbols(length, 5000, 400)), [73, 151]);
    assert_eq!([321, 1588].map(|length| symbols(length, 5000, 50)), [9, 26]);
    assert_eq!(symbols(321, 150, 0), 9, "no loss, but too few packets to tell");
    assert_eq!(symbols(321, 200, 0), 0, "a clean path");
    // Half of everything is lost: the second meets the budget.
    assert_eq!([84, 300].map(|length| symbols(length, 200, 100)), [53, 96]);
}

#[test]
fn a_clean_path_has_two_copies_and_no_symbols() {
    let mut tail = Tail::new(Parameters { code: true, ..Parameters::default() });
    let code = Some(CodeView { missing: packets(20), coded: ByteCount::ZERO });
    let clean = TailView { delivered: packets(400), is_coded: true, code, sent: packets(420), ..view() };
    for (copied, expected) in [(10, true), (11, true), (12, false)] {
        let view = TailView { copied: packets(copied), ..clean };
        assert_eq!(tail.next(&view).code, CodeStep::Wait);
        assert_eq!(copies_newest(&mut tail, &view), expected, "{copied}");
    }
}

#[test]
fn a_code_takes_the_place_of_the_newest_copies_and_respects_queues() {
    let mut tail = Tail::new(Parameters { code: true, ..Parameters::default() });
    assert!(tail.codes() && !self::tail().codes());
    let fresh = Some(CodeView { missing: packets(20), coded: ByteCount::ZERO });
    let coded = TailView { is_coded: true, code: fresh, ..view() };
    assert_eq!(tail.next(&coded), RepairStep { code: CodeStep::Packet { of: 6 }, ..RepairStep::NOTHING });
    let rtt = RttView { latest: RTT * 2, ..view().rtt };
    assert_eq!(tail.next(&TailView { rtt, ..coded }), RepairStep::NOTHING);
    // 100 ms after the last new packet a queue of 100 ms has drained, though no ack can have told of it.
    let drained = TailView { rtt, now: view().last_new_at + RTT, ..coded };
    assert_eq!(tail.next(&drained).code, CodeStep::Packet { of: 6 });
    let early = TailView { now: view().last_new_at + RTT - Duration::from_millis(1), ..drained };
    assert_eq!(tail.next(&early), RepairStep::NOTHING);
    assert_eq!(tail.next(&TailView { is_coded: false, code: None, ..drained }), RepairStep::NOTHING);
    assert_eq!(tail.next(&TailView { is_tail: false, ..coded }), RepairStep::NOTHING);
    let enough = Some(CodeView { missing: packets(20), coded: packets(20) });
    assert_eq!(tail.next(&TailView { code: enough, ..coded }).code, CodeStep::Enough);
    // No further stream may have symbols: retransmissions may still be copied, others are not.
    let lossy = TailView { lost: packets(8), delivered: packets(92), in_flight: packets(300), ..coded };
    let last = tail.next(&TailView { code: None, ..lossy });
    assert_eq!((last.newest_from, last.code, last.retransmissions), (None, CodeStep::Wait, 2));
}

#[test]
fn the_budget_is_a_floor_of_packets_first_and_a_share_of_bytes_second() {
    // (sent, copied so far, lost) -> is another one copied
    let table = [((20, 31, 0), true), ((20, 32, 0), false), ((1600, 99, 0), true), ((1600, 100, 0), false)];
    for ((sent, copied, lost), expected) in table {
        let view = TailView { sent: packets(sent), copied: packets(copied), lost: packets(lost), ..view() };
        assert_eq!(copies_newest(&mut tail(), &view), expected, "{sent} sent, {copied} copied");
    }
    let none = Parameters { newest: (0, 1), floor: 0, ..Parameters::default() };
    assert_eq!(Tail::new(none).next(&view()), RepairStep::NOTHING);
}

#[test]
fn a_path_without_loss_has_two_packets_of_each_tail_copied() {
    let clean = TailView { delivered: packets(400), lost: packets(1), sent: packets(2000), ..view() };
    let mut tail = tail();
    for (copied, expected) in [(10, true), (11, true), (12, false)] {
        assert_eq!(copies_newest(&mut tail, &TailView { copied: packets(copied), ..clean }), expected);
    }
    let next = TailView { last_new_at: clean.last_new_at + Duration::from_millis(1), ..clean };
    assert!(copies_newest(&mut tail, &TailView { copied: packets(12), ..next }), "another tail");
    // Two losses, or too few packets to tell, and it is no such path.
    for other in [
        TailView { lost: packets(2), ..clean },
        TailView { delivered: packets(150), lost: ByteCount::ZERO, ..clean },
    ] {
        let mut tail = Tail::new(Parameters::default());
        assert!(
            (10..20).all(|copied| copies_newest(&mut tail, &TailView { copied: packets(copied), ..other }))
        );
    }
}

#[test]
fn no_copy_joins_a_queue_or_a_full_path() {
    let queued = |millis| {
        let rtt = RttView { latest: RTT + Duration::from_millis(millis), ..view().rtt };
        copies_newest(&mut tail(), &TailView { rtt, ..view() })
    };
    // A sixteenth of 100 ms is 6.25 ms.
    assert!(queued(6));
    assert!(!queued(7));
    let filled = |rate| copies_newest(&mut tail(), &TailView { rate: Some(rate), ..view() });
    // 21 packets in 100 ms are 252,000 bytes a second.
    assert!(filled(Rate::from_bytes_per_second(252_000)));
    assert!(!filled(Rate::from_bytes_per_second(251_000)));
}

#[test]
fn a_retransmission_is_worth_more_where_many_are_lost_and_many_are_in_flight() {
    // (lost in a hundred, packets in flight) -> transmissions
    let table = [
        ((0, 700), 1),
        ((1, 10), 1),
        ((1, 321), 2),
        ((2, 422), 2),
        ((4, 700), 2),
        ((8, 700), 3),
        ((8, 10), 2),
        ((30, 700), 3),
    ];
    for ((lost, in_flight), expected) in table {
        let view = TailView {
            in_flight: packets(in_flight),
            sent: packets(10_000),
            delivered: packets(100 * (100 - lost)),
            lost: packets(100 * lost),
            ..view()
        };
        let step = Tail::new(Parameters { guard: 3, ..Parameters::default() }).next(&view);
        assert_eq!(step.retransmissions, expected, "{lost} % of {in_flight}");
    }
    let off = Parameters { guard: 1, ..Parameters::default() };
    let lossy = TailView { delivered: packets(92), lost: packets(8), in_flight: packets(300), ..view() };
    assert_eq!(Tail::new(off).next(&lossy).retransmissions, 1);
}

#[test]
fn the_guard_may_spend_as_much_as_is_lost_and_both_no_more_than_14_in_a_hundred() {
    let guards = |in_flight, (sent, copied, guarded, lost)| {
        let began = TailView {
            sent: packets(sent),
            delivered: packets(sent - lost),
            lost: packets(lost),
            in_flight: packets(700),
            ..view()
        };
        let mut tail = tail();
        tail.next(&began);
        let copies = TailView { copied: packets(copied), guarded: packets(guarded), ..began };
        tail.next(&TailView { in_flight: packets(in_flight), ..copies }).retransmissions > 1
    };
    // The second round, in which little is in flight.
    let late = |of| guards(100, of);
    assert!(late((10_000, 0, 415, 400)));
    assert!(!late((10_000, 0, 416, 400)), "as much as is lost, and 16 packets");
    assert!(late((10_000, 625, 774, 1_000)));
    assert!(!late((10_000, 625, 775, 1_000)), "14 % together");
    assert!(late((50, 32, 15, 5)) && !late((50, 32, 16, 5)), "the floor");
    // An eighth is kept for it.
    let early = |of| guards(700, of);
    assert!(early((10_000, 625, 599, 1_000)) && !early((10_000, 625, 600, 1_000)));
}

#[test]
fn second_copies_are_only_sent_if_first_ones_can_still_be_paid_for() {
    let lossy = |guarded| {
        let view = TailView {
            sent: packets(1_000),
            delivered: packets(920),
            lost: packets(80),
            in_flight: packets(700),
            guarded: packets(guarded),
            ..view()
        };
        Tail::new(Parameters { guard: 3, ..Parameters::default() }).next(&view).retransmissions
    };
    // 14 % of 1,000 packets less an eighth are 122; of 700 in flight 56 are still to be lost.
    assert_eq!([lossy(0), lossy(65), lossy(67), lossy(121), lossy(122)], [3, 3, 2, 2, 0]);
}

/// The same once `copied` packets of the tail have been copied.
fn copies_newest_after(copied: u64, view: &TailView) -> bool {
    let mut tail = tail();
    tail.next(view);
    copies_newest(&mut tail, &TailView { copied: view.copied + packets(copied), ..*view })
}

#[test]
fn newest_packets_are_not_copied_where_others_are_lost_for_certain() {
    let copies = |in_flight, copied| {
        let view = TailView {
            sent: packets(1_000),
            delivered: packets(92),
            lost: packets(8),
            in_flight: packets(in_flight),
            ..view()
        };
        copies_newest_after(copied, &view)
    };
    // A sixteenth of 1,000 packets has a copy: of the others 25 are lost if they are 312.
    assert!(copies(370, 3) && !copies(380, 3));
    // Behind the last three there is nothing that would tell of their loss.
    assert!(copies(380, 0) && copies(380, 2));
}

#[test]
fn parameters_are_read_from_a_profile_and_checked() {
    let text = "[repair.tail]\nhandshake = false\nguard = 2\nnewest = \"1/8\"\nfloor = 16\ngap = \"5 ms\"\nagain = \"0\"\n";
    let profile = crate::from_toml("t", text).expect("a profile");
    assert_eq!(profile.repair().lost_again(), None);
    assert_eq!(profile.repair().handshake_copy(), None);
    assert!(!profile.repair().is_idle());
    let default = crate::from_toml("t", "[repair.tail]\n").expect("a profile");
    assert_eq!(default.repair().handshake_copy(), Some(Duration::from_millis(5)));
    assert_eq!(default.repair().lost_again(), Some((1, 64)));
    assert!(crate::default_profile().repair().is_idle());
    for wrong in [
        "newest = \"3/2\"",
        "again = \"65/64\"",
        "newest = \"1/0\"",
        "newest = 1",
        "guard = 0",
        "guard = 5",
        "floor = 257",
    ] {
        let text = format!("[repair.tail]\n{wrong}\n");
        assert!(crate::from_toml("t", &text).is_err(), "{wrong}");
    }
}

/// Something that happens to a connection between two questions to the policy.
#[derive(Debug, Clone, Copy)]
enum Event {
    Send(u64),
    Acknowledge(u64),
    Lose(u64),
    Wait(u64),
    Queue(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        (1u64..400).prop_map(Event::Send),
        (1u64..400).prop_map(Event::Acknowledge),
        (1u64..40).prop_map(Event::Lose),
        (0u64..20).prop_map(Event::Wait),
        (0u64..12).prop_map(Event::Queue),
    ];
    proptest::collection::vec(event, 1..60)
}

proptest! {
    /// Whatever happens in whatever order: copies stay within the floor or the share, and the newest within theirs.
    #[test]
    fn copies_keep_to_the_budget(events in events(), guard in 1u8..=4, floor in 0u64..=64) {
        let mut policy = Tail::new(Parameters { guard, floor, ..Parameters::default() });
        let mut view = TailView { sent: ByteCount::ZERO, in_flight: ByteCount::ZERO, ..view() };
        for event in events {
            match event {
                Event::Send(count) => {
                    view.sent += packets(count);
                    view.in_flight += packets(count);
                    view.last_new_at = view.now;
                }
                Event::Acknowledge(count) => {
                    let bytes = packets(count).min(view.in_flight);
                    view.in_flight -= bytes;
                    view.delivered += bytes;
                }
                Event::Lose(count) => {
                    let bytes = packets(count).min(view.in_flight);
                    view.in_flight -= bytes;
                    view.lost += bytes;
                }
                Event::Wait(millis) => view.now += Duration::from_millis(millis),
                Event::Queue(millis) => view.rtt.latest = RTT + Duration::from_millis(millis),
            }
            // As long as it wants copies: the mechanism always finds one.
            loop {
                let step = policy.next(&view);
                let is_newest = step.newest_from.is_some_and(|from| from <= view.now);
                if step.retransmissions < 2 && !is_newest {
                    break;
                }
                // Retransmissions go first.
                let is_guard = step.retransmissions > 1;
                *(if is_guard { &mut view.guarded } else { &mut view.copied }) += packets(1);
                view.in_flight += packets(1);
                let (most, newest) = (view.sent.mul_ratio(14, 100), view.sent.mul_ratio(1, 16));
                prop_assert!(view.copied <= newest.max(packets(floor)), "{view:?}");
                prop_assert!(view.copied + view.guarded <= most.max(packets(floor + floor / 2)), "{view:?}");
                prop_assert!(view.queue() <= Duration::from_micros(6_250));
            }
        }
    }
}

/// The tail of a first flight of 1 MB, of which nothing is settled yet.
fn first_flight(known: PathLoss) -> TailView {
    TailView { in_flight: packets(850), sent: packets(850), known, ..view() }
}

#[test]
fn a_path_that_is_known_to_lose_has_no_copies_where_they_cannot_save_a_round_trip() {
    // 8 % of the 750 that copies do not reach: 60 are lost for certain, and their copies are the guard's.
    let lossy = first_flight(PathLoss::new(1_000, 80));
    assert!(copies_newest_after(3, &first_flight(PathLoss::UNKNOWN)), "nothing is known");
    assert!(!copies_newest_after(3, &lossy));
    assert!(copies_newest_after(2, &lossy), "the last three");
    let guarded = Tail::new(Parameters { guard: 3, ..Parameters::default() });
    let step = guarded.clone().next(&TailView { delivered: packets(2), ..lossy });
    assert_eq!(step.retransmissions, 3, "the first that is lost is sent three times");
    let step = guarded.clone().next(&TailView { delivered: packets(2), ..first_flight(PathLoss::UNKNOWN) });
    assert_eq!(step.retransmissions, 1);
}

#[test]
fn a_retransmission_that_left_with_the_last_packets_is_guarded_only_if_these_may_all_arrive() {
    let from = |in_flight, is_coded| {
        let known = PathLoss::new(1_000, 80);
        let view = TailView { in_flight: packets(in_flight), sent: packets(850), known, is_coded, ..view() };
        let parameters = Parameters { guard: 3, code: is_coded, ..Parameters::default() };
        let step = Tail::new(parameters).next(&TailView { delivered: packets(2), ..view });
        assert!(step.retransmissions > 1);
        step.retransmitted_from
    };
    // Of an eighth of 200 packets 8 % are two, and an eighth of 100 ms are 12.5.
    assert_eq!(from(200, false), view().last_new_at + Duration::from_micros(12_500));
    assert_eq!(from(90, false), Time::ZERO, "less than one is lost of an eighth");
    assert_eq!(from(200, true), Time::ZERO, "a code restores the last packets");
}

#[test]
fn what_is_known_of_a_path_gives_way_to_what_is_seen() {
    // 800 packets have arrived and none is lost: of 200 remembered ones that lost 16, a hundredth and a half is left.
    let known = PathLoss::new(PathLoss::MOST, PathLoss::MOST / 100 * 8);
    let seen = TailView { delivered: packets(800), in_flight: packets(50), ..first_flight(known) };
    assert!(loss(&first_flight(known)) > 0.075);
    assert!((0.014..0.017).contains(&loss(&seen)), "{}", loss(&seen));
    // A record of few packets weighs as few.
    let few = TailView { delivered: packets(100), ..first_flight(PathLoss::new(10, 5)) };
    assert!(loss(&few) < 0.05);
}

#[test]
fn mobile_copies_every_packet_of_100_kb() {
    let profile: toml::Table = include_str!("../../../profiles/mobile.toml").parse().expect("a profile");
    let parameters: Parameters = profile["repair"]["tail"].clone().try_into().expect("parameters");
    let mut tail = Tail::new(Parameters { code: false, ..parameters });
    let object = TailView { in_flight: packets(84), sent: packets(84), ..view() };
    assert!(copies_newest(&mut tail, &TailView { copied: packets(83), ..object }));
    assert!(!copies_newest(&mut tail, &TailView { copied: packets(84), ..object }));
}

#[test]
fn more_is_copied_where_the_path_is_known_to_lose() {
    let copied = |known, copied| {
        let mut tail = Tail::new(Parameters { floor: 84, ..Parameters::default() });
        let object = TailView { in_flight: packets(100), sent: packets(100), ..view() };
        copies_newest(&mut tail, &TailView { copied: packets(copied), known, ..object })
    };
    for (known, most) in [
        (PathLoss::UNKNOWN, 84),
        (PathLoss::new(1_000, 4), 84),
        (PathLoss::new(99, 20), 84),
        (PathLoss::new(100, 1), 96),
        (PathLoss::new(1_000, 80), 96),
    ] {
        assert!(copied(known, most - 1), "{known:?}");
        assert!(!copied(known, most), "{known:?}");
    }
    // A record that says that all is lost has no more.
    assert!(!copied(PathLoss::new(1_000, 1_000), 96));
}

#[test]
fn a_code_has_symbols_for_what_is_known_to_be_lost() {
    let symbols = |known| {
        let mut tail = Tail::new(Parameters { code: true, floor: 64, ..Parameters::default() });
        let code = Some(CodeView { missing: packets(80), coded: ByteCount::ZERO });
        match tail.next(&TailView { known, code, is_coded: true, sent: packets(80), ..view() }).code {
            CodeStep::Packet { of } => of,
            step => panic!("{step:?}"),
        }
    };
    let by_loss = [0, 20, 80].map(|lost| symbols(PathLoss::new(1_000, lost)));
    assert_eq!(by_loss, [4, 7, 13]);
    assert_eq!(symbols(PathLoss::UNKNOWN), 15);
}
