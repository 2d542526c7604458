//! The lab: the real transport over emulated paths in virtual time, beside rival stacks and a model of TCP.
//!
//! Layers, each using only those above it in this list:
//! - [`peer`], [`packet`]: the seam that every stack implements; [`peers`]: the stacks;
//! - [`apps`]: what the ends do with streams;
//! - [`world`]: one run on one virtual clock;
//! - [`spec`], [`mod@run`], [`result`]: a run described, done, and what it has shown; [`mod@limit`]: what it could not beat;
//! - [`experiment_result`]: many runs; [`statistics`], [`metric`]: numbers from them; [`report`]: what people see;
//! - [`adverse`]: drawn paths that do all that a path can do wrong, and whether transfers survive them;
//! - [`experiment`]: what is varied, from a file; [`sweep`]: all of its runs, in parallel;
//! - [`reproduction`]: every published figure beside ours, by rules from files.

pub mod adverse;
pub mod apps;
pub mod experiment;
pub mod experiment_result;
pub mod limit;
mod measure;
pub mod metric;
mod network;
pub mod packet;
pub mod peer;
pub mod peers;
pub mod report;
pub mod reproduction;
pub mod result;
pub mod run;
pub mod spec;
pub mod statistics;
pub mod sweep;
pub mod tls;
mod trace_hash;
pub mod world;
