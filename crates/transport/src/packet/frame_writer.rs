//! Where frames are written: the payload of the packet under construction.

use posthaste_wire::Frame;

use crate::packet::sent_frame::{SentFrame, SentFrames};

/// The payload of one packet under construction: a window on the datagram buffer with an end that no frame
/// may pass, and the record of what was written.
///
/// Owners of frames (streams, flow control, handshake, connection IDs) are handed one and fill it in turn.
pub(crate) struct FrameWriter<'a> {
    buffer: &'a mut Vec<u8>,
    end: usize,
    reserved: usize,
    frames: SentFrames,
    ack_eliciting: bool,
    in_flight: bool,
}

impl<'a> FrameWriter<'a> {
    /// A writer that appends to `buffer` and may fill it up to length `end`.
    pub(crate) fn new(buffer: &'a mut Vec<u8>, end: usize) -> Self {
        Self { buffer, end, reserved: 0, frames: SentFrames::new(), ack_eliciting: false, in_flight: false }
    }

    /// Bytes that still fit.
    pub(crate) fn remaining(&self) -> usize {
        self.end.saturating_sub(self.buffer.len() + self.reserved)
    }

    /// Keeps the last `bytes` of the room for a frame that follows; 0 frees them.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.reserved = bytes;
    }

    /// Writes an ack-eliciting frame if it fits, and records it. False if it does not fit: nothing is written.
    pub(crate) fn push(&mut self, frame: &Frame, record: Option<SentFrame>) -> bool {
        if frame.encoded_len() > self.remaining() {
            return false;
        }
        frame.write(self.buffer);
        self.ack_eliciting |= frame.is_ack_eliciting();
        self.in_flight |= frame.is_ack_eliciting() || matches!(frame, Frame::Padding);
        self.frames.extend(record);
        true
    }

    /// The buffer, for a frame that is written piecewise (STREAM, CRYPTO, ACK). The caller checks
    /// [`Self::remaining`] first and calls [`Self::record`] after.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer
    }

    /// Records an ack-eliciting frame that was written through [`Self::buffer`].
    pub(crate) fn record(&mut self, record: SentFrame) {
        let is_ack = matches!(record, SentFrame::Ack { .. } | SentFrame::AckWindow { .. });
        self.ack_eliciting |= !is_ack;
        self.in_flight |= !is_ack;
        self.frames.push(record);
    }

    /// True once an ack-eliciting frame is in.
    pub(crate) fn is_ack_eliciting(&self) -> bool {
        self.ack_eliciting
    }

    /// The records of what has been written.
    pub(crate) fn records(&self) -> &[SentFrame] {
        &self.frames
    }

    /// What was written: the records, whether the packet is ack-eliciting, and whether it counts as in flight.
    pub(crate) fn finish(self) -> (SentFrames, bool, bool) {
        (self.frames, self.ack_eliciting, self.in_flight)
    }
}
