//! Memory that a peer can make a stream's reassembly hold, as the operating system counts it.
#![cfg(target_os = "linux")]

mod support;

use bytes::Bytes;
use posthaste_transport::{Direction, Side, StreamId};
use posthaste_wire::Frame;
use posthaste_wire::frame::StreamFrame;
use posthaste_wire::packet::PacketType;

use support::arena::Arena;

/// `REASSEMBLY_SLACK` (limits.rs).
const SLACK: u64 = 256 * 1024;

/// Resident bytes of this process that no file stands for: pages of its own code come 64 KiB at a time, or not.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process knows itself");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line of it");
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
}

/// Acknowledgements leave, unheard and unkept.
fn send_unheard(arena: &mut Arena, frames: &[Frame]) {
    let datagram = arena.rogue.datagram(PacketType::Short, frames);
    arena.inject(&datagram);
    arena.drain();
    arena.sent.clear();
}

/// One test in a process of its own: others would count.
#[test]
fn a_window_of_fragments_takes_the_window_and_the_slack_at_most() {
    let mut arena = Arena::server();
    arena.rogue.is_acking = false;
    arena.is_listening = false;
    let parameters = arena.rogue.victim_parameters();
    let window = parameters.initial_max_stream_data_bidi_remote.min(parameters.initial_max_data);
    let id = StreamId::new(Side::Client, Direction::Bidirectional, 0);
    // What the rogue, the allocator and acknowledgements take beside it they take now.
    for _ in 0..2000 {
        let data = Bytes::from_static(b"x");
        let frames = vec![Frame::Stream(StreamFrame { id, offset: 0, data, fin: false }); 100];
        send_unheard(&mut arena, &frames);
    }
    let before = resident();
    // Every second byte, from the end of the window to its second byte: gaps everywhere and never a merge.
    let (mut offset, mut fragments) = (window - 1, 0_u64);
    while offset > 2 {
        let mut frames = Vec::new();
        while frames.len() < 120 && offset > 2 {
            let data = Bytes::from_static(b"x");
            frames.push(Frame::Stream(StreamFrame { id, offset, data, fin: false }));
            offset -= 2;
            fragments += 1;
        }
        send_unheard(&mut arena, &frames);
    }
    let grown = resident().saturating_sub(before);
    assert_eq!(arena.close_code(), None, "no honest sender could fill this window otherwise");
    assert!(fragments >= window / 2 - 2, "{fragments} fragments of {window} bytes");
    // The bits that say which bytes are there take an eighth of the window: for windows of up to 1.5 MiB all of it is
    // within the slack.
    assert!(window / 8 + 64 * 1024 <= SLACK, "{window}");
    let bound = window + SLACK;
    assert!(grown <= bound, "{grown} bytes for a window of {window}");
    assert!(grown >= window / 2, "{grown}: it cannot be less than what is kept");
}
