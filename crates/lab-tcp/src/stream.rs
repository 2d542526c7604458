//! One stream at one end: bytes written that no frame has taken, and bytes arrived that nobody has read.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::peer::Read;

/// A queue of bytes.
#[derive(Debug, Default)]
struct Buffer {
    pieces: VecDeque<Bytes>,
    length: u64,
}

impl Buffer {
    fn push(&mut self, piece: Bytes) {
        self.length += piece.len() as u64;
        if !piece.is_empty() {
            self.pieces.push_back(piece);
        }
    }

    /// The next piece, of at most `max` bytes.
    fn pop(&mut self, max: u64) -> Option<Bytes> {
        let first = self.pieces.front_mut()?;
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let piece = if first.len() <= max { self.pieces.pop_front()? } else { first.split_to(max) };
        self.length -= piece.len() as u64;
        Some(piece)
    }
}

/// How far an end's half has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Half {
    #[default]
    Open,
    /// The end is known and comes after what is buffered.
    Ending,
    /// The end has been handed on.
    Ended,
}

/// The stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Index of its connection; HTTP/1.1 exchanges wait for one.
    pub(super) channel: Option<usize>,
    outgoing: Buffer,
    sending: Half,
    /// The writer waits for room.
    is_writer_waiting: bool,
    incoming: Buffer,
    receiving: Half,
    /// The reader has found nothing, or never looked.
    is_reader_waiting: bool,
}

impl Stream {
    /// A new stream; `is_reader_waiting` if its first bytes must be told of.
    pub(super) fn new(channel: Option<usize>, is_reader_waiting: bool) -> Self {
        Self { channel, is_reader_waiting, ..Self::default() }
    }

    /// Takes bytes from the front of `data` as long as fewer than `limit` wait.
    pub(super) fn write(&mut self, data: &mut Bytes, limit: u64) {
        let room = usize::try_from(limit.saturating_sub(self.outgoing.length)).unwrap_or(usize::MAX);
        if self.sending == Half::Open {
            self.outgoing.push(data.split_to(room.min(data.len())));
        }
        self.is_writer_waiting = !data.is_empty();
    }

    /// Nothing will be written any more.
    pub(super) fn finish(&mut self) {
        if self.sending == Half::Open {
            self.sending = Half::Ending;
        }
    }

    /// True if a frame could be made of what waits.
    pub(super) fn has_outgoing(&self) -> bool {
        self.outgoing.length > 0 || self.sending == Half::Ending
    }

    /// Takes out what the next frame of at most `max` bytes carries, in pieces, with its length, and whether it is
    /// the last.
    pub(super) fn take_frame(&mut self, max: u64) -> (Vec<Bytes>, u64, bool) {
        let length = self.outgoing.length.min(max);
        let mut pieces = Vec::with_capacity(2);
        let mut remaining = length;
        while remaining > 0 {
            let Some(piece) = self.outgoing.pop(remaining) else { break };
            remaining -= piece.len() as u64;
            pieces.push(piece);
        }
        let is_last = self.sending == Half::Ending && self.outgoing.length == 0;
        if is_last {
            self.sending = Half::Ended;
            // The end needs a piece to ride on.
            if pieces.is_empty() {
                pieces.push(Bytes::new());
            }
        }
        (pieces, length, is_last)
    }

    /// True, once, if the writer waits and half of `limit` is free.
    pub(super) fn wakes_writer(&mut self, limit: u64) -> bool {
        let wakes = self.is_writer_waiting && self.outgoing.length <= limit / 2;
        self.is_writer_waiting &= !wakes;
        wakes
    }

    /// Bytes have arrived. True if the reader must be told.
    pub(super) fn on_data(&mut self, bytes: Bytes, is_last: bool) -> bool {
        self.incoming.push(bytes);
        if is_last {
            self.receiving = Half::Ending;
        }
        std::mem::take(&mut self.is_reader_waiting)
    }

    /// Bytes that have arrived and not been read.
    pub(super) fn unread(&self) -> u64 {
        self.incoming.length
    }

    /// At most `max` bytes of what has arrived next.
    pub(super) fn read(&mut self, max: usize) -> Read {
        if let Some(piece) = self.incoming.pop(max as u64) {
            return Read::Data(piece);
        }
        if self.receiving == Half::Open {
            self.is_reader_waiting = true;
            return Read::Blocked;
        }
        self.receiving = Half::Ended;
        Read::Finished
    }

    /// True if nothing can come of it any more.
    pub(super) fn is_over(&self) -> bool {
        self.sending == Half::Ended && self.receiving == Half::Ended
    }
}
