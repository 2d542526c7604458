//! Quantities shared by all Posthaste crates: integer time, byte counts, rates, and a seeded generator; and what
//! counts as one client.
//!
//! Units are types. A [`Time`] is a point on a clock that the caller reads; below the endpoint it is always an argument.
//! Arithmetic saturates, so absurd values from a peer cannot make it wrap or panic.

mod network;
mod quantity;
mod rng;
mod text;
mod time;

pub use network::client_network;
pub use quantity::{ByteCount, ParseQuantityError, Rate};
pub use rng::{FrozenRng, Rng};
pub use time::{Duration, Time};

/// The examples of the package's README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
