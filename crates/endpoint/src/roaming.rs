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
        let old_local = old.local_addr().map_err(RebindError::Bind)?;
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
    /// another. For endpoints bound to an unspecified address; ends with the endpoint. It asks the routing table;
    /// nothing is sent for it. Must be called inside the tokio runtime.
    pub fn follow_network(&self, interval: Duration) {
        let endpoint = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            let mut route = Route::default();
            loop {
                tokio::time::sleep(interval).await;
                let Some(endpoint) = look(&endpoint) else { return };
                let Some(remote) = endpoint.any_remote() else { continue };
                let Ok(source) = source_towards(remote) else { continue };
                if route.has_changed(remote, source) {
                    endpoint.leave_for(source);
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
struct Route(Option<(SocketAddr, IpAddr)>);

impl Route {
    /// True if the same peer is reached from another address than before.
    fn has_changed(&mut self, remote: SocketAddr, source: IpAddr) -> bool {
        let before = self.0.replace((remote, source));
        before.is_some_and(|(peer, address)| peer == remote && address != source)
    }
}

/// The local address by which the system would reach `remote`. An error if there is no way at present.
fn source_towards(remote: SocketAddr) -> io::Result<IpAddr> {
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
    fn a_route_changes_with_its_source_alone() {
        let (a, b) = (SocketAddr::from(([10, 0, 0, 1], 1)), SocketAddr::from(([10, 0, 0, 2], 1)));
        let (wifi, cellular) = (IpAddr::from([192, 168, 1, 2]), IpAddr::from([100, 64, 0, 9]));
        let mut route = Route::default();
        assert!(!route.has_changed(a, wifi));
        assert!(!route.has_changed(a, wifi));
        assert!(route.has_changed(a, cellular));
        assert!(!route.has_changed(b, wifi), "another peer may be reached by another way");
        assert!(route.has_changed(b, cellular));
    }

    #[test]
    fn the_system_tells_how_it_would_reach_a_peer() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(source_towards(SocketAddr::new(loopback, 443)).unwrap(), loopback);
    }
}
