//! What an end must do, and must not, as its peer sees it.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use posthaste_transport::{
    CloseReason, DatagramInfo, Direction, Endpoint, Event, LocalError, Move, Side, StreamId, TransportConfig,
};
use posthaste_units::Duration;
use posthaste_wire::frame::{AckFrame, CryptoFrame, NewConnectionId, StreamFrame};
use posthaste_wire::packet::{
    Header, Invariants, PacketType, TruncatedNumber, header, split, version, write_version_negotiation,
};
use posthaste_wire::{ConnectionId, Frame, ResetToken};

use crate::code;
use crate::support::arena::Arena;
use crate::support::rogue::{Oddity, proper};
use crate::support::tls;

/// The headers of a datagram's packets.
fn headers(datagram: &[u8]) -> Vec<Header> {
    split(BytesMut::from(datagram), 8).filter_map(Result::ok).map(|packet| packet.header).collect()
}

fn kinds(datagram: &[u8]) -> Vec<PacketType> {
    headers(datagram).iter().map(Header::packet_type).collect()
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// A datagram, and where it was sent to.
type Addressed = (SocketAddr, Vec<u8>);

/// Collects what the endpoint sends, with where to; the rogue hears it.
fn sent_to(arena: &mut Arena) -> Vec<Addressed> {
    let (mut all, mut buffer) = (Vec::new(), Vec::new());
    while let Some(transmit) = arena.endpoint.poll_transmit(arena.now, &mut buffer, 10) {
        for datagram in buffer.chunks(transmit.segment_size.unwrap_or(transmit.size)) {
            all.push((transmit.remote, datagram.to_vec()));
            arena.rogue.receive(datagram);
        }
        buffer.clear();
    }
    all
}

fn count(arena: &Arena, test: impl Fn(&Frame) -> bool) -> usize {
    arena.rogue.seen.iter().filter(|(_, frame)| test(frame)).count()
}

fn new_id(sequence: u64) -> Frame {
    Frame::NewConnectionId(NewConnectionId {
        sequence,
        retire_prior_to: 0,
        id: ConnectionId::new(&sequence.to_be_bytes()).expect("short enough"),
        reset_token: ResetToken([sequence as u8; 16]),
    })
}

/// A server under test whose client has gone on to another address, and the challenges that it sent there and home.
fn moved() -> (Arena, Vec<Addressed>) {
    let mut arena = Arena::server();
    arena.send(PacketType::Short, &[new_id(1), new_id(2)]);
    arena.rogue.seen.clear();
    arena.rogue.is_acking = false;
    arena.address = address("10.0.0.1:1000");
    let ping = arena.rogue.datagram(PacketType::Short, &[Frame::Ping]);
    arena.inject(&ping);
    let sent = sent_to(&mut arena);
    (arena, sent)
}

#[test]
fn a_server_challenges_both_addresses_of_a_client_that_seems_to_have_moved() {
    // spec: rfc9000 9.3.3 old-path-challenged, 8.2.1 challenge-padded, 8.2.2 response-within-limit
    let (arena, sent) = moved();
    assert_eq!(count(&arena, |frame| matches!(frame, Frame::PathChallenge(_))), 2);
    let home = address("127.0.0.1:666");
    let to_home: Vec<usize> = sent.iter().filter(|(to, _)| *to == home).map(|(_, data)| data.len()).collect();
    assert_eq!(to_home, [1200], "padded where nothing forbids it");
    let elsewhere: usize = sent.iter().filter(|(to, _)| *to != home).map(|(_, data)| data.len()).sum();
    assert!((1..=3 * 60).contains(&elsewhere), "{elsewhere} bytes for one small packet");
}

#[test]
fn a_clients_challenge_is_padded() {
    // spec: rfc9000 8.2.1 challenge-padded
    let mut arena = Arena::client();
    arena.send(PacketType::Short, &[new_id(1)]);
    arena.rogue.seen.clear();
    let sent = arena.sent.len();
    let now = arena.now;
    arena.connection().migrate(now, Move::Network).expect("a spare ID");
    arena.drain();
    assert_eq!(count(&arena, |frame| matches!(frame, Frame::PathChallenge(_))), 1);
    assert!(arena.sent[sent..].iter().any(|datagram| datagram.len() == 1200));
}

#[test]
fn a_new_address_gets_three_times_what_came_from_it_until_it_is_validated_from_wherever() {
    // spec: rfc9000 8.1.4 changed-address-limited, 8.2.2 any-path-validates
    for is_answered in [false, true] {
        let (mut arena, sent) = moved();
        let (home, elsewhere) = (address("127.0.0.1:666"), arena.address);
        let challenge = arena.rogue.seen.iter().find_map(|(_, frame)| match frame {
            Frame::PathChallenge(data) => Some(*data),
            _ => None,
        });
        let mut to_new: usize = sent.iter().filter(|(to, _)| *to == elsewhere).map(|(_, d)| d.len()).sum();
        let id = arena.connection().open(Direction::Unidirectional).expect("streams may be opened");
        let mut data = Bytes::from(vec![1; 10_000]);
        arena.connection().write(id, &mut data).expect("there is room");
        to_new += sent_to(&mut arena)
            .iter()
            .filter(|(to, _)| *to == elsewhere)
            .map(|(_, d)| d.len())
            .sum::<usize>();
        assert!(to_new <= 3 * 60, "{to_new} bytes");
        if is_answered {
            // The answers to both challenges, from home: probing packets, which move nobody.
            arena.address = home;
            let answers: Vec<Frame> = arena
                .rogue
                .seen
                .iter()
                .filter_map(|(_, frame)| match frame {
                    Frame::PathChallenge(data) => Some(Frame::PathResponse(*data)),
                    _ => None,
                })
                .collect();
            assert!(challenge.is_some() && answers.len() == 2);
            let datagram = arena.rogue.datagram(PacketType::Short, &answers);
            arena.inject(&datagram);
            let to_new: usize =
                sent_to(&mut arena).iter().filter(|(to, _)| *to == elsewhere).map(|(_, d)| d.len()).sum();
            assert!(to_new > 5000, "{to_new} bytes");
        }
        arena.is_listening = false;
        arena.run_for(Duration::from_secs(5));
        let expected = if is_answered { elsewhere } else { home };
        assert_eq!(arena.connection().remote(), expected);
    }
}

#[test]
fn a_challenge_is_answered_at_once_and_where_it_came_from() {
    // spec: rfc9000 8.2.2 response-not-delayed, 8.2.2 response-on-same-path, 8.2.1 small-challenge-taken
    // spec: rfc9000 8.2.2 response-within-limit
    let mut arena = Arena::server();
    for turn in 1..=3_u8 {
        arena.address = SocketAddr::from(([10, 0, 0, turn], 1000));
        let challenge = arena.rogue.datagram(PacketType::Short, &[Frame::PathChallenge([turn; 8])]);
        assert!(challenge.len() < 100);
        arena.rogue.seen.clear();
        arena.inject(&challenge);
        let mut answered = Vec::new();
        for (to, datagram) in sent_to(&mut arena) {
            if to == arena.address {
                answered.push(datagram.len());
            }
        }
        assert_eq!(count(&arena, |frame| *frame == Frame::PathResponse([turn; 8])), 1);
        assert_eq!(answered.len(), 1);
        assert!(answered[0] <= 3 * challenge.len(), "{answered:?}");
    }
}

#[test]
fn a_client_drops_packets_of_another_version() {
    // spec: rfc9369 4.1 others-dropped
    // spec: rfc9000 5.2.1 other-version-dropped
    let mut arena = Arena::client_with(proper());
    arena.drain();
    let flight = arena.rogue.flight();
    let mut other = flight[0].clone();
    other[1..5].copy_from_slice(&version::V2.to_be_bytes());
    arena.inject(&other);
    arena.drain();
    assert_eq!(arena.connection().stats().packets_received, 0);
    for datagram in &flight {
        arena.inject(datagram);
    }
    arena.exchange();
    assert!(arena.rogue.is_connected());
}

#[test]
fn unused_bits_of_a_version_negotiation_mean_nothing() {
    // spec: rfc9000 17.2.1 unused-bits-ignored
    for unused in [0, 0x15, 0x7f] {
        let mut arena = Arena::client_with(proper());
        arena.drain();
        let mut datagram = Vec::new();
        let (to, from) = (arena.rogue.remote_id, arena.rogue.original);
        write_version_negotiation(&mut datagram, to, from, &[0xff00_001d], unused);
        arena.inject(&datagram);
        arena.drain();
        assert!(matches!(arena.closed(), Some(CloseReason::VersionMismatch(_))), "{unused:#x}");
    }
}

#[test]
fn a_client_that_is_not_answered_keeps_the_id_that_it_chose() {
    // spec: rfc9000 7.2 first-id-kept
    let mut arena = Arena::client_with(proper());
    arena.is_listening = false;
    arena.run_for(Duration::from_secs(20));
    let ids: BTreeSet<ConnectionId> = arena
        .sent
        .iter()
        .map(|datagram| Invariants::parse(datagram, 8).expect("a long header").dcid)
        .collect();
    assert!(arena.sent.len() > 3);
    assert_eq!(ids.len(), 1);
}

#[test]
fn what_leaves_is_well_formed() {
    // spec: rfc9000 12.2 one-id-a-datagram, 17.2 destination-id-length, 17.2 source-id-length
    // spec: rfc9000 17.2.2 server-token-empty, 17.4 spin-off, 14.1 server-expands, rfc9001 5.6 server-never-early
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        arena.run_for(Duration::from_secs(1));
        for datagram in &arena.sent {
            let headers = headers(datagram);
            let destinations: BTreeSet<ConnectionId> = headers.iter().map(Header::dcid).collect();
            assert_eq!(destinations.len(), 1, "{headers:?}");
            assert!(headers.iter().all(|header| header.scid().is_none_or(|id| id.len() <= 20)));
            assert!(destinations.iter().all(|id| id.len() <= 20));
            if datagram[0] & 0x80 == 0 {
                assert_eq!(datagram[0] & 0x20, 0, "the spin bit");
            }
            if !is_server {
                continue;
            }
            assert!(!kinds(datagram).contains(&PacketType::ZeroRtt));
            if let Some(Ok(packet)) = split(BytesMut::from(&datagram[..]), 8).next()
                && packet.header.packet_type() == PacketType::Initial
            {
                assert!(packet.token().is_empty());
            }
        }
        assert_eq!(kinds(&arena.sent[0])[0], PacketType::Initial);
        assert!(arena.sent[0].len() >= 1200, "it asks for an acknowledgement");
    }
}

