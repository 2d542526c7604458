//! Loss recovery (section 4.2.3.4): packet conservation for a round, then growth again up to the model's target; after
//! it the window is what it was.

use posthaste_policy::sample::{LossSample, SpuriousSample};
use posthaste_units::{ByteCount, Time};

use super::Bbr1;
use crate::congestion::model::Sample;
use crate::congestion::recovery::{Episode, Recovery};

/// The present recovery.
#[derive(Debug, Clone, Default)]
pub(super) struct LossRecovery {
    /// Recovery lasts until a packet is acknowledged that was sent after the latest loss was found.
    ends_with: Option<Time>,
    /// `BBR.packet_conservation`.
    pub(super) conserves: bool,
    /// Bytes lost since the last ack (`rs.losses` of the draft comes with the ack).
    pub(super) newly_lost: f64,
    /// What the last ack delivered.
    pub(super) newly_acked: f64,
    episode: Option<Episode<()>>,
}

impl LossRecovery {
    pub(super) fn is_active(&self) -> bool {
        self.ends_with.is_some()
    }
}

impl Bbr1 {
    /// An ack arrives: conservation ends with the round, recovery with the first packet sent after the last loss.
    pub(super) fn advance_recovery(&mut self, sample: &Sample) {
        self.recovery.newly_acked = sample.newly_acked;
        if self.recovery.ends_with.is_some_and(|end| sample.sent_at > end) {
            self.recovery.ends_with = None;
            self.recovery.conserves = false;
            self.restore_window();
        }
    }

    /// `OnEnterFastRecovery`.
    fn enter_recovery(&mut self, now: Time, in_flight: f64) {
        if !self.recovery.is_active() {
            self.save_window();
            let conserved = in_flight + self.recovery.newly_acked.max(self.datagram());
            self.set_window(conserved.min(self.window));
            self.recovery.conserves = true;
            self.rounds.restart();
        }
        self.recovery.ends_with = Some(now);
    }

    pub(super) fn handle_loss(&mut self, loss: &LossSample<'_>) {
        if !self.recovery.is_active() {
            self.recovery.episode = Some(Episode::new((), Recovery::default()));
        }
        if let Some(episode) = &mut self.recovery.episode {
            loss.packets.iter().for_each(|packet| episode.on_lost(packet.sent_at));
        }
        self.enter_recovery(loss.now, loss.in_flight.as_f64());
        self.recovery.newly_lost += loss.bytes.as_f64();
    }

    /// A mark counts as a loss of nothing. An undo is out of the question: congestion there was.
    pub(super) fn handle_mark(&mut self, now: Time, sent_at: Time, in_flight: f64) {
        self.recovery.episode = None;
        if self.recovery.ends_with.is_none_or(|end| sent_at > end) {
            self.enter_recovery(now, in_flight);
        }
    }

    pub(super) fn handle_spurious_loss(&mut self, spurious: &SpuriousSample) {
        let refuted = |episode: &mut Episode<_>| episode.on_spurious(spurious.packets, spurious.sent_at);
        if self.recovery.episode.take_if(refuted).is_some() {
            self.recovery = LossRecovery::default();
            self.restore_window();
        }
    }

    /// `BBRModulateCwndForRecovery`: true if the window may not grow otherwise.
    pub(super) fn modulate_for_recovery(&mut self, sample: &Sample) -> bool {
        if self.recovery.newly_lost > 0.0 {
            self.set_window((self.window - self.recovery.newly_lost).max(self.datagram()));
        }
        if self.recovery.conserves && self.rounds.started {
            self.recovery.conserves = false;
        }
        if self.recovery.conserves {
            self.set_window(self.window.max(sample.in_flight + sample.newly_acked));
        }
        self.recovery.conserves
    }

    /// `BBRSaveCwnd`.
    pub(super) fn save_window(&mut self) {
        let is_touched = self.recovery.is_active() || self.state == super::State::ProbeRtt;
        self.prior_window = if is_touched { self.prior_window.max(self.window) } else { self.window };
    }

    /// `BBRRestoreCwnd`.
    pub(super) fn restore_window(&mut self) {
        self.set_window(self.window.max(self.prior_window));
    }

    /// True if so little has been delivered that the model says nothing yet.
    pub(super) fn is_young(&self) -> bool {
        self.delivered < self.limits.initial_window.max(ByteCount::new(1))
    }
}
