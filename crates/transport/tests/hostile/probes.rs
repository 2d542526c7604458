//! What a probe timeout sends while the handshake goes on: either of the two probes must lead on alone.

use posthaste_transport::TransportConfig;
use posthaste_units::Duration;
use posthaste_wire::Frame;
use posthaste_wire::packet::PacketType;

use crate::support::arena::Arena;
use crate::support::rogue::proper;
use crate::support::tls;

/// Lets the next timeout pass; the datagrams that it sends, unheard.
fn probes(arena: &mut Arena) -> Vec<Vec<u8>> {
    arena.is_listening = false;
    let before = arena.sent.len();
    while arena.sent.len() == before {
        arena.now = arena.endpoint.next_timeout().expect("a probe timeout");
        arena.endpoint.on_timeout(arena.now);
        arena.drain();
    }
    arena.is_listening = true;
    arena.sent[before..].to_vec()
}

#[test]
fn each_probe_of_a_client_that_hears_nothing_carries_its_first_message() {
    // spec: rfc9002 6.2.4 one-probe-least, 6.2.4 probes-elicit
    for which in 0..2 {
        let mut arena = Arena::client_with(proper());
        arena.is_listening = false;
        arena.drain();
        let probes = probes(&mut arena);
        assert_eq!(probes.len(), 2);
        arena.rogue.receive(&probes[which]);
        arena.exchange();
        assert!(arena.rogue.is_connected(), "probe {which} alone leads on");
    }
}

#[test]
fn each_probe_of_a_server_carries_its_flight() {
    for which in 0..2 {
        let mut arena = Arena::server_with(tls::server_config(1), proper());
        arena.is_listening = false;
        for datagram in arena.rogue.flight() {
            arena.inject(&datagram);
        }
        arena.drain();
        let probes = probes(&mut arena);
        assert_eq!(probes.len(), 2, "within three times what came");
        arena.rogue.receive(&probes[which]);
        let crypto = |(kind, frame): &(PacketType, Frame)| {
            *kind == PacketType::Initial && matches!(frame, Frame::Crypto(crypto) if crypto.offset == 0)
        };
        assert!(arena.rogue.seen.iter().any(crypto), "probe {which}: {:?}", arena.rogue.seen);
    }
}

/// CRYPTO frames that a server sends in a minute to a client that says PING in an Initial packet every 20 ms and acknowledges
/// nothing, with so many answers.
fn sent_to_a_client_that_probes_for_ever(answers: u8) -> usize {
    let text = format!("[start.initial]\n[congestion.cubic]\n[repair.tail]\nanswers = {answers}\n");
    let profile = posthaste_schemes::from_toml("answers", &text).expect("a profile");
    let transport = TransportConfig { profile, ..crate::support::defaults() };
    let mut arena = Arena::server_with(tls::server_config(1).with_transport(transport.into()), proper());
    for datagram in arena.rogue.flight() {
        arena.inject(&datagram);
    }
    for _ in 0..3000 {
        arena.now += Duration::from_millis(20);
        if arena.endpoint.next_timeout().is_some_and(|at| at <= arena.now) {
            arena.endpoint.on_timeout(arena.now);
        }
        arena.send(PacketType::Initial, &[Frame::Ping]);
        let sent: usize = arena.sent.iter().map(Vec::len).sum();
        assert!(sent <= 3 * arena.injected, "{sent} bytes for {}", arena.injected);
    }
    arena.rogue.seen.iter().filter(|(_, frame)| matches!(frame, Frame::Crypto(_))).count()
}

#[test]
fn a_client_that_probes_for_ever_gets_two_flights_more() {
    // spec: rfc9000 8.1 server-three-times
    let [none, two] = [0, 2].map(sent_to_a_client_that_probes_for_ever);
    // A flight is the ServerHello and what follows it in Handshake packets, three at most.
    assert!(two > none && two <= none + 2 * 4, "{two} frames instead of {none}");
}
