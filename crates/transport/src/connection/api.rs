//! The verbs of a connection's user.

use std::net::SocketAddr;

use bytes::Bytes;
use posthaste_units::Time;
use posthaste_wire::frame::{CloseFrame, CloseKind};
use posthaste_wire::{ConnectionId, Direction, Side, StreamId};
use rustls_pki_types::CertificateDer;

use crate::connection::Connection;
use crate::crypto::OneRttKeys;
use crate::error::LocalError;
use crate::events::CloseReason;
use crate::packet::space::PacketSpace;
use crate::streams::{Priority, Read, ReadError, WriteError};

/// Longest reason that is sent in a close, in bytes, so that it fits the smallest datagram.
const MAX_CLOSE_REASON: usize = 512;

impl Connection {
    /// Opens a stream. Its peer learns of it with the first frame on it.
    ///
    /// # Errors
    /// [`LocalError::StreamLimit`] if the peer permits no further stream yet; [`StreamEvent::Available`] tells
    /// when it does. [`LocalError::Closed`] on a closed connection.
    ///
    /// [`StreamEvent::Available`]: crate::StreamEvent::Available
    pub fn open(&mut self, direction: Direction) -> Result<StreamId, LocalError> {
        self.check_open()?;
        self.streams.open(direction)
    }

    /// The next stream that the peer has opened, in order, or `None` if there is none yet.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        self.streams.accept(direction)
    }

    /// Takes bytes from the front of `data`, without copying. Zero means that the stream's buffer is full: a
    /// [`StreamEvent::Writable`](crate::StreamEvent::Writable) follows.
    ///
    /// # Errors
    /// [`WriteError::Stopped`] if the peer wants no more; [`WriteError::Local`] for misuse.
    pub fn write(&mut self, id: StreamId, data: &mut Bytes) -> Result<usize, WriteError> {
        self.check_open()?;
        self.streams.set_congestion_window(self.path.control.window());
        self.streams.write(id, data)
    }

    /// Takes a copy of the front of `data`: as [`Self::write`] for data that are not in memory of their own.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_copy(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        self.check_open()?;
        self.streams.set_congestion_window(self.path.control.window());
        self.streams.write_copy(id, data)
    }

    /// Ends the stream after what has been written.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.check_open()?;
        self.streams.finish(id)
    }

    /// Gives a sending stream up: what is unsent is dropped, the peer gets `error_code`.
    ///
    /// # Errors
    /// Misuse only.
    pub fn reset(&mut self, id: StreamId, error_code: u64) -> Result<(), LocalError> {
        self.check_open()?;
        self.streams.reset(id, error_code)
    }

    /// At most `max` bytes of what has arrived next on the stream, as a slice of the received datagram.
    ///
    /// # Errors
    /// [`ReadError::Reset`] if the peer gave the stream up; [`ReadError::Local`] for misuse.
    pub fn read(&mut self, now: Time, id: StreamId, max: usize) -> Result<Read, ReadError> {
        let context = self.credit_context(now);
        self.streams.read(id, max, &context)
    }

    /// Tells the peer that no more of the stream is wanted, and drops what has come of it.
    ///
    /// # Errors
    /// Misuse only.
    pub fn stop_sending(&mut self, id: StreamId, error_code: u64) -> Result<(), LocalError> {
        self.check_open()?;
        self.streams.stop_sending(id, error_code)
    }

    /// Ranks a sending stream against the connection's others.
    ///
    /// # Errors
    /// [`LocalError::UnknownStream`] if the stream does not send, or no longer.
    pub fn set_priority(&mut self, id: StreamId, priority: Priority) -> Result<(), LocalError> {
        self.streams.set_priority(id, priority)
    }

    /// Closes the connection with an application error code. Streams are abandoned; `reason` is for people,
    /// and cut to 512 bytes.
    pub fn close(&mut self, now: Time, error_code: u64, mut reason: Bytes) {
        reason.truncate(MAX_CLOSE_REASON);
        let error_code = error_code.min(posthaste_wire::varint::MAX);
        let frame = CloseFrame { error_code, kind: CloseKind::Application, reason };
        self.close_with(now, frame, CloseReason::Local { error_code });
    }

    /// Sends a PING with the next packet: the peer must acknowledge it.
    pub fn ping(&mut self) {
        if self.lifecycle.is_open() {
            self.eliciting.ping();
        }
    }

    /// The way to the peer may be open again, as after the network was lost: sends a probe at once rather than when the
    /// next probe timeout is due, and lets the back-off begin anew.
    pub fn probe(&mut self, now: Time) {
        if !self.lifecycle.is_open() {
            return;
        }
        self.recovery.restart_probing();
        if self.handshake.is_confirmed() {
            self.eliciting.owe_probe(PacketSpace::Data);
            self.recovery.frames_to_probe(PacketSpace::Data, self.outcome.get_or_insert_default());
        }
        self.probe_handshake_beside(PacketSpace::Data);
        self.settle_outcome(now);
        self.update_timers(now);
    }

    /// Begins a key update (RFC 9001 section 6.1).
    ///
    /// # Errors
    /// [`LocalError::TooEarly`] before the handshake is confirmed or while the last update is under way.
    pub fn update_keys(&mut self) -> Result<(), LocalError> {
        // spec: rfc9001 6.1 not-before-confirmed
        let is_confirmed = self.handshake.is_confirmed();
        match self.handshake.one_rtt_mut() {
            Some(keys) if is_confirmed && keys.may_update() => keys.rotate(),
            _ => return Err(LocalError::TooEarly),
        }
        Ok(())
    }

    /// Key updates so far, by either end.
    pub fn key_updates(&self) -> u64 {
        self.handshake.one_rtt().map_or(0, OneRttKeys::updates)
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.handshake.side()
    }

    /// The QUIC version's number.
    pub(crate) fn version(&self) -> u32 {
        self.setup.version
    }

    /// The peer's address.
    pub fn remote(&self) -> SocketAddr {
        self.path.remote
    }

    /// The ID that the client first sent to: the connection's name in logs and traces at both ends.
    pub fn original_destination(&self) -> ConnectionId {
        self.setup.original_destination
    }

    /// True until the handshake is complete.
    pub fn is_handshaking(&self) -> bool {
        !self.handshake.is_complete()
    }

    /// True once either end has closed.
    pub fn is_closed(&self) -> bool {
        !self.lifecycle.is_open()
    }

    /// The application protocol agreed on, once the handshake is complete.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.handshake.summary().application_protocol.as_deref()
    }

    /// On a server: the name that the client asked for, once the handshake is complete.
    pub fn server_name(&self) -> Option<&str> {
        self.handshake.summary().server_name.as_deref()
    }

    /// The peer's certificates, leaf first, once the handshake is complete.
    pub fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.handshake.summary().peer_certificates.as_deref()
    }

    /// True if the handshake is complete and went on from an earlier session, without certificates.
    pub fn is_resumed(&self) -> bool {
        self.handshake.summary().is_resumed
    }

    /// Streams that are not over yet.
    pub fn open_streams(&self) -> usize {
        self.streams.open_streams()
    }

    fn check_open(&self) -> Result<(), LocalError> {
        if self.lifecycle.is_open() { Ok(()) } else { Err(LocalError::Closed) }
    }
}
