//! The receiving half of a stream (RFC 9000 section 3.2).

use bytes::Bytes;
use posthaste_policy::sample::CreditMoment;
use posthaste_wire::StreamId;
use posthaste_wire::frame::{Frame, StopSending};

use super::assembler::Assembler;
use super::stream::CreditFactory;
use crate::error::{PeerError, TransportErrorCode};
use crate::flow::{CreditContext, ReceiveWindow, Surroundings};
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;

/// What the application finds when it reads a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The next bytes, never empty.
    Data(Bytes),
    /// The stream has ended, and all of it has been read.
    Finished,
    /// Nothing is there yet: [`super::StreamEvent::Readable`] tells when.
    Blocked,
}

/// The application's wish to receive no more.
#[derive(Debug)]
struct Stop {
    error_code: u64,
    /// True while `STOP_SENDING` is to be sent.
    is_due: bool,
}

/// The receiving half of a stream.
#[derive(Debug, Default)]
pub(super) struct RecvHalf {
    assembler: Assembler,
    pub(super) window: ReceiveWindow,
    final_size: Option<u64>,
    /// The peer's code, once it has reset the stream; everything unread is void then.
    reset: Option<u64>,
    /// The application wants no more: what comes is counted and dropped.
    stop: Option<Stop>,
    /// The last read found nothing: an event is owed when there is something.
    pub(super) is_reader_waiting: bool,
    /// True while the stream is listed as having received data since the last ACK.
    pub(super) is_listed_for_ack: bool,
}

impl RecvHalf {
    /// Begins as a half with this window; it is new, or another has ended as this one and is empty.
    pub(super) fn begin(&mut self, half_window: ReceiveWindow) {
        let Self { assembler: _, window, final_size, reset, stop, is_reader_waiting, is_listed_for_ack } =
            self;
        *window = half_window;
        (*final_size, *reset, *stop) = (None, None, None);
        (*is_reader_waiting, *is_listed_for_ack) = (true, false);
    }

    /// Gives back all memory but its own.
    pub(super) fn empty(&mut self) {
        self.assembler.empty();
        self.window = ReceiveWindow::of_stream(0);
    }

    /// Gives back room that is not in use.
    pub(super) fn shrink(&mut self) {
        self.assembler.shrink();
    }

    /// Checks data up to `end`, or the final size `end`, against what is known of the stream, its credit and
    /// the connection's. Returns the bytes that have not been counted before.
    pub(super) fn check(
        &self,
        end: u64,
        is_final: bool,
        connection: &ReceiveWindow,
    ) -> Result<u64, PeerError> {
        let error = |code, reason| Err(PeerError::new(code, reason));
        // spec: rfc9000 4.5 final-size-holds
        // RFC 9000 section 4.5.
        match self.final_size {
            Some(size) if end > size => {
                return error(TransportErrorCode::FINAL_SIZE_ERROR, "data beyond the stream's final size");
            }
            Some(size) if is_final && end != size => {
                return error(TransportErrorCode::FINAL_SIZE_ERROR, "the stream's final size changed");
            }
            _ if is_final && end < self.window.received() => {
                return error(TransportErrorCode::FINAL_SIZE_ERROR, "final size below data received");
            }
            _ => {}
        }
        // spec: rfc9000 4.1 excess-closes, 19.9 connection-excess-closes, 19.10 stream-excess-closes
        // RFC 9000 section 4.1.
        let fresh = end.saturating_sub(self.window.received());
        if !self.window.permits(fresh) {
            return error(TransportErrorCode::FLOW_CONTROL_ERROR, "beyond the stream's limit");
        }
        if !connection.permits(fresh) {
            return error(TransportErrorCode::FLOW_CONTROL_ERROR, "beyond the connection's limit");
        }
        Ok(fresh)
    }

    /// Takes in data that [`Self::check`] has passed.
    pub(super) fn insert(&mut self, offset: u64, data: Bytes, fin: bool, connection: &mut ReceiveWindow) {
        let end = offset.saturating_add(data.len() as u64);
        self.count(end, connection);
        if fin {
            self.final_size = Some(end);
        }
        if self.is_stopped() || self.reset.is_some() {
            self.discard(connection);
        } else {
            self.assembler.insert(offset, data);
            let fresh = self.assembler.contiguous().saturating_sub(self.window.ordered());
            self.window.order(fresh);
            connection.order(fresh);
        }
    }

    /// Takes in a reset whose final size [`Self::check`] has passed.
    pub(super) fn reset(&mut self, error_code: u64, final_size: u64, connection: &mut ReceiveWindow) {
        // With all data and the end here the reset may be ignored (section 3.2, "Data Recvd"): they are read as
        // usual. Without the end, data up to the final size are no whole stream.
        // spec: rfc9000 4.5 final-size-is-counted, 4.4 other-direction-goes-on
        let is_complete = self.has_everything();
        self.count(final_size, connection);
        self.final_size = Some(final_size);
        if self.reset.is_none() && !is_complete {
            self.reset = Some(error_code);
            if let Some(stop) = &mut self.stop {
                stop.is_due = false;
            }
            self.discard(connection);
        }
    }

