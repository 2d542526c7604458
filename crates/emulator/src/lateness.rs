//! How late packets left, compared with the model.

use posthaste_units::Duration;

/// Each power of two of nanoseconds is divided into so many steps: a quantile is exact to 1/16.
const STEPS: usize = 16;

/// Powers of two that a [`Duration`] can have.
const POWERS: usize = 64;

/// The moment at which a packet was handed to the system, less the one that the model gave for its arrival.
///
/// It is never negative: no packet leaves early. What is added between the system's call and the receiver's reading
/// is not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Packets that were measured.
    pub packets: u64,
    /// Mean.
    pub mean: Duration,
    /// 99th percentile, up to 1/16 too high.
    pub p99: Duration,
    /// Greatest.
    pub max: Duration,
}

/// Collects lateness in a fixed amount of memory (8 KiB).
#[derive(Debug, Clone)]
pub struct LatenessHistogram {
    counts: Vec<u64>,
    packets: u64,
    /// Nanoseconds.
    sum: u128,
    max: Duration,
}

impl Default for LatenessHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatenessHistogram {
    /// Nothing measured yet.
    pub fn new() -> Self {
        Self { counts: vec![0; POWERS * STEPS], packets: 0, sum: 0, max: Duration::ZERO }
    }

    /// Counts one packet.
    pub(crate) fn record(&mut self, lateness: Duration) {
        if let Some(count) = self.counts.get_mut(slot(lateness.as_nanos())) {
            *count += 1;
        }
        self.packets += 1;
        self.sum += u128::from(lateness.as_nanos());
        self.max = self.max.max(lateness);
    }

    /// Adds what another one has collected.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.packets += other.packets;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Mean and quantiles.
    pub fn summary(&self) -> Lateness {
        let mean = self.sum.checked_div(u128::from(self.packets)).unwrap_or(0);
        Lateness {
            packets: self.packets,
            mean: Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
            p99: self.quantile(99, 100),
            max: self.max,
        }
    }

    /// The least bound below which a share of `part / whole` lies.
    fn quantile(&self, part: u64, whole: u64) -> Duration {
        let wanted = (self.packets * part).div_ceil(whole);
        let mut seen = 0;
        for (slot, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return Duration::from_nanos(upper_bound(slot)).min(self.max);
            }
        }
        self.max
    }
}

/// Values below [`STEPS`] have a slot each; above, the highest bits after the first choose the step.
fn slot(nanos: u64) -> usize {
    if nanos < STEPS as u64 {
        return nanos as usize;
    }
    let power = nanos.ilog2() as usize;
    let step = (nanos >> (power - STEPS.ilog2() as usize)) as usize - STEPS;
    (power - STEPS.ilog2() as usize + 1) * STEPS + step
}

/// The greatest value of a slot.
fn upper_bound(slot: usize) -> u64 {
    let (row, step) = (slot / STEPS, (slot % STEPS) as u64);
    if row == 0 {
        return step;
    }
    let shift = row as u32 - 1;
    let next = (STEPS as u128 + u128::from(step) + 1) << shift;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_slot() {
        let mut last = 0;
        for value in
            (0..2_000).chain((11..64).flat_map(|power| [(1 << power) - 1, 1 << power, 3 << (power - 1)]))
        {
            let slot = slot(value);
            assert!(slot < POWERS * STEPS);
            let bound = upper_bound(slot);
            assert!(bound >= value && bound - value <= value / STEPS as u64, "{value}: {bound}");
            last = last.max(slot);
        }
        assert!(slot(u64::MAX) < POWERS * STEPS && upper_bound(slot(u64::MAX)) == u64::MAX);
    }

    #[test]
    fn the_summary_is_that_of_the_values() {
        let mut histogram = LatenessHistogram::new();
        assert_eq!(histogram.summary(), Lateness::default());
        for micros in 1..=1_000 {
            histogram.record(Duration::from_micros(micros));
        }
        let summary = histogram.summary();
        assert_eq!((summary.packets, summary.max), (1_000, Duration::from_micros(1_000)));
        assert_eq!(summary.mean, Duration::from_nanos(500_500));
        assert!((990_000..=990_000 * 17 / 16).contains(&summary.p99.as_nanos()), "{:?}", summary.p99);

        let mut doubled = histogram.clone();
        doubled.merge(&histogram);
        assert_eq!(doubled.summary(), Lateness { packets: 2_000, ..summary });
    }
}
