//! What people see of experiments.

pub mod html;
pub mod json;
pub mod table;
