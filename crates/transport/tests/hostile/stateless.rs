//! Version negotiation and stateless resets, both ways.

use std::net::SocketAddr;

use posthaste_transport::{CloseReason, DatagramInfo, Endpoint, Event, RetryPolicy};
use posthaste_units::{Duration, Rng, Time};
use posthaste_wire::frame::NewConnectionId;
use posthaste_wire::packet::{
    Header, Invariants, PacketType, RawInvariants, split, version, write_version_negotiation,
};
use posthaste_wire::{ConnectionId, Frame, ResetToken};

use crate::support::Pair;
use crate::support::arena::Arena;
use crate::support::rogue::{Oddity, proper};
use crate::support::tls;

fn info() -> DatagramInfo {
    DatagramInfo { remote: "127.0.0.1:666".parse().expect("an address"), local_ip: None, ecn: None }
}

/// What an endpoint answers to one datagram.
fn answers(endpoint: &mut Endpoint, datagram: &[u8]) -> Vec<Vec<u8>> {
    answers_at(Time::ZERO, endpoint, datagram)
}

fn answers_at(now: Time, endpoint: &mut Endpoint, datagram: &[u8]) -> Vec<Vec<u8>> {
    endpoint.on_datagram(now, &info(), datagram.into());
    let mut answers = Vec::new();
    let mut buffer = Vec::new();
    while endpoint.poll_transmit(now, &mut buffer, 1).is_some() {
        answers.push(std::mem::take(&mut buffer));
    }
    answers
}

/// The start of a long header of any version, padded.
fn long(version: u32, dcid: &[u8], scid: &[u8], size: usize) -> Vec<u8> {
    let mut datagram = vec![0xc0];
    datagram.extend_from_slice(&version.to_be_bytes());
    for id in [dcid, scid] {
        datagram.push(id.len() as u8);
        datagram.extend_from_slice(id);
    }
    datagram.resize(size, 0);
    datagram
}

#[test]
fn a_server_names_its_versions_to_clients_of_others() {
    // spec: rfc9368 2.1 offered-listed, 2.1 clients-send-none, 2.1 servers-ignore-them
    // spec: rfc9000 5.2.2 small-unknown-dropped, 6.1 negotiation-not-answered, 17.2.1 version-zero
    // spec: rfc9000 17.2.1 source-echoed, 17.2.1 destination-echoed, 17.2.1 foreign-id-rules, 17.2.1 one-answer
    let mut server = Endpoint::new([1; 32], Some(tls::server_config(1)));
    // IDs longer than version 1 permits are another version's business (RFC 9000 section 17.2).
    for (dcid, scid) in [(&b"12345678"[..], &b"abcdefgh"[..]), (&[], &[]), (&[7; 255], &[9; 200])] {
        let answer = answers(&mut server, &long(0x1a2a_3a4a, dcid, scid, 1200));
        assert_eq!(answer.len(), 1, "IDs of {} and {} bytes", dcid.len(), scid.len());
        let answer = &answer[0];
        let invariants = RawInvariants::parse(answer).expect("a long header");
        assert_eq!((invariants.version, invariants.dcid, invariants.scid), (0, scid, dcid));
        let listed: Vec<u32> = answer[7 + dcid.len() + scid.len()..]
            .chunks(4)
            .map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four")))
            .collect();
        assert!(listed.contains(&version::V1) && !listed.contains(&0x1a2a_3a4a));
    }
    assert!(answers(&mut server, &long(0x1a2a_3a4a, b"12345678", b"abcdefgh", 1199)).is_empty(), "too small");
    assert!(
        answers(&mut server, &long(0, b"12345678", b"abcdefgh", 1200)).is_empty(),
        "no answer to an answer"
    );
    assert_eq!(server.connections(), 0);
    let mut client = Endpoint::new([1; 32], None);
    assert!(answers(&mut client, &long(0x1a2a_3a4a, b"12345678", b"abcdefgh", 1200)).is_empty(), "no server");
}

fn negotiation(arena: &Arena, versions: &[u32]) -> Vec<u8> {
    let mut datagram = Vec::new();
    let (to, from) = (arena.rogue.remote_id, arena.rogue.original);
    write_version_negotiation(&mut datagram, to, from, versions, 0);
    datagram
}

