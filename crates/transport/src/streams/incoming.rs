//! Frames from the peer.

use posthaste_policy::sample::CreditMoment;
use posthaste_wire::frame::{Frame, ResetStream, StopSending, StreamFrame};
use posthaste_wire::{Direction, StreamId};

use super::map::Found;
use super::{MAX_STREAMS, StreamEvent, Streams};
use crate::error::{PeerError, TransportErrorCode};
use crate::flow::CreditContext;

/// Type of STREAM frames without their flags (RFC 9000 section 19.8).
const STREAM: u64 = 0x08;
const RESET_STREAM: u64 = 0x04;
const STOP_SENDING: u64 = 0x05;
const MAX_STREAM_DATA: u64 = 0x11;
const STREAM_DATA_BLOCKED: u64 = 0x15;

/// Which half of a stream, as this end sees it, a frame is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Send,
    Recv,
}

impl Streams {
    /// Checks that the peer may name the stream in a frame for this half, and opens it if that is new
    /// (RFC 9000 sections 2.1, 3.2 and 19.4 to 19.13).
    fn admit(&mut self, id: StreamId, half: Half) -> Result<(), PeerError> {
        let maker = &self.map.maker;
        let state_error = |reason| Err(PeerError::new(TransportErrorCode::STREAM_STATE_ERROR, reason));
        match half {
            // spec: rfc9000 19.5 stop-of-receive-only, 19.10 credit-for-receive-only
            Half::Send if !maker.sends_on(id) => {
                return state_error("frame for the sender of a stream that only the peer sends on");
            }
            // spec: rfc9000 19.4 reset-of-send-only, 19.8 data-for-send-only, 19.13 blocked-for-send-only
            Half::Recv if !maker.receives_on(id) => {
                return state_error("frame for the receiver of a stream that the peer does not send on");
            }
            _ => {}
        }
        if id.initiator() == self.side {
            // spec: rfc9000 19.5 stop-of-unopened, 19.8 data-for-unopened, 19.10 credit-for-unopened
            let is_open = maker.is_permitted(id) && id.index() < self.map.table_of(id).next();
            return if is_open { Ok(()) } else { state_error("frame for a stream that was not opened") };
        }
        let direction = id.direction();
        let remote = self.remote_mut(direction);
        // spec: rfc9000 4.6 excess-streams-close, 19.11 excess-count-closes
        if id.index() >= remote.advertised {
            return Err(PeerError::new(
                TransportErrorCode::STREAM_LIMIT_ERROR,
                "more streams than permitted",
            ));
        }
        let table = self.map.table_of(id);
        if id.index() >= table.next() {
            // spec: rfc9000 3.2 lower-streams-open-first
            table.open_below(id.index() + 1);
            let remote = self.remote_mut(direction);
            if !std::mem::replace(&mut remote.is_event_queued, true) {
                self.events.push_back(StreamEvent::Opened { direction });
            }
        }
        Ok(())
    }

    /// STREAM (RFC 9000 section 19.8).
    pub(crate) fn on_stream(&mut self, frame: StreamFrame, context: &CreditContext) -> Result<(), PeerError> {
        self.receive(frame, context).map_err(|error| error.in_frame(STREAM))
    }

    pub(super) fn receive(&mut self, frame: StreamFrame, context: &CreditContext) -> Result<(), PeerError> {
        let StreamFrame { id, offset, data, fin } = frame;
        self.admit(id, Half::Recv)?;
        let Found::Live(stream) = self.map.find(id) else { return Ok(()) };
        let Some(recv) = &mut stream.recv else { return Ok(()) };
        let end = offset.saturating_add(data.len() as u64);
        recv.check(end, fin, &self.receive_window)?;
        let coded = self.code.receiver.has_block(id).then(|| data.clone());
        self.code.receiver.count(data.len());
        let consumed = self.receive_window.consumed();
        recv.insert(offset, data, fin, &mut self.receive_window);
        // What an end makes void: credit that was to be sent, a wish that the peer should stop, a code.
        let is_end_of_use =
            fin && (stream.is_control_queued || recv.is_stopped() || !self.code.receiver.is_empty());
        if !std::mem::replace(&mut recv.is_listed_for_ack, true) {
            self.received_since_ack.push(id);
        }
        if recv.is_reader_waiting && recv.is_readable() {
            recv.is_reader_waiting = false;
            self.events.push_back(StreamEvent::Readable(id));
        }
        self.last_context = Some(*context);
        if self.receive_window.consumed() > consumed {
            self.ask_connection(CreditMoment::Consumed, context);
        }
        if is_end_of_use {
            self.refresh(id);
        }
        if let Some(data) = coded {
            self.on_data_for_code(id, offset, &data, context);
        }
        Ok(())
    }

    /// `RESET_STREAM` (RFC 9000 section 19.4).
    pub(crate) fn on_reset_stream(
        &mut self,
        frame: &ResetStream,
        context: &CreditContext,
    ) -> Result<(), PeerError> {
        self.receive_reset(frame, context).map_err(|error| error.in_frame(RESET_STREAM))
    }

