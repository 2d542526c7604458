//! A field section, and the encoder's and decoder's way back: no panic, no more fields than the limit permits, and what
//! was decoded survives being written again. The first byte picks the limit.

#![no_main]

use libfuzzer_sys::fuzz_target;
use posthaste_http3::qpack::{self, Encoder};

/// What a field counts for beside its text (RFC 9114 section 4.2.2).
const OVERHEAD: usize = 32;

fuzz_target!(|input: &[u8]| {
    let Some((choice, section)) = input.split_first() else { return };
    let limit = 64 * u64::from(*choice);
    let Ok(fields) = qpack::decode(section, limit) else { return };
    let size: usize = fields.iter().map(|field| field.name.len() + field.value.len() + OVERHEAD).sum();
    assert!(size as u64 <= limit, "{size} bytes of fields, {limit} are permitted");
    let mut again = Vec::new();
    let mut encoder = Encoder::new(&mut again);
    for field in &fields {
        encoder.field(&field.name, &field.value, field.is_sensitive);
    }
    assert_eq!(qpack::decode(&again, limit).expect("it was just written"), fields);
});
