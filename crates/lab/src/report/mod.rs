//! What people and programs see of experiments: a table for the terminal, JSON, one HTML page. All three say the
//! same, depend on nothing but the results, and hold nothing of wall-clock time.

pub mod html;
pub mod json;
mod json_lines;
mod layout;
pub mod reproduction;
mod rivals;
pub mod table;
