//! What is left to chance so that others keep ignoring it: the fixed bit (RFC 9287).

/// The fixed bit of 1-RTT packets: set, until the peer has said that it takes any.
#[derive(Debug, Default)]
pub(crate) struct FixedBit {
    is_free: bool,
    /// Random bits, and how many of them are left: a draw a packet would be a waste.
    bits: u64,
    left: u32,
}

impl FixedBit {
    /// Whether the peer takes packets with the bit cleared.
    pub(crate) fn set_free(&mut self, is_free: bool) {
        self.is_free = is_free;
    }

    /// The next packet's bit; `draw` gives random ones.
    pub(crate) fn next(&mut self, draw: impl FnOnce() -> u64) -> bool {
        if !self.is_free {
            return true;
        }
        if self.left == 0 {
            (self.bits, self.left) = (draw(), u64::BITS);
        }
        self.left -= 1;
        // spec: rfc9287 3.1 unpredictable
        (self.bits >> self.left) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use posthaste_units::Rng;

    use super::*;

    #[test]
    fn the_bit_is_set_until_the_peer_allows_otherwise_and_random_then() {
        // spec: rfc9287 3.1 unpredictable, 3.1 never-unknown
        let (mut bit, mut rng) = (FixedBit::default(), Rng::from_test_seed(1));
        assert!((0..1000).all(|_| bit.next(|| rng.next_u64())));
        bit.set_free(true);
        let set = (0..10_000).filter(|_| bit.next(|| rng.next_u64())).count();
        // Five deviations of a fair coin.
        assert!((4750..=5250).contains(&set), "{set}");
    }
}
