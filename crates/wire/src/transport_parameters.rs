//! Transport parameters (RFC 9000 section 18).

use crate::{ConnectionId, ResetToken};

/// The transport parameters of one endpoint; `Default` gives the values that an absent parameter stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportParameters {
    /// Server only: destination ID of the client's first Initial.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// Milliseconds without traffic before the connection is dropped; 0 for never.
    pub max_idle_timeout: u64,
    /// Server only.
    pub stateless_reset_token: Option<ResetToken>,
    /// Largest UDP payload that the sender accepts; at least 1200, 65527 if absent.
    pub max_udp_payload_size: u64,
    /// Initial limit of the connection, in bytes.
    pub initial_max_data: u64,
    /// Initial limit of bidirectional streams that the sender of the parameters opens, in bytes.
    pub initial_max_stream_data_bidi_local: u64,
    /// Initial limit of bidirectional streams that the receiver of the parameters opens, in bytes.
    pub initial_max_stream_data_bidi_remote: u64,
    /// Initial limit of unidirectional streams that the receiver of the parameters opens, in bytes.
    pub initial_max_stream_data_uni: u64,
    /// Bidirectional streams that the receiver of the parameters may open; at most 2^60.
    pub initial_max_streams_bidi: u64,
    /// Unidirectional streams that the receiver of the parameters may open; at most 2^60.
    pub initial_max_streams_uni: u64,
    /// Exponent of the ACK Delay field, at most 20; 3 if absent.
    pub ack_delay_exponent: u64,
    /// Milliseconds by which acks may be delayed, below 2^14; 25 if absent.
    pub max_ack_delay: u64,
    /// True if the sender must not be migrated away from.
    pub disable_active_migration: bool,
    /// Connection IDs that the sender keeps, at least 2; 2 if absent.
    pub active_connection_id_limit: u64,
    /// Source ID of the sender's first packet.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// Server only, after a Retry.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// A parameter with a reserved identifier (31 x N + 27, section 18.1) to send; never filled by decoding.
    pub grease: Option<(u64, Vec<u8>)>,
}

impl Default for TransportParameters {
    fn default() -> Self {
        Self {
            original_destination_connection_id: None,
            max_idle_timeout: 0,
            stateless_reset_token: None,
            max_udp_payload_size: 65_527,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: 3,
            max_ack_delay: 25,
            disable_active_migration: false,
            active_connection_id_limit: 2,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            grease: None,
        }
    }
}
