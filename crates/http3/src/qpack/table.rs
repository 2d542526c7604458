//! The dynamic table (RFC 9204 section 3.2): entries in the order of their insertion.

use std::collections::VecDeque;

use bytes::Bytes;

/// Overhead of each entry in bytes (RFC 9204 section 3.2.1).
pub(super) const ENTRY_OVERHEAD: u64 = 32;

/// An entry of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Bytes,
    pub(super) value: Bytes,
}

impl Entry {
    /// Size in bytes, as the RFC counts it.
    pub(super) fn size(&self) -> u64 {
        entry_size(&self.name, &self.value)
    }
}

/// Size of an entry in bytes (RFC 9204 section 3.2.1).
pub(super) const fn entry_size(name: &[u8], value: &[u8]) -> u64 {
    name.len() as u64 + value.len() as u64 + ENTRY_OVERHEAD
}

/// A table, empty and of capacity 0 at first. Entries are named by their absolute index (RFC 9204 section 3.2.4).
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The oldest first.
    entries: VecDeque<Entry>,
    /// All insertions so far (the Insert Count).
    inserted: u64,
    size: u64,
    capacity: u64,
}

impl Table {
    /// Number of all insertions, which is the absolute index of the next entry.
    pub(super) const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Capacity in bytes.
    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Absolute index of the oldest entry, or of the next if the table is empty.
    fn first(&self) -> u64 {
        self.inserted - self.entries.len() as u64
    }

    /// The entry with this absolute index; `None` if it was evicted or never inserted.
    pub(super) fn get(&self, absolute: u64) -> Option<&Entry> {
        let place = absolute.checked_sub(self.first())?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    /// Absolute index of the newest entry with this name and value.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Option<u64> {
        let place = self.entries.iter().rposition(|entry| entry.value == value && entry.name == name)?;
        Some(self.first() + place as u64)
    }

    /// Changes the capacity, in bytes; evicts the oldest entries that it does not hold.
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.evict_to(capacity);
    }

    /// Appends an entry, before which the oldest are evicted until it has room; false, without effect, if it is larger
    /// than the capacity.
    pub(super) fn insert(&mut self, entry: Entry) -> bool {
        let size = entry.size();
        let Some(rest) = self.capacity.checked_sub(size) else { return false };
        self.evict_to(rest);
        self.entries.push_back(entry);
        self.size += size;
        self.inserted += 1;
        true
    }

    /// True if an entry of `size` bytes has room when entries below the absolute index `evictable` make place.
    pub(super) fn has_room(&self, size: u64, evictable: u64) -> bool {
        let mut free = self.capacity - self.size;
        let evictable = evictable.saturating_sub(self.first()) as usize;
        for entry in self.entries.iter().take(evictable) {
            if free >= size {
                break;
            }
            free += entry.size();
        }
        free >= size
    }

    fn evict_to(&mut self, size: u64) {
        while self.size > size
            && let Some(evicted) = self.entries.pop_front()
        {
            self.size -= evicted.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &'static str, value: &'static str) -> Entry {
        Entry { name: Bytes::from_static(name.as_bytes()), value: Bytes::from_static(value.as_bytes()) }
    }

    #[test]
    fn the_oldest_entries_make_room() {
        let mut table = Table::default();
        assert!(!table.insert(entry("", "")), "no capacity");
        table.set_capacity(100);
        assert!(table.insert(entry("a", "1")) && table.insert(entry("b", "2")));
        assert_eq!((table.get(0), table.get(1)), (Some(&entry("a", "1")), Some(&entry("b", "2"))));
        assert!(table.has_room(32, 0) && !table.has_room(33, 0) && table.has_room(33, 1));
        assert!(table.has_room(100, 2) && !table.has_room(100, 1) && !table.has_room(101, 2));
        assert!(table.insert(entry("c", "33")));
        assert_eq!((table.get(0), table.find(b"a", b"1"), table.find(b"b", b"2")), (None, None, Some(1)));
        assert!(
            !table.insert(entry("d", "x".repeat(68).leak())),
            "larger than the table: nothing is evicted"
        );
        assert!(table.get(1).is_some() && table.inserted() == 3);
        table.set_capacity(40);
        assert_eq!((table.get(1), table.find(b"c", b"33")), (None, Some(2)));
        table.set_capacity(0);
        assert_eq!((table.get(2), table.get(3), table.inserted()), (None, None, 3));
    }
}
