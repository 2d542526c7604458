//! Key updates (RFC 9001 section 6) by a peer that does them wrongly.

use posthaste_transport::{CloseReason, KeyLimits, TransportConfig};
use posthaste_units::Duration;
use posthaste_wire::Frame;
use posthaste_wire::packet::PacketType;

use crate::code;
use crate::support::arena::Arena;
use crate::support::rogue::Oddity;

fn in_phase(phase: usize) -> Oddity {
    Oddity { phase: Some(phase), ..Oddity::default() }
}

#[test]
fn a_peer_that_waits_for_acknowledgements_may_update_again_and_again() {
    // spec: rfc9001 6.2 send-keys-follow
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        for phase in 1..20 {
            arena.rogue.phase = phase;
            arena.send(PacketType::Short, &[Frame::Ping]);
            arena.run_for(Duration::from_secs(1));
            assert_eq!(arena.close_code(), None, "phase {phase}");
            assert_eq!(arena.connection().key_updates(), phase as u64);
        }
    }
}

#[test]
fn a_second_update_before_the_first_was_acknowledged_is_a_key_update_error() {
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        arena.run_for(Duration::from_secs(1));
        arena.send_raw(&[1], in_phase(1));
        arena.send_raw(&[1], in_phase(2));
        assert_eq!(arena.connection().key_updates(), 1);
        arena.rogue.phase = 1; // So that the rogue reads the close.
        assert_eq!(arena.close_code(), Some((code::KEY_UPDATE, 0)));
    }
}

#[test]
fn a_new_packet_with_old_keys_and_a_phase_left_out_are_dropped() {
    // spec: rfc9001 5.5 later-packets-by-newer-keys, 6.4 old-after-new-closes
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        arena.send_raw(&[1], in_phase(2));
        assert_eq!(arena.connection().key_updates(), 0, "one phase was left out");
        arena.send_raw(&[1], in_phase(1));
        arena.run_for(Duration::from_millis(50));
        let before = arena.connection().stats();
        arena.send_raw(&[1], in_phase(0));
        let after = arena.connection().stats();
        assert_eq!(after.packets_received, before.packets_received, "a newer packet with older keys");
        // One that was under way during the update is opened.
        let late = Oddity { number: Some(3), phase: Some(0), ..Oddity::default() };
        let is_seen = arena.rogue.next_number(PacketType::Short) > 3;
        arena.send_raw(&[1], late);
        assert!(is_seen && arena.close_code().is_none());
        assert_eq!(arena.connection().key_updates(), 1);
    }
}

#[test]
fn packets_sealed_with_the_old_keys_that_come_late_are_opened() {
    // spec: rfc9001 6.1 old-keys-kept, 6.3 two-key-sets
    let mut arena = Arena::server();
    let late = arena.rogue.raw_packet(PacketType::Short, &[1], in_phase(0));
    arena.send_raw(&[1], in_phase(1));
    let before = arena.connection().stats().packets_received;
    arena.inject(&late);
    assert_eq!(arena.connection().stats().packets_received, before + 1);
    arena.rogue.phase = 1;
    let late = arena.rogue.raw_packet(PacketType::Short, &[1], in_phase(0));
    arena.run_for(Duration::from_secs(20));
    let before = arena.connection().stats().packets_received;
    arena.inject(&late);
    assert_eq!(arena.connection().stats().packets_received, before, "the old key is gone by now");
}

#[test]
fn an_update_of_both_at_once_is_one_update() {
    let mut arena = Arena::server();
    arena.run_for(Duration::from_secs(1));
    arena.connection().update_keys().expect("the handshake is confirmed");
    arena.rogue.phase = 1;
    arena.send(PacketType::Short, &[Frame::Ping]);
    arena.run_for(Duration::from_secs(1));
    assert_eq!(arena.connection().key_updates(), 1);
    assert_eq!(arena.close_code(), None);
}

#[test]
fn forged_packets_of_the_other_phase_change_nothing() {
    // spec: rfc9001 5.5 false-update-dropped
    let mut arena = Arena::server();
    for salt in 0..200_u8 {
        let mut packet = arena.rogue.raw_packet(PacketType::Short, &[1; 40], in_phase(1));
        let at = packet.len() - 1 - usize::from(salt % 16);
        packet[at] ^= 1 << (salt % 8);
        arena.inject(&packet);
    }
    arena.drain();
    assert_eq!(arena.connection().key_updates(), 0);
    assert_eq!(arena.close_code(), None);
}

/// A server under test whose keys may be used for so much only.
fn limited(key_limits: KeyLimits) -> Arena {
    Arena::server_for(TransportConfig { key_limits, ..crate::support::defaults() })
}

#[test]
fn too_many_forged_packets_end_the_connection() {
    // spec: rfc9001 6.6 forged-counted, 6.6 forged-limit-closes
    // RFC 9001 section 6.6: counted over all keys.
    let mut arena = limited(KeyLimits { forged: 50, ..KeyLimits::default() });
    for count in 1..=50 {
        assert_eq!(arena.close_code(), None, "{count}");
        if count == 25 {
            arena.rogue.phase = 1;
            arena.send(PacketType::Short, &[Frame::Ping]);
            arena.run_for(Duration::from_secs(1));
        }
        let mut packet = arena.rogue.raw_packet(PacketType::Short, &[1; 40], in_phase(arena.rogue.phase));
        let at = packet.len() - 1;
        packet[at] ^= 1;
        arena.inject(&packet);
        arena.drain();
    }
    assert_eq!(arena.close_code(), Some((code::AEAD_LIMIT_REACHED, 0)));
}

#[test]
fn keys_are_updated_before_their_limit_is_reached() {
    // spec: rfc9001 5.3 update-before-aead-limit, 6.6 update-before-limit, 6.6 sealed-counted
    let mut arena = limited(KeyLimits { sealed: 40, ..KeyLimits::default() });
    for _ in 0..500 {
        assert_eq!(arena.closed(), None);
        arena.rogue.phase = arena.connection().key_updates() as usize;
        arena.send(PacketType::Short, &[Frame::Ping]);
        // Old keys must be gone before the next update: three probe timeouts (section 6.5).
        arena.run_for(Duration::from_secs(1));
        assert_eq!(arena.close_code(), None);
    }
    assert!(arena.connection().key_updates() >= 500 / 40, "{} updates", arena.connection().key_updates());
    assert!(arena.closed().is_none(), "the limit was never reached");
}

#[test]
fn a_key_that_cannot_be_updated_is_not_used_beyond_its_limit() {
    // spec: rfc9001 6.1 not-before-acked, 6.6 used-up-key-rests, 6.6 no-update-no-connection
    let mut arena = limited(KeyLimits { sealed: 40, ..KeyLimits::default() });
    // Without acknowledgements no update may begin (section 6.1).
    arena.rogue.is_acking = false;
    for _ in 0..200 {
        if arena.closed().is_some() {
            break;
        }
        arena.send(PacketType::Short, &[Frame::Ping]);
        arena.run_for(Duration::from_millis(50));
    }
    assert_eq!(arena.closed(), Some(&CloseReason::Local { error_code: code::AEAD_LIMIT_REACHED }));
    let sent = arena.sent.len();
    arena.send(PacketType::Short, &[Frame::Ping]);
    assert_eq!(arena.sent.len(), sent, "not even the close is sealed with it");
}
