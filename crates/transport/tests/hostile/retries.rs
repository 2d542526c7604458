//! Retry packets that a client may be sent, made by hand.

use std::sync::Arc;

use ::aws_lc_rs::aead;
use bytes::BytesMut;
use posthaste_units::Duration;
use posthaste_wire::frame::Iter;
use posthaste_wire::packet::{Header, Invariants, PacketType, header, number, split, version};
use posthaste_wire::{ConnectionId, Frame};

use crate::code;
use crate::support::arena::Arena;
use crate::support::rogue::{encode, initial_keys, proper};

/// The key and nonce of RFC 9001 section 5.8.
const KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

/// A Retry with a good tag that answers the client's first Initial.
fn retry(initial: &[u8], source: &[u8], token: &[u8], unused: u8) -> Vec<u8> {
    let first = Invariants::parse(initial, 8).expect("a long header");
    let mut packet = vec![0xf0 | unused];
    packet.extend_from_slice(&version::V1.to_be_bytes());
    for id in [first.scid.as_slice(), source] {
        packet.push(id.len() as u8);
        packet.extend_from_slice(id);
    }
    packet.extend_from_slice(token);
    let pseudo = [&[first.dcid.len() as u8], first.dcid.as_slice(), &packet].concat();
    let key = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::AES_128_GCM, &KEY).expect("a key"));
    let nonce = aead::Nonce::assume_unique_for_key(NONCE);
    let tag = key.seal_in_place_separate_tag(nonce, aead::Aad::from(pseudo), &mut []).expect("sealable");
    packet.extend_from_slice(tag.as_ref());
    packet
}

/// A client under test that has sent its first Initial.
fn begun() -> Arena {
    let mut arena = Arena::client_with(proper());
    arena.is_listening = false;
    arena.drain();
    arena
}

/// The Initials that the client sends in answer to a Retry.
fn answers(arena: &mut Arena, retry: &[u8]) -> Vec<Vec<u8>> {
    let sent = arena.sent.len();
    arena.inject(retry);
    arena.drain();
    arena.sent[sent..].to_vec()
}

/// The frames of a client's Initial that was sent to `destination`, opened.
fn frames(datagram: &[u8], destination: &ConnectionId) -> Vec<Frame> {
    let keys = initial_keys(destination, posthaste_transport::Side::Server);
    let packet = split(BytesMut::from(datagram), 8).next().expect("a packet").expect("a good one");
    assert_eq!(packet.header.packet_type(), PacketType::Initial);
    let (mut bytes, at) = (packet.bytes, packet.number_at);
    let (head, tail) = bytes.split_at_mut(at);
    let (field, sample) = tail.split_at_mut(4);
    keys.remote.header.decrypt_in_place(&sample[..16], &mut head[0], field).expect("a sample");
    let number_len = header::number_len(head[0]);
    let number = u64::from(number::read(&field[..number_len]));
    let mut payload = bytes.split_off(at + number_len);
    let len = keys.remote.packet.decrypt_in_place(number, &bytes, &mut payload).expect("authentic").len();
    payload.truncate(len);
    Iter::new(payload.freeze()).map(|frame| frame.expect("a frame")).collect()
}

fn hello(frames: Vec<Frame>) -> Vec<u8> {
    let crypto = frames.into_iter().filter_map(|frame| match frame {
        Frame::Crypto(crypto) => Some((crypto.offset, crypto.data)),
        _ => None,
    });
    let mut pieces: Vec<_> = crypto.collect();
    pieces.sort_by_key(|(offset, _)| *offset);
    pieces.into_iter().flat_map(|(_, data)| data).collect()
}

