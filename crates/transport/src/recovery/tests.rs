//! ACK frames, hostile ones too, and random histories.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use proptest::prelude::*;

use super::testing::{Harness, ack_frame, at_millis};
use super::*;

const DATA: PacketSpace = PacketSpace::Data;

#[test]
fn an_ack_takes_its_packets_out_of_the_flight() {
    let mut harness = Harness::new();
    harness.send_data(4);
    harness.at(50).ack_data(&[2..=3, 0..=0]);
    assert_eq!(harness.path.bytes_in_flight().get(), 1200);
    assert_eq!(harness.seen.acked.len(), 3);
    let log = harness.log();
    let ack = &log.acks[0];
    let numbers: Vec<u64> = ack.packets.iter().map(|packet| packet.number).collect();
    assert_eq!(numbers, [0, 2, 3]);
    assert_eq!((ack.acked, ack.prior_in_flight, ack.in_flight), (3600, 4800, 1200));
    assert_eq!(ack.packets[2].in_flight.get(), 4800);
    assert_eq!((ack.delivered, ack.largest_sent), (3600, 3));
}

#[test]
fn a_repeated_ack_tells_nobody_anything() {
    let mut harness = Harness::new();
    harness.send_data(4);
    harness.at(50).ack_data(&[0..=3]);
    harness.seen.clear();
    harness.at(60).ack_data(&[0..=3]);
    assert!(harness.seen.acked.is_empty());
    assert_eq!(harness.log().acks.len(), 1);
}

#[test]
fn of_an_ack_only_the_ranges_count_that_the_one_before_did_not_have() {
    // (told before, newest first; in the frame, newest first; what is new, oldest first)
    type Ranges = &'static [RangeInclusive<u64>];
    let cases: [(Ranges, Ranges, Ranges); 6] = [
        (&[], &[4..=5, 0..=2], &[0..=2, 4..=5]),
        (&[4..=5, 0..=2], &[4..=5, 0..=2], &[]),
        (&[4..=5, 0..=2], &[4..=6, 0..=2], &[4..=6]),
        (&[4..=5, 0..=2], &[8..=9, 0..=5], &[0..=5, 8..=9]),
        // An older frame comes late, and one that has more ranges.
        (&[4..=9, 0..=2], &[5..=7, 0..=1], &[]),
        (&[7..=9], &[8..=9, 4..=5, 0..=2], &[0..=2, 4..=5]),
    ];
    for (told, ranges, expected) in cases {
        let found: Vec<_> = news(told, &ack_frame(ranges)).cloned().collect();
        assert_eq!(found, expected, "{told:?}, then {ranges:?}");
    }
}

#[test]
fn only_the_largest_newly_acknowledged_packet_gives_an_rtt_sample() {
    // spec: rfc9002 5.1 no-sample-from-bare-acks
    // (ranges, packet numbers that are not ack-eliciting) -> sampled
    let mut harness = Harness::new();
    harness.send_data(3);
    harness.at(100).ack_data(&[1..=1]);
    assert_eq!(harness.path.rtt().smoothed, Duration::from_millis(100));
    // The largest is not new.
    harness.at(300).ack_data(&[0..=1]);
    assert_eq!(harness.log().acks[1].rtt_sample, None);
    assert_eq!(harness.path.rtt().smoothed, Duration::from_millis(100));
    // A packet of padding alone may be acknowledged arbitrarily late.
    let padding = harness.send_as(DATA, 1200, false, true);
    harness.at(900).ack_data(&[padding..=padding]);
    assert_eq!(harness.log().acks[2].rtt_sample, None);
}

#[test]
fn the_ack_delay_is_decoded_and_believed_as_section_5_3_says() {
    // spec: rfc9002 5.3 delay-bounded
    // (space, confirmed, delay field) -> adjusted sample of 200 ms, after a minimum of 100 ms
    let table = [
        // 2000 << 3 us = 16 ms
        (PacketSpace::Handshake, false, 2000, 184),
        // The peer's own exponent, 10: 16 << 10 us = 16.384 ms
        (DATA, false, 16, 183),
        // Beyond max_ack_delay (25 ms): clamped only once confirmed. 30 << 10 us = 30.72 ms.
        (DATA, false, 30, 169),
        (DATA, true, 30, 175),
        // A delay beyond the sample is not believed at all.
        (DATA, false, u64::MAX, 200),
        // Initial packets are acknowledged at once.
        (PacketSpace::Initial, false, 2000, 200),
    ];
    for (space, is_confirmed, delay, expected) in table {
        let mut harness = Harness::new();
        harness.recovery.set_peer_ack_parameters(Duration::from_millis(25), 10);
        harness.send(space);
        harness.at(100).ack(space, &[0..=0]);
        harness.view.is_confirmed = is_confirmed;
        harness.send(space);
        let frame = AckFrame { delay, ..ack_frame(&[1..=1]) };
        harness.at(300).on_ack(space, &frame).expect("legal");
        let sample = harness.log().acks[1].rtt_sample.expect("sampled");
        assert_eq!(sample.as_millis(), expected, "{space:?} {is_confirmed} {delay}");
        let factor = if space == DATA { 1 << 10 } else { 1 << 3 };
        let told = Duration::from_micros(delay.saturating_mul(factor));
        assert_eq!(harness.log().acks[1].ack_delay, told, "policies hear what the peer says, in every space");
    }
}

