//! A fast hash over everything that a run sends: equal runs have equal hashes. Not for adversaries.

use posthaste_units::Time;

use crate::packet::{Body, Packet};

/// Odd, with bits of no pattern (the golden ratio's fraction).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A running hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceHash(u64);

impl TraceHash {
    pub(crate) const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    /// Adds a packet that leaves `host` at `now`.
    pub(crate) fn add(&mut self, now: Time, host: usize, packet: &Packet) {
        self.mix(now.as_nanos());
        self.mix(host as u64 ^ packet.wire_length() << 32 ^ packet.ecn.map_or(0, |ecn| ecn as u64 + 1) << 16);
        match &packet.body {
            Body::Udp(payload) => self.bytes(payload),
            Body::Tcp(segment) => segment.digest(&mut |word| self.mix(word)),
        }
    }

    /// The hash as 16 hexadecimal digits.
    pub(crate) fn digits(self) -> String {
        format!("{:016x}", self.0)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last));
    }

    fn mix(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word) * u128::from(MULTIPLIER);
        self.0 = (wide as u64) ^ ((wide >> 64) as u64).rotate_left(32) ^ word.rotate_left(17);
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    fn hash(packets: &[(u64, &[u8])]) -> String {
        let mut hash = TraceHash::EMPTY;
        for (at, bytes) in packets {
            hash.add(Time::from_nanos(*at), 0, &Packet::udp(BytesMut::from(*bytes), None));
        }
        hash.digits()
    }

    #[test]
    fn time_content_length_and_order_all_count() {
        let base = hash(&[(1, b"abcdefghij"), (2, b"k")]);
        assert_eq!(base, hash(&[(1, b"abcdefghij"), (2, b"k")]));
        assert_ne!(base, hash(&[(1, b"abcdefghij"), (3, b"k")]));
        assert_ne!(base, hash(&[(1, b"abcdefghiJ"), (2, b"k")]));
        assert_ne!(base, hash(&[(1, b"abcdefghij"), (2, b"k\0")]));
        assert_ne!(base, hash(&[(2, b"k"), (1, b"abcdefghij")]));
    }
}
