//! A window that is raised at one stroke, and how that is validated or taken back: the phases of Careful Resume after
//! its Reconnaissance (RFC 9959 sections 3.3 to 3.5).
//!
//! It is a part for policies that know of a window from somewhere else: the start from history ([`super::careful`]) and
//! the end of a silence ([`crate::silence::freeze`]). Its owner passes on what it is told, and keeps acks from the
//! controller while [`Jump::is_in_charge`].

use posthaste_policy::sample::{AckSample, PacketSample, PathView, RttView, SentSample};
use posthaste_policy::{Adjustment, Pacing};
use posthaste_units::{ByteCount, Duration, Rate, Time};

/// The share of `PipeSize` that is left of the window on entering Safe Retreat: at most a half.
const RETREAT_WINDOW: (u64, u64) = (1, 2);
/// Beta: the share of `PipeSize` that the slow-start threshold is set to on leaving Safe Retreat. The RFC's default.
const RETREAT_THRESHOLD: (u64, u64) = (1, 2);
/// A burst is what the rate yields in this time.
const BURST_TIME: Duration = Duration::from_millis(1);
/// Least burst in datagrams: a receiver acknowledges every second packet.
const LEAST_BURST_DATAGRAMS: u64 = 2;

/// Where a jump stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The window has been raised; packets leave that nothing has earned.
    Unvalidated {
        /// When the window was raised.
        since: Time,
        /// The round trip over which the window is spread, and after which the phase ends.
        round_trip: Duration,
    },
    /// They are all on their way; their acknowledgements are awaited.
    Validating,
    /// Congestion was met: nothing grows until they are all accounted for.
    SafeRetreat,
    /// Normal congestion control. Packets of the jump may still be declared lost.
    Over,
}

/// One jump, from its beginning to its validation or its retreat.
#[derive(Debug, Clone)]
pub struct Jump {
    phase: Phase,
    /// The window that was jumped to.
    window: ByteCount,
    /// Below this the window does not fall without congestion.
    initial_window: ByteCount,
    /// RFC 9959: what the path was known to carry when the window was raised, and what was acknowledged of later packets.
    pipe_size: ByteCount,
    /// Number and time of the first unvalidated packet.
    first: Option<(u64, Time)>,
    /// Number of the last unvalidated packet, once there will be no more.
    last: Option<u64>,
    /// The highest number sent.
    largest_sent: u64,
    has_failed: bool,
}

impl Jump {
    /// Raises the window to `window`. `initial_window` is what the window may always be, `pipe_size` what the path is
    /// known to carry now: the part of the window that was used before the jump (RFC 9959 section 3.3), if nothing of
    /// that is in doubt.
    pub fn begin(
        view: &PathView,
        window: ByteCount,
        initial_window: ByteCount,
        pipe_size: ByteCount,
    ) -> (Self, Adjustment) {
        let phase = Phase::Unvalidated { since: view.now, round_trip: view.rtt.smoothed };
        let jump = Self {
            phase,
            window,
            initial_window,
            pipe_size,
            first: None,
            last: None,
            largest_sent: 0,
            has_failed: false,
        };
        (jump, Adjustment { window: Some(window), ..Adjustment::default() })
    }

    /// A packet has been sent; `view` counts it.
    pub fn on_sent(&mut self, sent: &SentSample, view: &PathView) -> Option<Adjustment> {
        self.largest_sent = self.largest_sent.max(sent.number);
        let Phase::Unvalidated { since, round_trip } = self.phase else { return None };
        self.first.get_or_insert((sent.number, sent.now));
        let is_full = view.in_flight + view.max_datagram_size > view.congestion.window;
        let is_late = sent.now.since(since) > round_trip;
        (is_full || is_late).then(|| self.leave_unvalidated(view.in_flight))
    }

    /// An ack has arrived, which the controller has not been shown yet.
    pub fn on_ack(&mut self, ack: &AckSample<'_>) -> Option<Adjustment> {
        if self.phase == Phase::Over {
            return None;
        }
        // Those before are in it already: section 3.3's initial value, as the examples of appendix A count.
        let proved: ByteCount =
            ack.packets.iter().filter(|packet| self.is_after_jump(packet)).map(|packet| packet.bytes).sum();
        self.pipe_size += proved;
        if ack.newly_marked > 0 && self.phase != Phase::SafeRetreat {
            // The jump is about to be told of the marks: an ack that brings them validates nothing.
            return None;
        }
        match self.phase {
            Phase::Unvalidated { since, round_trip } => {
                let is_over = ack.now.since(since) > round_trip || !proved.is_zero();
                is_over.then(|| self.leave_unvalidated(ack.in_flight))
            }
            Phase::Validating if self.is_last(ack) => {
                self.phase = Phase::Over;
                None
            }
            Phase::SafeRetreat if self.is_last(ack) => Some(self.leave_retreat()),
            Phase::Validating | Phase::SafeRetreat | Phase::Over => None,
        }
    }

