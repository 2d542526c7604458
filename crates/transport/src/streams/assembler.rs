//! Reassembly of one stream's data (RFC 9000 section 2.2).
//!
//! Data that arrive in order are handed on as the slices of the datagrams that they came in. Data that arrive
//! early are copied into blocks of fixed extent with one bit a byte for what is there, so that neither the
//! number of gaps nor the size of the fragments matters: no honest sender is refused for the gaps that its path
//! makes, and a hostile one makes this end hold the window that it was granted, an eighth of that for the bits,
//! and [`REASSEMBLY_SLACK`], however it cuts its data. Where data overlap, the first copy wins.

mod slices;
mod view;

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use self::slices::Slices;
use crate::limits::REASSEMBLY_SLACK;

/// Bytes that one block of early data spans.
const BLOCK: u64 = 4096;

/// Words of 64 bits that say which bytes of a block are there.
const WORDS: usize = BLOCK as usize / 64;

/// Slices below this size are copied when they must wait: they pin the datagram that they came in.
const SLICE_MIN: usize = 512;

/// What a slice is assumed to pin if it is smaller: a datagram that fills an Ethernet frame.
const ASSUMED_DATAGRAM: usize = 1500;

/// What one chunk costs beside its data.
const CHUNK_OVERHEAD: usize = 64;

/// Waste (see [`waste_of`]) above which waiting data are copied into right-sized buffers.
const WASTE_LIMIT: usize = REASSEMBLY_SLACK as usize / 2;

/// Copied data are cut into chunks of at least this size.
const COPIED_CHUNK: usize = 16 * 1024;

/// Memory that a waiting slice may take beside the bytes that the peer had credit for and an eighth of them, which is
/// what bytes that arrive early cost, too. So slices that fill their datagrams never need to be copied.
fn waste_of(length: usize) -> usize {
    (ASSUMED_DATAGRAM.saturating_sub(length) + CHUNK_OVERHEAD).saturating_sub(length / 8)
}

/// Received data of one stream that the application has not read.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    /// Offset of the next byte that the application reads.
    read: u64,
    /// Everything below has arrived.
    contiguous: u64,
    /// Data from `read` on, in order, with the waste of each chunk; `tail` follows them.
    ready: Slices,
    /// Small or copied data, gathered: the bytes up to `contiguous`.
    tail: BytesMut,
    /// Waste of all of `ready`.
    waste: usize,
    /// Early data by block number; each has data above `contiguous`.
    blocks: BTreeMap<u64, Box<Block>>,
}

impl Assembler {
    /// Offset of the next byte that the application reads.
    pub(crate) fn read_offset(&self) -> u64 {
        self.read
    }

    /// Everything below this offset has arrived.
    pub(crate) fn contiguous(&self) -> u64 {
        self.contiguous
    }

    /// True if there is something to read.
    pub(crate) fn is_readable(&self) -> bool {
        self.contiguous > self.read
    }

    /// Takes in `data` at `offset`. The caller has checked it against the credit granted.
    pub(crate) fn insert(&mut self, offset: u64, mut data: Bytes) {
        let end = offset.saturating_add(data.len() as u64);
        if end <= self.contiguous {
            return;
        }
        if offset > self.contiguous {
            self.insert_early(offset, &data);
            return;
        }
        let known = (self.contiguous - offset) as usize;
        if known > 0 {
            data = data.slice(known..);
        }
        if self.blocks.is_empty() {
            self.append(data);
        } else {
            self.append_over_blocks(data);
        }
    }

    /// True if any byte that has arrived was not read, gap or no gap before it.
    pub(crate) fn has_unread(&self) -> bool {
        self.is_readable() || self.next_early(self.contiguous, u64::MAX) != u64::MAX
    }

