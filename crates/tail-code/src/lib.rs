//! The erasure code of `TAIL_CODE` frames (docs/spec/tail-code.md): Reed-Solomon over GF(2^16), of the crate
//! `reed-solomon-simd`, over blocks of bytes.
//!
//! A block of up to [`MAX_LENGTH`] bytes is cut into symbols of equal size; the last one is filled up with zeros. From them
//! [`encode`] makes recovery symbols. A [`Decoder`] that has as many recovery symbols as source symbols are missing
//! restores the block, whichever symbols they are. Nothing here knows streams, packets or time, and results do not depend
//! on the machine.

mod decoder;
mod encoder;
mod engine;

use std::ops::Range;

pub use decoder::Decoder;
pub use encoder::encode;

/// The size of a symbol is a multiple of this, in bytes.
pub const SYMBOL_UNIT: usize = 64;
/// The greatest size of a symbol, in bytes.
pub const MAX_SYMBOL_SIZE: usize = 2048;
/// Most source symbols of a block, and most recovery symbols.
pub const MAX_SYMBOLS: usize = 32_768;
/// Bytes of a block up to which symbols have the least size: more symbols cost more to compute.
const SMALL_LENGTH: usize = 1 << 20;
/// Most bytes of a block.
pub const MAX_LENGTH: usize = 4 << 20;

/// The measures of a block and its code, which are within their limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    length: usize,
    symbol_size: usize,
    recovery_count: usize,
}

/// Why there is no code of such measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A block has 1 to [`MAX_LENGTH`] bytes.
    #[error("a block has 1 to {MAX_LENGTH} bytes")]
    Length,
    /// A symbol has a multiple of [`SYMBOL_UNIT`] bytes, at most [`MAX_SYMBOL_SIZE`].
    #[error("a symbol has 64 to {MAX_SYMBOL_SIZE} bytes, a multiple of 64")]
    SymbolSize,
    /// At most [`MAX_SYMBOLS`] source symbols, and 1 to as many recovery symbols.
    #[error("1 to {MAX_SYMBOLS} source symbols, and as many recovery symbols")]
    Count,
}

impl Shape {
    /// A block of `length` bytes in symbols of `symbol_size` bytes, with `recovery_count` recovery symbols.
    ///
    /// # Errors
    /// [`ShapeError`] if one of them is out of its range.
    pub fn new(length: u64, symbol_size: u64, recovery_count: u64) -> Result<Self, ShapeError> {
        let within = |value: u64, range: Range<usize>, error| {
            usize::try_from(value).ok().filter(|value| range.contains(value)).ok_or(error)
        };
        let length = within(length, 1..MAX_LENGTH + 1, ShapeError::Length)?;
        let symbol_size = within(symbol_size, SYMBOL_UNIT..MAX_SYMBOL_SIZE + 1, ShapeError::SymbolSize)?;
        let recovery_count = within(recovery_count, 1..MAX_SYMBOLS + 1, ShapeError::Count)?;
        if !symbol_size.is_multiple_of(SYMBOL_UNIT) {
            return Err(ShapeError::SymbolSize);
        }
        let shape = Self { length, symbol_size, recovery_count };
        if shape.source_count() > MAX_SYMBOLS { Err(ShapeError::Count) } else { Ok(shape) }
    }

    /// The symbol size in bytes with which a block of `length` bytes, at most [`MAX_LENGTH`], is best cut. Symbols much
    /// smaller than packets waste little of a code where packets are cut at other places.
    pub const fn symbol_size_for(length: usize) -> usize {
        if length > SMALL_LENGTH { 2 * SYMBOL_UNIT } else { SYMBOL_UNIT }
    }

    /// Bytes of the block.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Bytes of a symbol.
    pub const fn symbol_size(&self) -> usize {
        self.symbol_size
    }

    /// Recovery symbols in all.
    pub const fn recovery_count(&self) -> usize {
        self.recovery_count
    }

    /// Source symbols: the block, cut.
    pub const fn source_count(&self) -> usize {
        self.length.div_ceil(self.symbol_size)
    }

    /// Bytes of memory that a [`Decoder`] takes before recovery symbols come: the block, one bit for each byte, and two
    /// bytes and one bit for each symbol.
    pub const fn decoder_memory(&self) -> usize {
        let padded = self.source_count() * self.symbol_size;
        padded + padded / 8 + 2 * self.source_count() + self.recovery_count / 8
    }
}

#[cfg(test)]
mod tests;

/// The examples of the package's README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
