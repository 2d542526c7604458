//! When a connection counts as idle (RFC 9000 section 10.1).

use posthaste_units::{Duration, Time};

use crate::limits;

/// Probe timeouts that a connection is not idle for at the least.
const LEAST_PROBE_TIMEOUTS: u64 = 3;

/// The idle timeout of one connection.
#[derive(Debug)]
pub(crate) struct IdleClock {
    /// The lesser of both ends' timeouts; zero for never.
    timeout: Duration,
    last_activity: Time,
    /// True once an ack-eliciting packet was sent since the peer was last heard.
    has_sent_since: bool,
    /// True once the connection has rested since the last activity.
    has_rested: bool,
}

impl IdleClock {
    pub(crate) fn new(timeout: Duration, now: Time) -> Self {
        Self { timeout, last_activity: now, has_sent_since: false, has_rested: false }
    }

    /// The peer's `max_idle_timeout`; zero if it has none.
    pub(crate) fn set_peer_timeout(&mut self, peer: Duration) {
        if !peer.is_zero() {
            self.timeout = if self.timeout.is_zero() { peer } else { self.timeout.min(peer) };
        }
    }

    /// An authentic packet has arrived.
    pub(crate) fn on_peer_heard(&mut self, now: Time) {
        self.last_activity = now;
        self.has_sent_since = false;
        self.has_rested = false;
    }

    /// An ack-eliciting packet leaves: the first since the peer was heard restarts the clock too.
    pub(crate) fn on_ack_eliciting_sent(&mut self, now: Time) {
        if !self.has_sent_since {
            self.has_sent_since = true;
            self.has_rested = false;
            self.last_activity = now;
        }
    }

    /// True while something unacknowledged is under way, or may be.
    pub(crate) fn is_waiting(&self) -> bool {
        self.has_sent_since
    }

    /// When the connection ends, if nothing happens before.
    pub(crate) fn deadline(&self, is_handshaking: bool, probe_timeout: Duration) -> Option<Time> {
        let timeout = match self.timeout {
            // A peer that never finishes its handshake must not stay for ever, whatever holds later.
            timeout if timeout.is_zero() && is_handshaking => limits::SILENT_HANDSHAKE,
            timeout => timeout,
        };
        // spec: rfc9000 10.1 idle-three-probes
        let least = probe_timeout * LEAST_PROBE_TIMEOUTS;
        (!timeout.is_zero()).then(|| self.last_activity + timeout.max(least))
    }

    /// When the connection rests, if nothing happens before; `None` if it has since the last activity.
    pub(crate) fn rest_at(&self) -> Option<Time> {
        (!self.has_rested).then(|| self.last_activity + limits::REST_AFTER)
    }

    /// The connection rests.
    pub(crate) fn on_rest(&mut self) {
        self.has_rested = true;
    }

    /// When a PING is due that is sent after `interval` without activity.
    pub(crate) fn keep_alive_at(&self, interval: Duration) -> Time {
        self.last_activity + interval
    }
}