#[test]
fn long_ids_of_version_1_are_dropped() {
    // spec: rfc9000 17.2 long-source-dropped
    let mut endpoint = Endpoint::new([1; 32], Some(tls::server_config(1)));
    let info = DatagramInfo { remote: address("127.0.0.1:1"), local_ip: None, ecn: None };
    for len in [21, 100, 255] {
        let mut datagram = vec![0xc3, 0, 0, 0, 1, 8];
        datagram.extend_from_slice(b"original");
        datagram.push(len);
        datagram.resize(1200, 7);
        endpoint.on_datagram(posthaste_units::Time::ZERO, &info, BytesMut::from(&datagram[..]));
        let mut buffer = Vec::new();
        assert!(endpoint.poll_transmit(posthaste_units::Time::ZERO, &mut buffer, 1).is_none());
    }
    assert_eq!((endpoint.connections(), endpoint.stats().malformed), (0, 3));
}

#[test]
fn the_spin_bit_is_neither_read_nor_spun() {
    // spec: rfc9000 17.4 spin-ignored, 17.4 spin-off
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        let sent = arena.sent.len();
        for turn in 0..20 {
            let first = if turn % 2 == 0 { 0x20 } else { 0 };
            arena.send_raw(&[1], Oddity { first, ..Oddity::default() });
            arena.run_for(Duration::from_millis(50));
        }
        assert_eq!(arena.close_code(), None);
        assert!(arena.sent.len() > sent + 10);
        assert!(arena.sent[sent..].iter().all(|datagram| datagram[0] & 0xa0 == 0));
    }
}

