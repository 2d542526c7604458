//! What a trace has shown last.

use posthaste_policy::Phase;
use posthaste_units::Duration;
use qlog::events::quic::MigrationState;

use crate::ecn::EcnState;

/// Everything that is compared. `None`: not known yet.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) min_rtt: Option<Duration>,
    pub(super) smoothed_rtt: Option<Duration>,
    pub(super) latest_rtt: Option<Duration>,
    pub(super) rtt_variance: Option<Duration>,
    pub(super) pto_count: Option<u16>,
    pub(super) congestion_window: Option<u64>,
    pub(super) bytes_in_flight: Option<u64>,
    pub(super) slow_start_threshold: Option<u64>,
    /// In bits per second.
    pub(super) pacing_rate: Option<u64>,
    pub(super) phase: Option<Phase>,
    pub(super) ecn: Option<EcnState>,
    pub(super) max_datagram_size: Option<u32>,
    /// The number of the path in use.
    pub(super) path: Option<u32>,
    pub(super) migration: Option<MigrationState>,
    pub(super) has_keys: [bool; 3],
    pub(super) key_phase: u64,
    pub(super) is_blocked: bool,
    pub(super) has_protocol: bool,
}
