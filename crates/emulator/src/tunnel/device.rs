//! What stands behind an end of a tunnel: where its namespace's packets come out, and where others go in.

mod frame_socket;
mod tun;
mod veth;
mod wire;

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use rtnetlink::Handle;

use super::error::TunnelError;
use wire::Wire;

/// The kind of interface at both ends of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// TUN devices, which take `/dev/net/tun`.
    Tun,
    /// Pairs of virtual Ethernet interfaces with `AF_PACKET` sockets at their ends.
    Veth,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tun => "tun",
            Self::Veth => "veth",
        })
    }
}

/// Packets that an interface did not pass on, whatever the path said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// On the way from the namespace into the tunnel: a queue was full.
    pub(super) sent: u64,
    /// On the way out of the tunnel into the namespace.
    pub(super) received: u64,
    /// On that way, too, but because somebody had taken the interface down. Devices that say so packet by packet
    /// ([`Handed::ToNobody`]) count nothing here.
    pub(super) undeliverable: u64,
}

/// What became of a packet that was to enter a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handed {
    /// The interface has it, or counts it among what it dropped.
    Over,
    /// Somebody has taken the interface down.
    ToNobody,
    /// The kernel has lost it.
    Refused,
}

/// An interface as its tunnel sees it. It is gone when this is.
pub(super) trait Device: AsFd + fmt::Debug + Send + Sync {
    /// The next IP packet that the namespace has sent, or `None` if there is none now.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>>;

    /// Hands an IP packet to the namespace.
    fn send(&self, packet: &[u8]) -> Handed;

    /// What was lost since it was made. `interface` is what the kernel counts for the end in the namespace. If
    /// `is_over` nobody else receives any more.
    fn losses(&self, interface: Losses, is_over: bool) -> io::Result<Losses>;
}

/// Makes the devices of one tunnel.
#[derive(Debug, Clone)]
pub(super) enum Devices {
    Tun,
    Veth(Arc<Wire>),
}

impl Devices {
    /// For devices of this kind, at the ends of a tunnel that starts in the calling thread's namespace.
    pub(super) fn of(kind: DeviceKind) -> Result<Self, TunnelError> {
        Ok(match kind {
            DeviceKind::Tun => Self::Tun,
            DeviceKind::Veth => Self::Veth(Arc::new(Wire::start()?)),
        })
    }

    /// A device in the calling thread's namespace with this name, not up yet; `None` if the name is taken. `end` is a
    /// word for the end of the tunnel.
    pub(super) async fn open(
        &self,
        netlink: &Handle,
        name: &str,
        end: &'static str,
    ) -> Result<Option<Box<dyn Device>>, TunnelError> {
        match self {
            Self::Tun => tun::open(name),
            Self::Veth(wire) => veth::open(wire, netlink, name, end).await,
        }
    }
}
