//! Losses and marks (section 5.5.10), their undoing (section 5.5.11), and the loss that is the path's own.

use posthaste_policy::Constant;
use posthaste_policy::sample::{LossSample, PacketSample, SpuriousSample};
use posthaste_units::{ByteCount, Duration, Time};

use super::{Bbr3, State};
use crate::congestion::model::Sample;
use crate::congestion::recovery::{Episode, Recovery};
use crate::slow_start::delay;

/// `LossThresh`: loss of a round trip beyond which too much was in flight.
const LOSS_THRESHOLD: f64 = 0.02;
/// `Beta`: the deepest cut of a bound in one round.
const BETA: f64 = 0.7;
/// Bytes that must have been sent while cruising before the path's own loss is believed, in datagrams.
const OWN_LOSS_DATAGRAMS: f64 = 100.0;
/// What a round may lose beyond the path's own loss because losses scatter.
const OWN_LOSS_SCATTER: f64 = 1.5;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 2] {
    [Constant::new("loss threshold", LOSS_THRESHOLD), Constant::new("beta", BETA)]
}

/// What losses have told (sections 2.10 and 2.15).
#[derive(Debug, Clone, Default)]
pub(super) struct LossState {
    /// `BBR.bw_latest`.
    bandwidth_latest: f64,
    /// `BBR.inflight_latest`.
    pub(super) inflight_latest: f64,
    /// `BBR.is_loss_in_round`.
    in_round: bool,
    /// True if a mark, not only losses, was reported in the round: no path marks of its own accord.
    marked_in_round: bool,
    /// `BBR.loss_round_delivered`.
    round_ends_at: ByteCount,
    /// `BBR.loss_round_start`: this ack has ended a round as losses count them.
    pub(super) round_ended: bool,
    /// Separate ranges lost in the present round, and in the last.
    ranges: u32,
    pub(super) ranges_last_round: u32,
    last_lost: Option<u64>,
    /// `C.delivered` at the latest event.
    delivered: ByteCount,
    /// The reduction that spurious losses would undo.
    pub(super) episode: Option<Episode<Undo>>,
    /// The path's own loss.
    pub(super) own: OwnLoss,
}

/// State to go back to (section 5.5.11.1).
#[derive(Debug, Clone, Copy)]
pub(super) struct Undo {
    state: Option<State>,
    bandwidth_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// What is lost while nothing is probed and no queue stands: that is not of this sender's making.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OwnLoss {
    /// Bytes delivered and lost while cruising.
    delivered: f64,
    lost: f64,
    /// The least RTT of the present round and of the last.
    round_least: Option<Duration>,
    last_least: Option<Duration>,
}

impl OwnLoss {
    /// A new cruise: what the older ones said counts half.
    pub(super) fn begin_cruise(&mut self) {
        self.delivered /= 2.0;
        self.lost /= 2.0;
    }

    fn on_rtt(&mut self, rtt: Duration, is_new_round: bool) {
        if is_new_round {
            self.last_least = self.round_least.take().or(self.last_least);
        }
        self.round_least = Some(self.round_least.map_or(rtt, |least| least.min(rtt)));
    }

    /// True if even the shortest RTTs of the last two rounds were well above `least`: a queue stands.
    fn has_queue(&self, least: Option<Duration>) -> bool {
        let recent = [self.round_least, self.last_least].into_iter().flatten().min();
        recent.zip(least).is_some_and(|(recent, least)| recent > least + delay::threshold(least))
    }

    /// The part of what is sent that is lost; none before there is enough to tell by.
    fn part(&self, datagram: f64) -> f64 {
        let sent = self.delivered + self.lost;
        if sent < OWN_LOSS_DATAGRAMS * datagram { 0.0 } else { self.lost / sent }
    }
}

impl Bbr3 {
    /// Loss of a round trip that is no sign of congestion, as a part of what was in flight.
    fn threshold(&self) -> f64 {
        let most = self.parameters.tolerated_loss;
        if most <= 0.0 || self.loss.own.has_queue(self.model.min_rtt) {
            return LOSS_THRESHOLD;
        }
        let own = if self.full_pipe.reached { self.loss.own.part(self.datagram()).min(most) } else { most };
        LOSS_THRESHOLD + own * OWN_LOSS_SCATTER
    }

