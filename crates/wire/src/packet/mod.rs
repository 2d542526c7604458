//! Packets: headers, packet numbers, coalescing (RFC 9000 sections 12 and 17).
//!
//! Receiving: [`Invariants::parse`] to find the connection, [`split`] into packets, then (with the keys, elsewhere)
//! header protection off, [`number::decode`], and the payload to [`frame::Iter`](crate::frame::Iter). Sending:
//! [`header::write_long`] or [`header::write_short`], frames, [`header::patch_length`], then the keys.

mod coalesce;
pub mod header;
mod invariants;
pub mod number;
pub mod version;

pub use coalesce::{HeaderError, ProtectedPacket, Split, split};
pub use header::{Header, LongLayout, write_retry, write_version_negotiation};
pub use invariants::{Invariants, RawInvariants};
pub use number::TruncatedNumber;

/// The kinds of packets of QUIC version 1 (RFC 9000 section 17).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketType {
    /// Initial: the first CRYPTO data, under keys that anyone can derive.
    Initial,
    /// 0-RTT: application data before the handshake is done.
    ZeroRtt,
    /// Handshake: the rest of the TLS handshake.
    Handshake,
    /// Retry: a server asks for proof of the client's address.
    Retry,
    /// Version Negotiation: a server names its versions.
    VersionNegotiation,
    /// 1-RTT, with a short header.
    Short,
}

impl PacketType {
    /// Returns true if the packet has a long header.
    pub const fn is_long(self) -> bool {
        !matches!(self, Self::Short)
    }

    /// Returns true if the packet is numbered and protected: all but Retry and Version Negotiation.
    pub const fn is_numbered(self) -> bool {
        !matches!(self, Self::Retry | Self::VersionNegotiation)
    }
}

#[cfg(test)]
mod tests;
