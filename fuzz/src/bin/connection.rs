//! A connection whose peer does as the input says: frames in sealed packets, datagrams, time, the application's doings.
//! No panic, no endless talk, no clock that stands still; in the end the connection is forgotten and no timer is left.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../crates/transport/tests/support/mod.rs"]
mod support;

fuzz_target!(|input: &[u8]| support::fuzzed::run(input));
