//! [`SentPackets`] against a plain ordered map, and what it costs.

use std::collections::BTreeMap;

use posthaste_units::Time;
use proptest::prelude::*;

use super::*;

fn packet(number: u64) -> SentPacket {
    let stamp = Stamp {
        sent_at: Time::ZERO,
        in_flight: ByteCount::ZERO,
        delivered: ByteCount::ZERO,
        delivered_at: Time::ZERO,
        first_sent_at: Time::ZERO,
        lost: ByteCount::ZERO,
        app_limited: false,
    };
    SentPacket {
        number,
        bytes: ByteCount::new(1200),
        stamp,
        ack_eliciting: !number.is_multiple_of(3),
        ecn_marked: false,
        path: 0,
        requeued: false,
        repeat: crate::recovery::Repeat::default(),
        frames: SentFrames::new(),
    }
}

fn numbers(sent: &SentPackets) -> Vec<u64> {
    sent.iter().map(|packet| packet.number).collect()
}

fn take(sent: &mut SentPackets, first: u64, last: u64) -> Vec<u64> {
    let mut taken = Vec::new();
    sent.take_range(first, last, |packet| taken.push(packet.number));
    taken
}

#[test]
fn ranges_may_begin_and_end_anywhere() {
    let mut sent = SentPackets::default();
    for number in [10, 11, 12, 20, 21] {
        sent.push(packet(number));
    }
    assert_eq!(take(&mut sent, 0, 9), [] as [u64; 0]);
    assert_eq!(take(&mut sent, 22, u64::MAX), [] as [u64; 0]);
    assert_eq!(take(&mut sent, 13, 19), [] as [u64; 0]);
    assert_eq!(take(&mut sent, 12, 20), [12, 20]);
    assert_eq!(take(&mut sent, 12, 20), [] as [u64; 0], "acknowledged once only");
    assert_eq!(take(&mut sent, 0, u64::MAX), [10, 11, 21]);
    assert!(!sent.has_ack_eliciting());
}

#[test]
fn repeating_an_old_ack_costs_a_step_not_a_walk() {
    let mut sent = SentPackets::default();
    let count = 10_000;
    for number in 0..count {
        sent.push(packet(number));
    }
    // Packet 0 stays outstanding, so that nothing can be trimmed.
    assert_eq!(take(&mut sent, 1, count - 1).len(), count as usize - 1);
    take(&mut sent, 1, count - 1);
    sent.steps = 0;
    for round in 0..100 {
        take(&mut sent, 1 + round * 7, count - 1);
        take(&mut sent, 1 + round * 11, 500 + round);
    }
    assert!(sent.steps < 100 * 2 * 4, "{} steps for 200 stale ranges", sent.steps);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn behaves_like_an_ordered_map(
        operations in prop::collection::vec((0u8..4, 0u64..12, 0u64..40), 1..120),
    ) {
        let mut sent = SentPackets::default();
        let mut model: BTreeMap<u64, bool> = BTreeMap::new();
        let mut next = 0;
        for (kind, a, b) in operations {
            match kind {
                0 | 1 => {
                    next += a / 4;
                    sent.push(packet(next));
                    model.insert(next, true);
                    next += 1;
                }
                2 => {
                    let first = next.saturating_sub(b);
                    let expected: Vec<u64> = model
                        .range_mut(first..=first + a)
                        .filter_map(|(number, outstanding)| std::mem::take(outstanding).then_some(*number))
                        .collect();
                    prop_assert_eq!(take(&mut sent, first, first + a), expected);
                }
                _ => {
                    let expected = model.pop_first().and_then(|(number, outstanding)| outstanding.then_some(number));
                    prop_assert_eq!(sent.pop_front().map(|packet| packet.number), expected);
                }
            }
            let outstanding: Vec<u64> =
                model.iter().filter(|(_, outstanding)| **outstanding).map(|(number, _)| *number).collect();
            prop_assert_eq!(sent.has_ack_eliciting(), outstanding.iter().any(|number| !number.is_multiple_of(3)));
            prop_assert_eq!(numbers(&sent), outstanding);
        }
    }
}
