//! How packets arrive, round trip by round trip: the receiver's view of the path, for credit policies.

use posthaste_policy::sample::ArrivalView;
use posthaste_units::{ByteCount, Duration, Rate, Time};

/// A round that has a pause of so many of its lengths in it says nothing about the path.
const PAUSE: u64 = 2;

/// Counts what arrives in the 1-RTT space.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    view: ArrivalView,
    /// When the round began and what has arrived in it; none between a pause and the packet that ends it.
    started: Option<Time>,
    bytes: u64,
    /// Packet numbers that have been jumped over in this round, less those that came late.
    missing: i64,
    largest: Option<u64>,
}

impl Arrivals {
    /// A new packet of `bytes` has arrived. A round takes `rtt`, which must be measured.
    pub(crate) fn on_packet(&mut self, now: Time, number: u64, bytes: usize, rtt: Option<Duration>) {
        let jumped = match self.largest {
            Some(largest) if number > largest => i64::try_from(number - largest - 1).unwrap_or(i64::MAX),
            Some(_) => -1,
            None => 0,
        };
        self.largest = self.largest.max(Some(number));
        if let (Some(started), Some(rtt)) = (self.started, rtt) {
            let passed = now.since(started);
            if passed < rtt {
                self.bytes += bytes as u64;
                self.missing = self.missing.saturating_add(jumped);
                return;
            }
            if passed < rtt * PAUSE {
                self.end_round(passed);
            }
        }
        self.started = rtt.map(|_| now);
        self.bytes = bytes as u64;
        self.missing = jumped;
    }

    fn end_round(&mut self, passed: Duration) {
        self.view.round += 1;
        self.view.rate = Some(Rate::from_transfer(ByteCount::new(self.bytes), passed));
        // What came late was missing in a round before, and must not make up for what is missing now.
        let has_gaps = self.missing > 0;
        self.view.rounds_with_gaps = if has_gaps { self.view.rounds_with_gaps.saturating_add(1) } else { 0 };
    }

    /// What has been seen.
    pub(crate) fn view(&self) -> ArrivalView {
        self.view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Option<Duration> = Some(Duration::from_millis(100));

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_steady_rate_is_measured_once_a_round() {
        let mut arrivals = Arrivals::default();
        for index in 0..=40 {
            arrivals.on_packet(at(index * 10), index, 1000, RTT);
        }
        let view = arrivals.view();
        assert_eq!((view.round, view.rounds_with_gaps), (4, 0));
        assert_eq!(view.rate, Some(Rate::from_bytes_per_second(100_000)));
    }

    #[test]
    fn a_pause_is_no_round_and_nothing_is_measured_without_an_rtt() {
        let mut arrivals = Arrivals::default();
        (0..10).for_each(|index| arrivals.on_packet(at(index * 100), index, 1000, None));
        assert_eq!(arrivals.view(), ArrivalView::default());
        for index in 0..10 {
            arrivals.on_packet(at(1000 + index * 250), 10 + index, 1000, RTT);
        }
        assert_eq!(arrivals.view(), ArrivalView::default());
    }

    #[test]
    fn gaps_count_by_rounds_in_a_row_and_reordering_is_none() {
        let mut arrivals = Arrivals::default();
        let mut number = 0;
        let mut seen = Vec::new();
        // In each round of ten packets: nothing; one lost; two lost; two swapped; one lost.
        for (round, step) in [[1, 1, 1], [1, 2, 1], [2, 1, 2], [2, -1, 2], [1, 2, 1]].iter().enumerate() {
            for packet in 0..10 {
                number += if (3..6).contains(&packet) { step[packet - 3] } else { 1 };
                let time = round as u64 * 100 + packet as u64 * 10;
                arrivals.on_packet(at(time), number as u64, 1000, RTT);
            }
            seen.push(arrivals.view().rounds_with_gaps);
        }
        arrivals.on_packet(at(500), number as u64 + 1, 1000, RTT);
        seen.push(arrivals.view().rounds_with_gaps);
        assert_eq!(seen, [0, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn absurd_numbers_do_no_harm() {
        let mut arrivals = Arrivals::default();
        for (index, number) in [0, u64::MAX >> 2, 1, u64::MAX >> 2, u64::MAX].into_iter().enumerate() {
            arrivals.on_packet(at(index as u64 * 99), number, usize::MAX >> 8, RTT);
        }
        assert!(arrivals.view().round > 0);
    }
}
