//! Policies of the seam `repair`: data sent again before it is known to be lost.

pub mod none;
pub mod tail;
