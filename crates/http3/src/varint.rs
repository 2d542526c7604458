//! QUIC's variable-length integers, used for types and lengths (RFC 9000 section 16).

/// The largest integer that fits: 2^62 - 1.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// Appends the shortest encoding of `value`; one above [`MAX`] is written as [`MAX`].
pub(crate) fn write(buffer: &mut Vec<u8>, value: u64) {
    match value {
        0..=0x3f => buffer.push(value as u8),
        0x40..=0x3fff => buffer.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => buffer.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => buffer.extend_from_slice(&(value.min(MAX) | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// An incomplete integer.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PartialInteger {
    value: u64,
    missing: u8,
}

impl PartialInteger {
    /// Takes the next byte and returns the integer if it is complete. The next byte then begins another.
    pub(crate) fn push(&mut self, byte: u8) -> Option<u64> {
        if self.missing == 0 {
            self.missing = 1 << (byte >> 6);
            self.value = u64::from(byte & 0x3f);
        } else {
            self.value = (self.value << 8) | u64::from(byte);
        }
        self.missing -= 1;
        (self.missing == 0).then_some(self.value)
    }

    /// Returns true if an integer is partially received.
    pub(crate) fn is_partial(self) -> bool {
        self.missing > 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn push_all(bytes: &[u8]) -> Vec<u64> {
        let mut integer = PartialInteger::default();
        bytes.iter().filter_map(|byte| integer.push(*byte)).collect()
    }

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 9000 appendix A.1.
        assert_eq!(push_all(&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]), [151_288_809_941_952_652]);
        assert_eq!(push_all(&[0x9d, 0x7f, 0x3e, 0x7d]), [494_878_333]);
        assert_eq!(push_all(&[0x7b, 0xbd]), [15_293]);
        assert_eq!(push_all(&[0x25, 0x40, 0x25]), [37, 37], "in one byte and in two");
    }

    #[test]
    fn a_value_beyond_the_largest_is_written_as_the_largest() {
        let mut buffer = Vec::new();
        write(&mut buffer, u64::MAX);
        assert_eq!(push_all(&buffer), [MAX]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(values in prop::collection::vec(0..=MAX, 0..20), shift in 0..62_u32) {
            let values: Vec<u64> = values.into_iter().map(|value| value >> shift).collect();
            let mut buffer = Vec::new();
            for value in &values {
                write(&mut buffer, *value);
            }
            prop_assert_eq!(push_all(&buffer), values);
        }
    }
}
