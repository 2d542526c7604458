//! The connection that an ID names.

use posthaste_units::Rng;
use posthaste_wire::ConnectionId;

use super::keyed_map::{KeyedMap, keyed_map, remove};

/// Connection IDs, and the indices of their connections.
pub(crate) struct Routes {
    map: KeyedMap<ConnectionId, u32>,
    /// What was found last: a batch of datagrams is usually for one connection, and need not be hashed each time.
    last: Option<(ConnectionId, u32)>,
}

impl Routes {
    /// None yet, under a fresh key.
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self { map: keyed_map(rng), last: None }
    }

    /// The connection that an ID names.
    pub(super) fn find(&mut self, id: &ConnectionId) -> Option<u32> {
        if let Some((last, index)) = &self.last
            && last == id
        {
            return Some(*index);
        }
        let index = *self.map.get(id)?;
        self.last = Some((*id, index));
        Some(index)
    }

    pub(super) fn contains(&self, id: &ConnectionId) -> bool {
        self.map.contains_key(id)
    }

    pub(super) fn insert(&mut self, id: ConnectionId, index: u32) {
        self.last = None;
        self.map.insert(id, index);
    }

    pub(super) fn remove(&mut self, id: &ConnectionId) {
        self.last = None;
        remove(&mut self.map, id);
    }

    /// Removes an ID if it names this connection.
    pub(super) fn remove_of(&mut self, id: &ConnectionId, index: u32) {
        if self.map.get(id) == Some(&index) {
            self.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).unwrap_or_default()
    }

    #[test]
    fn what_was_found_last_does_not_outlive_its_route() {
        let mut routes = Routes::new(&mut Rng::from_test_seed(1));
        routes.insert(id(1), 10);
        routes.insert(id(2), 20);
        for _ in 0..2 {
            assert_eq!(routes.find(&id(1)), Some(10));
        }
        assert_eq!(routes.find(&id(2)), Some(20));
        routes.insert(id(2), 21);
        assert_eq!(routes.find(&id(2)), Some(21), "another connection has the ID now");
        routes.remove_of(&id(2), 20);
        assert_eq!(routes.find(&id(2)), Some(21), "the ID is no longer the first one's to remove");
        routes.remove_of(&id(2), 21);
        assert_eq!(routes.find(&id(2)), None);
        assert_eq!(routes.find(&id(1)), Some(10));
        routes.remove(&id(1));
        assert_eq!(routes.find(&id(1)), None);
        assert!(!routes.contains(&id(1)));
    }
}
