//! Frames that concern several parts of the connection, and the outcome of each frame sent, told to its owner.

use posthaste_policy::sample::AckView;
use posthaste_units::{ByteCount, Time};
use posthaste_wire::Side;
use posthaste_wire::frame::{AckFrame, AckWindowFrame, CloseFrame, CloseKind};

use crate::connection::Connection;
use crate::control::outcome::AckOutcome;
use crate::error::{Fault, PeerError, TransportErrorCode};
use crate::events::{CloseReason, Event};
use crate::packet::datagram::PacketContext;
use crate::packet::sent_frame::SentFrame;
use crate::packet::space::PacketSpace;
use crate::streams::CreditContext;

impl Connection {
    /// What credit policies are told of the moment.
    pub(crate) fn credit_context(&self, now: Time) -> CreditContext {
        let rtt = self.path.control.rtt();
        CreditContext {
            now,
            rtt: rtt.is_measured.then_some(rtt.smoothed),
            max_datagram_size: self.path.max_datagram_size().into(),
            arrivals: self.acks.arrivals(),
            floor: self.link.map_or(ByteCount::ZERO, |link| link.window(&rtt)),
        }
    }

    /// `ACK_WINDOW` (docs/spec/ack-window.md): the limits first, so that what the ACK sets off may use them.
    pub(super) fn on_ack_window(
        &mut self,
        context: &PacketContext,
        frame: &AckWindowFrame,
    ) -> Result<(), Fault> {
        if !self.config.ack_window {
            let reason = "ACK_WINDOW was not offered";
            return Err(PeerError::new(TransportErrorCode::FRAME_ENCODING_ERROR, reason).into());
        }
        self.streams.on_max_data(frame.update.max_data);
        for (id, maximum) in &frame.update.streams {
            self.streams.on_max_stream_data(*id, *maximum).map_err(|mut error| {
                error.frame_type = 0;
                error
            })?;
        }
        self.on_ack(context, &frame.ack)
    }

    /// Where limits travel inside of ACK frames, a peer that a limit blocks is answered at once.
    pub(super) fn answer_blocked_peer(&mut self, now: Time) {
        if self.streams.rides_in_acks() {
            self.acks.on_immediate(now);
        }
    }

    pub(super) fn on_ack(&mut self, context: &PacketContext, ack: &AckFrame) -> Result<(), Fault> {
        self.counters.acks_received += 1;
        let view = self.handshake_view();
        let space = context.space;
        let path = &mut self.path.control.measured();
        self.recovery.on_ack(context.now, space, ack, view, path, self.outcome.get_or_insert_default())?;
        if let (PacketSpace::Data, Some(range)) = (space, ack.ranges.first())
            && let Some(keys) = self.handshake.one_rtt_mut()
        {
            keys.on_acked(*range.end());
        }
        if space == PacketSpace::Handshake {
            // The server acknowledged a Handshake packet, so it has validated our address (RFC 9002 A.8).
            self.setup.peer_validated_address = true;
        }
        self.settle_outcome(context.now);
        self.ask_for_acks();
        Ok(())
    }

    /// Once a round trip the policy may ask the peer for other acks.
    fn ask_for_acks(&mut self) {
        // spec: rfc9000 19.21 extension-understood
        let Some(least_delay) = self.acks.requests.peer_least_delay() else { return };
        let max_datagram_size = self.path.max_datagram_size().into();
        let control = &mut self.path.control;
        if !control.take_round_started() || !self.handshake.is_confirmed() {
            return;
        }
        let state = control.state();
        let view = AckView {
            phase: state.phase,
            window: state.window,
            max_datagram_size,
            rtt: control.rtt(),
            least_delay,
        };
        if let Some(request) = self.acks.ask(&view) {
            // Until the peer has the request it may wait as long as before (section 8).
            self.recovery.raise_peer_max_ack_delay(request.max_ack_delay);
        }
    }

    /// Makes a call with room of the router's for what recovery finds out: as much as a connection has seen at once, which
    /// each would else keep for itself.
    pub(crate) fn with_outcome<T>(
        &mut self,
        room: &mut Option<Box<AckOutcome>>,
        call: impl FnOnce(&mut Self) -> T,
    ) -> T {
        std::mem::swap(&mut self.outcome, room);
        let result = call(self);
        std::mem::swap(&mut self.outcome, room);
        result
    }

