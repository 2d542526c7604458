//! Ranges, limits, duplicates and what ACK frames say.

use std::collections::BTreeSet;

use posthaste_units::Duration;
use posthaste_wire::Frame;
use posthaste_wire::frame::AckFrame;
use posthaste_wire::varint;
use proptest::prelude::*;

use super::*;
use crate::recovery::testing::at_millis;

/// Acknowledges every second ack-eliciting packet at once, the odd one after 25 ms.
#[derive(Debug, Default)]
struct EverySecond {
    waiting: u32,
    deadline: Option<Time>,
}

impl AckPolicy for EverySecond {
    fn on_packet(&mut self, packet: &ReceivedSample) {
        if packet.ack_eliciting {
            self.waiting += 1;
            let at_once = self.waiting >= 2 || packet.out_of_order || packet.marked;
            let wait = if at_once { Duration::ZERO } else { Duration::from_millis(25) };
            self.deadline = Some(packet.now + wait);
        }
    }
    fn deadline(&self) -> Option<Time> {
        self.deadline
    }
    fn on_ack_sent(&mut self) {
        *self = Self::default();
    }

    fn on_request(&mut self, _request: &AckRequest) {}
}

fn receive(received: &mut ReceivedPackets, now: Time, number: u64) -> Arrival {
    let arrival = received.on_packet(number);
    if arrival != Arrival::Duplicate {
        received.record(now, number, true, None);
    }
    arrival
}

fn receive_all(received: &mut ReceivedPackets, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        receive(received, Time::ZERO, number);
    }
}

/// Writes an ACK frame into `room` bytes and reads it back.
fn written(received: &mut ReceivedPackets, now: Time, room: usize) -> Option<AckFrame> {
    let mut buffer = Vec::new();
    let mut writer = FrameWriter::new(&mut buffer, room);
    let is_written = received.write_ack(now, &mut writer, 3, None) != Written::Nothing;
    let (frames, ack_eliciting, in_flight) = writer.finish();
    assert!(!ack_eliciting && !in_flight);
    assert!(buffer.len() <= room);
    if !is_written {
        assert!(buffer.is_empty() && frames.is_empty());
        return None;
    }
    let frame =
        posthaste_wire::frame::Iter::new(buffer.into()).next().expect("one frame").expect("well-formed");
    let Frame::Ack(ack) = frame else { panic!("{frame:?}") };
    let largest = *ack.ranges[0].end();
    assert_eq!(frames.as_slice(), [SentFrame::Ack { largest }]);
    Some(ack)
}

#[test]
fn ranges_are_written_newest_first() {
    let mut received = ReceivedPackets::default();
    receive_all(&mut received, [0, 1, 2, 5, 9, 8, 4]);
    let ack = written(&mut received, Time::ZERO, 1000).expect("written");
    assert_eq!(ack.ranges, [8..=9, 4..=5, 0..=2]);
    assert_eq!(ack.ecn, None);
    assert_eq!(received.range_count(), 3);
}

#[test]
fn a_gap_that_fills_joins_its_neighbours() {
    let mut received = ReceivedPackets::default();
    receive_all(&mut received, [0, 2, 4, 3, 1]);
    assert_eq!(written(&mut received, Time::ZERO, 1000).expect("written").ranges, [0..=4]);
}

#[test]
fn arrivals_are_judged_by_the_largest_number_before_them() {
    let mut received = ReceivedPackets::default();
    let in_order = Arrival::New { out_of_order: false };
    let out_of_order = Arrival::New { out_of_order: true };
    let table = [
        (7, in_order),
        (8, in_order),
        (10, out_of_order),
        (9, out_of_order),
        (11, in_order),
        (9, Arrival::Duplicate),
    ];
    for (number, expected) in table {
        assert_eq!(receive(&mut received, Time::ZERO, number), expected, "packet {number}");
    }
}

#[test]
fn initial_packets_are_acknowledged_at_once() {
    // spec: rfc9000 13.2.1 handshake-acked-at-once
    let mut received = ReceivedPackets::default();
    assert!(!received.has_news());
    received.on_packet(0);
    received.record(at_millis(5), 0, false, None);
    assert_eq!(received.deadline(), None, "an ack alone is not acknowledged");
    assert!(received.has_news());
    received.on_packet(1);
    received.record(at_millis(6), 1, true, None);
    assert_eq!(received.deadline(), Some(at_millis(6)));
    assert!(written(&mut received, at_millis(6), 100).is_some());
    assert_eq!((received.deadline(), received.has_news()), (None, false));
}

