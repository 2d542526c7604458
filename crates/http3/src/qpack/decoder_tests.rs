use super::*;

/// A decoder that has announced the table of RFC 9204 appendix B.
fn decoder() -> Decoder {
    Decoder::new(220, 1)
}

fn text(fields: &[Field]) -> Vec<(&str, &str)> {
    fields
        .iter()
        .map(|field| {
            let text = |bytes: &'_ [u8]| std::str::from_utf8(bytes).unwrap().to_owned().leak() as &str;
            (text(&field.name), text(&field.value))
        })
        .collect()
}

fn decoded(decoder: &mut Decoder, stream: u64, section: &[u8]) -> Vec<(String, String)> {
    let fields = decoder.decode(stream, section, 4096).unwrap().expect("a section that does not wait");
    text(&fields).into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn code(error: DecodeError) -> Code {
    let DecodeError::Invalid(error) = error else { panic!("{error:?}") };
    error.code
}

const CAPACITY_220: &[u8] = b"\x3f\xbd\x01";
const AUTHORITY: &[u8] = b"\xc0\x0fwww.example.com";
const PATH: &[u8] = b"\xc1\x0c/sample/path";

#[test]
fn the_examples_of_the_rfc() {
    // RFC 9204 appendix B, in its order, however the encoder stream is cut.
    // spec: rfc9204 2.2.2.1 sections-acknowledged, 3.2 duplicates-are-no-error
    for size in [1, 3, 100] {
        let mut decoder = decoder();
        let feed = |decoder: &mut Decoder, parts: &[&[u8]]| {
            for chunk in parts.concat().chunks(size) {
                decoder.on_encoder_stream(chunk).unwrap();
            }
        };
        let b1 = decoded(&mut decoder, 0, b"\x00\x00\x51\x0b/index.html");
        assert_eq!(b1, pairs(&[(":path", "/index.html")]));
        feed(&mut decoder, &[CAPACITY_220, AUTHORITY, PATH]);
        assert_eq!(decoder.table.inserted(), 2);
        let b2 = decoded(&mut decoder, 4, b"\x03\x81\x10\x11");
        assert_eq!(b2, pairs(&[(":authority", "www.example.com"), (":path", "/sample/path")]));
        assert_eq!(decoder.take_instructions(false), b"\x84");
        feed(&mut decoder, &[b"\x4acustom-key\x0ccustom-value"]);
        assert_eq!(decoder.take_instructions(false), b"\x01");
        feed(&mut decoder, &[b"\x02"]);
        let b4 = decoded(&mut decoder, 8, b"\x05\x00\x80\xc1\x81");
        let authority = (":authority", "www.example.com");
        assert_eq!(b4, pairs(&[authority, (":path", "/"), ("custom-key", "custom-value")]));
        decoder.take_instructions(false);
        decoder.cancel(8);
        assert_eq!(decoder.take_instructions(false), b"\x48");
        feed(&mut decoder, &[b"\x81\x0dcustom-value2"]);
        assert_eq!(decoder.table.get(0), None, "evicted");
        assert_eq!(decoder.table.get(1).unwrap().value, "/sample/path");
        assert_eq!(decoder.table.get(3).unwrap().value, "www.example.com");
        assert_eq!(decoder.table.get(4).unwrap().value, "custom-value2");
    }
}

#[test]
fn a_section_waits_for_its_entries() {
    // spec: rfc9204 2.1.2 too-many-blocked-closes
    let mut decoder = decoder();
    let section = b"\x03\x81\x10\x11";
    let cx = Context::from_waker(Waker::noop());
    assert_eq!(decoder.decode(4, section, 4096), Ok(None));
    assert!(decoder.poll_unblocked(4, &cx).0.is_pending());
    assert_eq!(decoder.decode(4, section, 4096), Ok(None), "the stream that waits counts once");
    assert_eq!(code(decoder.decode(8, section, 4096).unwrap_err()), Code::QPACK_DECOMPRESSION_FAILED);
    assert!(decoder.on_encoder_stream(&[CAPACITY_220, AUTHORITY].concat()).unwrap().is_empty());
    assert_eq!(decoder.decode(4, section, 4096), Ok(None), "one of two entries");
    assert_eq!(decoder.take_instructions(false), b"\x01", "and the encoder hears of it");
    assert_eq!(decoder.on_encoder_stream(PATH).unwrap().len(), 1, "what waits is woken");
    assert!(decoder.poll_unblocked(4, &cx).0.is_ready());
    // It need not have looked for its place to be free.
    assert_eq!(decoder.decode(8, b"\x04\x80\x80", 4096), Ok(None));
    decoder.cancel(8);
    assert_eq!(decoded(&mut decoder, 4, section).len(), 2);
    assert_eq!(decoder.take_instructions(false), b"\x48\x84", "which acknowledges the entry, too");
    // A place is free again when a stream is given up.
    let later = b"\x04\x80\x80";
    assert_eq!(decoder.decode(8, later, 4096), Ok(None));
    decoder.cancel(8);
    assert_eq!(decoder.decode(12, later, 4096), Ok(None));
    assert_eq!(decoder.take_instructions(false), b"\x48");
    assert!(decoder.poll_unblocked(8, &cx).0.is_ready());
}

#[test]
fn every_kind_of_reference_is_read() {
    let mut decoder = decoder();
    decoder.on_encoder_stream(&[CAPACITY_220, AUTHORITY, PATH].concat()).unwrap();
    // Required Insert Count 2. Base 1: before it, behind it, names before and behind it, plain and never indexed.
    let section = b"\x03\x80\x80\x10\x40\x01a\x60\x01b\x00\x01c\x08\x01d";
    let fields = decoder.decode(0, section, 4096).unwrap().unwrap();
    let (authority, path) = ((":authority", "www.example.com"), (":path", "/sample/path"));
    let named = [(":authority", "a"), (":authority", "b"), (":path", "c"), (":path", "d")];
    assert_eq!(text(&fields), [&[authority, path], &named[..]].concat());
    let sensitive: Vec<bool> = fields.iter().map(|field| field.is_sensitive).collect();
    assert_eq!(sensitive, [false, false, false, true, false, true]);
    // A base beyond all that is required.
    assert_eq!(decoded(&mut decoder, 0, b"\x02\x01\x81"), pairs(&[(":authority", "www.example.com")]));
}

#[test]
fn references_to_nothing_are_refused() {
    // spec: rfc9204 2.2.1 insert-count-too-small-closes, 2.2.3 evicted-reference-closes
    // spec: rfc9204 4.5.1.1 impossible-insert-count-closes, 4.5.1.2 negative-base-refused
    let mut decoder = decoder();
    let insertions = [CAPACITY_220, AUTHORITY, PATH, b"\x4acustom-key\x0ccustom-value", b"\x02"].concat();
    decoder.on_encoder_stream(&insertions).unwrap();
    decoder.on_encoder_stream(b"\x81\x0dcustom-value2").unwrap();
    let sections: [(&str, &[u8]); 9] = [
        ("an entry beyond the insert count", b"\x03\x00\x10"),
        ("an entry beyond the insert count, by its name", b"\x03\x00\x00\x00"),
        ("an evicted entry", b"\x06\x00\x84"),
        ("an entry before the first", b"\x06\x00\x85"),
        ("an index that overflows", b"\x06\x00\x1f\xff\xff\xff\xff\xff\xff\xff\xff\x3f"),
        ("a negative base", b"\x03\x82\x10"),
        ("an insert count beyond the range", b"\x0d\x00"),
        ("an insert count that is not whole", b"\xff"),
        ("no base", b"\x03"),
    ];
    for (what, section) in sections {
        let error = decoder.decode(0, section, 4096).unwrap_err();
        assert_eq!(code(error), Code::QPACK_DECOMPRESSION_FAILED, "{what}");
    }
    assert_eq!(decoder.take_instructions(false), b"\x05", "none of them was acknowledged");
    let mut without = Decoder::new(0, 0);
    assert_eq!(code(without.decode(0, b"\x02\x00\x80", 99).unwrap_err()), Code::QPACK_DECOMPRESSION_FAILED);
    without.cancel(0);
    assert!(without.take_instructions(false).is_empty());
    let large = decoder.decode(0, b"\x06\x00\x80\x80\x80", 100);
    assert_eq!(large, Err(DecodeError::TooLarge), "one byte stands for many");
}

#[test]
fn wrong_instructions_are_refused() {
    // spec: rfc9204 2.2.3 evicted-in-instruction-closes, 3.1 static-index-in-instruction-closes
    // spec: rfc9204 3.2.2 entry-too-large-closes, 4.3.1 capacity-beyond-closes
    let instructions: [(&str, &[&[u8]]); 13] = [
        ("a capacity beyond the maximum", &[b"\x3f\xbe\x01"]),
        ("an integer that is too large", &[b"\x3f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]),
        ("an insertion without capacity", &[AUTHORITY]),
        ("a duplicate of nothing", &[CAPACITY_220, b"\x00"]),
        ("a duplicate of what was evicted", &[CAPACITY_220, AUTHORITY, PATH, b"\x3f\x25\x01"]),
        ("a name of nothing", &[CAPACITY_220, AUTHORITY, b"\x81\x00"]),
        ("a static name beyond the table", &[CAPACITY_220, b"\xff\x24\x00"]),
        ("an entry that does not fit", &[b"\x3f\x13", AUTHORITY]),
        ("a name and a value that do not fit", &[b"\x3f\x13", b"\x4acustom-key\x0bcustom-valu"]),
        ("a string that will not fit", &[CAPACITY_220, b"\xc0\x7f\x3e"]),
        ("a coded one that will not fit", &[CAPACITY_220, b"\xc0\xff\xc8\x04"]),
        ("a wrong Huffman code", &[CAPACITY_220, b"\xc0\x82\xff\xff"]),
        ("a name in a wrong Huffman code", &[CAPACITY_220, b"\x62\xff\xff\x00"]),
    ];
    for (what, parts) in instructions {
        for size in [1, 100] {
            let all = parts.concat();
            let mut decoder = decoder();
            let result: Result<Vec<_>, Error> =
                all.chunks(size).map(|chunk| decoder.on_encoder_stream(chunk)).collect();
            let error = result.map(|_| ()).and_then(|()| decoder.on_encoder_stream(b"\x01").map(|_| ()));
            assert_eq!(error.map_err(|error| error.code), Err(Code::QPACK_ENCODER_STREAM_ERROR), "{what}");
        }
    }
}

#[test]
fn a_name_outlives_its_entry() {
    let mut decoder = Decoder::new(64, 0);
    decoder.on_encoder_stream(b"\x3f\x21\x41a\x041234\x80\x1fxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx").unwrap();
    assert_eq!(decoder.table.get(0), None, "evicted for the entry that has its name");
    assert_eq!(decoder.table.get(1).unwrap().name, "a");
}

#[test]
fn what_is_kept_has_bounds() {
    let mut decoder = Decoder::new(4096, 100);
    decoder.on_encoder_stream(b"\x3f\xe1\x1f").unwrap();
    // An endless string, of which no more arrives than its length says.
    decoder.on_encoder_stream(b"\xc0\x7f\xd3\x1e").unwrap();
    for _ in 0..4000 {
        decoder.on_encoder_stream(b"x").unwrap();
    }
    assert!(decoder.partial.len() < 4100);
    // A peer that takes no acknowledgements gets no further sections.
    decoder.on_encoder_stream(&[b'x'; 50]).unwrap();
    decoder.on_encoder_stream(b"\xc0\x01a").unwrap();
    let mut sections = 0_u64;
    let error = loop {
        match decoder.decode(sections, b"\x03\x00\x80", 8192) {
            Ok(fields) => assert!(fields.is_some()),
            Err(error) => break error,
        }
        sections += 4;
    };
    assert_eq!(code(error), Code::H3_EXCESSIVE_LOAD);
    assert!(decoder.check().is_err());
    decoder.cancel(0);
    assert!(decoder.instructions.len() <= MAX_UNSENT_INSTRUCTIONS + 10);
}
