//! What the model's ends exchange.

/// IPv4 and TCP headers with the timestamps option, in bytes.
pub const TCP_HEADERS: u64 = 20 + 20 + 12;

/// A TCP segment. Sequence numbers are byte offsets of 64 bits: the model never wraps.
#[derive(Debug, Clone, Default)]
pub struct Segment {
    /// Payload bytes.
    pub length: u64,
    /// Set by a link that flipped a bit: the receiver's checksum fails.
    pub is_corrupted: bool,
}

impl Segment {
    /// Bytes on the wire from the IP header on.
    pub fn wire_length(&self) -> u64 {
        TCP_HEADERS + self.length
    }

    /// Hands every field to `mix`, for the trace hash.
    pub(crate) fn digest(&self, mix: &mut dyn FnMut(u64)) {
        mix(self.length);
    }
}
