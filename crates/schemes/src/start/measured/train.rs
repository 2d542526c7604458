//! Trains of packets that left together: how far apart their acknowledgements come tells the bottleneck's rate.

use posthaste_units::{ByteCount, Duration, Rate, Time};

use crate::sample::SentSample;

/// A pause between two packets after which the next begins a train of its own.
const PAUSE: Duration = Duration::from_micros(250);
/// Most packets of a train: more tell no more.
const MOST_PACKETS: u64 = 32;
/// Most trains that are kept; what leaves after them is not measured.
const MOST_TRAINS: usize = 16;
/// Packets between the first and the last acknowledgement of a train that is believed.
const LEAST_PACKETS: u64 = 6;
/// Least time that a train takes to arrive: clocks and schedulers are no finer.
const LEAST_SPREAD: Duration = Duration::from_millis(1);

/// Packets that left together.
#[derive(Debug, Clone, Copy)]
struct Train {
    first: u64,
    last: u64,
    bytes: ByteCount,
    began: Time,
    ended: Time,
    /// Arrival and highest number of the first acknowledgement and of the latest.
    acked: Option<[(Time, u64); 2]>,
}

impl Train {
    fn packets(&self) -> u64 {
        self.last - self.first + 1
    }

    /// The rate at which the train arrived, if enough of it has been acknowledged.
    ///
    /// By number, so that a packet lost within the train does not look like a slower link.
    fn rate(&self) -> Option<Rate> {
        let [(began, first), (ended, last)] = self.acked?;
        let (packets, spread) = (last.saturating_sub(first), ended.since(began));
        let is_long_enough = spread >= LEAST_SPREAD || last + 1 >= self.last;
        // Packets that left as slowly as they arrived tell the sender's rate.
        let is_spread_by_link = self.ended.since(self.began) * 2 <= spread;
        if packets < LEAST_PACKETS || spread.is_zero() || !is_long_enough || !is_spread_by_link {
            return None;
        }
        let bytes = self.bytes.mul_ratio(packets, self.packets());
        Some(Rate::from_transfer(bytes, spread.max(LEAST_SPREAD)))
    }
}

/// Packets from which on a flight is worth measuring: less is an answer too short to tell anything, and the next may.
const LEAST_FLIGHT: u64 = 16;

/// The trains of the first flight.
#[derive(Debug, Clone, Default)]
pub(super) struct Trains {
    trains: Vec<Train>,
    packets: u64,
    /// No packet joins any more: the flight's acknowledgements are coming.
    is_sealed: bool,
}

impl Trains {
    /// A 1-RTT packet leaves.
    pub(super) fn on_sent(&mut self, sent: &SentSample) {
        if self.is_sealed {
            return;
        }
        self.packets += 1;
        let latest = self.trains.last_mut().filter(|train| {
            sent.now.since(train.ended) <= PAUSE && train.packets() < MOST_PACKETS && train.acked.is_none()
        });
        if let Some(train) = latest {
            train.last = sent.number;
            train.bytes += sent.bytes;
            train.ended = sent.now;
        } else if self.trains.len() < MOST_TRAINS {
            self.trains.push(Train {
                first: sent.number,
                last: sent.number,
                bytes: sent.bytes,
                began: sent.now,
                ended: sent.now,
                acked: None,
            });
        }
    }

    /// An acknowledgement covers packets up to `number`; true if it completes or continues a measurement.
    pub(super) fn on_ack(&mut self, now: Time, number: u64) -> bool {
        self.is_sealed |= self.packets >= LEAST_FLIGHT;
        let covers = |train: &&mut Train| (train.first..=train.last).contains(&number);
        let Some(train) = self.trains.iter_mut().find(covers) else { return false };
        match &mut train.acked {
            None => train.acked = Some([(now, number); 2]),
            Some([_, latest]) if number > latest.1 => *latest = (now, number),
            Some(_) => return false,
        }
        train.rate().is_some()
    }

    /// True once a flight worth measuring is acknowledged to its end, which `number` is. A smaller one is forgotten.
    pub(super) fn is_complete(&mut self, number: u64) -> bool {
        let is_acked = self.trains.last().is_none_or(|train| number >= train.last);
        if is_acked && !self.is_sealed {
            *self = Self::default();
        }
        is_acked && self.is_sealed
    }

    /// The median of what the trains have shown.
    pub(super) fn rate(&self) -> Option<Rate> {
        let mut rates: Vec<Rate> = self.trains.iter().filter_map(Train::rate).collect();
        rates.sort_unstable();
        rates.get(rates.len() / 2).copied()
    }
}
