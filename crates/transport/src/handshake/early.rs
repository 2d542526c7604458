//! 0-RTT: what a client may send before the handshake is complete, and a server may read (RFC 9000 sections 7.4.1
//! and 17.2.3, RFC 9001 sections 4.6 and 4.9.3).
//!
//! 0-RTT packets share the 1-RTT packets' number space, and what they carry is the streams' business as ever: once
//! the server has rejected them, the streams begin again from their first byte, as if nothing had been sent.

use posthaste_units::Time;
use posthaste_wire::TransportParameters;
use posthaste_wire::packet::{ProtectedPacket, number};
use rustls::quic::{DirectionalKeys, HeaderProtectionKey, PacketKey};

use crate::crypto::{Opened, SealError, remove_header_protection, seal};

/// Probe timeouts for which a server keeps the keys of 0-RTT packets once it has 1-RTT keys (RFC 9001 section 4.9.3).
pub(crate) const KEEP_PROBE_TIMEOUTS: u64 = 3;

/// The keys of 0-RTT packets: a client seals with them, a server opens.
pub(crate) struct EarlyKeys {
    header: Box<dyn HeaderProtectionKey>,
    packet: Box<dyn PacketKey>,
    sealed: u64,
    /// When a server drops them.
    pub(crate) expires: Option<Time>,
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

    pub(crate) fn open(&self, mut packet: ProtectedPacket, largest: Option<u64>) -> Option<Opened> {
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
    pub(crate) fn of(parameters: &TransportParameters) -> Self {
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
    pub(crate) fn is_reduced_by(&self, new: &Self) -> bool {
        self.0.iter().zip(&new.0).any(|(old, new)| new < old)
    }

    /// What may be relied on before the handshake is complete: of all parameters these alone.
    pub(crate) fn parameters(&self) -> TransportParameters {
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

#[cfg(test)]
mod tests;
