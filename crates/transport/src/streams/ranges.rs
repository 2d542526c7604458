//! A set of disjoint ranges of offsets.

use std::collections::BTreeMap;

/// Half-open ranges, disjoint and not adjacent, in order.
#[derive(Debug, Default)]
pub(super) struct RangeSet(BTreeMap<u64, u64>);

impl RangeSet {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lowest range.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.0.first_key_value().map(|(start, end)| (*start, *end))
    }

    /// Adds a range, merging it with what it overlaps or touches.
    pub(super) fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((&low, &high)) = self.0.range(..=end).next_back() {
            if high < start {
                break;
            }
            self.0.remove(&low);
            start = start.min(low);
            end = end.max(high);
        }
        self.0.insert(start, end);
    }

    /// Takes a range out, splitting what reaches beyond it.
    pub(super) fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        while let Some((&low, &high)) = self.0.range(..end).next_back() {
            if high <= start {
                break;
            }
            self.0.remove(&low);
            if high > end {
                self.0.insert(end, high);
            }
            if low < start {
                self.0.insert(low, start);
                break;
            }
        }
    }

    /// The ranges that overlap `start..end`, highest first.
    pub(super) fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.range(..end).rev().map(|(low, high)| (*low, *high)).take_while(move |(_, high)| *high > start)
    }
}

#[cfg(test)]
mod tests;
