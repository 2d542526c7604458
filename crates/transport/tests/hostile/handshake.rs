//! Bad handshakes: forbidden frames in long-header packets, transport parameters, early packets, amplification.

use posthaste_transport::{CloseReason, Direction, Event, Read, Side, StreamId, TransportConfig};
use posthaste_units::Duration;
use posthaste_wire::frame::{CloseKind, CryptoFrame, StreamFrame};
use posthaste_wire::packet::{PacketType, header, version};
use posthaste_wire::{ConnectionId, Frame, TransportParameters, varint};

use crate::code;
use crate::frames::samples;
use crate::support::arena::Arena;
use crate::support::rogue::{Oddity, Shape, encode, proper};
use crate::support::tls;

/// A victim in the middle of its handshake: both ends have Initial and Handshake keys, the handshake is not complete.
fn halfway(is_server: bool) -> Arena {
    let mut arena = fresh(is_server);
    if is_server {
        for datagram in arena.rogue.flight() {
            arena.inject(&datagram);
        }
        arena.rogue.is_shaking = false;
        arena.drain();
    } else {
        // The ServerHello only; it fits the first datagram.
        let flight = arena.rogue.flight();
        arena.inject(&flight[0]);
        arena.drain();
    }
    assert!(arena.connection().is_handshaking());
    arena
}

#[test]
fn frames_of_later_packets_are_violations_in_the_handshakes_packets() {
    // spec: rfc9000 5.2 unprotected-error-is-whole
    // spec: rfc9000 12.4 misplaced-frame-closes, 17.2.4 handshake-frames-only
    for is_server in [true, false] {
        for kind in [PacketType::Initial, PacketType::Handshake] {
            for frame in samples() {
                if posthaste_wire::frame::is_allowed_in(&frame, kind) {
                    continue;
                }
                let mut arena = halfway(is_server);
                arena.send(kind, &[Frame::Ping, frame.clone()]);
                let expected = (code::PROTOCOL_VIOLATION, frame.frame_type());
                assert_eq!(arena.close_code(), Some(expected), "{frame:?} in {kind:?}");
            }
        }
    }
}

#[test]
fn a_handshake_halfway_can_be_completed() {
    // The control of the test above: it is the frames that end those connections.
    for is_server in [true, false] {
        let mut arena = halfway(is_server);
        for kind in [PacketType::Initial, PacketType::Handshake] {
            arena.send(kind, &[Frame::Ping, Frame::Padding]);
            assert_eq!(arena.close_code(), None, "{kind:?}");
        }
    }
    let mut arena = halfway(true);
    arena.rogue.is_shaking = true;
    arena.exchange();
    assert!(arena.has(|event| *event == Event::Connected));
}

#[test]
fn reserved_bits_and_empty_payloads_are_violations_in_the_handshakes_packets() {
    // spec: rfc9000 17.2 long-reserved-checked, 12.4 empty-packet-closes
    for is_server in [true, false] {
        for kind in [PacketType::Initial, PacketType::Handshake] {
            for (payload, first) in [(vec![0; 1200], 0x04), (vec![0; 1200], 0x08), (Vec::new(), 0)] {
                let mut arena = halfway(is_server);
                let mut datagram =
                    arena.rogue.raw_packet(kind, &payload, Oddity { first, ..Oddity::default() });
                datagram.resize(1200.max(datagram.len()), 0);
                arena.inject(&datagram);
                arena.drain();
                assert_eq!(arena.close_code(), Some((code::PROTOCOL_VIOLATION, 0)), "{kind:?} {first:#x}");
            }
        }
    }
}

/// A victim that has heard nothing yet.
fn fresh(is_server: bool) -> Arena {
    let mut arena = if is_server {
        Arena::server_with(tls::server_config(1), proper())
    } else {
        Arena::client_with(proper())
    };
    arena.drain();
    arena
}

