use proptest::prelude::*;

use super::*;

fn written(value: u64) -> Vec<u8> {
    let mut buffer = Vec::new();
    write(&mut buffer, value);
    buffer
}

#[test]
fn rfc_9000_appendix_a1_samples() {
    let samples: [(&[u8], u64); 5] = [
        (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
        (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
        (&[0x7b, 0xbd], 15_293),
        (&[0x25], 37),
        (&[0x40, 0x25], 37),
    ];
    for (bytes, value) in samples {
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.varint(), Ok(value));
        assert!(reader.is_empty());
        if bytes.len() == len(value) {
            assert_eq!(written(value), bytes);
        }
    }
}

#[test]
fn lengths_change_where_the_rfc_says() {
    for (value, expected) in
        [(0, 1), (63, 1), (64, 2), (16_383, 2), (16_384, 4), (1_073_741_823, 4), (1_073_741_824, 8), (MAX, 8)]
    {
        assert_eq!(len(value), expected, "{value}");
        assert_eq!(written(value).len(), expected, "{value}");
        assert_eq!(Reader::new(&written(value)).varint(), Ok(value));
    }
}

#[test]
fn two_byte_form_also_for_small_values() {
    let mut buffer = Vec::new();
    write_two_bytes(&mut buffer, 37);
    assert_eq!(buffer, [0x40, 0x25]);
}

#[test]
fn a_failed_read_consumes_nothing() {
    let mut reader = Reader::new(&[0x40]);
    assert_eq!(reader.varint(), Err(Truncated));
    assert_eq!(reader.u32(), Err(Truncated));
    assert_eq!(reader.take(2), Err(Truncated));
    assert_eq!(reader.array::<2>(), Err(Truncated));
    assert_eq!((reader.position(), reader.remaining()), (0, 1));
    let mut reader = Reader::new(&[3, 1, 2]);
    assert_eq!(reader.prefixed(), Err(Truncated));
    assert_eq!(reader.position(), 0);
}

#[test]
fn a_length_beyond_the_address_space_is_truncation() {
    let mut reader = Reader::new(&[0xff; 9]);
    assert_eq!(reader.prefixed(), Err(Truncated));
}

/// Exhaustive in the first two bytes, which decide about length and minimality; longer forms around each power of two.
#[test]
fn every_encoding_reads_as_section_16_has_it() {
    for first_two in 0..=u16::MAX {
        let [first, second] = first_two.to_be_bytes();
        let bytes = [first, second, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc];
        let length = 1_usize << (first >> 6);
        let all = bytes[..length].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.varint(), Ok(all & ((1 << (8 * length - 2)) - 1)), "{bytes:?}");
        assert_eq!(reader.position(), length, "{bytes:?}");
        for cut in 0..length {
            assert_eq!(Reader::new(&bytes[..cut]).varint(), Err(Truncated), "{bytes:?}");
        }
    }
    let around = (0..62).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    for value in (0..=0x1_0100).chain(around).chain([MAX]) {
        let bytes = written(value);
        assert_eq!(bytes.len(), len(value));
        assert_eq!(Reader::new(&bytes).varint(), Ok(value));
        // No shorter form holds it.
        assert!(bytes.len() == 1 || value >= 1 << (4 * bytes.len() - 2), "{value}");
    }
}

proptest! {
    #[test]
    fn round_trip(value in 0..=MAX, shift in 0_u32..62) {
        let value = value >> shift;
        let bytes = written(value);
        prop_assert_eq!(bytes.len(), len(value));
        prop_assert_eq!(Reader::new(&bytes).varint(), Ok(value));
        for cut in 0..bytes.len() {
            prop_assert_eq!(Reader::new(&bytes[..cut]).varint(), Err(Truncated));
        }
    }
}
