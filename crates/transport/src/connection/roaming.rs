//! What a connection keeps for its moves between paths.

use std::net::IpAddr;

use posthaste_policy::congestion::PathLimits;
use posthaste_units::{Rng, Time};

use crate::config::TransportConfig;
use crate::control::PathControl;
use crate::limits;
use crate::limits::rate_cap::RateCap;
use crate::path::OtherPaths;

/// How a client's local address changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Only the port: the network path stays, and with it what is known of its speed (RFC 9000 section 9.4).
    Port,
    /// Another network: what is known of the path's speed is void.
    Network,
}

/// What a connection keeps for its moves.
pub(crate) struct Roaming {
    pub(crate) others: OtherPaths,
    /// Another path is in use than when the router last asked.
    pub(crate) has_moved: bool,
    /// The peer's transport parameters forbid that this end moves.
    pub(crate) is_forbidden: bool,
    /// On a server: the client has shown that it receives where it has moved to, and the router has not seen that yet.
    pub(crate) is_newly_valid: bool,
    /// Moves of either end so far.
    pub(crate) moves: u64,
    /// Names the next path.
    pub(super) next_id: u32,
    /// On a client: its own address as the server's last datagram told it.
    pub(super) local_ip: Option<IpAddr>,
    /// On a client: when the server has surely retired the IDs of where the client was before.
    pub(super) claims_end_at: Option<Time>,
    pub(super) responses: RateCap,
    /// Live connections with the peer's host, this one included: further paths are told, too.
    pub(super) neighbours: u32,
}

impl Default for Roaming {
    fn default() -> Self {
        let rate = limits::PATH_RESPONSES_PER_SECOND;
        Self {
            others: OtherPaths::default(),
            has_moved: false,
            is_forbidden: false,
            is_newly_valid: false,
            moves: 0,
            next_id: 1,
            local_ip: None,
            claims_end_at: None,
            responses: RateCap::new(rate, rate),
            neighbours: 1,
        }
    }
}

/// The control state of a path that nothing is known of.
pub(crate) fn fresh_control(config: &TransportConfig, datagram_size: usize, rng: &mut Rng) -> PathControl {
    let (profile, size) = (&config.profile, datagram_size.into());
    let start = profile.start();
    let congestion = profile.congestion(PathLimits {
        max_datagram_size: size,
        initial_window: start.initial_window(size),
        seed: rng.next_u64(),
    });
    PathControl::new(start, congestion, profile.silence(), config.initial_rtt.into(), size)
        .with_packet_size_by_state(profile.sizes_packets_by_state())
}
