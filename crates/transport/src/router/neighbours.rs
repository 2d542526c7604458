//! How many connections an endpoint has with each peer's host, and which must be told.

use std::net::IpAddr;

use posthaste_units::Rng;

use super::Endpoint;
use crate::keyed_map::{KeyedMap, keyed_map};

/// Beyond so many connections a further one makes no difference to any policy, and nobody is told of it: behind a large
/// NAT each change would otherwise be told to thousands.
const MOST_TOLD: usize = 64;

/// Connections by the peer's host.
pub(super) struct Neighbours {
    by_host: KeyedMap<IpAddr, Vec<u32>>,
}

impl Neighbours {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self { by_host: keyed_map(rng) }
    }

    /// A host as one, however its address is written.
    fn host(address: IpAddr) -> IpAddr {
        address.to_canonical()
    }
}

impl Endpoint {
    /// A connection has come to a host.
    pub(super) fn join_neighbours(&mut self, address: IpAddr, index: u32) {
        let host = Neighbours::host(address);
        let members = self.neighbours.by_host.entry(host).or_default();
        members.push(index);
        if members.len() > MOST_TOLD {
            if let Some(connection) = self.slots.get_mut(index) {
                connection.set_neighbours(MOST_TOLD as u32);
            }
            return;
        }
        self.tell_neighbours(host);
    }

    /// A connection has left a host.
    pub(super) fn leave_neighbours(&mut self, address: IpAddr, index: u32) {
        let host = Neighbours::host(address);
        let Some(members) = self.neighbours.by_host.get_mut(&host) else { return };
        members.retain(|other| *other != index);
        if members.is_empty() {
            self.neighbours.by_host.remove(&host);
        } else if members.len() < MOST_TOLD {
            self.tell_neighbours(host);
        }
    }

    fn tell_neighbours(&mut self, host: IpAddr) {
        let Some(members) = self.neighbours.by_host.get(&host) else { return };
        for index in members {
            if let Some(connection) = self.slots.get_mut(*index) {
                connection.set_neighbours(members.len() as u32);
            }
        }
    }
}
