//! Packet headers (RFC 9000 sections 17.2 and 17.3): the parts of the first byte, the fields readable
//! under header protection, and the writers.

use std::ops::Range;

use super::{PacketType, TruncatedNumber, version};
use crate::{ConnectionId, varint};

/// First byte: set for a long header.
pub const FORM: u8 = 0x80;
/// First byte: the fixed bit, set in every valid packet but Version Negotiation.
pub const FIXED: u8 = 0x40;
/// First byte of a long header: the packet type.
pub const LONG_TYPE: u8 = 0x30;
/// First byte of a long header: reserved, 0 once header protection is off (else a `PROTOCOL_VIOLATION`).
pub const LONG_RESERVED: u8 = 0x0c;
/// First byte of a long header: the bits that header protection covers.
pub const LONG_PROTECTED: u8 = 0x0f;
/// First byte of a short header: the latency spin bit (section 17.4), not protected.
pub const SPIN: u8 = 0x20;
/// First byte of a short header: reserved, 0 once header protection is off (else a `PROTOCOL_VIOLATION`).
pub const SHORT_RESERVED: u8 = 0x18;
/// First byte of a short header: the key phase, protected.
pub const KEY_PHASE: u8 = 0x04;
/// First byte of a numbered packet: the packet number's length minus one, protected.
pub const NUMBER_LEN: u8 = 0x03;

/// Bytes of the Length field as [`write_long`] leaves room for it.
pub const LENGTH_LEN: usize = 2;
/// Bytes of a Retry packet's integrity tag (RFC 9001 section 5.8).
pub const RETRY_TAG_LEN: usize = 16;
/// Bytes of ciphertext that header protection samples (RFC 9001 section 5.4.2).
pub const SAMPLE_LEN: usize = 16;

/// Length in bytes (1 to 4) of the packet number behind this first byte, once header protection is off.
pub const fn number_len(first: u8) -> usize {
    (first & NUMBER_LEN) as usize + 1
}

/// The part of a packet's header that is readable without keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Header {
    /// Initial (section 17.2.2).
    Initial {
        /// The version.
        version: u32,
        /// Destination connection ID.
        dcid: ConnectionId,
        /// Source connection ID.
        scid: ConnectionId,
        /// Where in the packet's bytes the token stands; empty if there is none.
        token: Range<usize>,
    },
    /// 0-RTT (section 17.2.3).
    ZeroRtt {
        /// The version.
        version: u32,
        /// Destination connection ID.
        dcid: ConnectionId,
        /// Source connection ID.
        scid: ConnectionId,
    },
    /// Handshake (section 17.2.4).
    Handshake {
        /// The version.
        version: u32,
        /// Destination connection ID.
        dcid: ConnectionId,
        /// Source connection ID.
        scid: ConnectionId,
    },
    /// Retry (section 17.2.5).
    Retry {
        /// The version.
        version: u32,
        /// Destination connection ID.
        dcid: ConnectionId,
        /// Source connection ID: the client's next destination.
        scid: ConnectionId,
        /// Where in the packet's bytes the token stands; never empty.
        token: Range<usize>,
        /// Proves that the packet answers the client's Initial; not checked here.
        integrity_tag: [u8; RETRY_TAG_LEN],
    },
    /// Version Negotiation (section 17.2.1).
    VersionNegotiation {
        /// Destination connection ID.
        dcid: ConnectionId,
        /// Source connection ID.
        scid: ConnectionId,
        /// The versions that the server speaks, reserved ones included; never empty.
        versions: Vec<u32>,
    },
    /// 1-RTT (section 17.3).
    Short {
        /// Destination connection ID.
        dcid: ConnectionId,
    },
}

impl Header {
    /// The kind of packet.
    pub const fn packet_type(&self) -> PacketType {
        match self {
            Self::Initial { .. } => PacketType::Initial,
            Self::ZeroRtt { .. } => PacketType::ZeroRtt,
            Self::Handshake { .. } => PacketType::Handshake,
            Self::Retry { .. } => PacketType::Retry,
            Self::VersionNegotiation { .. } => PacketType::VersionNegotiation,
            Self::Short { .. } => PacketType::Short,
        }
    }

    /// Destination connection ID.
    pub const fn dcid(&self) -> ConnectionId {
        match self {
            Self::Initial { dcid, .. }
            | Self::ZeroRtt { dcid, .. }
            | Self::Handshake { dcid, .. }
            | Self::Retry { dcid, .. }
            | Self::VersionNegotiation { dcid, .. }
            | Self::Short { dcid } => *dcid,
        }
    }

    /// The version; `None` for a short header and for Version Negotiation, which have none.
    pub const fn version(&self) -> Option<u32> {
        match self {
            Self::Initial { version, .. }
            | Self::ZeroRtt { version, .. }
            | Self::Handshake { version, .. }
            | Self::Retry { version, .. } => Some(*version),
            Self::VersionNegotiation { .. } | Self::Short { .. } => None,
        }
    }

    /// Source connection ID; `None` for a short header.
    pub const fn scid(&self) -> Option<ConnectionId> {
        match self {
            Self::Initial { scid, .. }
            | Self::ZeroRtt { scid, .. }
            | Self::Handshake { scid, .. }
            | Self::Retry { scid, .. }
            | Self::VersionNegotiation { scid, .. } => Some(*scid),
            Self::Short { .. } => None,
        }
    }
}

/// Where [`write_long`] put what comes later: indices into the buffer that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongLayout {
    /// Where the Length field starts; for [`patch_length`].
    pub length_at: usize,
    /// Where the packet number starts; for header protection.
    pub number_at: usize,
}

