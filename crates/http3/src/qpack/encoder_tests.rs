use super::super::encode::Encoder as Lines;
use super::*;

fn settings(qpack_max_table_capacity: u64, qpack_blocked_streams: u64) -> Settings {
    Settings { qpack_max_table_capacity, qpack_blocked_streams, ..Settings::default() }
}

/// An encoder whose stream is open, towards a peer with these settings.
fn encoder(capacity: u64, blocked: u64) -> Encoder {
    let mut encoder = Encoder::default();
    encoder.on_settings(&settings(capacity, blocked));
    encoder.set_writable(true);
    encoder
}

/// A section with these fields: prefix and lines.
fn section(encoder: &mut Encoder, stream: u64, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut buffer = Vec::new();
    let mut lines = Lines::dynamic_lines(&mut buffer, encoder.begin(stream));
    for (name, value) in fields {
        lines.field(name.as_bytes(), value.as_bytes(), false);
    }
    let end = lines.finish();
    [&buffer[end..], &buffer[..end]].concat()
}

const COOKIE: (&str, &str) = ("cookie", "0000000000000000000000000000000");

/// The section with the cookie, without the table.
fn literal() -> Vec<u8> {
    let mut buffer = Vec::new();
    Lines::new(&mut buffer).field(COOKIE.0.as_bytes(), COOKIE.1.as_bytes(), false);
    buffer
}

#[test]
fn a_section_brings_its_entries_and_later_ones_refer_to_them() {
    let mut encoder = encoder(220, 1);
    assert_eq!(encoder.take_instructions(), b"\x3f\xbd\x01", "the capacity");
    assert_eq!(section(&mut encoder, 0, &[COOKIE]), b"\x02\x80\x10", "required 1, base 0");
    assert_eq!(encoder.take_instructions()[..2], [0xc5, 0x80 | 0x14], "inserted with the static name");
    // Not acknowledged: another stream does not wait for it, nor insert it again.
    assert_eq!(section(&mut encoder, 4, &[COOKIE]), literal());
    assert!(!encoder.has_instructions());
    encoder.on_decoder_stream(b"\x80").unwrap();
    assert_eq!(section(&mut encoder, 4, &[COOKIE, (":path", "/")]), b"\x02\x00\x80\xc1");
    // Something else is inserted behind it.
    let fields = [COOKIE, ("user-agent", "x")];
    assert_eq!(section(&mut encoder, 8, &fields), b"\x03\x80\x80\x10");
    encoder.on_decoder_stream(b"\x88").unwrap();
    assert_eq!(section(&mut encoder, 12, &fields), b"\x03\x00\x81\x80");
}

#[test]
fn a_client_refers_to_what_is_not_acknowledged() {
    // spec: rfc9204 2.1.2 blocked-streams-limited
    let mut encoder = Encoder { shares: true, ..encoder(4096, 2) };
    let fields = [COOKIE, ("user-agent", "x")];
    assert_eq!(section(&mut encoder, 0, &fields), b"\x03\x81\x10\x11");
    assert_eq!(section(&mut encoder, 4, &fields), b"\x03\x00\x81\x80");
    assert_eq!(section(&mut encoder, 8, &fields)[..2], [0, 0], "two may wait");
    encoder.on_decoder_stream(b"\x84").unwrap();
    assert_eq!(section(&mut encoder, 8, &fields), b"\x03\x00\x81\x80");
}

#[test]
fn a_field_without_a_known_name_is_inserted_when_it_repeats() {
    let mut encoder = encoder(220, 1);
    encoder.take_instructions();
    let field = [("x-custom", "\u{1}")];
    let first = section(&mut encoder, 0, &field);
    assert_eq!((first.len(), encoder.has_instructions()), (2 + 7 + 2, false));
    assert_eq!(section(&mut encoder, 4, &field), b"\x02\x80\x10");
    assert_eq!(encoder.take_instructions()[..1], [0x40 | 0x20 | 6], "with its name");
    for never in [(":path", "/a"), ("etag", "b")] {
        for stream in [8, 12] {
            section(&mut encoder, stream, &[never]);
        }
        assert!(!encoder.has_instructions(), "{never:?}");
    }
}

#[test]
fn a_peer_that_lets_nothing_wait_gets_acknowledged_references_only() {
    // spec: rfc9204 2.1.2 blocked-streams-limited
    let mut strict = encoder(220, 0);
    strict.take_instructions();
    assert_eq!(section(&mut strict, 0, &[COOKIE]), literal());
    assert!(!strict.has_instructions(), "it may never be sent again");
    assert_eq!(section(&mut strict, 4, &[COOKIE]), literal());
    assert!(strict.has_instructions(), "but it was");
    strict.on_decoder_stream(b"\x01").unwrap();
    assert_eq!(section(&mut strict, 8, &[COOKIE]), b"\x02\x00\x80");
    // One stream may wait, and does; that may do so again, another must not.
    let mut one = encoder(4096, 1);
    assert_eq!(section(&mut one, 0, &[COOKIE]), b"\x02\x80\x10");
    let agent = [("user-agent", "x")];
    assert_eq!(section(&mut one, 4, &agent)[..2], [0, 0]);
    assert_eq!(section(&mut one, 0, &agent), b"\x03\x80\x10");
}

