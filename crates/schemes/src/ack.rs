//! Policies of the seam `ack`: when to acknowledge.

pub mod frequency;
pub mod standard;