#[test]
fn crypto_data_far_ahead_exceeds_the_buffer_at_every_level() {
    // spec: rfc9000 7.5 crypto-buffer-least, 7.5 crypto-overflow-closes, rfc9001 4.1.3 left-level-closes
    let ahead = |offset| Frame::Crypto(CryptoFrame { offset, data: vec![0; 100].into() });
    for is_server in [true, false] {
        for kind in [PacketType::Initial, PacketType::Handshake] {
            let mut arena = if kind == PacketType::Initial { fresh(is_server) } else { halfway(is_server) };
            arena.send(kind, &[ahead(65_000)]);
            assert_eq!(arena.close_code(), None);
            arena.send(kind, &[ahead(70_000)]);
            assert_eq!(arena.close_code(), Some((code::CRYPTO_BUFFER_EXCEEDED, 6)), "{kind:?}");
        }
        // Bytes at a level that TLS has left (RFC 9001 section 4.1.3).
        let mut arena = halfway(is_server);
        arena.send(PacketType::Initial, &[ahead(2000)]);
        assert_eq!(arena.close_code(), Some((code::PROTOCOL_VIOLATION, 6)));
    }
}

#[test]
fn a_client_that_has_tickets_and_rests_takes_further_tickets_and_nothing_else() {
    // spec: rfc9001 6 tls-key-update-closes, 4.4 late-request-closes
    let message = |kind, offset| Frame::Crypto(CryptoFrame { offset, data: vec![kind, 0, 0, 1, 0].into() });
    let (ticket, key_update) = (4, 24);
    let mut awake = Arena::client();
    let offset = awake.rogue.crypto_sent(PacketType::Short);
    assert!(offset > 0, "tickets have come");
    awake.send(PacketType::Short, &[message(ticket, offset)]);
    assert!(matches!(awake.closed(), Some(CloseReason::Tls { .. })), "TLS reads the ticket, which is none");
    let mut resting = Arena::client();
    resting.run_for(Duration::from_secs(3));
    let offset = resting.rogue.crypto_sent(PacketType::Short);
    resting.send(PacketType::Short, &[message(ticket, offset)]);
    assert_eq!(resting.close_code(), None, "TLS is gone");
    resting.send(PacketType::Short, &[message(key_update, offset + 5)]);
    assert!(matches!(resting.closed(), Some(CloseReason::Tls { alert: 10, .. })));
    assert_eq!(resting.close_code().map(|(code, _)| code), Some(code::UNEXPECTED_MESSAGE));
}

#[test]
fn crypto_data_that_tls_leaves_behind_are_a_violation() {
    // spec: rfc9001 4.1.3 unread-data-close
    let ahead = Frame::Crypto(CryptoFrame { offset: 30_000, data: vec![0; 100].into() });
    for is_server in [true, false] {
        let mut arena = fresh(is_server);
        arena.send(PacketType::Initial, std::slice::from_ref(&ahead));
        assert_eq!(arena.close_code(), None, "TLS still reads Initial packets");
        arena.exchange();
        assert_eq!(arena.close_code(), Some((code::PROTOCOL_VIOLATION, 0)));
        assert!(!arena.has(|event| *event == Event::Connected));
    }
}

#[test]
fn packets_of_another_source_id_are_dropped_in_the_handshake() {
    // spec: rfc9000 7.2 renamed-server-dropped, 7.2 renamed-initial-dropped
    for is_server in [true, false] {
        let mut arena = halfway(is_server);
        let before = arena.connection().stats();
        arena.rogue.local_id = ConnectionId::new(b"somebody").expect("short enough");
        for kind in [PacketType::Initial, PacketType::Handshake] {
            arena.send(kind, &[Frame::Ping]);
        }
        let after = arena.connection().stats();
        assert_eq!(after.packets_received, before.packets_received);
        assert_eq!(after.packets_dropped, before.packets_dropped + 2);
        assert!(arena.closed().is_none());
    }
}

