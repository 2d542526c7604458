//! Stream transfers over a [`Pair`](super::Pair): deterministic bytes in, checked bytes out.

use std::collections::BTreeMap;

use bytes::Bytes;
use posthaste_transport::{Connection, Direction, Read, StreamId};
use posthaste_units::Time;

/// The byte at an offset of a stream: differs between streams and does not repeat with the packet size.
pub fn pattern(id: StreamId, offset: u64) -> u8 {
    let mixed = (offset ^ id.to_wire().wrapping_mul(0x9e37_79b9)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed >> 56) as u8
}

/// The pattern's bytes in `start..end`.
pub fn pattern_bytes(id: StreamId, start: u64, end: u64) -> Bytes {
    (start..end).map(|offset| pattern(id, offset)).collect()
}

/// Writes `len` bytes and FIN to each of a set of streams, as fast as they take them.
#[derive(Default)]
pub struct Writers(BTreeMap<StreamId, (u64, u64)>);

impl Writers {
    pub fn add(&mut self, id: StreamId, len: u64) {
        self.0.insert(id, (0, len));
    }

    pub fn pump(&mut self, connection: &mut Connection) {
        self.0.retain(|id, (written, len)| {
            while *written < *len {
                let mut chunk = pattern_bytes(*id, *written, (*written + 4096).min(*len));
                match connection.write(*id, &mut chunk) {
                    Ok(0) | Err(_) => return true,
                    Ok(taken) => *written += taken as u64,
                }
            }
            connection.finish(*id).is_err()
        });
    }

    pub fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads all streams of a connection and checks every byte.
#[derive(Default)]
pub struct Readers {
    pub open: BTreeMap<StreamId, u64>,
    pub finished: BTreeMap<StreamId, u64>,
    pub reset: BTreeMap<StreamId, u64>,
}

impl Readers {
    pub fn add(&mut self, id: StreamId) {
        self.open.insert(id, 0);
    }

    /// Accepts what the peer has opened and reads all that there is, at most `max` bytes a call.
    pub fn pump(&mut self, now: Time, connection: &mut Connection, max: usize) {
        for direction in [Direction::Bidirectional, Direction::Unidirectional] {
            while let Some(id) = connection.accept(direction) {
                self.add(id);
            }
        }
        let (finished, reset) = (&mut self.finished, &mut self.reset);
        self.open.retain(|id, offset| {
            loop {
                match connection.read(now, *id, max) {
                    Ok(Read::Data(data)) => {
                        assert_eq!(data, pattern_bytes(*id, *offset, *offset + data.len() as u64), "{id:?}");
                        *offset += data.len() as u64;
                    }
                    Ok(Read::Blocked) => return true,
                    Ok(Read::Finished) => {
                        finished.insert(*id, *offset);
                        return false;
                    }
                    Err(posthaste_transport::ReadError::Reset(code)) => {
                        reset.insert(*id, code);
                        return false;
                    }
                    Err(error) => panic!("{id:?}: {error}"),
                }
            }
        });
    }

    /// Reads each open stream once, at most `max` bytes.
    pub fn read_once(&mut self, now: Time, connection: &mut Connection, max: usize) {
        let finished = &mut self.finished;
        self.open.retain(|id, offset| match connection.read(now, *id, max) {
            Ok(Read::Data(data)) => {
                assert_eq!(data, pattern_bytes(*id, *offset, *offset + data.len() as u64), "{id:?}");
                *offset += data.len() as u64;
                true
            }
            Ok(Read::Blocked) => true,
            Ok(Read::Finished) => {
                finished.insert(*id, *offset);
                false
            }
            Err(error) => panic!("{id:?}: {error}"),
        });
    }
}
