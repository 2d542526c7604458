//! Startup: threefold growth a round below what a start policy has measured, and what ends it.

use posthaste_policy::Constant;
use posthaste_policy::sample::{AckSample, LossSample, PacketSample, PacketSpace};
use posthaste_units::{Duration, Time};

use super::loss::BETA;
use super::neighbour::OVERRUN;
use super::{Mobile, Part, Path, State};
use crate::congestion::model::Sample;

/// Growth by what is acknowledged, while no queue is seen (draft-kazuho-ccwg-rapid-start-02).
const QUIET_GROWTH: f64 = 2.0;
/// The queue below which growth is threefold, at least; and as a part of the least RTT, one in so many.
const QUIET_QUEUE: Duration = Duration::from_millis(4);
const QUIET_PART: u64 = 10;
/// The window a round trip, as a pacing rate.
pub(super) const PACING_GAIN: f64 = 2.0;
/// The window under a ceiling, in bandwidth-delay products of it.
pub(super) const CEILING_GAIN: f64 = 1.25;
/// The queue that ends startup under a ceiling, as a part of the least RTT: one in so many.
const CEILING_QUEUE_PART: u64 = 4;
/// The part of the ceiling that must be delivered to end startup.
const CEILING_REACHED: f64 = 0.9;
/// Growth of the rate that a round must show to count as growth.
const FULL_GROWTH: f64 = 1.25;
/// Rounds without such growth that end startup.
const FULL_ROUNDS: u32 = 3;
/// Separate ranges of loss in a round that can end startup.
const LOSS_RANGES: u32 = 6;
/// Datagrams in flight, at least, of which a third lost is no chance: at 10 % of loss once in 5,000 flights.
const LEAST_OVERRUN: f64 = 32.0;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 2] {
    [
        Constant::new(
            "startup",
            format!(
                "3 times a round while the queue is below {QUIET_QUEUE} or 1/{QUIET_PART} of the RTT, else 2"
            ),
        ),
        Constant::new(
            "startup ends",
            format!(
                "at a queue, at {CEILING_REACHED} of the measured rate, after {FULL_ROUNDS} rounds below \
                 {FULL_GROWTH} x, or at {LOSS_RANGES} ranges lost in a round"
            ),
        ),
    ]
}

/// Where startup stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reach {
    /// What the bottleneck's rate is at most, as a start policy has measured it; bytes a second.
    pub(super) ceiling: Option<f64>,
    /// When the first 1-RTT packet was acknowledged.
    first_acked: Option<Time>,
    /// When the first flight began to be acknowledged: packets sent before met the queue of their own burst.
    flight_acked: Option<Time>,
    /// Acks of what left after that.
    later_acks: usize,
    /// Startup has ended below what trains have shown, or they have shown nothing: a probe is due soon.
    pub(super) is_doubtful: bool,
    /// Startup has ended beside others that were none, and goes on.
    pub(super) is_resumed: bool,
    full_rate: f64,
    full_rounds: u32,
    /// When a flight was last found to be more than the path holds.
    overrun_at: Option<Time>,
}

impl Reach {
    /// An ack arrives. The small 1-RTT packets that end the handshake's datagrams are acknowledged before the first flight
    /// leaves, and are no part of it: a datagram that is half full is, or what left after the first acknowledgement.
    pub(super) fn note_ack(&mut self, ack: &AckSample<'_>, datagram: f64) {
        if ack.space != PacketSpace::Data {
            return;
        }
        let known = self.first_acked;
        let is_of_flight = |packet: &PacketSample| {
            packet.bytes.as_f64() * 2.0 >= datagram || known.is_some_and(|first| packet.sent_at >= first)
        };
        if ack.packets.iter().any(is_of_flight) {
            self.flight_acked.get_or_insert(ack.now);
        }
        self.first_acked.get_or_insert(ack.now);
    }

    /// The next ack takes the place of the last.
    pub(super) fn replace_last_ack(&mut self) {
        self.later_acks = self.later_acks.saturating_sub(1);
    }

    /// True once a 1-RTT packet has been acknowledged.
    pub(super) fn has_begun(&self) -> bool {
        self.first_acked.is_some()
    }

    /// True if a packet sent then belongs to the first flight, whose burst queues by itself.
    pub(super) fn is_first_flight(&self, sent_at: Time) -> bool {
        self.flight_acked.is_none_or(|first| sent_at <= first)
    }

    /// True if a flight of startup was more than the path holds.
    pub(super) fn is_overrun(&self) -> bool {
        self.overrun_at.is_some()
    }

    /// True if a packet sent then left before that was known.
    fn is_of_overrun(&self, sent_at: Time) -> bool {
        self.overrun_at.is_some_and(|at| sent_at <= at)
    }
}

