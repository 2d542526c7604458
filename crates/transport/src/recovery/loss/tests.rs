//! Thresholds, reordering and persistent congestion.

use super::*;
use crate::recovery::testing::{Harness, at_millis};

/// A harness with an RTT of exactly 100 ms, at 1000 ms; packet 0 of the data space is used up.
fn measured() -> Harness {
    let mut harness = Harness::new();
    harness.at(900).send_data(1);
    harness.at(1000).ack_data(&[0..=0]);
    harness.seen.clear();
    harness
}

#[test]
fn the_packet_threshold_is_three() {
    let mut harness = measured();
    harness.send_data(6);
    // 1..=6 are outstanding. 4 acknowledged: 1 is three behind, 2 and 3 are not.
    harness.at(1050).ack_data(&[4..=4]);
    assert_eq!(harness.lost_numbers(), [1]);
    assert_eq!(harness.seen.lost_packets[0].reason, LossReason::PacketThreshold);
    harness.at(1051).ack_data(&[5..=5]);
    assert_eq!(harness.lost_numbers(), [1, 2]);
    assert_eq!(harness.log().losses.len(), 2);
}

#[test]
fn the_time_threshold_is_nine_eighths_of_the_larger_rtt() {
    // spec: rfc9002 6.2.1 no-probe-beside-loss-timer
    let mut harness = measured();
    harness.send_data(2);
    harness.at(1100).ack_data(&[2..=2]);
    assert_eq!(harness.lost_numbers(), [] as [u64; 0]);
    // 100 ms x 9/8 after it was sent.
    assert_eq!(harness.timeout(), Some(at_millis(1000) + Duration::from_micros(112_500)));
    assert_eq!(harness.at(1112).on_timeout(), crate::recovery::Expired::Nothing);
    assert_eq!(harness.expire(), crate::recovery::Expired::LossDetected);
    assert_eq!(harness.lost_numbers(), [1]);
    assert_eq!(harness.seen.lost_packets[0].reason, LossReason::TimeThreshold);
}

#[test]
fn the_loss_delay_has_a_granularity_of_a_millisecond() {
    // spec: rfc9002 6.1.2 loss-delay-floor
    let mut harness = Harness::new();
    harness.at(0).send_data(1);
    harness.now = Time::from_nanos(20_000);
    harness.ack_data(&[0..=0]);
    harness.at(10).send_data(2);
    harness.now = at_millis(10) + Duration::from_micros(20);
    harness.ack_data(&[2..=2]);
    assert_eq!(harness.timeout(), Some(at_millis(11)));
}

#[test]
fn packets_above_the_largest_acknowledged_are_never_lost() {
    let mut harness = measured();
    harness.send_data(5);
    harness.at(9000).ack_data(&[1..=1]);
    assert_eq!(harness.lost_numbers(), [] as [u64; 0]);
}

#[test]
fn losses_found_together_are_told_together() {
    let mut harness = measured();
    harness.send_data(10);
    harness.at(1100).ack_data(&[10..=10]);
    assert_eq!(harness.lost_numbers(), [1, 2, 3, 4, 5, 6, 7]);
    let log = harness.log();
    assert_eq!(log.losses.len(), 1);
    let loss = &log.losses[0];
    assert_eq!((loss.bytes, loss.prior_in_flight, loss.in_flight), (7 * 1200, 9 * 1200, 2 * 1200));
    assert_eq!(loss.lost, 7 * 1200);
    assert!(loss.packets.is_sorted_by_key(|packet| packet.number));
    drop(log);
    assert_eq!(harness.seen.lost.len(), 7);
}

#[test]
fn a_late_ack_undoes_the_loss_and_raises_the_packet_threshold() {
    let mut harness = measured();
    harness.send_data(8);
    let window = harness.log().window;
    harness.at(1100).ack_data(&[5..=5]);
    assert_eq!(harness.lost_numbers(), [1, 2]);
    assert!(harness.log().window < window);
    harness.at(1101).ack_data(&[5..=5, 1..=2]);
    assert_eq!(harness.seen.spurious_packets, 2);
    {
        let log = harness.log();
        assert_eq!(log.window, window, "restored");
        assert_eq!(log.spurious.len(), 1);
        assert_eq!((log.spurious[0].packets, log.spurious[0].sent_at), (2, at_millis(1000)));
    }
    // Packet 1 was four behind 5 and had arrived: five behind is the new threshold.
    assert_eq!(harness.recovery.thresholds.values(), (5, 9));
    harness.seen.clear();
    harness.at(1102).ack_data(&[5..=7]);
    assert_eq!(harness.lost_numbers(), [] as [u64; 0], "3 and 4 are within the new threshold");
}

