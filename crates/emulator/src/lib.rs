//! The emulated path in real time: a userspace UDP relay.
//!
//! [`UdpRelay`] stands between UDP clients and a server on the same machine and needs no privileges. What happens
//! to the packets is decided by [`posthaste_path::Path`], the same code that the lab runs in virtual time. How far
//! real time strayed from the model's is measured packet by packet: [`Lateness`].

mod clock;
mod datagram;
mod lateness;
mod relay;
mod system;
mod udp_relay;

pub use lateness::{Lateness, LatenessHistogram};
pub use udp_relay::{RelayConfig, RelayStats, UdpRelay};