impl Mobile {
    /// What to do at an ack in startup.
    pub(super) fn step_reach(&mut self, sample: &Sample) {
        let is_first_flight = self.reach.is_first_flight(sample.sent_at);
        self.reach.later_acks += usize::from(!is_first_flight);
        // What the first flight has met, and the rate that it was paced at, say nothing of what came behind it.
        let acks = self.reach.later_acks;
        let has_queue = Path::is_queue_known(acks) && self.path.queue() > self.longest_queue();
        if self.is_link_crowded() {
            self.leave_to_others(sample);
        } else if has_queue {
            self.path.raise_bandwidth(self.path.arrival_rate(acks));
            self.leave_early(sample);
        } else if self.is_ceiling_reached() {
            self.probe_or_drain(sample);
        } else if self.losses.round_ended
            && self.losses.ranges_last_round >= LOSS_RANGES
            && self.is_too_much(sample.lost, sample.tx_in_flight)
        {
            // The round may have been the first flight's: of what trains have shown no more is taken back than a cut does.
            let shown = self.reach.ceiling.unwrap_or(0.0) * self.path.least_rtt().as_secs_f64();
            let least = (BETA * shown).max(self.minimum_pipe());
            self.losses.bound = self.path.bdp().max(self.losses.inflight_latest).max(least);
            self.leave_early(sample);
        } else if self.rounds.started
            && !is_first_flight
            && !sample.app_limited
            && self.is_plateau(sample.rate)
        {
            self.leave_early(sample);
        }
    }

    /// The ceiling is reached. A probe takes a queue that stands before it for somebody else's and puts its own on top, which
    /// overflows a queue of ten packets. Startup's own queue is drained first, and the probe follows a round later.
    fn probe_or_drain(&mut self, sample: &Sample) {
        if self.path.queue() > self.path.eps() {
            self.reach.is_doubtful = self.has(Part::EarlyProbe);
            self.start_ease(sample.now);
        } else {
            self.start_up(sample);
        }
    }

    /// The queue that ends startup. Under a ceiling no more than a quarter of the bandwidth-delay product can stand if the
    /// ceiling is right, and packets that follow each other closely are held up by the slowest of them on radio links.
    fn longest_queue(&self) -> Duration {
        let eps = self.path.eps();
        if self.reach.ceiling.is_some() { eps.max(self.path.least_rtt() / CEILING_QUEUE_PART) } else { eps }
    }

    /// Startup ends. Below a ceiling, or without one, the rate is doubtful: a probe follows soon.
    fn leave_early(&mut self, sample: &Sample) {
        self.reach.is_doubtful = self.has(Part::EarlyProbe) && !self.is_ceiling_reached();
        self.start_ease(sample.now);
    }

    fn is_ceiling_reached(&self) -> bool {
        let delivered = self.path.bandwidth() / (1.0 - self.own.part(self.parameters.tolerated_loss));
        self.reach.ceiling.is_some_and(|ceiling| delivered >= CEILING_REACHED * ceiling)
    }

    fn is_plateau(&mut self, rate: f64) -> bool {
        let reach = &mut self.reach;
        if rate >= reach.full_rate * FULL_GROWTH {
            reach.full_rate = rate;
            reach.full_rounds = 0;
            return false;
        }
        reach.full_rounds += 1;
        reach.full_rounds >= FULL_ROUNDS
    }

    /// True if so much of a flight is lost as no path does by chance.
    pub(super) fn is_overrun(&self, lost: f64, in_flight: f64) -> bool {
        in_flight >= LEAST_OVERRUN * self.datagram() && lost > OVERRUN * in_flight
    }

    /// Packets of startup are lost. If the path drops more of a flight than chance can, nothing is sent in
    /// the place of what is lost, and acks add nothing until those of the next flight: what goes on is what arrives. Of a
    /// flight that many have begun with at one instant that is a small part, and a second flight of the same size would
    /// be dropped as the first was.
    pub(super) fn hold_back(&mut self, loss: &LossSample<'_>, is_overrun: bool) {
        let newest = loss.packets.last().map_or(loss.now, |packet| packet.sent_at);
        let is_known = self.reach.is_of_overrun(newest);
        if !is_known && !is_overrun {
            return;
        }
        if !is_known {
            self.reach.overrun_at = Some(loss.now);
        }
        let arrives = loss.in_flight.as_f64().max(self.minimum_pipe());
        self.set_window(self.window.min(arrives));
    }

    /// The window after an ack in startup.
    pub(super) fn reach_window(&self, sample: &Sample) -> f64 {
        let quiet = QUIET_QUEUE.max(self.path.least_rtt() / QUIET_PART);
        let is_quiet = self.reach.is_first_flight(sample.sent_at) || self.path.queue() <= quiet;
        let growth = match () {
            () if self.reach.is_of_overrun(sample.sent_at) => 0.0,
            () if is_quiet => QUIET_GROWTH,
            () => 1.0,
        };
        let is_used = self.window_use.was_full(sample) || !sample.app_limited;
        let grown = self.window + if is_used { growth * sample.newly_acked } else { 0.0 };
        let Some(ceiling) = self.reach.ceiling else { return grown };
        let most = CEILING_GAIN * ceiling * self.path.least_rtt().as_secs_f64();
        grown.min(most.max(self.window))
    }

    /// Startup goes on from where it stands, below what trains have shown. It does not look for others again: what it has
    /// seen of this path's delay says nothing of them.
    pub(super) fn resume_reach(&mut self) {
        let Reach { ceiling, first_acked, flight_acked, overrun_at, .. } = self.reach;
        self.reach =
            Reach { ceiling, first_acked, flight_acked, overrun_at, is_resumed: true, ..Reach::default() };
        self.state = State::Reach;
    }

    /// Back to startup, as if the path were new: its capacity is unknown again.
    pub(super) fn restart_reach(&mut self) {
        self.path.forget_rate();
        self.losses.forget_bounds();
        self.reach = super::Reach::default();
        self.response = super::Response::default();
        self.stalls = super::Stalls::default();
        self.state = State::Reach;
    }
}
