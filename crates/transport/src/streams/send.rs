//! The sending half of a stream (RFC 9000 section 3.1).

use bytes::Bytes;
use posthaste_wire::frame::{Frame, ResetStream, stream};
use posthaste_wire::{StreamId, varint};

use super::lost_again::Share;
use super::schedule::{Class, Place, Priority};
use super::send_buffer::SendBuffer;
use crate::flow::SendWindow;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;

/// Data are not cut to fill a rest of a packet that is smaller than this.
const MIN_FRAGMENT: u64 = 32;

/// How far an announcement (the end of the stream, a reset) has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Progress {
    #[default]
    None,
    /// To be sent, for the first time or again.
    Due,
    Sent,
    Acked,
}

impl Progress {
    fn lost(&mut self) {
        if *self == Self::Sent {
            *self = Self::Due;
        }
    }
}

/// How far the end of a stream is, as far as the connection's tail is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ending {
    /// Nothing waits, and more may come; or the stream is over or was reset.
    #[default]
    Open,
    /// Data or the end have never been sent.
    Unsent,
    /// All has been sent, the end included, and something is not acknowledged.
    Unacknowledged,
}

/// What was written into a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    /// Bytes that had never been sent.
    pub(super) fresh: u64,
    /// Bytes that had been lost.
    pub(super) repeated: u64,
}

/// The sending half of a stream.
#[derive(Debug, Default)]
pub(super) struct SendHalf {
    buffer: SendBuffer,
    pub(super) window: SendWindow,
    fin: Progress,
    reset: Progress,
    reset_code: u64,
    /// The peer's code, once it has asked to stop.
    pub(super) stopped: Option<u64>,
    /// The last write was cut short: an event is owed when there is room.
    pub(super) is_writer_waiting: bool,
    pub(super) priority: Priority,
    pub(super) place: Option<Place>,
}

impl SendHalf {
    /// Begins as a half that may send `limit` bytes; it is new, or another has ended as this one and is empty.
    pub(super) fn begin(&mut self, limit: u64) {
        let Self { buffer: _, window, fin, reset, reset_code, stopped, is_writer_waiting, priority, place } =
            self;
        *window = SendWindow::new(limit);
        (*fin, *reset, *reset_code) = (Progress::None, Progress::None, 0);
        (*stopped, *is_writer_waiting) = (None, false);
        (*priority, *place) = (Priority::default(), None);
    }

    /// Gives back all memory but its own.
    pub(super) fn empty(&mut self) {
        self.buffer.empty();
    }

    /// True if the application has ended the stream, or it was reset.
    pub(super) fn is_ended(&self) -> bool {
        self.fin != Progress::None || self.reset != Progress::None
    }

    /// How far the stream's end is.
    pub(super) fn ending(&self) -> Ending {
        if self.is_reset() {
            return Ending::Open;
        }
        match self.fin {
            _ if self.buffer.unsent() > 0 => Ending::Unsent,
            Progress::None => Ending::Open,
            Progress::Due => Ending::Unsent,
            Progress::Sent | Progress::Acked => Ending::Unacknowledged,
        }
    }

    /// True if the peer is not known to have all of a frame that has been sent.
    pub(super) fn misses(&self, start: u64, end: u64, fin: bool) -> bool {
        (fin && self.fin != Progress::Acked) || self.buffer.misses(start, end)
    }

    /// True if a reset has been decided on.
    pub(super) fn is_reset(&self) -> bool {
        self.reset != Progress::None
    }

    /// Bytes written that have never been sent.
    pub(super) fn unsent(&self) -> u64 {
        self.buffer.unsent()
    }

    /// Bytes written in all.
    pub(super) fn written(&self) -> u64 {
        self.buffer.end()
    }

    /// The range of what was written that the peer is not known to have in order.
    pub(super) fn unacknowledged(&self) -> (u64, u64) {
        (self.buffer.end() - self.buffer.held(), self.buffer.end())
    }

    /// How many bytes of `start..end` the peer is not known to have.
    pub(super) fn missing(&self, start: u64, end: u64) -> u64 {
        self.buffer.missing(start, end)
    }

    /// Appends the bytes `start..end`, which are within [`Self::unacknowledged`], to `buffer`.
    pub(super) fn copy_to(&self, buffer: &mut Vec<u8>, start: u64, end: u64) {
        self.buffer.copy_to(buffer, start, end);
    }

    /// Takes data to send.
    pub(super) fn push(&mut self, data: Bytes) {
        self.buffer.push(data);
    }

    /// Takes a copy of data to send.
    pub(super) fn push_copy(&mut self, data: &[u8]) {
        self.buffer.push_copy(data);
    }

    /// The stream ends with what has been written.
    pub(super) fn finish(&mut self) {
        self.fin = Progress::Due;
    }

    /// Gives the stream up. Returns the bytes that need no longer be held.
    pub(super) fn reset(&mut self, error_code: u64) -> u64 {
        self.reset = Progress::Due;
        self.reset_code = error_code.min(varint::MAX);
        self.buffer.clear()
    }

    /// True once the peer has everything, or knows of the reset (the terminal states of figure 2).
    pub(super) fn is_done(&self) -> bool {
        self.reset == Progress::Acked || self.is_complete()
    }

    /// True once the peer has all data and the end.
    pub(super) fn is_complete(&self) -> bool {
        self.reset == Progress::None && self.fin == Progress::Acked && self.buffer.held() == 0
    }

