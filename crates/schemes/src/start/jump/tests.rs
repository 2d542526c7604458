//! The examples of RFC 9959 appendix A, and what must hold of every jump.

use posthaste_policy::PathLimits;
use posthaste_policy::sample::{LossSample, PacketSpace, SpuriousSample};
use posthaste_policy::{Congestion, CongestionState, Phase as ControllerPhase};
use proptest::prelude::*;

use super::*;
use crate::congestion::newreno::AdditiveIncrease;
use crate::congestion::{LossBased, Shrinking};
use crate::slow_start::classic::Classic;
use crate::testing::{DATAGRAM, ack, loss, milliseconds, packet, steady_rtt};

const RTT: Duration = Duration::from_millis(100);
const INITIAL: ByteCount = ByteCount::new(12_000);

/// A jump, the window that it has set, and the packets on their way.
struct Sender {
    jump: Jump,
    now: Time,
    window: ByteCount,
    threshold: Option<ByteCount>,
    /// The oldest packet that is not acknowledged and the next one to be sent, both counted from 0.
    acked: u64,
    next: u64,
}

impl Sender {
    /// 29 packets are in flight, and the window is raised to 150: half of 300.
    fn jumped() -> Self {
        let now = Time::ZERO + milliseconds(1000);
        let (jump, adjustment) = Jump::begin(&view(now, 29, 29), DATAGRAM * 150, INITIAL, DATAGRAM * 29);
        let mut sender = Self { jump, now, window: ByteCount::ZERO, threshold: None, acked: 0, next: 29 };
        sender.apply(Some(adjustment));
        assert_eq!((sender.datagrams(), sender.jump.phase()), (150, Some("unvalidated")));
        assert_eq!(sender.jump.pipe_size(), DATAGRAM * 29);
        sender
    }

    fn apply(&mut self, adjustment: Option<Adjustment>) {
        let Some(adjustment) = adjustment else { return };
        self.window = adjustment.window.unwrap_or(self.window);
        self.threshold = adjustment.slow_start_threshold.or(self.threshold);
    }

    fn datagrams(&self) -> u64 {
        self.window.get() / DATAGRAM.get()
    }

    fn view(&self) -> PathView {
        view(self.now, self.next - self.acked, self.datagrams())
    }

    fn send(&mut self, count: u64) {
        for _ in 0..count {
            let prior_in_flight = DATAGRAM * (self.next - self.acked);
            let number = self.next;
            self.next += 1;
            let sent = SentSample {
                now: self.now,
                space: PacketSpace::Data,
                number,
                bytes: DATAGRAM,
                prior_in_flight,
                app_limited: false,
            };
            let view = self.view();
            let adjustment = self.jump.on_sent(&sent, &view);
            self.apply(adjustment);
        }
    }

    /// The next `count` packets are acknowledged, one by one.
    fn acknowledge(&mut self, count: u64) {
        for _ in 0..count {
            let packets = [packet(self.acked, sent_at(self.acked))];
            self.acked += 1;
            let in_flight = DATAGRAM * (self.next - self.acked);
            let sample = AckSample { in_flight, ..ack(self.now, &packets, steady_rtt(RTT), 1) };
            let adjustment = self.jump.on_ack(&sample);
            self.apply(adjustment);
        }
    }

    fn lose_next(&mut self) {
        let lost = [packet(self.acked, sent_at(self.acked))];
        self.acked += 1;
        let view = self.view();
        let adjustment = self.jump.on_congestion(&lost, &view);
        self.apply(adjustment);
    }
}

/// The first 29 packets left before the jump.
fn sent_at(number: u64) -> Time {
    if number < 29 { Time::ZERO } else { Time::ZERO + milliseconds(1000) }
}

fn view(now: Time, in_flight: u64, window: u64) -> PathView {
    PathView {
        now,
        in_flight: DATAGRAM * in_flight,
        max_datagram_size: DATAGRAM,
        rtt: steady_rtt(RTT),
        congestion: CongestionState {
            window: DATAGRAM * window,
            slow_start_threshold: None,
            phase: ControllerPhase::SlowStart,
        },
    }
}