    /// True if nothing has arrived yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.contiguous == 0 && self.blocks.is_empty()
    }

    /// As new. Most that end have no memory left, and to see that costs less than to make another.
    pub(crate) fn empty(&mut self) {
        if self.ready.is_bare() && self.tail.capacity() == 0 && self.blocks.is_empty() {
            (self.read, self.contiguous, self.waste) = (0, 0, 0);
        } else {
            *self = Self::default();
        }
    }

    /// Gives back room that is not in use. A small slice that nobody reads is copied: it pins what it came in.
    pub(crate) fn shrink(&mut self) {
        self.ready.shrink();
        for (data, _) in self.ready.iter_mut().filter(|(data, _)| data.len() < SLICE_MIN) {
            *data = Bytes::copy_from_slice(data);
        }
        if self.tail.is_empty() {
            self.tail = BytesMut::new();
        }
    }

    /// Takes at most `max` bytes from the front; `None` if nothing is there.
    pub(crate) fn read(&mut self, max: usize) -> Option<Bytes> {
        // spec: rfc9000 2.2 ordered-delivery
        if max == 0 {
            return None;
        }
        let data = if let Some((front, waste)) = self.ready.front_mut() {
            if front.len() > max {
                front.split_to(max)
            } else {
                self.waste = self.waste.saturating_sub(*waste);
                self.ready.pop_front()?.0
            }
        } else if self.tail.is_empty() {
            return None;
        } else {
            self.tail.split_to(max.min(self.tail.len())).freeze()
        };
        self.read += data.len() as u64;
        Some(data)
    }

    /// Appends data that begin at `contiguous`: as they are, or copied where keeping them would waste memory.
    fn append(&mut self, data: Bytes) {
        let length = data.len();
        let waste = waste_of(length);
        // The first chunk of an empty queue is kept whatever its size: the application is about to read it.
        let is_first = self.ready.is_empty() && self.tail.is_empty();
        if is_first || (length >= SLICE_MIN && self.waste + waste <= WASTE_LIMIT) {
            self.close_tail();
            self.ready.push_back((data, waste));
            self.waste += waste;
        } else {
            if self.tail.is_empty() && length >= SLICE_MIN {
                // More will follow: one buffer instead of several that double.
                self.tail.reserve(COPIED_CHUNK + length);
            }
            self.tail.extend_from_slice(&data);
            if self.tail.len() >= COPIED_CHUNK {
                self.close_tail();
            }
        }
        self.contiguous += length as u64;
    }

    /// Moves gathered data into `ready`, so that other data may follow them.
    fn close_tail(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        let data = if self.tail.len() >= COPIED_CHUNK {
            self.tail.split().freeze()
        } else {
            // Its buffer may be far larger: a copy of the right size, and the buffer is used again.
            let data = Bytes::copy_from_slice(&self.tail);
            self.tail.clear();
            data
        };
        self.waste += CHUNK_OVERHEAD;
        self.ready.push_back((data, CHUNK_OVERHEAD));
    }

    /// Appends data in order while there are early data that they may overlap or reach.
    fn append_over_blocks(&mut self, mut data: Bytes) {
        let end = self.contiguous + data.len() as u64;
        while self.contiguous < end {
            // What arrived first wins, up to the byte: only the gap before it is filled.
            let gap_end = self.next_early(self.contiguous, end);
            let gap = (gap_end - self.contiguous) as usize;
            if gap > 0 {
                self.append(data.split_to(gap.min(data.len())));
            }
            let before = self.contiguous;
            self.absorb_blocks();
            let absorbed = (self.contiguous - before) as usize;
            data = data.slice(absorbed.min(data.len())..);
        }
    }

    /// The first offset from `start` on, below `end`, that early data hold; `end` if there is none.
    fn next_early(&self, start: u64, end: u64) -> u64 {
        for (number, block) in self.blocks.range(start / BLOCK..) {
            let base = number * BLOCK;
            if base >= end {
                break;
            }
            let from = start.saturating_sub(base) as usize;
            if let Some(found) = block.present.next_set(from) {
                return end.min(base + found as u64);
            }
        }
        end
    }

    /// Moves early data that have become contiguous behind the data that are ready, and drops spent blocks.
    fn absorb_blocks(&mut self) {
        loop {
            let number = self.contiguous / BLOCK;
            while self.blocks.first_key_value().is_some_and(|(first, _)| *first < number) {
                self.blocks.pop_first();
            }
            let Some(block) = self.blocks.get(&number) else { return };
            let from = (self.contiguous % BLOCK) as usize;
            let to = block.present.next_clear(from);
            if to <= from {
                return;
            }
            if to == BLOCK as usize && from == 0 {
                if let Some(block) = self.blocks.remove(&number) {
                    self.append(Bytes::from(block.data));
                }
            } else {
                let run = block.data.get(from..to).map(Bytes::copy_from_slice).unwrap_or_default();
                self.append(run);
            }
        }
    }

    /// Copies data beyond `contiguous` into blocks, except the bytes that are already there.
    fn insert_early(&mut self, offset: u64, data: &[u8]) {
        let mut position = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let from = (position % BLOCK) as usize;
            let count = rest.len().min(BLOCK as usize - from);
            let (part, after) = rest.split_at(count);
            self.blocks.entry(position / BLOCK).or_default().insert(from, part);
            position += count as u64;
            rest = after;
        }
    }

    /// An upper estimate of the memory held.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        let ready: usize = self.ready.iter().map(|(data, waste)| data.len() + waste).sum();
        let blocks: usize = self
            .blocks
            .values()
            .map(|block| block.data.capacity() + size_of::<Block>() + CHUNK_OVERHEAD)
            .sum();
        ready + self.tail.capacity() + blocks
    }
}

