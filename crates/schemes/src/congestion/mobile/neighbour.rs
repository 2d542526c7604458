//! Flows that fill the queue, beside which a model of the path alone gets too little or takes too much.
//!
//! Drain test: after an ease what is in flight is less than fills the path. A queue that still stands then is somebody
//! else's, unless half of it has gone, or it did not move with the flight of one that has half of the link or more: then
//! the route is longer. Where the rate seemed to fall, most of what was drained must have gone with it, because a queue
//! that others share falls by this flow's share of that alone.
//!
//! After two tests in a row that find one, or at once where startup has met a crowded link (`response.rs`), a shadow says
//! what one flow of that kind would hold: a CUBIC of our own that is told of each ack and each congestive loss. It bounds
//! the window, which may then hold two bandwidth-delay products as BBR's does, and lifts it where that is less than a
//! CUBIC's. It goes once two tests in a row have found no queue.

use posthaste_policy::sample::{AckSample, LossSample, SpuriousSample};
use posthaste_policy::{Adjustment, Congestion, Constant, PathLimits};
use posthaste_units::{ByteCount, Duration, Time};

use super::verdict::Verdict;
use super::{Mobile, Part, State};
use crate::congestion::LossBased;
use crate::congestion::cubic::{self, CubicIncrease};
use crate::congestion::model::Sample;
use crate::slow_start::classic::Classic;

/// Drain tests in a row that must find a queue, and that must find none: beside a CUBIC with a short queue there is none
/// after each of its losses.
const TESTS: u32 = 2;
/// The least queue, in time, that an ease must have had to empty for what is left to tell a longer route.
const LEAST_DRAINED: Duration = Duration::from_millis(12);
/// What a round trip may change by in such an ease on a longer route, as a part of that queue.
const ROUTE_PART: u64 = 4;
/// Where the rate seemed to fall, the part of what an ease has drained that the queue must have become shorter by.
const GONE: f64 = 0.75;
/// How long others are taken to be there before the next test.
pub(super) const TEST_INTERVAL: Duration = Duration::from_secs(5);
/// The window beside others, at most, in bandwidth-delay products (`DefaultCwndGain` of the BBR draft); a probe's gain
/// takes the place of one of them.
const WINDOW: f64 = 2.0;
/// How far the shadow lifts the window, in what the rate yields in a present round trip.
const LIFT: f64 = 1.25;
/// The steepness of the shadow's curve, three times CUBIC's (RFC 9438 section 4.2): rests and drain tests cost this flow
/// what a CUBIC does not pay, and one that comes late would not reach its share within half a minute.
const STEEPNESS: f64 = 1.2;
/// Own loss below which each loss in a queue counts, as it does for CUBIC.
const LITTLE_LOSS: f64 = 0.005;
/// The part of a round trip that is lost where the shadow stands far above what there is for this flow: many have begun
/// at once, and a CUBIC's steps of 0.7 would take as many round trips of such losses.
pub(super) const OVERRUN: f64 = 1.0 / 3.0;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 1] {
    [Constant::new(
        "beside others",
        format!(
            "a shadow CUBIC (c {STEEPNESS}) bounds {WINDOW} BDP and lifts to {LIFT} of rate x RTT, from {TESTS} drain \
             tests that find a queue to {TESTS} that do not, {TEST_INTERVAL} apart; it falls to what arrives where a third \
             is lost. A queue of which half is gone has been drained; where the rate seemed to fall it must have fallen by \
             {GONE} of what was. Of one that has half of the link, a queue that moves by less than 1/{ROUTE_PART} of what a test \
             drains ({LEAST_DRAINED} or more) is a longer route"
        ),
    )]
}

/// What is known of other flows.
#[derive(Debug, Default)]
pub(super) struct Neighbour {
    /// An ease has ended: whether a queue stands without this flow has been looked at.
    pub(super) was_looked_for: bool,
    /// Drain tests in a row that have found a queue, and that have found none.
    tests_failed: u32,
    tests_passed: u32,
    tested_at: Time,
    /// What has begun the shadow, while it may prove wrong.
    pub(super) verdict: Option<Verdict>,
    /// What the shadow lifts the window to; zero where it does not.
    pub(super) lift: f64,
    /// The largest window that the rate can fill.
    usable: f64,
    /// Losses of what left before are told to nobody: the shadow's first window is the answer to them.
    heard_from: Time,
    /// The same for what the shadow falls to where much is lost.
    fits_from: Time,
    /// While somebody else is taken to hold the queue.
    shadow: Option<LossBased<CubicIncrease>>,
    /// Packets settled and lost since the shadow last stepped back.
    settled: f64,
    lost: f64,
    /// The longest queue that has been met by what has left since the shadow began.
    pub(super) longest_queue: Duration,
}

impl Neighbour {
    /// True while somebody else is taken to hold the queue.
    pub(super) fn is_beside(&self) -> bool {
        self.shadow.is_some()
    }

    pub(super) fn on_ack(&mut self, ack: &AckSample<'_>) {
        if let Some(shadow) = self.shadow.as_mut() {
            // A window that was not used has not been tested.
            let is_used = shadow.window().as_f64() <= self.usable;
            shadow.on_ack(&AckSample { app_limited: !is_used || ack.app_limited, ..*ack });
        }
        self.settled += ack.packets.len() as f64;
    }