#[test]
fn keys_of_the_handshake_are_gone_after_it() {
    // spec: rfc9001 4.9.1 client-drops-initial, 4.9.1 server-drops-initial, 4.9.1 no-initial-after
    // spec: rfc9001 4.9.2 handshake-keys-dropped
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        let before = arena.connection().stats().packets_received;
        for kind in [PacketType::Initial, PacketType::Handshake] {
            arena.send(kind, &[Frame::Ping]);
        }
        assert_eq!(arena.connection().stats().packets_received, before, "server {is_server}");
        let kinds: Vec<PacketType> = arena.sent.iter().flat_map(|datagram| kinds(datagram)).collect();
        let first = kinds.iter().position(|kind| *kind == PacketType::Short).expect("1-RTT packets");
        assert!(!kinds[first + 1..].contains(&PacketType::Initial), "{kinds:?}");
        if !is_server {
            let handshake = kinds.iter().position(|kind| *kind == PacketType::Handshake).expect("some");
            assert!(!kinds[handshake..].contains(&PacketType::Initial), "{kinds:?}");
        }
    }
}

#[test]
fn acknowledgements_travel_in_the_space_of_what_they_acknowledge() {
    // spec: rfc9000 13.2.6 acked-in-its-space, 13.2.6 data-acked-by-data-keys, 17.2.3 data-acked-by-data
    // spec: rfc9000 13.2.1 not-all-elicit
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        arena.send_raw(&[1], Oddity { number: Some(5000), ..Oddity::default() });
        for _ in 0..20 {
            arena.send(PacketType::Short, &[Frame::Ping]);
        }
        arena.run_for(Duration::from_secs(1));
        let mut of_data = 0;
        let mut bare = 0;
        for (kind, frame) in &arena.rogue.seen {
            let Frame::Ack(ack) = frame else {
                bare -= i32::from(*kind == PacketType::Short);
                continue;
            };
            let largest = *ack.ranges[0].end();
            assert!(largest < arena.rogue.next_number(*kind));
            assert_eq!(largest >= 5000, *kind == PacketType::Short && largest >= 100, "{kind:?} {largest}");
            of_data += usize::from(largest >= 5000);
            bare += i32::from(*kind == PacketType::Short);
        }
        assert!(of_data > 5);
        assert!(bare > 0, "most acknowledgements ask for none");
    }
}

