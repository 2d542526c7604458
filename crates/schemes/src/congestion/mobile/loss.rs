//! Losses and marks: whose they are, the bounds that congestive ones set, and their undoing.

use posthaste_policy::sample::{LossSample, PacketSample, SpuriousSample};
use posthaste_policy::{Constant, LossCause};
use posthaste_units::{ByteCount, Time};

use super::outage::Run;
use super::own_loss::OwnLoss;
use super::{Mobile, Part, State};
use crate::congestion::model::Sample;
use crate::congestion::recovery::{Episode, Recovery};

/// Loss of a round trip beyond the path's own, above which too much was in flight (`LossThresh` of the BBR draft).
const LOSS_THRESHOLD: f64 = 0.02;
/// Packets that a share of lost ones is counted on at the least: among fewer a single one is no share.
const LEAST_COUNTED: u64 = 100;
/// The part of what trains have shown that no link with others leaves.
const ALONE: f64 = 0.5;
/// The deepest cut of a bound in one round (`Beta` of the BBR draft).
pub(super) const BETA: f64 = 0.7;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 2] {
    [
        Constant::new(
            "congestive loss",
            "2 % beyond the lower quartile of the last 16 x 128 packets and 3 deviations of it",
        ),
        Constant::new("beta", BETA),
    ]
}

/// What losses have told. Infinite bounds are unset.
#[derive(Debug, Clone)]
pub(super) struct Losses {
    /// Most in flight that a congestive loss has left; probes raise it.
    pub(super) bound: f64,
    /// Bounds until the next probe, of congestive losses while not probing.
    pub(super) short_inflight: f64,
    pub(super) short_rate: f64,
    rate_latest: f64,
    pub(super) inflight_latest: f64,
    /// Something was lost in the present round; something was marked.
    in_round: bool,
    marked_in_round: bool,
    round_ends_at: ByteCount,
    /// This ack has ended a round as losses count them.
    pub(super) round_ended: bool,
    ranges: u32,
    pub(super) ranges_last_round: u32,
    last_lost: Option<u64>,
    /// Those in a row that have been lost with it.
    run: Run,
    /// The same packet, if it met no queue and is the only one for long enough to be chance.
    chance: Option<u64>,
    delivered: ByteCount,
    /// What spurious losses would undo.
    pub(super) episode: Option<Episode<Undo>>,
}

impl Default for Losses {
    fn default() -> Self {
        Self {
            bound: f64::INFINITY,
            short_inflight: f64::INFINITY,
            short_rate: f64::INFINITY,
            rate_latest: 0.0,
            inflight_latest: 0.0,
            in_round: false,
            marked_in_round: false,
            round_ends_at: ByteCount::ZERO,
            round_ended: false,
            ranges: 0,
            ranges_last_round: 0,
            last_lost: None,
            run: Run::default(),
            chance: None,
            delivered: ByteCount::ZERO,
            episode: None,
        }
    }
}

/// Bounds to go back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Undo {
    bound: f64,
    short_inflight: f64,
    short_rate: f64,
}

impl Losses {
    /// The bounds that hold until the next probe hold no more.
    pub(super) fn reset_short(&mut self) {
        self.short_inflight = f64::INFINITY;
        self.short_rate = f64::INFINITY;
    }

    /// No bound holds any more.
    pub(super) fn forget_bounds(&mut self) {
        self.reset_short();
        self.bound = f64::INFINITY;
    }

