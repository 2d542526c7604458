//! The code over the ends of streams (docs/spec/tail-code.md): what the streams do with `TAIL_CODE` frames.
//!
//! `receiver` keeps what may be needed to restore lost data of the peer's streams, `sender` makes recovery symbols for
//! streams of this end whose end has left. Both do nothing until both ends have agreed.

mod receiver;
mod sender;

use bytes::Bytes;
use posthaste_tail_code::{MAX_LENGTH, SYMBOL_UNIT, Shape};
use posthaste_wire::StreamId;
use posthaste_wire::frame::{StreamFrame, TailCodeFrame};

use self::receiver::Receiver;
use self::sender::Sender;
use super::Streams;
use super::map::Found;
use super::send::{Ending, SendHalf};
use super::stream::Stream;
use crate::error::{PeerError, TransportErrorCode};
use crate::flow::CreditContext;
use crate::flow::shared_memory::Share;
use crate::packet::frame_writer::FrameWriter;

/// The value of this end's transport parameter `tail_code`, where it takes codes: bytes of the longest block.
pub(crate) const LONGEST_BLOCK: u64 = MAX_LENGTH as u64;

/// A stream's end that can have a code, or has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodableTail {
    /// The stream.
    pub(crate) id: StreamId,
    /// Bytes that the code covers, or would, and that were not acknowledged when it was made, or are not now.
    pub(crate) missing: u64,
    /// Bytes of packets that have left with recovery symbols for it.
    pub(crate) coded: u64,
}

/// The code of a connection, in both directions.
#[derive(Debug, Default)]
pub(super) struct TailCode {
    pub(super) receiver: Receiver,
    pub(super) sender: Sender,
}

impl TailCode {
    /// A stream's state may have changed. `is_ending`: its end has just left.
    pub(super) fn refresh(&mut self, id: StreamId, stream: &Stream, is_ending: bool) {
        let Self { receiver, sender } = self;
        if sender.is_on() {
            if stream.send.as_deref().is_none_or(SendHalf::is_reset) {
                sender.forget(id);
            } else if is_ending {
                sender.ended(id);
            }
        }
        if !receiver.is_empty() && stream.recv.as_ref().is_none_or(|recv| !recv.is_incomplete()) {
            receiver.forget(id);
        }
    }
}

impl Streams {
    /// This end takes `TAIL_CODE` frames, and may keep what `kept` has room for.
    pub(crate) fn offer_tail_code(&mut self, kept: Share) {
        self.code.receiver.offer(kept);
    }

    /// The peer takes codes over at most `longest` bytes, and this end may send them; 0 for none.
    pub(crate) fn set_tail_code(&mut self, longest: u64) {
        self.code.sender.set_longest(longest);
    }

    /// Bytes of stream data that were restored instead of received.
    pub(crate) fn restored(&self) -> u64 {
        self.code.receiver.restored
    }

    /// `TAIL_CODE`: the stream's end, and symbols to restore what is missing before it.
    pub(crate) fn on_tail_code(
        &mut self,
        frame: &TailCodeFrame,
        context: &CreditContext,
    ) -> Result<(), PeerError> {
        let refused = |reason| Err(PeerError::new(TransportErrorCode::FRAME_ENCODING_ERROR, reason));
        if !self.code.receiver.is_offered() {
            return refused("TAIL_CODE was not offered");
        }
        let TailCodeFrame { head, symbols } = frame;
        let size = head.symbol_units.saturating_mul(SYMBOL_UNIT as u64);
        let Ok(shape) = Shape::new(head.length, size, head.recovery_count) else {
            return refused("TAIL_CODE of a code that cannot be");
        };
        let count = symbols.len() / shape.symbol_size();
        let last = head.first.saturating_add(count as u64);
        let is_whole = count > 0 && symbols.len().is_multiple_of(shape.symbol_size());
        if !is_whole || last > head.recovery_count {
            return refused("TAIL_CODE with symbols that are not the code's");
        }
        // Exactly what an empty STREAM frame with the end does: its checks, its credit, its events.
        let end = StreamFrame { id: head.id, offset: head.final_size(), data: Bytes::new(), fin: true };
        self.receive(end, context)?;
        let Self { map, code, .. } = self;
        let Found::Live(Stream { recv: Some(recv), .. }) = map.find(head.id) else { return Ok(()) };
        if recv.is_incomplete() && code.receiver.begin(head, shape, recv.assembler())? {
            code.receiver.add_symbols(head.id, head.first, symbols);
            self.restore(head.id, context);
        }
        Ok(())
    }

