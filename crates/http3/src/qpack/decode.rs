//! Decoder for field sections (RFC 9204 section 4.5).

use bytes::Bytes;

use super::huffman;
use super::integer;
use super::static_table::STATIC_TABLE;
use crate::cursor::Cursor;
use crate::error::{Code, Error};

/// Overhead of each field in the section's size, in bytes (RFC 9114 section 4.2.2).
pub(crate) const FIELD_OVERHEAD: u64 = 32;

/// A decoded field; its name and value are not validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name.
    pub name: Bytes,
    /// The value.
    pub value: Bytes,
    /// True for a secret, which must never be encoded with an index (RFC 9204 section 7.1.3).
    pub is_sensitive: bool,
}

/// Error while decoding a field section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Invalid section; the connection ends.
    #[error(transparent)]
    Invalid(#[from] Error),
    /// Larger than the caller's limit.
    #[error("the field section is larger than permitted")]
    TooLarge,
}

const fn invalid(reason: &'static str) -> DecodeError {
    DecodeError::Invalid(Error::new(Code::QPACK_DECOMPRESSION_FAILED, reason))
}

/// A string within the section's text, or of the static table.
enum Text {
    Static(&'static str),
    Decoded(std::ops::Range<usize>),
}

impl Text {
    fn len(&self) -> usize {
        match self {
            Self::Static(text) => text.len(),
            Self::Decoded(range) => range.len(),
        }
    }

    /// All strings of a section share one allocation.
    fn bytes(self, text: &Bytes) -> Bytes {
        match self {
            Self::Static(text) => Bytes::from_static(text.as_bytes()),
            Self::Decoded(range) => text.slice(range),
        }
    }
}

/// Decodes a field section of at most `limit` bytes, counted as in RFC 9114 section 4.2.2: names, values, and 32 per
/// field.
///
/// # Errors
/// The section is not valid, refers to a dynamic table, or is too large.
pub fn decode(section: &[u8], limit: u64) -> Result<Vec<Field>, DecodeError> {
    let mut input = Cursor::new(section);
    read_prefix(&mut input)?;
    let mut text = Vec::with_capacity(section.len().min(usize::try_from(limit).unwrap_or(usize::MAX)) * 2);
    let mut lines = Vec::new();
    let mut size = 0_u64;
    while let Some(first) = input.byte() {
        let line = read_line(&mut input, first, &mut text)?;
        size += (line.0.len() + line.1.len()) as u64 + FIELD_OVERHEAD;
        if size > limit {
            return Err(DecodeError::TooLarge);
        }
        // spec: rfc9204 2.2 order-given
        lines.push(line);
    }
    let text = Bytes::from(text);
    let field = |(name, value, is_sensitive): (Text, Text, bool)| Field {
        name: name.bytes(&text),
        value: value.bytes(&text),
        is_sensitive,
    };
    Ok(lines.into_iter().map(field).collect())
}

/// Checks the prefix (RFC 9204 section 4.5.1), which must not need the dynamic table.
fn read_prefix(input: &mut Cursor<'_>) -> Result<(), DecodeError> {
    const TRUNCATED: DecodeError = invalid("a field section ends within its prefix");

    let first = input.byte().ok_or(TRUNCATED)?;
    if integer::read(input, first, 8).ok_or(TRUNCATED)? != 0 {
        // spec: rfc9204 2.1.2 too-many-blocked-closes, 2.2.1 insert-count-too-small-closes
        // spec: rfc9204 4.5.1.1 impossible-insert-count-closes
        return Err(invalid("a field section needs a dynamic table"));
    }
    let first = input.byte().ok_or(TRUNCATED)?;
    integer::read(input, first, 7).ok_or(TRUNCATED)?;
    if first & 0x80 != 0 {
        // spec: rfc9204 4.5.1.2 negative-base-refused
        return Err(invalid("the base of a field section is negative"));
    }
    Ok(())
}

/// A field line (RFC 9204 sections 4.5.2 to 4.5.6); name, value, and whether it is sensitive.
fn read_line(
    input: &mut Cursor<'_>,
    first: u8,
    text: &mut Vec<u8>,
) -> Result<(Text, Text, bool), DecodeError> {
    const DYNAMIC: DecodeError = invalid("a field line refers to the dynamic table");
    const TRUNCATED: DecodeError = invalid("a field section ends within a field line");

    match first {
        // Indexed, static.
        0xc0.. => {
            let (name, value) = static_entry(input, first, 6)?;
            Ok((Text::Static(name), Text::Static(value), false))
        }
        // Literal with a static name.
        0x50..=0x5f | 0x70..=0x7f => {
            let (name, _) = static_entry(input, first, 4)?;
            let byte = input.byte().ok_or(TRUNCATED)?;
            let value = read_string(input, byte, 7, text)?;
            Ok((Text::Static(name), Text::Decoded(value), first & 0x20 != 0))
        }
        // Literal with a literal name.
        0x20..=0x3f => {
            let name = read_string(input, first, 3, text)?;
            let byte = input.byte().ok_or(TRUNCATED)?;
            let value = read_string(input, byte, 7, text)?;
            Ok((Text::Decoded(name), Text::Decoded(value), first & 0x10 != 0))
        }
        // Indexed or with a name from the dynamic table, before or behind the base.
        // spec: rfc9204 2.2.3 evicted-reference-closes
        0x80..=0xbf | 0x40..=0x4f | 0x60..=0x6f | 0x00..=0x1f => Err(DYNAMIC),
    }
}

fn static_entry(
    input: &mut Cursor<'_>,
    first: u8,
    bits: u32,
) -> Result<(&'static str, &'static str), DecodeError> {
    let index = integer::read(input, first, bits).ok_or(invalid("an index is truncated or too large"))?;
    let entry = usize::try_from(index).ok().and_then(|index| STATIC_TABLE.get(index));
    // spec: rfc9204 3.1 static-index-closes
    entry.copied().ok_or(invalid("an index is beyond the static table"))
}

/// A string whose length has a prefix of `bits`, with the Huffman flag before it; where it now is in `text`.
fn read_string(
    input: &mut Cursor<'_>,
    first: u8,
    bits: u32,
    text: &mut Vec<u8>,
) -> Result<std::ops::Range<usize>, DecodeError> {
    let length = integer::read(input, first, bits).ok_or(invalid("a length is truncated or too large"))?;
    let string = input.take(length).ok_or(invalid("a field section ends within a string"))?;
    let start = text.len();
    if first & (1 << bits) == 0 {
        text.extend_from_slice(string);
    } else {
        huffman::decode(string, text).ok_or(invalid("a string is not in the Huffman code"))?;
    }
    Ok(start..text.len())
}
