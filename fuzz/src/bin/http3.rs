//! An HTTP/3 connection whose peer does as the input says: messages, control and QPACK streams, field sections,
//! priorities. No panic, the same however the bytes are cut, and what is accepted survives being written again.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../crates/http3/tests/support/fuzzed.rs"]
mod fuzzed;

fuzz_target!(|input: &[u8]| fuzzed::run(input));
