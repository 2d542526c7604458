//! The validated jump: a window that something else has reason to believe in is tried, and kept only if it holds.
//!
//! - Claims: a sender is at speed one round trip after it has reason to hope so, and a hope that was wrong costs
//!   others one paced flight at most.
//! - Source: RFC 9959 (Careful Resume), its phases Unvalidated, Validating, Safe Retreat and Normal. The phases
//!   before them (observing a path, reconnaissance) belong to whoever decides to jump.
//! - Use when: capacity was known and may still be there: a path of an earlier connection, the time after a silence.
//! - Breaks when: it is not there any more: the flight of one round trip meets a slower path, is queued or lost.
//!
//! A part for other policies ([`crate::Start`], [`crate::Silence`]), not one by itself. Its owner
//!
//! 1. calls [`Jump::begin`] and has the [`Adjustment`] carried out;
//! 2. passes on every [`SentSample`], [`AckSample`], [`LossSample`] and CE mark **after** the controller has been
//!    told of them, with the controller's state then, and has each answer carried out. (After: the controller grows
//!    and shrinks as always, and the answer corrects what may not be. Before, it would grow or shrink once more.)
//! 3. has packets paced by [`Jump::pacing`] while that answers, instead of by the controller's own;
//! 4. forgets what it believed in once [`Jump::has_retreated`], and the jump once [`Jump::is_over`].

use posthaste_units::{ByteCount, Duration, Rate, Time};

use crate::sample::{AckSample, LossSample, PacketSample, RttView, SentSample};
use crate::{Adjustment, CongestionState, Pacing};

/// The least window of any controller, in datagrams (RFC 9002 section 7.2).
const LEAST_DATAGRAMS: u64 = 2;
/// What a burst may last at the jump's rate; two datagrams at least. No finer timer is to be had.
const BURST_TIME: Duration = Duration::from_millis(1);

/// Where a jump stands (RFC 9959 section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JumpPhase {
    /// What is sent now is beyond what the path has shown to carry; paced over one round trip.
    Unvalidated,
    /// Nothing more is sent on trust; the flight's acknowledgements are awaited.
    Validating,
    /// The jump was wrong: the window is small and does not grow until the flight is accounted for.
    SafeRetreat,
    /// The jump is over, one way or the other.
    Normal,
}

/// What a jump begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JumpTerms {
    /// Now.
    pub now: Time,
    /// The window to try: at most half of what was known, and at most what the profile allows.
    pub window: ByteCount,
    /// The window that needs no proof: the initial window, or two datagrams after a silence.
    pub least_window: ByteCount,
    /// RFC 9959's `PipeSize` on entry: what is known to get through now. The bytes in flight if none of them is in
    /// doubt, else the bytes just acknowledged.
    pub pipe: ByteCount,
    /// The round-trip time over which the flight is spread, measured on this path now.
    pub rtt: Duration,
    /// Size of full datagrams.
    pub max_datagram_size: ByteCount,
}

/// A packet's place in the order of sending. Packet numbers of different spaces do not compare; times do.
type Place = (Time, u64);

fn place(packet: &PacketSample) -> Place {
    (packet.sent_at, packet.number)
}

/// A jump under way; see the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jump {
    phase: JumpPhase,
    terms: JumpTerms,
    /// RFC 9959's `PipeSize`: what the path has shown to carry.
    pipe: ByteCount,
    /// The first and the last packet sent in [`JumpPhase::Unvalidated`].
    first: Option<Place>,
    last: Option<Place>,
    /// The window of [`JumpPhase::SafeRetreat`].
    retreat: Option<ByteCount>,
}

impl Jump {
    /// Begins a jump: the new state, and the window to impose on the controller.
    pub fn begin(terms: JumpTerms) -> (Self, Adjustment) {
        let jump = Self {
            phase: JumpPhase::Unvalidated,
            terms,
            pipe: terms.pipe,
            first: None,
            last: None,
            retreat: None,
        };
        (jump, window_only(terms.window))
    }

    /// Where the jump stands.
    pub fn phase(&self) -> JumpPhase {
        self.phase
    }

    /// True once nothing is left to watch.
    pub fn is_over(&self) -> bool {
        self.phase == JumpPhase::Normal
    }

    /// True once the jump has turned out to be wrong: what it relied on must be forgotten (RFC 9959 section 3.5).
    pub fn has_retreated(&self) -> bool {
        self.retreat.is_some()
    }

    /// When the jump began: packets sent before it say nothing of it.
    pub fn began_at(&self) -> Time {
        self.terms.now
    }

