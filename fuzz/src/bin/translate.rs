//! A request over HTTP/3 that is forwarded over HTTP/1.1: what the upstream gets is one whole request that says the same, or
//! a fragment at most, and nothing follows it.

#![no_main]

use libfuzzer_sys::fuzz_target;

mod common {
    /// Of the recorder, which is not used here.
    pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
}

#[allow(dead_code, reason = "its parser is used")]
#[path = "../../../crates/proxy/tests/recorder.rs"]
mod recorder;

#[path = "../../../crates/proxy/tests/support/translated.rs"]
mod translated;

fuzz_target!(|input: &[u8]| translated::run(input));
