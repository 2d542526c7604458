//! What is kept to restore lost data of the peer's streams.
//!
//! Decoding needs the data that have arrived, those included that the application has read. So the newest of what each
//! unfinished stream has delivered is kept, as the slices that were read. With a stream's first `TAIL_CODE` frame they and
//! what waits are copied into a block, which later data are written into as well.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use posthaste_tail_code::{Decoder, Shape};
use posthaste_wire::StreamId;
use posthaste_wire::frame::TailCodeHead;

use super::super::Assembler;
use crate::error::{PeerError, TransportErrorCode};
use crate::flow::shared_memory::Share;
use crate::limits::{CODE_MEMORY, CODE_RECOVERY, CODE_STREAM_MEMORY, CODE_STREAMS, CODE_WORK};

/// What a small slice is assumed to pin: a datagram that fills an Ethernet frame, and its place in a queue.
const ASSUMED_SLICE: usize = 1564;
/// Bytes of work that each byte of stream data pays for.
const WORK_PER_BYTE: u64 = 4;
/// The share of the receive budget changes in steps of so many bytes, so that not every packet touches what all threads
/// share.
const STEP: u64 = 256 * 1024;
/// Bytes of work that every decoding costs, whatever it decodes.
const LEAST_WORK: u64 = 256 * 1024;

/// What one stream has delivered last, in order.
#[derive(Debug, Default)]
struct Delivered {
    slices: VecDeque<Bytes>,
    /// Bytes in them.
    bytes: u64,
    /// Memory that they take.
    cost: usize,
}

impl Delivered {
    fn push(&mut self, data: Bytes) {
        self.cost += cost_of(&data);
        self.bytes += data.len() as u64;
        self.slices.push_back(data);
    }

    /// Gives up the oldest slice; the memory that it took.
    fn pop(&mut self) -> Option<usize> {
        let data = self.slices.pop_front()?;
        let cost = cost_of(&data);
        self.cost -= cost;
        self.bytes -= data.len() as u64;
        Some(cost)
    }
}

/// A stream's end that is to be restored if it has to.
#[derive(Debug)]
struct Block {
    head: TailCodeHead,
    decoder: Decoder,
}

impl Block {
    /// Writes what of `data` is in the block.
    fn write(&mut self, offset: u64, data: &[u8]) {
        let skipped = usize::try_from(self.head.base.saturating_sub(offset)).unwrap_or(usize::MAX);
        let at = usize::try_from(offset.saturating_sub(self.head.base)).unwrap_or(usize::MAX);
        if let Some(data) = data.get(skipped..) {
            self.decoder.write(at, data);
        }
    }
}

/// One stream.
#[derive(Debug, Default)]
struct Incoming {
    delivered: Delivered,
    /// Few streams have one, and a map has room for eleven streams at once.
    block: Option<Box<Block>>,
    /// Larger than that of streams that delivered earlier.
    last: u64,
}

/// All streams of a connection that may have a code over their ends.
#[derive(Debug, Default)]
pub(in crate::streams) struct Receiver {
    /// What all of it takes of the endpoint's receive budget, where this end takes codes.
    share: Option<Share>,
    streams: BTreeMap<StreamId, Incoming>,
    /// Memory of what was delivered and of blocks, at most [`CODE_MEMORY`].
    memory: usize,
    /// Bytes of recovery symbols, at most [`CODE_RECOVERY`].
    recovery: usize,
    /// Number of the latest delivery.
    latest: u64,
    /// What has been decoded beyond what received data have paid for, in bytes of work.
    debt: u64,
    /// Bytes restored.
    pub(super) restored: u64,
}

impl Receiver {
    /// This end has told the peer that it takes codes.
    pub(super) fn offer(&mut self, share: Share) {
        self.share = Some(share);
    }

    /// True if it has.
    pub(in crate::streams) fn is_offered(&self) -> bool {
        self.share.is_some()
    }

    /// True if nothing is kept.
    pub(in crate::streams) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// True if data of the stream are to be shown to [`Self::on_data`].
    pub(in crate::streams) fn has_block(&self, id: StreamId) -> bool {
        self.streams.get(&id).is_some_and(|stream| stream.block.is_some())
    }

    /// The application has read `data`, which follow what it has read before, of a stream of which more is to come.
    pub(in crate::streams) fn deliver(&mut self, id: StreamId, data: &Bytes) {
        if !self.is_offered() || self.has_block(id) {
            return;
        }
        if !self.streams.contains_key(&id) && self.streams.len() >= CODE_STREAMS {
            self.forget_longest_idle();
            if self.streams.len() >= CODE_STREAMS {
                return;
            }
        }
        self.latest += 1;
        self.memory += cost_of(data);
        let stream = self.streams.entry(id).or_default();
        stream.last = self.latest;
        stream.delivered.push(data.clone());
        while stream.delivered.cost > CODE_STREAM_MEMORY {
            self.memory -= stream.delivered.pop().unwrap_or(0);
        }
        self.make_room(0);
    }

    /// Gives up delivered data, of the stream that has most of them, until `bytes` more fit. False if they do not fit.
    fn make_room(&mut self, bytes: usize) -> bool {
        let room = self.hold(self.memory + bytes).min(CODE_MEMORY);
        while self.memory + bytes > room {
            let most = self.streams.values_mut().max_by_key(|stream| stream.delivered.cost);
            let Some(cost) = most.and_then(|stream| stream.delivered.pop()) else { return false };
            self.memory -= cost;
        }
        true
    }

    /// Makes the share of the receive budget cover `bytes`, as far as others leave any. What it covers.
    fn hold(&mut self, bytes: usize) -> usize {
        let Some(share) = &mut self.share else { return 0 };
        let wanted = (bytes as u64).next_multiple_of(STEP).min(share.allowance());
        usize::try_from(share.hold(wanted)).unwrap_or(usize::MAX)
    }

