//! What a direction is like.

use posthaste_units::{ByteCount, Duration, Time};

use crate::aggregation::Aggregation;
use crate::correlation::MAX_CORRELATION;
use crate::handover::Handover;
use crate::jitter::Jitter;
use crate::loss::GilbertElliott;
use crate::loss_periods::LossPeriods;
use crate::pauses::Pauses;
use crate::queue::Discipline;
use crate::radio_frames::RadioFrames;
use crate::rate::RateModel;

/// The bytes that one direction may hold, waiting and under way, unless told otherwise: 1 Gbit/s for 500 ms.
pub const DEFAULT_CAPACITY: ByteCount = ByteCount::new(64 << 20);

/// One direction of a link. The default is a perfect wire: no delay, no loss, infinitely fast.
#[derive(Debug, Clone, PartialEq)]
pub struct PathConfig {
    /// Propagation delay of every packet, the mean where there is jitter; default zero.
    pub delay: Duration,
    /// How the delay varies; default not at all.
    pub jitter: Option<Jitter>,
    /// Probability in `0..=1` that a packet is lost, independently of all others; default 0.
    pub loss: f64,
    /// Losses in bursts, in addition to `loss`; default none.
    pub burst_loss: Option<GilbertElliott>,
    /// Losses in bursts that last a time, in addition to the others; default none.
    pub loss_periods: Option<LossPeriods>,
    /// Which packets are delivered late, so that later ones overtake them; default none.
    pub reordering: Reordering,
    /// Probability in `0..=1` that a packet arrives twice; default 0. The copy is intact and on time even where
    /// the original is corrupted or held back.
    pub duplication: f64,
    /// Probability in `0..=1` that one uniformly drawn bit of a packet is flipped; default 0.
    pub corruption: f64,
    /// When nothing gets through; default never.
    pub outage: Option<Outage>,
    /// The slowest element and its queue; default none (infinitely fast).
    pub bottleneck: Option<Bottleneck>,
    /// Where in a recorded rate, and in the rhythm of handovers, the path's clock begins; default zero. A recording
    /// is repeated, so any time will do.
    pub start: Duration,
    /// How packets leave the bottleneck together; default one by one.
    pub aggregation: Option<Aggregation>,
    /// How a radio link frames what leaves the bottleneck; default not at all.
    pub frames: Option<RadioFrames>,
    /// Routes that change at fixed times; default one route.
    pub handover: Option<Handover>,
    /// The receiver takes packets in at multiples of this time only, as one that is woken for a batch; default zero: at
    /// once.
    pub batch: Duration,
    /// The receiver does other things in between, and takes nothing in meanwhile; default never.
    pub pauses: Option<Pauses>,
    /// Bytes that are added to every packet's length where the bottleneck charges it to the rate and the queue,
    /// for callers whose packets lack the headers below them; default zero. 28 stands for IPv4 and UDP.
    pub header: ByteCount,
    /// Bytes that the direction may hold at once, waiting and under way; more are dropped and counted. It bounds
    /// the memory that a sender can fill where no bottleneck does. Default [`DEFAULT_CAPACITY`].
    pub capacity: ByteCount,
}

/// A time in which the medium loses every packet that leaves the bottleneck: the queue goes on being served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When it begins, on the path's clock.
    pub start: Duration,
    /// How long it lasts.
    pub length: Duration,
}

impl Outage {
    /// True if nothing gets through at `now`.
    pub fn covers(&self, now: Time) -> bool {
        let elapsed = now.since(Time::ZERO);
        elapsed >= self.start && elapsed < self.start + self.length
    }
}

