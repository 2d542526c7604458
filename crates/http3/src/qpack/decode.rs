//! Decoder for field sections (RFC 9204 section 4.5).

use bytes::Bytes;

use super::huffman;
use super::integer;
use super::static_table::STATIC_TABLE;
use super::table::{ENTRY_OVERHEAD, Table};
use crate::cursor::Cursor;
use crate::error::{Code, Error};

/// Lines of a section for which there is room at first: in less than 1 KiB, which allocators have at hand.
const LINES: usize = 14;

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

pub(super) const fn invalid(reason: &'static str) -> DecodeError {
    DecodeError::Invalid(Error::new(Code::QPACK_DECOMPRESSION_FAILED, reason))
}

/// A string within the section's text, or of a table.
enum Text {
    OfTable(Bytes),
    Decoded(std::ops::Range<usize>),
}

impl Text {
    fn of_static_table(text: &'static str) -> Self {
        Self::OfTable(Bytes::from_static(text.as_bytes()))
    }

    fn len(&self) -> usize {
        match self {
            Self::OfTable(text) => text.len(),
            Self::Decoded(range) => range.len(),
        }
    }

    /// All strings of a section share one allocation.
    fn bytes(self, text: &Bytes) -> Bytes {
        match self {
            Self::OfTable(text) => text,
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
    let prefix = Prefix::read(&mut input)?.resolve(0, 0)?;
    read_lines(input, limit, &Table::default(), prefix)
}

/// The field lines of a section whose prefix has been read.
pub(super) fn read_lines(
    mut input: Cursor<'_>,
    limit: u64,
    table: &Table,
    prefix: Resolved,
) -> Result<Vec<Field>, DecodeError> {
    let room = input.rest().len().min(usize::try_from(limit).unwrap_or(usize::MAX)) * 2;
    let mut text = Vec::with_capacity(room);
    // Most heads have no more lines, and each takes a byte at least.
    let mut lines = Vec::with_capacity(input.rest().len().min(LINES));
    let mut size = 0_u64;
    while let Some(first) = input.byte() {
        let line = read_line(&mut input, first, &mut text, (table, prefix))?;
        size += (line.0.len() + line.1.len()) as u64 + ENTRY_OVERHEAD;
        if size > limit {
            return Err(DecodeError::TooLarge);
        }
        // spec: rfc9204 2.2 order-given
        lines.push(line);
    }
    let text = Bytes::from(text);
    let field = |(name, value, is_sensitive): Line| Field {
        name: name.bytes(&text),
        value: value.bytes(&text),
        is_sensitive,
    };
    Ok(lines.into_iter().map(field).collect())
}

/// A section's prefix as it is encoded (RFC 9204 section 4.5.1).
pub(super) struct Prefix {
    required: u64,
    is_negative: bool,
    delta: u64,
}

/// A section's prefix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resolved {
    /// The Required Insert Count.
    pub(super) required: u64,
    /// The Base.
    base: u64,
}

impl Prefix {
    pub(super) fn read(input: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        const TRUNCATED: DecodeError = invalid("a field section ends within its prefix");

        let first = input.byte().ok_or(TRUNCATED)?;
        let required = integer::read(input, first, 8).ok_or(TRUNCATED)?;
        let first = input.byte().ok_or(TRUNCATED)?;
        let delta = integer::read(input, first, 7).ok_or(TRUNCATED)?;
        Ok(Self { required, is_negative: first & 0x80 != 0, delta })
    }

