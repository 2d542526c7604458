//! 0-RTT: what a client may send before the handshake is complete, and a server may read (RFC 9000 sections 7.4.1
//! and 17.2.3, RFC 9001 sections 4.6 and 4.9.3).
//!
//! 0-RTT packets share the 1-RTT packets' number space, and what they carry is the streams' business as ever: once
//! the server has rejected them, the streams begin again from their first byte, as if nothing had been sent.

use posthaste_units::Time;
use posthaste_wire::packet::{ProtectedPacket, number};
use posthaste_wire::{Side, TransportParameters};
use rustls::quic::{DirectionalKeys, HeaderProtectionKey, PacketKey};

use crate::connection::Connection;
use crate::crypto::{Opened, SealError, remove_header_protection, seal};
use crate::error::{PeerError, TransportErrorCode};
use crate::events::Event;
use crate::space::PacketSpace;

/// Probe timeouts for which a server keeps the keys of 0-RTT packets once it has 1-RTT keys (RFC 9001 section 4.9.3).
const KEEP_PROBE_TIMEOUTS: u64 = 3;

/// The keys of 0-RTT packets: a client seals with them, a server opens.
pub(crate) struct EarlyKeys {
    header: Box<dyn HeaderProtectionKey>,
    packet: Box<dyn PacketKey>,
    sealed: u64,
    /// When a server drops them.
    expires: Option<Time>,
}

impl EarlyKeys {
    pub(crate) fn new(keys: DirectionalKeys) -> Self {
        Self { header: keys.header, packet: keys.packet, sealed: 0, expires: None }
    }

    /// Seals a packet in place.
    pub(crate) fn seal(
        &mut self,
        packet: &mut [u8],
        number_at: usize,
        header_len: usize,
        number: u64,
    ) -> Result<(), SealError> {
        if self.sealed >= self.packet.confidentiality_limit() {
            return Err(SealError);
        }
        self.sealed += 1;
        seal(packet, number_at, header_len, number, &*self.header, &*self.packet)
    }

    fn open(&self, mut packet: ProtectedPacket, largest: Option<u64>) -> Option<Opened> {
        let number_at = packet.number_at;
        let unmasked = remove_header_protection(&mut packet.bytes, number_at, &*self.header)?;
        let number = number::decode(largest, unmasked.truncated, unmasked.number_len);
        crate::crypto::open(packet.bytes, number_at, unmasked, number, &*self.packet)
    }
}

/// How a connection's early data fare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum EarlyData {
    /// There are none.
    #[default]
    None,
    /// On a client: some may be sent, within the limits that the server gave last time.
    Offered(Box<Remembered>),
    /// The server reads them.
    Accepted,
    /// The server has dropped them.
    Rejected,
}

/// The limits of last time that bind a server which accepts early data (section 7.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remembered([u64; 7]);

impl Remembered {
    fn of(parameters: &TransportParameters) -> Self {
        Self([
            parameters.active_connection_id_limit,
            parameters.initial_max_data,
            parameters.initial_max_stream_data_bidi_local,
            parameters.initial_max_stream_data_bidi_remote,
            parameters.initial_max_stream_data_uni,
            parameters.initial_max_streams_bidi,
            parameters.initial_max_streams_uni,
        ])
    }

    /// True if one of the new limits is below what was remembered.
    fn is_reduced_by(&self, new: &Self) -> bool {
        self.0.iter().zip(&new.0).any(|(old, new)| new < old)
    }

    /// What may be relied on before the handshake is complete: of all parameters these alone.
    fn parameters(&self) -> TransportParameters {
        // spec: rfc9000 7.4.1 not-remembered, 7.4.1 new-values-instead, 7.4.1 rest-remembered
        let [ids, data, bidi_local, bidi_remote, uni, streams_bidi, streams_uni] = self.0;
        TransportParameters {
            active_connection_id_limit: ids,
            initial_max_data: data,
            initial_max_stream_data_bidi_local: bidi_local,
            initial_max_stream_data_bidi_remote: bidi_remote,
            initial_max_stream_data_uni: uni,
            initial_max_streams_bidi: streams_bidi,
            initial_max_streams_uni: streams_uni,
            ..TransportParameters::default()
        }
    }
}