#[test]
fn acknowledgements_are_not_acknowledged() {
    // spec: rfc9000 13.2.1 no-ack-for-acks
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        arena.run_for(Duration::from_secs(1));
        let sent = arena.sent.len();
        let ack = arena.rogue.ack(PacketType::Short).expect("something came");
        for _ in 0..200 {
            arena.send(PacketType::Short, std::slice::from_ref(&ack));
        }
        arena.run_for(Duration::from_secs(1));
        assert_eq!(arena.sent.len(), sent);
    }
}

#[test]
fn a_packet_that_breaks_the_rules_is_not_acknowledged() {
    // spec: rfc9000 13.1 acked-when-processed
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        arena.run_for(Duration::from_secs(1));
        let number = arena.rogue.next_number(PacketType::Short);
        let bad = Frame::RetireConnectionId(1 << 20);
        arena.send(PacketType::Short, &[Frame::Ping, bad]);
        assert!(arena.close_code().is_some());
        let is_acked = |frame: &Frame| matches!(frame, Frame::Ack(ack) if *ack.ranges[0].end() >= number);
        assert_eq!(count(&arena, is_acked), 0);
    }
}

#[test]
fn loss_makes_the_sender_slower() {
    // spec: rfc9000 13.3 loss-slows
    let mut arena = Arena::server();
    arena.rogue.is_acking = false;
    let id = arena.connection().open(Direction::Unidirectional).expect("streams may be opened");
    let mut data = Bytes::from(vec![1; 100_000]);
    arena.connection().write(id, &mut data).expect("there is room");
    arena.drain();
    let before = arena.connection().stats().congestion.window;
    arena.now += Duration::from_millis(50);
    let newest = *arena.rogue.received(PacketType::Short).last().expect("some");
    let ack = Frame::Ack(AckFrame { ranges: vec![newest..=newest], delay: 0, ecn: None });
    arena.send(PacketType::Short, &[ack]);
    let after = arena.connection().stats();
    assert!(after.packets_lost > 0 && after.congestion.window < before, "{before} {after:?}");
}

