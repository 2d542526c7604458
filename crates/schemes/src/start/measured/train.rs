//! Trains of packets that left together: how far apart their acknowledgements come tells the bottleneck's rate.

use posthaste_policy::sample::{PacketSample, SentSample};
use posthaste_units::{ByteCount, Duration, Rate, Time};

/// A pause between two packets after which the next begins a train of its own.
const PAUSE: Duration = Duration::from_micros(250);
/// Most packets of a train: more tell no more.
const MOST_PACKETS: usize = 64;
/// Most trains that are kept; what leaves after them is not measured.
const MOST_TRAINS: usize = 16;
/// Packets between the first and the last acknowledgement of a train that is believed.
const LEAST_PACKETS: u64 = 6;
/// Least time that a train takes to arrive: clocks and schedulers are no finer.
pub(super) const LEAST_SPREAD: Duration = Duration::from_micros(500);
/// Bytes between two acknowledgements of which they tell a rate: a datagram, more or less.
const LEAST_GLIMPSE: ByteCount = ByteCount::new(1_000);
/// How many times the next longest pause between two acknowledgements the longest is, if the medium's delay has stepped in
/// between. What arrives in lumps has more than one such pause, or nothing between them.
const STEP: u64 = 4;
/// A pause that is no gap between lumps of a radio's.
const LEAST_STALL: Duration = Duration::from_millis(8);
/// Packets of a train up to which a step is looked for: in a longer one it is a small part, and a lump can be a large one.
const MOST_STEPPED: usize = 16;

/// What trains have shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shown {
    /// The rate at which they arrived.
    pub(super) rate: Rate,
    /// True if they arrived faster than can be measured: the rate is that or more.
    pub(super) is_least: bool,
}

/// What trains show as soon as two of their packets are acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glimpses {
    /// The fastest, lower bounds counted.
    pub(super) fastest: Option<Shown>,
    /// The first that is no lower bound.
    pub(super) first: Option<Shown>,
}

/// Packets that left together.
#[derive(Debug, Clone)]
struct Train {
    first: u64,
    /// Bytes of each packet and of those before it, by number from `first` on.
    bytes: Vec<ByteCount>,
    began: Time,
    ended: Time,
    /// Arrival and highest number of the first acknowledgement and of the latest.
    acked: Option<[(Time, u64); 2]>,
    /// The two longest pauses between acknowledgements, the longer one first, with the bytes that ended it.
    pauses: [(Duration, ByteCount); 2],
    /// The latest acknowledgement was shared with a later train.
    is_late: bool,
}

impl Train {
    fn last(&self) -> u64 {
        self.first + (self.bytes.len() as u64).saturating_sub(1)
    }

    /// Another packet leaves; numbers between it and the last have never been sent.
    fn push(&mut self, sent: &SentSample) {
        let total = self.bytes.last().copied().unwrap_or_default();
        let missing =
            usize::try_from(sent.number.saturating_sub(self.first)).unwrap_or(MOST_PACKETS).min(MOST_PACKETS);
        self.bytes.resize(missing.max(self.bytes.len()), total);
        self.bytes.push(total + sent.bytes);
        self.ended = sent.now;
    }

    /// The packet `number` is acknowledged; true if that tells the rate. If the acknowledgement `is_shared` with a later
    /// train, this one had arrived before it: what is known without it is better.
    fn on_ack(&mut self, now: Time, number: u64, is_shared: bool) -> bool {
        let is_known = self.shown().is_some();
        match self.acked {
            None => self.acked = Some([(now, number); 2]),
            Some([first, latest]) if number > latest.1 && !(is_shared && is_known) => {
                self.note_pause(now.since(latest.0), self.bytes_to(number) - self.bytes_to(latest.1));
                self.acked = Some([first, (now, number)]);
                self.is_late = is_shared;
            }
            Some(_) => return false,
        }
        self.shown().is_some()
    }

    /// An acknowledgement brings `bytes` after a pause.
    fn note_pause(&mut self, pause: Duration, bytes: ByteCount) {
        let [longest, next] = self.pauses;
        if pause > longest.0 {
            self.pauses = [(pause, bytes), longest];
        } else if pause > next.0 {
            self.pauses[1] = (pause, bytes);
        }
    }

