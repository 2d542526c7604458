//! The part that all controllers share that take loss for congestion (RFC 9002 section 7).

use std::fmt::Debug;

use posthaste_policy::sample::{AckSample, LossSample, RttView, SentSample, SpuriousSample};
use posthaste_policy::{
    Adjustment, Congestion, CongestionState, Constant, FlowShare, LossCause, Pacing, PathLimits, Phase,
    SlowStart,
};
use posthaste_units::{ByteCount, Duration, Time};
use serde::Deserialize;

use super::pacing;
use super::prr::{Delivery, Prr};
use super::recovery::{Episode, Recovery};

/// The least window in datagrams (RFC 9002 section 7.2).
const MINIMUM_WINDOW_DATAGRAMS: u64 = 2;
/// The greatest window: 64 GiB, a round trip of 5 s at 100 Gbit/s. It keeps reals exact and sums finite.
const MAXIMUM_WINDOW: f64 = 68_719_476_736.0;

/// How the flight shrinks to a window that a loss has reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shrinking {
    /// RFC 9002 section 7.3.2: nothing is sent until the flight is below the new window.
    #[default]
    AtOnce,
    /// RFC 9937: in proportion to what arrives, over one round trip.
    Prr,
}

impl Shrinking {
    /// Its name in a profile's TOML.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtOnce => "at_once",
            Self::Prr => "prr",
        }
    }
}

/// What an ack brings to congestion avoidance.
#[derive(Debug, Clone, Copy)]
pub struct Growth {
    /// When the ack arrived.
    pub now: Time,
    /// Bytes that it acknowledges and that count.
    pub acked: f64,
    /// The window before it, in bytes, above zero.
    pub window: f64,
    /// The smoothed RTT.
    pub smoothed_rtt: Duration,
    /// The size of a datagram in bytes, above zero: the "segment" of the papers.
    pub datagram: f64,
    /// The part of a flow that this controller is, above 0 and at most 1: it adds so much of what a flow adds.
    pub share: f64,
}

/// How a controller grows past slow start and how far it steps back. Windows are in bytes, as reals.
pub trait Avoidance: Debug + Send + Clone {
    /// The window after an ack of a sender that its window limited.
    fn on_ack(&mut self, growth: &Growth) -> f64;

    /// The window after a congestion event that finds it at `window`.
    fn reduce(&mut self, window: f64) -> f64;

    /// Time has passed until `now` in which the sender did not use its window: idle, or out of data.
    fn on_pause(&mut self, _now: Time) {}

    /// The window has been set by something other than this policy (persistent congestion, another policy): the
    /// next stage of avoidance starts without a memory of the last.
    fn forget(&mut self) {}

    /// The window has become another part of the same flow's: every window that is remembered is to be multiplied by
    /// `factor`, above zero.
    fn rescale(&mut self, _factor: f64) {}

    /// How many connections share the path, this one included.
    fn on_connections(&mut self, _count: u32) {}
}

/// The last ack, as recovery needs it.
#[derive(Debug, Clone, Copy)]
struct LastAck {
    at: Time,
    /// Bytes that it newly acknowledged.
    newly: ByteCount,
}

/// What an undo restores.
#[derive(Debug, Clone)]
struct Saved<A> {
    avoidance: A,
    window: f64,
    threshold: f64,
}

/// A loss-based controller around one way of avoiding congestion.
#[derive(Debug)]
pub struct LossBased<A> {
    avoidance: A,
    slow_start: Box<dyn SlowStart>,
    limits: PathLimits,
    window: f64,
    /// Infinite until the first congestion event or slow start's own exit.
    threshold: f64,
    /// The part of a flow that this controller is.
    share: f64,
    recovery: Recovery,
    /// In a box, because it is there only after a loss.
    episode: Option<Box<Episode<Saved<A>>>>,
    shrinking: Shrinking,
    /// The present recovery period, if the flight shrinks by RFC 9937.
    prr: Option<Prr>,
    last_ack: Option<LastAck>,
}

/// The constants that all loss-based controllers share, for people.
pub(super) fn shared_constants() -> Vec<Constant> {
    let mut constants =
        vec![Constant::new("minimum window", format!("{MINIMUM_WINDOW_DATAGRAMS} datagrams"))];
    constants.extend(pacing::constants());
    constants
}

impl<A: Avoidance> LossBased<A> {
    /// A controller for a new path, whose flight shrinks at once (RFC 9002).
    pub fn new(avoidance: A, slow_start: Box<dyn SlowStart>, limits: PathLimits) -> Self {
        let mut controller = Self {
            avoidance,
            slow_start,
            limits,
            window: 0.0,
            threshold: f64::INFINITY,
            share: 1.0,
            recovery: Recovery::default(),
            episode: None,
            shrinking: Shrinking::AtOnce,
            prr: None,
            last_ack: None,
        };
        controller.set_window(limits.initial_window.as_f64());
        controller
    }

    /// The same controller with another way of shrinking.
    #[must_use]
    pub fn with_shrinking(mut self, shrinking: Shrinking) -> Self {
        self.shrinking = shrinking;
        self
    }