#[test]
fn a_client_begins_anew_with_the_same_words_the_token_and_its_own_id() {
    // spec: rfc9000 17.2.5.2 source-id-kept, 17.2.5.3 same-hello, 8.1.3 retry-token-at-once
    // spec: rfc9000 17.2.5 retry-unused-ignored
    for unused in [0, 7, 15] {
        let mut arena = begun();
        let first = arena.sent[0].clone();
        let before = Invariants::parse(&first, 8).expect("a long header");
        let packet = retry(&first, b"retried!", b"token", unused);
        let again = answers(&mut arena, &packet);
        assert_eq!(again.len(), 1, "unused bits {unused:#x}");
        let after = Invariants::parse(&again[0], 8).expect("a long header");
        assert_eq!(after.dcid.as_slice(), b"retried!");
        assert_eq!(after.scid, before.scid);
        let packet = split(BytesMut::from(&again[0][..]), 8).next().expect("a packet").expect("a good one");
        assert_eq!(packet.token(), b"token");
        let words = hello(frames(&first, &before.dcid));
        assert!(words.len() > 100);
        assert_eq!(hello(frames(&again[0], &after.dcid)), words);
    }
}

#[test]
fn retries_that_change_nothing_or_leave_no_room_are_dropped() {
    // spec: rfc9000 17.2.5.1 retry-same-id-dropped
    let mut arena = begun();
    let first = arena.sent[0].clone();
    let own = Invariants::parse(&first, 8).expect("a long header").dcid;
    for (source, token) in
        [(own.as_slice(), vec![1; 10]), (&b"retried!"[..], Vec::new()), (&b"retried!"[..], vec![1; 901])]
    {
        let packet = retry(&first, source, &token, 0);
        assert!(answers(&mut arena, &packet).is_empty(), "{} bytes of token", token.len());
    }
    let packet = retry(&first, b"retried!", &[1; 900], 0);
    assert_eq!(answers(&mut arena, &packet).len(), 1);
}

#[test]
fn a_server_that_says_nothing_of_its_retry_fails_the_handshake() {
    // spec: rfc9000 7.3 retry-id-missing
    for says in [None, Some(&b"retried?"[..]), Some(&b"retried!"[..])] {
        let original = Arc::new(std::sync::Mutex::new(None));
        let known = Arc::clone(&original);
        let mut arena = Arena::client_with(Box::new(move |mut parameters| {
            parameters.original_destination_connection_id = *known.lock().expect("no panic before");
            parameters.retry_source_connection_id =
                says.map(|id| ConnectionId::new(id).expect("short enough"));
            encode(&parameters)
        }));
        arena.is_listening = false;
        arena.drain();
        let first = arena.sent[0].clone();
        let dcid = Invariants::parse(&first, 8).expect("a long header").dcid;
        *original.lock().expect("no panic before") = Some(dcid);
        arena.is_listening = true;
        arena.inject(&retry(&first, b"retried!", b"token", 0));
        arena.exchange();
        let is_good = says == Some(b"retried!");
        let expected = (!is_good).then_some((code::TRANSPORT_PARAMETER, 0));
        assert_eq!(arena.close_code(), expected, "{says:?}");
        assert_eq!(arena.has(|event| *event == posthaste_transport::Event::Connected), is_good);
    }
}

/// What a client's first message offers: its session ID's length, and the versions of TLS.
fn offered(hello: &[u8]) -> (u8, Vec<u8>) {
    // Type and length, legacy version, random; then the session ID, cipher suites and compression methods.
    let mut at = 4 + 2 + 32;
    let session = hello[at];
    at += 1 + usize::from(session);
    at += 2 + usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    at += 1 + usize::from(hello[at]);
    at += 2;
    loop {
        let kind = u16::from_be_bytes([hello[at], hello[at + 1]]);
        let len = usize::from(u16::from_be_bytes([hello[at + 2], hello[at + 3]]));
        if kind == 43 {
            return (session, hello[at + 5..at + 4 + len].to_vec());
        }
        at += 4 + len;
    }
}

#[test]
fn a_client_offers_tls_1_3_alone_and_no_compatibility_mode() {
    // spec: rfc9001 4.2 only-new-tls-offered, 8.4 no-compatibility-mode
    let mut arena = begun();
    arena.run_for(Duration::from_secs(1));
    let first = &arena.sent[0];
    let Header::Initial { dcid, .. } =
        split(BytesMut::from(&first[..]), 8).next().expect("one").expect("good").header
    else {
        panic!("an Initial comes first")
    };
    let (session, versions) = offered(&hello(frames(first, &dcid)));
    assert_eq!((session, versions), (0, vec![3, 4]));
}