/// Early data of [`BLOCK`] bytes of a stream.
#[derive(Debug, Default)]
struct Block {
    /// As long as the highest byte that has arrived requires, so that a byte costs no more than its offset
    /// took from the window.
    data: Vec<u8>,
    present: Presence,
}

impl Block {
    /// Copies `part` to `from`, except the bytes that are already there. `from + part.len()` is at most `BLOCK`.
    fn insert(&mut self, from: usize, part: &[u8]) {
        let to = from + part.len();
        if self.data.len() < to {
            // Sizes double up to the block's, so that a block that fills ends without spare capacity.
            let size = to.next_power_of_two().min(BLOCK as usize);
            self.data.reserve_exact(size - self.data.len());
            self.data.resize(to, 0);
        }
        let mut start = from;
        while start < to {
            let gap_end = self.present.next_set(start).unwrap_or(to).min(to);
            if let (Some(target), Some(source)) =
                (self.data.get_mut(start..gap_end), part.get(start - from..gap_end - from))
            {
                target.copy_from_slice(source);
            }
            start = self.present.next_clear(gap_end.max(start)).max(gap_end);
        }
        self.present.set(from, to);
    }
}

/// One bit a byte of a block.
#[derive(Debug)]
struct Presence([u64; WORDS]);

impl Default for Presence {
    fn default() -> Self {
        Self([0; WORDS])
    }
}

impl Presence {
    /// Sets the bits `from..to`.
    fn set(&mut self, from: usize, to: usize) {
        for (index, word) in self.0.iter_mut().enumerate().take(to.div_ceil(64)).skip(from / 64) {
            let low = from.saturating_sub(index * 64).min(64);
            let high = to.saturating_sub(index * 64).min(64);
            *word |= ones_below(high) & !ones_below(low);
        }
    }

    /// The first set bit from `from` on.
    fn next_set(&self, from: usize) -> Option<usize> {
        self.find(from, |word| word)
    }

    /// The first clear bit from `from` on; the block's size if there is none.
    fn next_clear(&self, from: usize) -> usize {
        self.find(from, |word| !word).unwrap_or(WORDS * 64)
    }

    /// The first bit from `from` on that is set after `map`.
    fn find(&self, from: usize, map: impl Fn(u64) -> u64) -> Option<usize> {
        let mut mask = !ones_below(from % 64);
        for (index, word) in self.0.iter().enumerate().skip(from / 64) {
            let found = map(*word) & mask;
            if found != 0 {
                return Some(index * 64 + found.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

/// A word whose lowest `count` bits are set, `count` at most 64.
fn ones_below(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests;