    /// What was seen before a change of state is no signal of the new one.
    pub(super) fn reset_signals(&mut self) {
        self.in_round = false;
        self.marked_in_round = false;
        self.rate_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    fn note(&mut self) {
        if !self.in_round {
            self.round_ends_at = self.delivered;
        }
        self.in_round = true;
    }

    /// The end of an ack: a new round begins with it.
    pub(super) fn advance(&mut self, sample: &Sample) {
        if self.round_ended {
            self.rate_latest = sample.rate;
            self.inflight_latest = sample.delivered;
            self.in_round = false;
            self.marked_in_round = false;
        }
    }
}

impl Mobile {
    /// Loss of a round trip with `in_flight` in flight that is no sign of congestion, as a part of it.
    fn loss_threshold(&self, in_flight: f64) -> f64 {
        let most = self.parameters.tolerated_loss;
        let is_settled = self.state != State::Reach || self.path.common_queue() > self.path.eps();
        let part = if is_settled || self.own.is_known() && !self.has(Part::Greatest) {
            self.own_part()
        } else if self.own.is_known() {
            // Of two chunks the lower quartile is the lesser: at 8 % it often says 4.
            self.own.greatest(most)
        } else {
            // Before anything is known of the path any loss up to the bound may be its own.
            most
        };
        LOSS_THRESHOLD + part + OwnLoss::scatter(part, in_flight / self.datagram())
    }

    /// The part of what is sent that the path itself loses, once startup is over. What is lost where no queue is seen is
    /// the path's only if a queue could be seen: if the least RTT was taken while others kept the queue full, all their
    /// losses would look like the path's, and nobody would give way. A rate near what trains have shown is proof, too:
    /// there are no others then.
    pub(super) fn own_part(&self) -> f64 {
        let is_told = self.path.has_room() || !self.has(Part::Room) || self.is_alone();
        if is_told { self.own.part(self.parameters.tolerated_loss) } else { 0.0 }
    }

    /// True if the rate is near what trains have shown: nobody else has much of the link.
    pub(super) fn is_alone(&self) -> bool {
        self.reach.ceiling.is_some_and(|most| self.path.bandwidth() > ALONE * most)
    }

    /// True if losing `lost` of `in_flight` says that too much was in flight. One packet of a small flight is a large part
    /// of it, and may be chance where no queue stands: a share is counted on 100 packets at the least then.
    pub(super) fn is_too_much(&self, lost: f64, in_flight: f64) -> bool {
        self.losses.chance.is_none() && lost > in_flight * self.loss_threshold(in_flight)
    }

    /// An ack arrives: rounds are kept, and the bounds follow what was lost in them.
    pub(super) fn update_losses(&mut self, sample: &Sample) {
        let losses = &mut self.losses;
        losses.delivered = sample.total_delivered;
        losses.rate_latest = losses.rate_latest.max(sample.rate);
        losses.inflight_latest = losses.inflight_latest.max(sample.delivered);
        losses.round_ended = sample.prior_delivered >= losses.round_ends_at;
        if losses.round_ended {
            losses.round_ends_at = sample.total_delivered;
            losses.ranges_last_round = std::mem::take(&mut losses.ranges);
            self.lower_short_bounds(sample);
            self.fit_shadow(sample);
        }
    }

    /// Once a round, while nothing is probed: congestive loss lowers what may be sent until the next probe.
    fn lower_short_bounds(&mut self, sample: &Sample) {
        if !matches!(self.state, State::Hold | State::Ease) || !self.losses.in_round {
            return;
        }
        let is_congestive = self.losses.marked_in_round || self.is_too_much(sample.lost, sample.tx_in_flight);
        if !is_congestive {
            return;
        }
        let (bandwidth, window) = (self.path.bandwidth(), self.window);
        let losses = &mut self.losses;
        losses.short_rate = losses.rate_latest.max(BETA * losses.short_rate.min(bandwidth));
        losses.short_inflight = losses.inflight_latest.max(BETA * losses.short_inflight.min(window));
        self.cycle.was_free = false;
    }

