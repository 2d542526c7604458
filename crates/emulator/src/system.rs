//! Sockets and waiting, as exact as the system can be had to be.

#[cfg(target_os = "linux")]
#[path = "system/linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "system/portable.rs"]
mod platform;

pub(crate) use platform::{Socket, Waiter, Waker, prefer_precision, waker};

use std::net::SocketAddr;

use posthaste_units::Duration;

/// Bytes that a socket should hold while the relay is not scheduled; the system grants what it permits.
const SOCKET_BUFFER: usize = 4 << 20;

/// A datagram that was received into the caller's buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received {
    pub(crate) length: usize,
    pub(crate) from: SocketAddr,
    /// The ECN field, zero where the system does not tell.
    pub(crate) ecn: u8,
    /// How long it has waited in the socket, zero where the system does not tell.
    pub(crate) age: Duration,
}
