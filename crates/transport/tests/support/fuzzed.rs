//! What the fuzz target `connection` does with an input: a connection whose peer does as the input says.
//!
//! The first byte chooses the end under test and how far its handshake has come. Then follow records of one byte for
//! the kind, two for a length and that many bytes.

use posthaste_transport::{Connection, Direction, Read, StreamId, TransportConfig, WhenFull};
use posthaste_units::{Duration, Time};
use posthaste_wire::packet::PacketType;

use super::arena::Arena;
use super::rogue::{Oddity, proper};
use super::tls;

/// Longest payload or datagram of a record.
const MAX_LEN: usize = 1400;

/// Records that are read of one input.
const MAX_RECORDS: usize = 64;

/// The kinds of records.
pub mod kind {
    /// A 1-RTT packet with this payload.
    pub const SHORT: u8 = 0;
    /// A Handshake packet with this payload.
    pub const HANDSHAKE: u8 = 1;
    /// An Initial packet with this payload, in a full datagram.
    pub const INITIAL: u8 = 2;
    /// A datagram as it is.
    pub const DATAGRAM: u8 = 3;
    /// A datagram with a short header's first byte and the right connection ID before it.
    pub const FOR_US: u8 = 4;
    /// A 1-RTT packet whose header the first two bytes make odd: bits to set, key phase.
    pub const ODD: u8 = 5;
    /// As many milliseconds as the length says.
    pub const TIME: u8 = 6;
    /// The application opens, reads and writes.
    pub const APPLICATION: u8 = 7;
    /// The peer's handshake goes on, and it acknowledges.
    pub const EXCHANGE: u8 = 8;
    /// How many there are.
    pub const COUNT: u8 = 9;
}

/// One record.
pub fn record(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).expect("a short record").to_le_bytes();
    [&[kind][..], &len, bytes].concat()
}

fn arena(choice: u8) -> Arena {
    match choice % 5 {
        0 => Arena::server(),
        1 => Arena::client(),
        2 => {
            let mut arena = Arena::server_with(tls::server_config(1), proper());
            for datagram in arena.rogue.flight() {
                arena.inject(&datagram);
            }
            arena.drain();
            arena
        }
        4 => Arena::server_for(TransportConfig {
            max_datagram_frame_size: 1_000,
            ..crate::support::defaults()
        }),
        _ => {
            let mut arena = Arena::client_with(proper());
            arena.drain();
            arena
        }
    }
}

/// Runs an input to its end: the connection must then be gone and no timer left.
pub fn run(input: &[u8]) {
    let Some((choice, mut rest)) = input.split_first() else { return };
    let mut arena = arena(*choice);
    for _ in 0..MAX_RECORDS {
        let Some(([kind, low, high], after)) = rest.split_first_chunk() else { break };
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let (bytes, after) = after.split_at(len.min(after.len()).min(MAX_LEN));
        rest = after;
        take(&mut arena, kind % kind::COUNT, len, bytes);
    }
    arena.is_listening = false;
    arena.run_for(Duration::from_secs(300));
    assert_eq!(arena.endpoint.connections(), 0, "the connection is forgotten");
    assert_eq!(arena.endpoint.next_timeout(), None, "no timer is left");
}

fn take(arena: &mut Arena, kind: u8, len: usize, bytes: &[u8]) {
    match kind {
        kind::SHORT if arena.rogue.has_keys(PacketType::Short) => arena.send_raw(bytes, Oddity::default()),
        kind::ODD if arena.rogue.has_keys(PacketType::Short) => {
            let (head, payload) = bytes.split_at(bytes.len().min(2));
            let first = head.first().copied().unwrap_or(0) & 0x1b;
            let phase = usize::from(head.get(1).copied().unwrap_or(0) % 3);
            arena.send_raw(payload, Oddity { first, number: None, phase: Some(arena.rogue.phase + phase) });
        }
        kind::HANDSHAKE | kind::INITIAL => {
            let kind = if kind == kind::INITIAL { PacketType::Initial } else { PacketType::Handshake };
            if arena.rogue.has_keys(kind) {
                let mut datagram = arena.rogue.raw_packet(kind, bytes, Oddity::default());
                datagram.resize(datagram.len().max(1200), 0);
                arena.inject(&datagram);
                arena.drain();
            }
        }
        kind::DATAGRAM => {
            arena.inject(bytes);
            arena.drain();
        }
        kind::FOR_US => {
            let datagram = [&[0x41][..], arena.rogue.remote_id.as_slice(), bytes].concat();
            arena.inject(&datagram);
            arena.drain();
        }
        kind::TIME => arena.run_for(Duration::from_millis(len as u64)),
        kind::APPLICATION => {
            let now = arena.now;
            if let Some(connection) = arena.handle.and_then(|handle| arena.endpoint.connection_mut(handle)) {
                application(now, connection, bytes);
            }
            arena.drain();
        }
        kind::EXCHANGE => arena.exchange(),
        _ => {}
    }
}

/// Reads everything; each byte then does something with a stream, or sends a message. Errors are the application's own fault.
fn application(now: Time, connection: &mut Connection, bytes: &[u8]) {
    while connection.receive_datagram().is_some() {}
    let mut ids = Vec::new();
    for direction in [Direction::Bidirectional, Direction::Unidirectional] {
        while let Some(id) = connection.accept(direction) {
            ids.push(id);
        }
        ids.extend(connection.open(direction).ok());
    }
    for byte in bytes {
        let id = StreamId::from_wire(u64::from(byte >> 3));
        match byte & 7 {
            0 => {
                let _ = connection.write(id, &mut vec![*byte; 3000].into());
            }
            1 => {
                let _ = connection.finish(id);
            }
            2 => {
                let _ = connection.reset(id, 1);
            }
            3 => {
                let _ = connection.stop_sending(id, 1);
            }
            4 => {
                let _ = connection.update_keys();
            }
            5 => {
                connection.ping();
                let _ = connection.send_datagram(vec![*byte; 300].into(), WhenFull::DropOldest);
            }
            6 => while let Ok(Read::Data(_)) = connection.read(now, id, 1000) {},
            _ => {
                let _ = connection.write(id, &mut vec![*byte; 100_000].into());
            }
        }
    }
    for id in ids {
        while let Ok(Read::Data(_)) = connection.read(now, id, usize::MAX) {}
    }
}
