//! Bounds on connections and requests that several servers share.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ServerOptions;
use super::slots::Slots;

/// What servers that run together may hold in all: connections, requests, requests of one client, responses that wait for
/// their clients. Clones are the same budget; see [`Serve::within`](super::Serve::within).
#[derive(Clone)]
pub struct Budget {
    connections: Arc<Semaphore>,
    pub(super) slots: Arc<Slots>,
}

impl Budget {
    /// As much as one server with these options may hold: [`ServerOptions::max_connections`],
    /// [`ServerOptions::max_requests`], [`ServerOptions::max_requests_per_client`] and [`ServerOptions::max_stalled`].
    pub fn new(options: &ServerOptions) -> Self {
        let connections = options.max_connections.min(Semaphore::MAX_PERMITS);
        Self { connections: Arc::new(Semaphore::new(connections)), slots: Arc::new(Slots::new(options)) }
    }

    /// A connection's part, if there is one left; given back when dropped.
    pub(super) fn admit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.connections).try_acquire_owned().ok()
    }
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let connections = self.connections.available_permits();
        f.debug_struct("Budget").field("connections_left", &connections).finish_non_exhaustive()
    }
}
