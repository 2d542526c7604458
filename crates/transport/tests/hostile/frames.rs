//! Frames that the protocol forbids, in 1-RTT packets.

use bytes::Bytes;
use posthaste_transport::{CloseReason, Direction, Side, StreamId};
use posthaste_units::Duration;
use posthaste_wire::frame::{
    AckFrame, CloseFrame, CloseKind, CryptoFrame, EcnCounts, NewConnectionId, ResetStream, StopSending,
    StreamFrame,
};
use posthaste_wire::packet::PacketType;
use posthaste_wire::{ConnectionId, Frame, ResetToken, varint};

use crate::code;
use crate::support::arena::Arena;
use crate::support::rogue::Oddity;

const BIDI: Direction = Direction::Bidirectional;
const UNI: Direction = Direction::Unidirectional;

fn stream(id: StreamId, offset: u64, len: usize, fin: bool) -> Frame {
    Frame::Stream(StreamFrame { id, offset, data: Bytes::from(vec![7; len]), fin })
}

fn reset(id: StreamId, final_size: u64) -> Frame {
    Frame::ResetStream(ResetStream { id, error_code: 1, final_size })
}

fn stop(id: StreamId) -> Frame {
    Frame::StopSending(StopSending { id, error_code: 1 })
}

fn new_id(sequence: u64, retire_prior_to: u64, name: u64, token: u8) -> Frame {
    let id = ConnectionId::new(&name.to_be_bytes()).expect("short enough");
    Frame::NewConnectionId(NewConnectionId {
        sequence,
        retire_prior_to,
        id,
        reset_token: ResetToken([token; 16]),
    })
}

fn ack(largest: u64, ecn: Option<EcnCounts>) -> Frame {
    Frame::Ack(AckFrame { delay: 0, ranges: vec![largest..=largest], ecn })
}

/// Sends each batch of frames in a packet of its own, and expects the close after the last of them.
fn expect(name: &str, is_server: bool, packets: &[Vec<Frame>], code: u64, frame_type: u64) {
    let mut arena = Arena::connected(is_server);
    for frames in packets {
        assert_eq!(arena.close_code(), None, "{name}: closed before the offence");
        arena.send(PacketType::Short, frames);
    }
    let side = if is_server { "server" } else { "client" };
    assert_eq!(arena.close_code(), Some((code, frame_type)), "{name} at a {side}");
    assert!(matches!(arena.closed(), Some(CloseReason::Violation(_))), "{name}: {:?}", arena.closed());
    arena.run_for(Duration::from_secs(10));
    assert_eq!(arena.endpoint.connections(), 0, "{name}: the connection drains");
    assert_eq!(arena.endpoint.next_timeout(), None);
}

/// For each victim: its own side and its peer's.
fn sides() -> [(bool, Side, Side); 2] {
    [(true, Side::Server, Side::Client), (false, Side::Client, Side::Server)]
}

#[test]
fn frames_for_the_wrong_half_or_an_unopened_stream_are_state_errors() {
    // spec: rfc9000 19.4 reset-of-send-only, 19.5 stop-of-unopened, 19.5 stop-of-receive-only
    // spec: rfc9000 19.8 data-for-unopened, 19.8 data-for-send-only, 19.10 credit-for-unopened
    // spec: rfc9000 19.10 credit-for-receive-only, 19.13 blocked-for-send-only
    for (is_server, own, peer) in sides() {
        let own_uni = StreamId::new(own, UNI, 0);
        let own_bidi = StreamId::new(own, BIDI, 0);
        let peer_uni = StreamId::new(peer, UNI, 0);
        let rows = [
            ("STREAM on a stream that only we send on", stream(own_uni, 0, 1, false), 0x08),
            ("STREAM on a stream of ours not opened", stream(own_bidi, 0, 1, false), 0x08),
            ("RESET_STREAM on a stream that only we send on", reset(own_uni, 0), 0x04),
            ("RESET_STREAM on a stream of ours not opened", reset(own_bidi, 0), 0x04),
            ("STOP_SENDING on a stream that only the peer sends on", stop(peer_uni), 0x05),
            ("STOP_SENDING on a stream of ours not opened", stop(own_bidi), 0x05),
            ("STOP_SENDING on a one-way stream not opened", stop(own_uni), 0x05),
            ("MAX_STREAM_DATA on the peer's own", Frame::MaxStreamData { id: peer_uni, maximum: 9 }, 0x11),
            ("MAX_STREAM_DATA not opened", Frame::MaxStreamData { id: own_bidi, maximum: 9 }, 0x11),
            ("STREAM_DATA_BLOCKED on ours", Frame::StreamDataBlocked { id: own_uni, limit: 9 }, 0x15),
            ("STREAM_DATA_BLOCKED not opened", Frame::StreamDataBlocked { id: own_bidi, limit: 9 }, 0x15),
        ];
        for (name, frame, frame_type) in rows {
            expect(name, is_server, &[vec![frame]], code::STREAM_STATE, frame_type);
        }
    }
}