#[test]
fn a_client_believes_a_version_negotiation_only_if_it_is_the_first_answer_and_makes_sense() {
    // spec: rfc9368 2.1 own-version-ignored, 2.1 wrong-ids-ignored, 2.1 nothing-common-aborts, 4 original-ignored
    // spec: rfc9000 6.2 attempt-abandoned, 6.2 late-negotiation-dropped, 6.2 own-version-in-list
    let begin = || {
        let mut arena = Arena::client_with(proper());
        arena.drain();
        arena
    };
    let mut arena = begin();
    let listed = [0xff00_001d, 0x5a6a_7a8a];
    arena.inject(&negotiation(&arena, &listed));
    arena.drain();
    assert_eq!(arena.closed(), Some(&CloseReason::VersionMismatch(listed.to_vec())));
    arena.run_for(Duration::from_secs(10));
    assert_eq!(arena.endpoint.connections(), 0);

    let mut arena = begin();
    let mut foreign = Vec::new();
    let other = ConnectionId::new(b"another1").expect("short enough");
    write_version_negotiation(&mut foreign, arena.rogue.remote_id, other, &listed, 0);
    arena.inject(&foreign);
    arena.drain();
    assert!(arena.closed().is_none(), "it answers another client's packet, or nobody's");

    let mut arena = begin();
    arena.inject(&negotiation(&arena, &[0xff00_001d, version::V1]));
    arena.inject(&negotiation(&arena, &[]));
    let mut cut = negotiation(&arena, &[0xff00_001d]);
    cut.pop();
    arena.inject(&cut);
    arena.drain();
    assert!(arena.closed().is_none(), "our version is listed, or nothing is");

    let mut arena = begin();
    let flight = arena.rogue.flight();
    arena.inject(&flight[0]);
    arena.inject(&negotiation(&arena, &[0xff00_001d]));
    arena.drain();
    assert!(arena.closed().is_none(), "a packet of version 1 has been processed");
    let mut arena = Arena::server();
    arena.inject(&negotiation(&arena, &[0xff00_001d]));
    arena.drain();
    assert!(arena.closed().is_none(), "servers ignore them");
}

#[test]
fn a_reset_is_shorter_than_what_it_answers_and_looks_like_a_packet() {
    // spec: rfc9000 10.3 reset-not-amplified, 10.3.3 reset-shrinks, 10.3 reset-looks-short
    let mut endpoint = Endpoint::new([1; 32], Some(tls::server_config(1)));
    for size in 0..2000_usize {
        let mut datagram = vec![0x55; size];
        if let Some(first) = datagram.first_mut() {
            *first = 0x41;
        }
        // One a millisecond is what the rate of resets permits.
        let now = Time::ZERO + Duration::from_millis(size as u64);
        let answer = answers_at(now, &mut endpoint, &datagram);
        if size < 22 {
            assert!(answer.is_empty(), "{size} bytes are too few to answer");
            continue;
        }
        assert_eq!(answer.len(), 1, "{size} bytes");
        assert!(answer[0].len() < size && answer[0].len() >= 21, "{} for {size}", answer[0].len());
        assert_eq!(answer[0][0] & 0xc0, 0x40, "a short header with its fixed bit");
    }
    assert_eq!(endpoint.connections(), 0);
}

#[test]
fn resets_are_sent_at_a_bounded_rate() {
    let mut endpoint = Endpoint::new([1; 32], Some(tls::server_config(1)));
    let datagram = [0x41; 100];
    let mut count = |millis: u64| {
        let now = Time::ZERO + Duration::from_millis(millis);
        (0..1000).map(|_| answers_at(now, &mut endpoint, &datagram).len()).sum::<usize>()
    };
    assert_eq!(count(0), 100, "the burst");
    assert_eq!(count(1), 1);
    assert_eq!(count(51), 50);
    assert_eq!(count(10_000), 100, "a pause saves up no more than the burst");
    assert_eq!(endpoint.stats().resets_sent, 251);
}