#[test]
fn the_idle_timeout_is_three_probe_timeouts_at_least() {
    // spec: rfc9000 10.1 idle-three-probes
    let config =
        TransportConfig { max_idle_timeout: Duration::from_millis(5).into(), ..crate::support::defaults() };
    let mut arena = Arena::server_for(config);
    arena.is_listening = false;
    // The path's probe timeout is that of a round trip of no time: the peer's ack delay of 25 ms and a little.
    arena.run_for(Duration::from_millis(70));
    assert_eq!(arena.closed(), None);
    arena.run_for(Duration::from_millis(200));
    assert_eq!(arena.closed(), Some(&CloseReason::IdleTimeout));
}

#[test]
fn who_has_a_connection_sends_no_reset_for_it() {
    // spec: rfc9000 11 no-reset-with-state, 21.11 none-while-active
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        arena.run_for(Duration::from_secs(1));
        let sent = arena.sent.len();
        for size in [25, 60, 1200] {
            let mut forged = vec![0x41; size];
            forged[1..9].copy_from_slice(arena.rogue.remote_id.as_slice());
            arena.inject(&forged);
            arena.drain();
        }
        assert_eq!(arena.sent.len(), sent);
        assert_eq!(arena.endpoint.stats().resets_sent, 0);
    }
}

#[test]
fn names_and_their_reset_tokens_are_never_used_twice() {
    // spec: rfc9000 10.3.2 id-and-key-once, 10.3.2 reset-id-not-reused, 10.3.2 token-for-one-id
    // spec: rfc9000 10.3.2 reset-token-unguessable
    let (mut ids, mut tokens) = (BTreeSet::new(), BTreeSet::new());
    let mut arena = Arena::server();
    for sequence in 1..150 {
        arena.send(PacketType::Short, &[Frame::RetireConnectionId(sequence)]);
        arena.run_for(Duration::from_millis(100));
    }
    let parameters = arena.rogue.victim_parameters();
    tokens.extend(parameters.stateless_reset_token.map(|token| token.0));
    ids.insert(arena.rogue.remote_id);
    let mut offered = BTreeSet::new();
    for (_, frame) in &arena.rogue.seen {
        if let Frame::NewConnectionId(new) = frame {
            offered.insert(new.sequence);
            ids.insert(new.id);
            tokens.insert(new.reset_token.0);
        }
    }
    assert!(offered.len() > 150);
    assert_eq!((ids.len(), tokens.len()), (offered.len() + 1, offered.len() + 1));
    // Another endpoint's key gives others: nobody can tell one from the ID.
    let other = Endpoint::new([2; 32], Some(tls::server_config(1)));
    arena.endpoint = other;
    arena.sent.clear();
    arena.now += Duration::from_secs(1);
    arena.send_raw(&[1; 100], Oddity::default());
    let reset = arena.sent.last().expect("a reset");
    assert!(!tokens.iter().any(|token| reset.ends_with(token)));
}

