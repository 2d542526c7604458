//! What a connection leaves to chance: what a peer must not foresee, and what others must not come to rely on.

use posthaste_units::Rng;

use crate::packet::fixed_bit::FixedBit;

/// The connection's random numbers. Equal seeds give equal connections.
pub(crate) struct Chance {
    rng: Rng,
    fixed_bit: FixedBit,
}

impl Chance {
    /// Draws from the connection's own generator.
    pub(crate) fn new(rng: Rng) -> Self {
        Self { rng, fixed_bit: FixedBit::default() }
    }

    /// The generator: for path challenges, packet numbers that are skipped, and policies' seeds.
    pub(crate) fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Whether the peer takes 1-RTT packets with the fixed bit cleared (RFC 9287).
    pub(crate) fn free_fixed_bit(&mut self, is_free: bool) {
        self.fixed_bit.set_free(is_free);
    }

    /// The fixed bit of the next 1-RTT packet.
    pub(crate) fn fixed_bit(&mut self) -> bool {
        self.fixed_bit.next(&mut self.rng)
    }
}
