//! `ACK_WINDOW` frames that no honest peer sends.

use bytes::Bytes;
use posthaste_transport::{Direction, Side, StreamId, TransportConfig};
use posthaste_wire::frame::{AckFrame, AckWindowFrame, ResetStream, StreamFrame, WindowUpdate, ack_window};
use posthaste_wire::packet::PacketType;
use posthaste_wire::{Frame, varint};

use crate::code;
use crate::support::arena::Arena;
use crate::support::rogue::Oddity;

const BIDI: Direction = Direction::Bidirectional;
const UNI: Direction = Direction::Unidirectional;

/// A frame that acknowledges packet 0, which every endpoint here has sent.
fn frame(max_data: u64, streams: &[(StreamId, u64)]) -> Frame {
    let update = WindowUpdate { max_data, streams: streams.to_vec() };
    Frame::AckWindow(AckWindowFrame { ack: AckFrame { delay: 0, ranges: vec![0..=0], ecn: None }, update })
}

fn expect(name: &str, is_server: bool, packets: &[Vec<Frame>], code: u64) {
    let mut arena = Arena::connected(is_server);
    for frames in packets {
        assert_eq!(arena.close_code(), None, "{name}: closed before the offence");
        arena.send(PacketType::Short, frames);
    }
    assert_eq!(arena.close_code(), Some((code, ack_window::TYPE)), "{name}, server: {is_server}");
}

#[test]
fn limits_of_streams_that_the_peer_must_not_name_close_the_connection() {
    for (is_server, own, peer) in [(true, Side::Server, Side::Client), (false, Side::Client, Side::Server)] {
        let far = StreamId::new(peer, BIDI, 1 << 50);
        let rows = [
            ("a stream that only the peer sends on", StreamId::new(peer, UNI, 0), code::STREAM_STATE),
            ("a stream of ours not opened", StreamId::new(own, BIDI, 0), code::STREAM_STATE),
            ("a one-way stream of ours not opened", StreamId::new(own, UNI, 0), code::STREAM_STATE),
            ("a stream beyond the limit", far, code::STREAM_LIMIT),
        ];
        for (name, id, code) in rows {
            expect(name, is_server, &[vec![frame(1 << 40, &[(id, 9)])]], code);
            // Behind one that may be named, too.
            let fine = (StreamId::new(peer, BIDI, 0), 9);
            expect(name, is_server, &[vec![frame(1 << 40, &[fine, (id, 9)])]], code);
        }
    }
}

#[test]
fn an_acknowledgement_of_what_was_not_sent_is_no_less_a_violation() {
    let ack = AckFrame { delay: 0, ranges: vec![1_000_000..=1_000_000], ecn: None };
    let frame = Frame::AckWindow(AckWindowFrame { ack, update: WindowUpdate::default() });
    expect("unsent", true, &[vec![frame.clone()]], code::PROTOCOL_VIOLATION);
    expect("unsent", false, &[vec![frame]], code::PROTOCOL_VIOLATION);
}

#[test]
fn limits_that_shrink_or_are_as_high_as_can_be_are_harmless() {
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        let id = arena.connection().open(UNI).expect("a stream");
        let before = arena.connection().stats().streams.credit;
        for (max_data, max_stream) in [(0, 0), (1, 0), (5, 7), (0, 0)] {
            arena.send(PacketType::Short, &[frame(max_data, &[(id, max_stream), (id, 0)])]);
            assert_eq!(arena.connection().stats().streams.credit, before, "a limit is never taken back");
        }
        arena.send(PacketType::Short, &[frame(varint::MAX, &[(id, varint::MAX), (id, 3)])]);
        arena.send(PacketType::Short, &[frame(varint::MAX, &[(id, varint::MAX)])]);
        let mut data = Bytes::from(vec![1; 50_000]);
        let taken = arena.connection().write(id, &mut data).expect("open");
        assert_eq!(taken, 50_000);
        arena.exchange();
        assert_eq!(arena.close_code(), None);
        assert_eq!(arena.connection().stats().streams.sent.get(), 50_000);
    }
}

