//! Delivery-rate samples, as Linux takes them (`tcp_rate.c`; draft-cheng-iccrg-delivery-rate-estimation): each
//! segment notes what had been delivered when it left, its acknowledgement what has been since.

use posthaste_units::{Duration, Time};

/// What a segment notes of the moment in which it last left.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Departure {
    /// When the first segment of its flight left.
    first_sent_at: Time,
    /// Segments that had been delivered, and when the last of them was.
    delivered: u64,
    delivered_at: Time,
    is_app_limited: bool,
}

/// What an ack says of the path's rate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    /// Segments delivered over `interval`; `None` if the ack tells nothing.
    pub(super) rate: Option<(u64, Duration)>,
    /// What had been delivered when the segment left that the sample is of.
    pub(super) prior_delivered: u64,
    /// The application, not the window, kept data back.
    pub(super) is_app_limited: bool,
    /// The round trip of the most recently sent segment.
    pub(super) rtt: Option<Duration>,
    /// Segments that this ack has acknowledged, and that were found lost with it.
    pub(super) acked: u32,
    pub(super) lost: u32,
    /// Segments in flight before and after it.
    pub(super) prior_in_flight: u32,
    pub(super) in_flight: u32,
}

/// The connection's side of it.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// Segments delivered so far, and when the last was.
    pub(super) delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Samples of segments sent until so many are delivered are limited by the application.
    app_limited_until: Option<u64>,
    newest: Option<Newest>,
}

/// The most recently sent of the segments that an ack covers.
#[derive(Debug, Clone, Copy)]
struct Newest {
    sent_at: Time,
    end: u64,
    departure: Departure,
}

impl Delivery {
    /// A segment leaves; `is_idle` if nothing else is outstanding.
    pub(super) fn on_sent(&mut self, now: Time, is_idle: bool) -> Departure {
        if is_idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Departure {
            first_sent_at: self.first_sent_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            is_app_limited: self.app_limited_until.is_some(),
        }
    }

    /// A segment that left at `sent_at` has arrived.
    pub(super) fn on_delivered(&mut self, sent_at: Time, end: u64, departure: Departure) {
        self.delivered += 1;
        let is_newer = |newest: &Newest| (sent_at, end) > (newest.sent_at, newest.end);
        if self.newest.as_ref().is_none_or(is_newer) {
            self.newest = Some(Newest { sent_at, end, departure });
        }
    }

    /// All that an ack covers has been told: its rate sample, without the counts.
    pub(super) fn end_ack(&mut self, now: Time, least_rtt: Option<Duration>) -> Sample {
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let Some(Newest { sent_at, departure, .. }) = self.newest.take() else { return Sample::default() };
        self.delivered_at = now;
        self.first_sent_at = sent_at;
        let sending = sent_at.since(departure.first_sent_at);
        let interval = sending.max(now.since(departure.delivered_at));
        // A shorter one would be of segments that left in one go and were acknowledged in one.
        let is_long = least_rtt.is_none_or(|least| interval >= least) && !interval.is_zero();
        Sample {
            rate: is_long.then(|| (self.delivered - departure.delivered, interval)),
            prior_delivered: departure.delivered,
            is_app_limited: departure.is_app_limited,
            ..Sample::default()
        }
    }

    /// The application has nothing more to send, though the window has room.
    pub(super) fn on_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = Some((self.delivered + u64::from(in_flight)).max(1));
    }

    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }
}
