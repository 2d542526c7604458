//! How many connections are worth it, found out while they bring something: no connections, no clock.
//!
//! What a further connection brings depends on who sends (a group that counts as one flow gains nothing by members, plain
//! connections gain a flow's share each), on what the path loses, and on how much is left, of which the client knows only
//! the last. So it tries, and keeps to this rule:
//!
//! 1. It begins with one connection. A period is [`PERIOD_ROUNDS`] round trips and at least [`LEAST_PERIOD`]; the rate is
//!    what all connections bring in a period. The first period of each number of connections is slow start's, and does
//!    not count.
//! 2. After a period that counts, the number is doubled if what is left takes more than [`WORTH_PERIODS`] periods at
//!    that rate, and if the last doubling raised the rate by [`GAIN`] at least. Once it did not, the number stays.
//! 3. There are no more than the object has parts of 256 KiB, than the server coordinates, and than [`MOST`].
//! 4. What earlier downloads from the server over the same network have found ([`super::gains`]) is not tried again:
//!    it begins with the largest number whose doublings have each gained, and would for an object of this size; where the
//!    next one gained nothing, the search is over.

use std::time::Duration;

/// Most connections that are tried: what a group of ours takes.
pub(super) const MOST: usize = 8;

/// A period is so many round trips,
const PERIOD_ROUNDS: u32 = 4;

/// and at least so long: less says nothing about a rate.
const LEAST_PERIOD: Duration = Duration::from_millis(100);

/// More connections need so many periods' worth of data: two go by before they have earned their handshakes.
const WORTH_PERIODS: u64 = 4;

/// Twice as many connections must bring 1.3 times as much: less may be chance.
const GAIN: (u64, u64) = (13, 10);

/// Numbers of connections, ascending, and the bytes a second that each has brought.
pub(super) type Rates = Vec<(usize, u64)>;

/// What is known at a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Time since the first response began.
    pub(super) elapsed: Duration,
    /// Bytes that have arrived.
    pub(super) arrived: u64,
    /// Bytes that are still to arrive.
    pub(super) left: u64,
    /// The first connection's smoothed round-trip time.
    pub(super) round_trip: Duration,
}

/// The search for the number of connections.
#[derive(Debug)]
pub(super) struct Auto {
    connections: usize,
    most: usize,
    /// When the period began, and what had arrived by then.
    began: Duration,
    arrived: u64,
    /// The period counts.
    counts: bool,
    /// What the numbers have brought so far, this time or before.
    rates: Rates,
    /// They have changed since [`Auto::take_news`].
    has_news: bool,
    is_over: bool,
}

/// The time after which rates are compared.
fn period(round_trip: Duration) -> Duration {
    (round_trip * PERIOD_ROUNDS).max(LEAST_PERIOD)
}

/// Whether a doubling has raised the rate enough.
fn has_gained(before: u64, rate: u64) -> bool {
    let (gain, of) = GAIN;
    rate.saturating_mul(of) >= before.saturating_mul(gain)
}

impl Auto {
    /// Begins with one connection, or with as many as earlier downloads found worth it for so many bytes; there may be
    /// `most`.
    pub(super) fn new(most: usize, known: &[(usize, u64)], length: u64, round_trip: Duration) -> Self {
        let most = most.min(MOST);
        let (mut connections, mut is_over) = (1, false);
        for pair in known.windows(2) {
            let [(_, before), (number, rate)] = pair else { break };
            let bytes = u128::from(*before) * period(round_trip).as_micros() / 1_000_000;
            let is_worth_it = u128::from(length) > bytes.saturating_mul(WORTH_PERIODS.into());
            is_over = !has_gained(*before, *rate) || !is_worth_it;
            if is_over {
                break;
            }
            connections = (*number).min(most);
        }
        let rates = known.iter().copied().take_while(|(number, _)| *number < connections).collect();
        Self {
            connections,
            most,
            began: Duration::ZERO,
            arrived: 0,
            counts: false,
            rates,
            has_news: false,
            is_over,
        }
    }

    /// How many connections there are to be.
    pub(super) fn connections(&self) -> usize {
        self.connections
    }

    /// What the numbers have brought, if that has changed since it was last taken.
    pub(super) fn take_news(&mut self) -> Option<&[(usize, u64)]> {
        std::mem::take(&mut self.has_news).then_some(self.rates.as_slice())
    }