#[test]
fn the_policy_decides_when_data_is_acknowledged() {
    // spec: rfc9000 13.2.1 acked-in-time
    let mut received = ReceivedPackets::with_policy(Box::<EverySecond>::default());
    receive(&mut received, at_millis(1), 0);
    assert_eq!(received.deadline(), Some(at_millis(26)));
    receive(&mut received, at_millis(2), 1);
    assert_eq!(received.deadline(), Some(at_millis(2)));
    written(&mut received, at_millis(2), 100);
    assert_eq!(received.deadline(), None);
    // A gap, and then what fills it, at once.
    receive(&mut received, at_millis(3), 3);
    assert_eq!(received.deadline(), Some(at_millis(3)));
    written(&mut received, at_millis(3), 100);
    receive(&mut received, at_millis(4), 2);
    assert_eq!(received.deadline(), Some(at_millis(4)));
    assert_eq!(receive(&mut received, at_millis(9), 2), Arrival::Duplicate);
}

#[test]
fn the_delay_counts_from_the_largest_packet() {
    // spec: rfc9000 13.2.5 own-delay-only
    let mut received = ReceivedPackets::default();
    receive(&mut received, at_millis(10), 5);
    receive(&mut received, at_millis(14), 4);
    // 8 ms = 1000 << 3 us
    assert_eq!(written(&mut received, at_millis(18), 100).expect("written").delay, 1000);
}

#[test]
fn marks_are_counted_once_a_packet() {
    // spec: rfc9000 13.4.1 marks-reported
    let mut received = ReceivedPackets::default();
    let marks = [Some(EcnCodepoint::Ect0), Some(EcnCodepoint::Ce), None, Some(EcnCodepoint::Ect1)];
    for (number, mark) in marks.into_iter().enumerate() {
        received.on_packet(number as u64);
        received.record(Time::ZERO, number as u64, true, mark);
    }
    let ack = written(&mut received, Time::ZERO, 100).expect("written");
    assert_eq!(ack.ecn, Some(EcnCounts { ect0: 1, ect1: 1, ce: 1 }));
}

#[test]
fn a_frame_holds_as_many_ranges_as_fit() {
    let mut received = ReceivedPackets::default();
    receive_all(&mut received, (0..40).map(|number| number * 2));
    let all = written(&mut received, Time::ZERO, 1000).expect("written").ranges;
    assert_eq!(all.len(), 40);
    for room in 0..100 {
        match written(&mut received, Time::ZERO, room) {
            Some(ack) => assert_eq!(ack.ranges, all[..ack.ranges.len()], "room {room}"),
            None => assert!(room < 7, "room {room}"),
        }
    }
}

#[test]
fn nothing_received_is_nothing_written() {
    assert_eq!(written(&mut ReceivedPackets::default(), Time::ZERO, 100), None);
}

#[test]
fn a_peer_that_leaves_gaps_makes_old_ranges_be_forgotten() {
    // spec: rfc9000 13.2.3 range-kept, 13.2.3 largest-kept
    let mut received = ReceivedPackets::default();
    let count = ACK_RANGES as u64 * 4;
    receive_all(&mut received, (0..count).map(|number| number * 2));
    assert_eq!(received.range_count(), ACK_RANGES);
    assert_eq!(received.seen.0.len(), ACK_RANGES);
    // What is forgotten may have been seen: never process it twice.
    assert_eq!(received.on_packet(0), Arrival::Duplicate);
    assert_eq!(received.on_packet(1), Arrival::Duplicate);
    // Above the edge, gaps may still fill.
    assert_eq!(received.on_packet(count * 2 - 3), Arrival::New { out_of_order: true });
    assert_eq!(received.largest(), Some(count * 2 - 2));
}

#[test]
fn the_extremes_of_the_number_space_do_not_overflow() {
    let mut received = ReceivedPackets::default();
    receive_all(&mut received, [u64::MAX, 0, u64::MAX - 1]);
    assert_eq!(received.on_packet(u64::MAX), Arrival::Duplicate);
    received.on_ack_acked(u64::MAX);
    assert_eq!(received.range_count(), 3 - 1, "all but the largest could go, but the news stays");
}