#[test]
fn only_what_nobody_needs_is_evicted() {
    // spec: rfc9204 2.1.1 evictable-only, 2.1.1 no-room-no-insertion, 3.2.2 evictable-only
    let mut encoder = encoder(130, 100);
    let field = |letter: &'static str| [("user-agent", letter)];
    // 43 bytes each: three fit.
    for (stream, letter) in [(0, "a"), (4, "b"), (8, "c")] {
        assert_eq!(section(&mut encoder, stream, &field(letter)).len(), 3);
    }
    let literal = section(&mut encoder, 12, &field("d"));
    assert_eq!(literal[..2], [0, 0], "nothing is acknowledged");
    encoder.on_decoder_stream(b"\x03").unwrap();
    assert_eq!(section(&mut encoder, 12, &field("d")), literal, "arrived, but its section may not be");
    encoder.on_decoder_stream(b"\x84").unwrap();
    assert_eq!(section(&mut encoder, 12, &field("d")), literal, "the oldest is still needed");
    encoder.on_decoder_stream(b"\x80").unwrap();
    // What the section itself refers to is needed, too.
    let both = [("user-agent", "a"), ("user-agent", "d")];
    assert_eq!(section(&mut encoder, 16, &both)[..3], [0x02, 0x02, 0x82]);
    encoder.on_decoder_stream(b"\x90").unwrap();
    assert_eq!(section(&mut encoder, 12, &field("d")), b"\x05\x80\x10");
    assert_eq!((encoder.table.get(0), encoder.table.inserted()), (None, 4));
    // A cancelled section needs nothing.
    encoder.on_decoder_stream(b"\x48").unwrap();
    assert_eq!(encoder.unacknowledged.len(), 1);
}

#[test]
fn insert_counts_wrap() {
    // Two entries, so that counts wrap at 4.
    let mut encoder = encoder(64, 1);
    for count in 1..10_u64 {
        let value = count.to_string();
        let section = section(&mut encoder, 0, &[("accept", &value)]);
        assert_eq!(section, [(count % 4 + 1) as u8, 0x80, 0x10]);
        encoder.on_decoder_stream(b"\x80").unwrap();
    }
}

#[test]
fn nothing_is_inserted_where_it_cannot_be() {
    // spec: rfc9204 3.2.3 within-maximum, 3.2.3 zero-no-insertion, 3.2.3 zero-no-instruction
    // spec: rfc9204 4.3.1 capacity-within-limit, 4.3.1 reduction-evicts-evictable
    for capacity in [0, 31] {
        let none = encoder(capacity, 100);
        assert!(!none.has_instructions() && !none.is_useful(), "{capacity}");
    }
    let mut large = encoder(1 << 40, 100);
    assert_eq!(large.take_instructions(), b"\x3f\xe1\x1f", "4096 and no more");
    let long = "x".repeat(5000);
    let fields = [("cookie", long.as_str())];
    assert_eq!(section(&mut large, 0, &fields)[..2], [0, 0]);
    large.set_writable(false);
    assert_eq!(section(&mut large, 0, &[COOKIE]), literal());
    large.set_writable(true);
    assert_eq!(section(&mut large, 0, &[COOKIE])[1..], *b"\x80\x10");
    // Before the settings.
    let mut early = Encoder::default();
    early.set_writable(true);
    assert!(!early.is_useful());
    assert_eq!(section(&mut early, 0, &[COOKIE]), literal());
}

#[test]
fn what_waits_to_be_acknowledged_has_a_bound() {
    let mut encoder = encoder(220, 1000);
    let mut stream = 0;
    while encoder.is_useful() {
        section(&mut encoder, stream, &[COOKIE]);
        encoder.known = 1;
        stream += 4;
        assert!(stream <= 4 * MAX_UNACKNOWLEDGED_SECTIONS as u64);
    }
    encoder.on_decoder_stream(b"\x80").unwrap();
    assert!(encoder.is_useful());
}

#[test]
fn wrong_acknowledgements_are_refused() {
    // spec: rfc9204 4.4.1 needless-acknowledgment-closes, 4.4.3 wrong-increment-closes
    let fresh = || {
        let mut encoder = encoder(220, 1);
        section(&mut encoder, 0, &[COOKIE]);
        encoder
    };
    let streams: [&[u8]; 8] = [
        b"\x00",
        b"\x02",
        b"\x01\x01",
        b"\x81",
        b"\x80\x80",
        b"\x40\x80",
        b"\x3f\xff\xff\xff\xff\xff\xff\xff\xff\x3f",
        b"\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ];
    for stream in streams {
        for size in [1, 100] {
            let mut encoder = fresh();
            let all: Result<(), Error> =
                stream.chunks(size).try_for_each(|chunk| encoder.on_decoder_stream(chunk));
            assert_eq!(all.unwrap_err().code, Code::QPACK_DECODER_STREAM_ERROR, "{stream:?}");
        }
    }
    // A cancelled stream that never was is none of that.
    fresh().on_decoder_stream(b"\x40\x7f\x80\x01\x01").unwrap();
}