#[test]
fn limits_of_streams_that_are_over_are_harmless() {
    let mut arena = Arena::server();
    let id = StreamId::new(Side::Client, BIDI, 0);
    let reset = Frame::ResetStream(ResetStream { id, error_code: 1, final_size: 0 });
    arena.send(PacketType::Short, &[reset]);
    let now = arena.now;
    assert_eq!(arena.connection().accept(BIDI), Some(id));
    assert!(arena.connection().read(now, id, 10).is_err());
    arena.connection().finish(id).expect("the other half is open");
    arena.exchange();
    arena.send(PacketType::Short, &[frame(1 << 41, &[(id, 1 << 50); 3])]);
    assert_eq!(arena.close_code(), None);
    assert_eq!(arena.connection().stats().streams.open, 0);
}

#[test]
fn more_streams_than_a_frame_may_name_are_an_encoding_error() {
    let mut payload = Vec::new();
    for value in [ack_window::TYPE, 1 << 40, ack_window::MAX_STREAMS as u64 + 1] {
        varint::write(&mut payload, value);
    }
    payload.extend([0, 9].repeat(ack_window::MAX_STREAMS + 1));
    payload.extend([0, 0, 0, 0]);
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        arena.send_raw(&payload, Oddity::default());
        assert_eq!(arena.close_code(), Some((code::FRAME_ENCODING, ack_window::TYPE)));
    }
}

#[test]
fn a_limit_beyond_what_offsets_can_be_is_an_encoding_error() {
    for (max_data, max_stream) in [(varint::MAX, 9), (9, varint::MAX), (1 << 52, 9), (9, 1 << 52)] {
        let mut payload = Vec::new();
        // One stream, the peer's first of both directions, and an ACK of packet 0.
        for value in [ack_window::TYPE, max_data, 1, 0, max_stream, 0, 0, 0, 0] {
            varint::write(&mut payload, value);
        }
        let mut arena = Arena::server();
        arena.send_raw(&payload, Oddity::default());
        assert_eq!(arena.close_code(), Some((code::FRAME_ENCODING, ack_window::TYPE)));
    }
}

#[test]
fn who_has_not_offered_it_does_not_take_it() {
    let mut arena = Arena::server_for(TransportConfig { ack_window: false, ..crate::support::defaults() });
    assert!(!arena.rogue.victim_parameters().ack_window);
    arena.send(PacketType::Short, &[frame(1 << 41, &[])]);
    assert_eq!(arena.close_code(), Some((code::FRAME_ENCODING, ack_window::TYPE)));
}

#[test]
fn it_may_come_in_short_packets_alone() {
    let mut arena = Arena::client_with(crate::support::rogue::proper());
    arena.drain();
    let flight = arena.rogue.flight();
    for datagram in &flight {
        arena.inject(datagram);
    }
    arena.drain();
    arena.send(PacketType::Handshake, &[frame(1, &[])]);
    assert_eq!(arena.close_code(), Some((code::PROTOCOL_VIOLATION, ack_window::TYPE)));
}

#[test]
fn a_peer_that_says_it_is_blocked_again_and_again_gets_no_more_than_the_window() {
    for profile in ["fast-autotune", "modquic-cubic"] {
        let profile = posthaste_schemes::named(profile).expect("built in");
        let greatest = profile.connection_credit().initial_window();
        let mut arena = Arena::server_for(TransportConfig { profile, ..crate::support::defaults() });
        let id = StreamId::new(Side::Client, UNI, 0);
        let data = Frame::Stream(StreamFrame { id, offset: 0, data: Bytes::from_static(b"x"), fin: false });
        arena.send(PacketType::Short, &[data]);
        for limit in (0..2000).chain([varint::MAX]) {
            let frames = [Frame::DataBlocked(limit), Frame::StreamDataBlocked { id, limit }];
            arena.send(PacketType::Short, &frames);
        }
        assert_eq!(arena.close_code(), None);
        // It has used nothing up and nothing has been read: lies move no window.
        assert!(arena.connection().stats().streams.granted <= greatest);
    }
}
