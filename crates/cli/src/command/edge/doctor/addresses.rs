//! Differences between the addresses of a host.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures::future::join_all;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::finding::Finding;
use crate::printer;

/// Addresses of a host that are looked at.
pub(super) const MOST: usize = 16;

/// Whether an address can be reached over one transport, and how long that took.
pub(super) struct Reached {
    pub(super) address: SocketAddr,
    pub(super) outcome: Result<Duration, Unreached>,
}

/// Why not.
#[derive(Debug, Clone)]
pub(super) enum Unreached {
    /// This machine has no way to such addresses, which says nothing about the host.
    NoRoute,
    Silent,
    /// In words.
    Refused(String),
}

impl Unreached {
    pub(super) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => Self::NoRoute,
            io::ErrorKind::TimedOut => Self::Silent,
            _ => Self::Refused(error.to_string()),
        }
    }
}

impl std::fmt::Display for Unreached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoRoute => f.write_str("no route from this machine"),
            Self::Silent => f.write_str("no answer"),
            Self::Refused(reason) => f.write_str(reason),
        }
    }
}

/// Any port on any address of the same family.
pub(super) fn unbound(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Connects to all addresses at once.
pub(super) async fn over_tcp(addresses: &[SocketAddr], patience: Duration) -> Vec<Reached> {
    let connect = |address: &SocketAddr| {
        let address = *address;
        async move {
            let started = Instant::now();
            let outcome = match timeout(patience, TcpStream::connect(address)).await {
                Ok(Ok(_)) => Ok(started.elapsed()),
                Ok(Err(error)) => Err(Unreached::of(&error)),
                Err(_) => Err(Unreached::Silent),
            };
            Reached { address, outcome }
        }
    };
    join_all(addresses.iter().map(connect)).await
}

/// Whether all addresses answer over both transports.
pub(super) fn compared(tcp: &[Reached], quic: &[Reached]) -> Finding {
    let is_lost = |it: &Reached| matches!(it.outcome, Err(Unreached::Silent | Unreached::Refused(_)));
    let each = tcp.iter().zip(quic).map(|(tcp, quic)| {
        let told = |it: &Reached| match &it.outcome {
            Ok(time) => printer::duration(*time),
            Err(error) => error.to_string(),
        };
        format!("{}: TCP {}, QUIC {}", tcp.address.ip(), told(tcp), told(quic))
    });
    let detail = each.collect::<Vec<_>>().join("; ");
    if !tcp.iter().chain(quic).any(is_lost) {
        return Finding::ok("addresses", detail);
    }
    let next = "let the servers listen on every address that DNS names (IPv4 and IPv6), over TCP and UDP, or remove \
                the record";
    Finding::warning("addresses", detail, next)
}
