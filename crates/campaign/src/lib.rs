//! What campaigns of measurements have in common: many runs of several contestants, some of which do not count.
//!
//! - [`order`]: rounds in which every contestant has a run, and the seeds of the rounds;
//! - [`journal`]: finished runs in a file, so that an interrupted campaign continues;
//! - [`quota`]: runs that are made again because they were void, within a bound;
//! - [`identity`]: digests that tell builds of a program and texts of its files apart.

pub mod identity;
pub mod journal;
pub mod order;
pub mod quota;

/// The example of the package's README is a test, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