    /// Tells all whom it concerns what recovery has found out: the path's policies, the search for its datagram size,
    /// the owners of the frames, the counters and the trace.
    pub(crate) fn settle_outcome(&mut self, now: Time) {
        let mut outcome = self.outcome.take().unwrap_or_default();
        self.path.control.on_outcome(now, &mut outcome);
        self.look_for_black_hole(now, &outcome);
        for (space, frame) in &outcome.acked_frames {
            self.on_frame_acked(now, *space, frame);
        }
        if let Some(delay) = self.acks.requests.take_agreed() {
            self.recovery.set_peer_max_ack_delay(delay);
        }
        for (space, frame) in &outcome.lost_frames {
            self.on_frame_lost(now, *space, frame);
        }
        self.counters.packets_lost += outcome.lost_packets.len() as u64;
        self.counters.packets_spuriously_lost += outcome.spurious_packets();
        self.counters.packets_marked += outcome.newly_marked;
        let jumps = self.path.control.take_jumps();
        self.counters.jumps.taken += jumps.taken;
        self.counters.jumps.undone += jumps.undone;
        self.log.packets_lost(now, &outcome);
        outcome.clear();
        self.outcome = Some(outcome);
        self.send_lost_handshake_data();
        if let Some(notice) = self.path.control.take_notice() {
            self.counters.notices += 1;
            self.log.notice(now, &notice);
            self.emit(Event::Notice(notice));
        }
    }

    /// Lost handshake data must not wait for the window: 1-RTT packets that fill it cannot be acknowledged before
    /// the handshake is complete, and have no probe timeout until then. With nothing of the handshake in flight
    /// there would be no timer either, and both ends would wait for ever. One packet goes as a probe would; what
    /// follows it has its probe timeout.
    fn send_lost_handshake_data(&mut self) {
        if self.handshake.is_confirmed() {
            return;
        }
        for space in [PacketSpace::Initial, PacketSpace::Handshake] {
            let is_waiting = self.handshake.has_keys(space) && self.handshake.has_frames(space);
            if is_waiting && !self.recovery.has_ack_eliciting_in_flight(space) {
                self.eliciting.owe_probe(space);
            }
        }
    }

    /// A frame has arrived. Those of all packet number spaces are dealt with here, the others by their owners.
    fn on_frame_acked(&mut self, now: Time, space: PacketSpace, frame: &SentFrame) {
        match frame {
            SentFrame::Crypto { start, end } => {
                return self.handshake.on_crypto_acked(space, *start, *end);
            }
            SentFrame::MtuProbe { path, size } => return self.on_mtu_probe_acked(now, *path, *size),
            // The limits that came with an ACK_WINDOW are the streams'.
            SentFrame::Ack { largest } | SentFrame::AckWindow { largest, .. } => {
                self.acks.received[space].on_ack_acked(*largest);
            }
            SentFrame::HandshakeDone => return,
            _ => {}
        }
        let is_owned = self.frame_owners().into_iter().rev().any(|owner| owner.on_acked(frame));
        debug_assert!(is_owned || matches!(frame, SentFrame::Ack { .. }), "{frame:?} is nobody's");
    }

    fn on_frame_lost(&mut self, now: Time, space: PacketSpace, frame: &SentFrame) {
        match frame {
            SentFrame::Crypto { start, end } => self.handshake.on_crypto_lost(space, *start, *end),
            SentFrame::HandshakeDone => self.handshake.on_done_lost(),
            SentFrame::MtuProbe { path, size } => self.on_mtu_probe_lost(now, *path, *size),
            SentFrame::Ack { .. } => {}
            frame => {
                let is_owned = self.frame_owners().into_iter().rev().any(|owner| owner.on_lost(frame));
                debug_assert!(is_owned, "{frame:?} is nobody's");
            }
        }
    }

    pub(super) fn on_handshake_done(&mut self, now: Time) -> Result<(), PeerError> {
        if self.side() == Side::Server {
            return Err(PeerError::new(
                TransportErrorCode::PROTOCOL_VIOLATION,
                // spec: rfc9000 19.20 done-from-client-closes
                "a client sent HANDSHAKE_DONE",
            ));
        }
        if !self.handshake.is_confirmed() {
            self.handshake.confirm_as_client();
            self.on_confirmed(now);
        }
        Ok(())
    }

    pub(super) fn on_close(&mut self, now: Time, close: CloseFrame) {
        let reason = match close.kind {
            CloseKind::Application => {
                CloseReason::PeerApplication { error_code: close.error_code, reason: close.reason }
            }
            CloseKind::Transport { frame_type } => CloseReason::PeerTransport {
                code: TransportErrorCode(close.error_code),
                frame_type,
                reason: close.reason,
            },
        };
        self.drain(now, reason);
    }
}
