//! When to acknowledge.

pub mod standard;
