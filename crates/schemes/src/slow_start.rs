//! Policies of the seam `slow_start`: how the window grows until the path's capacity is found.

pub mod classic;
pub(crate) mod delay;
pub mod hybrid;
pub mod hystart_pp;
