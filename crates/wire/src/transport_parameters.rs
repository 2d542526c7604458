//! Transport parameters (RFC 9000 section 18).

use crate::error::DecodeError;
use crate::varint::{self, Reader, Truncated};
use crate::{ConnectionId, ResetToken, Side, frame};

/// Identifiers (section 18.2).
mod id {
    pub(super) const ORIGINAL_DESTINATION_CONNECTION_ID: u64 = 0x00;
    pub(super) const MAX_IDLE_TIMEOUT: u64 = 0x01;
    pub(super) const STATELESS_RESET_TOKEN: u64 = 0x02;
    pub(super) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
    pub(super) const INITIAL_MAX_DATA: u64 = 0x04;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
    pub(super) const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
    pub(super) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
    pub(super) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
    pub(super) const ACK_DELAY_EXPONENT: u64 = 0x0a;
    pub(super) const MAX_ACK_DELAY: u64 = 0x0b;
    pub(super) const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
    pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
    pub(super) const ACTIVE_CONNECTION_ID_LIMIT: u64 = 0x0e;
    pub(super) const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;
    pub(super) const RETRY_SOURCE_CONNECTION_ID: u64 = 0x10;
    /// RFC 9368 section 3.
    pub(super) const VERSION_INFORMATION: u64 = 0x11;
    /// Behind the last of those above, which a bit mask remembers.
    pub(super) const END: u64 = 0x12;
    /// RFC 9221 section 3.
    pub(super) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
    /// RFC 9287 section 3.
    pub(super) const GREASE_QUIC_BIT: u64 = 0x2ab2;
    /// draft-ietf-quic-ack-frequency section 3.
    pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;
    /// Our own, drawn at random: see [`crate::frame::group`].
    pub(super) const GROUP_SIZE: u64 = 0x2d5c_1a7a;
    /// docs/spec/ack-window.md.
    pub(super) const ACK_WINDOW: u64 = 0x35a7_c90e;
    /// docs/spec/tail-code.md.
    pub(super) const TAIL_CODE: u64 = 0x191a_4122;
    /// docs/spec/guaranteed-rate.md.
    pub(super) const GUARANTEED_RATE: u64 = 0x21a7_fd77;
}

/// Number of unknown parameters remembered to find duplicates; those beyond are only skipped, for their
/// number is the peer's choice.
pub const MAX_UNKNOWN_REMEMBERED: usize = 64;

/// Least value of `max_udp_payload_size` (section 18.2).
pub const MIN_UDP_PAYLOAD_SIZE: u64 = 1200;
/// Largest value of `ack_delay_exponent` (section 18.2).
pub const MAX_ACK_DELAY_EXPONENT: u64 = 20;
/// `max_ack_delay` is below this many milliseconds (section 18.2).
pub const MAX_ACK_DELAY_END: u64 = 1 << 14;
/// Least value of `active_connection_id_limit` (section 18.2).
pub const MIN_ACTIVE_CONNECTION_ID_LIMIT: u64 = 2;

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
    /// True if peers must not migrate to another address of the sender's.
    pub disable_active_migration: bool,
    /// Connection IDs that the sender keeps, at least 2; 2 if absent.
    pub active_connection_id_limit: u64,
    /// Source ID of the sender's first packet.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// Server only, after a Retry.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// The version of the connection and those that its sender speaks (RFC 9368 section 3).
    pub version_information: Option<VersionInformation>,
    /// True if the sender accepts packets whose fixed bit is 0 (RFC 9287 section 3).
    pub grease_quic_bit: bool,
    /// Microseconds: the least ack delay that the sender can be asked for, not above `max_ack_delay`; `None` if it
    /// knows no `ACK_FREQUENCY` frames (draft-ietf-quic-ack-frequency section 3).
    pub min_ack_delay: Option<u64>,
    /// From a client: how many connections it means to open to the server, itself included, and asks to have
    /// coordinated. From a server: the most that it coordinates. At least 1; `None` if the sender knows no
    /// `GROUP_TOKEN` frames.
    pub group_size: Option<u64>,
    /// The sender accepts `ACK_WINDOW` frames (docs/spec/ack-window.md).
    pub ack_window: bool,
    /// Most bytes of a stream that a code in `TAIL_CODE` frames to the sender may cover; 0 if it takes none
    /// (docs/spec/tail-code.md).
    pub tail_code: u64,
    /// Client only: bytes per second, IP and UDP headers included, that its network guarantees it; above 0
    /// (docs/spec/guaranteed-rate.md).
    pub guaranteed_rate: Option<u64>,
    /// Largest DATAGRAM frame that the sender takes, type and length included; 0 for none (RFC 9221 section 3).
    pub max_datagram_frame_size: u64,
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
            version_information: None,
            grease_quic_bit: false,
            min_ack_delay: None,
            group_size: None,
            ack_window: false,
            tail_code: 0,
            guaranteed_rate: None,
            max_datagram_frame_size: 0,
            grease: None,
        }
    }
}

