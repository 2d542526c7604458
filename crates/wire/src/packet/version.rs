//! QUIC versions and their differences on the wire. A new version adds an arm to each function here.

use super::PacketType;

/// The version field of a Version Negotiation packet (RFC 8999 section 6).
pub const NEGOTIATION: u32 = 0;
/// QUIC version 1 (RFC 9000).
pub const V1: u32 = 0x0000_0001;
/// QUIC version 2 (RFC 9369 section 3.1).
pub const V2: u32 = 0x6b33_43cf;
/// All versions whose packets this crate reads and writes, the preferred first.
// spec: rfc9369 4 several-versions
pub const SUPPORTED: [u32; 2] = [V1, V2];

/// Returns true if packets of this version can be read and written.
pub const fn is_supported(version: u32) -> bool {
    matches!(version, V1 | V2)
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

/// The type bits of version 2 (RFC 9369 section 3.2), in place.
mod v2 {
    pub(super) const INITIAL: u8 = 0x10;
    pub(super) const ZERO_RTT: u8 = 0x20;
    pub(super) const HANDSHAKE: u8 = 0x30;
    pub(super) const RETRY: u8 = 0x00;
}

/// The two type bits of a long header, in place ([`LONG_TYPE`](super::header::LONG_TYPE)); those of Handshake for
/// kinds that have none, those of version 1 for versions that are not known.
pub const fn long_type_bits(version: u32, kind: PacketType) -> u8 {
    match (version, kind) {
        (V2, PacketType::Initial) => v2::INITIAL,
        (V2, PacketType::ZeroRtt) => v2::ZERO_RTT,
        (V2, PacketType::Retry) => v2::RETRY,
        (V2, _) => v2::HANDSHAKE,
        (_, PacketType::Initial) => v1::INITIAL,
        (_, PacketType::ZeroRtt) => v1::ZERO_RTT,
        (_, PacketType::Retry) => v1::RETRY,
        (_, PacketType::Handshake | PacketType::VersionNegotiation | PacketType::Short) => v1::HANDSHAKE,
    }
}

/// The kind that the type bits of a long header's first byte stand for.
pub const fn long_type(version: u32, first: u8) -> PacketType {
    match (version, first & super::header::LONG_TYPE) {
        (V2, v2::INITIAL) => PacketType::Initial,
        (V2, v2::ZERO_RTT) => PacketType::ZeroRtt,
        (V2, v2::RETRY) => PacketType::Retry,
        (V2, _) => PacketType::Handshake,
        (_, v1::INITIAL) => PacketType::Initial,
        (_, v1::ZERO_RTT) => PacketType::ZeroRtt,
        (_, v1::RETRY) => PacketType::Retry,
        _ => PacketType::Handshake,
    }
}
