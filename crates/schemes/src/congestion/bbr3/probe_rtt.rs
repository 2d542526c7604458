//! `ProbeRTT` (section 5.3.4): half a BDP in flight for 200 ms, so that the least RTT can be seen; and restarts from
//! idle (section 5.4), which are as good.

use posthaste_policy::Constant;
use posthaste_units::{Duration, Time};

use super::probe_bw::AckPhase;
use super::{Bbr3, State};
use crate::congestion::model::{Sample, Throttled};

/// `ProbeRTTInterval`.
const INTERVAL: Duration = Duration::from_secs(5);
/// `ProbeRTTDuration`.
const DURATION: Duration = Duration::from_millis(200);
/// `MinRTTFilterLen`.
const FILTER: Duration = Duration::from_secs(10);

/// The constants, for people.
pub(super) fn constants() -> [Constant; 2] {
    [
        Constant::new("probe_rtt", format!("every {INTERVAL} for {DURATION}")),
        Constant::new("min_rtt window", FILTER),
    ]
}

/// When the least RTT was seen, and the present attempt to see it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProbeRtt {
    /// `BBR.probe_rtt_min_delay`.
    least: Option<Duration>,
    /// `BBR.probe_rtt_min_stamp`.
    seen_at: Time,
    /// `BBR.probe_rtt_expired`.
    expired: bool,
    /// `BBR.probe_rtt_done_stamp`.
    done_at: Option<Time>,
    /// `BBR.probe_rtt_round_done`.
    round_done: bool,
    /// What was sent slowly on purpose says nothing of the path's rate.
    pub(super) throttled: Throttled,
}

impl Bbr3 {
    /// `UpdateMinRTT`.
    pub(super) fn update_min_rtt(&mut self, sample: &Sample) {
        let (now, of) = (sample.now, &mut self.probe_rtt);
        of.expired = of.least.is_some() && now > of.seen_at + INTERVAL;
        let mut least = of.least.unwrap_or(sample.rtt);
        if of.least.is_none_or(|known| sample.rtt < known) || of.expired {
            least = sample.rtt;
            of.least = Some(least);
            of.seen_at = now;
        }
        let expired = now > self.model.min_rtt_at + FILTER;
        if self.model.min_rtt.is_none_or(|known| least < known) || expired {
            self.model.min_rtt = Some(least);
            self.model.min_rtt_at = of.seen_at;
        }
    }

    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, sample: &Sample) {
        if self.state != State::ProbeRtt && self.probe_rtt.expired && !self.idle_restart {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt.done_at = None;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.rounds.restart();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        if sample.delivered > 0.0 {
            self.idle_restart = false;
        }
    }

    /// `HandleProbeRTT`.
    fn handle_probe_rtt(&mut self, sample: &Sample) {
        self.probe_rtt.throttled.mark(sample);
        if self.probe_rtt.done_at.is_none() {
            if sample.in_flight <= self.probe_rtt_window() {
                self.probe_rtt.done_at = Some(sample.now + DURATION);
                self.probe_rtt.round_done = false;
                self.rounds.restart();
            }
            return;
        }
        self.probe_rtt.round_done |= self.rounds.started;
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(sample.now);
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT`.
    fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt.done_at.is_none_or(|at| now <= at) {
            return;
        }
        self.probe_rtt.seen_at = now;
        self.probe_rtt.done_at = None;
        self.restore_window();
        self.model.reset_shortterm();
        if self.full_pipe.reached {
            // Little is in flight: the queue that DOWN would drain is not there.
            self.start_down(now);
            self.start_cruise();
        } else {
            self.state = State::Startup;
        }
    }

    /// `HandleRestartFromIdle`.
    pub(super) fn restart_from_idle(&mut self, now: Time) {
        self.idle_restart = true;
        self.model.restart_aggregation(now);
        if self.state.is_probe_bw() {
            self.pace_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}
