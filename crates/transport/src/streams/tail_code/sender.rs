//! Recovery symbols for streams of this end whose end has left.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use posthaste_tail_code::{MAX_SYMBOLS, SYMBOL_UNIT, Shape, encode};
use posthaste_wire::frame::{TailCodeFrame, TailCodeHead};
use posthaste_wire::{Frame, StreamId};

use super::{CodableTail, LONGEST_BLOCK};
use crate::limits::{CODE_SENT_MEMORY, CODE_SENT_STREAMS};
use crate::packet::frame_writer::FrameWriter;

/// Recovery symbols: one for this many source symbols,
const SOURCE_PER_RECOVERY: usize = 4;
/// and those of this many packets. More than a policy asks for.
const SPARE_PACKETS: usize = 16;

/// The code over the end of one stream.
#[derive(Debug)]
struct Block {
    /// With the number of the symbol that goes next.
    head: TailCodeHead,
    symbol_size: usize,
    recovery: Bytes,
    /// Bytes of packets that have left with its symbols.
    coded: u64,
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

    /// The end of a stream of which the bytes of this range are not acknowledged. `None` if there are no more symbols.
    pub(super) fn tail(&self, id: StreamId, (start, end): (u64, u64)) -> Option<CodableTail> {
        match self.blocks.get(&id) {
            Some(block) if block.head.first >= block.head.recovery_count => None,
            Some(block) => Some(CodableTail { id, length: block.head.length, coded: block.coded }),
            None => Some(CodableTail { id, length: (end - start).min(self.longest), coded: 0 }),
        }
    }

    /// True if the stream has a code.
    pub(super) fn has_block(&self, id: StreamId) -> bool {
        self.blocks.contains_key(&id)
    }

    /// Makes a code over the last bytes of `start..end`, which `copy` appends to a buffer from an offset on. `packet` is
    /// the room for symbols in a packet.
    pub(super) fn encode(
        &mut self,
        id: StreamId,
        start: u64,
        end: u64,
        packet: usize,
        copy: impl FnOnce(u64, &mut Vec<u8>),
    ) {
        let base = start.max(end.saturating_sub(self.longest));
        let length = end - base;
        let symbol_size = Shape::symbol_size_for(length as usize);
        let source = (length as usize).div_ceil(symbol_size);
        let spare = SPARE_PACKETS * (packet / symbol_size).max(1);
        let count = (source / SOURCE_PER_RECOVERY + spare).min(MAX_SYMBOLS);
        if self.memory + count * symbol_size > CODE_SENT_MEMORY {
            return;
        }
        let Ok(shape) = Shape::new(length, symbol_size as u64, count as u64) else { return };
        let mut data = Vec::with_capacity(shape.length());
        copy(base, &mut data);
        let Some(recovery) = encode(shape, &data) else { return };
        let symbol_units = (symbol_size / SYMBOL_UNIT) as u64;
        let head = TailCodeHead { id, base, length, symbol_units, recovery_count: count as u64, first: 0 };
        self.memory += recovery.len();
        self.blocks.insert(id, Block { head, symbol_size, recovery: recovery.into(), coded: 0 });
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
        let count = (room.saturating_sub(block.head.encoded_len(room)) / block.symbol_size).min(left);
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
            block.coded += bytes;
        }
        true
    }
}
