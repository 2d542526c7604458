//! `PATH_CHALLENGE`, `PATH_RESPONSE` (RFC 9000 sections 19.17 and 19.18) and `NEW_TOKEN` (section 19.7), which
//! spares the next connection the proof of its address. They have no types of their own beyond
//! [`Frame`](super::Frame)'s variants.

use crate::error::Fault;
use crate::varint::Reader;

/// Wire type of `NEW_TOKEN`.
pub const TYPE_NEW_TOKEN: u64 = 0x07;
/// Wire type of `PATH_CHALLENGE`.
pub const TYPE_CHALLENGE: u64 = 0x1a;
/// Wire type of `PATH_RESPONSE`.
pub const TYPE_RESPONSE: u64 = 0x1b;

/// Decodes the length of a token, of which all bytes are there. An empty one is an encoding error.
pub(super) fn decode_token_length(reader: &mut Reader<'_>) -> Result<usize, Fault> {
    match super::data_length(reader)? {
        // spec: rfc9000 19.7 empty-token-closes
        0 => Err(Fault::encoding("NEW_TOKEN with an empty token")),
        length => Ok(length),
    }
}