    fn receive_reset(&mut self, frame: &ResetStream, context: &CreditContext) -> Result<(), PeerError> {
        let ResetStream { id, error_code, final_size } = *frame;
        self.admit(id, Half::Recv)?;
        let Found::Live(stream) = self.map.find(id) else { return Ok(()) };
        let Some(recv) = &mut stream.recv else { return Ok(()) };
        recv.check(final_size, true, &self.receive_window)?;
        recv.reset(error_code, final_size, &mut self.receive_window);
        if recv.is_reader_waiting && recv.is_readable() {
            recv.is_reader_waiting = false;
            self.events.push_back(StreamEvent::Readable(id));
        }
        self.ask_connection(CreditMoment::Consumed, context);
        self.refresh(id);
        Ok(())
    }

    /// `STOP_SENDING` (RFC 9000 section 19.5): the stream is reset with the peer's code, as section 3.5 asks.
    pub(crate) fn on_stop_sending(&mut self, frame: &StopSending) -> Result<(), PeerError> {
        let StopSending { id, error_code } = *frame;
        self.admit(id, Half::Send).map_err(|error| error.in_frame(STOP_SENDING))?;
        let Found::Live(stream) = self.map.find(id) else { return Ok(()) };
        let Some(send) = &mut stream.send else { return Ok(()) };
        if send.stopped.is_some() || send.is_reset() {
            return Ok(());
        }
        // spec: rfc9000 3.5 stop-answered-by-reset, 11.2 reset-by-application
        send.stopped = Some(error_code);
        let freed = send.reset(error_code);
        self.events.push_back(StreamEvent::Stopped { id, error_code });
        self.refresh(id);
        self.release(freed);
        Ok(())
    }

    /// `MAX_DATA` (RFC 9000 section 19.9).
    pub(crate) fn on_max_data(&mut self, maximum: u64) {
        if self.send_window.raise(maximum) {
            self.note_blocked();
        }
    }

    /// `MAX_STREAM_DATA` (RFC 9000 section 19.10).
    pub(crate) fn on_max_stream_data(&mut self, id: StreamId, maximum: u64) -> Result<(), PeerError> {
        self.admit(id, Half::Send).map_err(|error| error.in_frame(MAX_STREAM_DATA))?;
        if let Found::Live(stream) = self.map.find(id)
            && let Some(send) = &mut stream.send
            && send.window.raise(maximum)
        {
            self.refresh(id);
            self.note_blocked();
        }
        Ok(())
    }

    /// `MAX_STREAMS` (RFC 9000 section 19.11).
    pub(crate) fn on_max_streams(&mut self, direction: Direction, maximum: u64) -> Result<(), PeerError> {
        check_stream_count(maximum)
            .map_err(|error| error.in_frame(Frame::MaxStreams { direction, maximum }.frame_type()))?;
        self.permit(direction, maximum);
        Ok(())
    }

    /// `DATA_BLOCKED` (RFC 9000 section 19.12).
    pub(crate) fn on_data_blocked(&mut self, limit: u64, context: &CreditContext) {
        self.ask_connection(CreditMoment::Blocked, context);
        if limit < self.receive_window.advertised() {
            self.repeat_limits(None);
        }
    }

    /// `STREAM_DATA_BLOCKED` (RFC 9000 section 19.13).
    pub(crate) fn on_stream_data_blocked(
        &mut self,
        id: StreamId,
        limit: u64,
        context: &CreditContext,
    ) -> Result<(), PeerError> {
        self.admit(id, Half::Recv).map_err(|error| error.in_frame(STREAM_DATA_BLOCKED))?;
        let mut around = self.surroundings(false);
        if let (Found::Live(stream), credit) = self.map.find_with_credit(id)
            && let Some(recv) = &mut stream.recv
        {
            around.is_ack_due = recv.is_listed_for_ack;
            let is_pending = recv.ask(CreditMoment::Blocked, context, &around, credit);
            let is_outdated = limit < recv.window.advertised() && recv.wants_credit();
            if is_pending {
                self.refresh(id);
            }
            if is_pending || is_outdated {
                self.repeat_limits(Some(id));
            }
        }
        Ok(())
    }

    /// `STREAMS_BLOCKED` (RFC 9000 section 19.14).
    pub(crate) fn on_streams_blocked(&mut self, direction: Direction, limit: u64) -> Result<(), PeerError> {
        check_stream_count(limit)
            .map_err(|error| error.in_frame(Frame::StreamsBlocked { direction, limit }.frame_type()))?;
        self.remote_mut(direction).advance(true);
        Ok(())
    }
}

/// A number of streams is at most 2^60 (RFC 9000 sections 19.11 and 19.14).
fn check_stream_count(count: u64) -> Result<(), PeerError> {
    // spec: rfc9000 19.11 count-limit, 19.14 blocked-count-limit
    if count > MAX_STREAMS {
        return Err(PeerError::new(
            TransportErrorCode::FRAME_ENCODING_ERROR,
            "more streams than there can be",
        ));
    }
    Ok(())
}