impl TransportParameters {
    /// Appends the parameters as the TLS extension carries them. Those that have the value that their absence stands
    /// for are left out.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        // spec: rfc9000 7.4 sent-once
        write_id(buffer, id::ORIGINAL_DESTINATION_CONNECTION_ID, self.original_destination_connection_id);
        if let Some(token) = &self.stateless_reset_token {
            write_bytes(buffer, id::STATELESS_RESET_TOKEN, &token.0);
        }
        let absent = Self::default();
        for ((identifier, value), (_, default)) in self.integers().into_iter().zip(absent.integers()) {
            if value != default {
                varint::write(buffer, identifier);
                varint::write(buffer, varint::len(value) as u64);
                varint::write(buffer, value);
            }
        }
        if self.disable_active_migration {
            write_bytes(buffer, id::DISABLE_ACTIVE_MIGRATION, &[]);
        }
        write_id(buffer, id::INITIAL_SOURCE_CONNECTION_ID, self.initial_source_connection_id);
        write_id(buffer, id::RETRY_SOURCE_CONNECTION_ID, self.retry_source_connection_id);
        if let Some(information) = &self.version_information {
            let versions = std::iter::once(&information.chosen).chain(&information.available);
            let value: Vec<u8> = versions.flat_map(|version| version.to_be_bytes()).collect();
            write_bytes(buffer, id::VERSION_INFORMATION, &value);
        }
        if self.grease_quic_bit {
            write_bytes(buffer, id::GREASE_QUIC_BIT, &[]);
        }
        let extensions = [
            (id::MIN_ACK_DELAY, self.min_ack_delay),
            (id::GROUP_SIZE, self.group_size),
            (id::GUARANTEED_RATE, self.guaranteed_rate),
        ];
        for (identifier, value) in extensions {
            if let Some(value) = value {
                varint::write(buffer, identifier);
                varint::write(buffer, varint::len(value) as u64);
                varint::write(buffer, value);
            }
        }
        if self.ack_window {
            write_bytes(buffer, id::ACK_WINDOW, &[]);
        }
        if let Some((identifier, value)) = &self.grease {
            write_bytes(buffer, *identifier, value);
        }
    }

    /// What a client that resumes may rely on before the handshake is complete: a server that accepts 0-RTT must not have
    /// lessened any of it (RFC 9000 section 7.4.1, RFC 9221 section 3).
    pub const fn relied_on_early(&self) -> [u64; 8] {
        [
            self.initial_max_data,
            self.initial_max_stream_data_bidi_local,
            self.initial_max_stream_data_bidi_remote,
            self.initial_max_stream_data_uni,
            self.initial_max_streams_bidi,
            self.initial_max_streams_uni,
            self.active_connection_id_limit,
            // spec: rfc9221 3 accepted-not-smaller
            self.max_datagram_frame_size,
        ]
    }

    /// The parameters that are integers.
    const fn integers(&self) -> [(u64, u64); 13] {
        [
            (id::MAX_IDLE_TIMEOUT, self.max_idle_timeout),
            (id::MAX_UDP_PAYLOAD_SIZE, self.max_udp_payload_size),
            (id::INITIAL_MAX_DATA, self.initial_max_data),
            (id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL, self.initial_max_stream_data_bidi_local),
            (id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE, self.initial_max_stream_data_bidi_remote),
            (id::INITIAL_MAX_STREAM_DATA_UNI, self.initial_max_stream_data_uni),
            (id::INITIAL_MAX_STREAMS_BIDI, self.initial_max_streams_bidi),
            (id::INITIAL_MAX_STREAMS_UNI, self.initial_max_streams_uni),
            (id::ACK_DELAY_EXPONENT, self.ack_delay_exponent),
            (id::MAX_ACK_DELAY, self.max_ack_delay),
            (id::ACTIVE_CONNECTION_ID_LIMIT, self.active_connection_id_limit),
            (id::MAX_DATAGRAM_FRAME_SIZE, self.max_datagram_frame_size),
            (id::TAIL_CODE, self.tail_code),
        ]
    }

    /// Decodes the parameters that `from` has sent. Unknown ones are skipped, absent ones get their default;
    /// `preferred_address` is checked and then ignored.
    ///
    /// The connection must check that the connection IDs are present and correct (section 7.3).
    ///
    /// # Errors
    /// [`DecodeError::TRANSPORT_PARAMETER_ERROR`] for a malformed or duplicate parameter, a value that section 18.2
    /// excludes, or one from a client that only a server may send. The frame type is that of CRYPTO.
    pub fn parse(bytes: &[u8], from: Side) -> Result<Self, DecodeError> {
        parse(bytes, from).map_err(|Invalid(reason)| DecodeError {
            code: DecodeError::TRANSPORT_PARAMETER_ERROR,
            frame_type: frame::crypto::TYPE,
            reason,
        })
    }

    /// Takes over one known parameter.
    fn set(&mut self, identifier: u64, value: &[u8], from: Side) -> Result<(), Invalid> {
        match identifier {
            id::ORIGINAL_DESTINATION_CONNECTION_ID => {
                self.original_destination_connection_id = Some(connection_id(value)?);
            }
            id::STATELESS_RESET_TOKEN => {
                let token = value.try_into().map_err(|_| Invalid("stateless_reset_token not of 16 bytes"))?;
                self.stateless_reset_token = Some(ResetToken(token));
            }
            id::DISABLE_ACTIVE_MIGRATION if value.is_empty() => self.disable_active_migration = true,
            id::DISABLE_ACTIVE_MIGRATION => return Err(Invalid("disable_active_migration with a value")),
            id::PREFERRED_ADDRESS => check_preferred_address(value)?,
            id::INITIAL_SOURCE_CONNECTION_ID => {
                self.initial_source_connection_id = Some(connection_id(value)?);
            }
            id::RETRY_SOURCE_CONNECTION_ID => {
                self.retry_source_connection_id = Some(connection_id(value)?);
            }
            id::VERSION_INFORMATION => {
                self.version_information = Some(VersionInformation::parse(value, from)?);
            }
            // spec: rfc9287 3 value-closes
            id::GREASE_QUIC_BIT if value.is_empty() => self.grease_quic_bit = true,
            id::GREASE_QUIC_BIT => return Err(Invalid("grease_quic_bit with a value")),
            id::ACK_WINDOW if value.is_empty() => self.ack_window = true,
            id::ACK_WINDOW => return Err(Invalid("ack_window with a value")),
            _ => self.set_integer(identifier, value)?,
        }
        Ok(())
    }

    fn set_integer(&mut self, identifier: u64, value: &[u8]) -> Result<(), Invalid> {
        let mut reader = Reader::new(value);
        let value = reader.varint()?;
        if !reader.is_empty() {
            return Err(Invalid("integer parameter of another length than it says"));
        }
        // spec: rfc9000 7.4 invalid-value-closes
        let excluded = |when: bool, reason| if when { Err(Invalid(reason)) } else { Ok(value) };
        match identifier {
            id::MAX_IDLE_TIMEOUT => self.max_idle_timeout = value,
            id::MIN_ACK_DELAY => self.min_ack_delay = Some(value),
            id::TAIL_CODE => self.tail_code = value,
            id::MAX_DATAGRAM_FRAME_SIZE => self.max_datagram_frame_size = value,
            id::GROUP_SIZE => self.group_size = Some(excluded(value == 0, "group_size of 0")?),
            id::GUARANTEED_RATE => {
                self.guaranteed_rate = Some(excluded(value == 0, "guaranteed_rate of 0")?);
            }
            id::MAX_UDP_PAYLOAD_SIZE => {
                self.max_udp_payload_size =
                    excluded(value < MIN_UDP_PAYLOAD_SIZE, "max_udp_payload_size below 1200")?;
            }
            id::INITIAL_MAX_DATA => self.initial_max_data = value,
            id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => self.initial_max_stream_data_bidi_local = value,
            id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => self.initial_max_stream_data_bidi_remote = value,
            id::INITIAL_MAX_STREAM_DATA_UNI => self.initial_max_stream_data_uni = value,
            id::INITIAL_MAX_STREAMS_BIDI => {
                self.initial_max_streams_bidi =
                    // spec: rfc9000 4.6 impossible-count-closes
                    excluded(value > frame::flow::MAX_STREAMS, "initial_max_streams_bidi above 2^60")?;
            }
            id::INITIAL_MAX_STREAMS_UNI => {
                self.initial_max_streams_uni =
                    excluded(value > frame::flow::MAX_STREAMS, "initial_max_streams_uni above 2^60")?;
            }
            id::ACK_DELAY_EXPONENT => {
                self.ack_delay_exponent =
                    excluded(value > MAX_ACK_DELAY_EXPONENT, "ack_delay_exponent above 20")?;
            }
            id::MAX_ACK_DELAY => {
                self.max_ack_delay = excluded(value >= MAX_ACK_DELAY_END, "max_ack_delay of 2^14 or more")?;
            }
            _ => {
                self.active_connection_id_limit =
                    // spec: rfc9000 18.2 id-limit-checked
                    excluded(value < MIN_ACTIVE_CONNECTION_ID_LIMIT, "active_connection_id_limit below 2")?;
            }
        }
        Ok(())
    }
}

