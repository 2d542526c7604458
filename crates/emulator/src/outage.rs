//! Times in which a direction of a client lost every packet.

use std::net::SocketAddr;

use posthaste_units::{Duration, Time};

/// Shorter outages are not recorded.
const LEAST: Duration = Duration::from_secs(2);

/// A client's longest time without any packet that got through, in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// The client.
    pub client: SocketAddr,
    /// From the first packet that was lost to the client's or the server's last one before a packet got through; at least
    /// two seconds.
    pub length: Duration,
    /// Packets that were lost in this time, at least one.
    pub lost: u64,
}

/// What one direction has lost since it last delivered.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Losses {
    first: Option<Time>,
    packets: u64,
    longest: Option<(Duration, u64)>,
}

impl Losses {
    /// A packet enters.
    pub(crate) fn on_entered(&mut self, now: Time) {
        self.first.get_or_insert(now);
        self.packets += 1;
    }

    /// A packet gets through.
    pub(crate) fn on_delivered(&mut self, now: Time) {
        self.longest = self.longest(now);
        (self.first, self.packets) = (None, 0);
    }

    /// The longest outage, if the client or the server was last heard at `last`.
    pub(crate) fn longest(&self, last: Time) -> Option<(Duration, u64)> {
        let present = self.first.map(|first| (last.since(first), self.packets));
        let present = present.filter(|(length, _)| *length >= LEAST);
        self.longest.into_iter().chain(present).max()
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
        losses.on_delivered(at(1));
        assert_eq!(losses.longest(at(9)), None, "nothing has entered since");
        (10..=13).for_each(|second| losses.on_entered(at(second)));
        assert_eq!(losses.longest(at(14)), Some((Duration::from_secs(4), 4)));
        losses.on_delivered(at(15));
        losses.on_entered(at(20));
        assert_eq!(losses.longest(at(23)), Some((Duration::from_secs(5), 4)));
        assert_eq!(losses.longest(at(26)), Some((Duration::from_secs(6), 1)));
    }
}