#[test]
fn without_loss_the_jump_is_validated_by_its_last_packet() {
    // spec: rfc9959 3.3 window-is-flight
    let mut sender = Sender::jumped();
    sender.send(120);
    assert_eq!(sender.jump.phase(), Some("unvalidated"));
    assert!(sender.jump.is_in_charge());
    sender.send(1);
    assert_eq!((sender.jump.phase(), sender.datagrams()), (Some("validating"), 150), "121 packets are sent");
    assert!(!sender.jump.is_in_charge(), "normal congestion control sees the acks from now on");
    sender.now += RTT;
    sender.acknowledge(149);
    assert!(sender.jump.is_running());
    sender.acknowledge(1);
    assert_eq!((sender.jump.phase(), sender.jump.has_failed()), (None, false));
    assert_eq!(sender.jump.pipe_size(), DATAGRAM * 150);
    assert_eq!((sender.datagrams(), sender.threshold), (150, None));
}

#[test]
fn a_sender_with_little_to_send_keeps_what_it_used() {
    // spec: rfc9959 3.3 window-is-flight
    // The example: 50 unvalidated packets, and the acknowledgement of the first of them.
    let mut sender = Sender::jumped();
    sender.send(50);
    sender.now += RTT;
    sender.acknowledge(29);
    assert_eq!(sender.jump.phase(), Some("unvalidated"), "these were sent before");
    sender.acknowledge(1);
    assert_eq!((sender.jump.phase(), sender.datagrams()), (Some("validating"), 49), "in flight after it");
    // By the clock, the 29 still being in flight.
    let mut sender = Sender::jumped();
    sender.send(49);
    sender.now += RTT + milliseconds(1);
    sender.send(1);
    assert_eq!((sender.jump.phase(), sender.datagrams()), (Some("validating"), 79));
    // With hardly more than before, nothing is left to prove: PipeSize it is.
    let mut sender = Sender::jumped();
    sender.send(20);
    sender.now += RTT;
    sender.acknowledge(30);
    assert_eq!((sender.jump.phase(), sender.datagrams(), sender.jump.has_failed()), (None, 30, false));
    // And never less than the initial window.
    let (mut jump, _) = Jump::begin(&view(sender.now, 1, 12), DATAGRAM * 50, INITIAL, DATAGRAM);
    let late = [packet(0, Time::ZERO)];
    let adjustment = jump.on_ack(&ack(sender.now + RTT * 2, &late, steady_rtt(RTT), 1)).unwrap();
    assert_eq!(adjustment.window, Some(INITIAL));
    assert!(!jump.is_running());
}

#[test]
fn a_loss_takes_the_jump_back_to_half_of_what_was_proved() {
    // spec: rfc9959 3.3 congestion-retreats, 3.5 half-of-pipe, 3.5 threshold-by-pipe
    // The example: packet 64, the 35th unvalidated, is lost; three later ones tell.
    let mut sender = Sender::jumped();
    sender.send(121);
    sender.now += RTT;
    sender.acknowledge(29 + 34);
    assert_eq!(sender.jump.pipe_size(), DATAGRAM * 63, "29 + 34");
    let lost = packet(sender.acked, sent_at(sender.acked));
    sender.acked += 1;
    sender.acknowledge(3);
    assert_eq!(sender.jump.pipe_size(), DATAGRAM * 66);
    let view = sender.view();
    let adjustment = sender.jump.on_congestion(&[lost], &view);
    sender.apply(adjustment);
    assert_eq!((sender.jump.phase(), sender.datagrams()), (Some("safe_retreat"), 33));
    assert!(sender.jump.is_in_charge() && sender.jump.has_failed());
    // 83 more arrive; the window stays.
    sender.acknowledge(82);
    assert_eq!((sender.jump.phase(), sender.datagrams()), (Some("safe_retreat"), 33));
    sender.acknowledge(1);
    assert_eq!((sender.jump.phase(), sender.datagrams()), (None, 33));
    assert_eq!(sender.jump.pipe_size(), DATAGRAM * 149, "29 + 120");
    assert_eq!(sender.threshold, Some(DATAGRAM * 149 / 2), "Beta is 0.5");
}

