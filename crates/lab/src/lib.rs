//! The lab: the real transport over emulated paths in virtual time, beside rival stacks and a model of TCP.
//!
//! Layers, each using only those above it in this list:
//! - [`peer`], [`packet`]: the seam that every stack implements; [`peers`]: the stacks;
//! - [`apps`]: what the ends do with streams;
//! - [`world`]: one run on one virtual clock;
//! - [`spec`], [`mod@run`], [`result`]: a run described, done, and what it has shown; [`mod@limit`]: what it could not beat;
//! - [`experiment_result`]: many runs; [`statistics`], [`metric`]: numbers from them (crate `posthaste-report`);
//! - [`adverse`]: drawn paths that do all that a path can do wrong, and whether transfers survive them;
//! - [`experiment`]: what is varied, from a file; [`sweep`]: all of its runs, in parallel;
//! - [`reproduction`]: every published figure beside ours, by rules from files.
//!
//! Without the feature `experiments` (on by default) only single runs of Posthaste and the TCP model remain.

#![cfg_attr(
    feature = "experiments",
    expect(
        clippy::duplicate_mod,
        reason = "one adapter is compiled for two crates: see `peers/rival/adapter.rs`"
    )
)]

#[cfg(feature = "experiments")]
pub mod adverse;
pub mod apps;
#[cfg(feature = "experiments")]
pub mod experiment;
pub mod limit;
mod measure;
mod network;
pub mod peers;
#[cfg(feature = "experiments")]
pub mod reproduction;
pub mod run;
pub mod spec;
#[cfg(feature = "experiments")]
pub mod sweep;
pub mod tls;
mod trace_hash;
pub mod world;

pub use posthaste_lab_peer::{packet, peer};
pub use posthaste_report::{experiment_result, metric, result, statistics};
