//! The model of the path (section 5.5): bandwidth, least RTT, aggregation, and the bounds that losses have set.

use posthaste_units::{Duration, Time};

use super::Bbr3;
use crate::congestion::model::{Rounds, Sample, WindowedMax};

/// `MaxBwFilterLen`, in cycles of bandwidth probing.
const BANDWIDTH_CYCLES: u64 = 2;
/// `ExtraAckedFilterLen`, in rounds.
const AGGREGATION_ROUNDS: u64 = 10;

/// `BBR.max_bw`, `BBR.min_rtt` and their bounds. Infinite bounds are unset.
#[derive(Debug, Clone)]
pub(super) struct Model {
    bandwidths: WindowedMax,
    /// `BBR.cycle_count`.
    cycles: u64,
    /// `BBR.bw`, bytes a second.
    pub(super) bandwidth: f64,
    /// `BBR.bw_shortterm`.
    pub(super) bandwidth_shortterm: f64,
    /// `BBR.inflight_shortterm`.
    pub(super) inflight_shortterm: f64,
    /// `BBR.inflight_longterm`.
    pub(super) inflight_longterm: f64,
    /// `BBR.min_rtt`.
    pub(super) min_rtt: Option<Duration>,
    /// `BBR.min_rtt_stamp`.
    pub(super) min_rtt_at: Time,
    aggregation: Aggregation,
}

/// `BBR.extra_acked` (section 5.5.9).
#[derive(Debug, Clone, Default)]
struct Aggregation {
    started: Time,
    delivered: f64,
    extra: WindowedMax,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            bandwidths: WindowedMax::default(),
            cycles: 0,
            bandwidth: 0.0,
            bandwidth_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            aggregation: Aggregation::default(),
        }
    }
}

impl Model {
    /// `BBR.max_bw`.
    pub(super) fn max_bandwidth(&self) -> f64 {
        self.bandwidths.get()
    }

    /// `UpdateMaxBw`, without the rounds.
    pub(super) fn update_max_bandwidth(&mut self, sample: &Sample) {
        // An application-limited sample is a lower bound: it counts if it is above what is known.
        if sample.rate > 0.0 && (sample.rate >= self.max_bandwidth() || !sample.app_limited) {
            self.bandwidths.update(self.cycles, BANDWIDTH_CYCLES, sample.rate);
        }
    }

    /// `AdvanceMaxBwFilter`.
    pub(super) fn advance_max_bandwidth(&mut self) {
        self.cycles += 1;
    }

    /// `BoundBWForModel`.
    pub(super) fn bound_bandwidth(&mut self) {
        self.bandwidth = self.max_bandwidth().min(self.bandwidth_shortterm);
    }

    /// `ResetShortTermModel`.
    pub(super) fn reset_shortterm(&mut self) {
        self.bandwidth_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// `UpdateACKAggregation`.
    pub(super) fn update_aggregation(
        &mut self,
        sample: &Sample,
        rounds: &Rounds,
        full_pipe: bool,
        window: f64,
    ) {
        let of = &mut self.aggregation;
        let mut expected = self.bandwidth * sample.now.since(of.started).as_secs_f64();
        if of.delivered <= expected {
            // Acks come no faster than the rate: the episode is over.
            of.delivered = 0.0;
            of.started = sample.now;
            expected = 0.0;
        }
        of.delivered += sample.newly_acked;
        let extra = (of.delivered - expected).min(window);
        of.extra.update(rounds.count, if full_pipe { AGGREGATION_ROUNDS } else { 1 }, extra);
    }

    /// `BBR.extra_acked`.
    pub(super) fn extra_acked(&self) -> f64 {
        self.aggregation.extra.get()
    }

    /// The pause before `now` is no part of an aggregation episode.
    pub(super) fn restart_aggregation(&mut self, now: Time) {
        self.aggregation.started = now;
    }

    /// Another policy knows better.
    pub(super) fn set_bandwidth(&mut self, bandwidth: f64) {
        self.bandwidths.clear();
        self.bandwidths.update(self.cycles, BANDWIDTH_CYCLES, bandwidth);
        self.bound_bandwidth();
    }

    /// Everything about the rate is unknown again.
    pub(super) fn forget_rate(&mut self) {
        self.bandwidths.clear();
        self.bandwidth = 0.0;
        self.inflight_longterm = f64::INFINITY;
        self.reset_shortterm();
    }
}

impl Bbr3 {
    /// `BDPMultiple` of a bandwidth.
    pub(super) fn bdp_of(&self, bandwidth: f64, gain: f64) -> f64 {
        let Some(min_rtt) = self.model.min_rtt else { return self.limits.initial_window.as_f64() };
        gain * bandwidth * min_rtt.as_secs_f64()
    }

    /// `BBR.bdp`.
    pub(super) fn bdp(&self) -> f64 {
        self.bdp_of(self.model.bandwidth, 1.0)
    }

    /// `TargetInflight`.
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp().min(self.window)
    }
}
