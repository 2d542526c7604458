//! The handshake: TLS bytes in CRYPTO frames, the keys of each level, and how far it has come
//! (RFC 9001 section 4).

pub(crate) mod birth;
pub(crate) mod early;
pub(crate) mod parameters;
pub(crate) mod sessions;
pub(crate) mod setup;
mod tickets;

use bytes::Bytes;
use posthaste_wire::frame::{self, CryptoFrame};
use posthaste_wire::{Side, TransportParameters};
use rustls::quic::{KeyChange, Keys};
use rustls_pki_types::CertificateDer;

use crate::crypto::KeyLimits;
use crate::crypto::{CryptoSession, OneRttKeys};
use crate::error::{Fault, PeerError, TransportErrorCode};
use crate::limits;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;
use crate::packet::space::{PacketSpace, PerSpace};
use crate::streams::{Assembler, SendBuffer};

use early::EarlyKeys;
use tickets::Tickets;

/// TLS's `unexpected_message`: what a server is sent after its handshake.
const ALERT_UNEXPECTED_MESSAGE: u8 = 10;

/// TLS's `missing_extension` (RFC 9001 section 8.2).
const ALERT_MISSING_EXTENSION: u8 = 109;

/// TLS's `no_application_protocol` (RFC 9001 section 8.1).
const ALERT_NO_APPLICATION_PROTOCOL: u8 = 120;

/// A handshake in progress or complete.
#[expect(clippy::struct_excessive_bools, reason = "the handshake's milestones, each passed once")]
pub(crate) struct Handshake {
    /// CRYPTO data has arrived that TLS has not been shown.
    has_news: bool,
    side: Side,
    /// Dropped by a server once the handshake is complete, and by a client that rests and has tickets: it has nothing more to
    /// say.
    session: Option<Box<dyn CryptoSession>>,
    /// On a client: what has come after the handshake.
    tickets: Tickets,
    streams: PerSpace<Option<Box<CryptoStream>>>,
    initial: Option<Box<Keys>>,
    handshake: Option<Box<Keys>>,
    one_rtt: Option<Box<OneRttKeys>>,
    early: Option<Box<EarlyKeys>>,
    has_seen_early_keys: bool,
    key_limits: KeyLimits,
    has_peer_parameters: bool,
    is_complete: bool,
    is_confirmed: bool,
    done_is_due: bool,
    summary: Summary,
}

/// What outlives the TLS session.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// The application protocol.
    pub(crate) application_protocol: Option<Box<[u8]>>,
    /// The name that the client asked for (servers only).
    pub(crate) server_name: Option<Box<str>>,
    /// The handshake went on from an earlier session.
    pub(crate) is_resumed: bool,
    /// The peer's certificates, leaf first.
    pub(crate) peer_certificates: Option<Box<[CertificateDer<'static>]>>,
}

/// A step that the rest of the connection must follow, in order.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The peer's transport parameters have arrived. They are authenticated only with [`Progress::Complete`].
    Parameters {
        parameters: Box<TransportParameters>,
        /// On a client: what was sent in 0-RTT packets has been accepted.
        is_early_accepted: bool,
    },
    /// The keys of 0-RTT packets; on a client with the server's parameters of last time.
    EarlyKeys(Option<Box<TransportParameters>>),
    /// New keys: packets kept for want of them can be opened.
    Keys,
    /// The handshake is complete.
    Complete,
}

/// The TLS bytes of one level, both ways.
#[derive(Default)]
struct CryptoStream {
    received: Assembler,
    sending: SendBuffer,
}

impl Handshake {
    /// A handshake that has yet to begin; [`Self::advance`] makes a client write its first flight.
    pub(crate) fn new(
        side: Side,
        session: Box<dyn CryptoSession>,
        initial: Keys,
        key_limits: KeyLimits,
    ) -> Self {
        Self {
            side,
            has_news: false,
            session: Some(session),
            tickets: Tickets::default(),
            streams: PerSpace::default(),
            initial: Some(Box::new(initial)),
            handshake: None,
            one_rtt: None,
            early: None,
            has_seen_early_keys: false,
            key_limits,
            has_peer_parameters: false,
            is_complete: false,
            is_confirmed: false,
            done_is_due: false,
            summary: Summary::default(),
        }
    }