#[test]
fn two_endpoints_that_know_nothing_do_not_reset_each_other_for_ever() {
    // spec: rfc9000 10.3.3 reset-shrinks
    let mut one = Endpoint::new([1; 32], Some(tls::server_config(1)));
    let mut other = Endpoint::new([2; 32], None);
    let mut datagram = vec![0x41; 1200];
    let mut hops = 0;
    loop {
        let to = if hops % 2 == 0 { &mut one } else { &mut other };
        let Some(answer) = answers(to, &datagram).pop() else { break };
        datagram = answer;
        hops += 1;
    }
    assert!((1..=40).contains(&hops), "{hops} hops");
}

/// A datagram that ends with a reset token.
fn reset_with(token: [u8; 16], size: usize) -> Vec<u8> {
    let mut datagram = vec![0x33; size - token.len()];
    datagram[0] = 0x44;
    datagram.extend_from_slice(&token);
    datagram
}

#[test]
fn a_reset_with_the_servers_token_ends_a_client_at_once() {
    // spec: rfc9000 10.3 reset-of-any-form, 10.3.1 token-compared, 10.3.1 reset-drains
    for size in [21, 22, 42, 100, 1200] {
        let token = [0xaa; 16];
        let shape = Box::new(move |mut parameters: posthaste_wire::TransportParameters| {
            parameters.stateless_reset_token = Some(ResetToken(token));
            crate::support::rogue::encode(&parameters)
        });
        let mut arena = Arena::client_with(shape);
        arena.exchange();
        let mut wrong = token;
        wrong[15] ^= 1;
        arena.inject(&reset_with(wrong, size));
        arena.drain();
        assert!(arena.closed().is_none());
        let sent = arena.sent.len();
        // To one of the client's IDs as well as to none.
        let mut reset = reset_with(token, size);
        if size == 42 {
            reset[1..9].copy_from_slice(arena.rogue.remote_id.as_slice());
        }
        // A long header of version 1 to nobody, or of another version with an absurd ID, does as well.
        if size == 1200 {
            reset[..6].copy_from_slice(&[0xc4, 0, 0, 0, 1, 8]);
        } else if size == 100 {
            reset[..6].copy_from_slice(&[0xc4, 0x1a, 0x2a, 0x3a, 0x4a, 255]);
        }
        arena.inject(&reset);
        arena.drain();
        assert_eq!(arena.closed(), Some(&CloseReason::StatelessReset), "{size} bytes");
        assert_eq!(arena.sent.len(), sent, "a reset is not answered");
        arena.run_for(Duration::from_secs(10));
        assert_eq!(arena.endpoint.connections(), 0);
    }
}

#[test]
fn tokens_of_ids_that_are_not_in_use_reset_nothing() {
    // spec: rfc9000 10.3.1 only-tokens-in-use
    // RFC 9000 section 10.3.1: neither those not used yet nor those retired.
    let new = |sequence: u64, retire_prior_to, token| {
        let id = ConnectionId::new(&sequence.to_be_bytes()).expect("short enough");
        let reset_token = ResetToken([token; 16]);
        Frame::NewConnectionId(NewConnectionId { sequence, retire_prior_to, id, reset_token })
    };
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        arena.send(PacketType::Short, &[new(1, 0, 1)]);
        arena.inject(&reset_with([1; 16], 40));
        arena.drain();
        assert!(arena.closed().is_none(), "the ID has not been used");
        arena.send(PacketType::Short, &[new(2, 1, 2)]);
        arena.rogue.local_id = ConnectionId::new(&1_u64.to_be_bytes()).expect("short enough");
        arena.send(PacketType::Short, &[new(3, 2, 3)]);
        arena.inject(&reset_with([1; 16], 40));
        arena.drain();
        assert!(arena.closed().is_none(), "the ID has been retired");
        arena.inject(&reset_with([2; 16], 40));
        arena.drain();
        assert_eq!(arena.closed(), Some(&CloseReason::StatelessReset));
    }
}

#[test]
fn a_lost_server_resets_its_clients() {
    // spec: rfc9000 10.3.2 id-length-known
    let mut arena = Arena::server();
    // The endpoint starts anew with the same seed, hence the same reset key, and knows no connection.
    let token = arena.rogue.victim_parameters().stateless_reset_token.expect("servers send one");
    arena.endpoint = Endpoint::new([1; 32], Some(tls::server_config(1)));
    arena.sent.clear();
    arena.send_raw(&[1; 100], Oddity::default());
    assert_eq!(arena.sent.len(), 1);
    assert!(arena.sent[0].ends_with(&token.0), "the client can recognise it");
}