    /// Congestion was detected, by the loss of `lost` or, without any, by a CE mark; the controller has answered it.
    pub fn on_congestion(&mut self, lost: &[PacketSample], view: &PathView) -> Option<Adjustment> {
        match self.phase {
            // spec: rfc9959 3.3 congestion-retreats
            Phase::Unvalidated { .. } | Phase::Validating => {
                let adjustment = self.retreat(view);
                self.phase = Phase::SafeRetreat;
                Some(adjustment)
            }
            // The ack that accounted for the last unvalidated packet may have shown that others are missing.
            Phase::Over if !self.has_failed && self.is_unvalidated(lost) => {
                let entered = self.retreat(view);
                Some(Adjustment { window: entered.window, ..self.leave_retreat() })
            }
            // spec: rfc9959 3.5 never-raised
            // Not to be raised (section 3.5): what the controller keeps of this loss, to shrink the flight bit by bit or to
            // take its answer back, is void.
            Phase::SafeRetreat => {
                Some(Adjustment { window: Some(view.congestion.window), ..Adjustment::default() })
            }
            Phase::Over => None,
        }
    }

    /// The path is another, or looks like it: what the jump was based on does not hold.
    pub fn on_path_change(&mut self, view: &PathView) -> Option<Adjustment> {
        matches!(self.phase, Phase::Unvalidated { .. }).then(|| {
            let adjustment = self.retreat(view);
            self.phase = Phase::SafeRetreat;
            adjustment
        })
    }

    /// Persistent congestion ends the jump (RFC 9959 section 3.6); the controller does what is to be done.
    pub fn on_persistent_congestion(&mut self) {
        self.has_failed |= self.is_running();
        self.phase = Phase::Over;
    }

    /// True until normal congestion control has taken over.
    pub fn is_running(&self) -> bool {
        self.phase != Phase::Over
    }

    /// True while acks must not raise the window.
    pub fn is_in_charge(&self) -> bool {
        matches!(self.phase, Phase::Unvalidated { .. } | Phase::SafeRetreat)
    }

    /// True while the window is the one jumped to, and unproven.
    pub fn is_unvalidated_phase(&self) -> bool {
        matches!(self.phase, Phase::Unvalidated { .. })
    }

    /// True once congestion or another path has shown the window to be wrong.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// The window that was jumped to, spread over one present round trip (RFC 9959 section 4.3.2), while it is unproven.
    /// A burst is never larger than the initial window.
    pub fn pacing(&self, rtt: &RttView, max_datagram_size: ByteCount) -> Option<Pacing> {
        if !self.is_unvalidated_phase() {
            return None;
        }
        // spec: rfc9959 3.3 paced
        let rate = Rate::from_transfer(self.window, rtt.smoothed).max(Rate::from_bytes_per_second(1));
        let least = max_datagram_size * LEAST_BURST_DATAGRAMS;
        let burst = rate.bytes_in(BURST_TIME).min(self.initial_window).max(least);
        Some(Pacing { rate, burst })
    }

    /// RFC 9959's name of the phase, in lower case; `None` once it is over.
    pub fn phase(&self) -> Option<&'static str> {
        match self.phase {
            Phase::Unvalidated { .. } => Some("unvalidated"),
            Phase::Validating => Some("validating"),
            Phase::SafeRetreat => Some("safe_retreat"),
            Phase::Over => None,
        }
    }

    /// RFC 9959's `PipeSize`: what the path is known to have carried.
    pub fn pipe_size(&self) -> ByteCount {
        self.pipe_size
    }

    /// Ends the Unvalidated phase without congestion: what was not sent of the window is given back.
    fn leave_unvalidated(&mut self, in_flight: ByteCount) -> Adjustment {
        self.note_unvalidated();
        let window = if in_flight < self.initial_window || in_flight <= self.pipe_size {
            self.phase = Phase::Over;
            self.pipe_size.max(self.initial_window)
        } else {
            // spec: rfc9959 3.3 window-is-flight
            self.phase = Phase::Validating;
            in_flight
        };
        Adjustment { window: Some(window), ..Adjustment::default() }
    }

    /// The numbers of the packets that the raised window has let out.
    fn note_unvalidated(&mut self) {
        if self.is_unvalidated_phase() {
            self.last = self.first.map(|(number, _)| self.largest_sent.max(number));
        }
    }

    /// True for a packet sent since the window was raised. Numbers alone will not do: the handshake has its own.
    fn is_after_jump(&self, packet: &PacketSample) -> bool {
        self.first.is_some_and(|(number, at)| packet.number >= number && packet.sent_at >= at)
    }

    fn retreat(&mut self, view: &PathView) -> Adjustment {
        self.note_unvalidated();
        self.has_failed = true;
        // spec: rfc9959 3.5 half-of-pipe
        let (numerator, denominator) = RETREAT_WINDOW;
        let window = self.pipe_size.mul_ratio(numerator, denominator).min(view.congestion.window);
        Adjustment { window: Some(window), slow_start_threshold: Some(window), ..Adjustment::default() }
    }

    fn leave_retreat(&mut self) -> Adjustment {
        self.phase = Phase::Over;
        // spec: rfc9959 3.5 threshold-by-pipe
        let (numerator, denominator) = RETREAT_THRESHOLD;
        let threshold = self.pipe_size.mul_ratio(numerator, denominator);
        Adjustment { slow_start_threshold: Some(threshold), ..Adjustment::default() }
    }

    /// True if the ack covers the last unvalidated packet or a later one; without any, whatever it covers.
    fn is_last(&self, ack: &AckSample<'_>) -> bool {
        self.last.is_none_or(|last| {
            ack.packets.iter().any(|packet| packet.number >= last && self.is_after_jump(packet))
        })
    }

    fn is_unvalidated(&self, lost: &[PacketSample]) -> bool {
        self.last
            .is_some_and(|last| lost.iter().any(|packet| packet.number <= last && self.is_after_jump(packet)))
    }
}

#[cfg(test)]
mod tests;
