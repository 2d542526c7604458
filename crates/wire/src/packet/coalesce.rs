//! Splitting of a datagram into packets (RFC 9000 section 12.2).

use bytes::BytesMut;

use super::header::{FIXED, FORM, Header, RETRY_TAG_LEN, SAMPLE_LEN};
use super::{Invariants, PacketType, number, version};
use crate::ConnectionId;
use crate::varint::{Reader, Truncated};

/// Why (the rest of) a datagram is no packet. All of these are dropped without a word, but an unknown version, which
/// a server may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The datagram ends within the header, or before the end that the Length field announces.
    #[error("the datagram ends within a packet")]
    Truncated,
    /// A long header of an unknown version; only the invariants are readable.
    #[error("unknown version {:#010x}", .0.version)]
    UnknownVersion(Invariants),
    /// A connection ID of more than 20 bytes, which no known version allows (section 17.2).
    #[error("connection ID of more than 20 bytes (version {version:#010x})")]
    ConnectionIdTooLong {
        /// The version of the long header.
        version: u32,
    },
    /// The fixed bit is 0: no QUIC packet (sections 17.2 and 17.3). Also what trailing zeros look like.
    #[error("the fixed bit is not set")]
    FixedBitClear,
    /// A later packet of the datagram with another destination ID than the first (section 12.2).
    #[error("coalesced packet for another connection ID")]
    OtherDestination,
    /// Retry without a token (section 17.2.5.2).
    #[error("Retry without a token")]
    EmptyRetryToken,
    /// Version Negotiation with no version or with part of one (section 17.2.1).
    #[error("Version Negotiation with a malformed list")]
    MalformedVersionList,
}

impl From<Truncated> for HeaderError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// One packet as it came, header and payload still protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedPacket {
    /// The readable part of the header.
    pub header: Header,
    /// Where in `bytes` the packet number starts; the end of `bytes` for packets without one.
    pub number_at: usize,
    /// The packet and nothing else.
    pub bytes: BytesMut,
}

impl ProtectedPacket {
    /// The ciphertext that header protection is computed from; `None` if the packet is too short to have it, and
    /// thus to be dropped (RFC 9001 section 5.4.2).
    pub fn sample(&self) -> Option<&[u8; SAMPLE_LEN]> {
        self.bytes.get(self.number_at.checked_add(number::MAX_LEN)?..)?.first_chunk()
    }

    /// The token of an Initial or Retry packet; empty for all others.
    pub fn token(&self) -> &[u8] {
        match &self.header {
            Header::Initial { token, .. } | Header::Retry { token, .. } => {
                self.bytes.get(token.clone()).unwrap_or_default()
            }
            _ => &[],
        }
    }
}

/// Splits a datagram into its packets. The destination ID of a short header is `local_cid_len` bytes long.
pub const fn split(datagram: BytesMut, local_cid_len: usize) -> Split {
    Split { rest: datagram, local_cid_len, destination: None, takes_any_fixed_bit: false }
}

/// The packets of a datagram, in order; see [`split`]. What is no packet gives an error, which ends it unless the end
/// of that packet is known.
#[derive(Debug)]
pub struct Split {
    rest: BytesMut,
    local_cid_len: usize,
    destination: Option<ConnectionId>,
    takes_any_fixed_bit: bool,
}

impl Split {
    /// Also takes packets whose fixed bit is 0, as an end must that has sent `grease_quic_bit` (RFC 9287 section 3).
    #[must_use]
    pub const fn taking_any_fixed_bit(mut self, any: bool) -> Self {
        self.takes_any_fixed_bit = any;
        self
    }
}

impl Split {
    /// The packet with a short header that takes the rest of the datagram, and its buffer: after the handshake, that is
    /// the whole of it.
    fn last_short(&mut self) -> Result<ProtectedPacket, HeaderError> {
        let bytes = std::mem::take(&mut self.rest);
        let number_at = 1 + self.local_cid_len;
        let too_long = HeaderError::ConnectionIdTooLong { version: version::NEGOTIATION };
        let dcid = bytes.get(1..number_at).ok_or(HeaderError::Truncated)?;
        let dcid = ConnectionId::new(dcid).ok_or(too_long)?;
        // spec: rfc9000 17.3.1 short-fixed-bit
        let has_fixed_bit = bytes.first().is_some_and(|first| first & FIXED != 0);
        if !has_fixed_bit && !self.takes_any_fixed_bit {
            return Err(HeaderError::FixedBitClear);
        }
        if *self.destination.get_or_insert(dcid) != dcid {
            return Err(HeaderError::OtherDestination);
        }
        Ok(ProtectedPacket { header: Header::Short { dcid }, number_at, bytes })
    }
}

