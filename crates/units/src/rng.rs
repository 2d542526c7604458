//! Seeded generator, the source of all randomness below the endpoint.

use chacha20::ChaCha12Rng;
use rand_core::{Rng as _, SeedableRng};

/// Bytes of a generator's state.
const STATE: usize = 49;

/// A deterministic, cryptographically strong generator (`ChaCha12`), the same on every machine.
///
/// The endpoint seeds it from the operating system, the lab from the experiment's seed. Connection IDs and
/// `PATH_CHALLENGE` data must be unpredictable to a peer (RFC 9000 5.1, 8.2.1), hence the cipher.
pub struct Rng(ChaCha12Rng);

/// The copy yields what the original yields from here on.
impl Clone for Rng {
    fn clone(&self) -> Self {
        self.freeze().thaw()
    }
}

/// A generator that nobody draws from at the moment: see [`Rng::freeze`].
pub struct FrozenRng([u8; STATE]);

impl FrozenRng {
    /// A generator that yields what the frozen one would have yielded from there on.
    pub fn thaw(&self) -> Rng {
        Rng(ChaCha12Rng::deserialize_state(&self.0))
    }
}

impl std::fmt::Debug for FrozenRng {
    /// Hides the state, as that of [`Rng`].
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FrozenRng")
    }
}

impl Rng {
    /// A generator with a full 256-bit seed.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }

    /// A generator for repeatable runs; 64 bits are too few where an attacker must not guess them.
    pub fn from_test_seed(seed: u64) -> Self {
        Self(ChaCha12Rng::seed_from_u64(seed))
    }

    /// A generator whose stream is independent of what this one yields from here on.
    pub fn fork(&mut self) -> Self {
        let mut seed = [0; 32];
        self.fill(&mut seed);
        Self::from_seed(seed)
    }

    /// The generator as bytes, which take a sixth of its memory.
    pub fn freeze(&self) -> FrozenRng {
        FrozenRng(self.0.serialize_state())
    }

    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Fills `buffer` with uniform bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        self.0.fill_bytes(buffer);
    }

    /// A uniform integer in `0..bound` (zero if `bound` is zero), without modulo bias beyond 2^-64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A uniform real in `[0, 1)` with 53 bits.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`; never for `p <= 0`, always for `p >= 1`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit_f64() < p
    }
}

impl std::fmt::Debug for Rng {
    /// Hides the state: it predicts every later connection ID.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rng")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream_for_ever() {
        // Fixed values: a change of generator would silently change every recorded run.
        let mut rng = Rng::from_test_seed(1);
        let first = [rng.next_u64(), rng.next_u64()];
        assert_eq!(first, [17_971_643_333_364_160_609, 12_751_046_405_260_142_922]);
        assert_ne!(first[0], Rng::from_test_seed(2).next_u64());
    }

    #[test]
    fn a_copy_goes_on_like_the_original() {
        let mut rng = Rng::from_test_seed(3);
        // Inside and across the blocks of the generator.
        for length in [0, 1, 3, 4, 60, 256, 1000] {
            rng.fill(&mut vec![0; length]);
            let mut copy = rng.clone();
            let (mut theirs, mut ours) = (vec![0; 700], vec![0; 700]);
            copy.fill(&mut theirs);
            rng.clone().fill(&mut ours);
            assert_eq!(theirs, ours, "{length}");
            assert_eq!(copy.next_u64(), {
                let mut other = rng.clone();
                other.fill(&mut [0; 700]);
                other.next_u64()
            });
            rng.fill(&mut ours);
            assert_eq!(theirs, ours, "{length}");
        }
    }

    #[test]
    fn below_stays_in_range_and_reaches_both_ends() {
        let mut rng = Rng::from_test_seed(7);
        let draws: Vec<u64> = (0..1000).map(|_| rng.below(4)).collect();
        assert_eq!(draws.iter().min(), Some(&0));
        assert_eq!(draws.iter().max(), Some(&3));
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn chance_matches_its_probability() {
        let mut rng = Rng::from_test_seed(7);
        let hits = (0..100_000).filter(|_| rng.chance(0.05)).count();
        // 99.9 % interval of a binomial with n = 100,000 and p = 0.05 is +-227.
        assert!((4773..=5227).contains(&hits), "{hits}");
        assert!(!rng.chance(0.0));
        assert!(rng.chance(1.0));
    }
}
