//! Handshakes in progress, by client: nobody may keep others from beginning theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use posthaste_units::client_network;

use crate::limits::{LEAST_PENDING_SHARE, PENDING_SHARES};

/// Handshakes in progress. A client is an IPv4 address or the /64 of an IPv6 address.
#[derive(Debug, Default)]
pub(super) struct Pending {
    total: usize,
    of: BTreeMap<IpAddr, Client>,
    /// Handshakes whose clients have not proved their addresses, and the connections, in the order of their beginnings.
    unanswered: BTreeMap<u64, u32>,
    next: u64,
}

/// The handshakes of one client.
#[derive(Debug, Default)]
struct Client {
    count: usize,
    unanswered: BTreeSet<u64>,
}

/// One handshake among those in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    client: IpAddr,
    number: u64,
}

/// Whether another handshake may begin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// It may.
    Free,
    /// It may if this connection's gives way: the one that has waited longest for an answer.
    InsteadOf(u32),
    /// All that are in progress have proved their addresses.
    None,
}

impl Pending {
    /// Handshakes of all clients.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// True if the client has its share of the `most` that may be in progress.
    pub(super) fn is_share_used(&self, client: IpAddr, most: usize) -> bool {
        let share = (most / PENDING_SHARES).max(LEAST_PENDING_SHARE);
        self.of.get(&client_network(client)).is_some_and(|of| of.count >= share)
    }

    /// Room for one more handshake of the client. Where its share is used, one of its own gives way.
    pub(super) fn room(&self, client: IpAddr, most: usize) -> Room {
        let oldest = if self.is_share_used(client, most) {
            let own = self.of.get(&client_network(client)).and_then(|of| of.unanswered.first());
            own.and_then(|number| self.unanswered.get(number))
        } else if self.total >= most {
            self.unanswered.values().next()
        } else {
            return Room::Free;
        };
        oldest.map_or(Room::None, |index| Room::InsteadOf(*index))
    }

    /// The handshake of a connection begins; `is_validated` if the client has shown a token.
    pub(super) fn begin(&mut self, client: IpAddr, index: u32, is_validated: bool) -> Ticket {
        let ticket = Ticket { client: client_network(client), number: self.next };
        self.next += 1;
        self.total += 1;
        let of = self.of.entry(ticket.client).or_default();
        of.count += 1;
        if !is_validated {
            of.unanswered.insert(ticket.number);
            self.unanswered.insert(ticket.number, index);
        }
        ticket
    }

    /// The handshake is over, however it ended.
    pub(super) fn end(&mut self, ticket: Ticket) {
        self.unanswered.remove(&ticket.number);
        if let Some(of) = self.of.get_mut(&ticket.client) {
            of.unanswered.remove(&ticket.number);
            of.count -= 1;
            self.total -= 1;
            if of.count == 0 {
                self.of.remove(&ticket.client);
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
        let mut tickets = Vec::new();
        for index in 0..100 {
            assert!(!pending.is_share_used(one, 800));
            tickets.push(pending.begin(one, index, false));
        }
        assert!(pending.is_share_used(one, 800) && !pending.is_share_used(other, 800));
        tickets.push(pending.begin(other, 100, true));
        assert_eq!(pending.total(), 101);
        pending.end(tickets.remove(0));
        assert!(!pending.is_share_used(one, 800));
        for ticket in tickets {
            pending.end(ticket);
        }
        assert!(pending.of.is_empty() && pending.unanswered.is_empty() && pending.total() == 0);
    }

    #[test]
    fn the_oldest_without_an_answer_gives_way_and_never_one_with_a_token() {
        let (one, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let mut pending = Pending::default();
        // A share is 16 at least.
        pending.begin(one, 0, true);
        let oldest = pending.begin(one, 1, false);
        for index in 2..16 {
            pending.begin(one, index, false);
        }
        assert_eq!(pending.room(one, 40), Room::InsteadOf(1));
        assert_eq!(pending.room(other, 40), Room::Free);
        assert_eq!(pending.room(other, 16), Room::InsteadOf(1), "all together are too many");
        pending.end(oldest);
        assert_eq!((pending.room(one, 40), pending.room(one, 15)), (Room::Free, Room::InsteadOf(2)));
        let mut proved = Pending::default();
        for index in 0..16 {
            proved.begin(one, index, true);
        }
        assert_eq!((proved.room(one, 40), proved.room(other, 16)), (Room::None, Room::None));
    }

    #[test]
    fn a_subnet_is_one_client() {
        let mut pending = Pending::default();
        for host in 0..LEAST_PENDING_SHARE as u16 {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host);
            pending.begin(address.into(), host.into(), false);
        }
        assert!(pending.is_share_used("2001:db8::ffff:1".parse().expect("an address"), 0));
        assert!(!pending.is_share_used("2001:db8:0:1::1".parse().expect("an address"), 0));
    }
}