#[test]
fn acks_are_negotiated_with_those_who_know_how() {
    // spec: rfc9000 19.21 extension-understood
    let mut arena = Arena::server();
    for _ in 0..100 {
        let id = arena.connection().open(Direction::Unidirectional).expect("streams may be opened");
        let mut data = Bytes::from_static(&[1; 1000]);
        arena.connection().write(id, &mut data).expect("there is room");
        arena.connection().finish(id).expect("its end");
        arena.run_for(Duration::from_millis(20));
    }
    assert_eq!(count(&arena, |frame| matches!(frame, Frame::AckFrequency(_) | Frame::ImmediateAck)), 0);
}

#[test]
fn a_client_reads_no_data_before_its_handshake_is_complete() {
    // spec: rfc9001 5.7 client-waits
    let mut arena = Arena::client_with(proper());
    arena.drain();
    let flight = arena.rogue.flight();
    arena.inject(&flight[0]);
    let id = StreamId::new(Side::Server, Direction::Unidirectional, 0);
    let data = Frame::Stream(StreamFrame { id, offset: 0, data: Bytes::from_static(b"early"), fin: true });
    arena.send(PacketType::Short, &[data]);
    assert!(arena.connection().is_handshaking());
    assert_eq!(arena.connection().accept(Direction::Unidirectional), None);
    for datagram in &flight[1..] {
        arena.inject(datagram);
    }
    arena.exchange();
    assert_eq!(arena.connection().accept(Direction::Unidirectional), Some(id), "it was kept");
}

#[test]
fn a_client_drops_early_data_unopened() {
    // spec: rfc9001 5.6 client-drops-early
    let mut arena = Arena::client();
    let before = arena.connection().stats();
    let (to, from) = (arena.rogue.remote_id, arena.rogue.local_id);
    let mut packet = Vec::new();
    let number = TruncatedNumber::new(0, 4);
    let layout = header::write_long(&mut packet, PacketType::ZeroRtt, version::V1, &to, &from, &[], number);
    packet.resize(packet.len() + 60, 1);
    let length = packet.len() - layout.number_at;
    header::patch_length(&mut packet, layout.length_at, length);
    arena.inject(&packet);
    arena.drain();
    let after = arena.connection().stats();
    assert_eq!(after.packets_received, before.packets_received);
    assert_eq!(after.packets_dropped, before.packets_dropped + 1);
    assert_eq!(arena.closed(), None);
}

#[test]
fn tls_messages_that_quic_forbids_end_the_connection() {
    // spec: rfc9001 6 tls-key-update-closes, 4.4 late-request-closes
    // KeyUpdate (24), to either; CertificateRequest (13), to a client.
    let key_update: &[u8] = &[24, 0, 0, 1, 0];
    let request: &[u8] = &[13, 0, 0, 11, 0, 0, 8, 0, 13, 0, 4, 0, 2, 8, 7];
    for (is_server, message) in [(true, key_update), (false, key_update), (false, request)] {
        let mut arena = Arena::connected(is_server);
        // A rogue server has sent tickets at this level.
        let offset = arena.rogue.crypto_sent(PacketType::Short);
        let crypto = CryptoFrame { offset, data: Bytes::from_static(message) };
        arena.send(PacketType::Short, &[Frame::Crypto(crypto)]);
        let code = arena.close_code().map(|(code, _)| code);
        assert_eq!(code, Some(code::UNEXPECTED_MESSAGE), "{is_server} {message:?}");
    }
}

#[test]
fn keys_are_not_updated_before_the_handshake_is_confirmed() {
    // spec: rfc9001 6.1 not-before-confirmed
    let mut arena = Arena::client_with(proper());
    arena.drain();
    assert_eq!(arena.connection().update_keys(), Err(LocalError::TooEarly));
    arena.exchange();
    assert!(arena.has(|event| *event == Event::Connected));
    assert_eq!(arena.connection().update_keys(), Err(LocalError::TooEarly), "not confirmed yet");
    arena.send(PacketType::Short, &[Frame::HandshakeDone]);
    assert_eq!(arena.connection().update_keys(), Ok(()));
}
