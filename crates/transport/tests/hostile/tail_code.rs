//! `TAIL_CODE` frames that no honest peer sends.

use bytes::Bytes;
use posthaste_transport::{Direction, Side, StreamId, TransportConfig};
use posthaste_wire::frame::{ResetStream, StreamFrame, TailCodeFrame, TailCodeHead, tail_code};
use posthaste_wire::packet::PacketType;
use posthaste_wire::{Frame, varint};

use crate::code;
use crate::support::arena::Arena;

const BIDI: Direction = Direction::Bidirectional;
const UNI: Direction = Direction::Unidirectional;

/// A server that takes codes.
fn server() -> Arena {
    let profile = posthaste_schemes::named("mobile@code=true").expect("a profile");
    Arena::server_for(TransportConfig { profile, ..crate::support::defaults() })
}

fn stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, UNI, index)
}

/// One symbol over `base..base + length`.
fn head(base: u64, length: u64) -> TailCodeHead {
    TailCodeHead { id: stream(0), base, length, symbol_units: 1, recovery_count: 40, first: 0 }
}

fn frame(head: TailCodeHead, symbols: usize) -> Frame {
    Frame::TailCode(TailCodeFrame { head, symbols: vec![7; symbols].into() })
}

fn data(index: u64, offset: u64, len: usize, fin: bool) -> Frame {
    Frame::Stream(StreamFrame { id: stream(index), offset, data: Bytes::from(vec![1; len]), fin })
}

fn expect(name: &str, packets: &[Vec<Frame>], code: u64) {
    let mut arena = server();
    for frames in packets {
        assert_eq!(arena.close_code(), None, "{name}: closed before the offence");
        arena.send(PacketType::Short, frames);
    }
    assert_eq!(arena.close_code(), Some((code, tail_code::TYPE)), "{name}");
}

#[test]
fn codes_are_unknown_to_who_has_not_asked_for_them() {
    for is_server in [true, false] {
        let mut arena = Arena::connected(is_server);
        arena.send(PacketType::Short, &[frame(head(0, 1000), 64)]);
        assert_eq!(arena.close_code(), Some((code::FRAME_ENCODING, tail_code::TYPE)));
    }
}

#[test]
fn codes_that_cannot_be_close_the_connection() {
    let fine = head(0, 1000);
    let rows = [
        ("nothing covered", TailCodeHead { length: 0, ..fine }, 64),
        ("too much covered", TailCodeHead { length: (4 << 20) + 1, symbol_units: 32, ..fine }, 2048),
        ("offsets to the end", TailCodeHead { length: varint::MAX, ..fine }, 64),
        ("no symbol size", TailCodeHead { symbol_units: 0, ..fine }, 64),
        ("a large symbol size", TailCodeHead { symbol_units: 33, ..fine }, 2112),
        ("a huge symbol size", TailCodeHead { symbol_units: varint::MAX, ..fine }, 64),
        ("too many symbols", TailCodeHead { length: (2 << 20) + 1, ..fine }, 64),
        ("no recovery symbols", TailCodeHead { recovery_count: 0, ..fine }, 64),
        ("too many recovery symbols", TailCodeHead { recovery_count: 32_769, ..fine }, 64),
        ("no symbol", fine, 0),
        ("half a symbol", fine, 32),
        ("a symbol and a half", fine, 96),
        ("a symbol beyond the last", TailCodeHead { first: 40, ..fine }, 64),
        ("two, the second beyond the last", TailCodeHead { first: 39, ..fine }, 128),
        ("a number beyond all", TailCodeHead { first: varint::MAX, ..fine }, 64),
    ];
    for (name, head, symbols) in rows {
        expect(name, &[vec![frame(head, symbols)]], code::FRAME_ENCODING);
    }
}

