//! Which connection a stateless reset ends: the connections by the reset tokens of the IDs that they send to
//! (RFC 9000 section 10.3.1).
//!
//! Each datagram with an unknown ID is looked for here, a client's first one too, so what that costs must not grow with
//! the connections that an address has. Tokens are kept and compared as hashes under a secret key only: how long it
//! takes to find one tells nothing of it, as the RFC asks for.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::SocketAddr;

use posthaste_units::Rng;
use posthaste_wire::ResetToken;

use crate::router::keyed_map::{KeyedHash, KeyedMap, remove};

/// The tokens of all connections. What a peer can fill is bounded by the connections and by how many of its IDs each
/// of them keeps.
pub(super) struct Resets {
    hash: KeyedHash,
    /// By the hash of the peer's address and the token.
    connections: KeyedMap<u64, u32>,
    /// What stands in `connections` for each of them.
    listed: KeyedMap<u32, Vec<u64>>,
}

impl Resets {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let hash = KeyedHash::draw(rng);
        let (connections, listed) = (HashMap::with_hasher(hash.clone()), HashMap::with_hasher(hash.clone()));
        Self { hash, connections, listed }
    }

    /// The connection whose peer resets it with this datagram, if it is one that is known.
    pub(super) fn find(&self, remote: SocketAddr, data: &[u8]) -> Option<u32> {
        let token = ResetToken(data.last_chunk().copied()?);
        self.connections.get(&self.key(remote, token)).copied()
    }

    /// The connection's peer is at `remote`, and these are the tokens of the IDs in use: those before no longer count.
    pub(super) fn list(&mut self, index: u32, remote: SocketAddr, tokens: impl Iterator<Item = ResetToken>) {
        // spec: rfc9000 10.3.1 only-tokens-in-use
        self.forget(index);
        let keys: Vec<u64> = tokens.map(|token| self.key(remote, token)).collect();
        for key in &keys {
            self.connections.insert(*key, index);
        }
        if !keys.is_empty() {
            self.listed.insert(index, keys);
        }
    }

    /// The connection is gone.
    pub(super) fn forget(&mut self, index: u32) {
        for key in remove(&mut self.listed, &index).unwrap_or_default() {
            // A peer may have given one token on two connections, though it must not.
            if self.connections.get(&key) == Some(&index) {
                remove(&mut self.connections, &key);
            }
        }
    }

    fn key(&self, remote: SocketAddr, token: ResetToken) -> u64 {
        self.hash.hash_one((remote, token.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u32) -> ResetToken {
        ResetToken([number.to_be_bytes(); 4].concat().try_into().unwrap())
    }

    fn reset(number: u32) -> Vec<u8> {
        [&[0x40; 30][..], &token(number).0].concat()
    }

    fn remote(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn each_of_many_connections_behind_one_address_is_found_by_its_own_tokens() {
        let mut resets = Resets::new(&mut Rng::from_test_seed(1));
        let count = 50_000;
        for index in 0..count {
            resets.list(index, remote(1), [token(2 * index), token(2 * index + 1)].into_iter());
        }
        // One bucket each: nothing is compared with the tokens of others.
        assert_eq!(resets.connections.len(), 2 * count as usize);
        for index in 0..count {
            assert_eq!(resets.find(remote(1), &reset(2 * index)), Some(index));
            assert_eq!(resets.find(remote(1), &reset(2 * index + 1)), Some(index));
            assert_eq!(resets.find(remote(2), &reset(2 * index)), None, "it comes from elsewhere");
        }
        assert_eq!(resets.find(remote(1), &reset(2 * count)), None);
        assert_eq!(resets.find(remote(1), &reset(0)[31..]), None, "too short");
        for index in 0..count {
            resets.forget(index);
            assert_eq!(resets.find(remote(1), &reset(2 * index)), None);
        }
        assert!(resets.connections.is_empty() && resets.listed.is_empty());
        assert!(
            resets.connections.capacity() + resets.listed.capacity() < 4_096,
            "a crowd's room is given back"
        );
    }

    #[test]
    fn only_the_tokens_listed_last_count() {
        let mut resets = Resets::new(&mut Rng::from_test_seed(1));
        resets.list(7, remote(1), [token(1), token(2)].into_iter());
        resets.list(7, remote(2), [token(2), token(3)].into_iter());
        assert_eq!(resets.find(remote(1), &reset(1)), None);
        assert_eq!(resets.find(remote(1), &reset(2)), None, "the peer has moved");
        assert_eq!(resets.find(remote(2), &reset(1)), None);
        assert_eq!(resets.find(remote(2), &reset(2)), Some(7));
        assert_eq!(resets.find(remote(2), &reset(3)), Some(7));
        // Another connection that is given the same token has it from then on, and keeps it.
        resets.list(8, remote(2), [token(3)].into_iter());
        resets.forget(7);
        assert_eq!(resets.find(remote(2), &reset(2)), None);
        assert_eq!(resets.find(remote(2), &reset(3)), Some(8));
    }
}
