//! The reports, from results made up for them.

mod data;
mod json;
mod page;
mod table;