#[test]
fn the_end_is_checked_as_that_of_a_stream() {
    let fine = head(0, 1000);
    let own = |direction, side| TailCodeHead { id: StreamId::new(side, direction, 0), ..fine };
    let rows = [
        ("a stream that only we send on", vec![frame(own(UNI, Side::Server), 64)], code::STREAM_STATE),
        ("a stream of ours not opened", vec![frame(own(BIDI, Side::Server), 64)], code::STREAM_STATE),
        (
            "a stream beyond the limit",
            vec![frame(TailCodeHead { id: stream(1 << 50), ..fine }, 64)],
            code::STREAM_LIMIT,
        ),
        ("beyond the credit", vec![frame(head(1 << 40, 1000), 64)], code::FLOW_CONTROL),
        ("data beyond the end", vec![data(0, 500, 600, false), frame(fine, 64)], code::FINAL_SIZE),
        ("another end", vec![data(0, 0, 1010, true), frame(fine, 64)], code::FINAL_SIZE),
    ];
    for (name, frames, code) in rows {
        let (last, before) = frames.split_last().expect("frames");
        let before = before.iter().map(|frame| vec![frame.clone()]);
        expect(name, &before.chain([vec![last.clone()]]).collect::<Vec<_>>(), code);
    }
    // The end that a code has told holds for data.
    let mut arena = server();
    arena.send(PacketType::Short, &[frame(fine, 64)]);
    assert_eq!(arena.close_code(), None);
    arena.send(PacketType::Short, &[data(0, 0, 1001, false)]);
    assert_eq!(arena.close_code().map(|(code, _)| code), Some(code::FINAL_SIZE));
}

#[test]
fn a_second_code_over_one_stream_closes_the_connection() {
    let fine = head(0, 1000);
    let others = [
        TailCodeHead { base: 64, length: 936, ..fine },
        TailCodeHead { symbol_units: 2, ..fine },
        TailCodeHead { recovery_count: 41, ..fine },
    ];
    for other in others {
        expect("another code", &[vec![frame(fine, 64)], vec![frame(other, 128)]], code::PROTOCOL_VIOLATION);
    }
}

#[test]
fn codes_of_streams_that_are_over_are_harmless() {
    let mut arena = server();
    let reset = ResetStream { id: stream(1), error_code: 1, final_size: 1000 };
    arena.send(PacketType::Short, &[data(0, 0, 1000, true), Frame::ResetStream(reset)]);
    for index in [0, 1] {
        arena.send(PacketType::Short, &[frame(TailCodeHead { id: stream(index), ..head(0, 1000) }, 64)]);
    }
    assert_eq!(arena.close_code(), None);
    assert_eq!(arena.connection().stats().bytes_restored.get(), 0);
}

#[test]
fn forged_symbols_restore_no_more_than_is_missing() {
    let mut arena = server();
    arena.send(PacketType::Short, &[data(0, 0, 900, false), data(0, 930, 70, false)]);
    arena.send(PacketType::Short, &[frame(head(0, 1000), 64), frame(head(0, 1000), 64)]);
    assert_eq!(arena.close_code(), None);
    let restored = arena.connection().stats().bytes_restored.get();
    assert!((30..=64).contains(&restored), "{restored} bytes: one symbol");
    assert_eq!(arena.connection().stats().streams.received.get(), 1000);
}

/// Each stream costs the peer its credit, and this end neither a block nor a decoding beyond the bounds.
#[test]
fn ten_thousand_streams_with_one_frame_each() {
    let mut arena = server();
    let mut sent = 0;
    for index in 0..10_000 {
        let id = stream(index);
        // One byte is missing, and the symbol would restore it.
        let head = TailCodeHead { id, base: 0, length: 65, symbol_units: 1, recovery_count: 1, first: 0 };
        arena.send(PacketType::Short, &[data(index, 0, 64, false), frame(head, 64)]);
        if arena.close_code().is_some() {
            break;
        }
        sent += 1;
        if let Some(id) = arena.connection().accept(UNI) {
            let now = arena.now;
            let _ = arena.connection().read(now, id, usize::MAX);
            let _ = arena.connection().stop_sending(id, 0);
        }
    }
    assert!(sent > 20, "{sent} streams, {:?}", arena.close_code());
    let restored = arena.connection().stats().bytes_restored.get();
    // 32 MiB of work on credit, 256 KiB for each, and what 130 bytes a stream pay for.
    assert!(restored > 0 && restored <= 128 + sent / 100, "{restored} of {sent}");
}
