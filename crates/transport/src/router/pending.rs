//! Handshakes in progress, by client: nobody may keep others from beginning theirs.

use std::collections::BTreeMap;
use std::net::IpAddr;

use posthaste_policy::history::client_network;

use crate::limits::{LEAST_PENDING_SHARE, PENDING_SHARES};

/// Handshakes in progress. A client is an IPv4 address or the /64 of an IPv6 address.
#[derive(Debug, Default)]
pub(super) struct Pending {
    total: usize,
    of: BTreeMap<IpAddr, usize>,
}

impl Pending {
    /// Handshakes of all clients.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// True if the client has its share of the `most` that may be in progress.
    pub(super) fn is_share_used(&self, client: IpAddr, most: usize) -> bool {
        let share = (most / PENDING_SHARES).max(LEAST_PENDING_SHARE);
        self.of.get(&client_network(client)).is_some_and(|count| *count >= share)
    }

    pub(super) fn begin(&mut self, client: IpAddr) {
        self.total += 1;
        *self.of.entry(client_network(client)).or_default() += 1;
    }

    /// The handshake is over, however it ended.
    pub(super) fn end(&mut self, client: IpAddr) {
        let client = client_network(client);
        if let Some(count) = self.of.get_mut(&client) {
            *count -= 1;
            self.total -= 1;
            if *count == 0 {
                self.of.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn each_client_has_a_share_and_nothing_is_kept_of_those_that_are_gone() {
        let mut pending = Pending::default();
        let (one, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        for _ in 0..100 {
            assert!(!pending.is_share_used(one, 800));
            pending.begin(one);
        }
        assert!(pending.is_share_used(one, 800) && !pending.is_share_used(other, 800));
        pending.begin(other);
        assert_eq!(pending.total(), 101);
        pending.end(one);
        assert!(!pending.is_share_used(one, 800));
        for _ in 0..99 {
            pending.end(one);
        }
        pending.end(other);
        pending.end(other);
        assert!(pending.of.is_empty() && pending.total() == 0);
    }

    #[test]
    fn a_subnet_is_one_client() {
        let mut pending = Pending::default();
        for host in 0..LEAST_PENDING_SHARE as u16 {
            pending.begin(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host).into());
        }
        assert!(pending.is_share_used("2001:db8::ffff:1".parse().expect("an address"), 0));
        assert!(!pending.is_share_used("2001:db8:0:1::1".parse().expect("an address"), 0));
    }
}