#[test]
fn the_packet_threshold_is_bounded() {
    let mut harness = measured();
    harness.send_data(MAX_PACKET_THRESHOLD as usize * 3);
    let last = MAX_PACKET_THRESHOLD * 3;
    harness.at(1100).ack_data(&[last..=last]);
    harness.at(1101).ack_data(&[1..=last]);
    assert_eq!(harness.recovery.thresholds.values(), (MAX_PACKET_THRESHOLD, 9));
}

#[test]
fn spurious_time_losses_raise_the_time_threshold_up_to_two_rtt() {
    let mut harness = measured();
    for step in 1..=10u64 {
        let sent = harness.now;
        let late = harness.send(PacketSpace::Data);
        let next = harness.send(PacketSpace::Data);
        harness.now = sent + Duration::from_millis(100);
        harness.ack_data(&[next..=next]);
        assert_eq!(harness.expire(), crate::recovery::Expired::LossDetected);
        harness.ack_data(&[late..=next]);
        assert_eq!(harness.seen.spurious_packets, step);
        assert_eq!(harness.recovery.thresholds.values().1, (9 + step).min(16));
    }
}

#[test]
fn real_losses_let_raised_thresholds_fall_back() {
    let mut thresholds = Thresholds::new();
    thresholds.on_spurious(LossReason::PacketThreshold, 20);
    thresholds.on_spurious(LossReason::TimeThreshold, 1);
    assert_eq!(thresholds.values(), (21, 10));
    for _ in 1..REORDERING_PERSISTENCE {
        thresholds.on_losses();
    }
    assert_eq!(thresholds.values(), (21, 10));
    thresholds.on_losses();
    assert_eq!(thresholds.values(), (PACKET_THRESHOLD, TIME_THRESHOLD_EIGHTHS));
}

#[test]
fn lost_packets_are_remembered_for_a_while_and_in_bounded_number() {
    let mut harness = measured();
    harness.log().window = u64::MAX;
    harness.send_data(LOST_PACKETS + 100);
    let last = LOST_PACKETS as u64 + 100;
    harness.at(1100).ack_data(&[last..=last]);
    assert_eq!(harness.seen.lost_packets.len(), LOST_PACKETS + 97);
    assert_eq!(harness.recovery.spaces[PacketSpace::Data].lost.packets.len(), LOST_PACKETS);
    // Long after three probe timeouts, the next ack sweeps them out.
    harness.at(20_000).send_data(1);
    harness.at(20_100).ack_data(&[last + 1..=last + 1]);
    assert!(harness.recovery.spaces[PacketSpace::Data].lost.packets.len() <= 2);
    harness.ack_data(&[last + 1..=last + 1, 1..=50]);
    assert_eq!(harness.seen.spurious_packets, 0);
}

#[test]
fn a_packet_counts_as_spuriously_lost_once() {
    let mut harness = measured();
    harness.send_data(5);
    harness.at(1100).ack_data(&[5..=5]);
    harness.at(1101).ack_data(&[5..=5, 1..=1]);
    harness.at(1102).ack_data(&[5..=5, 1..=1]);
    assert_eq!(harness.seen.spurious_packets, 1);
    assert_eq!(harness.log().spurious.len(), 1);
}