#[test]
fn ranges_that_the_peer_knows_of_are_forgotten_but_not_what_is_news() {
    let mut received = ReceivedPackets::default();
    receive_all(&mut received, [0, 1, 2, 5, 6, 9]);
    written(&mut received, Time::ZERO, 100);
    received.on_ack_acked(5);
    assert_eq!(written(&mut received, Time::ZERO, 100).expect("written").ranges, [9..=9, 6..=6]);
    // 3 comes in late, and has not been reported when the ack of the ack does.
    receive_all(&mut received, [3]);
    received.on_ack_acked(9);
    assert_eq!(written(&mut received, Time::ZERO, 100).expect("written").ranges, [9..=9, 6..=6, 3..=3]);
    received.on_ack_acked(9);
    // The largest is kept: late gaps must not make the largest acknowledged number fall.
    assert_eq!(written(&mut received, Time::ZERO, 100).expect("written").ranges, [9..=9]);
    assert_eq!(received.on_packet(2), Arrival::Duplicate);
    assert_eq!(received.on_packet(4), Arrival::New { out_of_order: true });
}

/// Exhaustive: six arrivals of six numbers, in each order, with each repetition.
#[test]
fn ranges_of_every_short_sequence_hold_what_arrived() {
    const NUMBERS: u64 = 6;
    for code in 0..NUMBERS.pow(6) {
        let mut received = ReceivedPackets::default();
        let mut model = BTreeSet::new();
        for place in 0..6 {
            let number = code / NUMBERS.pow(place) % NUMBERS;
            let is_new = receive(&mut received, Time::ZERO, number) != Arrival::Duplicate;
            assert_eq!(is_new, model.insert(number), "sequence {code}");
        }
        let ack = written(&mut received, Time::ZERO, 1000).expect("written");
        let listed: BTreeSet<u64> = ack.ranges.iter().cloned().flatten().collect();
        assert_eq!(listed, model, "sequence {code}");
        let apart = ack.ranges.windows(2).all(|pair| *pair[1].end() + 1 < *pair[0].start());
        assert!(apart, "sequence {code}: {:?}", ack.ranges);
    }
}

/// Exhaustive for ten numbers: from each of the 1,024 sets, each further number and each "all up to". As each set is reached, so
/// is each sequence of them, however long. The same at both ends of the number space, and with a set that is full.
#[test]
fn every_step_from_every_set_of_numbers_does_what_it_says() {
    const NUMBERS: u64 = 10;
    let set_of = |base: u64, bits: u64| {
        let mut set = NumberRanges::default();
        (0..NUMBERS).filter(|bit| bits >> bit & 1 == 1).for_each(|bit| {
            set.insert(base + bit);
        });
        set
    };
    let bits_of = |base: u64, set: &NumberRanges| {
        let ranges: Vec<(u64, u64)> = set.0.iter().copied().collect();
        assert!(ranges.iter().all(|(start, end)| start <= end), "{ranges:?}");
        assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{ranges:?} overlap or touch");
        ranges
            .iter()
            .flat_map(|(start, end)| *start..=*end)
            .fold(0, |bits, number| bits | 1 << (number - base))
    };
    for base in [0, 1, varint::MAX + 1 - NUMBERS] {
        for bits in 0..1_u64 << NUMBERS {
            assert_eq!(bits_of(base, &set_of(base, bits)), bits);
            for number in 0..NUMBERS {
                let mut set = set_of(base, bits);
                assert_eq!(
                    set.insert(base + number),
                    (bits >> number & 1 == 0, None),
                    "{bits:b} and {number}"
                );
                assert_eq!(bits_of(base, &set), bits | 1 << number);
                let mut set = set_of(base, bits);
                set.remove_up_to(base + number);
                let left = bits >> (number + 1) << (number + 1);
                assert_eq!(bits_of(base, &set), left, "{bits:b} beyond {number}");
                assert_eq!(set.largest(), (left != 0).then(|| base + u64::from(left.ilog2())));
            }
        }
    }
    // Every second number, as many as are kept: one more, wherever it is, leaves no more than that.
    let kept = 2 * ACK_RANGES as u64;
    for number in 0..=kept + 2 {
        let mut set = NumberRanges::default();
        for number in (0..kept).step_by(2) {
            set.insert(2 + number);
        }
        let (is_new, dropped) = set.insert(number);
        assert_eq!(is_new, number % 2 == 1 || number == 0 || number > kept, "{number}");
        assert!(set.0.len() <= ACK_RANGES, "{number}: {} ranges", set.0.len());
        // Only the lowest range goes.
        let expected = match number {
            0 => Some(0),
            _ if number == kept + 2 => Some(2),
            _ => None,
        };
        assert_eq!(dropped, expected, "{number}");
    }
}