impl Connection {
    /// On a client: true while stream data that is written leaves before the handshake is complete. Whoever is on
    /// the path can make the server read such data again: send only what may be repeated (RFC 8446 section 8).
    pub fn may_send_early(&self) -> bool {
        self.side == Side::Client
            && matches!(self.setup.early, EarlyData::Offered(_))
            && self.is_handshaking()
    }

    /// On a server: the client has sent early data, which are read. Until the handshake is complete
    /// ([`Self::is_handshaking`]) all data are such that may have been repeated by somebody else.
    ///
    /// On a client whose handshake is complete: the server has read what was sent before.
    pub fn is_early_data_accepted(&self) -> bool {
        self.setup.early == EarlyData::Accepted
    }

    /// 0-RTT keys have come; on a client with the server's parameters of last time.
    pub(crate) fn on_early_keys(&mut self, remembered: Option<&TransportParameters>) {
        let Some(parameters) = remembered else {
            self.setup.early = EarlyData::Accepted;
            self.emit(Event::EarlyDataAccepted);
            return;
        };
        if parameters.max_udp_payload_size < self.path.max_datagram_size() as u64 {
            self.handshake.drop_early_keys(); // Not worth the trouble.
            return;
        }
        // spec: rfc9000 7.4.1 early-by-old-values, 7.4.1 early-not-by-new-values
        let remembered = Remembered::of(parameters);
        self.streams.set_peer_limits(&remembered.parameters());
        self.setup.early = EarlyData::Offered(Box::new(remembered));
    }

    /// On a client: the server has told whether it has taken the early data, and what its parameters are this time.
    pub(crate) fn on_early_verdict(
        &mut self,
        now: Time,
        is_accepted: bool,
        parameters: &TransportParameters,
    ) -> Result<(), PeerError> {
        let EarlyData::Offered(remembered) = &self.setup.early else { return Ok(()) };
        let remembered = **remembered;
        if is_accepted {
            if remembered.is_reduced_by(&Remembered::of(parameters)) {
                let reason = "0-RTT data accepted, and limits reduced";
                return Err(PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
            }
            self.setup.early = EarlyData::Accepted;
            self.emit(Event::EarlyDataAccepted);
            return Ok(());
        }
        self.setup.early = EarlyData::Rejected;
        // All of it goes again, in 1-RTT packets with higher numbers; that it was dropped says nothing of congestion.
        let forgotten = self.recovery.requeue_all(PacketSpace::Data, &mut self.outcome);
        self.path.control.on_forgotten(now, forgotten);
        self.settle_outcome(now);
        // spec: rfc9001 4.6.2 rejected-resets
        self.streams.start_over();
        self.emit(Event::EarlyDataRejected);
        Ok(())
    }

    /// Opens a 0-RTT packet; `None` if it is not authentic or the keys are gone.
    pub(crate) fn open_early(&self, packet: ProtectedPacket) -> Option<Opened> {
        // spec: rfc9001 4.6.2 rejected-not-processed
        let keys = self.handshake.early_keys()?;
        keys.open(packet, self.received[PacketSpace::Data].largest())
    }

    /// A server's handshake is complete: 0-RTT packets may still come, but not for long.
    pub(crate) fn limit_early_keys(&mut self, now: Time) {
        // spec: rfc9001 4.9.3 early-keys-dropped
        let expires = now + self.probe_timeout() * KEEP_PROBE_TIMEOUTS;
        if let Some(keys) = self.handshake.early_keys_mut() {
            keys.expires = Some(expires);
        }
    }

    /// Drops 0-RTT keys whose time is over. Nothing hangs on the moment: it is enough to look now and then.
    pub(crate) fn expire_early_keys(&mut self, now: Time) {
        let expires = self.handshake.early_keys().and_then(|keys| keys.expires);
        if expires.is_some_and(|expires| expires <= now) {
            self.handshake.drop_early_keys();
        }
    }
}
