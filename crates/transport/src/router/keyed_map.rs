//! A hash map for keys that a peer chooses: `SipHash` under a secret key, so that a peer cannot make keys collide,
//! and the key drawn from the endpoint's seed, so that runs repeat.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use posthaste_units::Rng;
use siphasher::sip::SipHasher13;

/// Smaller maps keep their room.
const LEAST_ROOM: usize = 1024;

/// Builds `SipHash`-1-3 hashers under one key.
#[derive(Clone)]
pub(crate) struct KeyedHash(u64, u64);

impl KeyedHash {
    /// One under a fresh key.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        Self(rng.next_u64(), rng.next_u64())
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, self.1)
    }
}

/// A map that is looked up but never iterated.
pub(crate) type KeyedMap<K, V> = HashMap<K, V, KeyedHash>;

/// An empty map under a fresh key.
pub(crate) fn keyed_map<K, V>(rng: &mut Rng) -> KeyedMap<K, V> {
    HashMap::with_hasher(KeyedHash::draw(rng))
}

/// Removes an entry. A map that has become almost empty gives memory back: a crowd's tables must not outlive it.
pub(crate) fn remove<K: Eq + Hash, V>(map: &mut KeyedMap<K, V>, key: &K) -> Option<V> {
    let removed = map.remove(key);
    // Half of the room stays free, so that what is moved is paid for by many removals before it.
    if map.capacity() > LEAST_ROOM.max(map.len().saturating_mul(8)) {
        map.shrink_to(map.len() * 2);
    }
    removed
}

#[cfg(test)]
mod tests {
    use posthaste_wire::ConnectionId;

    use super::*;

    /// Of `keys`, those that fall into the first of 256 buckets: what somebody would send who knew the key.
    fn colliding(hash: &KeyedHash) -> Vec<ConnectionId> {
        let ids = (0..100_000_u64).filter_map(|number| ConnectionId::new(&number.to_be_bytes()));
        ids.filter(|id| hash.hash_one(id).is_multiple_of(256)).collect()
    }

    #[test]
    fn a_map_gives_its_room_back_as_it_empties() {
        let mut map: KeyedMap<u32, u32> = keyed_map(&mut Rng::from_test_seed(1));
        map.extend((0..100_000).map(|number| (number, number)));
        for number in 0..100_000 {
            assert_eq!(remove(&mut map, &number), Some(number));
            assert!(map.capacity() <= LEAST_ROOM.max(8 * map.len()), "{} for {}", map.capacity(), map.len());
        }
        assert_eq!(remove(&mut map, &0), None);
    }

    #[test]
    fn ids_that_collide_under_one_key_do_not_under_another() {
        let maps: [KeyedMap<ConnectionId, u8>; 2] =
            [1, 2].map(|seed| keyed_map(&mut Rng::from_test_seed(seed)));
        let chosen = colliding(&KeyedHash(0, 0));
        assert!(chosen.len() > 300, "{}", chosen.len());
        for map in &maps {
            let hit = chosen.iter().filter(|id| map.hasher().hash_one(id).is_multiple_of(256)).count();
            assert!(hit < 20, "{hit} of {} that were chosen for another key", chosen.len());
        }
        let hashes = maps.map(|map| map.hasher().hash_one(ConnectionId::EMPTY));
        assert_ne!(hashes[0], hashes[1], "each endpoint has a key of its own");
    }
}