#[test]
fn streams_beyond_the_limit_are_limit_errors() {
    // spec: rfc9000 4.6 excess-streams-close, 19.11 excess-count-closes
    for (is_server, _, peer) in sides() {
        let parameters = Arena::connected(is_server).rogue.victim_parameters();
        let bidi = StreamId::new(peer, BIDI, parameters.initial_max_streams_bidi);
        let uni = StreamId::new(peer, UNI, parameters.initial_max_streams_uni);
        let last = StreamId::new(peer, BIDI, parameters.initial_max_streams_bidi - 1);
        let far = StreamId::new(peer, BIDI, (1 << 60) - 1);
        let rows = [
            ("STREAM", stream(bidi, 0, 1, false), 0x08),
            ("STREAM, far beyond", stream(far, 0, 1, false), 0x08),
            ("STREAM, one-way", stream(uni, 0, 1, false), 0x08),
            ("RESET_STREAM", reset(bidi, 0), 0x04),
            ("STOP_SENDING", stop(bidi), 0x05),
            ("MAX_STREAM_DATA", Frame::MaxStreamData { id: bidi, maximum: 9 }, 0x11),
            ("STREAM_DATA_BLOCKED", Frame::StreamDataBlocked { id: uni, limit: 9 }, 0x15),
        ];
        for (name, frame, frame_type) in rows {
            let packets = [vec![stream(last, 0, 1, false)], vec![frame]];
            expect(name, is_server, &packets, code::STREAM_LIMIT, frame_type);
        }
    }
}

#[test]
fn data_beyond_the_credit_is_a_flow_control_error() {
    // spec: rfc9000 4.1 excess-closes, 19.9 connection-excess-closes, 19.10 stream-excess-closes
    // spec: rfc9000 4.5 final-size-is-counted
    for (is_server, _, peer) in sides() {
        let parameters = Arena::connected(is_server).rogue.victim_parameters();
        let window = parameters.initial_max_stream_data_bidi_remote;
        let id = |index| StreamId::new(peer, BIDI, index);
        let code = code::FLOW_CONTROL;
        expect(
            "STREAM",
            is_server,
            &[vec![stream(id(0), window, 0, false)], vec![stream(id(0), window, 1, false)]],
            code,
            8,
        );
        expect("empty STREAM", is_server, &[vec![stream(id(0), window + 1, 0, false)]], code, 8);
        expect("FIN", is_server, &[vec![stream(id(0), window + 1, 0, true)]], code, 8);
        expect("RESET_STREAM", is_server, &[vec![reset(id(0), window + 1)]], code, 4);
        expect("the largest offset", is_server, &[vec![stream(id(0), varint::MAX - 1, 1, false)]], code, 8);
        let uni = StreamId::new(peer, UNI, 0);
        let uni_window = parameters.initial_max_stream_data_uni;
        expect("one-way", is_server, &[vec![stream(uni, uni_window, 1, false)]], code, 8);

        // The connection's credit, used up by streams that stay within theirs.
        let mut left = parameters.initial_max_data;
        let mut packets = Vec::new();
        for index in 0.. {
            let part = left.min(window);
            packets.push(vec![stream(id(index), part, 0, false)]);
            left -= part;
            if left == 0 {
                packets.push(vec![stream(id(index + 1), 0, 1, false)]);
                break;
            }
        }
        expect("the connection's STREAM", is_server, &packets, code, 8);
        let last = packets.len() - 1;
        packets[last] = vec![reset(id(last as u64), 1)];
        expect("the connection's RESET_STREAM", is_server, &packets, code, 4);
    }
}

