//! What a new path may send first.

pub mod initial;
pub mod jump;
