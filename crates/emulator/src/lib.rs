//! The emulated path in real time: a userspace UDP relay.
//!
//! [`UdpRelay`] stands between UDP clients and a server on the same machine and needs no privileges. What happens
//! to the packets is decided by [`posthaste_path::Path`], the same code that the lab runs in virtual time.

mod udp_relay;

pub use udp_relay::{MAX_QUEUED_PER_CLIENT, RelayConfig, RelayStats, UdpRelay};