/// Version information of an end (RFC 9368 section 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionInformation {
    /// The version of the connection, in its sender's view; never 0.
    pub chosen: u32,
    /// All versions that the sender would speak, its preferred first; reserved ones may be among them.
    pub available: Vec<u32>,
}

/// Versions that are kept of a peer's list; more are a waste of memory.
pub const MAX_AVAILABLE_VERSIONS: usize = 64;

impl VersionInformation {
    /// Of a longer list the first [`MAX_AVAILABLE_VERSIONS`] are kept, in place of the last of them the chosen one if
    /// it comes later: what is kept is as valid as what came.
    fn parse(value: &[u8], from: Side) -> Result<Self, Invalid> {
        // spec: rfc9368 4 parsed, 4 malformed-closes, 4 malformed-code, 4 zero-is-malformed
        let (versions, odd) = value.as_chunks::<4>();
        let mut versions = versions.iter().map(|bytes| u32::from_be_bytes(*bytes));
        let chosen = versions.next().ok_or(Invalid("version_information without a chosen version"))?;
        if !odd.is_empty() || chosen == 0 || versions.clone().any(|version| version == 0) {
            return Err(Invalid("malformed version_information"));
        }
        let mut available: Vec<u32> = versions.by_ref().take(MAX_AVAILABLE_VERSIONS).collect();
        if !available.contains(&chosen) {
            if versions.any(|version| version == chosen) {
                // The list is full, or nothing would be left over.
                available.truncate(MAX_AVAILABLE_VERSIONS - 1);
                available.push(chosen);
            } else if from == Side::Client {
                // spec: rfc9368 4 unlisted-is-malformed
                return Err(Invalid("version_information of a client that does not list its chosen version"));
            }
        }
        Ok(Self { chosen, available })
    }
}