#[test]
fn acknowledging_what_was_never_sent_is_a_violation() {
    // spec: rfc9000 13.1 unsent-ack-closes
    let mut harness = Harness::new();
    harness.send_data(3);
    let max = posthaste_wire::varint::MAX;
    let hostile: [&[RangeInclusive<u64>]; 4] = [&[3..=3], &[0..=3], &[max..=max], &[0..=max]];
    for ranges in hostile {
        let error = harness.on_ack(DATA, &ack_frame(ranges)).expect_err("must be refused");
        assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
        assert_eq!(error.frame_type, 0, "the caller knows with what type the frame came");
        assert!(harness.on_ack(PacketSpace::Initial, &ack_frame(ranges)).is_err(), "the spaces are apart");
    }
    assert_eq!(harness.path.bytes_in_flight().get(), 3600, "nothing has changed");
    assert!(harness.seen.acked.is_empty());
    assert_eq!(harness.recovery.largest_acked(DATA), None);
}

/// Copies the youngest packet that the harness has sent, and sends the copy; its number.
fn copy(harness: &mut Harness) -> Option<u64> {
    let repeat = harness.frames_to_repair(|repeat| repeat.copy == 0)?;
    harness.repeat = repeat;
    let number = harness.send(DATA);
    harness.repeat = Repeat::default();
    Some(number)
}

fn lost_frames(harness: &mut Harness) -> Vec<u64> {
    let frames = harness.seen.lost.drain(..).map(|(_, frame)| match frame {
        SentFrame::Crypto { start, .. } => start,
        other => panic!("{other:?}"),
    });
    frames.collect()
}

#[test]
fn the_youngest_packets_are_copied_once_each_and_copies_never() {
    let mut harness = Harness::new();
    harness.send_data(3);
    let mut copied = Vec::new();
    while copy(&mut harness).is_some() {
        copied.extend(lost_frames(&mut harness));
    }
    assert_eq!(copied, [2, 1, 0]);
}

#[test]
fn a_copy_answers_for_what_it_carries_and_its_original_no_longer() {
    let mut harness = Harness::new();
    harness.at(0).send_data(3);
    let number = copy(&mut harness).expect("there is one");
    assert_eq!((number, lost_frames(&mut harness)), (3, vec![2]));
    // Packets 4 to 7 arrive: the original (2) and the copy (3) are lost with 0 and 1.
    harness.send_data(4);
    harness.at(50).ack_data(&[4..=7]);
    assert_eq!(harness.seen.lost_packets.len(), 4);
    // Frame 3 is the copy's own: the harness gives each packet one.
    assert_eq!(lost_frames(&mut harness), [0, 1, 3]);
    assert_eq!(harness.log().losses[0].packets.len(), 4, "the controller hears of all of them");
    // The original has arrived after all: that settles its frame.
    harness.at(51).ack_data(&[4..=7, 2..=2]);
    let acked: Vec<_> = harness.seen.acked.iter().map(|(_, frame)| *frame).collect();
    assert!(acked.contains(&SentFrame::Crypto { start: 2, end: 3 }));
    assert_eq!(harness.seen.spurious_packets, 1);
}

#[test]
fn only_packets_of_the_path_are_copied_and_probes_of_its_size_never() {
    let mut harness = Harness::new();
    harness.send_mtu_probe();
    assert_eq!(copy(&mut harness), None);
    harness.send_data(1);
    harness.path.id = 1;
    assert_eq!(copy(&mut harness), None);
    harness.path.id = 0;
    assert!(copy(&mut harness).is_some());
}