    /// What there is to send that the stream's own limit permits, and what that needs.
    pub(super) fn class(&self) -> Option<Class> {
        // spec: rfc9000 3.3 no-data-after-reset
        if self.is_reset() {
            None
        } else if self.buffer.has_lost() {
            Some(Class::Free)
        } else if self.buffer.unsent() > 0 {
            (self.window.available() > 0).then_some(Class::Credit)
        } else {
            (self.fin == Progress::Due).then_some(Class::Free)
        }
    }

    /// True if the stream's limit keeps data back.
    pub(super) fn is_blocked(&self) -> bool {
        !self.is_reset() && self.buffer.unsent() > 0 && self.window.available() == 0
    }

    /// Length of the STREAM frame that has the lowest range that was lost, without the length that the last of a packet needs
    /// not have. `None` if none was.
    pub(super) fn lost_len(&self, id: StreamId) -> Option<usize> {
        let (start, end) = self.buffer.first_lost()?;
        usize::try_from(end - start).ok().map(|data| stream::header_len(id, start, None) + data)
    }

    /// Writes one STREAM frame, at most `credit` bytes of it new. `None` if nothing is to be sent or fits.
    pub(super) fn write_frame(
        &mut self,
        id: StreamId,
        credit: u64,
        writer: &mut FrameWriter<'_>,
    ) -> Option<Written> {
        self.class()?;
        let fresh_start = self.buffer.next();
        let (start, end) = self.buffer.first_lost().unwrap_or_else(|| {
            // spec: rfc9000 2.2 only-within-credit, 4.1 sender-keeps-limits, 19.10 stream-within-limit
            let permitted = self.buffer.unsent().min(credit).min(self.window.available());
            (fresh_start, fresh_start + permitted)
        });
        let ends_stream = |end: u64| self.fin != Progress::None && end == self.buffer.end();
        if start == end && !ends_stream(end) {
            return None;
        }
        let room = writer.remaining().checked_sub(stream::header_len(id, start, None))? as u64;
        let wanted = end - start;
        if room < wanted.min(MIN_FRAGMENT) {
            return None;
        }
        let (sent, length) = if wanted >= room {
            (room, None)
        } else if stream::header_len(id, start, Some(wanted as usize)) + wanted as usize <= writer.remaining()
        {
            (wanted, Some(wanted as usize))
        } else {
            // A few bytes are left over, too few for the length: PADDING goes before the frame, which then
            // reaches the packet's end and needs none.
            let padded = writer.buffer().len() + (room - wanted) as usize;
            writer.buffer().resize(padded, 0);
            (wanted, None)
        };
        let end = start + sent;
        let fin = ends_stream(end);
        stream::write_header(writer.buffer(), id, start, length, fin);
        // spec: rfc9000 2.2 bytes-never-change
        self.buffer.copy_to(writer.buffer(), start, end);
        writer.record(SentFrame::Stream { id, start, end, fin });
        self.buffer.sent(start, end);
        if fin && self.fin == Progress::Due {
            self.fin = Progress::Sent;
        }
        let fresh = self.buffer.next() - fresh_start;
        self.window.take(fresh);
        Some(Written { fresh, repeated: sent - fresh })
    }

    /// A STREAM frame has arrived. Returns the bytes that need no longer be held.
    pub(super) fn acked(&mut self, start: u64, end: u64, fin: bool) -> u64 {
        if self.is_reset() {
            return 0;
        }
        if fin {
            self.fin = Progress::Acked;
        }
        self.buffer.acked(start, end)
    }

    /// A STREAM frame was lost.
    ///
    /// With a share of the stream's bytes, what of it was lost before leaves twice.
    pub(super) fn lost(&mut self, start: u64, end: u64, fin: bool, twice: Option<Share>) {
        if self.is_reset() {
            return;
        }
        match twice {
            Some(share) => self.buffer.lost_maybe_again(start, end, share),
            None => self.buffer.lost(start, end),
        }
        if fin {
            self.fin.lost();
        }
    }

    /// The peer has seen nothing of the stream, and its limits are unknown.
    pub(super) fn start_over(&mut self) {
        self.window = SendWindow::default();
        if self.is_reset() {
            // The final size is what has been sent: nothing.
            self.buffer = SendBuffer::default();
        } else {
            self.buffer.start_over();
            if self.fin == Progress::Sent {
                self.fin = Progress::Due;
            }
        }
    }

    /// `RESET_STREAM` has arrived.
    pub(super) fn reset_acked(&mut self) {
        if self.is_reset() {
            self.reset = Progress::Acked;
        }
    }

    /// `RESET_STREAM` was lost.
    pub(super) fn reset_lost(&mut self) {
        self.reset.lost();
    }

    /// True if a control frame is due.
    pub(super) fn has_control(&self) -> bool {
        self.reset == Progress::Due || (!self.is_reset() && self.window.pending_report().is_some())
    }

    /// Writes the control frames that are due. False if one does not fit.
    pub(super) fn write_control(&mut self, id: StreamId, writer: &mut FrameWriter<'_>) -> bool {
        if self.reset == Progress::Due {
            // spec: rfc9000 13.3 reset-stays-the-same
            let final_size = self.buffer.next();
            let frame = Frame::ResetStream(ResetStream { id, error_code: self.reset_code, final_size });
            if !writer.push(&frame, Some(SentFrame::ResetStream(id))) {
                return false;
            }
            self.reset = Progress::Sent;
        }
        if let Some(limit) = self.window.pending_report().filter(|_| !self.is_reset()) {
            let frame = Frame::StreamDataBlocked { id, limit };
            if !writer.push(&frame, Some(SentFrame::StreamDataBlocked(id))) {
                return false;
            }
            self.window.report_sent();
        }
        true
    }
}