#[test]
fn contradictions_about_the_final_size_are_final_size_errors() {
    // spec: rfc9000 4.5 final-size-holds
    for (is_server, _, peer) in sides() {
        let id = StreamId::new(peer, BIDI, 0);
        let fin = || vec![stream(id, 5, 5, true)];
        let rows = [
            ("data beyond FIN", vec![fin(), vec![stream(id, 10, 1, false)]], 8),
            ("empty data beyond FIN", vec![fin(), vec![stream(id, 11, 0, false)]], 8),
            ("FIN moved up", vec![fin(), vec![stream(id, 10, 1, true)]], 8),
            ("FIN moved down", vec![fin(), vec![stream(id, 5, 4, true)]], 8),
            ("FIN below data received", vec![vec![stream(id, 5, 5, false)], vec![stream(id, 0, 9, true)]], 8),
            ("reset above FIN", vec![fin(), vec![reset(id, 11)]], 4),
            ("reset below FIN", vec![fin(), vec![reset(id, 9)]], 4),
            ("reset below data received", vec![vec![stream(id, 5, 5, false)], vec![reset(id, 9)]], 4),
            ("two resets", vec![vec![reset(id, 10)], vec![reset(id, 11)]], 4),
            ("two resets, down", vec![vec![reset(id, 10)], vec![reset(id, 0)]], 4),
            ("data beyond a reset", vec![vec![reset(id, 10)], vec![stream(id, 10, 1, false)]], 8),
            ("FIN other than a reset", vec![vec![reset(id, 10)], vec![stream(id, 0, 9, true)]], 8),
        ];
        for (name, packets, frame_type) in rows {
            expect(name, is_server, &packets, code::FINAL_SIZE, frame_type);
        }
    }
}

#[test]
fn the_same_final_size_again_is_no_error() {
    for (is_server, _, peer) in sides() {
        let id = StreamId::new(peer, BIDI, 0);
        let mut arena = Arena::connected(is_server);
        for _ in 0..3 {
            arena.send(
                PacketType::Short,
                &[stream(id, 5, 5, true), stream(id, 0, 3, false), stream(id, 10, 0, true)],
            );
            arena.send(PacketType::Short, &[reset(id, 10), stream(id, 2, 8, true)]);
        }
        assert_eq!(arena.close_code(), None);
        assert!(arena.closed().is_none());
    }
}

#[test]
fn acknowledging_what_was_not_sent_is_a_violation() {
    // spec: rfc9000 13.1 unsent-ack-closes
    for is_server in [true, false] {
        let code = code::PROTOCOL_VIOLATION;
        expect("far ahead", is_server, &[vec![ack(1_000_000, None)]], code, 2);
        expect("the largest", is_server, &[vec![ack(varint::MAX, None)]], code, 2);
        let next = *Arena::connected(is_server).rogue.received(PacketType::Short).last().expect("some") + 1;
        expect("just ahead", is_server, &[vec![ack(next, None)]], code, 2);
        expect("with ECN counts", is_server, &[vec![ack(next, Some(EcnCounts::default()))]], code, 3);
    }
}