    /// How many connections there are to be from now on; `None` while that does not change.
    pub(super) fn on_progress(&mut self, progress: &Progress) -> Option<usize> {
        let period = period(progress.round_trip);
        let elapsed = progress.elapsed.saturating_sub(self.began);
        if self.is_over || elapsed < period {
            return None;
        }
        let bytes = progress.arrived - self.arrived;
        (self.began, self.arrived) = (progress.elapsed, progress.arrived);
        if !std::mem::replace(&mut self.counts, true) {
            return None;
        }
        let rate =
            u64::try_from(u128::from(bytes) * 1_000_000 / elapsed.as_micros().max(1)).unwrap_or(u64::MAX);
        let has_gained = self.rates.last().is_none_or(|(_, before)| has_gained(*before, rate));
        self.rates.push((self.connections, rate));
        self.has_news = true;
        let is_worth_it = progress.left > bytes.saturating_mul(WORTH_PERIODS);
        let next = (self.connections * 2).min(self.most);
        if !has_gained || !is_worth_it || next == self.connections {
            // What is left only shrinks, and what gained nothing now would be taken for a gain by chance later.
            self.is_over = true;
            return None;
        }
        (self.connections, self.counts) = (next, false);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    /// An object of `length` bytes over a path of `round_trip`, where so many connections bring so many bytes a second:
    /// how many there are at the end, and the seconds that it took.
    fn fetch(length: u64, round_trip: Duration, most: usize, rate: impl Fn(usize) -> u64) -> (usize, f64) {
        fetch_knowing(&mut Rates::new(), length, round_trip, most, rate)
    }

    /// The same with what was known before, and is known afterwards.
    fn fetch_knowing(
        known: &mut Rates,
        length: u64,
        round_trip: Duration,
        most: usize,
        rate: impl Fn(usize) -> u64,
    ) -> (usize, f64) {
        let mut auto = Auto::new(most, known, length, round_trip);
        let (mut connections, mut arrived) = (auto.connections(), 0);
        let step = Duration::from_millis(1);
        let mut elapsed = Duration::ZERO;
        while arrived < length {
            elapsed += step;
            arrived += (rate(connections) / 1000).max(1).min(length - arrived);
            let progress = Progress { elapsed, arrived, left: length - arrived, round_trip };
            if let Some(next) = auto.on_progress(&progress) {
                assert!(next > connections && next <= most.min(MOST));
                connections = next;
            }
            if let Some(news) = auto.take_news() {
                *known = news.to_vec();
            }
        }
        (connections, elapsed.as_secs_f64())
    }

    const RTT: Duration = Duration::from_millis(50);

    #[test]
    fn connections_that_gain_are_doubled_up_to_the_most() {
        let (connections, seconds) = fetch(10 * MB, RTT, 16, |count| 200_000 * count as u64);
        assert_eq!(connections, 8);
        // Eight from the beginning take 6.25 s, one takes 50 s.
        assert!(seconds < 8.0, "{seconds}");
        assert_eq!(fetch(10 * MB, RTT, 3, |count| 200_000 * count as u64).0, 3);
        assert_eq!(fetch(10 * MB, RTT, 1, |count| 200_000 * count as u64).0, 1);
    }

    /// Milliseconds that an object takes over 1, 2, 4 and 8 connections that are there from the start, of runs of the lab
    /// (docs/schemes/groups.md): path's round trip, bytes, times.
    const MEASURED: [(u64, u64, [u64; 4]); 18] = [
        // mquic-cubic-paper over good, average, lte
        (38, 500_000, [253, 261, 246, 250]),
        (38, 2_400_000, [1_639, 698, 462, 414]),
        (38, 10 * MB, [12_590, 4_410, 1_210, 1_080]),
        (50, 500_000, [418, 411, 357, 310]),
        (50, 2_400_000, [4_410, 1_330, 690, 580]),
        (50, 10 * MB, [24_780, 9_090, 2_800, 1_260]),
        (46, 500_000, [254, 271, 286, 268]),
        (46, 2_400_000, [594, 527, 524, 531]),
        (46, 10 * MB, [3_093, 1_578, 1_512, 1_520]),
        // mquic-cubic over good, average, lte
        (38, 500_000, [366, 399, 442, 466]),
        (38, 2_400_000, [4_545, 4_844, 5_226, 3_918]),
        (38, 10 * MB, [23_710, 24_700, 24_770, 19_080]),
        (50, 500_000, [1_343, 1_585, 1_756, 831]),
        (50, 2_400_000, [10_650, 11_010, 9_850, 6_390]),
        (50, 10 * MB, [46_900, 48_470, 43_490, 27_450]),
        (46, 500_000, [348, 348, 335, 315]),
        (46, 2_400_000, [587, 676, 741, 622]),
        (46, 10 * MB, [2_857, 3_044, 2_815, 2_927]),
    ];

    #[test]
    fn the_search_costs_little_where_nothing_is_gained_and_finds_most_of_what_is() {
        for (round_trip, length, times) in MEASURED {
            let rate = |count: usize| length * 1000 / times[count.ilog2() as usize];
            let most = usize::try_from(length / (256 * 1024)).unwrap();
            let most = 1 << most.clamp(1, MOST).ilog2();
            let (_, seconds) = fetch(length, Duration::from_millis(round_trip), most, rate);
            let one = times[0] as f64 / 1000.0;
            let best =
                times.iter().take(1 + most.ilog2() as usize).min().map_or(0.0, |best| *best as f64 / 1000.0);
            assert!(seconds <= one * 1.07, "{seconds} s, over one {one} s");
            assert!(seconds <= best * 2.2, "{seconds} s, at best {best} s");
        }
    }

    #[test]
    fn one_attempt_shows_that_a_group_that_is_one_flow_gains_nothing() {
        let (connections, seconds) = fetch(10 * MB, RTT, 8, |_| 200_000);
        assert_eq!(connections, 2);
        assert!((49.9..=50.1).contains(&seconds), "{seconds}");
    }

    #[test]
    fn the_search_ends_where_the_path_is_full() {
        // A path of 1 MB/s, and a sender of 300 kB/s.
        let (connections, _) = fetch(50 * MB, RTT, 8, |count| (300_000 * count as u64).min(MB));
        assert_eq!(connections, 8, "four bring 1.67 times what two do; eight bring nothing more, and stay");
        assert_eq!(fetch(50 * MB, RTT, 8, |count| (700_000 * count as u64).min(MB)).0, 4);
        assert_eq!(fetch(50 * MB, RTT, 8, |_| MB).0, 2);
    }

    #[test]
    fn what_is_nearly_here_gets_no_further_connections() {
        assert_eq!(fetch(MB, RTT, 8, |_| MB).0, 1, "a second, five periods");
        assert_eq!(fetch(10 * MB, Duration::from_millis(600), 8, |_| MB).0, 1, "four periods of 2.4 s");
        assert_eq!(fetch(0, RTT, 8, |_| MB).0, 1);
    }

    #[test]
    fn absurd_figures_do_no_harm() {
        let mut auto = Auto::new(usize::MAX, &[], u64::MAX, Duration::ZERO);
        let progress =
            |elapsed, arrived, left| Progress { elapsed, arrived, left, round_trip: Duration::ZERO };
        assert_eq!(auto.on_progress(&progress(Duration::ZERO, 0, u64::MAX)), None);
        assert_eq!(auto.on_progress(&progress(LEAST_PERIOD, 0, u64::MAX)), None);
        assert_eq!(auto.on_progress(&progress(LEAST_PERIOD * 2, u64::MAX, 0)), None);
        assert_eq!(auto.on_progress(&progress(Duration::MAX, u64::MAX, u64::MAX)), None);
        let absurd = [(1, 0), (7, u64::MAX), (usize::MAX, u64::MAX)];
        assert_eq!(Auto::new(usize::MAX, &absurd, u64::MAX, Duration::from_secs(60)).connections(), 7);
        assert_eq!(Auto::new(0, &absurd, 0, Duration::ZERO).connections(), 1);
    }

    #[test]
    fn a_later_download_begins_with_what_was_worth_it() {
        let mut known = Rates::new();
        let path = |count| 200_000 * count as u64;
        let (_, searched) = fetch_knowing(&mut known, 10 * MB, RTT, 8, path);
        assert_eq!(known.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 4, 8]);
        let (connections, seconds) = fetch_knowing(&mut known, 10 * MB, RTT, 8, path);
        assert!(connections == 8 && seconds < 6.3 && searched > 7.0, "{connections}, {seconds}, {searched}");
        // The size decides, too: 200 kB/s and four periods of 200 ms are 160 kB.
        assert_eq!(Auto::new(8, &known, 150_000, RTT).connections(), 1);
        assert_eq!(Auto::new(8, &known, 200_000, RTT).connections(), 2);
        assert_eq!(Auto::new(8, &known, 500_000, RTT).connections(), 4);
        assert_eq!(Auto::new(3, &known, 10 * MB, RTT).connections(), 3);
    }

    #[test]
    fn what_gained_nothing_is_not_tried_again_and_what_ceases_to_gain_is_dropped() {
        let mut known = Rates::new();
        assert_eq!(fetch_knowing(&mut known, 10 * MB, RTT, 8, |_| 200_000).0, 2);
        assert_eq!(fetch_knowing(&mut known, 10 * MB, RTT, 8, |_| 200_000).0, 1);
        // Four gained, and the path has become one that they fill.
        let mut known = vec![(1, 200_000), (2, 400_000), (4, 800_000)];
        assert_eq!(fetch_knowing(&mut known, 10 * MB, RTT, 8, |_| 250_000).0, 4);
        assert_eq!(known, [(1, 200_000), (2, 400_000), (4, 250_000)]);
        assert_eq!(fetch_knowing(&mut known, 10 * MB, RTT, 8, |_| 250_000).0, 2);
    }
}
