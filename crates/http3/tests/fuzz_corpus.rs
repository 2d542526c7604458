//! The fuzz target `http3` without a fuzzer: its seeds, and random changes of them.

#[path = "support/fuzzed.rs"]
mod fuzzed;

use std::fs;
use std::path::PathBuf;

use fuzzed::{kind, run};
use http::HeaderMap;
use posthaste_http3::qpack::Encoder;
use posthaste_http3::{Priority, Settings, encode};
use proptest::prelude::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/http3")
}

/// One record.
fn record(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a short record").to_le_bytes();
    [&[kind][..], &length, bytes].concat()
}

/// A record for the stream with this index.
fn on(kind: u8, stream: u8, parts: &[&[u8]]) -> Vec<u8> {
    record(kind, &[&[stream][..], &parts.concat()].concat())
}

/// A field section with every kind of line.
fn section() -> Vec<u8> {
    let mut section = Vec::new();
    let mut encoder = Encoder::new(&mut section);
    for (name, value, is_sensitive) in [
        ("accept", "*/*", false),
        ("x-name", "aaaa", false),
        ("cookie", "?", true),
        ("\u{1}", "\u{7f}", true),
    ] {
        encoder.field(name.as_bytes(), value.as_bytes(), is_sensitive);
    }
    section
}

/// A section that waits for instructions, and heads that refer to the peer's table.
fn tables(ends: &[u8]) -> Vec<u8> {
    let peer = Settings { qpack_max_table_capacity: 300, qpack_blocked_streams: 1, ..Settings::default() };
    // As in RFC 9204 appendix B.2.
    let waits = b"\x01\x06\x04\x82\xd1\xd7\x10\x11";
    let instructions = b"\x02\x3f\xbd\x01\xc0\x0fwww.example.com\xc1\x0c/sample/path\x02";
    [
        &[0][..],
        &on(kind::UNI, 0, &[&encode::control_stream(&peer, None)]),
        &on(kind::MESSAGE, 0, &[waits, b"\x00\x01g"]),
        &on(kind::HEAD, 1, &[&[0xf0, 0xf1, 0x32]]),
        &on(kind::UNI, 1, &[instructions]),
        &on(kind::UNI, 2, &[&[0x03, 0x01, 0x84]]),
        &on(kind::HEAD, 2, &[&[0xf0, 0xf1, 0x32]]),
        ends,
    ]
    .concat()
}

/// What the folder of seeds holds.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let request = http::Request::post("https://a.example/b?c")
        .header("cookie", "d=e")
        .header("content-length", "2")
        .header("priority", "u=1, i")
        .body(())
        .expect("a request");
    let request = encode::request(&request).expect("a whole target");
    let response = |status: u16| {
        encode::response(&http::Response::builder().status(status).header("x", "y").body(()).expect("a head"))
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("x-trailer", "f".parse().expect("a value"));
    let trailers = encode::trailers(&trailers);
    let content: &[u8] = b"\x00\x01g\x21\x00\x00\x01h";
    let control = encode::control_stream(&Settings::default(), Some(1));
    let update = |stream| encode::priority_update(stream, Priority { urgency: 0, incremental: true });
    let ends = [record(kind::MESSAGE_END, &[0]), record(kind::UNI_END, &[0])].concat();
    vec![
        ("request", [&[0][..], &on(kind::MESSAGE, 0, &[&request, content, &trailers]), &ends].concat()),
        (
            "response",
            [&[1][..], &on(kind::MESSAGE, 1, &[&response(103), &response(200), content, &trailers]), &ends]
                .concat(),
        ),
        (
            "goaway",
            [&[1][..], &on(kind::UNI, 0, &[&control, &encode::go_away(8), &encode::go_away(4)])].concat(),
        ),
        (
            "priorities",
            [
                &[0][..],
                &record(kind::REQUESTS, &[0, 0, 128]),
                &on(kind::UNI, 0, &[&control, &update(0), &update(4), &update(8)]),
                &record(kind::REQUESTS, &[0, 129]),
                &on(kind::UNI, 0, &[&update(8), b"\x0d\x01\x05\x07\x01\x00\x21\x03..."]),
            ]
            .concat(),
        ),
        (
            "streams",
            [
                &[0][..],
                &on(kind::UNI, 1, &[&[0x02, 0x20]]),
                &on(kind::UNI, 2, &[&[0x03, 0x44, 0x7f, 0x01]]),
                &on(kind::UNI, 3, &[&[0x40, 0x54]]),
                &on(kind::UNI, 3, &[&[0x40]]),
                &on(kind::UNI_END, 3, &[]),
                &on(kind::UNI_END, 1, &[]),
            ]
            .concat(),
        ),
        ("tables", tables(&ends)),
        ("section", [&[0][..], &record(kind::SECTION, &section())].concat()),
        ("split_head", {
            let (first, second) = request.split_at(7);
            [&[0][..], &on(kind::MESSAGE, 0, &[first]), &on(kind::MESSAGE, 0, &[second]), &ends].concat()
        }),
    ]
}

/// With `UPDATE_SEEDS` set, writes the seeds instead.
#[test]
fn the_committed_seeds_are_these_and_run_through() {
    for (name, seed) in seeds() {
        let path = folder().join(name);
        if std::env::var_os("UPDATE_SEEDS").is_some() {
            fs::create_dir_all(folder()).expect("a folder");
            fs::write(&path, &seed).expect("a writable file");
        }
        assert_eq!(fs::read(&path).ok().as_ref(), Some(&seed), "{name}: run with UPDATE_SEEDS=1");
        run(&seed);
    }
}

proptest! {
    #[test]
    fn changed_seeds_run_through(
        first in 0..8_usize,
        second in 0..8_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let seeds = seeds();
        let mut input = [&seeds[first].1[..], &seeds[second].1[1..]].concat();
        for (at, byte) in changes {
            let at = at.index(input.len());
            input[at] = byte;
        }
        run(&input);
    }
}