    fn minimum_window(&self) -> f64 {
        // One byte at the very least: a window of nothing would divide by zero and never send again.
        (self.limits.max_datagram_size * MINIMUM_WINDOW_DATAGRAMS).as_f64().clamp(1.0, MAXIMUM_WINDOW)
    }

    /// Sets the window within its bounds.
    fn set_window(&mut self, window: f64) {
        self.window = window.clamp(self.minimum_window(), MAXIMUM_WINDOW);
    }

    /// The window that a recovery period ends with, and at other times the window.
    fn settled_window(&self) -> ByteCount {
        // Rounded down: a window may not be exceeded by a fraction either.
        ByteCount::new(self.window as u64)
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    fn known_threshold(&self) -> Option<ByteCount> {
        self.threshold.is_finite().then(|| ByteCount::from_f64(self.threshold))
    }

    /// Grows the window in slow start; answers with what is left of `acked` once the threshold is reached.
    fn slow_start(&mut self, ack: &AckSample<'_>, acked: ByteCount) -> f64 {
        let step = self.slow_start.on_ack(ack, acked, self.settled_window());
        let grown = self.window + step.growth.as_f64();
        let surplus = grown - self.threshold;
        self.set_window(grown.min(self.threshold));
        if let Some(window) = step.exit {
            self.set_window(window.as_f64());
            self.threshold = self.window;
            return 0.0;
        }
        // One ack may cover a whole flight: what exceeds the threshold grows as avoidance has it.
        if surplus.is_finite() { surplus.max(0.0) } else { 0.0 }
    }

    /// What the ack of this very moment delivered; nothing if a timer has found what is being acted on.
    fn newly_delivered(&self, now: Time) -> ByteCount {
        self.last_ack.filter(|ack| ack.at == now).map_or(ByteCount::ZERO, |ack| ack.newly)
    }

    /// Steps back once for everything sent until now (RFC 9002 section 7.3.2): `prior_in_flight` and `in_flight` are
    /// the flight before and after losses were taken out.
    fn reduce(&mut self, now: Time, prior_in_flight: ByteCount, in_flight: ByteCount) {
        // spec: rfc9002 7.3.1 slow-start-ends, 7.3.2 window-reduced, 7 other-controllers-conform
        self.recovery = Recovery::begun(now);
        let reduced = self.avoidance.reduce(self.window);
        self.set_window(reduced);
        self.threshold = self.window;
        let delivery = Delivery { newly: self.newly_delivered(now), in_flight };
        let flight = prior_in_flight + delivery.newly;
        // Where nothing is in flight, nothing has to shrink: another member's congestion may find this one so.
        let shrinks = self.shrinking == Shrinking::Prr && !flight.is_zero();
        let (target, datagram) = (self.settled_window(), self.limits.max_datagram_size);
        self.prr = shrinks.then(|| Prr::begin(target, flight, delivery, datagram));
    }

    /// The recovery period is over, or void.
    fn end_recovery(&mut self) {
        self.recovery.end();
        self.prr = None;
    }

    /// Goes back to before the reduction (RFC 9438 section 4.9).
    fn undo(&mut self, episode: Episode<Saved<A>>) {
        let (saved, recovery) = episode.into_saved();
        self.recovery = recovery;
        self.end_recovery();
        if saved.window > self.window {
            self.avoidance = saved.avoidance;
            self.threshold = saved.threshold.max(self.threshold);
            self.set_window(saved.window);
            if self.threshold.is_infinite() {
                // The capacity is unknown again; persistent congestion may have told slow start otherwise.
                self.slow_start.restart(None);
            }
        }
    }
}

impl<A: Avoidance> Congestion for LossBased<A> {
    fn on_sent(&mut self, sent: &SentSample) {
        if sent.prior_in_flight.is_zero() {
            self.avoidance.on_pause(sent.now);
        }
        if let Some(prr) = &mut self.prr {
            prr.on_sent(sent.bytes);
        }
    }

    fn on_ack(&mut self, ack: &AckSample<'_>) {
        let delivery = Delivery { newly: ack.acked, in_flight: ack.in_flight };
        self.last_ack = Some(LastAck { at: ack.now, newly: ack.acked });
        let counted = ack.packets.iter().filter(|packet| !self.recovery.covers(packet.sent_at));
        let acked: ByteCount = counted.map(|packet| packet.bytes).sum();
        if acked.is_zero() {
            if let Some(prr) = &mut self.prr {
                prr.on_ack(delivery);
            }
            return;
        }
        self.end_recovery();
        if ack.app_limited {
            // RFC 9002 section 7.8: a window that was not used has not been tested.
            self.avoidance.on_pause(ack.now);
            return;
        }
        let left = if self.in_slow_start() { self.slow_start(ack, acked) } else { acked.as_f64() };
        if left > 0.0 {
            let growth = Growth {
                now: ack.now,
                acked: left,
                window: self.window,
                smoothed_rtt: ack.rtt.smoothed,
                datagram: self.limits.max_datagram_size.as_f64().max(1.0),
                share: self.share,
            };
            let window = self.avoidance.on_ack(&growth);
            self.set_window(window);
        }
    }