#[test]
fn connection_ids_beyond_the_limit_contradictory_or_stormy_end_the_connection() {
    // spec: rfc9000 5.1.1 excess-ids-close
    for is_server in [true, false] {
        let (violation, limit) = (code::PROTOCOL_VIOLATION, code::CONNECTION_ID_LIMIT);
        let allowed = || vec![new_id(1, 0, 1, 1), new_id(2, 0, 2, 2), new_id(3, 0, 3, 3)];
        expect("one too many", is_server, &[allowed(), vec![new_id(4, 0, 4, 4)]], limit, 0x18);
        expect("the same sequence", is_server, &[allowed(), vec![new_id(3, 0, 9, 3)]], violation, 0x18);
        expect("the same ID", is_server, &[allowed(), vec![new_id(4, 1, 3, 3)]], violation, 0x18);
        expect("another token", is_server, &[allowed(), vec![new_id(3, 0, 3, 9)]], violation, 0x18);
        expect("the handshake's sequence", is_server, &[vec![new_id(0, 0, 9, 9)]], violation, 0x18);
        // RETIRE_CONNECTION_ID frames that are never acknowledged.
        let mut storm: Vec<_> = (1..=32).map(|n| vec![new_id(n, n, n, 1)]).collect();
        storm.push(vec![new_id(33, 33, 33, 1)]);
        let mut arena = Arena::connected(is_server);
        let sent = storm.iter().take_while(|frames| {
            arena.send(PacketType::Short, frames);
            arena.close_code().is_none()
        });
        assert_eq!(sent.count(), 32, "the bound on pending retirements");
        assert_eq!(arena.close_code(), Some((limit, 0x18)));
    }
}

#[test]
fn new_connection_ids_within_the_limit_are_used_and_retired() {
    // spec: rfc9000 5.1.2 retirement-obeyed, 5.1.2 none-forgotten
    let mut arena = Arena::server();
    for round in 1..200_u64 {
        let id = ConnectionId::new(&round.to_be_bytes()).expect("short enough");
        arena.send(PacketType::Short, &[new_id(round, round, round, 1)]);
        assert_eq!(arena.close_code(), None, "round {round}");
        // What is acknowledged does not add up; the rogue goes by its new name.
        arena.rogue.local_id = id;
        arena.run_for(Duration::from_millis(100));
        let retired = Frame::RetireConnectionId(round - 1);
        assert!(arena.rogue.seen.iter().any(|(_, frame)| *frame == retired), "round {round}");
    }
    assert!(arena.closed().is_none());
}

#[test]
fn retiring_what_was_not_issued_or_is_in_use_is_a_violation() {
    // spec: rfc9000 19.16 unissued-closes
    for is_server in [true, false] {
        let code = code::PROTOCOL_VIOLATION;
        expect("never issued", is_server, &[vec![Frame::RetireConnectionId(100)]], code, 0x19);
        expect("the largest", is_server, &[vec![Frame::RetireConnectionId(varint::MAX)]], code, 0x19);
        expect("the one in use", is_server, &[vec![Frame::RetireConnectionId(0)]], code, 0x19);
    }
}

#[test]
fn what_only_a_server_sends_is_a_violation_from_a_client() {
    // spec: rfc9000 19.7 from-client-closes, 19.20 done-from-client-closes
    let token = || Frame::NewToken(Bytes::from_static(b"token"));
    expect("HANDSHAKE_DONE", true, &[vec![Frame::HandshakeDone]], code::PROTOCOL_VIOLATION, 0x1e);
    expect("NEW_TOKEN", true, &[vec![token()]], code::PROTOCOL_VIOLATION, 0x07);
    let mut arena = Arena::client();
    arena.send(PacketType::Short, &[token(), Frame::HandshakeDone, token()]);
    assert_eq!(arena.close_code(), None, "a server may");
}

