//! The sockets of a client for one family of addresses.
//!
//! A connection that replaces another comes from another port, as those of browsers do. A server that hands over to a
//! new process may have the old one receive whatever comes from the old address.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use posthaste_endpoint::{Endpoint, RebindError};

use super::{ClientError, LOOK_AT_NETWORK, lock};

/// Sockets beside the present one, whose last connections are not over yet. With so many the port stays.
pub(super) const MAX_EARLIER: usize = 8;

/// The present socket, on which connections are made, and earlier ones, on which some go on.
#[derive(Default)]
pub(super) struct Ports(Arc<Mutex<Sockets>>);

#[derive(Default)]
struct Sockets {
    present: Option<Endpoint>,
    /// With their numbers.
    earlier: Vec<(u64, Endpoint)>,
    left: u64,
    /// The caller has chosen the port.
    is_fixed: bool,
}

impl Ports {
    /// The endpoint for new connections; makes it, on a port of `any` address of the family, if there is none.
    pub(super) fn present(&self, any: IpAddr) -> Result<Endpoint, ClientError> {
        let mut sockets = lock(&self.0);
        if let Some(endpoint) = &sockets.present {
            return Ok(endpoint.clone());
        }
        let endpoint = open(any).map_err(|source| ClientError::Socket(Arc::new(source)))?;
        Ok(sockets.present.insert(endpoint).clone())
    }

    /// Has new connections come from another port. Those that are there go on; their socket is closed when
    /// they are over and nobody holds a handle of them.
    pub(super) fn leave(&self) {
        let mut sockets = lock(&self.0);
        if sockets.is_fixed || sockets.earlier.len() >= MAX_EARLIER {
            return;
        }
        let Some(local) = sockets.present.as_ref().and_then(|endpoint| endpoint.local_addr().ok()) else {
            return;
        };
        let next = match open(local.ip()) {
            Ok(next) => next,
            Err(error) => {
                tracing::debug!(%error, "no other port");
                return;
            }
        };
        let Some(old) = sockets.present.replace(next) else { return };
        let number = sockets.left;
        sockets.left += 1;
        sockets.earlier.push((number, old.clone()));
        drop(sockets);
        let all = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            old.wait_idle().await;
            if let Some(all) = all.upgrade() {
                lock(&all).earlier.retain(|(other, _)| *other != number);
            }
        });
    }

    /// Moves all connections to sockets of this address; the port is for the present one.
    pub(super) fn rebind(&self, local: SocketAddr) -> Result<(), RebindError> {
        let mut sockets = lock(&self.0);
        let Some(present) = &sockets.present else { return Ok(()) };
        present.rebind(local)?;
        sockets.is_fixed = local.port() != 0;
        for (_, endpoint) in &sockets.earlier {
            if let Err(error) = endpoint.rebind(SocketAddr::new(local.ip(), 0)) {
                tracing::warn!(%error, "connections stay at their address until they are over");
            }
        }
        Ok(())
    }

    /// All that are open.
    pub(super) fn all(&self) -> Vec<Endpoint> {
        let sockets = lock(&self.0);
        sockets.present.iter().chain(sockets.earlier.iter().map(|(_, endpoint)| endpoint)).cloned().collect()
    }
}

fn open(local: IpAddr) -> std::io::Result<Endpoint> {
    let endpoint = Endpoint::client(SocketAddr::new(local, 0))?;
    endpoint.follow_network(LOOK_AT_NETWORK);
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn port(ports: &Ports) -> u16 {
        ports.present(LOOPBACK).unwrap().local_addr().unwrap().port()
    }

    // On one thread the tasks that let go of sockets do not run before the test waits.
    #[tokio::test]
    async fn so_many_sockets_are_kept_until_they_are_idle() {
        let ports = Ports::default();
        for _ in 0..MAX_EARLIER {
            let before = port(&ports);
            ports.leave();
            assert_ne!(port(&ports), before);
        }
        let last = port(&ports);
        ports.leave();
        assert_eq!((port(&ports), ports.all().len()), (last, MAX_EARLIER + 1));
        while ports.all().len() > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(port(&ports), last);
    }

    #[tokio::test]
    async fn a_port_that_the_caller_has_set_stays() {
        let ports = Ports::default();
        let free = std::net::UdpSocket::bind((LOOPBACK, 0)).unwrap().local_addr().unwrap();
        port(&ports);
        ports.rebind(free).unwrap();
        ports.leave();
        assert_eq!(port(&ports), free.port());
        ports.rebind(SocketAddr::new(LOOPBACK, 0)).unwrap();
        let any = port(&ports);
        ports.leave();
        assert_ne!(port(&ports), any);
    }
}
