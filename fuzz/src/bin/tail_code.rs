//! The code over the end of a stream: two bytes for the length of a block, one for its recovery symbols, one whose lowest
//! bit says whether pieces and symbols are the original's or the input's. Then records of one byte for the kind, two for an
//! offset, one for a length.

#![no_main]

use libfuzzer_sys::fuzz_target;
use posthaste_tail_code::{Decoder, SYMBOL_UNIT, Shape, encode};

/// Recovery symbols that are kept, in bytes.
const ROOM: usize = 16 * SYMBOL_UNIT;

fuzz_target!(|input: &[u8]| {
    let Some(([low, high, recovery, mode], mut rest)) = input.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes([*low, *high]) % 4096);
    let Ok(shape) = Shape::new(length as u64, SYMBOL_UNIT as u64, u64::from(*recovery)) else { return };
    let is_honest = mode & 1 == 0;
    let original: Vec<u8> = (0..length).map(|at| (at * 31 + at / 251) as u8).collect();
    let symbols = encode(shape, &original).expect("a block of its length");
    let mut decoder = Decoder::new(shape);
    let mut has = vec![false; length];
    while let Some(([kind, low, high, len], after)) = rest.split_first_chunk() {
        let (at, len) = (usize::from(u16::from_le_bytes([*low, *high])), usize::from(*len) * 8);
        let forged = &after[..len.min(after.len())];
        rest = if is_honest { after } else { &after[forged.len()..] };
        if kind & 1 == 0 {
            let honest = original.get(at..(at + len).min(length)).unwrap_or_default();
            decoder.write(at, if is_honest { honest } else { forged });
            has.iter_mut().skip(at).take(if is_honest { len } else { forged.len() }).for_each(|has| *has = true);
        } else {
            let first = at % shape.recovery_count();
            let honest = symbols.chunks(SYMBOL_UNIT).nth(first).expect("within the count");
            let room = ROOM - decoder.recovery_bytes();
            decoder.add_recovery(if is_honest { first } else { at }, if is_honest { honest } else { forged }, room);
        }
        assert!(decoder.recovery_bytes() <= ROOM);
    }
    let missing = has.chunks(SYMBOL_UNIT).filter(|symbol| symbol.contains(&false)).count();
    assert_eq!(decoder.missing(), missing);
    let is_ready = decoder.is_ready();
    for range in decoder.decode() {
        assert!(!range.is_empty() && range.end <= length);
    }
    assert_eq!(decoder.missing(), if is_ready { 0 } else { missing });
    if is_honest {
        for (at, byte) in original.iter().enumerate().filter(|(at, _)| is_ready || has[*at]) {
            assert_eq!(decoder.get(at..at + 1), [*byte], "byte {at}");
        }
    }
});
