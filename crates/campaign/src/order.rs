//! The order of runs: round by round, so that a change of the machine's load meets all contestants alike.

/// The contestants of a round (counted from 1), each once. Every round begins with the next contestant, so that none is
/// always the first.
pub fn of_round(contestants: usize, round: u64) -> impl Iterator<Item = usize> {
    let first = (round.saturating_sub(1) % contestants.max(1) as u64) as usize;
    (0..contestants).map(move |place| (first + place) % contestants)
}

/// The seed of a round (counted from 1): the same for all of its contestants.
pub fn seed_of(first_seed: u64, round: u64) -> u64 {
    first_seed.wrapping_add(round).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_all_and_begins_with_the_next() {
        let rounds: Vec<Vec<usize>> = (1..=4).map(|round| of_round(3, round).collect()).collect();
        assert_eq!(rounds, [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]);
        assert_eq!(of_round(0, 1).count(), 0);
        assert_eq!((seed_of(7, 1), seed_of(7, 3), seed_of(u64::MAX, 2)), (7, 9, 0));
    }
}
