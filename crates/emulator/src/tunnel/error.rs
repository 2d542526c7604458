//! Why there is no tunnel.

use std::io;

use posthaste_path::ConfigError;

/// Why a tunnel could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// The system lets nobody, or not this user, make network namespaces.
    #[error(
        "this system permits no network namespace: {0}. It takes root (CAP_SYS_ADMIN and CAP_NET_ADMIN), or user \
         namespaces for everybody; look at /proc/sys/user/max_user_namespaces, \
         /proc/sys/kernel/unprivileged_userns_clone and /proc/sys/kernel/apparmor_restrict_unprivileged_userns"
    )]
    Namespace(io::Error),
    /// No TUN device can be made.
    #[error(
        "cannot make a TUN device: {0}. It takes /dev/net/tun and the kernel's module tun (modprobe tun)"
    )]
    Device(io::Error),
    /// No pair of virtual Ethernet interfaces can be made.
    #[error(
        "cannot make {what}: {why}. It takes the kernel's modules veth and af_packet (modprobe veth af_packet) and the \
         right to raw sockets (CAP_NET_RAW)"
    )]
    Pair {
        /// What could not be made.
        what: &'static str,
        /// What the system said.
        why: String,
    },
    /// Neither kind of device can be made.
    #[error("there is no device for a tunnel. tun: {tun}. veth: {veth}")]
    NoDevice {
        /// Why no TUN device.
        tun: Box<Self>,
        /// Why no pair of virtual Ethernet interfaces.
        veth: Box<Self>,
    },
    /// An interface took no address, no route or no setting.
    #[error("cannot set up {what}: {why}")]
    Interface {
        /// What was to be set.
        what: &'static str,
        /// What the system said.
        why: String,
    },
    /// All blocks of addresses are taken.
    #[error(
        "no addresses are left for another tunnel here: {taken} run side by side, or they are nested too deeply"
    )]
    Full {
        /// Tunnels that could have run here.
        taken: usize,
    },
    /// A direction's description is out of range.
    #[error("{0}")]
    Path(#[from] ConfigError),
    /// No thread, no pipe, and the like.
    #[error("cannot run a tunnel: {0}")]
    System(#[from] io::Error),
}

impl TunnelError {
    /// For `map_err`: `what` could not be set.
    pub(super) fn interface(what: &'static str) -> impl Fn(rtnetlink::Error) -> Self {
        move |error| Self::Interface { what, why: error.to_string() }
    }
}
