//! What passes between the transport and a socket.

use std::net::{IpAddr, SocketAddr};

use posthaste_units::Time;
use posthaste_wire::ConnectionId;
use posthaste_wire::packet::PacketType;

use crate::packet::ecn::EcnCodepoint;
use crate::packet::space::PacketSpace;

/// Where a received datagram came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramInfo {
    /// The sender.
    pub remote: SocketAddr,
    /// The local address that it reached, where the socket tells.
    pub local_ip: Option<IpAddr>,
    /// Its ECN mark, if it had one.
    pub ecn: Option<EcnCodepoint>,
}

/// A datagram to send, or several of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub remote: SocketAddr,
    /// The local address to send from, where it is known.
    pub local_ip: Option<IpAddr>,
    /// The ECN mark to set.
    pub ecn: Option<EcnCodepoint>,
    /// Bytes in all.
    pub size: usize,
    /// Set if there are several datagrams: the size of each but the last, which may be shorter.
    pub segment_size: Option<usize>,
}

/// Where a datagram came from and how large it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) info: DatagramInfo,
    pub(crate) len: usize,
}

/// What one packet tells the frames in it.
pub(crate) struct PacketContext {
    pub(crate) now: Time,
    pub(crate) space: PacketSpace,
    pub(crate) packet_type: PacketType,
    /// What the packet was sent to.
    pub(crate) destination: ConnectionId,
    /// The whole packet's length, for the trace.
    pub(crate) size: usize,
    /// The datagram that it came in.
    pub(crate) arrived: Arrived,
}

/// Why a packet is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// Its header is malformed, or not what the connection's state permits.
    Invalid,
    /// Its tag is wrong.
    Undecryptable,
    /// There are no keys for it, no more or not yet.
    NoKeys,
    /// It has been received before.
    Duplicate,
}