    /// `IsInflightTooHigh`.
    pub(super) fn is_inflight_too_high(&self, lost: f64, tx_in_flight: f64) -> bool {
        lost > tx_in_flight * self.threshold()
    }

    /// `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &Sample) {
        let loss = &mut self.loss;
        loss.delivered = sample.total_delivered;
        loss.bandwidth_latest = loss.bandwidth_latest.max(sample.rate);
        loss.inflight_latest = loss.inflight_latest.max(sample.delivered);
        loss.round_ended = sample.prior_delivered >= loss.round_ends_at;
        if loss.round_ended {
            loss.round_ends_at = sample.total_delivered;
            loss.ranges_last_round = std::mem::take(&mut loss.ranges);
        }
    }

    /// `UpdateCongestionSignals`.
    pub(super) fn update_congestion_signals(&mut self, sample: &Sample) {
        self.rounds.update(sample);
        self.cycle.rounds_since_up += u64::from(self.rounds.started);
        self.model.update_max_bandwidth(sample);
        self.loss.own.on_rtt(sample.rtt, self.rounds.started);
        if self.state == State::ProbeBwCruise && !self.loss.own.has_queue(self.model.min_rtt) {
            self.loss.own.delivered += sample.newly_acked;
        }
        if self.loss.round_ended {
            self.adapt_lower_bounds(sample);
            self.loss.in_round = false;
            self.loss.marked_in_round = false;
        }
    }

    /// `AdaptLowerBoundsFromCongestion`, once a round.
    fn adapt_lower_bounds(&mut self, sample: &Sample) {
        if self.state.is_accelerating() || !self.loss.in_round {
            return;
        }
        let is_own =
            self.threshold() > LOSS_THRESHOLD && !self.is_inflight_too_high(sample.lost, sample.tx_in_flight);
        if is_own && !self.loss.marked_in_round {
            return;
        }
        let model = &mut self.model;
        if model.bandwidth_shortterm.is_infinite() {
            model.bandwidth_shortterm = model.max_bandwidth();
        }
        if model.inflight_shortterm.is_infinite() {
            model.inflight_shortterm = self.window;
        }
        model.bandwidth_shortterm = self.loss.bandwidth_latest.max(BETA * model.bandwidth_shortterm);
        model.inflight_shortterm = self.loss.inflight_latest.max(BETA * model.inflight_shortterm);
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &Sample) {
        if self.loss.round_ended {
            self.loss.bandwidth_latest = sample.rate;
            self.loss.inflight_latest = sample.delivered;
        }
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss.in_round = false;
        self.loss.marked_in_round = false;
        self.loss.bandwidth_latest = 0.0;
        self.loss.inflight_latest = 0.0;
    }

    /// `NoteLoss`.
    fn note_loss(&mut self) {
        if !self.loss.in_round {
            self.loss.round_ends_at = self.loss.delivered;
        }
        self.loss.in_round = true;
    }

    /// Packets are lost; `HandleLostPacket` for each.
    pub(super) fn handle_loss(&mut self, loss: &LossSample<'_>) {
        self.loss.delivered = loss.delivered;
        if loss.packets.iter().any(|packet| !self.recovery.covers(packet.sent_at)) {
            self.begin_episode(loss.now);
        }
        if self.state == State::ProbeBwCruise && !self.loss.own.has_queue(self.model.min_rtt) {
            self.loss.own.lost += loss.bytes.as_f64();
        }
        let mut total = loss.lost - loss.bytes;
        for packet in loss.packets {
            total += packet.bytes;
            if let Some(episode) = &mut self.loss.episode {
                episode.on_lost(packet.sent_at);
            }
            self.note_loss();
            let continues = self.loss.last_lost.is_some_and(|last| packet.number == last + 1);
            self.loss.ranges += u32::from(!continues);
            self.loss.last_lost = Some(packet.number);
            if self.cycle.is_probe_sample {
                self.judge_probe(loss.now, packet, (total - packet.lost).as_f64());
            }
        }
    }

    /// Packets of the last report of losses that it did not name, sent at about this time. Their bytes were in it; an undo
    /// has to wait for them, too.
    pub(crate) fn on_untold_losses(&mut self, sent_at: Time, packets: u64) {
        if let Some(episode) = &mut self.loss.episode {
            episode.on_many_lost(sent_at, packets);
        }
    }

    /// Whether a loss that a probe has caused says that the probe went too high.
    fn judge_probe(&mut self, now: Time, packet: &PacketSample, lost: f64) {
        let tx_in_flight = packet.in_flight.as_f64();
        if !self.is_inflight_too_high(lost, tx_in_flight) {
            return;
        }
        // `InflightAtLoss`: what was in flight when the losses crossed the threshold.
        let (size, threshold) = (packet.bytes.as_f64(), self.threshold());
        let (inflight_before, lost_before) = (tx_in_flight - size, lost - size);
        let prefix = (threshold * inflight_before - lost_before) / (1.0 - threshold);
        self.handle_inflight_too_high(now, inflight_before + prefix, packet.app_limited);
    }

    /// `HandleInflightTooHigh`.
    fn handle_inflight_too_high(&mut self, now: Time, tx_in_flight: f64, app_limited: bool) {
        self.cycle.was_too_high = true;
        self.cycle.is_probe_sample = false;
        if !app_limited {
            let floor = self.target_inflight() * BETA;
            self.model.inflight_longterm = tx_in_flight.max(floor).max(self.minimum_pipe());
        }
        if self.state == State::ProbeBwUp {
            self.note_undo(State::ProbeBwUp);
            self.start_down(now);
        }
    }

    /// A CE mark: congestion without a doubt, so it counts as a loss beyond every threshold.
    pub(super) fn handle_mark(&mut self, now: Time, sent_at: Time) {
        self.loss.episode = None;
        if self.recovery.covers(sent_at) {
            return;
        }
        self.recovery = Recovery::begun(now);
        self.note_loss();
        self.loss.marked_in_round = true;
        if self.state == State::Startup {
            self.leave_startup_for_loss();
            self.enter_drain();
        } else if self.cycle.is_probe_sample {
            self.handle_inflight_too_high(now, self.target_inflight(), false);
        }
    }

    /// A recovery period begins (RFC 9002 section 7.3.2): `SaveStateUponLoss`.
    fn begin_episode(&mut self, now: Time) {
        self.save_window();
        let undo = Undo {
            state: None,
            bandwidth_shortterm: self.model.bandwidth_shortterm,
            inflight_shortterm: self.model.inflight_shortterm,
            inflight_longterm: self.model.inflight_longterm,
        };
        self.loss.episode = Some(Episode::new(undo, self.recovery));
        self.recovery = Recovery::begun(now);
    }

    /// `BBR.undo_state`.
    pub(super) fn note_undo(&mut self, state: State) {
        if let Some(episode) = &mut self.loss.episode {
            episode.saved_mut().state = Some(state);
        }
    }

    /// `HandleSpuriousLossDetection`, once nothing is left that was lost.
    pub(super) fn handle_spurious_loss(&mut self, spurious: &SpuriousSample) {
        let refuted = |episode: &mut Episode<_>| episode.on_spurious(spurious.packets, spurious.sent_at);
        let Some(episode) = self.loss.episode.take_if(refuted) else { return };
        let (undo, recovery) = episode.into_saved();
        self.recovery = recovery;
        self.recovery.end();
        self.restore_window();
        self.loss.in_round = false;
        self.full_pipe.reset(0.0);
        let model = &mut self.model;
        model.bandwidth_shortterm = model.bandwidth_shortterm.max(undo.bandwidth_shortterm);
        model.inflight_shortterm = model.inflight_shortterm.max(undo.inflight_shortterm);
        model.inflight_longterm = model.inflight_longterm.max(undo.inflight_longterm);
        let is_probing_rtt = self.state == State::ProbeRtt;
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if !is_probing_rtt {
                    self.state = State::Startup;
                }
            }
            Some(State::ProbeBwUp) if self.state != State::ProbeBwUp && !is_probing_rtt => {
                self.start_refill();
            }
            _ => {}
        }
    }
}
