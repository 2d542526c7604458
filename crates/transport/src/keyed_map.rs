//! A hash map for keys that a peer chooses: `SipHash` under a secret key, so that a peer cannot make keys collide,
//! and the key drawn from the endpoint's seed, so that runs repeat.

use std::collections::HashMap;
use std::hash::BuildHasher;

use posthaste_units::Rng;
use siphasher::sip::SipHasher13;

/// Builds `SipHash`-1-3 hashers under one key.
#[derive(Clone)]
pub(crate) struct KeyedHash(u64, u64);

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
    HashMap::with_hasher(KeyedHash(rng.next_u64(), rng.next_u64()))
}
