//! What a connection leaves to chance: what a peer must not foresee, and what others must not come to rely on.

use posthaste_units::{FrozenRng, Rng};

use crate::packet::fixed_bit::FixedBit;

/// The connection's random numbers. Equal seeds give equal connections.
pub(crate) struct Chance {
    /// The generator while nobody draws, and where it was before it was woken.
    frozen: FrozenRng,
    awake: Option<Box<Rng>>,
    fixed_bit: FixedBit,
}

impl Chance {
    /// Draws from the connection's own generator.
    pub(crate) fn new(rng: &Rng) -> Self {
        Self { frozen: rng.freeze(), awake: None, fixed_bit: FixedBit::default() }
    }

    /// The generator: for path challenges, packet numbers that are skipped, and policies' seeds.
    pub(crate) fn rng(&mut self) -> &mut Rng {
        wake(&mut self.awake, &self.frozen)
    }

    /// The connection rests: the generator goes on from where it is whenever it is needed again.
    pub(crate) fn rest(&mut self) {
        if let Some(rng) = self.awake.take() {
            self.frozen = rng.freeze();
        }
    }

    /// Whether the peer takes 1-RTT packets with the fixed bit cleared (RFC 9287).
    pub(crate) fn free_fixed_bit(&mut self, is_free: bool) {
        self.fixed_bit.set_free(is_free);
    }

    /// The fixed bit of the next 1-RTT packet.
    pub(crate) fn fixed_bit(&mut self) -> bool {
        self.fixed_bit.next(|| wake(&mut self.awake, &self.frozen).next_u64())
    }
}

fn wake<'a>(awake: &'a mut Option<Box<Rng>>, frozen: &FrozenRng) -> &'a mut Rng {
    awake.get_or_insert_with(|| Box::new(frozen.thaw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_same_whether_the_connection_rests_or_not() {
        let rng = Rng::from_test_seed(5);
        let (mut awake, mut resting) = (Chance::new(&rng), Chance::new(&rng));
        awake.free_fixed_bit(true);
        resting.free_fixed_bit(true);
        for _ in 0..200 {
            resting.rest();
            assert_eq!(awake.fixed_bit(), resting.fixed_bit());
            assert_eq!(awake.rng().next_u64(), resting.rng().next_u64());
        }
    }
}
