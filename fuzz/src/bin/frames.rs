//! A decrypted payload into frames: no panic, one error at most, and every frame survives its own encoding.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use posthaste_wire::Frame;
use posthaste_wire::frame::Iter;

fuzz_target!(|payload: &[u8]| {
    let mut frames = Iter::new(Bytes::copy_from_slice(payload));
    let mut count = 0;
    while let Some(result) = frames.next() {
        match result {
            Ok(frame) => check_round_trip(&frame),
            Err(_) => assert!(frames.next().is_none(), "something behind an error"),
        }
        count += 1;
    }
    assert!(count > 0, "a payload that is neither frames nor an error");
    assert!(count <= payload.len().max(1), "more frames than bytes");
});

fn check_round_trip(frame: &Frame) {
    let mut encoded = Vec::new();
    frame.write(&mut encoded);
    assert_eq!(encoded.len(), frame.encoded_len(), "{frame:?}");
    let mut again = Iter::new(Bytes::from(encoded));
    assert_eq!(again.next(), Some(Ok(frame.clone())));
    assert_eq!(again.next(), None);
}