#[test]
fn an_applications_close_is_hidden_until_only_1_rtt_packets_carry_it() {
    // spec: rfc9000 10.2.3 application-close-hidden, 10.2.3 reason-cleared, 10.2.3 confirmed-close-in-data
    // spec: rfc9000 12.5 application-close-in-data
    let closes = |arena: &mut Arena| {
        let now = arena.now;
        arena.connection().close(now, 7, "secret".into());
        arena.drain();
        let seen = arena.rogue.seen.iter().filter_map(|(kind, frame)| match frame {
            Frame::Close(close) => Some((*kind, close.error_code, close.kind, close.reason.clone())),
            _ => None,
        });
        seen.collect::<Vec<_>>()
    };
    for is_server in [true, false] {
        let mut early = closes(&mut halfway(is_server));
        // A server's 1-RTT packets may show it: only who has finished the handshake can read them.
        early.retain(|(kind, ..)| *kind != PacketType::Short);
        assert_eq!(early.len(), 2, "one Initial and one Handshake packet");
        for (_, code, by, reason) in early {
            assert_eq!((code, by), (code::APPLICATION, CloseKind::Transport { frame_type: 0 }));
            assert!(reason.is_empty());
        }
        let late = closes(&mut Arena::connected(is_server));
        assert_eq!(late, [(PacketType::Short, 7, CloseKind::Application, "secret".into())]);
    }
}

#[test]
fn what_is_sent_is_permitted_where_it_is_sent() {
    // spec: rfc9000 12.5 others-in-data, 12.4 some-frame-sent, 7.2 first-id-long-enough, 18.2 id-limit-least
    // spec: rfc9000 18.2 token-from-server-only, 18.2 client-sends-its-own, 19.20 done-not-early
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        arena.run_for(Duration::from_secs(1));
        for (kind, frame) in &arena.rogue.seen {
            assert!(posthaste_wire::frame::is_allowed_in(frame, *kind), "{frame:?} in {kind:?}");
        }
        assert!(arena.rogue.original.len() >= 8);
        // A client's that only servers may send would have been refused.
        assert!(arena.rogue.victim_parameters().active_connection_id_limit >= 2);
    }
    let halfway = halfway(true);
    assert!(!halfway.rogue.seen.iter().any(|(_, frame)| *frame == Frame::HandshakeDone));
}

#[test]
fn a_packet_that_cannot_be_opened_leaves_the_rest_of_its_datagram() {
    // spec: rfc9000 12.2 each-packet-itself, 12.2 rest-is-tried
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        let before = arena.connection().stats();
        let (to, from) = (arena.rogue.remote_id, arena.rogue.local_id);
        let number = posthaste_wire::packet::TruncatedNumber::new(0, 4);
        let mut datagram = Vec::new();
        let kind = PacketType::Handshake;
        let layout = header::write_long(&mut datagram, kind, version::V1, &to, &from, &[], number);
        datagram.resize(datagram.len() + 40, 0);
        let length = datagram.len() - layout.number_at;
        header::patch_length(&mut datagram, layout.length_at, length);
        datagram.extend(arena.rogue.packet(PacketType::Short, &[Frame::Ping]));
        arena.inject(&datagram);
        let after = arena.connection().stats();
        assert_eq!(after.packets_received, before.packets_received + 1);
        assert_eq!(after.packets_dropped, before.packets_dropped + 1);
    }
}

/// Appends a parameter to proper ones.
fn with(identifier: u64, value: &[u8]) -> Shape {
    let value = value.to_vec();
    Box::new(move |parameters| {
        let mut encoded = encode(&parameters);
        varint::write(&mut encoded, identifier);
        varint::write(&mut encoded, value.len() as u64);
        encoded.extend_from_slice(&value);
        encoded
    })
}

