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

    /// Mixes in the words of `bytes`, and a last one with the rest. Within a block, what the words alone decide is worked out
    /// beside the chain of multiplications, which is what takes the time.
    fn bytes(&mut self, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<32>();
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            let [first, second, third, fourth] =
                std::array::from_fn(|index| u64::from_le_bytes(words[index]));
            let own = |word: u64| word.rotate_left(17);
            let state = fold(self.0 ^ first, own(first) ^ second);
            let state = fold(state, own(second) ^ third);
            let state = fold(state, own(third) ^ fourth);
            self.0 = fold(state, own(fourth));
        }
        let (words, rest) = rest.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last));
    }

    fn mix(&mut self, word: u64) {
        self.0 = fold(self.0 ^ word, word.rotate_left(17));
    }
}

/// The two halves of a multiplication together, and `other`.
fn fold(state: u64, other: u64) -> u64 {
    let wide = u128::from(state) * u128::from(MULTIPLIER);
    (wide as u64 ^ other) ^ ((wide >> 64) as u64).rotate_left(32)
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
    fn blocks_are_what_their_words_are_one_by_one() {
        let bytes: Vec<u8> = (0..200u8).map(|index| index.wrapping_mul(37)).collect();
        for length in 0..bytes.len() {
            let (mut at_once, mut by_words) = (TraceHash::EMPTY, TraceHash::EMPTY);
            at_once.bytes(&bytes[..length]);
            let (words, rest) = bytes[..length].as_chunks::<8>();
            for word in words {
                by_words.mix(u64::from_le_bytes(*word));
            }
            let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            by_words.mix(last);
            assert_eq!(at_once.digits(), by_words.digits(), "{length} bytes");
        }
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
