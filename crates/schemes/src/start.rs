//! Policies of the seam `start`: what a new path may send first.

pub mod careful;
pub mod history;
pub mod initial;
pub mod jump;
pub mod measured;
mod observed;
