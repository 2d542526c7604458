//! Results of network experiments, and what people and programs see of them: a table for the terminal, JSON, one HTML
//! page. All three say the same, depend on nothing but the results, and hold nothing of wall-clock time.
//!
//! - [`result`], [`counters`]: one run; [`experiment_result`]: many runs;
//! - [`statistics`], [`metric`]: numbers from them;
//! - [`table`], [`json`], [`html`], [`markdown`]: their presentation.

pub mod counters;
mod exchanges;
pub mod experiment_result;
pub mod html;
pub mod json;
mod json_lines;
mod layout;
pub mod markdown;
pub mod metric;
pub mod result;
mod rivals;
pub mod statistics;
pub mod table;
