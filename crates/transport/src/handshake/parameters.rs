//! The transport parameters that this end sends (RFC 9000 section 18.2).

use posthaste_units::Rng;
use posthaste_wire::packet::version;
use posthaste_wire::{ConnectionId, ResetToken, TransportParameters, VersionInformation};

use crate::acks::frequency::MIN_ACK_DELAY;
use crate::config::TransportConfig;
use crate::limits;
use crate::streams::LocalLimits;

/// Reserved parameter identifiers are 31 x N + 27 (section 18.1); N is drawn below this bound.
const GREASE_RANGE: u64 = 1 << 40;

/// The identifiers of known parameters are below this bound. nginx 1.26 looks at no more than the low 16 bits of an
/// identifier: a reserved one that has those of a known parameter ends one handshake in 3,900.
const KNOWN_PARAMETERS: u64 = 0x100;

/// What a server adds to the parameters that both ends send.
pub(crate) struct ServerPart {
    /// What the client's first Initial was sent to.
    pub(crate) original_destination: ConnectionId,
    /// What the Retry named the server, if there was one.
    pub(crate) retry_source: Option<ConnectionId>,
    /// The reset token of the handshake's ID.
    pub(crate) reset_token: ResetToken,
}

/// What an end asks of its peer beyond its settings, and offers it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wishes {
    /// Connections to coordinate.
    pub(crate) group_size: Option<u64>,
    /// On a client: bytes per second that its network guarantees it.
    pub(crate) guaranteed_rate: Option<u64>,
    /// On a client: bytes of the congestion window that the server is to begin with.
    pub(crate) initial_window: Option<u64>,
}

/// Encodes the parameters of a connection whose handshake ID is `local_id`.
pub(crate) fn encode(
    config: &TransportConfig,
    limits_granted: &LocalLimits,
    local_id: ConnectionId,
    version: u32,
    server: Option<&ServerPart>,
    wishes: Wishes,
    rng: &mut Rng,
) -> Vec<u8> {
    let grease = config.grease.then(|| {
        let mut value = [0; 8];
        rng.fill(&mut value);
        (reserved(rng.below(GREASE_RANGE)), value.to_vec())
    });
    let parameters = TransportParameters {
        original_destination_connection_id: server.map(|server| server.original_destination),
        // spec: rfc9369 4.1 retry-parameters
        retry_source_connection_id: server.and_then(|server| server.retry_source),
        // spec: rfc9000 18.2 token-from-server-only, 18.2 client-sends-its-own
        stateless_reset_token: server.map(|server| server.reset_token),
        version_information: Some(version_information(version, server.is_some())),
        min_ack_delay: min_ack_delay(config),
        group_size: wishes.group_size,
        guaranteed_rate: wishes.guaranteed_rate,
        initial_window: wishes.initial_window,
        grease,
        ..common(config, limits_granted, local_id)
    };
    let mut encoded = Vec::new();
    parameters.write(&mut encoded);
    encoded
}

/// A reserved identifier that nobody takes for a known one.
fn reserved(number: u64) -> u64 {
    let id = 31 * number + 27;
    if id & 0xffff < KNOWN_PARAMETERS { id + 31 * KNOWN_PARAMETERS } else { id }
}

/// What this end says of versions (RFC 9368 section 3). A client lists the one that it has chosen alone: it asks for
/// no compatible negotiation to another.
fn version_information(chosen: u32, is_server: bool) -> VersionInformation {
    // spec: rfc9368 3 chosen-is-available, rfc9369 4 version-information
    let available = if is_server { version::SUPPORTED.to_vec() } else { vec![chosen] };
    VersionInformation { chosen, available }
}

/// The least delay that the peer may ask for, in microseconds; none where the profile never delays acks.
fn min_ack_delay(config: &TransportConfig) -> Option<u64> {
    (config.profile.max_ack_delay() >= MIN_ACK_DELAY).then_some(MIN_ACK_DELAY.as_micros())
}

/// What both ends send.
pub(crate) fn common(
    config: &TransportConfig,
    limits_granted: &LocalLimits,
    local_id: ConnectionId,
) -> TransportParameters {
    TransportParameters { initial_source_connection_id: Some(local_id), ..granted(config, limits_granted) }
}

/// What a connection grants its peer: settings and limits.
pub(crate) fn granted(config: &TransportConfig, limits_granted: &LocalLimits) -> TransportParameters {
    TransportParameters {
        initial_max_data: limits_granted.max_data,
        initial_max_stream_data_bidi_local: limits_granted.max_stream_data,
        initial_max_stream_data_bidi_remote: limits_granted.max_stream_data,
        initial_max_stream_data_uni: limits_granted.max_stream_data,
        initial_max_streams_bidi: limits_granted.max_streams_bidi,
        initial_max_streams_uni: limits_granted.max_streams_uni,
        active_connection_id_limit: limits::PEER_CONNECTION_IDS,
        ..config.parameters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_identifiers_are_like_no_known_one_in_their_low_bits() {
        // All remainders by 65,536 come up.
        for number in (0..1 << 17).chain(GREASE_RANGE - (1 << 17)..GREASE_RANGE) {
            let id = reserved(number);
            assert!(id % 31 == 27 && id & 0xffff >= KNOWN_PARAMETERS && id < 1 << 62, "{id:#x}");
        }
    }
}