#[test]
fn loss_or_another_path_ends_it_before_all_is_sent_too() {
    // spec: rfc9959 3.3 congestion-retreats, 3.3 path-change-retreats
    for is_path in [false, true] {
        let mut sender = Sender::jumped();
        sender.send(10);
        if is_path {
            let view = sender.view();
            let adjustment = sender.jump.on_path_change(&view);
            sender.apply(adjustment);
        } else {
            sender.lose_next();
        }
        assert_eq!((sender.jump.phase(), sender.datagrams()), (Some("safe_retreat"), 14), "29 / 2");
        assert_eq!(sender.jump.pacing(&steady_rtt(RTT), DATAGRAM), None);
        sender.now += RTT;
        let left = sender.next - sender.acked;
        sender.acknowledge(left);
        assert_eq!(sender.jump.phase(), None);
    }
    // Once validating, another path is the controller's business.
    let mut sender = Sender::jumped();
    sender.send(121);
    let view = sender.view();
    assert_eq!(sender.jump.on_path_change(&view), None);
}

#[test]
fn what_the_last_acknowledgement_shows_to_be_missing_still_counts() {
    let mut sender = Sender::jumped();
    sender.send(121);
    sender.now += RTT;
    sender.acknowledge(148);
    let lost = packet(sender.acked, sent_at(sender.acked));
    sender.acked += 1;
    sender.acknowledge(1);
    assert_eq!(sender.jump.phase(), None, "the last has arrived");
    let view = sender.view();
    let late = packet(200, sender.now);
    assert_eq!(sender.jump.on_congestion(&[late], &view), None, "not one of the jump's");
    let adjustment = sender.jump.on_congestion(&[lost], &view);
    sender.apply(adjustment);
    assert_eq!((sender.datagrams(), sender.threshold), (74, Some(DATAGRAM * 149 / 2)));
    assert!(sender.jump.has_failed() && !sender.jump.is_running());
    assert_eq!(sender.jump.on_congestion(&[lost], &view), None, "once");
}

/// Sections 3.3 and 3.4: the ack that would end a phase brings the news that packets were marked.
#[test]
fn a_mark_reported_with_the_last_acknowledgement_takes_the_jump_back() {
    // (sent after the jump, acknowledged before the mark, phase then, window of the retreat)
    for (sent, acked, phase, window) in [(121, 149, "validating", 75), (20, 29, "unvalidated", 15)] {
        let mut sender = Sender::jumped();
        sender.send(sent);
        sender.now += RTT;
        sender.acknowledge(acked);
        assert_eq!(sender.jump.phase(), Some(phase));
        let last = [packet(sender.acked, sent_at(sender.acked))];
        sender.acked += 1;
        let sample = AckSample { newly_marked: 1, ..ack(sender.now, &last, steady_rtt(RTT), 1) };
        assert_eq!(sender.jump.on_ack(&sample), None);
        let view = sender.view();
        let adjustment = sender.jump.on_congestion(&[], &view);
        sender.apply(adjustment);
        assert_eq!((sender.jump.phase(), sender.datagrams()), (Some("safe_retreat"), window), "{phase}");
        assert!(sender.jump.has_failed());
    }
}