/// Changes proper parameters.
fn changed(change: impl Fn(&mut TransportParameters) + 'static) -> Shape {
    Box::new(move |mut parameters| {
        change(&mut parameters);
        encode(&parameters)
    })
}

fn integer(value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint::write(&mut bytes, value);
    bytes
}

#[test]
#[expect(clippy::too_many_lines, reason = "a flat table of parameters")]
fn bad_transport_parameters_fail_the_handshake() {
    // spec: rfc9000 7.3 ids-match, 7.3 ids-compared, 7.3 absent-ids-close, 7.3 mismatch-closes
    // spec: rfc9000 7.3 retry-id-uncalled-for, 7.4 invalid-value-closes, 7.4 duplicate-closes
    // spec: rfc9000 18.2 id-limit-checked, 18.2 client-overreach-closes, 4.6 impossible-count-closes
    type Make = fn() -> Shape;
    let crypto = 6;
    let both: Vec<(&str, Make, u64)> = vec![
        ("no initial_source_connection_id", || changed(|p| p.initial_source_connection_id = None), 0),
        ("another's ID", || changed(|p| p.initial_source_connection_id = ConnectionId::new(b"elseones")), 0),
        ("an empty ID", || changed(|p| p.initial_source_connection_id = Some(ConnectionId::EMPTY)), 0),
        ("nothing at all", || Box::new(|_| Vec::new()), 0),
        ("a duplicate", || with(0x04, &[1]), crypto),
        ("ack_delay_exponent of 21", || with(0x0a, &integer(21)), crypto),
        ("max_ack_delay of 2^14", || with(0x0b, &integer(1 << 14)), crypto),
        ("max_udp_payload_size of 1199", || with(0x03, &integer(1199)), crypto),
        ("an integer with a byte too many", || with(0x03, &[0x45, 0, 0]), crypto),
        ("an integer without a byte", || with(0x03, &[]), crypto),
        ("disable_active_migration with a value", || with(0x0c, &[1]), crypto),
        ("active_connection_id_limit of 1", || changed(|p| p.active_connection_id_limit = 1), crypto),
        ("streams above 2^60", || changed(|p| p.initial_max_streams_bidi = (1 << 60) + 1), crypto),
        ("one-way streams above 2^60", || changed(|p| p.initial_max_streams_uni = (1 << 60) + 1), crypto),
        ("a source ID of 21 bytes", || Box::new(|_| [&[0x0f, 21][..], &[1; 21]].concat()), crypto),
        ("cut short", || Box::new(|p| [&encode(&p)[..], &[0x0a, 9, 1]].concat()), crypto),
    ];
    let from_client: Vec<(&str, Make, u64)> = vec![
        ("original_destination_connection_id", || with(0x00, b"original"), crypto),
        ("stateless_reset_token", || with(0x02, &[1; 16]), crypto),
        ("preferred_address", || with(0x0d, &[1; 49]), crypto),
        ("retry_source_connection_id", || with(0x10, b"retryids"), crypto),
        ("guaranteed_rate of 0", || with(0x21a7_fd77, &[0]), crypto),
        ("guaranteed_rate without a value", || with(0x21a7_fd77, &[]), crypto),
        ("guaranteed_rate with a byte too many", || with(0x21a7_fd77, &[1, 0]), crypto),
        (
            "guaranteed_rate twice",
            || {
                Box::new(|mut p| {
                    p.guaranteed_rate = Some(1);
                    with(0x21a7_fd77, &[1])(p)
                })
            },
            crypto,
        ),
        ("initial_window of 0", || with(0x2b3e_914d, &[0]), crypto),
        ("initial_window without a value", || with(0x2b3e_914d, &[]), crypto),
        ("initial_window with a byte too many", || with(0x2b3e_914d, &[1, 0]), crypto),
    ];
    let from_server: Vec<(&str, Make, u64)> = vec![
        ("no original destination", || changed(|p| p.original_destination_connection_id = None), 0),
        (
            "another original",
            || changed(|p| p.original_destination_connection_id = ConnectionId::new(b"elseones")),
            0,
        ),
        (
            "a Retry that was none",
            || changed(|p| p.retry_source_connection_id = ConnectionId::new(b"retryids")),
            0,
        ),
        ("a token of 15 bytes", || with(0x02, &[1; 15]), crypto),
        ("preferred_address, malformed", || with(0x0d, &[1; 20]), crypto),
        ("guaranteed_rate", || with(0x21a7_fd77, &[1]), crypto),
        ("initial_window", || with(0x2b3e_914d, &[1]), crypto),
    ];
    for (name, make, frame_type) in both.iter().chain(&from_client) {
        let mut arena = Arena::server_with(tls::server_config(1), make());
        arena.exchange();
        assert_eq!(
            arena.close_code(),
            Some((code::TRANSPORT_PARAMETER, *frame_type)),
            "{name} from a client"
        );
        assert!(!arena.has(|event| *event == Event::Connected), "{name}");
    }
    for (name, make, frame_type) in both.iter().chain(&from_server) {
        let mut arena = Arena::client_with(make());
        arena.exchange();
        assert_eq!(
            arena.close_code(),
            Some((code::TRANSPORT_PARAMETER, *frame_type)),
            "{name} from a server"
        );
        assert!(!arena.has(|event| *event == Event::Connected), "{name}");
    }
}

