//! Packet numbers, of which only the low bytes are sent (RFC 9000 section 17.1, appendices A.2 and A.3).

use crate::varint;

/// Most bytes of a packet number that are sent.
pub const MAX_LEN: usize = 4;

/// The part of a packet number that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncatedNumber {
    /// The low `len` bytes of the packet number; the bits above are 0.
    pub value: u32,
    /// Number of bytes sent, 1 to 4.
    pub len: u8,
}

#[expect(clippy::len_without_is_empty, reason = "at least one byte is always sent")]
impl TruncatedNumber {
    /// The low `len` (1 to 4, others are clamped) bytes of `number`.
    pub fn new(number: u64, len: u8) -> Self {
        let len = len.clamp(1, MAX_LEN as u8);
        Self { value: (number & mask(len)) as u32, len }
    }

    /// Bytes that are sent, 1 to 4.
    pub const fn len(self) -> usize {
        self.len as usize
    }

    /// The two low bits of the first byte: length minus one.
    pub(crate) const fn length_bits(self) -> u8 {
        self.len.wrapping_sub(1) & super::header::NUMBER_LEN
    }

    /// Appends the bytes.
    pub fn write(self, buffer: &mut Vec<u8>) {
        let bytes = self.value.to_be_bytes();
        buffer.extend_from_slice(bytes.get(MAX_LEN.saturating_sub(self.len())..).unwrap_or_default());
    }
}

/// All bits of a number of `len` bytes, which is 1 to 4.
const fn mask(len: u8) -> u64 {
    (1 << (len as u32 * 8)) - 1
}

/// Truncates `number`, to be sent while the peer has acknowledged `largest_acked` (`None`: nothing yet), so that
/// the peer can restore it: to the fewest bytes that hold more than twice the distance (section 17.1).
///
/// A distance of 2^31 or more cannot be told; it gets all four bytes.
pub fn encode(number: u64, largest_acked: Option<u64>) -> TruncatedNumber {
    // spec: rfc9000 17.1 full-number-first, 17.1 number-long-enough
    let unacknowledged = match largest_acked {
        Some(acked) => number.saturating_sub(acked),
        None => number.saturating_add(1),
    };
    let len = match unacknowledged {
        0..=0x7f => 1,
        0x80..=0x7fff => 2,
        0x8000..=0x7f_ffff => 3,
        _ => 4,
    };
    TruncatedNumber::new(number, len)
}

/// Restores a packet number of which the low `len` (1 to 4) bytes are `truncated`: the one that is closest to the
/// successor of `largest_received` (`None`: nothing yet). At most 2^62 - 1.
pub fn decode(largest_received: Option<u64>, truncated: u32, len: u8) -> u64 {
    let mask = mask(len.clamp(1, MAX_LEN as u8));
    let window = mask + 1;
    let half = window / 2;
    let expected = largest_received.map_or(0, |largest| largest.saturating_add(1)).min(varint::MAX);
    let candidate = expected & !mask | u64::from(truncated) & mask;
    // Neither sum overflows: all terms are below 2^62.
    if candidate + half <= expected && candidate + window <= varint::MAX {
        candidate + window
    } else if candidate > expected + half && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

/// Reads the bytes of a truncated packet number: all of `bytes`, of which there are 1 to 4.
pub fn read(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
}
