//! When probes are due (RFC 9002 section 6.2).

use super::*;
use crate::packet::sent_frame::SentFrame;
use crate::recovery::testing::{Harness, at_millis};

const INITIAL: PacketSpace = PacketSpace::Initial;
const HANDSHAKE: PacketSpace = PacketSpace::Handshake;
const DATA: PacketSpace = PacketSpace::Data;

fn handshaking() -> Harness {
    let mut harness = Harness::new();
    harness.view = HandshakeView {
        is_client: true,
        has_handshake_keys: false,
        is_confirmed: false,
        peer_address_validated: false,
        amplification_blocked: false,
        is_peer_present: false,
    };
    harness
}

#[test]
fn an_unmeasured_path_probes_after_three_initial_rtt() {
    let mut harness = handshaking();
    harness.send(INITIAL);
    assert_eq!(harness.timeout(), Some(at_millis(999)));
}

#[test]
fn the_probe_timeout_doubles_and_an_ack_sets_it_back() {
    // spec: rfc9002 6.2.1 back-off-doubles, 6.2 probe-marks-nothing-lost
    let mut harness = Harness::new();
    harness.send_data(1);
    harness.at(100).ack_data(&[0..=0]);
    harness.at(1000).send_data(1);
    // smoothed 100 + 4 x 50 + max_ack_delay 25
    let mut expected = 1000;
    for count in 0..6 {
        expected += 325 << count;
        assert_eq!(harness.timeout(), Some(at_millis(expected)), "after {count} probes");
        assert_eq!(harness.expire(), Expired::Probe { space: DATA, packets: 2 });
        assert_eq!(harness.recovery.pto_count(), count + 1);
        harness.send_data(2);
    }
    assert!(harness.seen.lost.is_empty(), "a probe timeout declares nothing lost");
    let now = harness.now.as_nanos() / 1_000_000;
    harness.at(now + 100).ack_data(&[13..=13]);
    assert_eq!(harness.recovery.pto_count(), 0);
}

#[test]
fn the_timer_restarts_with_each_ack_eliciting_packet() {
    let mut harness = Harness::new();
    harness.send_data(1);
    harness.at(100).ack_data(&[0..=0]);
    harness.at(1000).send_data(1);
    harness.at(1200).send_data(1);
    harness.at(1300).send_as(DATA, 40, false, false);
    harness.at(1310).send_as(DATA, 1200, false, true);
    assert_eq!(harness.timeout(), Some(at_millis(1525)));
}

#[test]
fn each_space_has_its_own_timer_and_only_data_waits_for_the_ack_delay() {
    // spec: rfc9002 6.2.1 earlier-of-handshake
    let mut harness = handshaking();
    harness.view.has_handshake_keys = true;
    harness.send(INITIAL);
    harness.at(100).ack(INITIAL, &[0..=0]);
    harness.at(200).send(HANDSHAKE);
    harness.at(190).send(INITIAL);
    assert_eq!(harness.timeout(), Some(at_millis(490)));
    harness.at(490);
    assert_eq!(harness.on_timeout(), Expired::Probe { space: INITIAL, packets: 2 });
    harness.discard_space(INITIAL);
    assert_eq!(harness.recovery.pto_count(), 0);
    assert_eq!(harness.path.bytes_in_flight().get(), 1200);
    // The probe timeout at 490 has restarted the handshake's timer too.
    assert_eq!(harness.timeout(), Some(at_millis(790)));
}

#[test]
fn application_data_does_not_probe_before_the_handshake_is_confirmed() {
    // spec: rfc9002 6.2.1 no-data-probe-early
    let mut harness = handshaking();
    harness.view.peer_address_validated = true;
    harness.send(DATA);
    assert_eq!(harness.timeout(), None);
    harness.view.is_confirmed = true;
    // 333 + 4 x 166.5 + 25
    assert_eq!(harness.timeout(), Some(at_millis(1024)));
}