    /// Time and bytes between the first acknowledgement and the latest, without a step of the medium's delay.
    fn spread(&self, [(began, first), (ended, last)]: [(Time, u64); 2]) -> (Duration, ByteCount) {
        let (spread, bytes) = (ended.since(began), self.bytes_to(last) - self.bytes_to(first));
        let [(pause, brought), (next, _)] = self.pauses;
        let rest = spread.saturating_sub(pause);
        let has_step = self.bytes.len() <= MOST_STEPPED && pause > next * STEP && rest >= LEAST_SPREAD;
        if has_step { (rest, bytes - brought) } else { (spread, bytes) }
    }

    /// True if one pause is most of the `spread`: the receiver has done other things, or the radio has. What came before
    /// and after it came faster.
    fn has_stalled(&self, spread: Duration) -> bool {
        let [(pause, _), (next, _)] = self.pauses;
        pause >= LEAST_STALL && pause > next * STEP && pause * 2 > spread && pause <= spread
    }

    /// The rate between two acknowledgements, however few packets that are. Of small packets it is a lower bound: the time
    /// between their acknowledgements is of something else.
    fn glimpse(&self) -> Option<Shown> {
        let [(began, first), (ended, last)] = self.acked?;
        let (spread, bytes) = (ended.since(began), self.bytes_to(last) - self.bytes_to(first));
        let is_least = spread < LEAST_SPREAD || bytes < LEAST_GLIMPSE;
        let rate = Rate::from_transfer(bytes, spread.max(LEAST_SPREAD));
        (last > first).then_some(Shown { rate, is_least })
    }

    fn bytes_to(&self, number: u64) -> ByteCount {
        let index = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.bytes.get(index).copied().unwrap_or_default()
    }

    /// The rate at which the train arrived, if enough of it has been acknowledged.
    ///
    /// By number, so that a packet lost within the train does not look like a slower link.
    fn shown(&self) -> Option<Shown> {
        let acked @ [(_, first), (_, last)] = self.acked?;
        let (spread, bytes) = self.spread(acked);
        let is_long_enough = spread >= LEAST_SPREAD || last + 1 >= self.last();
        // Packets that left as slowly as they arrived tell the sender's rate.
        let is_spread_by_link = self.ended.since(self.began) * 2 <= spread;
        if last < first + LEAST_PACKETS || spread.is_zero() || !is_long_enough || !is_spread_by_link {
            return None;
        }
        let rate = Rate::from_transfer(bytes, spread.max(LEAST_SPREAD));
        Some(Shown { rate, is_least: spread < LEAST_SPREAD || self.is_late || self.has_stalled(spread) })
    }
}

/// Packets from which on a flight is worth measuring: less is an answer too short to tell anything, and the next may.
pub(super) const LEAST_FLIGHT: u64 = 16;

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
            sent.now.since(train.ended) <= PAUSE && train.bytes.len() < MOST_PACKETS && train.acked.is_none()
        });
        if let Some(train) = latest {
            train.push(sent);
        } else if self.trains.len() < MOST_TRAINS {
            self.trains.push(Train {
                first: sent.number,
                bytes: vec![sent.bytes],
                began: sent.now,
                ended: sent.now,
                acked: None,
                pauses: Default::default(),
                is_late: false,
            });
        }
    }

    /// Packets are acknowledged; true if that completes or continues a measurement. One acknowledgement can end a train
    /// and begin the next.
    pub(super) fn on_ack(&mut self, now: Time, packets: &[PacketSample]) -> bool {
        self.is_sealed |= self.packets >= LEAST_FLIGHT;
        let mut has_news = false;
        let newest = packets.last().map_or(0, |packet| packet.number);
        for train in &mut self.trains {
            let (first, last) = (train.first, train.last());
            let mut numbers = packets.iter().rev().map(|packet| packet.number);
            if let Some(number) = numbers.find(|number| (first..=last).contains(number)) {
                has_news |= train.on_ack(now, number, newest > last);
            }
        }
        has_news
    }

    /// What the trains show that have been acknowledged at two times, however short they are.
    pub(super) fn glimpses(&self) -> Glimpses {
        let all = self.trains.iter().filter_map(Train::glimpse);
        Glimpses { first: all.clone().find(|shown| !shown.is_least), fastest: all.max() }
    }

    /// True once a flight worth measuring is acknowledged to its end, which `number` is. A smaller one is forgotten.
    pub(super) fn is_complete(&mut self, number: u64) -> bool {
        let is_acked = self.trains.last().is_none_or(|train| number >= train.last());
        if is_acked && !self.is_sealed {
            *self = Self::default();
        }
        is_acked && self.is_sealed
    }

    /// The median of what the trains have shown.
    pub(super) fn shown(&self) -> Option<Shown> {
        let mut all: Vec<Shown> = self.trains.iter().filter_map(Train::shown).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }
}
