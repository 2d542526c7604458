//! Policies of the seam `congestion`: how much may be in flight, and how fast it may leave.
//!
//! Controllers that react to loss differ only in how they avoid congestion; [`LossBased`] is the rest, once:
//! recovery periods, undo, slow start, limits and pacing. Each of them is an [`Avoidance`] in a file of its own.
//! The two BBRs have a model of the path instead, and no slow start of another's.

pub mod bbr1;
pub mod bbr3;
pub mod cubic;
pub mod guaranteed;
mod loss_based;
pub mod mobile;
mod model;
pub mod newreno;
mod pacing;
mod prr;
mod recovery;

pub use loss_based::{Avoidance, Growth, LossBased, Shrinking};

#[cfg(test)]
mod properties;

#[cfg(test)]
mod share_tests;
