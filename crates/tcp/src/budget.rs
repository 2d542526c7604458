//! Bounds on connections and requests that several servers share.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clients::{Admitted, Clients};
use crate::options::TcpOptions;

/// What servers that run together may hold in all: connections, connections of one client, requests. Clones are the same
/// budget; see [`Serve::within`](crate::Serve::within).
#[derive(Debug, Clone)]
pub struct Budget {
    connections: Arc<Semaphore>,
    clients: Arc<Clients>,
    per_client: usize,
    pub(crate) requests: Arc<Semaphore>,
}

/// A connection's part of the budget; given back when dropped.
pub(crate) struct Part {
    _of_all: OwnedSemaphorePermit,
    _of_client: Admitted,
}

impl Budget {
    /// As much as one server with these options may hold: [`TcpOptions::max_connections`],
    /// [`TcpOptions::max_connections_per_client`] and [`TcpOptions::max_requests`].
    pub fn new(options: &TcpOptions) -> Self {
        Self {
            connections: Arc::new(Semaphore::new(options.max_connections.min(Semaphore::MAX_PERMITS))),
            clients: Arc::default(),
            per_client: options.max_connections_per_client,
            requests: Arc::new(Semaphore::new(options.max_requests.clamp(1, Semaphore::MAX_PERMITS))),
        }
    }

    /// A part for a connection from this address, if there is one left for it.
    pub(crate) fn admit(&self, client: IpAddr) -> Option<Part> {
        let of_all = Arc::clone(&self.connections).try_acquire_owned().ok()?;
        let of_client = self.clients.admit(client, self.per_client)?;
        Some(Part { _of_all: of_all, _of_client: of_client })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_give_out_one_budget() {
        let options =
            TcpOptions { max_connections: 3, max_connections_per_client: 2, ..TcpOptions::default() };
        let (one, other) = (Budget::new(&options), Budget::new(&options));
        let (worker, same) = (one.clone(), one);
        let [first, second, third] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|it| it.parse().unwrap());
        let mut parts = vec![worker.admit(first).unwrap(), same.admit(first).unwrap()];
        assert!(worker.admit(first).is_none() && same.admit(first).is_none(), "two of one client");
        assert!(other.admit(first).is_some(), "another budget");
        parts.push(same.admit(second).unwrap());
        assert!(worker.admit(third).is_none(), "three in all");
        parts.remove(0);
        assert!(worker.admit(first).is_some());
    }
}
