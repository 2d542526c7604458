//! The bytes of one stream on their way out: unsent, in flight, lost, acknowledged.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

use super::lost_again::{LostAgain, Share};
use super::ranges::RangeSet;

/// Writes below this size are gathered into one chunk, so that many small writes cost no chunk each.
const COALESCE_BELOW: usize = 1024;

/// Size at which a gathered chunk is closed.
const COALESCED_CHUNK: usize = 4096;

/// What has been written to a stream and is not acknowledged, plus what of it must be sent (again).
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    /// Chunks and their offsets, without gaps up to where `lone` or `tail` begins.
    chunks: VecDeque<(u64, Bytes)>,
    /// Index of the chunk that `next` is in: what is sent for the first time needs no search.
    cursor: usize,
    /// The last write, if no small one has joined it: the bytes before `end`. Most streams have one write at a time, which
    /// then needs no list. Empty while `tail` is not.
    lone: Bytes,
    /// Small writes, gathered: the bytes before `end`.
    tail: BytesMut,
    /// Everything below is acknowledged.
    base: u64,
    /// Everything from here on has never been sent.
    next: u64,
    /// Bytes written in all.
    end: u64,
    /// Acknowledged ranges above `base`.
    acked: RangeSet,
    /// Ranges that were lost and have not been sent again.
    lost: RangeSet,
    again: LostAgain,
}