    pub(super) fn on_mark(&mut self, now: Time, sent_at: Time, in_flight: ByteCount) {
        if let Some(shadow) = &mut self.shadow {
            shadow.on_congestion_experienced(now, sent_at, in_flight);
        }
    }

    pub(super) fn on_persistent_congestion(&mut self, now: Time) {
        if let Some(shadow) = &mut self.shadow {
            shadow.on_persistent_congestion(now);
        }
    }

    pub(super) fn on_spurious(&mut self, spurious: &SpuriousSample) {
        if let Some(shadow) = &mut self.shadow {
            shadow.on_spurious_loss(spurious);
        }
    }

    /// What the shadow would hold.
    pub(super) fn window(&self) -> f64 {
        self.shadow.as_ref().map_or(0.0, |shadow| shadow.window().as_f64())
    }

    /// The shadow stands at `window` at most.
    fn lower(&mut self, window: f64) {
        let Some(shadow) = self.shadow.as_mut().filter(|shadow| shadow.window().as_f64() > window) else {
            return;
        };
        let window = Some(ByteCount::from_f64(window));
        shadow.adjust(&Adjustment { window, slow_start_threshold: window, ..Adjustment::default() });
    }

    /// A shadow that stands at `window` and grows from there.
    pub(super) fn begin_shadow(&mut self, limits: PathLimits, window: f64) {
        let increase = CubicIncrease::new(cubic::Parameters { c: STEEPNESS, ..cubic::Parameters::default() });
        let mut shadow = LossBased::new(increase, Box::new(Classic), limits);
        let window = Some(ByteCount::from_f64(window));
        shadow.adjust(&Adjustment { window, slow_start_threshold: window, ..Adjustment::default() });
        self.shadow = Some(shadow);
        self.longest_queue = Duration::ZERO;
    }
}

impl Mobile {
    /// What stands in the queue at the end of an ease is judged after a round with little in flight.
    pub(super) fn step_test(&mut self, sample: &Sample) {
        if !self.neighbour.was_looked_for && !self.has_queue_to_test() {
            self.pass_test(sample.now);
            return self.start_hold();
        }
        if self.cycle.rounds < 1 || !self.rounds.started && self.cycle.rounds < 2 {
            return;
        }
        if self.is_queue_drained() {
            self.pass_test(sample.now);
            self.start_hold();
        } else if self.cycle.rounds >= 2 {
            self.fail_test(sample);
        }
    }

    /// True if no queue stands at the end of an ease, or one that was twice as long before. Where the rate seemed to fall it
    /// must also have gone as this flow's own would, except within the steps of the medium's delay: those make a rate seem
    /// to fall, too.
    fn is_queue_drained(&self) -> bool {
        let (queue, before) = (self.path.queue(), self.cycle.queue_before);
        if queue <= self.path.strict_eps() {
            return true;
        }
        let is_doubtful = self.cycle.rate_before > 0.0 && queue > self.path.eps() && self.has(Part::Drained);
        let expected = if is_doubtful { GONE * self.drained().min(before).as_secs_f64() } else { 0.0 };
        queue <= before / 2 && before.saturating_sub(queue).as_secs_f64() >= expected
    }

    /// What the flight has fallen by since the ease began, in time at the rate that is believed now.
    fn drained(&self) -> Duration {
        let bytes = (self.cycle.flight_before - self.in_flight).max(0.0);
        Duration::from_secs_f64(bytes / self.path.bandwidth().max(1.0))
    }

    /// True if a test has found a queue and the next must say whether it was chance.
    pub(super) fn wants_test(&self) -> bool {
        (1..TESTS).contains(&self.neighbour.tests_failed)
    }

    /// True beside others if it is time to see whether they still are there.
    pub(super) fn is_test_due(&self, now: Time) -> bool {
        now > self.neighbour.tested_at + TEST_INTERVAL
    }

    /// Nobody else holds the queue now.
    pub(super) fn pass_test(&mut self, now: Time) {
        self.neighbour.tested_at = now;
        self.neighbour.tests_failed = 0;
        self.cycle.rate_before = 0.0;
        self.neighbour.tests_passed = (self.neighbour.tests_passed + 1).min(TESTS);
        if self.neighbour.tests_passed >= TESTS {
            // What they leave is looked for at once, and what was never theirs.
            self.reach.is_doubtful |= self.neighbour.is_beside();
            self.neighbour.shadow = None;
        }
    }