    /// Which end this is.
    pub(crate) fn side(&self) -> Side {
        self.side
    }

    /// True once TLS has finished at this end (RFC 9001 section 4.1.1).
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// True once both ends are known to have finished (RFC 9001 section 4.1.2).
    pub(crate) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// What is kept of the TLS session.
    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// True if packets of the space can be sealed and opened.
    pub(crate) fn has_keys(&self, space: PacketSpace) -> bool {
        match space {
            PacketSpace::Initial => self.initial.is_some(),
            PacketSpace::Handshake => self.handshake.is_some(),
            PacketSpace::Data => self.one_rtt.is_some(),
        }
    }

    /// True if packets of the space can be sealed: a client sends 1-RTT data in 0-RTT packets before it has the keys.
    pub(crate) fn can_send(&self, space: PacketSpace) -> bool {
        self.has_keys(space) || (space == PacketSpace::Data && self.sends_early())
    }

    /// True if packets of the 1-RTT space leave as 0-RTT packets.
    pub(crate) fn sends_early(&self) -> bool {
        self.side == Side::Client && self.one_rtt.is_none() && self.early.is_some()
    }

    /// True if 0-RTT packets may still turn out to be readable: the server has not seen the whole `ClientHello`.
    pub(crate) fn awaits_early_keys(&self) -> bool {
        self.side == Side::Server && self.early.is_none() && self.handshake.is_none() && !self.is_complete
    }

    /// The keys of 0-RTT packets.
    pub(crate) fn early_keys(&self) -> Option<&EarlyKeys> {
        self.early.as_deref()
    }

    /// The keys of 0-RTT packets, to use them.
    pub(crate) fn early_keys_mut(&mut self) -> Option<&mut EarlyKeys> {
        self.early.as_deref_mut()
    }

    /// The keys of 0-RTT packets are needed no longer.
    pub(crate) fn drop_early_keys(&mut self) {
        self.early = None;
    }

    /// The keys of a long-header space.
    pub(crate) fn long_keys(&self, space: PacketSpace) -> Option<&Keys> {
        match space {
            PacketSpace::Initial => self.initial.as_deref(),
            PacketSpace::Handshake => self.handshake.as_deref(),
            PacketSpace::Data => None,
        }
    }

    /// The 1-RTT keys.
    pub(crate) fn one_rtt(&self) -> Option<&OneRttKeys> {
        self.one_rtt.as_deref()
    }

    /// The 1-RTT keys, to use or update them.
    pub(crate) fn one_rtt_mut(&mut self) -> Option<&mut OneRttKeys> {
        self.one_rtt.as_deref_mut()
    }

    /// True if packets of the space may still arrive for which there are no keys yet.
    pub(crate) fn awaits_keys(&self, space: PacketSpace) -> bool {
        match space {
            PacketSpace::Initial => false,
            PacketSpace::Handshake => self.handshake.is_none() && !self.is_complete,
            PacketSpace::Data => !self.is_complete,
        }
    }

    /// Drops the keys of a space and what it had to send (RFC 9001 section 4.9). True if there were any.
    pub(crate) fn discard(&mut self, space: PacketSpace) -> bool {
        // spec: rfc9001 4.9.1 no-initial-after
        let keys = match space {
            PacketSpace::Initial => self.initial.take(),
            PacketSpace::Handshake => self.handshake.take(),
            PacketSpace::Data => None,
        };
        if keys.is_some() {
            self.streams[space] = None;
        }
        keys.is_some()
    }

    /// A Retry has renamed the server, and Initial keys follow from the name.
    pub(crate) fn replace_initial_keys(&mut self, keys: Keys) {
        self.initial = Some(Box::new(keys));
    }

