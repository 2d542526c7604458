//! How much may be in flight, and how fast it may leave.
//!
//! Controllers that react to loss differ only in how they avoid congestion; [`LossBased`] is the rest, once:
//! recovery periods, undo, slow start, limits and pacing. Each of them is an [`Avoidance`] in a file of its own.

pub mod cubic;
mod loss_based;
pub mod newreno;
mod pacing;
mod recovery;

pub use loss_based::{Avoidance, Growth, LossBased, PathLimits};

#[cfg(test)]
mod properties;

#[cfg(test)]
mod share_tests;
