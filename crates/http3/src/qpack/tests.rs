use proptest::prelude::*;

use super::*;
use crate::error::Code;

fn fields(section: &[u8]) -> Result<Vec<(String, String)>, DecodeError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(decode(section, 16_384)?.iter().map(|field| (text(&field.name), text(&field.value))).collect())
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn a_literal_with_a_static_name() {
    // RFC 9204 appendix B.1.
    let section = b"\x00\x00\x51\x0b/index.html";
    assert_eq!(fields(section).unwrap(), [pair(":path", "/index.html")]);
}

#[test]
fn a_request_as_it_is_encoded() {
    // spec: rfc9204 2.1 order-kept, 2.2 order-given, 2.1.2 blocked-streams-limited, 4.5.1.2 base-not-negative
    let mut section = Vec::new();
    let mut encoder = Encoder::new(&mut section);
    encoder.field(b":method", b"GET", false);
    encoder.field(b":path", b"/", false);
    encoder.field(b"server", b"\xff\xfe", false);
    encoder.field(b"x-a", b"aaaaaaaaaaaaaaaa", false);
    // Indexed twice; a literal that Huffman coding would lengthen; one that it shortens.
    assert_eq!(section[..6], [0x00, 0x00, 0xd1, 0xc1, 0x5f, 0x4d]);
    assert_eq!(section[6..9], [2, 0xff, 0xfe]);
    assert_eq!(section.len(), 9 + 1 + 3 + 1 + 10);
    let decoded = decode(&section, 16_384).unwrap();
    assert_eq!(decoded[3].value, "aaaaaaaaaaaaaaaa");
    assert_eq!(decoded[2].value.as_ref(), b"\xff\xfe");
}

#[test]
fn a_secret_is_never_indexed_and_stays_one() {
    // spec: rfc9204 4.5.4 never-indexed-stays-literal, 4.5.4 forwarded-as-literal, 7.1.3 not-indexed-again
    // spec: rfc9204 7.1.3 n-bit-kept
    let mut section = Vec::new();
    let mut encoder = Encoder::new(&mut section);
    encoder.field(b"authorization", b"", true);
    encoder.field(b"x-secret", b"a", true);
    let decoded = decode(&section, 16_384).unwrap();
    assert!(decoded.iter().all(|field| field.is_sensitive));
    assert_eq!(decoded.len(), 2);
}

#[test]
fn a_section_that_needs_a_dynamic_table_is_refused() {
    // spec: rfc9204 2.1.2 too-many-blocked-closes, 2.2.1 insert-count-too-small-closes
    // spec: rfc9204 2.2.3 evicted-reference-closes, 4.5.1.1 impossible-insert-count-closes
    // spec: rfc9204 4.5.1.2 negative-base-refused
    let sections: [&[u8]; 7] = [
        b"\x02\x00\x80",     // An insert count.
        b"\x00\x80",         // A negative base.
        b"\x00\x00\x80",     // Indexed, dynamic.
        b"\x00\x00\x10",     // Indexed, behind the base.
        b"\x00\x00\x40\x00", // A dynamic name.
        b"\x00\x00\x60\x00", // A dynamic name, sensitive.
        b"\x00\x00\x00\x00", // A dynamic name behind the base.
    ];
    for section in sections {
        let Err(DecodeError::Invalid(error)) = decode(section, 16_384) else { panic!("{section:?}") };
        assert_eq!(error.code, Code::QPACK_DECOMPRESSION_FAILED);
    }
}

#[test]
fn what_is_not_whole_or_not_there_is_refused() {
    // spec: rfc9204 3.1 static-index-closes
    let sections: [&[u8]; 10] = [
        b"",
        b"\x00",
        b"\xff",
        b"\x00\x00\xff\x24",         // Static index 99.
        b"\x00\x00\x5f\x54\x00",     // Static name 99.
        b"\x00\x00\x51",             // No value.
        b"\x00\x00\x51\x02a",        // A value that is too short.
        b"\x00\x00\x23abc",          // No value behind a literal name.
        b"\x00\x00\x51\x82\xff\xff", // Huffman padding of two bytes.
        b"\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ];
    for section in sections {
        let Err(DecodeError::Invalid(error)) = decode(section, 16_384) else { panic!("{section:?}") };
        assert_eq!(error.code, Code::QPACK_DECOMPRESSION_FAILED);
    }
    assert_eq!(fields(b"\x00\x00\xff\x23").unwrap(), [pair("x-frame-options", "sameorigin")], "index 98");
}

#[test]
fn a_section_counts_as_the_rfc_says() {
    // `:path: /` is 5 + 1 + 32 bytes.
    assert!(decode(b"\x00\x00\xc1", 38).is_ok());
    assert_eq!(decode(b"\x00\x00\xc1", 37), Err(DecodeError::TooLarge));
    let many = [b"\x00\x00".as_slice(), &[0xc1; 10_000]].concat();
    assert_eq!(decode(&many, 16_384), Err(DecodeError::TooLarge));
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        section in prop::collection::vec(
            (prop::sample::select(vec!["a", "cookie", ":status", "x-something-longer"]), prop::collection::vec(any::<u8>(), 0..60), any::<bool>()),
            0..10,
        ),
    ) {
        let mut encoded = Vec::new();
        let mut encoder = Encoder::new(&mut encoded);
        for (name, value, is_sensitive) in &section {
            encoder.field(name.as_bytes(), value, *is_sensitive);
        }
        let decoded: Vec<_> = decode(&encoded, 1 << 20)
            .unwrap()
            .into_iter()
            .map(|field| (field.name.to_vec(), field.value.to_vec(), field.is_sensitive))
            .collect();
        let section: Vec<_> = section.into_iter().map(|(name, value, is_sensitive)| (name.as_bytes().to_vec(), value, is_sensitive)).collect();
        prop_assert_eq!(decoded, section);
    }

    #[test]
    fn nonsense_is_refused_or_small(section in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(fields) = decode(&section, 4096) {
            let size: usize = fields.iter().map(|field| field.name.len() + field.value.len() + 32).sum();
            prop_assert!(size <= 4096);
        }
    }
}