    fn on_loss(&mut self, loss: &LossSample<'_>) -> LossCause {
        if loss.packets.iter().any(|packet| !self.recovery.covers(packet.sent_at)) {
            let saved =
                Saved { avoidance: self.avoidance.clone(), window: self.window, threshold: self.threshold };
            self.episode = Some(Box::new(Episode::new(saved, self.recovery)));
            self.reduce(loss.now, loss.prior_in_flight, loss.in_flight);
        } else {
            let newly = self.newly_delivered(loss.now);
            if let Some(prr) = &mut self.prr {
                prr.on_loss(Delivery { newly, in_flight: loss.in_flight });
            }
        }
        if let Some(episode) = &mut self.episode {
            loss.packets.iter().for_each(|packet| episode.on_lost(packet.sent_at));
        }
        LossCause::Congestion
    }

    fn on_silence_end(&mut self, now: Time) {
        self.avoidance.on_pause(now);
    }

    fn on_congestion_experienced(&mut self, now: Time, sent_at: Time, in_flight: ByteCount) {
        // A mark is proof: whatever becomes of the losses, there was congestion.
        self.episode = None;
        if !self.recovery.covers(sent_at) {
            self.reduce(now, in_flight, in_flight);
        }
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousSample) {
        let refuted = |episode: &mut Box<Episode<_>>| episode.on_spurious(spurious.packets, spurious.sent_at);
        if let Some(episode) = self.episode.take_if(refuted) {
            self.undo(*episode);
        }
    }

    fn on_persistent_congestion(&mut self, _now: Time) {
        // RFC 9002 section 7.6.2; the threshold stays where the loss has set it. Not covered by a recovery
        // period any more, so that the next loss counts anew (appendix B.8).
        self.recovery = Recovery::default();
        self.prr = None;
        // spec: rfc9002 7.6.2 window-collapses
        self.set_window(0.0);
        self.avoidance.forget();
        self.slow_start.restart(self.known_threshold());
    }

    fn on_max_datagram_size(&mut self, size: ByteCount) {
        self.limits.max_datagram_size = size;
        self.set_window(self.window);
        // The minimum may have risen above a threshold that was reached: that is no return to slow start.
        self.threshold = self.threshold.max(self.minimum_window());
    }

    fn adjust(&mut self, adjustment: &Adjustment) {
        if let Some(window) = adjustment.window {
            self.set_window(window.as_f64());
        }
        match adjustment.slow_start_threshold {
            Some(ByteCount::MAX) => {
                self.threshold = f64::INFINITY;
                self.slow_start.restart(None);
            }
            Some(threshold) => self.threshold = threshold.as_f64().max(self.minimum_window()),
            None => {}
        }
        // What was saved belongs to a state that somebody has replaced on purpose.
        self.episode = None;
        self.prr = None;
        self.avoidance.forget();
    }

    fn take_share(&mut self, share: &FlowShare) {
        let before = self.window;
        self.set_window(share.window.as_f64());
        self.avoidance.rescale(self.window / before);
        self.share = 1.0 / f64::from(share.controllers.max(1));
        if let Some(threshold) = share.slow_start_threshold {
            let is_unknown = threshold == ByteCount::MAX;
            self.threshold =
                if is_unknown { f64::INFINITY } else { threshold.as_f64().max(self.minimum_window()) };
        }
        // What was saved belongs to another part of the flow.
        self.episode = None;
        self.prr = None;
    }

    fn on_connections(&mut self, count: u32) {
        self.avoidance.on_connections(count);
    }

    fn window(&self) -> ByteCount {
        self.prr.map_or_else(
            || self.settled_window(),
            |prr| {
                let (least, most) = (self.minimum_window() as u64, MAXIMUM_WINDOW as u64);
                ByteCount::new(prr.window().get().clamp(least, most))
            },
        )
    }

    fn pacing(&self, rtt: &RttView) -> Option<Pacing> {
        let is_first_flight =
            self.threshold.is_infinite() && self.settled_window() <= self.limits.initial_window;
        let view = pacing::View {
            window: self.settled_window(),
            max_datagram_size: self.limits.max_datagram_size,
            in_slow_start: self.in_slow_start(),
            // RFC 9002 section 7.7 allows the initial window as a burst; a handshake's RTT must not turn the
            // first flight into half a round trip of waiting.
            first_burst: is_first_flight.then_some(self.limits.initial_window),
        };
        pacing::pace(view, rtt)
    }

    fn state(&self) -> CongestionState {
        let phase = if self.recovery.is_active() {
            Phase::Recovery
        } else if self.in_slow_start() {
            Phase::SlowStart
        } else {
            Phase::CongestionAvoidance
        };
        CongestionState { window: self.settled_window(), slow_start_threshold: self.known_threshold(), phase }
    }
}

#[cfg(test)]
mod tests;