/// Which packets are held back, to be overtaken.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reordering {
    /// Probability in `0..=1` that a packet is held back.
    pub probability: f64,
    /// How much a packet's fate resembles that of the one before, in `0..=`[`MAX_CORRELATION`]: the weight of the
    /// draw before in an AR(1) sequence of uniform draws, which is what Linux' netem means by the word. Unlike
    /// netem, which then holds back too few (1.8 % for 10 % with 25 % correlation), the draws are set against
    /// that quantile of theirs which keeps `probability`. Default 0.
    pub correlation: f64,
    /// How much longer than the others it takes. Packets sent within this span overtake it; on a path with
    /// larger gaps nothing is reordered.
    pub extra_delay: Duration,
}

/// A link that takes time to send a packet, and the queue in front of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Bottleneck {
    /// How fast it is.
    pub rate: RateModel,
    /// Bytes that may wait, not counting the packet in transmission. A packet that finds nothing waiting and
    /// nothing in transmission is always taken.
    pub queue: ByteCount,
    /// What the queue does about senders that fill it; default drop-tail.
    pub discipline: Discipline,
}

impl Bottleneck {
    /// A drop-tail queue of `queue` bytes in front of `rate`.
    pub fn new(rate: impl Into<RateModel>, queue: ByteCount) -> Self {
        Self { rate: rate.into(), queue, discipline: Discipline::default() }
    }
}

impl Default for PathConfig {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: None,
            loss: 0.0,
            burst_loss: None,
            loss_periods: None,
            reordering: Reordering::default(),
            duplication: 0.0,
            corruption: 0.0,
            outage: None,
            bottleneck: None,
            start: Duration::ZERO,
            aggregation: None,
            frames: None,
            handover: None,
            batch: Duration::ZERO,
            pauses: None,
            header: ByteCount::ZERO,
            capacity: DEFAULT_CAPACITY,
        }
    }
}

/// A value that no path can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(&'static str);

impl ConfigError {
    /// `message` begins with what is wrong: "loss: ...".
    pub(crate) const fn new(message: &'static str) -> Self {
        Self(message)
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for ConfigError {}

/// Refuses what is not a probability; NaN is in no range, so it is refused too.
pub(crate) fn check_probability(value: f64, message: &'static str) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(ConfigError(message)) }
}

impl PathConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// Names the first value out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_probability(self.loss, "loss: a probability from 0 to 1 is needed")?;
        check_probability(self.duplication, "duplication: a probability from 0 to 1 is needed")?;
        check_probability(self.corruption, "corruption: a probability from 0 to 1 is needed")?;
        self.reordering.validate()?;
        if let Some(burst_loss) = &self.burst_loss {
            burst_loss.validate()?;
        }
        if let Some(periods) = &self.loss_periods {
            periods.validate()?;
        }
        if let Some(aggregation) = &self.aggregation {
            aggregation.validate()?;
        }
        if let Some(frames) = &self.frames {
            frames.validate()?;
        }
        if let Some(handover) = &self.handover {
            handover.validate()?;
        }
        if let Some(pauses) = &self.pauses {
            pauses.validate()?;
        }
        if let Some(bottleneck) = &self.bottleneck {
            bottleneck.rate.validate()?;
            bottleneck.discipline.validate()?;
        }
        Ok(())
    }

    /// The share of packets that the medium loses in the long run; what queues drop comes on top.
    pub fn mean_loss(&self) -> f64 {
        let bursts = self.burst_loss.map_or(0.0, |burst_loss| burst_loss.mean_loss());
        let periods = self.loss_periods.map_or(0.0, |periods| periods.share);
        1.0 - (1.0 - self.loss) * (1.0 - bursts) * (1.0 - periods)
    }
}

impl Reordering {
    fn validate(&self) -> Result<(), ConfigError> {
        check_probability(self.probability, "reordering: a probability from 0 to 1 is needed")?;
        if !(0.0..=MAX_CORRELATION).contains(&self.correlation) {
            return Err(ConfigError("reordering: a correlation from 0 to 0.95 is needed"));
        }
        if self.probability > 0.0 && self.extra_delay.is_zero() {
            return Err(ConfigError("reordering: an extra delay above zero is needed"));
        }
        Ok(())
    }
}
