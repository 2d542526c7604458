//! The fuzz target `connection` without a fuzzer: its seeds, and a few thousand random inputs.

use std::fs;
use std::path::PathBuf;

use posthaste_units::Rng;
use posthaste_wire::Frame;

use crate::frames::samples;
use crate::support::fuzzed::{kind, record, run};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/connection")
}

/// What the folder of seeds holds.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let frames = |frames: &[Frame]| {
        let mut payload = Vec::new();
        for frame in frames {
            frame.write(&mut payload);
        }
        payload
    };
    let harmless: Vec<Vec<u8>> = samples()
        .into_iter()
        .filter(|frame| !matches!(frame, Frame::Close(_) | Frame::Crypto(_)))
        .map(|frame| record(kind::SHORT, &frames(&[frame])))
        .collect();
    let time = |millis: u16| [&[kind::TIME][..], &millis.to_le_bytes()].concat();
    let exchange = record(kind::EXCHANGE, &[]);
    let application = |bytes: &[u8]| record(kind::APPLICATION, bytes);
    let all = frames(&samples());
    vec![
        ("server_frames", [&[0][..], &harmless.concat(), &time(100)].concat()),
        ("client_frames", [&[1][..], &harmless.concat(), &time(100)].concat()),
        ("all_in_one", [&[0][..], &record(kind::SHORT, &all)].concat()),
        ("initial", [&[2][..], &record(kind::INITIAL, &[1, 0, 0]), &exchange, &time(3000)].concat()),
        ("handshake", [&[2][..], &record(kind::HANDSHAKE, &[1]), &exchange].concat()),
        ("client_begins", [&[3][..], &time(1500), &exchange, &record(kind::SHORT, &[0x1e])].concat()),
        ("noise", [&[0][..], &record(kind::DATAGRAM, &[0xc0; 60]), &record(kind::FOR_US, &[7; 60])].concat()),
        (
            "key_update",
            [&[0][..], &record(kind::ODD, &[0, 1, 1]), &time(100), &record(kind::ODD, &[0, 2, 1])].concat(),
        ),
        (
            "datagrams",
            [
                &[4][..],
                &record(kind::SHORT, &frames(&[Frame::Datagram(vec![7; 500].into()), Frame::Ping])),
                &application(&[5, 13]),
                &exchange,
                &record(kind::SHORT, &frames(&[Frame::Datagram(vec![7; 999].into())])),
                &record(kind::SHORT, &frames(&[Frame::Datagram(vec![7; 1_000].into())])),
            ]
            .concat(),
        ),
        (
            "application",
            [&[1][..], &application(&[0, 7, 1, 5, 4]), &exchange, &time(50), &exchange, &application(&[2])]
                .concat(),
        ),
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

#[test]
fn random_inputs_run_through() {
    let mut rng = Rng::from_test_seed(9);
    let seeds = seeds();
    for _ in 0..1500 {
        let (_, seed) = &seeds[rng.below(seeds.len() as u64) as usize];
        let mut input = seed.clone();
        for _ in 0..=rng.below(8) {
            let at = rng.below(input.len() as u64) as usize;
            input[at] = rng.next_u64() as u8;
        }
        if rng.chance(0.3) {
            let (_, other) = &seeds[rng.below(seeds.len() as u64) as usize];
            input.extend_from_slice(&other[1..]);
        }
        run(&input);
    }
}