#[test]
fn unknown_transport_parameters_are_ignored() {
    // spec: rfc9000 7.4.2 unknown-ignored
    for identifier in [0x12, 0x1b, 0x40, varint::MAX] {
        let mut arena = Arena::server_with(tls::server_config(1), with(identifier, &[7; 30]));
        arena.exchange();
        assert!(arena.has(|event| *event == Event::Connected), "{identifier:#x}");
    }
}

#[test]
fn data_before_the_handshake_is_complete_is_kept_within_bounds_and_processed_after() {
    // spec: rfc9001 5.7 no-early-opening, 5.7 server-waits
    let mut arena = halfway(true);
    let id = StreamId::new(Side::Client, Direction::Bidirectional, 0);
    for offset in 0..50 {
        let frame = StreamFrame { id, offset, data: vec![offset as u8].into(), fin: false };
        arena.send(PacketType::Short, &[Frame::Stream(frame)]);
    }
    assert!(arena.connection().accept(Direction::Bidirectional).is_none(), "nothing is processed yet");
    let dropped = arena.connection().stats().packets_dropped;
    assert_eq!(dropped, 40, "ten are kept");
    arena.rogue.is_shaking = true;
    arena.exchange();
    let now = arena.now;
    let connection = arena.connection();
    assert_eq!(connection.accept(Direction::Bidirectional), Some(id));
    let mut read = Vec::new();
    while let Ok(Read::Data(data)) = connection.read(now, id, usize::MAX) {
        read.extend_from_slice(&data);
    }
    assert_eq!(read, (0..10).collect::<Vec<u8>>());
}

#[test]
fn initials_in_small_datagrams_are_dropped_by_a_server() {
    // spec: rfc9000 14.1 small-initial-dropped, 14 size-closes-nothing
    let mut arena = Arena::server_with(tls::server_config(1), proper());
    let flight = arena.rogue.flight();
    for size in [30, 600, 1199] {
        arena.inject(&flight[0][..size]);
    }
    // A whole Initial in a datagram that is too small.
    let small = arena.rogue.packet(PacketType::Initial, &[Frame::Ping]);
    arena.inject(&small);
    arena.drain();
    assert_eq!(arena.endpoint.connections(), 0);
    assert!(arena.sent.is_empty());

    // Later ones are dropped, too (RFC 9000 section 14.1).
    let mut arena = halfway(true);
    let before = arena.connection().stats();
    let small = arena.rogue.packet(PacketType::Initial, &[Frame::Ping]);
    arena.inject(&small);
    arena.drain();
    let after = arena.connection().stats();
    assert_eq!(after.packets_received, before.packets_received);
    assert_eq!(after.packets_dropped, before.packets_dropped + 1);
    let full = arena.rogue.datagram(PacketType::Initial, &[Frame::Ping]);
    arena.inject(&full);
    assert_eq!(arena.connection().stats().packets_received, before.packets_received + 1);
}