    /// Packets are lost.
    pub(super) fn handle_loss(&mut self, loss: &LossSample<'_>) -> LossCause {
        let is_new = loss.packets.iter().any(|packet| !self.recovery.covers(packet.sent_at));
        if is_new {
            self.begin_episode(loss.now);
        }
        let mut total = loss.lost - loss.bytes;
        let has_queue = self.path.peak_queue() > self.path.eps();
        let mut cause = if self.own.is_known() { LossCause::Path } else { LossCause::Unknown };
        let rate = self.reach.ceiling.unwrap_or(0.0).max(self.path.bandwidth()) / self.datagram();
        let (mut is_overrun, mut is_outage) = (false, false);
        for packet in loss.packets {
            total += packet.bytes;
            if let Some(episode) = &mut self.losses.episode {
                episode.on_lost(packet.sent_at);
            }
            self.own.on_lost(packet.sent_at, has_queue);
            self.losses.note();
            let continues = self.losses.last_lost.is_some_and(|last| packet.number == last + 1);
            is_outage |= self.losses.run.on_lost(packet, continues, rate) && self.has(Part::Outage);
            let is_near = |last: u64| packet.number < last.saturating_add(LEAST_COUNTED);
            let is_chance =
                self.has(Part::Chance) && !has_queue && !self.losses.last_lost.is_some_and(is_near);
            self.losses.chance = is_chance.then_some(packet.number);
            self.losses.ranges += u32::from(!continues);
            self.losses.last_lost = Some(packet.number);
            let since = (total - packet.lost).as_f64();
            is_overrun |= self.is_overrun(since, packet.in_flight.as_f64());
            if self.is_too_much(since, packet.in_flight.as_f64()) {
                cause = LossCause::Congestion;
                self.judge_probe(loss.now, packet, since);
            }
        }
        if self.state == State::Reach {
            self.hold_back(loss, is_overrun && !is_outage);
        }
        self.tell_neighbour(loss);
        cause
    }

    /// A probe has caused more loss than the path's own.
    fn judge_probe(&mut self, now: Time, packet: &PacketSample, lost: f64) {
        if self.state != State::Up || packet.sent_at < self.cycle.up_since {
            return;
        }
        // What was in flight when the losses crossed the threshold.
        let (size, in_flight) = (packet.bytes.as_f64(), packet.in_flight.as_f64());
        let threshold = self.loss_threshold(in_flight);
        let (before, lost_before) = (in_flight - size, lost - size);
        let prefix = (threshold * before - lost_before) / (1.0 - threshold);
        if !packet.app_limited {
            self.lower_bound(before + prefix);
        }
        self.cycle.was_free = false;
        self.start_ease(now);
    }

    fn lower_bound(&mut self, in_flight: f64) {
        let target = self.path.bdp().min(self.window);
        self.losses.bound = in_flight.max(BETA * target).max(self.minimum_pipe());
    }

    /// A CE mark: congestion without a doubt.
    pub(super) fn handle_mark(&mut self, now: Time, sent_at: Time) {
        self.losses.episode = None;
        if self.recovery.covers(sent_at) {
            return;
        }
        self.recovery = Recovery::begun(now);
        self.losses.note();
        self.losses.marked_in_round = true;
        self.cycle.was_free = false;
        match self.state {
            State::Reach => {
                self.losses.bound = self.path.bdp().max(self.losses.inflight_latest).max(self.minimum_pipe());
                self.start_ease(now);
            }
            State::Up => {
                self.lower_bound(self.path.bdp().min(self.window));
                self.start_ease(now);
            }
            _ => {}
        }
    }

    fn begin_episode(&mut self, now: Time) {
        let of = &self.losses;
        let undo = Undo { bound: of.bound, short_inflight: of.short_inflight, short_rate: of.short_rate };
        self.losses.episode = Some(Episode::new(undo, self.recovery));
        self.recovery = Recovery::begun(now);
    }

    /// Lost packets have arrived after all: once nothing is left that was lost, the bounds are as before.
    pub(super) fn handle_spurious_loss(&mut self, spurious: &SpuriousSample) {
        let refuted = |episode: &mut Episode<_>| episode.on_spurious(spurious.packets, spurious.sent_at);
        let Some(episode) = self.losses.episode.take_if(refuted) else { return };
        let (undo, recovery) = episode.into_saved();
        self.recovery = recovery;
        self.recovery.end();
        let of = &mut self.losses;
        of.in_round = false;
        of.bound = of.bound.max(undo.bound);
        of.short_inflight = of.short_inflight.max(undo.short_inflight);
        of.short_rate = of.short_rate.max(undo.short_rate);
        self.neighbour.on_spurious(spurious);
    }
}
