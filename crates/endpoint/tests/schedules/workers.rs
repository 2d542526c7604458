//! Endpoints that share a port: passing datagrams on is the crate's own code, preparing sockets for it is not.

#[path = "../../src/workers/mailbox.rs"]
pub(crate) mod mailbox;
#[path = "../../src/workers/seat.rs"]
mod seat;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU16;

use posthaste_transport::ServerConfig;

pub(crate) use seat::Seat;

pub struct Worker {
    pub socket: UdpSocket,
    pub config: ServerConfig,
    pub seat: Seat,
}

pub fn prepare(_local: SocketAddr, _count: NonZeroU16, _config: ServerConfig) -> io::Result<Vec<Worker>> {
    Err(io::ErrorKind::Unsupported.into())
}