    /// The level whose bytes TLS reads now.
    fn read_space(&self) -> PacketSpace {
        match (&self.handshake, self.is_complete) {
            (_, true) => PacketSpace::Data,
            (None, false) => PacketSpace::Initial,
            (Some(_), false) => PacketSpace::Handshake,
        }
    }

    /// Takes a CRYPTO frame in; [`Self::advance`] then tells what came of it.
    ///
    /// # Errors
    /// `CRYPTO_BUFFER_EXCEEDED` for data too far ahead, `PROTOCOL_VIOLATION` for new data at a level that TLS
    /// has left (RFC 9001 section 4.1.3), or TLS's own failure.
    pub(crate) fn on_crypto(&mut self, space: PacketSpace, frame: CryptoFrame) -> Result<(), Fault> {
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        let stream = self.streams[space].get_or_insert_default();
        // spec: rfc9000 7.5 dropped-crypto-acked
        if end <= stream.received.read_offset() {
            return Ok(());
        }
        self.has_news = true;
        // spec: rfc9000 7.5 crypto-overflow-closes
        if end - stream.received.read_offset() > limits::CRYPTO_BUFFER {
            let reason = "CRYPTO data too far ahead";
            return Err(PeerError::new(TransportErrorCode::CRYPTO_BUFFER_EXCEEDED, reason).into());
        }
        stream.received.insert(frame.offset, frame.data);
        // spec: rfc9001 4.1.3 left-level-closes
        if space < self.read_space() {
            let reason = "CRYPTO data at a level that is over";
            return Err(PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason).into());
        }
        Ok(())
    }

    /// True, once, if CRYPTO data has arrived since the last call.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Lets TLS read what has arrived and write what it wants to, step by step.
    ///
    /// # Errors
    /// TLS's failure, malformed transport parameters, a peer that agreed on no application protocol, or CRYPTO data
    /// that TLS has left behind.
    pub(crate) fn advance(&mut self) -> Result<Vec<Progress>, Fault> {
        let mut steps = Vec::new();
        loop {
            let wrote = self.write_tls(&mut steps)?;
            let read = self.read_tls()?;
            self.note_early_keys(&mut steps);
            self.note_parameters(&mut steps)?;
            self.note_completion(&mut steps)?;
            if !wrote && !read {
                return Ok(steps);
            }
        }
    }

    fn read_tls(&mut self) -> Result<bool, Fault> {
        let space = self.read_space();
        let unread = self.streams[space].as_mut().and_then(|stream| stream.received.read(usize::MAX));
        let Some(data) = unread else { return Ok(false) };
        let are_tickets = self.side == Side::Client && self.is_complete && self.tickets.take(&data);
        if let Some(session) = &mut self.session {
            session.read_handshake(&data)?;
        } else if !are_tickets {
            // spec: rfc9001 6 tls-key-update-closes, 4.4 late-request-closes
            let reason =
                "nothing but session tickets may come in CRYPTO frames after the handshake".to_owned();
            return Err(Fault::Tls(crate::error::CryptoFailure { alert: ALERT_UNEXPECTED_MESSAGE, reason }));
        }
        Ok(true)
    }

    /// The connection rests. A client that has tickets can do without TLS, which takes as much memory as all else: tickets
    /// that come later are dropped, and anything else still closes the connection.
    pub(crate) fn rest(&mut self) {
        if self.is_confirmed && self.tickets.are_whole() {
            self.session = None;
        }
        let stream = &mut self.streams[PacketSpace::Data];
        let is_spent = |stream: &CryptoStream| stream.sending.held() == 0 && stream.received.is_untouched();
        if self.session.is_none() && stream.as_deref().is_some_and(is_spent) {
            *stream = None;
        } else if let Some(stream) = stream {
            stream.received.shrink();
        }
    }

    /// True if TLS had bytes or keys.
    fn write_tls(&mut self, steps: &mut Vec<Progress>) -> Result<bool, PeerError> {
        let Some(session) = &mut self.session else { return Ok(false) };
        // spec: rfc9001 4.1.3 left-level-not-extended, 4.9 new-data-highest
        let write_space = if self.one_rtt.is_some() {
            PacketSpace::Data
        } else if self.handshake.is_some() {
            PacketSpace::Handshake
        } else {
            PacketSpace::Initial
        };
        let mut bytes = Vec::new();
        let change = session.write_handshake(&mut bytes);
        let progressed = !bytes.is_empty() || change.is_some();
        if !bytes.is_empty() {
            self.streams[write_space].get_or_insert_default().sending.push(Bytes::from(bytes));
        }
        match change {
            None => return Ok(progressed),
            Some(KeyChange::Handshake { keys }) => {
                self.leave(PacketSpace::Initial)?;
                self.handshake = Some(Box::new(keys));
            }
            Some(change @ KeyChange::OneRtt { .. }) => {
                self.one_rtt = OneRttKeys::new(change, self.key_limits).map(Box::new);
            }
        }
        steps.push(Progress::Keys);
        Ok(progressed)
    }

    /// TLS reads no more of this level: what the peer has sent of it must all have been read.
    fn leave(&self, space: PacketSpace) -> Result<(), PeerError> {
        // spec: rfc9001 4.1.3 unread-data-close
        if self.streams[space].as_ref().is_some_and(|stream| stream.received.has_unread()) {
            let reason = "CRYPTO data left over at a level that is over";
            return Err(PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
        }
        Ok(())
    }

    /// 0-RTT keys exist at once or never: on a client when it has written its `ClientHello`, on a server when it has
    /// read that.
    fn note_early_keys(&mut self, steps: &mut Vec<Progress>) {
        let is_too_late = self.has_peer_parameters || self.handshake.is_some() && self.side == Side::Client;
        if is_too_late || self.has_seen_early_keys {
            return;
        }
        let Some(session) = &self.session else { return };
        let Some(keys) = session.early_keys() else { return };
        let remembered = match self.side {
            Side::Server => {
                // The application may read before the handshake is complete, and must know what it reads.
                self.summary.application_protocol = session.application_protocol().map(Into::into);
                self.summary.server_name = session.server_name().map(Into::into);
                None
            }
            Side::Client => {
                let encoded = session.peer_transport_parameters().unwrap_or_default();
                let Ok(parameters) = TransportParameters::parse(encoded, Side::Server) else { return };
                Some(Box::new(parameters))
            }
        };
        self.has_seen_early_keys = true;
        self.early = Some(Box::new(EarlyKeys::new(keys)));
        steps.push(Progress::EarlyKeys(remembered));
    }

    fn note_parameters(&mut self, steps: &mut Vec<Progress>) -> Result<(), Fault> {
        if self.has_peer_parameters {
            return Ok(());
        }
        let Some(session) = &self.session else { return Ok(()) };
        // A client that resumes a session is shown the server's parameters of last time until it has read those of
        // this time; and none are authenticated before the handshake is complete (RFC 9001 section 8.2).
        if self.side == Side::Client && session.is_handshaking() {
            return Ok(());
        }
        let Some(encoded) = session.peer_transport_parameters() else { return Ok(()) };
        let parameters = TransportParameters::parse(encoded, self.side.peer()).map_err(PeerError::from)?;
        self.has_peer_parameters = true;
        let is_early_accepted = session.is_early_data_accepted();
        if self.side == Side::Client {
            self.early = None; // RFC 9001 section 4.9.3: 1-RTT keys are there.
        }
        steps.push(Progress::Parameters { parameters: Box::new(parameters), is_early_accepted });
        Ok(())
    }

    fn note_completion(&mut self, steps: &mut Vec<Progress>) -> Result<(), Fault> {
        let Some(session) = &self.session else { return Ok(()) };
        if self.is_complete || session.is_handshaking() || self.one_rtt.is_none() {
            return Ok(());
        }
        // spec: rfc9001 8.1 alpn-used, 8.1 alpn-missing-closes, 8.1 client-alpn-error, rfc9000 7 protocol-agreed
        if session.application_protocol().is_none() {
            let reason = "no application protocol was agreed on (ALPN)".to_owned();
            return Err(Fault::Tls(crate::error::CryptoFailure {
                alert: ALERT_NO_APPLICATION_PROTOCOL,
                reason,
            }));
        }
        if !self.has_peer_parameters {
            // spec: rfc9001 8.2 parameters-missing-closes
            // rustls has refused such a handshake before.
            let reason = "the peer sent no transport parameters".to_owned();
            return Err(Fault::Tls(crate::error::CryptoFailure { alert: ALERT_MISSING_EXTENSION, reason }));
        }
        self.leave(PacketSpace::Handshake)?;
        self.is_complete = true;
        self.summary = Summary {
            application_protocol: session.application_protocol().map(Into::into),
            server_name: session.server_name().map(Into::into),
            is_resumed: session.is_resumed(),
            peer_certificates: session.peer_certificates().map(Into::into),
        };
        steps.push(Progress::Complete);
        Ok(())
    }

    /// The server's handshake is complete, hence confirmed, and the client is to be told; TLS is done.
    pub(crate) fn confirm_as_server(&mut self) {
        self.is_confirmed = true;
        self.done_is_due = true;
        self.session = None;
    }

    /// The server says that it is done.
    pub(crate) fn confirm_as_client(&mut self) {
        self.is_confirmed = true;
    }

    /// True if the space has CRYPTO bytes or `HANDSHAKE_DONE` to send.
    pub(crate) fn has_frames(&self, space: PacketSpace) -> bool {
        self.streams[space].as_ref().is_some_and(|stream| next_range(&stream.sending).is_some())
            || (space == PacketSpace::Data && self.done_is_due)
    }

    /// Bytes of CRYPTO data of the space that have not been sent yet.
    pub(crate) fn unsent(&self, space: PacketSpace) -> u64 {
        self.streams[space].as_ref().map_or(0, |stream| stream.sending.unsent())
    }

    /// Writes what the space has to send.
    pub(crate) fn write_frames(&mut self, space: PacketSpace, writer: &mut FrameWriter<'_>) {
        if space == PacketSpace::Data && self.done_is_due {
            self.done_is_due =
                !writer.push(&posthaste_wire::Frame::HandshakeDone, Some(SentFrame::HandshakeDone));
        }
        // spec: rfc9001 4 resent-under-same-keys, 4.9 crypto-at-its-level
        let Some(CryptoStream { sending, .. }) = self.streams[space].as_deref_mut() else { return };
        while let Some((start, end)) = next_range(sending) {
            // The length field is sized for all that could fit; a shorter one only leaves a byte unused.
            let header_len = frame::crypto::header_len(start, writer.remaining());
            let room = writer.remaining().saturating_sub(header_len);
            if room == 0 {
                return;
            }
            let end = end.min(start + room as u64);
            frame::crypto::write_header(writer.buffer(), start, (end - start) as usize);
            sending.copy_to(writer.buffer(), start, end);
            sending.sent(start, end);
            writer.record(SentFrame::Crypto { start, end });
        }
    }

    /// CRYPTO bytes have been acknowledged.
    pub(crate) fn on_crypto_acked(&mut self, space: PacketSpace, start: u64, end: u64) {
        if let Some(stream) = &mut self.streams[space] {
            stream.sending.acked(start, end);
        }
    }

    /// CRYPTO bytes have been lost.
    pub(crate) fn on_crypto_lost(&mut self, space: PacketSpace, start: u64, end: u64) {
        if let Some(stream) = &mut self.streams[space] {
            stream.sending.lost(start, end);
        }
    }

    /// `HANDSHAKE_DONE` has been lost.
    pub(crate) fn on_done_lost(&mut self) {
        // spec: rfc9000 13.3 done-until-acked
        self.done_is_due = true;
    }
}

/// What is to be sent next: what was lost before what is new.
fn next_range(sending: &SendBuffer) -> Option<(u64, u64)> {
    let unsent = || (sending.unsent() > 0).then(|| (sending.next(), sending.end()));
    sending.first_lost().or_else(unsent)
}