    /// Data of a stream have arrived, and were taken in.
    pub(super) fn on_data_for_code(
        &mut self,
        id: StreamId,
        offset: u64,
        data: &[u8],
        context: &CreditContext,
    ) {
        let Self { map, code, .. } = self;
        code.receiver.on_data(id, offset, data);
        match map.find(id) {
            Found::Live(Stream { recv: Some(recv), .. }) if recv.is_incomplete() => self.restore(id, context),
            _ => code.receiver.forget(id),
        }
    }

    /// Restores a stream's missing data if there are symbols enough, and takes them in as if they had arrived.
    fn restore(&mut self, id: StreamId, context: &CreditContext) {
        for (offset, data) in self.code.receiver.restore(id) {
            let frame = StreamFrame { id, offset, data, fin: false };
            // The end has been told and counted, so nothing can be beyond a limit.
            let taken = self.receive(frame, context);
            debug_assert!(taken.is_ok(), "restored data beyond the stream's end");
        }
    }

    /// The ends of streams for which symbols may be sent, the youngest first. Where a datagram of `size` bytes holds all
    /// that is under way there are none: a copy does the same.
    pub(crate) fn codable_tails(&mut self, size: usize) -> Vec<CodableTail> {
        if !self.is_tail_coded(size) {
            return Vec::new();
        }
        let Self { map, code, .. } = self;
        let sender = &code.sender;
        let tail = |id| match unacknowledged(map, id)? {
            _ if sender.has_block(id) => sender.tail(id),
            (send, (start, end)) => {
                Some(CodableTail { id, missing: send.missing(sender.base(start, end), end), coded: 0 })
            }
        };
        sender.youngest_first().filter_map(tail).collect()
    }

    /// True if the ends of streams that are under way have codes, or may have.
    pub(crate) fn is_tail_coded(&mut self, size: usize) -> bool {
        let Self { map, code, .. } = self;
        let sender = &code.sender;
        let mut unacknowledged = |id| unacknowledged(map, id).map_or(0, |(_, (start, end))| end - start);
        let is_coded = |id| sender.has_block(id) || unacknowledged(id) > size as u64;
        sender.youngest_first().any(is_coded)
    }

    /// Has the next packet carry symbols for the end of this stream, which [`Self::codable_tails`] has named. If there is no
    /// code yet it gets symbols for `packets` packets of `size` bytes, and some more. False if there are no more.
    pub(crate) fn code_tail(&mut self, id: StreamId, size: usize, packets: u32) -> bool {
        let Self { map, code, .. } = self;
        if !code.sender.has_block(id) && code.sender.has_room() {
            let Found::Live(Stream { send: Some(send), .. }) = map.find(id) else { return false };
            let (start, end) = send.unacknowledged();
            let base = code.sender.base(start, end);
            let mut data = Vec::with_capacity((end - base) as usize);
            send.copy_to(&mut data, base, end);
            code.sender.encode(id, base, &data, send.missing(base, end), (size, packets));
        }
        code.sender.make_due(id)
    }

    /// True if a packet is to carry symbols.
    pub(super) fn is_code_due(&self) -> bool {
        self.code.sender.is_due()
    }

    /// Writes them.
    pub(super) fn write_code(&mut self, writer: &mut FrameWriter<'_>) {
        self.code.sender.write(writer);
    }

    /// A packet of `bytes` has left. True if it carries symbols.
    pub(crate) fn code_sent(&mut self, bytes: u64) -> bool {
        self.code.sender.on_sent(bytes)
    }
}

/// A stream whose end has left, and the range of its data that is not acknowledged, if there is one.
fn unacknowledged(map: &mut super::map::StreamMap, id: StreamId) -> Option<(&SendHalf, (u64, u64))> {
    match map.find(id) {
        Found::Live(Stream { send: Some(send), .. }) if send.ending() == Ending::Unacknowledged => {
            Some((&**send, send.unacknowledged())).filter(|(_, (start, end))| start < end)
        }
        _ => None,
    }
}
