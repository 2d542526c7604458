//! The quantities that every Posthaste crate speaks: integer time, bytes and rates, and a seeded generator.
//!
//! Units live in types. A [`Time`] is a point on a clock that somebody else reads; below the endpoint it is
//! always an argument. Arithmetic saturates: a peer that sends absurd values cannot make it wrap or panic.

mod quantity;
mod rng;
mod text;
mod time;

pub use quantity::{ByteCount, ParseQuantityError, Rate};
pub use rng::Rng;
pub use time::{Duration, Time};

/// The examples of the package's README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