    fn count(&mut self, end: u64, connection: &mut ReceiveWindow) {
        let fresh = end.saturating_sub(self.window.received());
        self.window.receive(fresh);
        connection.receive(fresh);
    }

    /// Gives up what is unread: to the connection it counts as read, or its window would leak.
    fn discard(&mut self, connection: &mut ReceiveWindow) {
        self.assembler = Assembler::default();
        let beyond_gaps = self.window.received().saturating_sub(self.window.ordered());
        self.window.order(beyond_gaps);
        connection.order(beyond_gaps);
        let unread = self.window.received().saturating_sub(self.window.consumed());
        self.window.consume(unread);
        connection.consume(unread);
    }

    /// True if data are missing that the application wants, or the end.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.is_stopped() && self.reset.is_none() && !self.has_everything()
    }

    /// What has arrived and was not read.
    pub(super) fn assembler(&self) -> &Assembler {
        &self.assembler
    }

    fn has_everything(&self) -> bool {
        self.final_size == Some(self.assembler.contiguous())
    }

    /// The application wants no more of the stream.
    pub(super) fn stop(&mut self, error_code: u64, connection: &mut ReceiveWindow) {
        let is_due = self.reset.is_none() && !self.has_everything();
        self.stop = Some(Stop { error_code, is_due });
        self.discard(connection);
    }

    /// True if the application has said that it wants no more.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// The peer's code, if it has reset the stream.
    pub(super) fn reset_code(&self) -> Option<u64> {
        self.reset
    }

    /// True if a read would find something: data, the end or a reset.
    pub(super) fn is_readable(&self) -> bool {
        !self.is_stopped()
            && (self.reset.is_some()
                || self.assembler.is_readable()
                || self.final_size == Some(self.assembler.read_offset()))
    }

    /// Reads at most `max` bytes, and counts them as consumed.
    pub(super) fn read(&mut self, max: usize, connection: &mut ReceiveWindow) -> Read {
        if let Some(data) = self.assembler.read(max) {
            self.window.consume(data.len() as u64);
            connection.consume(data.len() as u64);
            return Read::Data(data);
        }
        if self.final_size == Some(self.assembler.read_offset()) {
            return Read::Finished;
        }
        self.is_reader_waiting = true;
        Read::Blocked
    }

    /// True if the half is over once the application has been told what it was told: nothing more can come
    /// that matters, and nothing is to be sent.
    pub(super) fn is_done_after_stop(&self) -> bool {
        self.final_size.is_some() && self.stop.as_ref().is_some_and(|stop| !stop.is_due)
    }

    /// True while more credit is of use to the peer.
    pub(super) fn wants_credit(&self) -> bool {
        self.final_size.is_none() && !self.is_stopped()
    }

    /// Asks the credit policy, which `make` makes for the first time. True if an update is to be sent.
    pub(super) fn ask(
        &mut self,
        moment: CreditMoment,
        context: &CreditContext,
        around: &Surroundings,
        make: &CreditFactory,
    ) -> bool {
        self.wants_credit() && self.window.ask_or_make(moment, context, around, make)
    }

    /// `STOP_SENDING` was lost: it is sent again unless it has become pointless.
    pub(super) fn stop_lost(&mut self) {
        if let Some(stop) = &mut self.stop {
            stop.is_due = self.final_size.is_none();
        }
    }

    /// `MAX_STREAM_DATA` was lost.
    pub(super) fn update_lost(&mut self) {
        if self.wants_credit() {
            self.window.update_lost();
        }
    }

    /// True if a control frame is due.
    pub(super) fn has_control(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.is_due)
            || (self.wants_credit() && self.window.is_update_pending())
    }

    /// Writes the control frames that are due. False if one does not fit.
    pub(super) fn write_control(&mut self, id: StreamId, writer: &mut FrameWriter<'_>) -> bool {
        if let Some(stop) = self.stop.as_mut().filter(|stop| stop.is_due) {
            let frame = Frame::StopSending(StopSending { id, error_code: stop.error_code });
            if !writer.push(&frame, Some(SentFrame::StopSending(id))) {
                return false;
            }
            stop.is_due = false;
        }
        if self.wants_credit() && self.window.is_update_pending() {
            let frame = Frame::MaxStreamData { id, maximum: self.window.advertised() };
            if !writer.push(&frame, Some(SentFrame::MaxStreamData(id))) {
                return false;
            }
            self.window.update_sent();
        }
        true
    }
}