/// Payloads that are not even frames.
#[test]
fn malformed_payloads_are_encoding_errors() {
    // spec: rfc9000 12.4 empty-packet-closes, 12.4 unknown-frame-closes, 19.3.1 negative-number-closes
    // spec: rfc9000 19.6 crypto-offset-limit, 19.7 empty-token-closes, 19.8 stream-offset-limit, 19.11 count-limit
    // spec: rfc9000 19.14 blocked-count-limit, 19.15 id-length-checked, 19.15 retires-itself-closes
    // spec: rfc9000 11.1 errors-are-told, 10.3 close-rather-than-reset
    let big = |value: u64| (value | 0xc000_0000_0000_0000).to_be_bytes();
    let with = |head: &[u8], value: u64| [head, &big(value)[..]].concat();
    let (encoding, violation) = (code::FRAME_ENCODING, code::PROTOCOL_VIOLATION);
    let mut rows: Vec<(&str, Vec<u8>, u64, u64)> = vec![
        ("no frames", vec![], violation, 0),
        ("unknown type", vec![0x2f], encoding, 0x2f),
        ("unknown type of two bytes", vec![0x40, 0x40], encoding, 0x40),
        ("DATAGRAM that was not agreed on", vec![0x30, 1, 2], violation, 0x30),
        ("DATAGRAM that is cut off", vec![0x31, 3, 1, 2], encoding, 0x31),
        ("unknown type of eight bytes", with(&[], varint::MAX), encoding, varint::MAX),
        ("PING in two bytes", vec![0x40, 0x01], violation, 0x01),
        ("MAX_STREAMS above 2^60", with(&[0x12], (1 << 60) + 1), encoding, 0x12),
        ("MAX_STREAMS above 2^60, one-way", with(&[0x13], (1 << 60) + 1), encoding, 0x13),
        ("STREAMS_BLOCKED above 2^60", with(&[0x16], (1 << 60) + 1), encoding, 0x16),
        ("STREAMS_BLOCKED above 2^60, one-way", with(&[0x17], (1 << 60) + 1), encoding, 0x17),
        ("NEW_TOKEN without a token", vec![0x07, 0], encoding, 0x07),
        (
            "NEW_CONNECTION_ID that retires itself",
            [&[0x18, 1, 2, 1, 9][..], &[0; 16]].concat(),
            encoding,
            0x18,
        ),
        ("NEW_CONNECTION_ID, empty", [&[0x18, 1, 0, 0][..], &[0; 16]].concat(), encoding, 0x18),
        ("NEW_CONNECTION_ID, too long", [&[0x18, 1, 0, 21][..], &[0; 37]].concat(), encoding, 0x18),
        ("ACK with ranges below zero", vec![0x02, 1, 0, 0, 2], encoding, 0x02),
        ("ACK with a gap below zero", vec![0x02, 3, 0, 1, 0, 5, 0], encoding, 0x02),
        ("STREAM longer than the packet", vec![0x0a, 0, 9, 1], encoding, 0x0a),
        ("STREAM beyond 2^62", [&with(&[0x0e, 0], varint::MAX)[..], &[1, 7]].concat(), encoding, 0x0e),
        ("CRYPTO beyond 2^62", [&with(&[0x06], varint::MAX)[..], &[1, 7]].concat(), encoding, 0x06),
    ];
    // Each frame with its last byte missing; a type alone is enough to blame.
    let samples: Vec<Frame> = samples();
    let cut: Vec<(Vec<u8>, u64)> = samples
        .iter()
        .filter(|frame| !matches!(frame, Frame::Padding | Frame::Ping | Frame::HandshakeDone))
        .map(|frame| {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            bytes.pop();
            let frame_type = u64::from(bytes[0]);
            (bytes, frame_type)
        })
        .collect();
    rows.extend(
        cut.into_iter().map(|(bytes, frame_type)| ("a frame cut short", bytes, encoding, frame_type)),
    );
    for is_server in [true, false] {
        for (name, payload, code, frame_type) in &rows {
            let mut arena = Arena::connected(is_server);
            arena.send_raw(payload, Oddity::default());
            assert_eq!(arena.close_code(), Some((*code, *frame_type)), "{name}: {payload:02x?}");
        }
    }
}

/// One of each frame, of no particular meaning.
pub(crate) fn samples() -> Vec<Frame> {
    let id = StreamId::new(Side::Client, BIDI, 0);
    let close =
        |kind| Frame::Close(CloseFrame { error_code: 1, kind, reason: Bytes::from_static(b"because") });
    vec![
        Frame::Padding,
        Frame::Ping,
        ack(0, None),
        ack(0, Some(EcnCounts::default())),
        reset(id, 1),
        stop(id),
        Frame::Crypto(CryptoFrame { offset: 0, data: Bytes::from_static(b"TLS") }),
        Frame::NewToken(Bytes::from_static(b"token")),
        stream(id, 0, 3, true),
        Frame::MaxData(1),
        Frame::MaxStreamData { id, maximum: 1 },
        Frame::MaxStreams { direction: BIDI, maximum: 1 },
        Frame::DataBlocked(1),
        Frame::StreamDataBlocked { id, limit: 1 },
        Frame::StreamsBlocked { direction: UNI, limit: 1 },
        new_id(1, 0, 1, 1),
        Frame::RetireConnectionId(1),
        Frame::PathChallenge([1; 8]),
        Frame::PathResponse([1; 8]),
        close(CloseKind::Transport { frame_type: 0 }),
        close(CloseKind::Application),
        Frame::HandshakeDone,
    ]
}