/// The schedule of RFC 9002 section 7.6.3 (packet numbers are the RFC's), after an RTT sample of 200 ms.
/// `max_ack_delay` makes `smoothed + max(4 * rttvar, granularity) + max_ack_delay` what the case wants.
fn section_7_6_3(max_ack_delay: Duration, acked_between: Option<u64>, ack_eliciting: bool) -> Harness {
    let mut harness = Harness::new();
    harness.recovery.set_peer_ack_parameters(max_ack_delay, 3);
    // An earlier RTT sample, which the RFC's example takes for granted.
    harness.at(0).send_data(1);
    harness.at(200).ack_data(&[0..=0]);
    let offset = 1000;
    for seconds in [0, 1, 2, 3, 4, 5, 6, 8, 12] {
        if seconds == 2 {
            harness.at(offset + 1200).ack_data(&[1..=1]);
        }
        harness.at(offset + seconds * 1000).send_as(
            PacketSpace::Data,
            1200,
            ack_eliciting || seconds == 12,
            true,
        );
    }
    let between = acked_between.map(|number| number..=number);
    let ranges: Vec<_> = std::iter::once(9..=9).chain(between).collect();
    harness.at(offset + 12_200).ack_data(&ranges);
    harness
}

#[test]
fn persistent_congestion_as_in_section_7_6_3() {
    // spec: rfc9002 7.6.2 ends-elicit
    // RTT samples of 200, 1200 and 200 ms: smoothed 200, 325, 309.375 ms and rttvar 100, 325, 275 ms, so the sum
    // without ack delay is 1409.375 ms at the last ack. Packets 2 to 8 span seven seconds.
    let sum = |millis: u64| Duration::from_micros(millis * 1000 - 1_409_375);
    assert_eq!(section_7_6_3(sum(2000), None, true).lost_numbers(), [2, 3, 4, 5, 6, 7, 8]);
    // (sum in ms, acked between, ack-eliciting) -> persistent
    let table = [
        ((2000, None, true), true),
        // 3 x 2333 < 7000 < 3 x 2334
        ((2333, None, true), true),
        ((2334, None, true), false),
        // An ack in the middle shows that the path was alive: 2..5 and 6..8 are too short.
        ((2000, Some(5), true), false),
        // An ack next to the end leaves 2..7, five seconds.
        ((2000, Some(8), true), false),
        ((1600, Some(8), true), true),
        // Packets that the peer need not acknowledge prove nothing.
        ((2000, None, false), false),
    ];
    for ((millis, acked, ack_eliciting), expected) in table {
        let harness = section_7_6_3(sum(millis), acked, ack_eliciting);
        let persistent = !harness.log().persistent.is_empty();
        assert_eq!(persistent, expected, "sum {millis} ms, acked {acked:?}, eliciting {ack_eliciting}");
        assert_eq!(harness.seen.persistent_congestion, expected);
    }
}

#[test]
fn losses_before_the_first_rtt_sample_are_not_persistent_congestion() {
    let mut harness = Harness::new();
    for second in 0..20 {
        harness.at(second * 1000).send_data(1);
    }
    harness.at(20_000).ack_data(&[19..=19]);
    assert_eq!(harness.lost_numbers().len(), 19);
    assert!(harness.log().persistent.is_empty());
}

#[test]
fn persistent_congestion_is_found_across_acks() {
    let mut harness = measured();
    // Losses trickle in: each ack reveals some, none of the batches spans the duration.
    for step in 0..20 {
        harness.at(2000 + step * 100).send_data(1);
    }
    harness.at(4000).send_data(1);
    harness.at(4001).ack_data(&[21..=21]);
    assert_eq!(harness.lost_numbers().len(), 20);
    assert_eq!(harness.log().persistent.len(), 1, "told once for the run");
}

#[test]
fn an_acknowledged_packet_of_ack_alone_breaks_the_run() {
    let run = |acked: bool| {
        let mut harness = measured();
        harness.at(2000).send_data(1);
        harness.at(3000).send_as(PacketSpace::Data, 50, false, false);
        harness.at(4000).send_data(1);
        harness.at(5000).send_data(1);
        let mut ranges = vec![4..=4];
        ranges.extend(acked.then_some(2..=2));
        harness.at(5200).ack_data(&ranges);
        assert_eq!(harness.lost_numbers(), [1, 3]);
        harness.log().persistent.len()
    };
    assert_eq!(run(false), 1);
    assert_eq!(run(true), 0);
}

#[test]
fn the_silence_policy_may_refuse_to_collapse() {
    let mut harness = measured();
    harness.log().collapses = false;
    for second in 2..10 {
        harness.at(second * 1000).send_data(1);
    }
    harness.at(10_000).ack_data(&[8..=8]);
    assert!(harness.seen.persistent_congestion);
    assert!(harness.log().persistent.is_empty());
}
