//! The seam `silence`: what a silent peer means.

use std::fmt::Debug;

use posthaste_units::{ByteCount, Duration, Time};

#[cfg(doc)]
use crate::Congestion;
use crate::sample::{AckSample, LossSample, PathView, RttView, SentSample, SilenceSample};
use crate::{Adjustment, Description, LossCause, Pacing};

/// What a peer that has gone silent means: when to probe it, and what to make of the silence once it is over.
///
/// A silence begins with a probe timeout for 1-RTT packets and ends with the next ack that newly acknowledges one.
/// Every answer is carried out after the controller has been told of the same thing.
pub trait Silence: Debug + Send {
    /// The wait before the next probe of 1-RTT packets: `base` is the probe timeout (RFC 9002 section 6.2.1) and
    /// `count` the number of probe timeouts in a row. The handshake's probes back off as that section has it, whatever
    /// the policy.
    fn probe_timeout(&self, base: Duration, count: u32) -> Duration;

    /// Told that a probe timeout for 1-RTT packets has expired; two probes are about to leave.
    fn on_probe_timeout(&mut self, _silence: &SilenceSample) {}

    /// True if nothing but probes may leave for now, whatever the window says.
    fn holds_back(&self) -> bool {
        false
    }

    /// Told that the silence is over: an ack has arrived, of which controller and policy are about to be told. True
    /// if the time of silence does not count for the controller's clocks.
    fn on_end(&mut self, _now: Time, _max_datagram_size: ByteCount) -> bool {
        false
    }

    /// True if a packet sent then, and lost, was lost to the silence: it is repaired, but is no congestion.
    fn excuses(&self, _sent_at: Time) -> bool {
        false
    }

    /// Told of each in-flight packet sent; `view` counts it.
    fn on_sent(&mut self, _sent: &SentSample, _view: &PathView) -> Option<Adjustment> {
        None
    }

    /// Told of each ack before the controller is.
    fn on_ack(&mut self, _ack: &AckSample<'_>) -> Option<Adjustment> {
        None
    }

    /// True while the controller is not told of acks, which would raise a window that nothing has proved.
    fn is_in_charge(&self) -> bool {
        false
    }

    /// Told of losses that are not excused, after the controller; `is_persistent` if they establish persistent
    /// congestion (RFC 9002 section 7.6).
    fn on_loss(
        &mut self,
        _loss: &LossSample<'_>,
        _cause: LossCause,
        is_persistent: bool,
        _view: &PathView,
    ) -> Verdict {
        // spec: rfc9002 7.6.2 window-collapses
        if is_persistent { Verdict::Collapse } else { Verdict::Stand }
    }

    /// Told that an ack reported CE marks, after the controller.
    fn on_congestion_experienced(&mut self, _view: &PathView) -> Option<Adjustment> {
        None
    }

    /// Told that the path has become another: what is known of a silence is of no account.
    fn on_path_change(&mut self) {}

    /// The pacing that takes the place of the controller's, while there is one.
    fn pacing(&self, _rtt: &RttView, _max_datagram_size: ByteCount) -> Option<Pacing> {
        None
    }
}

/// What losses mean for the window, besides what the controller has made of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Stand,
    /// It collapses: [`Congestion::on_persistent_congestion`].
    Collapse,
    /// It is put into this state.
    Adjust(Adjustment),
}

/// Builds the silence policy of each new path.
///
/// Implemented by every `Fn() -> impl Silence`.
pub trait SilenceFactory: Send + Sync {
    /// The policy of one path.
    fn build(&self) -> Box<dyn Silence>;

    /// What the policy says of itself.
    fn describe(&self) -> Description {
        Description::default()
    }
}

impl<F, S> SilenceFactory for F
where
    F: Fn() -> S + Send + Sync,
    S: Silence + 'static,
{
    fn build(&self) -> Box<dyn Silence> {
        Box::new(self())
    }
}