impl SendBuffer {
    /// Offset of the first byte that has never been sent.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Bytes written in all.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes that have never been sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.end - self.next
    }

    /// Bytes held: from the first unacknowledged one on.
    pub(crate) fn held(&self) -> u64 {
        self.end - self.base
    }

    /// The range to send again: the lowest that was lost, or else of which a copy is due.
    pub(crate) fn first_lost(&self) -> Option<(u64, u64)> {
        self.lost.first().or_else(|| self.again.first())
    }

    /// True if a byte of `start..end` has not been acknowledged.
    pub(crate) fn misses(&self, start: u64, end: u64) -> bool {
        let start = start.max(self.base);
        let covering = self.acked.overlapping(start, end).next();
        start < end && !covering.is_some_and(|(low, high)| low <= start && high >= end)
    }

    /// How many bytes of `start..end` have not been acknowledged.
    pub(crate) fn missing(&self, start: u64, end: u64) -> u64 {
        let start = start.max(self.base);
        let acked = self.acked.overlapping(start, end).map(|(low, high)| high.min(end) - low.max(start));
        end.saturating_sub(start) - acked.sum::<u64>()
    }

    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty() || !self.again.is_empty()
    }

    /// Appends data: kept as it is, or copied if small, and gathered with its neighbours.
    pub(crate) fn push(&mut self, data: Bytes) {
        let length = data.len();
        if length < COALESCE_BELOW {
            // A few bytes would keep all of the memory that they were cut from until they are acknowledged, such as an arena
            // of received datagrams.
            return self.push_copy(&data);
        }
        self.close_tail();
        if self.chunks.is_empty() {
            self.lone = data;
        } else {
            self.chunks.push_back((self.end, data));
        }
        self.end += length as u64;
    }

    /// Appends a copy of data, gathered with its neighbours if small.
    pub(crate) fn push_copy(&mut self, data: &[u8]) {
        if data.len() >= COALESCE_BELOW {
            return self.push(Bytes::copy_from_slice(data));
        }
        if data.is_empty() {
            return;
        }
        if self.lone.len() >= COALESCE_BELOW {
            self.close_tail();
        }
        if self.lone.is_empty() && self.tail.is_empty() {
            self.lone = Bytes::copy_from_slice(data);
        } else {
            self.tail.extend_from_slice(&std::mem::take(&mut self.lone));
            self.tail.extend_from_slice(data);
        }
        self.end += data.len() as u64;
        if self.tail.len() >= COALESCED_CHUNK {
            self.close_tail();
        }
    }

    /// Makes a chunk of the last write or the gathered small ones, which end at `end`.
    fn close_tail(&mut self) {
        let start = self.tail_start();
        if !self.lone.is_empty() {
            self.chunks.push_back((start, std::mem::take(&mut self.lone)));
        } else if !self.tail.is_empty() {
            self.chunks.push_back((start, self.tail.split().freeze()));
        }
    }

    /// Where `lone` or `tail` begins.
    fn tail_start(&self) -> u64 {
        self.end - self.lone.len().max(self.tail.len()) as u64
    }

    /// Appends the bytes `start..end` to `buffer`. Bytes that are no longer held are left out, which the
    /// caller never asks for.
    pub(crate) fn copy_to(&self, buffer: &mut Vec<u8>, start: u64, end: u64) {
        let first = if start >= self.next {
            self.cursor
        } else {
            self.chunks.partition_point(|(offset, _)| *offset <= start).saturating_sub(1)
        };
        let mut position = start;
        for (offset, data) in self.chunks.range(first.min(self.chunks.len())..) {
            if *offset >= end {
                return;
            }
            append(buffer, *offset, data, &mut position, end);
        }
        let tail = if self.lone.is_empty() { &self.tail[..] } else { &self.lone[..] };
        append(buffer, self.tail_start(), tail, &mut position, end);
    }

    /// `start..end` has been written into a packet.
    pub(crate) fn sent(&mut self, start: u64, end: u64) {
        if start < self.next {
            if self.lost.is_empty() {
                self.again.sent(start, end);
            }
            self.lost.remove(start, end);
        }
        self.next = self.next.max(end.min(self.end));
        while let Some((offset, data)) = self.chunks.get(self.cursor)
            && offset + data.len() as u64 <= self.next
        {
            self.cursor += 1;
        }
    }

    /// `start..end` has arrived. Returns the bytes that need no longer be held.
    pub(crate) fn acked(&mut self, start: u64, end: u64) -> u64 {
        // Only what was sent is ever recorded; the bound keeps a mistake elsewhere from moving `base` too far.
        let (start, end) = (start.max(self.base), end.min(self.next));
        if start >= end {
            return 0;
        }
        let before = self.base;
        if !self.lost.is_empty() {
            self.lost.remove(start, end);
        }
        self.again.acked(start, end);
        if start == self.base && self.acked.is_empty() {
            self.base = end;
        } else {
            self.acked.insert(start, end);
            if let Some((low, high)) = self.acked.first()
                && low <= self.base
            {
                self.acked.remove(low, high);
                self.base = high;
            }
        }
        self.release();
        self.base - before
    }

    /// Drops the chunks that are wholly acknowledged.
    fn release(&mut self) {
        while let Some((offset, data)) = self.chunks.front()
            && offset + data.len() as u64 <= self.base
        {
            self.chunks.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
        if self.base == self.end {
            self.lone = Bytes::new();
            self.tail = BytesMut::new();
        }
    }

    /// `start..end` was lost: what of it is not acknowledged is sent again.
    pub(crate) fn lost(&mut self, start: u64, end: u64) {
        let (start, end) = (start.max(self.base), end.min(self.next));
        if start >= end {
            return;
        }
        self.lost.insert(start, end);
        for (low, high) in self.acked.overlapping(start, end) {
            self.lost.remove(low, high);
        }
    }

    /// The same, and what of it was lost before leaves twice, within `share` of what has been sent.
    pub(super) fn lost_maybe_again(&mut self, start: u64, end: u64, share: Share) {
        self.lost(start, end);
        let (start, end) = (start.max(self.base), end.min(self.next));
        let mut from = start;
        let acked: SmallVec<[(u64, u64); 4]> = self.acked.overlapping(start, end).collect();
        // What has arrived of it meanwhile is not lost.
        for (low, high) in acked.into_iter().rev().chain([(end, end)]) {
            if from < low {
                self.again.lost(from, low, self.next, share);
            }
            from = from.max(high);
        }
    }

    /// Nothing has been sent after all. For buffers of which nothing has been acknowledged.
    pub(crate) fn start_over(&mut self) {
        self.next = self.base;
        self.cursor = 0;
        self.lost = RangeSet::default();
        self.again = LostAgain::default();
    }

    /// As new. Most buffers that end have no memory left, and to see that costs less than to make another.
    pub(crate) fn empty(&mut self) {
        let is_bare = self.chunks.capacity() == 0
            && self.tail.capacity() == 0
            && self.acked.is_empty()
            && self.lost.is_empty()
            && self.again.is_blank();
        if is_bare {
            self.lone = Bytes::new();
            (self.cursor, self.base, self.next, self.end) = (0, 0, 0, 0);
        } else {
            *self = Self::default();
        }
    }

    /// Forgets everything, as after a reset. Returns the bytes that were held.
    pub(crate) fn clear(&mut self) -> u64 {
        let held = self.held();
        let next = self.next;
        *self = Self { base: next, next, end: next, ..Self::default() };
        held
    }
}

/// Appends what `data`, which begins at `offset`, has of `*position..end`, and moves `position` behind it.
fn append(buffer: &mut Vec<u8>, offset: u64, data: &[u8], position: &mut u64, end: u64) {
    let from = position.saturating_sub(offset) as usize;
    let to = data.len().min(end.saturating_sub(offset) as usize);
    if let Some(part) = data.get(from..to) {
        buffer.extend_from_slice(part);
        *position += part.len() as u64;
    }
}

#[cfg(test)]
mod tests;
