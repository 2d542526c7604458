//! CRYPTO (RFC 9000 section 19.6).

use bytes::Bytes;

use crate::error::Fault;
use crate::varint::{self, Reader};

/// Wire type.
pub const TYPE: u64 = 0x06;

/// CRYPTO: handshake bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CryptoFrame {
    /// Position of `data` in the level's handshake stream.
    pub offset: u64,
    /// The bytes; `offset + data.len()` is at most 2^62 - 1.
    pub data: Bytes,
}

impl CryptoFrame {
    /// Appends the frame.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        write_header(buffer, self.offset, self.data.len());
        buffer.extend_from_slice(&self.data);
    }

    /// Bytes that [`CryptoFrame::write`] appends.
    pub fn encoded_len(&self) -> usize {
        header_len(self.offset, self.data.len()) + self.data.len()
    }
}

/// Appends everything but the data, of which `length` bytes must follow.
pub fn write_header(buffer: &mut Vec<u8>, offset: u64, length: usize) {
    buffer.push(TYPE as u8);
    varint::write(buffer, offset);
    varint::write(buffer, length as u64);
}

/// Bytes that [`write_header`] appends.
pub const fn header_len(offset: u64, length: usize) -> usize {
    1 + varint::len(offset) + varint::len(length as u64)
}

/// Decodes what follows the type, up to the data: the offset and the data's length, which is all there.
pub(super) fn decode(reader: &mut Reader<'_>) -> Result<(u64, usize), Fault> {
    let offset = reader.varint()?;
    let length = super::data_length(reader)?;
    // spec: rfc9000 19.6 crypto-offset-limit
    if offset + length as u64 > varint::MAX {
        return Err(Fault::encoding("CRYPTO data beyond 2^62 - 1"));
    }
    Ok((offset, length))
}