#[test]
fn reserved_bits_are_a_violation_once_the_packet_is_known_to_be_authentic() {
    // spec: rfc9000 17.3.1 short-reserved-checked
    for is_server in [true, false] {
        for first in [0x08, 0x10, 0x18] {
            let mut arena = Arena::connected(is_server);
            arena.send_raw(&[1], Oddity { first, ..Oddity::default() });
            assert_eq!(arena.close_code(), Some((code::PROTOCOL_VIOLATION, 0)), "{first:#x}");
        }
    }
}

#[test]
fn crypto_after_the_handshake() {
    // spec: rfc9000 7.5 crypto-overflow-closes, rfc9001 4.8 alerts-are-fatal
    let crypto = |offset, len| Frame::Crypto(CryptoFrame { offset, data: Bytes::from(vec![0; len]) });
    let mut arena = Arena::server();
    arena.send(PacketType::Short, &[crypto(0, 1)]);
    assert_eq!(arena.close_code(), Some((code::UNEXPECTED_MESSAGE, 0)));
    assert!(matches!(arena.closed(), Some(CloseReason::Tls { alert: 10, .. })));
    expect("too far ahead", true, &[vec![crypto(65_536, 1)]], code::CRYPTO_BUFFER_EXCEEDED, 6);
    // A client reads tickets: what follows the rogue's must be TLS messages, and not too far ahead.
    expect("too far ahead", false, &[vec![crypto(1 << 30, 1)]], code::CRYPTO_BUFFER_EXCEEDED, 6);
}

#[test]
fn a_close_of_the_peer_is_reported_as_it_was_sent_and_nothing_follows_it() {
    // spec: rfc9000 10.2.2 draining-is-silent, 10.2.2 silent-after-close
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        let sent = arena.sent.len();
        let id = StreamId::new(if is_server { Side::Client } else { Side::Server }, BIDI, 0);
        let kind = CloseKind::Transport { frame_type: 0x1e };
        let close = CloseFrame { error_code: 0x0a, kind, reason: Bytes::from_static(b"because") };
        // Streams' events of the same packet are told before the end.
        arena.send(
            PacketType::Short,
            &[stream(id, 0, 1, false), Frame::Close(close), Frame::MaxData(varint::MAX)],
        );
        assert!(matches!(
            arena.closed(),
            Some(CloseReason::PeerTransport { code, frame_type: 0x1e, reason }) if code.0 == 0x0a && reason == "because"
        ));
        let last = arena.events.last().map(|(_, event)| event.clone());
        assert!(matches!(last, Some(posthaste_transport::Event::Closed(_))), "{:?}", arena.events);
        for _ in 0..20 {
            arena.send(PacketType::Short, &[Frame::Ping]);
        }
        assert_eq!(arena.sent.len(), sent, "a draining connection is silent (RFC 9000 section 10.2.2)");
        arena.run_for(Duration::from_secs(10));
        assert_eq!(arena.endpoint.connections(), 0);
    }
}

#[test]
fn a_closed_end_answers_ever_more_rarely() {
    let mut arena = Arena::server();
    let now = arena.now;
    arena.connection().close(now, 5, Bytes::from_static(b"enough"));
    arena.drain();
    let sent = arena.sent.len();
    for _ in 0..1000 {
        arena.send(PacketType::Short, &[Frame::Ping]);
    }
    let answers = arena.sent.len() - sent;
    assert!((1..=10).contains(&answers), "{answers} closes for 1000 datagrams (RFC 9000 section 10.2.1)");
}

#[test]
fn a_group_token_is_unknown_to_who_has_not_asked_for_groups() {
    for (is_server, ..) in sides() {
        let frames = vec![Frame::GroupToken([7; 16])];
        expect("GROUP_TOKEN unasked", is_server, &[frames], code::FRAME_ENCODING, 0x2d5c_1a79);
    }
}