#[test]
fn a_copy_that_fills_the_window_is_no_demand() {
    let is_limited = |copies: usize| {
        let mut harness = Harness::new();
        harness.log().window = 6000;
        harness.at(10).send_data(4);
        harness.path.on_app_limited(harness.now);
        for _ in 0..copies {
            copy(&mut harness).expect("there is one");
        }
        if copies == 0 {
            harness.send_data(1);
        }
        harness.at(50).ack_data(&[0..=4]);
        harness.log().acks[0].app_limited
    };
    assert!(is_limited(1), "four packets of the application's and a copy fill the window of five");
    assert!(!is_limited(0), "five of the application's do so, too");
}

/// A full 1-RTT packet of this number.
fn outgoing(number: u64) -> Outgoing {
    Outgoing {
        space: DATA,
        number,
        now: Time::ZERO,
        bytes: 1200,
        ack_eliciting: true,
        in_flight: true,
        ecn_marked: false,
        repeat: Repeat::default(),
        frames: SentFrames::new(),
    }
}

#[test]
fn acknowledging_a_skipped_number_is_a_violation() {
    let mut harness = Harness::new();
    harness.send_data(2);
    harness.recovery.on_packet_sent(outgoing(3), &mut harness.path);
    assert!(harness.on_ack(DATA, &ack_frame(&[0..=3])).is_err());
    assert!(harness.on_ack(DATA, &ack_frame(&[2..=2])).is_err());
    assert!(harness.on_ack(DATA, &ack_frame(&[3..=3, 0..=1])).is_ok());
    // However many are skipped, only the newest are remembered.
    harness.recovery.on_packet_sent(outgoing(1 << 40), &mut harness.path);
    assert_eq!(harness.recovery.spaces[DATA].skipped.len(), SKIPPED_NUMBERS);
    assert!(harness.on_ack(DATA, &ack_frame(&[(1 << 40) - 1..=1 << 40])).is_err());
    assert!(harness.on_ack(DATA, &ack_frame(&[1 << 40..=1 << 40])).is_ok());
}

#[test]
fn packet_numbers_come_to_an_end() {
    // spec: rfc9000 12.3 last-number-ends
    let mut harness = Harness::new();
    harness.recovery.on_packet_sent(outgoing(varint::MAX - 1026), &mut harness.path);
    assert!(!harness.recovery.is_exhausted());
    harness.recovery.on_packet_sent(outgoing(varint::MAX - 1025), &mut harness.path);
    assert!(harness.recovery.is_exhausted(), "a batch might use up the rest");
}

#[test]
fn packets_of_ack_alone_are_reported_and_bounded() {
    let mut harness = Harness::new();
    for _ in 0..ACK_ONLY_PACKETS * 3 {
        harness.send_as(DATA, 40, false, false);
    }
    assert_eq!(harness.path.bytes_in_flight(), ByteCount::ZERO);
    assert_eq!(harness.timeout(), None);
    let last = ACK_ONLY_PACKETS as u64 * 3 - 1;
    harness.at(50).ack_data(&[0..=last]);
    assert_eq!(harness.seen.acked.len(), ACK_ONLY_PACKETS);
    assert!(harness.log().acks.is_empty(), "congestion control does not hear of them");
    assert!(!harness.path.rtt().is_measured);
    harness.seen.clear();
    harness.at(60).ack_data(&[0..=last]);
    assert!(harness.seen.acked.is_empty());
}

#[test]
fn what_is_requeued_counts_as_never_sent() {
    // spec: rfc9000 12.3 numbers-used-once, 17.2.5.3 numbers-go-on
    let mut harness = Harness::new();
    harness.send_data(3);
    harness.requeue_all(DATA);
    assert_eq!(harness.seen.lost.len(), 3);
    assert!(harness.seen.lost_packets.is_empty());
    assert_eq!(harness.path.bytes_in_flight(), ByteCount::ZERO);
    assert_eq!(harness.recovery.next_number(DATA), 3, "numbers are not used again");
    assert_eq!(harness.timeout(), None);
    assert!(harness.log().losses.is_empty());
}

#[test]
fn a_discarded_space_is_forgotten_without_a_verdict() {
    // spec: rfc9002 6.4 state-dropped, 6.4 flight-reduced
    let mut harness = Harness::new();
    harness.send(PacketSpace::Initial);
    harness.send_data(1);
    harness.discard_space(PacketSpace::Initial);
    assert!(harness.seen.lost.is_empty() && harness.seen.acked.is_empty());
    assert_eq!(harness.path.bytes_in_flight().get(), 1200);
    assert_eq!(harness.recovery.next_number(PacketSpace::Initial), 1);
    assert!(!harness.recovery.has_ack_eliciting_in_flight(PacketSpace::Initial));
}