#[test]
fn noise_neither_grows_state_nor_gets_more_answers_than_the_bound() {
    // spec: rfc9000 5.2.2 everything-else-dropped
    let mut endpoint = Endpoint::new([1; 32], Some(tls::server_config(1)));
    let mut rng = Rng::from_test_seed(3);
    let mut buffer = Vec::new();
    for _ in 0..20 {
        for _ in 0..1000 {
            let mut datagram = vec![0; rng.below(1400) as usize];
            rng.fill(&mut datagram);
            if rng.chance(0.5) && datagram.len() > 5 {
                datagram[..5].copy_from_slice(&[0xc3, 0, 0, 0, 1]);
            }
            endpoint.on_datagram(Time::ZERO, &info(), datagram[..].into());
        }
        let mut answers = 0;
        while endpoint.poll_transmit(Time::ZERO, &mut buffer, 1).is_some() {
            buffer.clear();
            answers += 1;
        }
        assert!(answers <= 32, "{answers} answers waited");
        assert_eq!(endpoint.connections(), 0);
        assert_eq!(endpoint.poll_event(), None);
        assert_eq!(endpoint.next_timeout(), None);
    }
}

#[test]
fn handshakes_in_progress_are_bounded() {
    let mut config = tls::server_config(1);
    config.max_pending_handshakes = 16;
    config.retry = RetryPolicy::Never;
    let mut endpoint = Endpoint::new([1; 32], Some(config));
    let mut buffer = Vec::new();
    let mut rogue = crate::support::rogue::Rogue::client(1, proper());
    let flight = rogue.flight();
    for index in 0..200_u64 {
        // Each Initial is another client's: sealed for another destination ID.
        let original = ConnectionId::new(&index.to_be_bytes()).expect("short enough");
        let initial = reseal(&flight[0], &original);
        endpoint.on_datagram(Time::ZERO, &info(), initial[..].into());
        while endpoint.poll_transmit(Time::ZERO, &mut buffer, 10).is_some() {
            buffer.clear();
        }
    }
    assert_eq!(endpoint.connections(), 16);
    // The newest are there: nobody had answered the others.
    assert_eq!((endpoint.stats().refused, endpoint.stats().evicted), (0, 184));
    while let Some(at) = endpoint.next_timeout() {
        endpoint.on_timeout(at);
        while endpoint.poll_transmit(at, &mut buffer, 10).is_some() {
            buffer.clear();
        }
        while endpoint.poll_event().is_some() {}
    }
    assert_eq!(endpoint.connections(), 0, "they time out");
}

#[test]
fn one_address_does_not_take_all_handshakes() {
    let mut config = tls::server_config(1);
    config.max_pending_handshakes = 256;
    let mut endpoint = Endpoint::new([1; 32], Some(config));
    let mut buffer = Vec::new();
    let mut rogue = crate::support::rogue::Rogue::client(1, proper());
    let flight = rogue.flight();
    let mut begin = |endpoint: &mut Endpoint, index: u64, address: [u8; 4]| {
        let original = ConnectionId::new(&index.to_be_bytes()).expect("short enough");
        let initial = reseal(&flight[0], &original);
        let info = DatagramInfo { remote: (address, 666).into(), ..info() };
        endpoint.on_datagram(Time::ZERO, &info, initial[..].into());
        while endpoint.poll_transmit(Time::ZERO, &mut buffer, 10).is_some() {
            buffer.clear();
        }
    };
    for index in 0..200 {
        begin(&mut endpoint, index, [192, 0, 2, 1]);
    }
    // The others were asked to prove that it is theirs.
    assert_eq!((endpoint.connections(), endpoint.stats().retries_sent), (32, 168));
    begin(&mut endpoint, 200, [192, 0, 2, 2]);
    assert_eq!((endpoint.connections(), endpoint.stats().refused), (33, 0));
}