    /// The values that are meant, for a decoder that has announced a table of `maximum` bytes and has seen `inserted`
    /// insertions.
    pub(super) fn resolve(self, maximum: u64, inserted: u64) -> Result<Resolved, DecodeError> {
        let required = required_insert_count(self.required, maximum, inserted)?;
        let base = if self.is_negative {
            required.checked_sub(self.delta).and_then(|rest| rest.checked_sub(1))
        } else {
            required.checked_add(self.delta)
        };
        // spec: rfc9204 4.5.1.2 negative-base-refused
        let base = base.ok_or(invalid("the base of a field section is negative"))?;
        Ok(Resolved { required, base })
    }
}

/// RFC 9204 section 4.5.1.1.
fn required_insert_count(encoded: u64, maximum: u64, inserted: u64) -> Result<u64, DecodeError> {
    // spec: rfc9204 4.5.1.1 impossible-insert-count-closes
    const IMPOSSIBLE: DecodeError = invalid("a field section needs a dynamic table that cannot be");

    if encoded == 0 {
        return Ok(0);
    }
    let max_entries = maximum / ENTRY_OVERHEAD;
    let full_range = 2 * max_entries;
    if encoded > full_range {
        return Err(IMPOSSIBLE);
    }
    let most = inserted + max_entries;
    let required = most / full_range * full_range + encoded - 1;
    match required {
        0 => Err(IMPOSSIBLE),
        _ if required <= most => Ok(required),
        _ => required.checked_sub(full_range).filter(|required| *required > 0).ok_or(IMPOSSIBLE),
    }
}

/// Name, value, and whether the field is sensitive. As large as a [`Field`], so that lines become fields where they lie.
type Line = (Text, Text, bool);

const _: () = assert!(size_of::<Line>() == size_of::<Field>());

/// A field line (RFC 9204 sections 4.5.2 to 4.5.6).
fn read_line(
    input: &mut Cursor<'_>,
    first: u8,
    text: &mut Vec<u8>,
    dynamic: (&Table, Resolved),
) -> Result<Line, DecodeError> {
    const TRUNCATED: DecodeError = invalid("a field section ends within a field line");

    let (name, is_sensitive) = match first {
        // Indexed, static.
        0xc0.. => {
            let (name, value) = static_entry(input, first, 6)?;
            return Ok((Text::of_static_table(name), Text::of_static_table(value), false));
        }
        // Indexed, dynamic: before the base, or from it on.
        0x80..=0xbf | 0x10..=0x1f => {
            let (bits, is_behind) = if first >= 0x80 { (6, false) } else { (4, true) };
            let (name, value) = dynamic_entry(input, first, bits, is_behind, dynamic)?;
            return Ok((Text::OfTable(name), Text::OfTable(value), false));
        }
        // Literal with a static name.
        0x50..=0x5f | 0x70..=0x7f => {
            (Text::of_static_table(static_entry(input, first, 4)?.0), first & 0x20 != 0)
        }
        // Literal with a dynamic name, before the base, or from it on.
        0x40..=0x4f | 0x60..=0x6f => {
            (Text::OfTable(dynamic_entry(input, first, 4, false, dynamic)?.0), first & 0x20 != 0)
        }
        0x00..=0x0f => (Text::OfTable(dynamic_entry(input, first, 3, true, dynamic)?.0), first & 0x08 != 0),
        // Literal with a literal name.
        0x20..=0x3f => (Text::Decoded(read_string(input, first, 3, text)?), first & 0x10 != 0),
    };
    let byte = input.byte().ok_or(TRUNCATED)?;
    let value = read_string(input, byte, 7, text)?;
    Ok((name, Text::Decoded(value), is_sensitive))
}

/// The entry that an index of `bits` names, counted back from the section's base, or on from it (`is_behind`).
fn dynamic_entry(
    input: &mut Cursor<'_>,
    first: u8,
    bits: u32,
    is_behind: bool,
    (table, prefix): (&Table, Resolved),
) -> Result<(Bytes, Bytes), DecodeError> {
    let index = integer::read(input, first, bits).ok_or(invalid("an index is truncated or too large"))?;
    let absolute = if is_behind {
        prefix.base.checked_add(index)
    } else {
        prefix.base.checked_sub(1).and_then(|last| last.checked_sub(index))
    };
    // spec: rfc9204 2.2.1 insert-count-too-small-closes
    let absolute = absolute
        .filter(|absolute| *absolute < prefix.required)
        .ok_or(invalid("a field line refers to an entry beyond what its section needs"))?;
    // spec: rfc9204 2.2.3 evicted-reference-closes
    let entry = table
        .get(absolute)
        .ok_or(invalid("a field line refers to an entry that is not in the dynamic table"))?;
    Ok((entry.name.clone(), entry.value.clone()))
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
