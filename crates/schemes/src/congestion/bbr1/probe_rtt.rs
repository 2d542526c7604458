//! The least RTT and `ProbeRTT` (section 4.3.5): four datagrams in flight for 200 ms, if it was not seen for 10 s.

use posthaste_policy::Constant;
use posthaste_units::{Duration, Time};

use super::{Bbr1, State};
use crate::congestion::model::Sample;

/// `RTpropFilterLen`.
const FILTER: Duration = Duration::from_secs(10);
/// `ProbeRTTDuration`.
const DURATION: Duration = Duration::from_millis(200);

/// The constants, for people.
pub(super) fn constants() -> [Constant; 1] {
    [Constant::new("probe_rtt", format!("after {FILTER} without a lower RTT, for {DURATION}"))]
}

/// The present attempt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProbeRtt {
    /// `BBR.rtprop_expired`.
    expired: bool,
    /// `BBR.probe_rtt_done_stamp`.
    done_at: Option<Time>,
    /// `BBR.probe_rtt_round_done`.
    round_done: bool,
}

impl Bbr1 {
    /// `BBRUpdateRTprop`.
    pub(super) fn update_min_rtt(&mut self, sample: &Sample) {
        self.probe_rtt.expired = self.min_rtt.is_some() && sample.now > self.min_rtt_at + FILTER;
        if self.min_rtt.is_none_or(|known| sample.rtt <= known) || self.probe_rtt.expired {
            self.min_rtt = Some(sample.rtt);
            self.min_rtt_at = sample.now;
        }
    }

    /// `BBRCheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, sample: &Sample) {
        if self.state != State::ProbeRtt && self.probe_rtt.expired && !self.idle_restart {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt.done_at = None;
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        self.idle_restart = false;
    }

    /// `BBRHandleProbeRTT` and `BBRExitProbeRTT`.
    fn handle_probe_rtt(&mut self, sample: &Sample) {
        self.throttled.mark(sample);
        let Some(done_at) = self.probe_rtt.done_at else {
            if sample.in_flight <= self.minimum_pipe() {
                self.probe_rtt.done_at = Some(sample.now + DURATION);
                self.probe_rtt.round_done = false;
                self.rounds.restart();
            }
            return;
        };
        self.probe_rtt.round_done |= self.rounds.started;
        if self.probe_rtt.round_done && sample.now > done_at {
            self.min_rtt_at = sample.now;
            self.restore_window();
            if self.full_pipe.filled {
                self.enter_probe_bw(sample.now);
            } else {
                self.state = State::Startup;
            }
        }
    }
}
