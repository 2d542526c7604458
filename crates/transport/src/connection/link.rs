//! The rate of the link by which data arrive, where the application knows it: an input to the receive windows.

use posthaste_policy::sample::RttView;
use posthaste_units::{ByteCount, Duration, Rate};

use crate::connection::Connection;
use crate::limits;

/// Round trips whose data fit into a window that is renewed at half: one is under way while the update is.
const WINDOW_ROUND_TRIPS: u64 = 2;

/// What the application knows of the link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    rate: Rate,
    round_trip: Option<Duration>,
}

impl Link {
    /// The window with which the link is never idle for want of credit.
    pub(super) fn window(&self, rtt: &RttView) -> ByteCount {
        let measured = rtt.is_measured.then_some(rtt.smoothed);
        let round_trip = self.round_trip.or(measured).unwrap_or(Duration::ZERO);
        (self.rate.bytes_in(round_trip) * WINDOW_ROUND_TRIPS).min(limits::HINTED_WINDOW)
    }
}

impl Connection {
    /// The link by which data arrive has this rate, as the link layer or an operator says; `round_trip` is the path's, if
    /// it is known, else what is measured counts. From the next data on no receive window is less than what arrives in
    /// two round trips, whatever the credit policy says: it need not find out. At most 64 MiB, and never more than the
    /// receive budget has for the connection. A rate of zero takes the hint back; credit that was granted stays.
    pub fn path_hint(&mut self, rate: Rate, round_trip: Option<Duration>) {
        self.link = (rate > Rate::ZERO).then_some(Link { rate, round_trip });
    }
}
