//! How many live connections an endpoint has with each peer's host, and which of them must be told.
//!
//! Policies that are told stand for as many flows as share the bottleneck. A connection is one of them from the end of
//! its handshake, which proves its address (before, anybody could write anybody's), until it closes, and while it has
//! something in flight: one that is idle shares nothing.

use std::net::IpAddr;

use posthaste_units::Rng;

use super::Endpoint;
use crate::connection::Connection;
use crate::router::keyed_map::{KeyedMap, keyed_map};
use crate::router::slots::{ConnectionHandle, Slots};

/// Beyond so many connections a further one makes no difference to any policy, and nobody else is told of it: behind a
/// large NAT each change would otherwise be told to thousands.
const MOST_TOLD: usize = 64;

/// Connections by the peer's host.
pub(super) struct Neighbours {
    by_host: KeyedMap<IpAddr, Vec<u32>>,
}

impl Neighbours {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self { by_host: keyed_map(rng) }
    }

    /// Connection `index` has come to a host; answers with those to tell how many there are, which is the number.
    fn join(&mut self, address: IpAddr, index: u32) -> (&[u32], u32) {
        // A host is one, however its address is written.
        let members = self.by_host.entry(address.to_canonical()).or_default();
        members.push(index);
        let count = members.len().min(MOST_TOLD) as u32;
        let told = if members.len() > MOST_TOLD { members.len() - 1 } else { 0 };
        (members.get(told..).unwrap_or_default(), count)
    }

    /// Connection `index` has left a host.
    fn leave(&mut self, address: IpAddr, index: u32) -> (&[u32], u32) {
        let host = address.to_canonical();
        if let Some(members) = self.by_host.get_mut(&host) {
            if let Some(place) = members.iter().position(|other| *other == index) {
                members.swap_remove(place);
            }
            if members.is_empty() {
                self.by_host.remove(&host);
            }
        }
        match self.by_host.get(&host) {
            Some(members) if members.len() < MOST_TOLD => (members, members.len() as u32),
            _ => (&[], 0),
        }
    }
}

impl Endpoint {
    /// How many live connections with its peer's host a connection's policies were told of last, itself included: 1
    /// to 64; 0 once it has been drained.
    pub fn live_connections(&self, handle: ConnectionHandle) -> u32 {
        let connection = self.slots.index(handle).and_then(|index| self.slots.get(index));
        connection.map_or(0, Connection::neighbours)
    }

    /// Brings up to date where a connection counts, if anywhere, and tells those that share its peer's host.
    pub(super) fn count_neighbour(&mut self, index: u32) {
        let Some(connection) = self.slots.get(index) else { return };
        let host = connection.is_live().then(|| connection.remote().ip().to_canonical());
        let before = self.slots.set_counted_at(index, host);
        if before == host {
            return;
        }
        if let Some(host) = before {
            let (told, count) = self.neighbours.leave(host, index);
            tell(&mut self.slots, told, count);
        }
        if let Some(host) = host {
            let (told, count) = self.neighbours.join(host, index);
            tell(&mut self.slots, told, count);
        }
    }
}

fn tell(slots: &mut Slots, told: &[u32], count: u32) {
    for index in told {
        if let Some(connection) = slots.get_mut(*index) {
            connection.set_neighbours(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn all_of_a_host_are_told_and_nobody_else() {
        let mut neighbours = Neighbours::new(&mut Rng::from_test_seed(1));
        let (here, mapped, there) = (host("192.0.2.1"), host("::ffff:192.0.2.1"), host("192.0.2.2"));
        assert_eq!(neighbours.join(here, 4), (&[4][..], 1));
        assert_eq!(neighbours.join(there, 5), (&[5][..], 1));
        assert_eq!(neighbours.join(mapped, 6), (&[4, 6][..], 2));
        assert_eq!(neighbours.leave(here, 4), (&[6][..], 1));
        assert_eq!(neighbours.leave(here, 6), (&[][..], 0));
        assert_eq!(neighbours.leave(here, 6), (&[][..], 0), "nobody is there any more");
        assert_eq!(neighbours.by_host.len(), 1, "nothing is kept of a host without connections");
    }

    #[test]
    fn a_crowd_is_not_told_of_each_newcomer() {
        let mut neighbours = Neighbours::new(&mut Rng::from_test_seed(1));
        let here = host("192.0.2.1");
        for index in 0..63 {
            neighbours.join(here, index);
        }
        assert_eq!(neighbours.join(here, 63).0.len(), 64);
        assert_eq!(neighbours.join(here, 64), (&[64][..], 64), "only itself");
        assert_eq!(neighbours.leave(here, 3), (&[][..], 0), "64 are left");
        assert_eq!(neighbours.leave(here, 4).1, 63);
    }
}
