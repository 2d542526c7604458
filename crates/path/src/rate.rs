//! How fast a bottleneck is, and its clockwork: when a packet that begins its transmission has left.

mod opportunities;
pub(crate) mod segments;

use std::sync::Arc;

use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};

use crate::config::ConfigError;
use crate::trace::{OpportunityTrace, RateTrace, Trace};

use opportunities::Opportunities;
use segments::{Constant, Cyclic, Redrawn, Segmented};

/// How long a drawn rate holds unless told otherwise.
pub const DEFAULT_RATE_INTERVAL: Duration = Duration::from_millis(100);

/// The shortest time that a drawn rate may hold.
const MIN_RATE_INTERVAL: Duration = Duration::from_millis(1);

/// How fast a bottleneck is.
#[derive(Debug, Clone, PartialEq)]
pub enum RateModel {
    /// Always the same, above zero.
    Constant(Rate),
    /// A new draw from a normal distribution every interval.
    Normal(NormalRate),
    /// Opportunities to send 1500 bytes, at recorded times.
    Opportunities(Arc<OpportunityTrace>),
    /// Recorded rates.
    Steps(Arc<RateTrace>),
}

/// A rate that is drawn anew every interval, counted from the clock's epoch. The draws depend on the path's seed
/// and the interval's number alone, so that every sender meets the same rates at the same times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormalRate {
    /// The mean, above zero.
    pub mean: Rate,
    /// The standard deviation, at most half the mean. Draws outside `0..2 x mean` are repeated: the mean is kept
    /// exactly, and the deviation falls short by 0.05 % where it is a quarter of the mean, by 1.3 % at a third
    /// and by 12 % at a half.
    pub deviation: Rate,
    /// How long each draw holds, at least 1 ms; usually [`DEFAULT_RATE_INTERVAL`].
    pub interval: Duration,
}

impl From<Rate> for RateModel {
    fn from(rate: Rate) -> Self {
        Self::Constant(rate)
    }
}

impl From<Trace> for RateModel {
    fn from(trace: Trace) -> Self {
        match trace {
            Trace::Opportunities(trace) => Self::Opportunities(Arc::new(trace)),
            Trace::Steps(trace) => Self::Steps(Arc::new(trace)),
        }
    }
}

impl RateModel {
    /// The rate in the long run.
    pub fn mean(&self) -> Rate {
        match self {
            Self::Constant(rate) => *rate,
            Self::Normal(normal) => normal.mean,
            Self::Opportunities(trace) => trace.mean_rate(),
            Self::Steps(trace) => trace.mean_rate(),
        }
    }

    /// True if the rate is a recording.
    pub fn is_recorded(&self) -> bool {
        matches!(self, Self::Opportunities(_) | Self::Steps(_))
    }

    /// When an idle link that may begin with `length` bytes at `from` has carried them, where a recording begins at
    /// `start` ([`crate::PathConfig::start`]). A drawn rate counts as its mean.
    pub fn carried(&self, from: Time, length: ByteCount, start: Duration) -> Time {
        let mut service = match self {
            Self::Constant(rate) => Service::Constant(Segmented::new(Constant(*rate))),
            Self::Normal(normal) => Service::Constant(Segmented::new(Constant(normal.mean))),
            Self::Steps(trace) => Service::Steps(Segmented::new(Cyclic::new(Arc::clone(trace), start))),
            Self::Opportunities(trace) => {
                Service::Opportunities(Opportunities::new(Arc::clone(trace), start))
            }
        };
        let start = service.start_after_idle(from);
        service.serve(start, length)
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.mean().as_bytes_per_second() == 0 {
            return Err(ConfigError::new("bottleneck: a rate above zero is needed"));
        }
        if let Self::Normal(normal) = self {
            if normal.deviation > normal.mean.mul_ratio(1, 2) {
                return Err(ConfigError::new(
                    "bottleneck: the rate's deviation may be half its mean at most",
                ));
            }
            if normal.interval < MIN_RATE_INTERVAL {
                return Err(ConfigError::new("bottleneck: the rate's interval must be 1 ms at least"));
            }
        }
        Ok(())
    }
}

/// The clockwork of a bottleneck. Packets are served one after the other; a packet's service begins at
/// [`Service::start_after_idle`] or [`Service::start_after`] and ends at what [`Service::serve`] returns.
#[derive(Debug)]
pub(crate) enum Service {
    Constant(Segmented<Constant>),
    Redrawn(Box<Segmented<Redrawn>>),
    Steps(Segmented<Cyclic>),
    Opportunities(Opportunities),
}

impl Service {
    /// `start`: where in a recording the clock begins.
    pub(crate) fn new(model: &RateModel, start: Duration, rng: &mut Rng) -> Self {
        match model {
            RateModel::Constant(rate) => Self::Constant(Segmented::new(Constant(*rate))),
            RateModel::Normal(normal) => Self::Redrawn(Box::new(Segmented::new(Redrawn::new(*normal, rng)))),
            RateModel::Steps(trace) => Self::Steps(Segmented::new(Cyclic::new(Arc::clone(trace), start))),
            RateModel::Opportunities(trace) => {
                Self::Opportunities(Opportunities::new(Arc::clone(trace), start))
            }
        }
    }

    /// When a packet that comes at `now` to an idle link begins its transmission. What the link could have sent
    /// before is lost.
    pub(crate) fn start_after_idle(&mut self, now: Time) -> Time {
        match self {
            Self::Constant(segmented) => segmented.forget_credit(),
            Self::Redrawn(segmented) => segmented.forget_credit(),
            Self::Steps(segmented) => segmented.forget_credit(),
            Self::Opportunities(opportunities) => return opportunities.start_after_idle(now),
        }
        now
    }

    /// When the next packet begins its transmission, after one that has left at `departure`.
    pub(crate) fn start_after(&mut self, departure: Time) -> Time {
        match self {
            Self::Opportunities(opportunities) => opportunities.start(),
            Self::Constant(_) | Self::Redrawn(_) | Self::Steps(_) => departure,
        }
    }

    /// When a packet of `length`, whose transmission begins at `start`, has left.
    pub(crate) fn serve(&mut self, start: Time, length: ByteCount) -> Time {
        match self {
            Self::Constant(segmented) => segmented.serve(start, length),
            Self::Redrawn(segmented) => segmented.serve(start, length),
            Self::Steps(segmented) => segmented.serve(start, length),
            Self::Opportunities(opportunities) => opportunities.serve(length),
        }
    }
}

#[cfg(test)]
mod tests;
