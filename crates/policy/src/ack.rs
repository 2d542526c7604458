//! When to acknowledge.

pub mod frequency;
pub mod standard;