#[test]
fn each_increase_of_ce_is_told_once() {
    let mut harness = Harness::new();
    harness.path.begin_batch();
    let counts = |ect0, ce| Some(posthaste_wire::frame::EcnCounts { ect0, ect1: 0, ce });
    harness.peer_ecn = counts(0, 0);
    harness.send_data(6);
    harness.peer_ecn = counts(2, 0);
    harness.at(50).ack_data(&[0..=1]);
    assert!(harness.log().marks.is_empty());
    harness.peer_ecn = counts(2, 2);
    harness.at(60).ack_data(&[0..=3]);
    harness.at(70).ack_data(&[0..=4]);
    let log = harness.log();
    assert_eq!(log.marks, [(at_millis(60), Time::ZERO)]);
    assert_eq!(log.acks[1].newly_marked, 2);
    drop(log);
    harness.path.begin_batch();
    // The last ack did not account for packet 4: the peer's counts are not to be trusted.
    assert_eq!(harness.path.ecn_codepoint(), None);
    assert_eq!(harness.seen.newly_marked, 2);
}

/// What a random history may contain.
#[derive(Debug, Clone)]
enum Operation {
    Send {
        space: u8,
        kind: u8,
        count: u8,
    },
    /// The peer receives each of the packets sent with the probability that the bits give, and acknowledges all
    /// that it has, or only the newest.
    Ack {
        space: u8,
        bits: u64,
        newest_only: bool,
    },
    Wait(u16),
    Expire {
        probe: bool,
    },
    Discard(u8),
    Requeue,
    /// The youngest packet is copied, and the copy leaves or has nothing to carry any more.
    Repair {
        leaves: bool,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0u8..6, 0u8..8, 1u8..12).prop_map(|(space, kind, count)| Operation::Send { space, kind, count }),
        5 => (0u8..6, any::<u64>(), any::<bool>())
            .prop_map(|(space, bits, newest_only)| Operation::Ack { space, bits, newest_only }),
        4 => (0u16..400).prop_map(Operation::Wait),
        3 => any::<bool>().prop_map(|probe| Operation::Expire { probe }),
        1 => (0u8..2).prop_map(Operation::Discard),
        1 => Just(Operation::Requeue),
        3 => any::<bool>().prop_map(|leaves| Operation::Repair { leaves }),
    ]
}

/// What the test itself knows of a history.
#[derive(Debug, Default)]
struct Model {
    /// In-flight packets without a verdict, by space and number, and their sizes.
    outstanding: BTreeMap<(PacketSpace, u64), u64>,
    received: BTreeMap<PacketSpace, BTreeSet<u64>>,
    sent: BTreeMap<PacketSpace, u64>,
    /// How often each frame came up as acknowledged and as lost.
    verdicts: BTreeMap<(PacketSpace, u64), (u32, u32)>,
    discarded: BTreeSet<PacketSpace>,
    /// The frames of all in-flight packets.
    frames: Vec<(PacketSpace, u64)>,
}

/// Data is the busiest space.
fn space_of(index: u8) -> PacketSpace {
    match index {
        0 => PacketSpace::Initial,
        1 => PacketSpace::Handshake,
        _ => PacketSpace::Data,
    }
}

fn ranges_of(numbers: &BTreeSet<u64>) -> Vec<RangeInclusive<u64>> {
    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
    for &number in numbers.iter().rev() {
        match ranges.last_mut() {
            Some(range) if *range.start() == number + 1 => *range = number..=*range.end(),
            _ => ranges.push(number..=number),
        }
    }
    ranges
}

impl Model {
    fn send(&mut self, harness: &mut Harness, space: PacketSpace, kind: u8, count: u8) {
        if self.discarded.contains(&space) {
            return;
        }
        for _ in 0..count {
            let bytes = 40 + usize::from(kind) * 100;
            // One in eight is of ACK alone, one of padding.
            let number = harness.send_as(space, bytes, kind > 1, kind > 0);
            self.sent.insert(space, number + 1);
            if kind > 0 {
                self.frames.push((space, harness.frames_sent() - 1));
                self.outstanding.insert((space, number), bytes as u64);
            }
        }
    }