#[test]
fn an_initial_with_a_token_from_a_server_is_dropped() {
    // spec: rfc9000 17.2.2 server-token-refused
    // RFC 9000 section 17.2.2.
    let mut arena = Arena::client_with(proper());
    arena.drain();
    let keys = crate::support::rogue::initial_keys(&arena.rogue.original, Side::Server);
    let (to, from) = (arena.rogue.remote_id, arena.rogue.local_id);
    let mut packet = Vec::new();
    let number = posthaste_wire::packet::TruncatedNumber::new(0, 4);
    let layout =
        header::write_long(&mut packet, PacketType::Initial, version::V1, &to, &from, b"token", number);
    let header_len = packet.len();
    packet.resize(header_len + 1200, 0);
    let length = packet.len() + 16 - layout.number_at;
    header::patch_length(&mut packet, layout.length_at, length);
    let (head, payload) = packet.split_at_mut(header_len);
    let tag = keys.local.packet.encrypt_in_place(0, head, payload).expect("sealable");
    packet.extend_from_slice(tag.as_ref());
    let (head, tail) = packet.split_at_mut(layout.number_at);
    let (field, sample) = tail.split_at_mut(4);
    keys.local.header.encrypt_in_place(&sample[..16], &mut head[0], field).expect("a sample");
    arena.inject(&packet);
    arena.drain();
    assert_eq!(arena.connection().stats().packets_received, 0);
    arena.exchange();
    assert!(arena.has(|event| *event == Event::Connected), "the handshake goes on: {:?}", arena.events);
}

#[test]
fn a_server_sends_at_most_three_times_what_it_received_from_a_client_that_falls_silent() {
    // spec: rfc9000 8 three-times-at-most, 8.1 server-three-times, 14.1 server-limited
    // spec: rfc9002 6.2.2.1 blocked-server-waits
    for names in [0, 400] {
        let mut arena = Arena::server_with(tls::server_config_with_names(1, names), proper());
        arena.is_listening = false;
        let flight = arena.rogue.flight();
        assert_eq!(flight.len(), 1);
        arena.inject(&flight[0]);
        arena.run_for(Duration::from_secs(120));
        let sent: usize = arena.sent.iter().map(Vec::len).sum();
        assert!(sent <= 3 * arena.injected, "{sent} bytes for {}", arena.injected);
        assert!(sent >= 1200, "it does answer");
        assert_eq!(arena.endpoint.connections(), 0, "and gives up");
        assert_eq!(arena.closed(), Some(&CloseReason::IdleTimeout));
        assert_eq!(arena.endpoint.next_timeout(), None);
    }
}

#[test]
fn what_a_silent_client_repeats_buys_three_times_as_much_and_no_more() {
    // spec: rfc9000 8.1 server-three-times
    let mut arena = Arena::server_with(tls::server_config_with_names(1, 400), proper());
    arena.is_listening = false;
    let flight = arena.rogue.flight();
    for round in 0..20_u64 {
        arena.inject(&flight[0]);
        arena.drain();
        // A datagram of noise with the right ID counts, too; one from nowhere does not.
        arena.run_for(Duration::from_millis(300 * (round % 3)));
        let sent: usize = arena.sent.iter().map(Vec::len).sum();
        assert!(sent <= 3 * arena.injected, "{sent} bytes for {} in round {round}", arena.injected);
    }
}

