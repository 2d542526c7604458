//! Where the bytes of sessions lie: together, so that what is kept of a client that has left is not spread among what it
//! gave back, and pins that.

use std::collections::VecDeque;

/// Bytes of one block.
const BLOCK: usize = 64 * 1024;

/// Where something lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    block: u64,
    start: usize,
    end: usize,
}

/// Bytes in blocks, which go in the order in which they came.
#[derive(Default)]
pub(super) struct Shelf {
    blocks: VecDeque<Vec<u8>>,
    /// The number of the first of them.
    first: u64,
}

impl Shelf {
    /// Keeps these bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Place {
        let has_room = |block: &Vec<u8>| block.capacity() - block.len() >= bytes.len();
        if !self.blocks.back().is_some_and(has_room) {
            self.blocks.push_back(Vec::with_capacity(BLOCK.max(bytes.len())));
        }
        let block = self.first + self.blocks.len() as u64 - 1;
        let Some(last) = self.blocks.back_mut() else { return Place { block, start: 0, end: 0 } };
        let start = last.len();
        last.extend_from_slice(bytes);
        Place { block, start, end: last.len() }
    }

    /// What lies there; empty if it is gone.
    pub(super) fn get(&self, place: Place) -> &[u8] {
        let index = place.block.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        let block = index.and_then(|index| self.blocks.get(index));
        block.and_then(|block| block.get(place.start..place.end)).unwrap_or_default()
    }

    /// Nothing older than what lies there is needed any more.
    pub(super) fn forget_before(&mut self, place: Place) {
        while self.first < place.block && self.blocks.pop_front().is_some() {
            self.first += 1;
        }
    }

    #[cfg(test)]
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_given_back_until_its_block_goes() {
        let mut shelf = Shelf::default();
        let places: Vec<Place> = (0..1_000_u32).map(|n| shelf.add(&[n as u8; 250])).collect();
        assert_eq!(shelf.blocks(), 4);
        for (number, place) in places.iter().enumerate() {
            assert_eq!(shelf.get(*place), [number as u8; 250]);
        }
        let huge = shelf.add(&vec![1; 100_000]);
        assert_eq!(shelf.get(huge).len(), 100_000);
        shelf.forget_before(places[999]);
        assert_eq!(shelf.blocks(), 2);
        assert!(shelf.get(places[0]).is_empty());
        assert_eq!(shelf.get(places[999]), [999_u32 as u8; 250]);
        shelf.forget_before(huge);
        assert_eq!(shelf.blocks(), 1);
        assert_eq!(shelf.get(huge).len(), 100_000);
    }
}
