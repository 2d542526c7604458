//! Endpoints that share a port: which of them owns a connection ID.
//!
//! Each endpoint gives its connections IDs that it owns by a keyed hash. So whatever hands out the port's datagrams, a
//! program in the kernel for example, needs no table, only the keys; and an endpoint that gets another's datagram knows
//! whose it is. IDs that clients choose for their first packets have an owner, too: repeated from another address, they
//! come to the same endpoint.

use std::num::NonZeroU16;

/// Bytes of a connection ID that are hashed, its first.
const HASHED: usize = 8;

/// The place of one of several endpoints that share a port.
///
/// The hash is `((w0 ^ k0) * k1 ^ w1 ^ k2) * k3 >> 15`, modulo the number of endpoints: `w0` and `w1` are the ID's first
/// eight bytes as two big-endian integers of 32 bits, `k0` to `k3` the keys, and the multiplications drop what does not fit
/// into 32 bits. It is simple because a classic BPF program must be able to compute it; who knows many of an endpoint's IDs
/// may find the keys, and learns no more by them than which IDs share an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Steering {
    keys: [u32; 4],
    endpoints: NonZeroU16,
    index: u16,
}

impl Steering {
    /// The place of the endpoint `index` (from 0) among `endpoints`. All of them need the same keys, drawn anew for each
    /// start of the server. `None` if `index` is not below `endpoints`.
    pub fn new(keys: [u32; 4], endpoints: NonZeroU16, index: u16) -> Option<Self> {
        let [k0, k1, k2, k3] = keys;
        // An even factor would lose a bit of what it multiplies.
        let keys = [k0, k1 | 1, k2, k3 | 1];
        (index < endpoints.get()).then_some(Self { keys, endpoints, index })
    }

    /// The keys of the hash, as they are used.
    pub fn keys(&self) -> [u32; 4] {
        self.keys
    }

    /// Number of endpoints that share the port.
    pub fn endpoints(&self) -> NonZeroU16 {
        self.endpoints
    }

    /// Which of them this is, from 0.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// The endpoint that owns `id`; `None` for one of less than eight bytes, which none of them has given.
    pub fn owner(&self, id: &[u8]) -> Option<u16> {
        let (w0, rest) = id.first_chunk::<HASHED>()?.split_first_chunk::<4>()?;
        let w1 = rest.first_chunk::<4>()?;
        let [k0, k1, k2, k3] = self.keys;
        let mixed = (u32::from_be_bytes(*w0) ^ k0).wrapping_mul(k1) ^ u32::from_be_bytes(*w1) ^ k2;
        Some(((mixed.wrapping_mul(k3) >> 15) % u32::from(self.endpoints.get())) as u16)
    }

    /// True if this endpoint owns `id`.
    pub(crate) fn owns(&self, id: &[u8]) -> bool {
        self.owner(id).is_none_or(|owner| owner == self.index)
    }
}

#[cfg(test)]
mod tests {
    use posthaste_units::Rng;

    use super::*;

    fn steering(endpoints: u16, index: u16) -> Option<Steering> {
        Steering::new([7, 0x9e37_79b9, 13, 0x85eb_ca6b], NonZeroU16::new(endpoints)?, index)
    }

    #[test]
    fn every_id_has_one_owner_and_owners_have_equal_parts() {
        let mut rng = Rng::from_seed([1; 32]);
        let all: Vec<Steering> = (0..6).map(|index| steering(6, index).unwrap()).collect();
        let mut counts = [0; 6];
        for _ in 0..12_000 {
            let mut id = [0; 8];
            rng.fill(&mut id);
            let owner = all[0].owner(&id).unwrap();
            counts[usize::from(owner)] += 1;
            let owners = all.iter().filter(|steering| steering.owns(&id));
            assert_eq!(owners.map(Steering::index).collect::<Vec<_>>(), [owner]);
        }
        assert!(counts.iter().all(|count| (1_800..2_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn only_the_first_eight_bytes_count() {
        let steering = steering(5, 0).unwrap();
        assert_eq!(steering.owner(&[1, 2, 3, 4, 5, 6, 7]), None);
        assert_eq!(steering.owner(&[1, 2, 3, 4, 5, 6, 7, 8]), steering.owner(&[1, 2, 3, 4, 5, 6, 7, 8, 9]));
    }

    #[test]
    fn a_place_must_exist() {
        assert!(steering(2, 1).is_some());
        assert!(steering(2, 2).is_none());
    }
}
