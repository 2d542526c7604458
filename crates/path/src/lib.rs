//! One emulated direction of a link: rate, queue, delay, jitter, loss, reordering, in integer time.
//!
//! A [`Path`] is sans-IO: hand it packets with [`Path::on_packet`], take them out with [`Path::poll`] once
//! [`Path::next_timeout`] has come. The caller owns the clock (virtual in the lab, real in the emulator) and the
//! seed, so that the same packets at the same times give the same output, bit for bit.
//!
//! A packet passes three stages:
//! 1. `bottleneck`: a queue in bytes (`queue`: drop-tail, `CoDel`, ECN marks) in front of a link (`rate`: constant,
//!    drawn anew every interval, or recorded in a `trace`); absent, it is infinitely fast;
//!    packets may leave it together (`aggregation`);
//! 2. `impairment`: what the medium does to it (loss, `loss` in bursts, `loss_periods` that last a time, duplication,
//!    corruption, a delay out of order with `correlation`), after it has used the bottleneck's capacity, as on a radio
//!    link, which may send in blocks (`radio_frames`);
//! 3. propagation: a delay with or without `jitter` and `handover`s, during which it waits in `flight`, and a receiver
//!    that may take it in at ticks only, or have `pauses`.
//!
//! All randomness comes from the generator handed in, a stream of its own for each impairment, so that switching one
//! on leaves the others' packets as they were. [`PathSpec`] describes both directions of a path in text.
//!
//! ```
//! use posthaste_path::{Path, PathConfig};
//! use posthaste_units::{Duration, Rng, Time};
//!
//! let config = PathConfig { delay: Duration::from_millis(20), ..PathConfig::default() };
//! let mut path = Path::new(config, Rng::from_test_seed(1))?;
//! path.on_packet(Time::ZERO, bytes::Bytes::from_static(b"hello"));
//! let due = path.next_timeout().expect("one packet is under way");
//! assert_eq!(due.as_nanos(), 20_000_000);
//! assert_eq!(path.poll(due).as_deref(), Some(&b"hello"[..]));
//! # Ok::<(), posthaste_path::ConfigError>(())
//! ```

mod aggregation;
mod alternation;
mod bottleneck;
mod config;
mod correlation;
mod distribution;
mod flight;
mod handover;
mod impairment;
mod jitter;
mod loss;
mod loss_periods;
mod packet;
mod path;
mod pauses;
#[cfg(test)]
mod property_tests;
mod queue;
mod radio_frames;
mod rate;
mod spec;
mod stats;
mod synthesis;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod theory_tests;
mod ticks;
mod trace;

pub use aggregation::Aggregation;
pub use config::{Bottleneck, ConfigError, DEFAULT_CAPACITY, Outage, PathConfig, Reordering};
pub use correlation::MAX_CORRELATION;
pub use handover::Handover;
pub use jitter::{DEFAULT_JITTER_INTERVAL, Distribution, Jitter};
pub use loss::GilbertElliott;
pub use loss_periods::LossPeriods;
pub use packet::{Packet, flip_bit_of};
pub use path::Path;
pub use pauses::Pauses;
pub use queue::{CoDel, Discipline, DropTail};
pub use radio_frames::RadioFrames;
pub use rate::{DEFAULT_RATE_INTERVAL, NormalRate, RateModel};
pub use spec::{PathSpec, QueueSize, SpecError, TraceStart, inline_traces};
pub use stats::PathStats;
pub use trace::{MAX_TRACE_LINES, OPPORTUNITY, OpportunityTrace, RateTrace, Trace, TraceError};

/// The examples of the package's README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
