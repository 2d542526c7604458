//! Variable-length integers (RFC 9000 section 16) and the cursor for decoding.

/// The largest integer that fits: 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;

/// The largest integer that fits two bytes: 2^14 - 1.
pub const MAX_TWO_BYTES: u64 = (1 << 14) - 1;

/// Bytes that the shortest encoding of `value` takes: 1, 2, 4 or 8 (8 for values above [`MAX`] too).
pub const fn len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Appends the shortest encoding of `value`.
///
/// A value above [`MAX`] is the caller's mistake: debug builds assert, others write [`MAX`].
#[inline]
pub fn write(buffer: &mut Vec<u8>, value: u64) {
    debug_assert!(value <= MAX, "{value} does not fit a varint");
    match value {
        0..=0x3f => buffer.push(value as u8),
        0x40..=0x3fff => buffer.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => buffer.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => buffer.extend_from_slice(&(value.min(MAX) | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Appends `value` in two bytes, also where one would do: for lengths that are patched later.
///
/// A value above [`MAX_TWO_BYTES`] is the caller's mistake: debug builds assert, others write the maximum.
pub fn write_two_bytes(buffer: &mut Vec<u8>, value: u64) {
    buffer.extend_from_slice(&two_bytes(value));
}

/// The two-byte encoding of `value`; see [`write_two_bytes`].
pub(crate) fn two_bytes(value: u64) -> [u8; 2] {
    debug_assert!(value <= MAX_TWO_BYTES, "{value} does not fit a two-byte varint");
    (value.min(MAX_TWO_BYTES) as u16 | 0x4000).to_be_bytes()
}

/// Fewer bytes were there than a field needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the input ends within a field")]
pub struct Truncated;

/// A cursor over received bytes. Every read checks the length first; a failed read consumes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, total: bytes.len() }
    }

    /// The bytes not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Number of unread bytes.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// True once everything has been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Number of bytes read.
    pub const fn position(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`Truncated`] at the end of the input.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Truncated> {
        let (&first, rest) = self.rest.split_first().ok_or(Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// [`Truncated`] if fewer are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// Reads `count` bytes as a slice of the input.
    ///
    /// # Errors
    /// [`Truncated`] if fewer are left.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Truncated> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Reads a big-endian 32-bit integer, as versions are written.
    ///
    /// # Errors
    /// [`Truncated`] if fewer than four bytes are left.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a variable-length integer, in whichever of its encodings it comes.
    ///
    /// # Errors
    /// [`Truncated`] if the input ends before the length that the first two bits announce.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Truncated> {
        let (&first, rest) = self.rest.split_first().ok_or(Truncated)?;
        match first >> 6 {
            0 => {
                self.rest = rest;
                Ok(u64::from(first))
            }
            1 => Ok(u64::from(u16::from_be_bytes(self.array()?) & 0x3fff)),
            2 => Ok(u64::from(u32::from_be_bytes(self.array()?) & 0x3fff_ffff)),
            _ => Ok(u64::from_be_bytes(self.array()?) & MAX),
        }
    }

    /// Reads a length as a varint and then that many bytes.
    ///
    /// # Errors
    /// [`Truncated`] if the length or the bytes are not all there.
    #[inline]
    pub fn prefixed(&mut self) -> Result<&'a [u8], Truncated> {
        let mut ahead = *self;
        let count = usize::try_from(ahead.varint()?).map_err(|_| Truncated)?;
        let bytes = ahead.take(count)?;
        *self = ahead;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
