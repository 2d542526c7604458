//! `TAIL_CODE`: symbols of an erasure code over the end of a stream (extension, see docs/spec/tail-code.md).
//!
//! ```text
//! TAIL_CODE {
//!   Type (i) = 0x2a65,
//!   Stream ID (i),
//!   Base (i),
//!   Length (i),
//!   Symbol Size (i), in units of 64 bytes,
//!   Recovery Count (i),
//!   First Index (i),
//!   Symbols Length (i),
//!   Symbols (..),
//! }
//! ```

use bytes::Bytes;

use crate::StreamId;
use crate::error::Fault;
use crate::varint::{self, Reader};

/// Wire type of `TAIL_CODE`.
pub const TYPE: u64 = 0x2a65;

/// Unit of the symbol size, in bytes.
pub const SYMBOL_UNIT: u64 = 64;

/// All fields of `TAIL_CODE` but its symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailCodeHead {
    /// The stream.
    pub id: StreamId,
    /// Offset of the first byte that the code covers.
    pub base: u64,
    /// Bytes covered, up to the end of the stream; `base + length`, its final size, is at most 2^62 - 1.
    pub length: u64,
    /// Bytes of a symbol, in units of [`SYMBOL_UNIT`].
    pub symbol_units: u64,
    /// Recovery symbols that the code has in all.
    pub recovery_count: u64,
    /// Number of the first recovery symbol in the frame; the others follow in order.
    pub first: u64,
}

/// `TAIL_CODE`: recovery symbols for the last bytes of a stream. Whether the numbers make a code is for the receiver to
/// check; decoding checks that nothing overflows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailCodeFrame {
    /// What the symbols are.
    pub head: TailCodeHead,
    /// The symbols, one after the other.
    pub symbols: Bytes,
}

impl TailCodeHead {
    /// The final size of the stream that the frame announces, in bytes.
    pub const fn final_size(&self) -> u64 {
        self.base.saturating_add(self.length)
    }

    /// Bytes that a frame takes around `symbols` bytes of symbols.
    pub const fn encoded_len(&self, symbols: usize) -> usize {
        varint::len(TYPE)
            + varint::len(self.id.to_wire())
            + varint::len(self.base)
            + varint::len(self.length)
            + varint::len(self.symbol_units)
            + varint::len(self.recovery_count)
            + varint::len(self.first)
            + varint::len(symbols as u64)
    }

    /// Reads what follows the type, and the length of the symbols, which are there.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<(Self, usize), Fault> {
        let head = Self {
            id: StreamId::from_wire(reader.varint()?),
            base: reader.varint()?,
            length: reader.varint()?,
            symbol_units: reader.varint()?,
            recovery_count: reader.varint()?,
            first: reader.varint()?,
        };
        if head.base.saturating_add(head.length) > varint::MAX {
            return Err(Fault::encoding("TAIL_CODE beyond offset 2^62"));
        }
        Ok((head, super::data_length(reader)?))
    }
}

impl TailCodeFrame {
    /// Appends the frame.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        let TailCodeHead { id, base, length, symbol_units, recovery_count, first } = self.head;
        let symbols = self.symbols.len() as u64;
        let fields = [TYPE, id.to_wire(), base, length, symbol_units, recovery_count, first, symbols];
        for field in fields {
            varint::write(buffer, field);
        }
        buffer.extend_from_slice(&self.symbols);
    }

    /// Bytes that [`Self::write`] appends.
    pub fn encoded_len(&self) -> usize {
        self.head.encoded_len(self.symbols.len()) + self.symbols.len()
    }
}
