//! What the tests of several modules share.

use posthaste_units::{ByteCount, Duration, Rng, Time};

use crate::{Packet, Path, PathConfig};

/// The quantile of the normal distribution for two-sided 99 % intervals.
pub(crate) const NORMAL_99: f64 = 2.576;

/// A packet without content that knows its number and when it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) number: u64,
    pub(crate) sent: Time,
    pub(crate) length: u64,
    pub(crate) is_ecn_capable: bool,
    pub(crate) is_marked: bool,
}

impl Packet for Probe {
    fn length(&self) -> ByteCount {
        ByteCount::new(self.length)
    }

    fn flip_bit(&mut self, _: u64) {}

    fn is_ecn_capable(&self) -> bool {
        self.is_ecn_capable
    }

    fn mark_congestion_experienced(&mut self) {
        assert!(self.is_ecn_capable, "a packet that is not ECN-capable must not be marked");
        self.is_marked = true;
    }
}

pub(crate) fn probe(number: u64, sent: Time, length: u64) -> Probe {
    Probe { number, sent, length, is_ecn_capable: false, is_marked: false }
}

pub(crate) fn probe_path(config: PathConfig) -> Path<Probe> {
    Path::new(config, Rng::from_test_seed(42)).expect("a valid configuration")
}

/// Takes out what arrives before `end`, stepping from one timeout to the next.
pub(crate) fn drain_until(path: &mut Path<Probe>, end: Time) -> Vec<(Time, Probe)> {
    let mut arrived = Vec::new();
    while let Some(due) = path.next_timeout().filter(|&due| due < end) {
        arrived.extend(std::iter::from_fn(|| path.poll(due)).map(|packet| (due, packet)));
    }
    arrived
}

/// Sends `count` packets of `length` bytes, one every `gap`, and waits for all that arrive.
pub(crate) fn run(path: &mut Path<Probe>, count: u64, length: u64, gap: Duration) -> Vec<(Time, Probe)> {
    let mut arrived = Vec::new();
    for number in 0..count {
        let now = Time::ZERO + gap * number;
        arrived.extend(drain_until(path, now));
        path.on_packet(now, probe(number, now, length));
    }
    arrived.extend(drain_until(path, Time::FAR_FUTURE));
    arrived
}

/// Mean and standard deviation.
pub(crate) fn moments(samples: &[f64]) -> (f64, f64) {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares: f64 = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum();
    (mean, (squares / (count - 1.0)).sqrt())
}

/// Mean of a sequence whose samples depend on their neighbours, and half the width of its 99 % interval: from the
/// means of 30 batches, which are long enough to be independent (Student's t with 29 degrees of freedom).
pub(crate) fn batch_mean(samples: &[f64]) -> (f64, f64) {
    let means: Vec<f64> = samples.chunks_exact(samples.len() / 30).map(|batch| moments(batch).0).collect();
    let (mean, deviation) = moments(&means[..30]);
    (mean, 2.756 * deviation / 30f64.sqrt())
}