    /// Somebody else holds the queue, or the route is longer. In both cases the rate has not fallen.
    fn fail_test(&mut self, sample: &Sample) {
        let now = sample.now;
        self.path.raise_bandwidth(self.cycle.rate_before);
        if self.has(Part::Route) && self.is_route_longer() {
            self.path.renew_least_rtt(now);
            self.pass_test(now);
            return self.start_hold();
        }
        self.cycle.was_free = false;
        self.cycle.rate_before = 0.0;
        self.neighbour.tested_at = now;
        self.neighbour.tests_passed = 0;
        self.neighbour.tests_failed = (self.neighbour.tests_failed + 1).min(TESTS);
        let is_certain = self.neighbour.tests_failed >= TESTS;
        if is_certain && self.parameters.shadow {
            if self.neighbour.shadow.is_none() {
                // Not what the test has left in flight.
                let flight = self.cycle.flight_before.max(self.path.bdp()).max(self.minimum_pipe());
                self.neighbour.begin_shadow(self.limits, flight);
                self.neighbour.verdict = self.test_verdict(sample);
            }
            self.losses.reset_short();
        }
        self.start_hold();
    }

    /// True if the delay has stayed as it was while the flight fell: a queue would have become shorter, whoever has filled
    /// it, and one that others were filling would have become longer before. Who has a small part of the link cannot tell:
    /// its flight makes hardly any of the queue.
    fn is_route_longer(&self) -> bool {
        let drained = self.drained();
        let [Some(now), _] = self.path.ended_rtts() else { return false };
        let [Some(before), Some(earlier)] = self.cycle.rtts_before else { return false };
        let is_near = |rtt: Duration| rtt.abs_diff(before) <= drained / ROUTE_PART;
        let can_tell = self.is_alone() && !self.neighbour.is_beside() && drained >= LEAST_DRAINED;
        can_tell && is_near(now) && is_near(earlier)
    }

    /// Others were there before: a shadow begins with `window`. What startup has sent too much is lost for a round trip
    /// more.
    pub(super) fn join_others(&mut self, sample: &Sample, window: f64) {
        self.neighbour.begin_shadow(self.limits, window);
        self.neighbour.verdict = self.startup_verdict(sample);
        self.neighbour.heard_from = sample.now + sample.smoothed_rtt;
        self.neighbour.fits_from = self.neighbour.heard_from;
        self.neighbour.tests_failed = TESTS;
        self.neighbour.tests_passed = 0;
        self.neighbour.tested_at = sample.now;
        self.losses.reset_short();
    }

    /// A round trip ends: if so much of it was lost, what has arrived is this flow's part.
    pub(super) fn fit_shadow(&mut self, sample: &Sample) {
        let is_overrun = self.has(Part::Overrun) && sample.lost > OVERRUN * sample.tx_in_flight;
        if is_overrun && sample.sent_at >= self.neighbour.fits_from {
            self.neighbour.lower(sample.delivered.max(self.minimum_pipe()));
            // What has been sent too much is lost for a round trip more.
            self.neighbour.fits_from = sample.now + sample.smoothed_rtt;
            self.neighbour.heard_from = self.neighbour.heard_from.max(self.neighbour.fits_from);
        }
    }

    /// The gain of a probe, where there is one.
    fn window_gain(&self) -> f64 {
        if self.state == State::Up { self.cycle.up_gain() } else { 1.0 }
    }

    /// What the model wants beside others, at most what a CUBIC would hold.
    pub(super) fn beside_window(&self) -> f64 {
        let gain = self.window_gain();
        let model = (WINDOW - 1.0 + gain) * self.path.bdp();
        model.min(gain * self.neighbour.window())
    }

    /// Lifts the window to what a CUBIC would hold, as far as the rate can fill it, except where less is meant.
    pub(super) fn update_lift(&mut self, sample: &Sample) {
        if !self.neighbour.is_beside() || self.cycle.is_testing || self.state == State::Rest {
            self.neighbour.lift = 0.0;
            return;
        }
        // What startup has left in the queue is nobody else's.
        if sample.sent_at >= self.neighbour.heard_from {
            self.neighbour.longest_queue = self.neighbour.longest_queue.max(self.path.queue());
        }
        let present = self.path.bandwidth() * sample.smoothed_rtt.as_secs_f64();
        let usable = LIFT * self.window_gain() * present;
        self.neighbour.usable = usable;
        self.neighbour.lift = self.neighbour.window().min(usable);
    }

    /// The shadow hears of losses that are congestion's: more, since the last of them, than the path's own part, two
    /// deviations of it and one packet. Where no queue has been seen since the shadow began, nobody has been seen to fill
    /// it, and a path that loses one packet in 100 would starve the flow.
    pub(super) fn tell_neighbour(&mut self, loss: &LossSample<'_>) {
        if loss.packets.iter().all(|packet| packet.sent_at < self.neighbour.heard_from) {
            return;
        }
        let own = self.own_part();
        let has_seen_queue = self.neighbour.longest_queue > self.path.eps();
        let is_told = self.own.is_known() && has_seen_queue || self.path.peak_queue() > self.path.eps();
        let neighbour = &mut self.neighbour;
        let packets = loss.packets.len() as f64;
        neighbour.settled += packets;
        neighbour.lost += packets;
        let expected = neighbour.settled * own;
        let is_much = own < LITTLE_LOSS || neighbour.lost > expected + 2.0 * libm::sqrt(expected) + 1.0;
        if !is_told || !is_much {
            return;
        }
        neighbour.settled = 0.0;
        neighbour.lost = 0.0;
        if let Some(shadow) = &mut neighbour.shadow {
            shadow.on_loss(loss);
        }
    }
}