proptest! {
    #[test]
    fn ranges_hold_exactly_what_arrived(numbers in prop::collection::vec(0u64..100, 1..120)) {
        // At most 50 ranges: nothing is forgotten.
        let mut received = ReceivedPackets::default();
        let mut model = BTreeSet::new();
        for number in numbers {
            let is_new = receive(&mut received, Time::ZERO, number) != Arrival::Duplicate;
            prop_assert_eq!(is_new, model.insert(number));
        }
        let ack = written(&mut received, Time::ZERO, 1000).expect("written");
        let listed: BTreeSet<u64> = ack.ranges.iter().cloned().flatten().collect();
        prop_assert_eq!(listed, model);
        let apart = ack.ranges.windows(2).all(|pair| *pair[1].end() + 1 < *pair[0].start());
        prop_assert!(apart, "{:?}", ack.ranges);
    }

    #[test]
    fn no_number_is_ever_new_twice(numbers in prop::collection::vec(0u64..1000, 1..400)) {
        let mut received = ReceivedPackets::default();
        let mut seen = BTreeSet::new();
        for number in numbers {
            if receive(&mut received, Time::ZERO, number) != Arrival::Duplicate {
                prop_assert!(seen.insert(number));
            }
            prop_assert!(received.range_count() <= ACK_RANGES);
        }
    }
}

fn with_reordering_threshold(threshold: u64) -> ReceivedPackets {
    let mut received = ReceivedPackets::with_policy(Box::new(EverySecond::default()));
    received.on_request(&AckRequest {
        ack_eliciting_threshold: 100,
        max_ack_delay: Duration::from_millis(25),
        reordering_threshold: threshold,
    });
    received
}

/// Whether each of `numbers`, arriving in this order, calls for an ack at once.
fn urgency(received: &mut ReceivedPackets, numbers: &[u64]) -> Vec<bool> {
    let arrival = |number: &u64| match received.on_packet(*number) {
        Arrival::New { out_of_order } => out_of_order,
        Arrival::Duplicate => panic!("{number} is new"),
    };
    numbers.iter().map(arrival).collect()
}

#[test]
fn a_reordering_threshold_counts_from_the_oldest_missing_number_that_was_not_reported() {
    let mut received = with_reordering_threshold(3);
    // 2 is missing; that is 3 below once 5 is there.
    assert_eq!(urgency(&mut received, &[0, 1, 3, 4, 5]), [false, false, false, false, true]);
    assert!(written(&mut received, Time::ZERO, 100).is_some());
    // 2 has been reported; 7 has not, and 10 is three above it.
    assert_eq!(urgency(&mut received, &[6, 8, 9, 10]), [false, false, false, true]);
    // What fills the gap calls for nothing.
    assert_eq!(urgency(&mut received, &[7, 11]), [false, false]);
    assert_eq!(urgency(&mut with_reordering_threshold(0), &[0, 9, 3, 100]), [false; 4], "never");
    assert_eq!(urgency(&mut with_reordering_threshold(1), &[0, 2, 1, 3]), [false, true, true, false]);
}

#[test]
fn an_ack_asked_for_at_once_is_due_at_once_and_only_then() {
    let mut received = ReceivedPackets::with_policy(Box::new(EverySecond::default()));
    receive(&mut received, at_millis(1), 0);
    assert_eq!(received.deadline(), Some(at_millis(26)));
    received.on_immediate(at_millis(2));
    received.on_immediate(at_millis(3));
    assert_eq!(received.deadline(), Some(at_millis(2)));
    assert!(written(&mut received, at_millis(3), 100).is_some());
    assert_eq!(received.deadline(), None);
}
