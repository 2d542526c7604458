//! Frames to the peer, and what becomes of them.

use posthaste_wire::frame::Frame;
use posthaste_wire::{Direction, StreamId};

use super::Streams;
use super::map::Found;
use super::recv::RecvHalf;
use super::send::{Ending, SendHalf};
use super::stream::Stream;
use crate::packet::frame_owner::FrameOwner;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;

const DIRECTIONS: [Direction; 2] = [Direction::Bidirectional, Direction::Unidirectional];

impl Streams {
    /// True if frames other than STREAM are due.
    pub(crate) fn has_control(&self) -> bool {
        !self.control.is_empty()
            || self.receive_window.is_update_pending()
            || self.send_window.pending_report().is_some()
            || self.local.iter().any(|local| local.window.pending_report().is_some())
            || self.remote.iter().any(|remote| remote.is_update_pending)
    }

    /// True if STREAM frames can be sent now as far as flow control is concerned.
    pub(crate) fn has_data(&self) -> bool {
        self.schedule.next(self.send_window.available() > 0).is_some()
    }

    /// True if no stream has unsent data, and at least one whose end has been sent has unacknowledged data. A stream that
    /// may go on does not count.
    pub(crate) fn is_tail(&self) -> bool {
        self.tail.is_reached()
    }

