//! The streams of one lane, in the order of sending.

use std::collections::{BTreeSet, VecDeque};

use posthaste_wire::StreamId;

/// What orders the streams of a lane: turn, then identifier. Those sent in order have turn 0.
type Key = (u64, StreamId);

/// Streams up to which a lane is a queue: one joins at the back and leaves at the front, mostly, and what moves otherwise
/// is this many entries at the most.
const FEW: usize = 128;

/// Streams at which a lane that had more becomes a queue again: far enough below [`FEW`] that streams which come and go
/// do not change it each time.
const FEW_AGAIN: usize = FEW / 4;

/// Streams in ascending order of their keys.
#[derive(Debug)]
pub(super) enum Lane {
    Few(VecDeque<Key>),
    Many(BTreeSet<Key>),
}

impl Default for Lane {
    fn default() -> Self {
        Self::Few(VecDeque::new())
    }
}

impl Lane {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(keys) => keys.len(),
            Self::Many(keys) => keys.len(),
        }
    }

    /// The stream that sends next.
    pub(super) fn first(&self) -> Option<StreamId> {
        let first = match self {
            Self::Few(keys) => keys.front(),
            Self::Many(keys) => keys.first(),
        };
        first.map(|(_, id)| *id)
    }

    /// Adds a stream; false if it was in.
    pub(super) fn insert(&mut self, key: Key) -> bool {
        match self {
            Self::Few(keys) if keys.len() < FEW => {
                if keys.back().is_none_or(|last| *last < key) {
                    keys.push_back(key);
                    return true;
                }
                let Err(place) = keys.binary_search(&key) else { return false };
                keys.insert(place, key);
                true
            }
            Self::Few(keys) => {
                let mut many: BTreeSet<_> = keys.drain(..).collect();
                let is_new = many.insert(key);
                *self = Self::Many(many);
                is_new
            }
            Self::Many(keys) => keys.insert(key),
        }
    }

    /// Removes a stream; false if it was not in.
    pub(super) fn remove(&mut self, key: &Key) -> bool {
        match self {
            Self::Few(keys) => {
                if keys.front() == Some(key) {
                    return keys.pop_front().is_some();
                }
                let Ok(place) = keys.binary_search(key) else { return false };
                keys.remove(place).is_some()
            }
            Self::Many(keys) => {
                let was_in = keys.remove(key);
                if keys.len() <= FEW_AGAIN {
                    *self = Self::Few(keys.iter().copied().collect());
                }
                was_in
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_units::Rng;
    use posthaste_wire::{Direction, Side};

    use super::*;

    #[test]
    fn a_lane_is_a_set_in_order_however_many_streams_it_has() {
        let mut rng = Rng::from_test_seed(1);
        let (mut lane, mut set) = (Lane::default(), BTreeSet::new());
        let mut forms = [false; 2];
        for step in 0..20_000_u64 {
            let id = StreamId::new(Side::Client, Direction::Bidirectional, rng.below(400));
            let key = (rng.below(2), id);
            // It fills and empties in turn.
            if rng.below(4_000) < if step / 4_000 % 2 == 0 { 2_600 } else { 1_000 } {
                assert_eq!(lane.insert(key), set.insert(key));
            } else {
                assert_eq!(lane.remove(&key), set.remove(&key));
            }
            let first = set.first().copied();
            assert_eq!((lane.first(), lane.len()), (first.map(|(_, id)| id), set.len()));
            if let (Some(first), 0) = (first, rng.below(8)) {
                assert!(lane.remove(&first) && set.remove(&first));
            }
            forms[usize::from(matches!(lane, Lane::Many(_)))] = true;
            assert!(matches!(lane, Lane::Many(_)) || lane.len() <= FEW);
        }
        assert_eq!(forms, [true; 2], "it has been both");
    }
}