/// Section 3.5: the window must not be increased, and section 4.5: no proportional rate reduction.
#[test]
fn nothing_raises_the_window_of_a_retreat() {
    // spec: rfc9959 3.5 never-raised
    let limits = PathLimits { max_datagram_size: DATAGRAM, initial_window: INITIAL, seed: 1 };
    let mut controller =
        LossBased::new(AdditiveIncrease::default(), Box::new(Classic), limits).with_shrinking(Shrinking::Prr);
    let mut sender = Sender::jumped();
    sender.send(121);
    sender.lose_next();
    let retreat = sender.window;
    controller.adjust(&Adjustment {
        window: Some(retreat),
        slow_start_threshold: Some(retreat),
        ..Adjustment::default()
    });
    // A packet of the retreat is lost while most of the jump is still in flight.
    let lost = [packet(150, sender.now + milliseconds(1))];
    let now = sender.now + milliseconds(300);
    let found = LossSample { in_flight: DATAGRAM * 148, ..loss(now, &lost, steady_rtt(RTT)) };
    controller.on_loss(&found);
    let view = PathView { congestion: controller.state(), ..sender.view() };
    let answer = sender.jump.on_congestion(&lost, &view).expect("an answer");
    controller.adjust(&answer);
    assert!(controller.window() <= retreat, "{} after {retreat}", controller.window());
    let reduced = controller.window();
    controller.on_spurious_loss(&SpuriousSample { now, packets: 1, sent_at: lost[0].sent_at });
    assert_eq!(controller.window(), reduced, "a loss that was none does not raise it either");
    assert_eq!(sender.jump.phase(), Some("safe_retreat"));
}

#[test]
fn the_jump_is_spread_over_a_round_trip_in_small_bursts() {
    // spec: rfc9959 3.3 paced
    let sender = Sender::jumped();
    let pacing = sender.jump.pacing(&steady_rtt(RTT), DATAGRAM).unwrap();
    // ITT = RTT x packet size / jump window: 100 ms / 150.
    assert_eq!(pacing.rate.time_for(DATAGRAM).as_micros(), 666);
    assert_eq!(pacing.burst, DATAGRAM * 2);
    // The present round trip, not the one of the time when the window was saved.
    let slower = sender.jump.pacing(&steady_rtt(RTT * 4), DATAGRAM).unwrap();
    assert_eq!(slower.rate.time_for(DATAGRAM).as_micros(), 2666);
    let faster = sender.jump.pacing(&steady_rtt(milliseconds(1)), DATAGRAM).unwrap();
    assert_eq!(faster.burst, INITIAL, "no burst above the initial window");
}

#[test]
fn persistent_congestion_is_the_controllers() {
    let mut sender = Sender::jumped();
    sender.send(121);
    sender.jump.on_persistent_congestion();
    assert!(!sender.jump.is_running() && sender.jump.has_failed() && !sender.jump.is_in_charge());
    let mut done = Sender::jumped();
    done.send(121);
    done.acknowledge(150);
    done.jump.on_persistent_congestion();
    assert!(!done.jump.has_failed(), "it was over");
}

proptest! {
    /// Whatever happens: the window never exceeds what was jumped to, and a retreat leaves at most half of what was
    /// proved.
    #[test]
    fn no_order_of_events_leaves_more_than_was_proved(events in proptest::collection::vec(0u8..6, 1..300)) {
        let mut sender = Sender::jumped();
        for event in events {
            let before = sender.jump.phase();
            match event {
                0 | 1 => sender.send(3),
                2 | 3 if sender.next > sender.acked => sender.acknowledge(1),
                4 if sender.next > sender.acked => sender.lose_next(),
                _ => sender.now += milliseconds(7),
            }
            let after = sender.jump.phase();
            prop_assert!(sender.window <= sender.jump.pipe_size().max(DATAGRAM * 150));
            if before != Some("safe_retreat") && after == Some("safe_retreat") {
                prop_assert!(sender.window * 2 <= sender.jump.pipe_size());
            }
            if before == Some("safe_retreat") && after.is_none() {
                prop_assert!(sender.threshold.unwrap() * 2 <= sender.jump.pipe_size());
            }
            if before.is_none() {
                prop_assert_eq!(after, None);
            }
        }
    }
}