    /// Forgets the stream without a block that has delivered nothing for the longest time.
    fn forget_longest_idle(&mut self) {
        let without_block = self.streams.iter().filter(|(_, stream)| stream.block.is_none());
        let idle = without_block.min_by_key(|(_, stream)| stream.last).map(|(id, _)| *id);
        if let Some(id) = idle {
            self.forget(id);
        }
    }

    /// The stream is complete, or nobody wants it any more.
    pub(super) fn forget(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.remove(&id) {
            self.memory -= stream.delivered.cost;
            if let Some(block) = stream.block {
                self.memory -= block.decoder.shape().decoder_memory();
                self.recovery -= block.decoder.recovery_bytes();
            }
            self.hold(self.memory);
        }
    }

    /// Nothing has happened for a while: gives up what was delivered. Codes cover what the peer does not
    /// know to have arrived, and it mostly knows by now; where it does not, retransmission restores what a code then cannot. Kept, the first bytes of an HTTP/3 client's control streams, which never end, would
    /// keep the blocks in use that its handshake's datagrams lie in.
    pub(in crate::streams) fn rest(&mut self) {
        self.streams.retain(|_, stream| stream.block.is_some());
        let blocks = self.streams.values().filter_map(|stream| stream.block.as_ref());
        self.memory = blocks.map(|block| block.decoder.shape().decoder_memory()).sum();
        if self.streams.is_empty() {
            // An empty map keeps a node.
            self.streams = BTreeMap::new();
        }
        self.hold(self.memory);
    }

    /// Makes the stream's block of what is known of it, with the first frame. False if there is no room for one.
    ///
    /// # Errors
    /// `PROTOCOL_VIOLATION` if the block has other measures than the one there is.
    pub(super) fn begin(
        &mut self,
        head: &TailCodeHead,
        shape: Shape,
        waiting: &Assembler,
    ) -> Result<bool, PeerError> {
        let block = self.streams.get(&head.id).and_then(|stream| stream.block.as_ref());
        if let Some(block) = block {
            if block.head != (TailCodeHead { first: block.head.first, ..*head }) {
                let reason = "TAIL_CODE frames of one stream differ in their code";
                return Err(PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
            }
            return Ok(true);
        }
        let memory = shape.decoder_memory();
        let blocks = self.streams.values().filter(|stream| stream.block.is_some()).count();
        // What the stream itself has delivered is in the block as well, and must not be given up for it.
        let delivered = self.streams.get_mut(&head.id).map(|stream| std::mem::take(&mut stream.delivered));
        let delivered = delivered.unwrap_or_default();
        self.memory -= delivered.cost;
        if blocks >= CODE_STREAMS || !self.make_room(memory) {
            self.forget(head.id);
            return Ok(false);
        }
        if !self.streams.contains_key(&head.id) && self.streams.len() >= CODE_STREAMS {
            self.forget_longest_idle();
        }
        let mut block = Block { head: *head, decoder: Decoder::new(shape) };
        let mut offset = waiting.read_offset().saturating_sub(delivered.bytes);
        for data in &delivered.slices {
            block.write(offset, data);
            offset += data.len() as u64;
        }
        waiting.each_run(|offset, data| block.write(offset, data));
        self.memory += memory;
        self.streams.entry(head.id).or_default().block = Some(Box::new(block));
        Ok(true)
    }

    /// Recovery symbols of a stream that has a block.
    pub(super) fn add_symbols(&mut self, id: StreamId, first: u64, symbols: &[u8]) {
        let Some(block) = self.streams.get_mut(&id).and_then(|stream| stream.block.as_mut()) else { return };
        let before = block.decoder.recovery_bytes();
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        block.decoder.add_recovery(first, symbols, CODE_RECOVERY - self.recovery);
        self.recovery += block.decoder.recovery_bytes() - before;
    }

    /// Data of any stream have arrived: they pay for decoding.
    pub(in crate::streams) fn count(&mut self, bytes: usize) {
        self.debt = self.debt.saturating_sub(bytes as u64 * WORK_PER_BYTE);
    }

    /// Data of a stream that has a block.
    pub(super) fn on_data(&mut self, id: StreamId, offset: u64, data: &[u8]) {
        if let Some(block) = self.streams.get_mut(&id).and_then(|stream| stream.block.as_mut()) {
            block.write(offset, data);
        }
    }

    /// Restores what the stream lacks, if there are symbols enough and received data have paid for the work. Returns the
    /// data with their offsets; the stream is then forgotten.
    pub(super) fn restore(&mut self, id: StreamId) -> Vec<(u64, Bytes)> {
        let block = self.streams.get_mut(&id).and_then(|stream| stream.block.as_mut());
        let Some(block) = block.filter(|block| block.decoder.is_ready()) else { return Vec::new() };
        let work = LEAST_WORK + 2 * block.decoder.shape().decoder_memory() as u64;
        if self.debt + work > CODE_WORK {
            return Vec::new();
        }
        self.debt += work;
        // Slices of one buffer would keep all of it in memory until the last of them is read.
        let Block { head, decoder } = &mut **block;
        let ranges = decoder.decode();
        let copy = |range: std::ops::Range<usize>| {
            (head.base + range.start as u64, Bytes::copy_from_slice(decoder.get(range)))
        };
        let restored: Vec<(u64, Bytes)> = ranges.into_iter().map(copy).collect();
        self.restored += restored.iter().map(|(_, data)| data.len() as u64).sum::<u64>();
        self.forget(id);
        restored
    }
}

/// Memory that a slice of a datagram takes.
fn cost_of(data: &Bytes) -> usize {
    data.len().max(ASSUMED_SLICE)
}