#[test]
fn a_close_respects_the_amplification_limit_too() {
    // spec: rfc9000 8.1 server-three-times, 10.2.1 close-to-new-address
    let mut arena = Arena::server_with(tls::server_config_with_names(1, 400), proper());
    arena.is_listening = false;
    let flight = arena.rogue.flight();
    arena.inject(&flight[0]);
    arena.drain();
    let now = arena.now;
    arena.connection().close(now, 1, "no".into());
    arena.run_for(Duration::from_secs(30));
    let sent: usize = arena.sent.iter().map(Vec::len).sum();
    assert!(sent <= 3 * arena.injected, "{sent} bytes for {}", arena.injected);
    assert_eq!(arena.endpoint.connections(), 0);
}

#[test]
fn a_client_gives_up_on_a_silent_server() {
    // spec: rfc9000 8.1 client-pads-initials, 14.1 client-expands, 8.1 client-probes, rfc9001 9.3 hello-padded
    // spec: rfc9002 6.2.2.1 client-sends-initial
    let mut arena = Arena::client_with(proper());
    arena.is_listening = false;
    arena.run_for(Duration::from_secs(120));
    assert_eq!(arena.closed(), Some(&CloseReason::IdleTimeout));
    assert_eq!(arena.endpoint.connections(), 0);
    assert!((3..20).contains(&arena.sent.len()), "{} datagrams, with back-off", arena.sent.len());
    assert!(arena.sent.iter().all(|datagram| datagram.len() >= 1200), "RFC 9000 section 14.1");
}

#[test]
fn keep_alive_towards_a_peer_that_fell_silent_lets_time_pass() {
    let config =
        TransportConfig { keep_alive: Some(Duration::from_secs(2).into()), ..crate::support::defaults() };
    let mut arena = Arena::server_for(config);
    arena.is_listening = false;
    arena.run_for(Duration::from_secs(200));
    assert_eq!(arena.closed(), Some(&CloseReason::IdleTimeout));
}

#[test]
fn without_idle_timeouts_a_handshake_that_falls_silent_ends_all_the_same() {
    let transport = TransportConfig { max_idle_timeout: Duration::ZERO.into(), ..crate::support::defaults() };
    let config = tls::server_config(1).with_transport(transport.clone().into());
    let mut arena = Arena::server_with(config, changed(|parameters| parameters.max_idle_timeout = 0));
    arena.is_listening = false;
    let flight = arena.rogue.flight();
    arena.inject(&flight[0]);
    arena.run_for(Duration::from_secs(120));
    assert_eq!(arena.closed(), Some(&CloseReason::IdleTimeout));
    assert_eq!(arena.endpoint.connections(), 0);
    // Once it is complete, the connection stays.
    let config = tls::server_config(1).with_transport(transport.into());
    let mut arena = Arena::server_with(config, changed(|parameters| parameters.max_idle_timeout = 0));
    arena.exchange();
    arena.run_for(Duration::from_secs(100_000));
    assert_eq!(arena.endpoint.connections(), 1);
    assert_eq!(arena.closed(), None);
}

#[test]
fn version_information_that_names_another_version_ends_the_connection() {
    // spec: rfc9369 4 version-information
    // spec: rfc9368 4 server-compares, 4 difference-closes, 4 unoffered-closes
    // spec: rfc9368 4 negotiated-compared, 4 mismatch-closes
    let value = [0x6b33_43cf_u32, 1, 0x6b33_43cf].map(u32::to_be_bytes).concat();
    let mut arena = Arena::server_with(tls::server_config(1), with(0x11, &value));
    arena.exchange();
    assert_eq!(arena.close_code().map(|(code, _)| code), Some(0x11), "VERSION_NEGOTIATION_ERROR");
    let mut arena = Arena::client_with(with(0x11, &value));
    arena.exchange();
    assert_eq!(arena.close_code().map(|(code, _)| code), Some(0x11), "VERSION_NEGOTIATION_ERROR");
}
