//! The emulated path in real time: for whole programs, and as a UDP relay.
//!
//! `Tunnel` (Linux, feature `tunnel`, on by default) makes a network namespace whose only way out is such a path, for any program that speaks IP.
//!
//! [`UdpRelay`] stands between UDP clients and a server on the same machine and needs no privileges. What happens
//! to the packets is decided by [`posthaste_path::Path`], the same code that the lab runs in virtual time. How far
//! real time strayed from the model's is measured packet by packet: [`Lateness`].

mod clock;
mod datagram;
mod lateness;
mod outage;
mod relay;
mod system;
#[cfg(all(target_os = "linux", feature = "tunnel"))]
mod tunnel;
mod udp_relay;

pub use lateness::{Lateness, LatenessHistogram};
pub use outage::Outage;
#[cfg(all(target_os = "linux", feature = "tunnel"))]
pub use tunnel::{
    DeviceKind, DirectionReport, LATENESS_BOUND, Tunnel, TunnelConfig, TunnelError, TunnelReport, Validity,
    is_permitted, isolate,
};
pub use udp_relay::{RelayConfig, RelayStats, UdpRelay};