/// Why parameters are refused.
struct Invalid(&'static str);

impl From<Truncated> for Invalid {
    fn from(_: Truncated) -> Self {
        Self("transport parameters end within a field")
    }
}

fn parse(bytes: &[u8], from: Side) -> Result<TransportParameters, Invalid> {
    let mut reader = Reader::new(bytes);
    let mut parameters = TransportParameters::default();
    let mut seen: u32 = 0;
    let mut unknown = Vec::new();
    while !reader.is_empty() {
        let identifier = reader.varint()?;
        let value = reader.prefixed()?;
        let is_duplicate = if identifier < id::END {
            let bit = 1 << identifier;
            let was_seen = seen & bit != 0;
            seen |= bit;
            was_seen
        } else {
            let was_seen = unknown.contains(&identifier);
            if !was_seen && unknown.len() < MAX_UNKNOWN_REMEMBERED {
                unknown.push(identifier);
            }
            was_seen
        };
        // spec: rfc9000 7.4 duplicate-closes
        if is_duplicate {
            return Err(Invalid("duplicate transport parameter"));
        }
        // spec: rfc9000 18.2 client-overreach-closes
        if from == Side::Client && is_server_only(identifier) {
            return Err(Invalid("transport parameter that only a server may send"));
        }
        if (from, identifier) == (Side::Server, id::GUARANTEED_RATE) {
            return Err(Invalid("guaranteed_rate from a server"));
        }
        // spec: rfc9000 7.4.2 unknown-ignored
        let is_extension = matches!(
            identifier,
            id::GREASE_QUIC_BIT
                | id::MIN_ACK_DELAY
                | id::GROUP_SIZE
                | id::ACK_WINDOW
                | id::TAIL_CODE
                | id::GUARANTEED_RATE
                | id::MAX_DATAGRAM_FRAME_SIZE
        );
        if identifier < id::END || is_extension {
            parameters.set(identifier, value, from)?;
        }
    }
    if parameters.min_ack_delay.is_some_and(|delay| delay > parameters.max_ack_delay.saturating_mul(1000)) {
        return Err(Invalid("min_ack_delay above max_ack_delay"));
    }
    // Section 18.2: who has no ID to move the connection to must not ask for the move.
    // spec: rfc9000 18.2 preferred-checked
    let has_preferred_address = seen & 1 << id::PREFERRED_ADDRESS != 0;
    if has_preferred_address && parameters.initial_source_connection_id.is_some_and(|id| id.is_empty()) {
        return Err(Invalid("preferred_address from a server with an empty connection ID"));
    }
    Ok(parameters)
}

const fn is_server_only(identifier: u64) -> bool {
    matches!(
        identifier,
        id::ORIGINAL_DESTINATION_CONNECTION_ID
            | id::STATELESS_RESET_TOKEN
            | id::PREFERRED_ADDRESS
            | id::RETRY_SOURCE_CONNECTION_ID
    )
}

fn connection_id(value: &[u8]) -> Result<ConnectionId, Invalid> {
    ConnectionId::new(value).ok_or(Invalid("connection ID of more than 20 bytes"))
}

/// Two addresses with ports, a connection ID and its reset token (section 18.2).
fn check_preferred_address(value: &[u8]) -> Result<(), Invalid> {
    const ADDRESSES: usize = 4 + 2 + 16 + 2;
    let mut reader = Reader::new(value);
    reader.take(ADDRESSES)?;
    let length = usize::from(reader.byte()?);
    if connection_id(reader.take(length)?)?.is_empty() {
        return Err(Invalid("preferred_address with an empty connection ID"));
    }
    reader.array::<16>()?;
    if reader.is_empty() { Ok(()) } else { Err(Invalid("preferred_address with bytes left over")) }
}

fn write_bytes(buffer: &mut Vec<u8>, identifier: u64, value: &[u8]) {
    varint::write(buffer, identifier);
    varint::write(buffer, value.len() as u64);
    buffer.extend_from_slice(value);
}

fn write_id(buffer: &mut Vec<u8>, identifier: u64, value: Option<ConnectionId>) {
    if let Some(value) = value {
        write_bytes(buffer, identifier, value.as_slice());
    }
}

#[cfg(test)]
mod tests;
