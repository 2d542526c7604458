//! Times in which next to nothing got through between a client and the server.

use std::net::SocketAddr;

use posthaste_units::{Duration, Time};

/// Shorter outages are not recorded.
const LEAST: Duration = Duration::from_secs(2);

/// In the longer kind of outage, packets that were lost for each that got through to the server.
const LOST_FOR_ONE: u64 = 2;

/// A client's longest outage: a time in which one direction lost every packet, or one in which no packet reached the client
/// and two of three in both directions were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// The client.
    pub client: SocketAddr,
    /// From the first packet that was lost to the client's or the server's last one before the outage ends; at least two
    /// seconds.
    pub length: Duration,
    /// Packets that were lost in this time, at least one.
    pub lost: u64,
}

/// What was lost since the last packet that ended an outage.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Losses {
    first: Option<Time>,
    entered: u64,
    delivered: u64,
    longest: Option<(Duration, u64)>,
}

impl Losses {
    /// A packet enters.
    pub(crate) fn on_entered(&mut self, now: Time) {
        self.first.get_or_insert(now);
        self.entered += 1;
    }

    /// A packet gets through, but not to the end that waits.
    pub(crate) fn on_delivered(&mut self) {
        self.delivered += 1;
    }

    /// A packet gets through that ends an outage.
    pub(crate) fn end(&mut self, now: Time) {
        *self = Self { longest: self.longest(now), ..Self::default() };
    }

    /// The longest outage, if the client or the server was last heard at `last`.
    pub(crate) fn longest(&self, last: Time) -> Option<(Duration, u64)> {
        let missing = self.entered.saturating_sub(self.delivered);
        let present = self.first.map(|first| (last.since(first), missing));
        let is_outage = |(length, lost): &(Duration, u64)| {
            *length >= LEAST && *lost > 0 && *lost >= self.delivered.saturating_mul(LOST_FOR_ONE)
        };
        self.longest.into_iter().chain(present.filter(is_outage)).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_longest_time_without_a_delivery_counts() {
        let mut losses = Losses::default();
        losses.on_entered(at(0));
        losses.end(at(1));
        assert_eq!(losses.longest(at(9)), None, "nothing has entered since");
        (10..=13).for_each(|second| losses.on_entered(at(second)));
        assert_eq!(losses.longest(at(14)), Some((Duration::from_secs(4), 4)));
        losses.end(at(15));
        losses.on_entered(at(20));
        assert_eq!(losses.longest(at(23)), Some((Duration::from_secs(5), 4)));
        assert_eq!(losses.longest(at(26)), Some((Duration::from_secs(6), 1)));
    }

    #[test]
    fn a_time_in_which_much_gets_through_is_no_outage() {
        let mut losses = Losses::default();
        (0..5).for_each(|second| losses.on_entered(at(second)));
        losses.on_delivered();
        assert_eq!(losses.longest(at(5)), Some((Duration::from_secs(5), 4)));
        losses.on_delivered();
        losses.on_entered(at(5));
        losses.on_delivered();
        assert_eq!(losses.longest(at(6)), None, "the server has been asked and does not answer");
    }
}
