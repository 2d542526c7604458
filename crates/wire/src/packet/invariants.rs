//! Version-independent properties of QUIC (RFC 8999).

use super::{HeaderError, header, version};
use crate::ConnectionId;
use crate::varint::{Reader, Truncated};

/// The version-independent part of a packet, enough to find its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invariants {
    /// True for a long header.
    pub is_long: bool,
    /// The version; 0 for Version Negotiation and for short headers, which have none.
    pub version: u32,
    /// Destination connection ID.
    pub dcid: ConnectionId,
    /// Source connection ID; empty for short headers, which have none.
    pub scid: ConnectionId,
}

impl Invariants {
    /// Reads the first packet of a datagram. The destination ID of a short header has no length of its own:
    /// it is the next `local_cid_len` bytes.
    ///
    /// # Errors
    /// [`HeaderError::Truncated`], or [`HeaderError::ConnectionIdTooLong`] for an ID of more than 20 bytes: no
    /// packet of a known version, and [`RawInvariants`] can still answer it. An unknown version is no error here.
    pub fn parse(datagram: &[u8], local_cid_len: usize) -> Result<Self, HeaderError> {
        Self::read(&mut Reader::new(datagram), local_cid_len)
    }

    /// Reads and leaves `reader` behind the last connection ID.
    pub(super) fn read(reader: &mut Reader<'_>, local_cid_len: usize) -> Result<Self, HeaderError> {
        let first = *reader.rest().first().ok_or(Truncated)?;
        if first & header::FORM != 0 {
            let raw = RawInvariants::read(reader)?;
            let too_long = HeaderError::ConnectionIdTooLong { version: raw.version };
            // spec: rfc9000 17.2 long-destination-dropped, 17.2 long-source-dropped
            let dcid = ConnectionId::new(raw.dcid).ok_or(too_long)?;
            let scid = ConnectionId::new(raw.scid).ok_or(too_long)?;
            return Ok(Self { is_long: true, version: raw.version, dcid, scid });
        }
        reader.byte()?;
        let too_long = HeaderError::ConnectionIdTooLong { version: version::NEGOTIATION };
        let dcid = ConnectionId::new(reader.take(local_cid_len)?).ok_or(too_long)?;
        Ok(Self { is_long: false, version: version::NEGOTIATION, dcid, scid: ConnectionId::EMPTY })
    }
}

/// The version-independent part of a long header with IDs as long as any version may have them (255 bytes): what a
/// server needs to answer a packet of an unknown version with Version Negotiation (RFC 9000 section 17.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawInvariants<'a> {
    /// The version.
    pub version: u32,
    /// Destination connection ID.
    pub dcid: &'a [u8],
    /// Source connection ID.
    pub scid: &'a [u8],
}

impl<'a> RawInvariants<'a> {
    /// Reads the long header that `datagram` starts with; `None` for a short or truncated header.
    pub fn parse(datagram: &'a [u8]) -> Option<Self> {
        datagram.first().filter(|first| *first & header::FORM != 0)?;
        Self::read(&mut Reader::new(datagram)).ok()
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, Truncated> {
        reader.byte()?;
        let version = reader.u32()?;
        let dcid_len = usize::from(reader.byte()?);
        let dcid = reader.take(dcid_len)?;
        let scid_len = usize::from(reader.byte()?);
        Ok(Self { version, dcid, scid: reader.take(scid_len)? })
    }
}