#[test]
fn a_client_with_nothing_in_flight_keeps_the_server_going() {
    // spec: rfc9002 6.2.2.1 client-stays-armed, 6.2.2.1 client-sends-handshake, rfc9000 8.1 client-probes
    // spec: rfc9000 8.1 probe-by-keys
    let mut harness = handshaking();
    harness.send(INITIAL);
    harness.at(100).ack(INITIAL, &[0..=0]);
    assert!(!harness.recovery.has_ack_eliciting_in_flight(INITIAL));
    // 300 ms after the ack; the count is not reset while the server may not have validated us.
    assert_eq!(harness.timeout(), Some(at_millis(400)));
    assert_eq!(harness.expire(), Expired::Probe { space: INITIAL, packets: 1 });
    assert_eq!(harness.timeout(), Some(at_millis(1000)));
    harness.view.has_handshake_keys = true;
    assert_eq!(harness.expire(), Expired::Probe { space: HANDSHAKE, packets: 1 });
    harness.send(HANDSHAKE);
    let now = harness.now.as_nanos() / 1_000_000;
    harness.at(now + 100).ack(HANDSHAKE, &[0..=0]);
    assert_eq!(harness.recovery.pto_count(), 2, "not reset: the client is not sure to be validated");
    harness.view.peer_address_validated = true;
    assert_eq!(harness.timeout(), None);
}

#[test]
fn early_data_does_not_silence_a_client_that_must_keep_the_server_going() {
    let mut harness = handshaking();
    harness.send(INITIAL);
    harness.send(DATA);
    harness.at(100).ack(INITIAL, &[0..=0]);
    assert_eq!(harness.timeout(), Some(at_millis(400)));
}

#[test]
fn a_server_at_its_amplification_limit_has_no_probe_timer() {
    // spec: rfc9002 6.2.2.1 blocked-server-waits
    let mut harness = handshaking();
    harness.view = HandshakeView {
        is_client: false,
        peer_address_validated: true,
        amplification_blocked: true,
        ..harness.view
    };
    harness.send(INITIAL);
    assert_eq!(harness.timeout(), None);
    assert_eq!(harness.at(5000).on_timeout(), Expired::Nothing);
    harness.view.amplification_blocked = false;
    assert_eq!(harness.timeout(), Some(at_millis(999)));
    assert_eq!(harness.on_timeout(), Expired::Probe { space: INITIAL, packets: 2 });
}

#[test]
fn a_probe_that_could_not_be_sent_does_not_spin() {
    let mut harness = Harness::new();
    harness.send_data(1);
    for _ in 0..80 {
        let at = harness.timeout().expect("set");
        assert!(at > harness.now || at == Time::FAR_FUTURE);
        assert!(matches!(harness.expire(), Expired::Probe { .. }));
    }
}

#[test]
fn probes_carry_what_is_oldest_and_each_packet_once() {
    let mut harness = Harness::new();
    harness.send_data(3);
    let frames = |harness: &mut Harness| {
        harness.seen.clear();
        harness.frames_to_probe(DATA);
        let starts: Vec<u64> = harness
            .seen
            .lost
            .iter()
            .map(|(_, frame)| match frame {
                SentFrame::Crypto { start, .. } => *start,
                other => panic!("{other:?}"),
            })
            .collect();
        starts
    };
    assert_eq!(frames(&mut harness), [0, 1]);
    assert_eq!(frames(&mut harness), [2]);
    assert_eq!(frames(&mut harness), [] as [u64; 0]);
    assert_eq!(harness.path.bytes_in_flight().get(), 3600, "they stay outstanding");
    harness.seen.clear();
    // Lost now: the packets are, their frames have been dealt with. (0 is three behind, 1 and 2 need time.)
    harness.send_data(1);
    harness.at(100).ack_data(&[3..=3]);
    assert_eq!(harness.lost_numbers(), [0]);
    assert!(harness.seen.lost.is_empty());
    // Acknowledged after all, they are reported.
    harness.seen.clear();
    harness.at(101).ack_data(&[0..=3]);
    assert_eq!(harness.seen.acked.len(), 3);
}

#[test]
fn probes_go_beyond_the_window() {
    // spec: rfc9002 7.5 probes-unblocked, 7.5 probes-counted
    let mut harness = Harness::new();
    harness.log().window = 2400;
    harness.send_data(2);
    assert!(harness.path.budget(harness.now, true).bytes.is_zero());
    harness.expire();
    harness.send_data(2);
    assert_eq!(harness.path.bytes_in_flight().get(), 4800);
    assert!(harness.path.budget(harness.now, true).bytes.is_zero());
}

#[test]
fn the_interval_counts_the_ack_delay_but_no_back_off() {
    let mut harness = Harness::new();
    harness.send_data(1);
    harness.expire();
    assert_eq!(harness.recovery.pto_interval(&harness.path.rtt), Duration::from_millis(333 + 666 + 25));
}
