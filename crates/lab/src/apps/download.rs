//! One exchange at a client: the part that all client applications share.

use posthaste_units::Time;

use super::{Exchange, RESPONSE_HEADER_LENGTH, Request, is_content};
use crate::peer::{Peer, Read, StreamKey};

/// A response being read, every byte of it checked.
#[derive(Debug, Clone)]
pub(crate) struct Download {
    object: usize,
    stream: StreamKey,
    requested: Time,
    first_byte: Option<Time>,
    /// Header and body.
    length: u64,
    read: u64,
}

/// What reading has led to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// More is to come.
    Open,
    /// All is there.
    Done(Exchange),
    /// The response is wrong, and why.
    Failed(String),
}

impl Download {
    /// Requests `bytes` of body on a new stream, or `None` if the peer permits no stream now. `requested` is when
    /// the application wanted it.
    pub(crate) fn begin(
        now: Time,
        requested: Time,
        object: usize,
        bytes: u64,
        peer: &mut dyn Peer,
    ) -> Option<Self> {
        let stream = peer.open(now)?;
        let mut request = Request { body: bytes }.encode();
        // 300 bytes always have room on a new stream: every stack here buffers at least that.
        peer.write(now, stream, &mut request);
        debug_assert!(request.is_empty(), "a new stream has room for a request");
        peer.finish(now, stream);
        let length = RESPONSE_HEADER_LENGTH as u64 + bytes;
        Some(Self { object, stream, requested, first_byte: None, length, read: 0 })
    }

    /// Body bytes read so far.
    pub(crate) fn body_read(&self) -> u64 {
        self.read.saturating_sub(RESPONSE_HEADER_LENGTH as u64)
    }

    /// Reads at most `budget` bytes, taking them off it.
    pub(crate) fn pump(&mut self, now: Time, peer: &mut dyn Peer, budget: &mut u64) -> Step {
        while *budget > 0 {
            let max = usize::try_from(*budget).unwrap_or(usize::MAX);
            match peer.read(now, self.stream, max) {
                Read::Data(data) => {
                    if !is_content(self.read, &data) {
                        return Step::Failed(format!(
                            "object {}: wrong bytes near {}",
                            self.object, self.read
                        ));
                    }
                    self.first_byte.get_or_insert(now);
                    self.read += data.len() as u64;
                    *budget -= data.len() as u64;
                }
                Read::Blocked => return Step::Open,
                Read::Finished => return self.finish(now),
                Read::Reset => return Step::Failed(format!("object {}: the stream was reset", self.object)),
            }
        }
        Step::Open
    }

    fn finish(&self, now: Time) -> Step {
        if self.read != self.length {
            let (read, length) = (self.read, self.length);
            return Step::Failed(format!("object {}: {read} bytes instead of {length}", self.object));
        }
        Step::Done(Exchange {
            object: self.object,
            requested: self.requested,
            first_byte: self.first_byte.unwrap_or(now),
            finished: now,
            bytes: self.body_read(),
        })
    }
}