/// Appends the header of an Initial, 0-RTT or Handshake packet up to the packet number, with a Length of 0 that
/// [`patch_length`] fills in. `token` is for Initial packets only. Other kinds are the caller's mistake.
pub fn write_long(
    buffer: &mut Vec<u8>,
    kind: PacketType,
    version: u32,
    dcid: &ConnectionId,
    scid: &ConnectionId,
    token: &[u8],
    number: TruncatedNumber,
) -> LongLayout {
    debug_assert!(matches!(kind, PacketType::Initial | PacketType::ZeroRtt | PacketType::Handshake));
    debug_assert!(token.is_empty() || kind == PacketType::Initial, "only Initial packets have a token");
    let type_bits = version::long_type_bits(version, kind);
    // spec: rfc9000 17.2 long-reserved-zero
    write_invariants(buffer, FORM | FIXED | type_bits | number.length_bits(), version, dcid, scid);
    if kind == PacketType::Initial {
        varint::write(buffer, token.len() as u64);
        buffer.extend_from_slice(token);
    }
    let length_at = buffer.len();
    varint::write_two_bytes(buffer, 0);
    let number_at = buffer.len();
    number.write(buffer);
    LongLayout { length_at, number_at }
}

/// Bytes that [`write_long`] appends, packet number included.
pub fn long_header_len(
    kind: PacketType,
    dcid: &ConnectionId,
    scid: &ConnectionId,
    token: &[u8],
    number: TruncatedNumber,
) -> usize {
    let token_len = match kind {
        PacketType::Initial => varint::len(token.len() as u64) + token.len(),
        _ => 0,
    };
    1 + 4 + 1 + dcid.len() + 1 + scid.len() + token_len + LENGTH_LEN + number.len()
}

/// Fills in the Length field at `length_at`: `length` is packet number + payload + tag, in bytes, below 2^14.
///
/// A longer one, or a place outside `buffer`, is the caller's mistake.
pub fn patch_length(buffer: &mut [u8], length_at: usize, length: usize) {
    let place = buffer.get_mut(length_at..).and_then(|rest| rest.first_chunk_mut());
    debug_assert!(place.is_some(), "no Length field at {length_at}");
    if let Some(place) = place {
        *place = varint::two_bytes(length as u64);
    }
}

/// Appends a short header, packet number included, and returns the index at which the number starts.
pub fn write_short(
    buffer: &mut Vec<u8>,
    spin: bool,
    key_phase: bool,
    dcid: &ConnectionId,
    number: TruncatedNumber,
) -> usize {
    // spec: rfc9000 17.3.1 short-reserved-zero
    let mut first = FIXED | number.length_bits();
    if spin {
        first |= SPIN;
    }
    if key_phase {
        first |= KEY_PHASE;
    }
    buffer.push(first);
    buffer.extend_from_slice(dcid.as_slice());
    let number_at = buffer.len();
    number.write(buffer);
    number_at
}

/// Clears the fixed bit of the packet that starts at `start`, for a peer that has sent `grease_quic_bit` (RFC 9287
/// section 3.1). The bit is authenticated: clear it before the packet is sealed.
pub fn clear_fixed_bit(buffer: &mut [u8], start: usize) {
    if let Some(first) = buffer.get_mut(start) {
        *first &= !FIXED;
    }
}

/// Bytes that [`write_short`] appends, packet number included.
pub const fn short_header_len(dcid: &ConnectionId, number: TruncatedNumber) -> usize {
    1 + dcid.len() + number.len()
}

/// Appends a Version Negotiation packet (section 17.2.1). The IDs are those of the packet it answers, swapped: its
/// source is `dcid` here. They may be byte slices, for the IDs of unknown versions may be longer than 20 bytes (up
/// to 255; more are cut). `random` gives the unused bits of the first byte.
pub fn write_version_negotiation(
    buffer: &mut Vec<u8>,
    dcid: impl AsRef<[u8]>,
    scid: impl AsRef<[u8]>,
    versions: &[u32],
    random: u8,
) {
    // spec: rfc9000 17.2.1 version-zero
    // Section 17.2.1: the fixed bit should be set here too, for those who tell protocols apart by it.
    write_invariants(buffer, random | FORM | FIXED, version::NEGOTIATION, dcid, scid);
    buffer.extend(versions.iter().flat_map(|version| version.to_be_bytes()));
}

/// Appends a Retry packet (section 17.2.5) without the integrity tag, which is computed over what stands here and
/// follows it. `token` must not be empty; `random` gives the four unused bits.
pub fn write_retry(
    buffer: &mut Vec<u8>,
    version: u32,
    dcid: &ConnectionId,
    scid: &ConnectionId,
    token: &[u8],
    random: u8,
) {
    debug_assert!(!token.is_empty(), "clients drop a Retry without a token");
    let type_bits = version::long_type_bits(version, PacketType::Retry);
    write_invariants(buffer, FORM | FIXED | type_bits | random & LONG_PROTECTED, version, dcid, scid);
    buffer.extend_from_slice(token);
}

fn write_invariants(
    buffer: &mut Vec<u8>,
    first: u8,
    version: u32,
    dcid: impl AsRef<[u8]>,
    scid: impl AsRef<[u8]>,
) {
    buffer.push(first);
    buffer.extend_from_slice(&version.to_be_bytes());
    for id in [dcid.as_ref(), scid.as_ref()] {
        let id = id.get(..usize::from(u8::MAX)).unwrap_or(id);
        buffer.push(id.len() as u8);
        buffer.extend_from_slice(id);
    }
}
