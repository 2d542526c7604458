//! QUIC versions, and what differs between them on the wire. Another version (RFC 9369's v2 gives the long packet
//! types other bits) is an arm in each function here.

use super::PacketType;

/// The version field of a Version Negotiation packet (RFC 8999 section 6).
pub const NEGOTIATION: u32 = 0;
/// QUIC version 1 (RFC 9000).
pub const V1: u32 = 0x0000_0001;
/// All versions whose packets this crate reads and writes, the preferred first.
pub const SUPPORTED: [u32; 1] = [V1];

/// True if packets of this version can be read and written.
pub const fn is_supported(version: u32) -> bool {
    matches!(version, V1)
}

/// True for the versions reserved to provoke version negotiation: `0x?a?a?a?a` (RFC 9000 section 15).
pub const fn is_reserved(version: u32) -> bool {
    version & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// The reserved version that `random` picks; to be listed in Version Negotiation packets (RFC 9000 section 6.3).
pub const fn reserved(random: u32) -> u32 {
    random & 0xf0f0_f0f0 | 0x0a0a_0a0a
}

/// The type bits of version 1 (RFC 9000 section 17.2), in place.
mod v1 {
    pub(super) const INITIAL: u8 = 0x00;
    pub(super) const ZERO_RTT: u8 = 0x10;
    pub(super) const HANDSHAKE: u8 = 0x20;
    pub(super) const RETRY: u8 = 0x30;
}

/// The two type bits of a long header, in place ([`LONG_TYPE`](super::header::LONG_TYPE)); those of Handshake for
/// kinds that have none, those of version 1 for versions that are not known.
pub const fn long_type_bits(version: u32, kind: PacketType) -> u8 {
    match (version, kind) {
        (_, PacketType::Initial) => v1::INITIAL,
        (_, PacketType::ZeroRtt) => v1::ZERO_RTT,
        (_, PacketType::Retry) => v1::RETRY,
        (_, PacketType::Handshake | PacketType::VersionNegotiation | PacketType::Short) => v1::HANDSHAKE,
    }
}

/// The kind that the type bits of a long header's first byte stand for.
pub const fn long_type(version: u32, first: u8) -> PacketType {
    match (version, first & super::header::LONG_TYPE) {
        (_, v1::INITIAL) => PacketType::Initial,
        (_, v1::ZERO_RTT) => PacketType::ZeroRtt,
        (_, v1::RETRY) => PacketType::Retry,
        _ => PacketType::Handshake,
    }
}
