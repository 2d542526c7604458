//! What the model-based controllers share: one ack as the BBR drafts see it, rounds, maxima over a window, and
//! whether the window is what bounds the flight. Bytes and bytes a second are reals here.

mod filter;

use posthaste_units::{ByteCount, Duration, Rate, Time};

pub(super) use filter::WindowedMax;

use super::pacing;
use posthaste_policy::Pacing;
use posthaste_policy::sample::{AckSample, SentSample};

/// The greatest window: 64 GiB, as for loss-based controllers.
pub(super) const MAXIMUM_WINDOW: f64 = 68_719_476_736.0;
/// `MinPipeCwnd`: fewer datagrams in flight do not keep a receiver busy that acknowledges every second.
pub(super) const MINIMUM_PIPE_DATAGRAMS: u64 = 4;
/// The least window that RFC 9002 section 7.2 knows.
pub(super) const COLLAPSED_DATAGRAMS: u64 = 2;

/// One ack: the drafts' rate sample `RS`, taken from the newest packet that it acknowledges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) now: Time,
    /// `RS.delivery_rate`, bytes a second; zero if there is no reliable one.
    pub(super) rate: f64,
    /// `RS.delivered`: bytes delivered since the packet was sent.
    pub(super) delivered: f64,
    /// `RS.prior_delivered`: bytes delivered before the packet was sent.
    pub(super) prior_delivered: ByteCount,
    /// `RS.is_app_limited`.
    pub(super) app_limited: bool,
    /// `RS.rtt`.
    pub(super) rtt: Duration,
    /// `RS.newly_acked`.
    pub(super) newly_acked: f64,
    /// `RS.lost`: bytes declared lost since the packet was sent.
    pub(super) lost: f64,
    /// `RS.tx_in_flight`: bytes in flight just after the packet was sent.
    pub(super) tx_in_flight: f64,
    /// `C.inflight`, after the ack.
    pub(super) in_flight: f64,
    /// Bytes in flight before the ack.
    pub(super) prior_in_flight: f64,
    /// `C.delivered`.
    pub(super) total_delivered: ByteCount,
    /// When the packet was sent.
    pub(super) sent_at: Time,
    /// `C.srtt`.
    pub(super) smoothed_rtt: Duration,
}

impl Sample {
    /// The sample that `ack` gives. None if it acknowledges nothing.
    pub(super) fn of(ack: &AckSample<'_>) -> Option<Self> {
        let newest = ack.packets.last()?;
        Some(Self {
            now: ack.now,
            rate: ack.delivery_rate.map_or(0.0, |sample| sample.rate.as_bytes_per_second() as f64),
            delivered: (ack.delivered - newest.delivered).as_f64(),
            prior_delivered: newest.delivered,
            app_limited: newest.app_limited,
            rtt: ack.now.since(newest.sent_at),
            newly_acked: ack.acked.as_f64(),
            lost: (ack.lost - newest.lost).as_f64(),
            tx_in_flight: newest.in_flight.as_f64(),
            in_flight: ack.in_flight.as_f64(),
            prior_in_flight: ack.prior_in_flight.as_f64(),
            total_delivered: ack.delivered,
            sent_at: newest.sent_at,
            smoothed_rtt: ack.rtt.smoothed,
        })
    }
}

/// Packet-timed round trips, which a controller may begin anew.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rounds {
    /// How many have ended.
    pub(super) count: u64,
    /// True if the latest ack ended one.
    pub(super) started: bool,
    /// `next_round_delivered`.
    ends_at: ByteCount,
    /// `C.delivered` at the latest ack.
    delivered: ByteCount,
}

impl Rounds {
    /// An ack arrives.
    pub(super) fn update(&mut self, sample: &Sample) {
        self.delivered = sample.total_delivered;
        self.started = sample.prior_delivered >= self.ends_at;
        if self.started {
            self.count += 1;
            self.restart();
        }
    }

    /// `StartRound`: the present round ends with what is sent from here on.
    pub(super) fn restart(&mut self) {
        self.ends_at = self.delivered;
    }
}

/// `C.is_cwnd_limited`: whether the window was full at any moment of the last round trip.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WindowUse {
    full_at: Option<Time>,
}

impl WindowUse {
    /// A packet leaves under `window`; full is a window into which no other fits.
    pub(super) fn on_sent(&mut self, sent: &SentSample, window: ByteCount, datagram: ByteCount) {
        if sent.prior_in_flight + sent.bytes + datagram > window {
            self.full_at = Some(sent.now);
        }
    }

    /// True if the flight that `sample` acknowledges was bounded by the window.
    pub(super) fn was_full(&self, sample: &Sample) -> bool {
        self.full_at.is_some_and(|at| at >= sample.sent_at)
    }
}

/// Samples of a stretch that the controller itself has throttled: they count as application-limited, whatever the
/// transport thought (`MarkConnectionAppLimited`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Throttled {
    stretch: Option<(ByteCount, ByteCount)>,
}

impl Throttled {
    /// Everything sent from now on until what is in flight has been delivered is throttled.
    pub(super) fn mark(&mut self, sample: &Sample) {
        let until = sample.total_delivered + ByteCount::from_f64(sample.in_flight);
        let from = self.stretch.filter(|(_, end)| *end >= sample.prior_delivered).map(|(from, _)| from);
        self.stretch = Some((from.unwrap_or(sample.total_delivered), until));
    }

    /// True if the sample's packet was sent in such a stretch.
    pub(super) fn covers(&self, sample: &Sample) -> bool {
        self.stretch.is_some_and(|(from, until)| (from..=until).contains(&sample.prior_delivered))
    }
}

/// What the model says of pacing.
#[derive(Debug, Clone, Copy)]
pub(super) struct PacingView {
    /// Bytes a second; none before the first round trip.
    pub(super) rate: Option<f64>,
    /// The datagram's size.
    pub(super) datagram: ByteCount,
    /// The burst that the start of the path allows, while it does.
    pub(super) first_burst: Option<ByteCount>,
}

/// The rate as the transport's pacer wants it.
pub(super) fn pace(view: &PacingView) -> Option<Pacing> {
    let rate = Rate::from_bytes_per_second(view.rate? as u64).max(Rate::from_bytes_per_second(1));
    let steady = pacing::burst(rate, view.datagram);
    Some(Pacing { rate, burst: view.first_burst.map_or(steady, |first| first.max(steady)) })
}

#[cfg(test)]
mod tests;
