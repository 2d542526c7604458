//! What campaigns of measurements have in common: many runs of several contestants, some of which do not count.
//!
//! - [`order`]: rounds in which every contestant has a run, and the seeds of the rounds;
//! - [`journal`]: finished runs in a file, so that an interrupted campaign continues;
//! - [`keyed`]: the same where a run can be made again bit for bit, found by all that it follows from;
//! - [`emulated`], [`raced`]: what `posthaste emulate` and `posthaste race` report of their runs;
//! - [`quota`]: runs that are made again because they were void, within a bound;
//! - [`identity`]: digests that tell builds of a program and texts of its files apart;
//! - [`provenance`]: what is said of runs that were made with others.

pub mod emulated;
pub mod identity;
pub mod journal;
pub mod keyed;
mod lines;
pub mod order;
pub mod provenance;
pub mod quota;
pub mod raced;

/// The example of the package's README is a test, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
