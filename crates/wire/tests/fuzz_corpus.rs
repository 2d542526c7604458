//! The committed seeds of the fuzz targets decode without an error: else they are no use as seeds.

use std::fs;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use posthaste_wire::{Side, TransportParameters, frame, packet};

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let seeds: Vec<_> = files
        .map(|file| {
            let path = file.unwrap().path();
            (path.display().to_string(), fs::read(path).unwrap())
        })
        .collect();
    assert!(!seeds.is_empty());
    seeds
}

#[test]
fn frames() {
    for (name, payload) in seeds("frames") {
        for frame in frame::Iter::new(Bytes::from(payload)) {
            assert!(frame.is_ok(), "{name}: {frame:?}");
        }
    }
}

#[test]
fn packets() {
    for (name, seed) in seeds("packet") {
        for packet in packet::split(BytesMut::from(&seed[1..]), usize::from(seed[0])) {
            assert!(packet.is_ok(), "{name}: {packet:?}");
        }
    }
}

#[test]
fn transport_parameters() {
    for (name, seed) in seeds("transport_parameters") {
        let from = if seed[0] & 1 == 0 { Side::Client } else { Side::Server };
        let parameters = TransportParameters::parse(&seed[1..], from);
        assert!(parameters.is_ok(), "{name}: {parameters:?}");
    }
}