    fn ack(&mut self, harness: &mut Harness, space: PacketSpace, bits: u64, newest_only: bool) {
        let sent = self.sent.get(&space).copied().unwrap_or(0);
        let received = self.received.entry(space).or_default();
        received.extend((0..sent).filter(|number| bits.rotate_left((*number % 64) as u32) & 5 == 5));
        let mut ranges = ranges_of(received);
        if newest_only {
            ranges.truncate(2);
        }
        if self.discarded.contains(&space) || ranges.is_empty() {
            return;
        }
        harness.ack(space, &ranges);
        self.outstanding
            .retain(|(id, number), _| *id != space || !ranges.iter().any(|range| range.contains(number)));
    }

    fn forget(&mut self, space: PacketSpace) {
        self.outstanding.retain(|(id, _), _| *id != space);
    }

    /// Books what has become of packets and checks everything that must always hold.
    fn check(&mut self, harness: &mut Harness) {
        for (space, frame) in &harness.seen.acked {
            let SentFrame::Crypto { start, .. } = frame else { panic!("{frame:?}") };
            self.verdicts.entry((*space, *start)).or_default().0 += 1;
        }
        for (space, frame) in &harness.seen.lost {
            let SentFrame::Crypto { start, .. } = frame else { panic!("{frame:?}") };
            self.verdicts.entry((*space, *start)).or_default().1 += 1;
        }
        for lost in &harness.seen.lost_packets {
            let bytes = self.outstanding.remove(&(lost.space, lost.number));
            assert_eq!(bytes, Some(lost.bytes.get()), "{lost:?} was not outstanding");
        }
        harness.seen.clear();
        assert!(self.verdicts.values().all(|&(acked, lost)| acked <= 1 && lost <= 1));
        let in_flight: u64 = self.outstanding.values().sum();
        assert_eq!(harness.path.bytes_in_flight().get(), in_flight);
        for space in PacketSpace::ALL {
            let held: Vec<u64> =
                harness.recovery.spaces[space].sent.iter().map(|packet| packet.number).collect();
            let known = self.outstanding.keys().filter(|(id, _)| *id == space);
            assert!(known.map(|(_, number)| number).eq(held.iter()), "{space:?}");
        }
        let must_probe =
            PacketSpace::ALL.into_iter().any(|space| harness.recovery.has_ack_eliciting_in_flight(space));
        assert!(!must_probe || harness.timeout().is_some(), "no timer although something is outstanding");
    }

    fn apply(&mut self, harness: &mut Harness, operation: &Operation) {
        match *operation {
            Operation::Send { space, kind, count } => self.send(harness, space_of(space), kind, count),
            Operation::Ack { space, bits, newest_only } => {
                self.ack(harness, space_of(space), bits, newest_only);
            }
            Operation::Wait(millis) => {
                harness.now += Duration::from_millis(millis.into());
            }
            Operation::Expire { probe } => {
                let Some(at) = harness.timeout() else { return };
                harness.now = harness.now.max(at);
                let expired = harness.on_timeout();
                assert_ne!(expired, Expired::Nothing, "the timer was due");
                if let (Expired::Probe { space, packets }, true) = (expired, probe) {
                    harness.frames_to_probe(space);
                    self.send(harness, space, 7, packets);
                }
            }
            Operation::Discard(space) => {
                let space = space_of(space);
                harness.discard_space(space);
                self.discarded.insert(space);
                self.forget(space);
            }
            Operation::Requeue => {
                harness.requeue_all(DATA);
                self.forget(DATA);
            }
            Operation::Repair { leaves } => {
                let copy = harness.frames_to_repair(|repeat| repeat.copy < 2);
                if copy.is_some() && leaves {
                    self.send(harness, DATA, 7, 1);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_histories_keep_the_books(operations in prop::collection::vec(operation(), 1..80)) {
        let mut harness = Harness::new();
        harness.log().window = u64::MAX;
        let mut model = Model::default();
        for operation in &operations {
            model.apply(&mut harness, operation);
            model.check(&mut harness);
        }
        // In the end the peer acknowledges all: every in-flight packet of a living space has had its verdict.
        let last = model.sent.get(&DATA).copied().unwrap_or(0);
        if last > 0 {
            harness.ack_data(&[0..=last - 1]);
            model.forget(DATA);
        }
        model.check(&mut harness);
        prop_assert!(!harness.recovery.has_ack_eliciting_in_flight(DATA));
        for frame in model.frames.iter().filter(|(space, _)| *space == DATA) {
            prop_assert!(model.verdicts.contains_key(frame), "{frame:?} was neither acknowledged nor lost");
        }
    }
}
