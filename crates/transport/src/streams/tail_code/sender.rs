//! Recovery symbols for streams of this end whose end has left.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use posthaste_tail_code::{MAX_SYMBOLS, SYMBOL_UNIT, Shape, encode};
use posthaste_wire::frame::{TailCodeFrame, TailCodeHead};
use posthaste_wire::{Frame, StreamId};

use super::{CodableTail, LONGEST_BLOCK};
use crate::limits::{CODE_SENT_MEMORY, CODE_SENT_STREAMS};
use crate::packet::frame_writer::FrameWriter;

/// Recovery symbols that are made, as a multiple of what the policy asks for first: it may ask for more when it has seen
/// more losses.
const SPARE: (usize, usize) = (3, 2);

/// The code over the end of one stream.
#[derive(Debug)]
struct Block {
    /// With the number of the symbol that goes next.
    head: TailCodeHead,
    symbol_size: usize,
    recovery: Bytes,
    /// Bytes of the block that were not acknowledged.
    missing: u64,
    /// Bytes of packets that have left with its symbols. One that holds the whole block counts as a full one.
    coded: u64,
    /// Bytes that such a packet counts.
    least: u64,
}

/// The ends of streams that are under way, and their codes.
#[derive(Debug, Default)]
pub(in crate::streams) struct Sender {
    /// Most bytes that the peer takes in a block; 0 for no codes.
    longest: u64,
    /// Streams whose end has left, the youngest last.
    ended: VecDeque<StreamId>,
    blocks: BTreeMap<StreamId, Block>,
    /// Bytes of all recovery symbols.
    memory: usize,
    /// The stream for which the next packet carries symbols.
    due: Option<StreamId>,
    /// The stream for which the packet under construction does.
    written: Option<StreamId>,
}

impl Sender {
    /// The peer takes blocks of so many bytes; 0 for no codes.
    pub(super) fn set_longest(&mut self, longest: u64) {
        self.longest = longest.min(LONGEST_BLOCK);
    }

    /// True if codes may be sent.
    pub(super) fn is_on(&self) -> bool {
        self.longest > 0
    }

    /// The end of a stream has left. The oldest of many has no code.
    pub(super) fn ended(&mut self, id: StreamId) {
        if self.ended.contains(&id) {
            return;
        }
        self.ended.push_back(id);
        if self.ended.len() > CODE_SENT_STREAMS
            && let Some(oldest) = self.ended.pop_front()
        {
            self.drop_block(oldest);
        }
    }

    /// The peer has all of a stream, or it was reset.
    pub(super) fn forget(&mut self, id: StreamId) {
        if let Some(index) = self.ended.iter().position(|other| *other == id) {
            self.ended.remove(index);
            self.drop_block(id);
        }
    }

    fn drop_block(&mut self, id: StreamId) {
        if let Some(block) = self.blocks.remove(&id) {
            self.memory -= block.recovery.len();
        }
        self.due = self.due.filter(|due| *due != id);
    }

    /// Streams whose end has left.
    pub(super) fn youngest_first(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.ended.iter().rev().copied()
    }

    /// The end of a stream that has a code. `None` if there are no more symbols.
    pub(super) fn tail(&self, id: StreamId) -> Option<CodableTail> {
        let block = self.blocks.get(&id).filter(|block| block.head.first < block.head.recovery_count)?;
        Some(CodableTail { id, missing: block.missing, coded: block.coded })
    }

    /// Where a code over the end of `start..end` would begin.
    pub(super) fn base(&self, start: u64, end: u64) -> u64 {
        start.max(end.saturating_sub(self.longest))
    }

    /// True if the stream has a code.
    pub(super) fn has_block(&self, id: StreamId) -> bool {
        self.blocks.contains_key(&id)
    }

    /// True if there is room for symbols of another code.
    pub(super) fn has_room(&self) -> bool {
        self.memory < CODE_SENT_MEMORY
    }

    /// Makes a code over `data`, the bytes of the stream from `base` to its end, of which `missing` are not acknowledged, with
    /// symbols for so many packets of `size` bytes, and some more.
    pub(super) fn encode(
        &mut self,
        id: StreamId,
        base: u64,
        data: &[u8],
        missing: u64,
        (size, packets): (usize, u32),
    ) {
        let symbol_size = Shape::symbol_size_for(data.len());
        let wanted = size.min(data.len()).saturating_mul(packets as usize);
        // The code computes a power of two of them in any case.
        let count =
            (wanted.saturating_mul(SPARE.0) / SPARE.1).div_ceil(symbol_size).max(1).next_power_of_two();
        let room = CODE_SENT_MEMORY.saturating_sub(self.memory) / symbol_size;
        let count = count.min(room).min(MAX_SYMBOLS);
        let Ok(shape) = Shape::new(data.len() as u64, symbol_size as u64, count as u64) else { return };
        let Some(recovery) = encode(shape, data) else { return };
        let symbol_units = (symbol_size / SYMBOL_UNIT) as u64;
        let (length, recovery_count) = (data.len() as u64, count as u64);
        let head = TailCodeHead { id, base, length, symbol_units, recovery_count, first: 0 };
        self.memory += recovery.len();
        let least = if data.len() <= size { size as u64 } else { 0 };
        self.blocks
            .insert(id, Block { head, symbol_size, recovery: recovery.into(), missing, coded: 0, least });
    }

    /// Has the next packet carry symbols of the stream's code. False if it has none left.
    pub(super) fn make_due(&mut self, id: StreamId) -> bool {
        let is_left = self.blocks.get(&id).is_some_and(|block| block.head.first < block.head.recovery_count);
        self.due = is_left.then_some(id);
        is_left
    }

    /// True if a packet is to carry symbols.
    pub(super) fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// Fills the packet with symbols. Whatever happens, nothing is due any more.
    pub(super) fn write(&mut self, writer: &mut FrameWriter<'_>) {
        let Some(id) = self.due.take() else { return };
        let Some(block) = self.blocks.get_mut(&id) else { return };
        let room = writer.remaining();
        let left = (block.head.recovery_count - block.head.first) as usize;
        let source = (block.head.length as usize).div_ceil(block.symbol_size);
        let count =
            (room.saturating_sub(block.head.encoded_len(room)) / block.symbol_size).min(left).min(source);
        let from = block.head.first as usize * block.symbol_size;
        let symbols = block.recovery.slice(from..from + count * block.symbol_size);
        let frame = Frame::TailCode(TailCodeFrame { head: block.head, symbols });
        // A lost symbol is as good as any other: nothing is sent again, so nothing is recorded.
        if count > 0 && writer.push(&frame, None) {
            block.head.first += count as u64;
            self.written = Some(id);
        }
    }

    /// A packet has left with so many bytes. True if symbols are in it.
    pub(super) fn on_sent(&mut self, bytes: u64) -> bool {
        let Some(id) = self.written.take() else { return false };
        if let Some(block) = self.blocks.get_mut(&id) {
            block.coded += bytes.max(block.least);
        }
        true
    }
}
