//! Connections per client.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posthaste_units::client_network;

/// Counts the connections of each client.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    connections: Mutex<BTreeMap<IpAddr, usize>>,
}

/// One connection of a client; given back when dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    clients: Arc<Clients>,
    network: IpAddr,
}

impl Clients {
    /// Counts a connection from this address, unless its client has `most` already.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Admitted> {
        let network = client_network(address);
        let mut connections = self.lock();
        let count = connections.entry(network).or_default();
        // Nobody is left behind with a count of zero.
        if *count >= most.max(1) {
            return None;
        }
        *count += 1;
        Some(Admitted { clients: Arc::clone(self), network })
    }

    /// The map is whole after every call.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut connections = self.clients.lock();
        if let Some(count) = connections.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_so_many_connections_and_no_more() {
        let clients = Arc::<Clients>::default();
        let address = |text: &str| text.parse().unwrap();
        let first = clients.admit(address("2001:db8::1"), 2);
        let second = clients.admit(address("2001:db8::2"), 2);
        assert!(first.is_some() && second.is_some());
        assert!(clients.admit(address("2001:db8::3"), 2).is_none(), "the same /64");
        assert!(clients.admit(address("2001:db8:0:1::3"), 2).is_some(), "another");
        let mapped = clients.admit(address("::ffff:192.0.2.1"), 1);
        assert!(mapped.is_some() && clients.admit(address("192.0.2.1"), 1).is_none());
        drop(first);
        assert!(clients.admit(address("2001:db8::3"), 2).is_some());
        drop((second, mapped));
        assert!(clients.lock().is_empty());
    }
}
