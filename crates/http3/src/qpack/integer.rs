//! Integers with a prefix (RFC 7541 section 5.1), as QPACK uses them (RFC 9204 section 4.1.1).

use crate::cursor::Cursor;

/// The largest value that has to be understood (RFC 9204 section 4.1.1); larger ones are refused.
// spec: rfc9204 4.1.1 integers-of-62-bits
const MAX: u64 = (1 << 62) - 1;

/// Appends `value` behind the high bits of `flags`, with a prefix of `bits` (1 to 8).
#[inline]
pub(super) fn write(buffer: &mut Vec<u8>, flags: u8, bits: u32, value: u64) {
    let most = (1_u64 << bits) - 1;
    buffer.push(flags | value.min(most) as u8);
    if value >= most {
        write_rest(buffer, value - most);
    }
}

/// What the prefix has no room for, which is seldom anything.
fn write_rest(buffer: &mut Vec<u8>, mut rest: u64) {
    while rest >= 0x80 {
        buffer.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    buffer.push(rest as u8);
}

/// Reads an integer whose first byte is `first`, of which `bits` belong to it; `None` if the input ends within it or it
/// is too large.
pub(super) fn read(input: &mut Cursor<'_>, first: u8, bits: u32) -> Option<u64> {
    let mut integer = Prefixed::begin(first, bits);
    loop {
        match integer {
            Prefixed::Whole(value) => return Some(value),
            Prefixed::TooLarge => return None,
            Prefixed::Partial { .. } => integer = integer.push(input.byte()?),
        }
    }
}

/// An integer as its bytes arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefixed {
    /// All of it has arrived.
    Whole(u64),
    /// More bytes follow.
    Partial {
        /// What has arrived so far.
        value: u64,
        /// Place of the next byte's bits.
        shift: u32,
    },
    /// It is larger than anything that means something here.
    TooLarge,
}

impl Prefixed {
    /// The integer after its first byte.
    pub(super) fn begin(first: u8, bits: u32) -> Self {
        let most = (1_u64 << bits) - 1;
        let value = u64::from(first) & most;
        if value < most { Self::Whole(value) } else { Self::Partial { value, shift: 0 } }
    }

    /// The integer after its next byte.
    pub(super) fn push(self, byte: u8) -> Self {
        let Self::Partial { value, shift } = self else { return self };
        // Nine bytes hold 63 bits; what needs more, or pads with zeros beyond them, is refused.
        if shift > 56 {
            return Self::TooLarge;
        }
        let sum = (u64::from(byte & 0x7f) << shift).checked_add(value).filter(|sum| *sum <= MAX);
        match sum {
            None => Self::TooLarge,
            Some(value) if byte & 0x80 == 0 => Self::Whole(value),
            Some(value) => Self::Partial { value, shift: shift + 7 },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_all(bytes: &[u8], bits: u32) -> Option<u64> {
        let mut cursor = Cursor::new(bytes);
        let first = cursor.byte()?;
        read(&mut cursor, first, bits).filter(|_| cursor.is_empty())
    }

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 7541 appendix C.1.
        assert_eq!(read_all(&[0b1110_1010], 5), Some(10));
        assert_eq!(read_all(&[0b0001_1111, 0b1001_1010, 0b0000_1010], 5), Some(1337));
        assert_eq!(read_all(&[42], 8), Some(42));
        let mut buffer = Vec::new();
        write(&mut buffer, 0b0010_0000, 5, 1337);
        assert_eq!(buffer, [0b0011_1111, 0b1001_1010, 0b0000_1010]);
    }

    #[test]
    fn what_is_too_large_or_too_short_is_refused() {
        assert_eq!(read_all(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], 8), None);
        assert_eq!(read_all(&[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], 8), None);
        assert_eq!(read_all(&[0xff, 0x80], 8), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in 0..=MAX, shift in 0..62_u32, bits in 1..=8_u32) {
            // spec: rfc9204 4.1.1 integers-of-62-bits
            let value = value >> shift;
            let mut buffer = Vec::new();
            write(&mut buffer, 0, bits, value);
            prop_assert_eq!(read_all(&buffer, bits), Some(value));
        }
    }
}
