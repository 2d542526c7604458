//! Misfortune in exact shares.

use posthaste_units::Rng;

/// A schedule of cards, some of them bad, that is shuffled anew when it is used up: independent draws would spare a
/// short handshake every now and then, or hit it beyond what was asked for.
pub(crate) struct ShuffledSchedule {
    bad: usize,
    size: usize,
    cards: Vec<bool>,
    rng: Rng,
}

impl ShuffledSchedule {
    /// `bad` of `size` cards; none of none is never bad.
    pub(crate) fn new(bad: usize, size: usize, rng: Rng) -> Self {
        Self { bad, size, cards: Vec::new(), rng }
    }

    /// True if the next card is bad.
    pub(crate) fn draw(&mut self) -> bool {
        if self.cards.is_empty() {
            self.cards.extend((0..self.size).map(|card| card < self.bad));
            for last in (1..self.size).rev() {
                self.cards.swap(last, self.rng.below(last as u64 + 1) as usize);
            }
        }
        self.cards.pop().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_deck_has_exactly_its_bad_cards() {
        let mut schedule = ShuffledSchedule::new(3, 10, Rng::from_test_seed(1));
        for _ in 0..50 {
            assert_eq!((0..10).filter(|_| schedule.draw()).count(), 3);
        }
    }

    #[test]
    fn no_cards_are_never_bad() {
        let mut schedule = ShuffledSchedule::new(0, 0, Rng::from_test_seed(1));
        assert!((0..100).all(|_| !schedule.draw()));
    }
}