    /// True if one of the frames carries data of a stream whose end has been sent, and which is not yet acknowledged.
    pub(crate) fn has_ending(&mut self, frames: &[SentFrame]) -> bool {
        frames.iter().any(|frame| match frame {
            SentFrame::Stream { id, start, end, fin } => match self.map.find(*id) {
                Found::Live(Stream { send: Some(send), .. }) => {
                    send.ending() == Ending::Unacknowledged && send.misses(*start, *end, *fin)
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// Length of the frame that has the data to be sent next, if they were lost.
    pub(crate) fn next_lost_len(&mut self) -> Option<usize> {
        let id = self.schedule.next(self.send_window.available() > 0)?;
        let Found::Live(Stream { send: Some(send), .. }) = self.map.find(id) else { return None };
        send.lost_len(id)
    }

    /// What is lost for the second time leaves twice from now on, up to `share` of each stream's bytes. What was said before.
    pub(crate) fn send_lost_again_twice(&mut self, share: Option<(u32, u32)>) -> Option<(u32, u32)> {
        std::mem::replace(&mut self.lost_again, share)
    }

    /// Stream bytes sent for the first time, and again.
    pub(crate) fn sent_and_resent(&self) -> (u64, u64) {
        (self.sent, self.resent)
    }

    /// Writes what [`Self::has_control`] told of, as far as it fits.
    pub(crate) fn write_control(&mut self, writer: &mut FrameWriter<'_>) {
        if !self.write_connection_control(writer) {
            return;
        }
        while let Some(id) = self.control.first().copied() {
            let is_written = match self.map.find(id) {
                Found::Live(stream) => write_stream_control(stream, id, writer),
                Found::Future | Found::Gone => {
                    self.control.remove(&id);
                    continue;
                }
            };
            // Takes the stream out of the queue if all was written.
            self.refresh(id);
            if !is_written {
                return;
            }
        }
    }

    /// Writes the control frames of the connection as a whole. False if one does not fit.
    fn write_connection_control(&mut self, writer: &mut FrameWriter<'_>) -> bool {
        if self.receive_window.is_update_pending() {
            let frame = Frame::MaxData(self.receive_window.advertised());
            if !writer.push(&frame, Some(SentFrame::MaxData)) {
                return false;
            }
            self.receive_window.update_sent();
        }
        if let Some(limit) = self.send_window.pending_report() {
            if !writer.push(&Frame::DataBlocked(limit), Some(SentFrame::DataBlocked)) {
                return false;
            }
            self.send_window.report_sent();
        }
        DIRECTIONS.into_iter().all(|direction| self.write_stream_counts(direction, writer))
    }

    fn write_stream_counts(&mut self, direction: Direction, writer: &mut FrameWriter<'_>) -> bool {
        let remote = self.remote_mut(direction);
        if remote.is_update_pending {
            let frame = Frame::MaxStreams { direction, maximum: remote.advertised };
            if !writer.push(&frame, Some(SentFrame::MaxStreams(direction))) {
                return false;
            }
            remote.is_update_pending = false;
        }
        let local = self.local_mut(direction);
        if let Some(limit) = local.window.pending_report() {
            let frame = Frame::StreamsBlocked { direction, limit };
            if !writer.push(&frame, Some(SentFrame::StreamsBlocked(direction))) {
                return false;
            }
            local.window.report_sent();
        }
        true
    }

    /// Fills the rest of the packet with STREAM frames. Must come last: the last of them may have no length.
    pub(crate) fn write_data(&mut self, writer: &mut FrameWriter<'_>) {
        loop {
            // spec: rfc9000 4.1 sender-keeps-limits, 19.9 sum-within-limit
            let credit = self.send_window.available();
            let Some(id) = self.schedule.next(credit > 0) else { break };
            let Found::Live(Stream { send: Some(send), .. }) = self.map.find(id) else { break };
            let Some(written) = send.write_frame(id, credit, writer) else { break };
            let total = send.written() - send.unsent();
            self.schedule.sent(id, &mut send.place, written.fresh + written.repeated, total);
            self.send_window.take(written.fresh);
            self.sent += written.fresh;
            self.resent += written.repeated;
            self.refresh(id);
        }
        self.note_blocked();
    }

    fn update_send<T>(&mut self, id: StreamId, update: impl FnOnce(&mut SendHalf) -> T) -> Option<T> {
        let Found::Live(Stream { send: Some(send), .. }) = self.map.find(id) else { return None };
        let result = update(send);
        self.refresh(id);
        Some(result)
    }

    pub(super) fn update_recv(&mut self, id: StreamId, update: impl FnOnce(&mut RecvHalf)) {
        if let Found::Live(Stream { recv: Some(recv), .. }) = self.map.find(id) {
            update(recv);
            self.refresh(id);
        }
    }
}

impl FrameOwner for Streams {
    fn has_unsent(&self) -> bool {
        self.has_control() || self.has_data() || self.is_code_due()
    }

    fn write(&mut self, writer: &mut FrameWriter<'_>) {
        self.write_control(writer);
        // Before data, the last of which may have no length.
        self.write_code(writer);
        self.write_data(writer);
    }

    fn on_acked(&mut self, frame: &SentFrame) -> bool {
        match *frame {
            SentFrame::Stream { id, start, end, fin } => {
                let freed = self.update_send(id, |send| send.acked(start, end, fin));
                self.release(freed.unwrap_or(0));
            }
            SentFrame::ResetStream(id) => {
                self.update_send(id, SendHalf::reset_acked);
            }
            SentFrame::AckWindow { edition, .. } => self.riding.confirm(edition),
            // Limits and requests need no more once they have arrived.
            _ => return is_of_streams(frame),
        }
        true
    }

    /// What the frame carried is sent again if that still matters (RFC 9000 section 13.3).
    fn on_lost(&mut self, frame: &SentFrame) -> bool {
        match *frame {
            SentFrame::Stream { id, start, end, fin } => {
                let twice = self.lost_again;
                self.update_send(id, |send| send.lost(start, end, fin, twice));
            }
            SentFrame::ResetStream(id) => {
                self.update_send(id, SendHalf::reset_lost);
            }
            SentFrame::StreamDataBlocked(id) => {
                self.update_send(id, |send| send.window.report_lost());
            }
            SentFrame::StopSending(id) => self.update_recv(id, RecvHalf::stop_lost),
            SentFrame::MaxStreamData(id) => self.update_recv(id, RecvHalf::update_lost),
            SentFrame::MaxData => self.receive_window.update_lost(),
            SentFrame::MaxStreams(direction) => self.remote_mut(direction).is_update_pending = true,
            SentFrame::DataBlocked => self.send_window.report_lost(),
            SentFrame::StreamsBlocked(direction) => self.local_mut(direction).window.report_lost(),
            SentFrame::AckWindow { edition, .. } => self.limits_lost(edition),
            _ => return false,
        }
        true
    }
}

/// True for frames of limits and requests, whose loss alone the streams must know.
fn is_of_streams(frame: &SentFrame) -> bool {
    matches!(
        frame,
        SentFrame::StopSending(_)
            | SentFrame::MaxData
            | SentFrame::MaxStreamData(_)
            | SentFrame::MaxStreams(_)
            | SentFrame::DataBlocked
            | SentFrame::StreamDataBlocked(_)
            | SentFrame::StreamsBlocked(_)
    )
}

/// Writes the control frames of one stream. False if one does not fit.
fn write_stream_control(stream: &mut Stream, id: StreamId, writer: &mut FrameWriter<'_>) -> bool {
    stream.recv.as_mut().is_none_or(|recv| recv.write_control(id, writer))
        && stream.send.as_mut().is_none_or(|send| send.write_control(id, writer))
}