    /// The rate of the unvalidated flight: its window spread over one round trip. `None` in every other phase: the
    /// controller's own pacing will do.
    pub fn pacing(&self, rtt: &RttView) -> Option<Pacing> {
        if self.phase != JumpPhase::Unvalidated {
            return None;
        }
        let over = if rtt.is_measured { rtt.smoothed } else { self.terms.rtt };
        let rate = Rate::from_transfer(self.terms.window, over).max(Rate::from_bytes_per_second(1));
        let least = self.terms.max_datagram_size * LEAST_DATAGRAMS;
        Some(Pacing { rate, burst: rate.bytes_in(BURST_TIME).max(least) })
    }

    /// A packet has left.
    pub fn on_sent(&mut self, sent: &SentSample) -> Option<Adjustment> {
        if self.phase != JumpPhase::Unvalidated {
            return None;
        }
        let place = (sent.now, sent.number);
        self.first.get_or_insert(place);
        self.last = Some(place);
        let flight = sent.prior_in_flight + sent.bytes;
        let is_full = flight + self.terms.max_datagram_size > self.terms.window;
        (is_full || self.is_round_trip_over(sent.now)).then(|| self.leave_unvalidated(flight))
    }

    /// An ack has arrived; `state` is the controller's after it.
    pub fn on_ack(&mut self, ack: &AckSample<'_>, state: &CongestionState) -> Option<Adjustment> {
        if self.phase == JumpPhase::Normal {
            return None;
        }
        self.pipe += ack.acked;
        let reaches = |bound: Option<Place>| {
            bound.is_some_and(|bound| ack.packets.iter().any(|packet| place(packet) >= bound))
        };
        let (reaches_first, reaches_last) = (reaches(self.first), reaches(self.last));
        let answer = match self.phase {
            JumpPhase::Unvalidated if reaches_first || self.is_round_trip_over(ack.now) => {
                // The flight before the ack: what it took off is what the window of the next phase would grow by.
                Some(self.leave_unvalidated(ack.prior_in_flight))
            }
            // Acknowledged trust earns no more of it.
            JumpPhase::Unvalidated => {
                (state.window != self.terms.window).then(|| window_only(self.terms.window))
            }
            JumpPhase::SafeRetreat if reaches_last || self.last.is_none() => {
                self.phase = JumpPhase::Normal;
                let threshold = Some((self.pipe / 2).max(self.least_datagrams()));
                let window = self.retreat.map(|window| window.min(state.window));
                return Some(Adjustment { window, slow_start_threshold: threshold, ..Adjustment::default() });
            }
            JumpPhase::SafeRetreat => self.retreat.filter(|window| state.window > *window).map(window_only),
            JumpPhase::Validating | JumpPhase::Normal => None,
        };
        if self.phase == JumpPhase::Validating && reaches_last {
            self.phase = JumpPhase::Normal;
        }
        answer
    }

    /// Packets were lost, or the path turned out to be another; `state` is the controller's after that. Losses that
    /// are known to say nothing of the jump are the owner's to keep back.
    pub fn on_loss(&mut self, _loss: &LossSample<'_>, state: &CongestionState) -> Option<Adjustment> {
        self.retreat(self.pipe / 2, state)
    }

    /// An ack reported a CE mark.
    pub fn on_congestion_experienced(&mut self, state: &CongestionState) -> Option<Adjustment> {
        self.retreat(self.pipe / 2, state)
    }

    /// Enters [`JumpPhase::SafeRetreat`] with a window of at most `window` (RFC 9959: half of what was shown to get
    /// through, or less), never below two datagrams, unless the jump is over or has retreated before.
    pub fn retreat(&mut self, window: ByteCount, state: &CongestionState) -> Option<Adjustment> {
        if !matches!(self.phase, JumpPhase::Unvalidated | JumpPhase::Validating) {
            return None;
        }
        let window = window.max(self.least_datagrams()).min(state.window);
        self.phase = JumpPhase::SafeRetreat;
        self.retreat = Some(window);
        Some(window_only(window))
    }

    /// The flight is out, or its time is: the window is what is in flight, unless that proves nothing.
    fn leave_unvalidated(&mut self, flight: ByteCount) -> Adjustment {
        if flight < self.terms.least_window || flight <= self.pipe {
            self.phase = JumpPhase::Normal;
            return window_only(self.pipe.max(self.terms.least_window));
        }
        self.phase = JumpPhase::Validating;
        window_only(flight)
    }

    fn is_round_trip_over(&self, now: Time) -> bool {
        now.since(self.terms.now) >= self.terms.rtt
    }

    fn least_datagrams(&self) -> ByteCount {
        self.terms.max_datagram_size * LEAST_DATAGRAMS
    }
}

fn window_only(window: ByteCount) -> Adjustment {
    Adjustment { window: Some(window), ..Adjustment::default() }
}

#[cfg(test)]
mod tests;
