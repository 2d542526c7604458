//! Several endpoints on one port, so that a server uses more than one core.
//!
//! Every endpoint is a whole one, with a socket, a driver and connections of its own: nothing that is locked for a packet
//! is shared. The kernel hands each datagram to the socket of the endpoint that owns its connection ID
//! (`workers/program.rs`). What reaches another all the same goes to the owner by its mailbox (`workers/mailbox.rs`): the
//! kernel merges datagrams from one address before it looks at their IDs.

mod mailbox;
mod program;
mod seat;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU16;
use std::sync::Arc;

use posthaste_transport::{Secret, ServerConfig, Steering};

use crate::endpoint::{Endpoint, random_bytes};
use crate::socket;
use mailbox::Mailbox;
pub(crate) use seat::Seat;

/// One of several endpoints that share an address; becomes an [`Endpoint`] in the runtime that is to drive it. See
/// [`Endpoint::workers`].
#[derive(Debug)]
pub struct Worker {
    pub(crate) socket: UdpSocket,
    pub(crate) config: ServerConfig,
    pub(crate) seat: Seat,
}

impl Worker {
    /// The address that all of them share.
    ///
    /// # Errors
    /// What the system reported.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The endpoint. It runs on the tokio runtime around the call: one with a single thread is cheapest.
    ///
    /// # Errors
    /// There is no tokio runtime around the call, or the system has no randomness.
    pub fn start(self) -> io::Result<Endpoint> {
        Endpoint::of_worker(self)
    }
}

/// Binds `count` sockets to one address and prepares the endpoints on them.
///
/// # Errors
/// The address cannot be bound, or the system cannot share it.
pub(crate) fn prepare(
    local: SocketAddr,
    count: NonZeroU16,
    mut config: ServerConfig,
) -> io::Result<Vec<Worker>> {
    if count.get() == 1 {
        let socket = UdpSocket::bind(local)?;
        return Ok(vec![Worker { socket, config, seat: Seat::alone() }]);
    }
    // Sockets that share a port do not notice other programs that do so: whoever starts a server twice must be told.
    let local = UdpSocket::bind(local)?.local_addr()?;
    let keys = random_keys()?;
    if config.secret.is_none() {
        config.secret = Some(Secret(random_bytes()?));
    }
    let sockets: Vec<UdpSocket> =
        (0..count.get()).map(|_| socket::bind_shared(local)).collect::<io::Result<_>>()?;
    let mailboxes: Arc<[Mailbox]> = sockets.iter().map(|_| Mailbox::default()).collect();
    let mut workers = Vec::with_capacity(sockets.len());
    for (index, socket) in (0..).zip(sockets) {
        let Some(steering) = Steering::new(keys, count, index) else { break };
        if index == 0 {
            program::attach(&socket, &steering)?;
        }
        let config = ServerConfig { steering: Some(steering), ..config.clone() };
        let seat = Seat::among(Arc::clone(&mailboxes), usize::from(index));
        workers.push(Worker { socket, config, seat });
    }
    Ok(workers)
}

fn random_keys() -> io::Result<[u32; 4]> {
    let bytes: [u8; 32] = random_bytes()?;
    let mut keys = [0; 4];
    for (key, word) in keys.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *key = u32::from_be_bytes(*word);
    }
    Ok(keys)
}

#[cfg(test)]
mod mailbox_tests;
#[cfg(all(test, target_os = "linux"))]
mod tests;