#[test]
fn a_newcomer_gets_in_while_handshakes_that_nobody_answers_take_all_places() {
    for retry in [RetryPolicy::Never, RetryPolicy::default()] {
        let mut config = tls::server_config(1);
        (config.max_pending_handshakes, config.retry) = (64, retry);
        let mut pair = Pair::with_server(1, config);
        let mut rogue = crate::support::rogue::Rogue::client(1, proper());
        let flight = rogue.flight();
        let knock = |pair: &mut Pair, index: u64| {
            let original = ConnectionId::new(&index.to_be_bytes()).expect("short enough");
            let initial = reseal(&flight[0], &original);
            let host = SocketAddr::from(([192, 0, 2, (index % 200) as u8], 666));
            let now = pair.now;
            pair.server.endpoint.on_datagram(
                now,
                &DatagramInfo { remote: host, ..info() },
                initial[..].into(),
            );
        };
        for index in 0..500 {
            knock(&mut pair, index);
            pair.drain();
        }
        let client = pair.connect();
        let began = pair.now;
        // Others go on meanwhile, 32 of them in a round trip.
        for index in 500..1000 {
            knock(&mut pair, index);
            pair.run_for(Duration::from_micros(600));
            if pair.client.has(client, |event| *event == Event::Confirmed) {
                break;
            }
        }
        pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
        let took = pair.now.since(began);
        assert!(took < Duration::from_secs(2), "{took:?}, {retry:?}");
    }
}

#[test]
fn a_token_takes_the_place_of_a_handshake_that_nobody_answers() {
    // The address's whole share, and all places, are taken by Initials that anybody can have sent.
    let mut config = tls::server_config(1);
    (config.max_pending_handshakes, config.retry) = (16, RetryPolicy::UnderLoad { handshakes: 16 });
    let mut pair = Pair::with_server(1, config);
    let mut rogue = crate::support::rogue::Rogue::client(1, proper());
    let flight = rogue.flight();
    for index in 0..16_u64 {
        let original = ConnectionId::new(&index.to_be_bytes()).expect("short enough");
        let initial = reseal(&flight[0], &original);
        let now = pair.now;
        pair.server.endpoint.on_datagram(now, &info(), initial[..].into());
    }
    let client = pair.connect();
    let began = pair.now;
    pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
    assert!(pair.now.since(began) < Duration::from_millis(500), "{:?}", pair.now.since(began));
    let stats = pair.server.endpoint.stats();
    assert_eq!((stats.retries_sent, stats.validated_by_token, stats.evicted), (1, 1, 1));
}

/// The Initial as a client that chose another destination ID would have sent it.
fn reseal(initial: &[u8], original: &ConnectionId) -> Vec<u8> {
    use posthaste_transport::Side;
    use posthaste_wire::packet::{header, number};
    let old = Invariants::parse(initial, 8).expect("an Initial").dcid;
    let opened = crate::support::rogue::initial_keys(&old, Side::Server);
    let sealed = crate::support::rogue::initial_keys(original, Side::Client);
    let packet = split(initial.into(), 8).next().expect("a packet").expect("a good one");
    assert!(matches!(packet.header, Header::Initial { .. }));
    let (mut bytes, at) = (packet.bytes.to_vec(), packet.number_at);
    let (head, tail) = bytes.split_at_mut(at);
    let (field, sample) = tail.split_at_mut(4);
    opened.remote.header.decrypt_in_place(&sample[..16], &mut head[0], field).expect("a sample");
    let number = u64::from(number::read(field));
    let header_len = at + header::number_len(head[0]);
    let (head, payload) = bytes.split_at_mut(header_len);
    let len = opened.remote.packet.decrypt_in_place(number, head, payload).expect("authentic").len();
    bytes.truncate(header_len + len);
    bytes[6..14].copy_from_slice(original.as_slice());
    let (head, payload) = bytes.split_at_mut(header_len);
    let tag = sealed.local.packet.encrypt_in_place(number, head, payload).expect("sealable");
    bytes.extend_from_slice(tag.as_ref());
    let (head, tail) = bytes.split_at_mut(at);
    let (field, sample) = tail.split_at_mut(4);
    sealed.local.header.encrypt_in_place(&sample[..16], &mut head[0], field).expect("a sample");
    bytes
}
