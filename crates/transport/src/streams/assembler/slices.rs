//! Slices of a stream that wait to be read.

use std::collections::VecDeque;

use bytes::Bytes;

/// A slice and what it wastes.
type Slice = (Bytes, usize);

/// A queue that keeps its first slice in place: most streams have one at a time, and that needs no memory of its own.
#[derive(Debug, Default)]
pub(super) struct Slices {
    /// `None` only if `rest` is empty.
    first: Option<Slice>,
    rest: VecDeque<Slice>,
}

impl Slices {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// True if nothing is here, and no memory.
    pub(super) fn is_bare(&self) -> bool {
        self.first.is_none() && self.rest.capacity() == 0
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut Slice> {
        self.first.as_mut()
    }

    pub(super) fn pop_front(&mut self) -> Option<Slice> {
        std::mem::replace(&mut self.first, self.rest.pop_front())
    }

    pub(super) fn push_back(&mut self, slice: Slice) {
        if self.first.is_none() {
            self.first = Some(slice);
        } else {
            self.rest.push_back(slice);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slice> {
        self.first.iter().chain(&self.rest)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slice> {
        self.first.iter_mut().chain(&mut self.rest)
    }

    /// Gives back room that is not in use.
    pub(super) fn shrink(&mut self) {
        self.rest.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_leave_in_the_order_in_which_they_came() {
        let mut slices = Slices::default();
        let slice = |number: usize| (Bytes::from(vec![0; number]), number);
        let (mut pushed, mut popped) = (0, 0);
        // Empty, one, and more, again and again.
        for burst in [1, 1, 3, 2, 5, 1] {
            assert!(slices.is_empty() && slices.front_mut().is_none());
            for _ in 0..burst {
                slices.push_back(slice(pushed));
                pushed += 1;
            }
            let numbers = |iter: &mut dyn Iterator<Item = usize>| iter.collect::<Vec<_>>();
            let expected = (popped..pushed).collect::<Vec<_>>();
            assert_eq!(numbers(&mut slices.iter().map(|(_, number)| *number)), expected);
            assert_eq!(numbers(&mut slices.iter_mut().map(|(_, number)| *number)), expected);
            for _ in 0..burst {
                assert_eq!(slices.front_mut().cloned(), Some(slice(popped)));
                assert_eq!(slices.pop_front(), Some(slice(popped)));
                popped += 1;
            }
            slices.shrink();
        }
        assert_eq!(slices.pop_front(), None);
    }
}
