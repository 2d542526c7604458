//! What the endpoint keeps for the streams of one connection, by identifier.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use posthaste_transport::StreamId;

use crate::connection_state::StreamState;

/// Smaller tables keep their room until they are empty.
const LEAST_ROOM: usize = 64;

/// A hash map: each request looks its stream up some ten times.
#[derive(Debug, Default)]
pub(crate) struct StreamTable {
    records: HashMap<StreamId, StreamState, BuildHasherDefault<Spread>>,
    /// Streams that there were at most since the table was last empty, and before that: what is made room for at once when
    /// streams come again.
    peak: u16,
    peak_before: u16,
}

impl StreamTable {
    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut StreamState> {
        self.records.get_mut(&id)
    }

    /// The record of a stream; a new one if there is none.
    pub(crate) fn entry(&mut self, id: StreamId) -> &mut StreamState {
        if self.records.is_empty() {
            self.records.reserve(usize::from(self.peak_before).min(LEAST_ROOM));
        }
        self.records.entry(id).or_default()
    }

    /// Forgets a stream. Many that have left leave no memory behind.
    pub(crate) fn remove(&mut self, id: StreamId) {
        // The most that there were shows in what is left when one goes.
        self.peak = self.peak.max(u16::try_from(self.records.len()).unwrap_or(u16::MAX));
        self.records.remove(&id);
        if self.records.is_empty() {
            self.peak_before = std::mem::take(&mut self.peak);
            self.records = HashMap::default();
        } else if self.records.capacity() > LEAST_ROOM.max(self.records.len().saturating_mul(8)) {
            // Half of the room stays free, so that what is moved is paid for by many removals before it.
            self.records.shrink_to(self.records.len() * 2);
        }
    }

    /// All records, in the order of the identifiers.
    pub(crate) fn in_order(&mut self) -> impl Iterator<Item = &mut StreamState> {
        let mut all: Vec<_> = self.records.iter_mut().collect();
        all.sort_unstable_by_key(|(id, _)| **id);
        all.into_iter().map(|(_, state)| state)
    }
}

/// Spreads stream identifiers, whose low bits are mostly equal. Without a secret: a peer can make identifiers collide, but
/// only those of streams that are open at once count, of which it may have no more than it is permitted.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // The golden ratio's digits: neighbours land far from each other.
        let product = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use posthaste_transport::{Direction, Side};

    use super::*;

    #[test]
    fn streams_in_a_row_and_streams_far_apart_are_spread() {
        for step in [1_u64, 2, 64, 256, 4096, 1 << 20] {
            let hashes = (0..256).map(|number| {
                let mut spread = Spread::default();
                spread.write_u64(
                    StreamId::new(Side::Client, Direction::Bidirectional, number * step).to_wire(),
                );
                spread.finish() & 511
            });
            let buckets = hashes.collect::<BTreeSet<_>>().len();
            assert!(buckets > 120, "{buckets} of 512 buckets for 256 streams, each {step} behind the last");
        }
    }

    #[test]
    fn a_crowd_of_streams_leaves_no_room_behind_and_the_order_is_that_of_the_numbers() {
        let id = |index| StreamId::new(Side::Server, Direction::Unidirectional, index);
        let mut table = StreamTable::default();
        for index in (0..10_000).rev() {
            table.entry(id(index)).write_blocked = index % 2 == 0;
        }
        let marks =
            |table: &mut StreamTable| table.in_order().map(|state| state.write_blocked).collect::<Vec<_>>();
        assert!(marks(&mut table).iter().zip(0..).all(|(mark, index)| *mark == (index % 2 == 0)));
        for index in 2..10_000 {
            table.remove(id(index));
        }
        assert_eq!(marks(&mut table), [true, false]);
        assert!(
            table.records.capacity() <= 2 * LEAST_ROOM,
            "{} places for two streams",
            table.records.capacity()
        );
        assert!(table.get_mut(id(1)).is_some() && table.get_mut(id(2)).is_none());
        for index in 0..2 {
            table.remove(id(index));
        }
        assert_eq!(table.records.capacity(), 0);
    }
}
