//! What a trace has shown last.

use posthaste_policy::Phase;
use posthaste_units::Duration;
use qlog::events::quic::MigrationState;

use crate::packet::ecn::EcnState;

/// Everything that is compared. `None`: not known yet.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) min_rtt: Option<Duration>,
    pub(crate) smoothed_rtt: Option<Duration>,
    pub(crate) latest_rtt: Option<Duration>,
    pub(crate) rtt_variance: Option<Duration>,
    pub(crate) pto_count: Option<u16>,
    pub(crate) congestion_window: Option<u64>,
    pub(crate) bytes_in_flight: Option<u64>,
    pub(crate) slow_start_threshold: Option<u64>,
    /// In bits per second.
    pub(crate) pacing_rate: Option<u64>,
    pub(crate) phase: Option<Phase>,
    pub(crate) ecn: Option<EcnState>,
    pub(crate) max_datagram_size: Option<u32>,
    /// The number of the path in use.
    pub(crate) path: Option<u32>,
    pub(crate) migration: Option<MigrationState>,
    pub(crate) has_keys: [bool; 3],
    pub(crate) key_phase: u64,
    pub(crate) is_blocked: bool,
    pub(crate) has_protocol: bool,
}
