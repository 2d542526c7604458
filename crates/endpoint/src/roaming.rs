//! Clients that move from one local address to another (RFC 9000 section 9).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Weak};
use std::time::Duration;

use posthaste_transport::{Move, Side};

use crate::clock;
use crate::endpoint::{Endpoint, EndpointRef};
use crate::error::RebindError;

impl Endpoint {
    /// Moves the endpoint and all its connections to a new socket, bound to `local` (port 0 for any): the network has
    /// changed, or is about to. Streams go on; what was under way is sent again.
    ///
    /// Each connection goes on under connection IDs that nobody has seen before, so that the two addresses cannot be
    /// linked. If only the port differs, it keeps its speed; else it learns the new path from the start. An address
    /// that is unspecified (`0.0.0.0`, `[::]`) counts as another network each time.
    ///
    /// # Errors
    /// [`RebindError`]; nothing has changed then. Must be called inside the tokio runtime.
    pub fn rebind(&self, local: SocketAddr) -> Result<(), RebindError> {
        let shared = &self.0.shared;
        if self.0.is_server {
            return Err(RebindError::Server);
        }
        let old = shared.socket();
        let old_local = old.local_addr();
        if old_local.is_ipv4() != local.is_ipv4() {
            return Err(RebindError::OtherFamily(old_local));
        }
        let socket = Arc::new(old.rebind(local).map_err(RebindError::Bind)?);
        let is_same_host = old_local.ip() == local.ip() && !local.ip().is_unspecified();
        let to = if is_same_host { Move::Port } else { Move::Network };
        let mut guard = shared.lock();
        let handles: Vec<_> = guard.open_handles().collect();
        for handle in &handles {
            let connection = guard.transport.connection(*handle);
            if let Some(Err(reason)) = connection.map(posthaste_transport::Connection::check_migration) {
                let remote = connection.map_or(old_local, posthaste_transport::Connection::remote);
                return Err(RebindError::Refused { remote, reason });
            }
        }
        let now = clock::now();
        for handle in handles {
            if let Some(connection) = guard.transport.connection_mut(handle) {
                // Checked above.
                let _ = connection.migrate(now, to);
            }
        }
        shared.set_socket(&socket);
        guard.rebound = Some(socket);
        guard.wake_driver();
        Ok(())
    }

    /// From now on looks every `interval` (1 s does) by which local address the system would reach the peers, and
    /// [rebinds](Self::rebind) when that has changed: a download then outlives the change from one network to
    /// another. Where there was no way to the peers for a time and the old one has come back, each connection probes it
    /// at once. For endpoints bound to an unspecified address; ends with the endpoint. It asks the routing table; nothing
    /// is sent for that. Must be called inside the tokio runtime.
    pub fn follow_network(&self, interval: Duration) {
        let endpoint = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            let mut route = Route::default();
            loop {
                tokio::time::sleep(interval).await;
                let Some(endpoint) = look(&endpoint) else { return };
                let Some(remote) = endpoint.any_remote() else { continue };
                match route.look(remote, source_towards(remote).ok()) {
                    Change::Nothing => {}
                    Change::Returned => endpoint.probe(),
                    Change::Moved(source) => endpoint.leave_for(source),
                }
            }
        });
    }

    fn leave_for(&self, source: IpAddr) {
        let Ok(old) = self.local_addr() else { return };
        let any: IpAddr =
            if old.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        match self.rebind(SocketAddr::new(any, 0)) {
            Ok(()) => tracing::info!(%source, "the network has changed: going on from another address"),
            Err(error) => tracing::warn!(%source, %error, "the network has changed"),
        }
    }

    /// The network may be back: probes on all connections at once, rather than when their probe timeouts are due.
    pub fn probe(&self) {
        let mut guard = self.0.shared.lock();
        let handles: Vec<_> = guard.open_handles().collect();
        let now = clock::now();
        for handle in handles {
            if let Some(connection) = guard.transport.connection_mut(handle) {
                connection.probe(now);
            }
        }
        guard.wake_driver();
    }

    /// The peer of a connection that this end has made.
    fn any_remote(&self) -> Option<SocketAddr> {
        let guard = self.0.shared.lock();
        let mut connections = guard.open_handles().filter_map(|handle| guard.transport.connection(handle));
        connections
            .find(|connection| connection.side() == Side::Client)
            .map(posthaste_transport::Connection::remote)
    }
}

fn look(endpoint: &Weak<EndpointRef>) -> Option<Endpoint> {
    endpoint.upgrade().map(Endpoint)
}

/// How a peer was reached when it was last looked at.
#[derive(Debug, Default)]
struct Route {
    last: Option<(SocketAddr, IpAddr)>,
    /// There was no way since.
    is_lost: bool,
}

/// What has become of the way to a peer.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    /// It was lost and is there again.
    Returned,
    /// It begins at this address now.
    Moved(IpAddr),
}

impl Route {
    /// `source`: the address from which `remote` is reached now; `None` if it is not.
    fn look(&mut self, remote: SocketAddr, source: Option<IpAddr>) -> Change {
        let Some(source) = source else {
            self.is_lost = true;
            return Change::Nothing;
        };
        let was_lost = std::mem::take(&mut self.is_lost);
        match self.last.replace((remote, source)) {
            Some((peer, address)) if peer == remote && address != source => Change::Moved(source),
            _ if was_lost => Change::Returned,
            _ => Change::Nothing,
        }
    }
}

/// The local address by which the system would reach `remote`: it asks the routing table, and sends nothing.
///
/// # Errors
/// What the system says; there is no way at present, or no descriptor is left.
pub fn source_towards(remote: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    // Connecting a UDP socket only looks up the route.
    socket.connect(remote)?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_changes_with_its_source_and_returns_after_a_loss() {
        let (a, b) = (SocketAddr::from(([10, 0, 0, 1], 1)), SocketAddr::from(([10, 0, 0, 2], 1)));
        let (wifi, cellular) = (IpAddr::from([192, 168, 1, 2]), IpAddr::from([100, 64, 0, 9]));
        let mut route = Route::default();
        assert_eq!(route.look(a, Some(wifi)), Change::Nothing);
        assert_eq!(route.look(a, Some(wifi)), Change::Nothing);
        assert_eq!(route.look(a, Some(cellular)), Change::Moved(cellular));
        assert_eq!(route.look(b, Some(wifi)), Change::Nothing, "another peer may be reached by another way");
        assert_eq!(route.look(b, Some(cellular)), Change::Moved(cellular));
        assert_eq!([None, None].map(|source| route.look(b, source)), [Change::Nothing, Change::Nothing]);
        assert_eq!(route.look(b, Some(cellular)), Change::Returned);
        assert_eq!(route.look(b, Some(cellular)), Change::Nothing);
        route.look(b, None);
        assert_eq!(route.look(b, Some(wifi)), Change::Moved(wifi));
    }

    #[test]
    fn the_system_tells_how_it_would_reach_a_peer() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(source_towards(SocketAddr::new(loopback, 443)).unwrap(), loopback);
    }
}