impl Iterator for Split {
    type Item = Result<ProtectedPacket, HeaderError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        if self.rest.first().is_some_and(|first| first & FORM == 0) {
            return Some(self.last_short());
        }
        // spec: rfc9000 12.2 coalesced-taken
        let parsed = match parse(&self.rest, self.local_cid_len, self.takes_any_fixed_bit) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.rest = BytesMut::new();
                return Some(Err(error));
            }
        };
        // The usual datagram is one packet: it keeps the buffer's only reference.
        let bytes = if parsed.end >= self.rest.len() {
            std::mem::take(&mut self.rest)
        } else {
            self.rest.split_to(parsed.end)
        };
        let dcid = parsed.header.dcid();
        if *self.destination.get_or_insert(dcid) != dcid {
            return Some(Err(HeaderError::OtherDestination));
        }
        Some(Ok(ProtectedPacket { header: parsed.header, number_at: parsed.number_at, bytes }))
    }
}

impl std::iter::FusedIterator for Split {}

struct Parsed {
    header: Header,
    number_at: usize,
    /// Behind the last byte of the packet; never 0.
    end: usize,
}

/// The packet with a long header that `bytes` begins with.
fn parse(bytes: &[u8], local_cid_len: usize, takes_any_fixed_bit: bool) -> Result<Parsed, HeaderError> {
    let mut reader = Reader::new(bytes);
    let first = *bytes.first().ok_or(Truncated)?;
    let invariants = Invariants::read(&mut reader, local_cid_len)?;
    let has_fixed_bit = takes_any_fixed_bit || first & FIXED != 0;
    if invariants.version == version::NEGOTIATION {
        let header = parse_version_negotiation(&invariants, reader.rest())?;
        return Ok(Parsed { header, number_at: bytes.len(), end: bytes.len() });
    }
    if !version::is_supported(invariants.version) {
        return Err(HeaderError::UnknownVersion(invariants));
    }
    // spec: rfc9000 17.2 long-fixed-bit
    if !has_fixed_bit {
        return Err(HeaderError::FixedBitClear);
    }
    let Invariants { version, dcid, scid, .. } = invariants;
    let header = match version::long_type(version, first) {
        PacketType::Retry => {
            let header = parse_retry(&invariants, &reader)?;
            return Ok(Parsed { header, number_at: bytes.len(), end: bytes.len() });
        }
        PacketType::Initial => {
            let token_len = reader.prefixed()?.len();
            let token_end = reader.position();
            Header::Initial { version, dcid, scid, token: token_end.saturating_sub(token_len)..token_end }
        }
        PacketType::ZeroRtt => Header::ZeroRtt { version, dcid, scid },
        _ => Header::Handshake { version, dcid, scid },
    };
    let length = usize::try_from(reader.varint()?).map_err(|_| Truncated)?;
    let number_at = reader.position();
    reader.take(length)?;
    Ok(Parsed { header, number_at, end: reader.position() })
}

fn parse_version_negotiation(invariants: &Invariants, list: &[u8]) -> Result<Header, HeaderError> {
    // spec: rfc9000 17.2.1 unused-bits-ignored
    let (versions, odd) = list.as_chunks::<4>();
    if versions.is_empty() || !odd.is_empty() {
        return Err(HeaderError::MalformedVersionList);
    }
    let versions = versions.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect();
    Ok(Header::VersionNegotiation { dcid: invariants.dcid, scid: invariants.scid, versions })
}

fn parse_retry(invariants: &Invariants, reader: &Reader<'_>) -> Result<Header, HeaderError> {
    // spec: rfc9000 17.2.5 retry-unused-ignored
    let (token, tag) = reader.rest().split_last_chunk::<RETRY_TAG_LEN>().ok_or(Truncated)?;
    // spec: rfc9000 17.2.5.2 empty-token-dropped
    if token.is_empty() {
        return Err(HeaderError::EmptyRetryToken);
    }
    let start = reader.position();
    Ok(Header::Retry {
        version: invariants.version,
        dcid: invariants.dcid,
        scid: invariants.scid,
        token: start..start + token.len(),
        integrity_tag: *tag,
    })
}
