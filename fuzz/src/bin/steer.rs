//! Connection IDs and datagrams at endpoints that share a port: 17 bytes for the keys and the number of endpoints, then a
//! datagram. The kernel's program and the transport name the same owner for whatever comes; an endpoint gives back what is
//! another's and nothing else; each ID has one owner; wrong keys find it no more often than chance does; and IDs that an
//! endpoint gives a connection are its own.

#![no_main]

use std::num::NonZeroU16;
use std::sync::{Arc, OnceLock};

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use posthaste_transport::{DatagramInfo, Endpoint, ServerConfig, Steering};
use posthaste_units::{Rng, Time};
use posthaste_wire::packet::Invariants;

#[path = "../../../crates/endpoint/src/workers/program.rs"]
#[allow(dead_code, reason = "the kernel is not asked")]
mod program;
#[path = "../../../crates/transport/tests/support/mod.rs"]
mod support;

/// Endpoints on a port, at most.
const ENDPOINTS: u8 = 64;

/// IDs that are tried with wrong keys.
const TRIES: u32 = 512;

/// Length of the IDs that endpoints give.
const ID: usize = 8;

fuzz_target!(|input: &[u8]| {
    let Some((head, datagram)) = input.split_first_chunk::<17>() else { return };
    let key = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let keys = [key(0), key(4), key(8), key(12)];
    let endpoints = NonZeroU16::from(NonZeroU16::MIN.saturating_add(u16::from(head[16] % ENDPOINTS)));
    let all: Vec<Steering> = (0..endpoints.get())
        .map(|index| Steering::new(keys, endpoints, index).expect("it is below"))
        .collect();
    let chosen = run(&program::instructions(&all[0]), datagram);
    assert!(chosen < u32::from(endpoints.get()), "{chosen} of {endpoints}");
    if let Ok(invariants) = Invariants::parse(datagram, ID) {
        let owner = all[0].owner(invariants.dcid.as_slice());
        assert!(owner.is_none_or(|owner| u32::from(owner) == chosen), "{owner:?}, the kernel: {chosen}");
        assert!(all.iter().all(|steering| steering.owner(invariants.dcid.as_slice()) == owner));
        give_back(&all, datagram, owner);
    }
    let mut rng = Rng::from_seed(seed(head));
    wrong_keys_find_no_more_than_chance(&all, &mut rng);
    // A handshake takes a thousand times as long as all the rest.
    if head[0] % 64 == 0 {
        ids_that_are_given_are_own(&all);
    }
});

fn seed(head: &[u8; 17]) -> [u8; 32] {
    let mut seed = [0; 32];
    seed[..17].copy_from_slice(head);
    seed
}

fn server(steering: Steering) -> ServerConfig {
    static CONFIG: OnceLock<ServerConfig> = OnceLock::new();
    let config =
        CONFIG.get_or_init(|| support::tls::server_config(1).with_transport(Arc::new(support::defaults())));
    ServerConfig { steering: Some(steering), ..config.clone() }
}

/// An endpoint gives a datagram back if and only if another owns its ID, and does not answer it then.
fn give_back(all: &[Steering], datagram: &[u8], owner: Option<u16>) {
    let index = usize::from(datagram[0]) % all.len();
    let mut endpoint = Endpoint::new([1; 32], Some(server(all[index])));
    let info =
        DatagramInfo { remote: "127.0.0.1:666".parse().expect("an address"), local_ip: None, ecn: None };
    let given_back = endpoint.on_datagram(Time::ZERO, &info, BytesMut::from(datagram));
    let expected = owner.filter(|owner| usize::from(*owner) != index);
    assert_eq!(given_back.as_ref().map(|it| it.owner), expected, "at endpoint {index}");
    if let Some(given_back) = given_back {
        assert_eq!(&given_back.data[..], datagram);
        assert!(endpoint.poll_transmit(Time::ZERO, &mut Vec::new(), 1).is_none(), "it was answered");
    }
}

/// Random IDs of the first endpoint, taken for its own by who has drawn other keys.
fn wrong_keys_find_no_more_than_chance(all: &[Steering], rng: &mut Rng) {
    let mut word = [0; 16];
    rng.fill(&mut word);
    let keys =
        [0, 4, 8, 12].map(|at| u32::from_be_bytes([word[at], word[at + 1], word[at + 2], word[at + 3]]));
    let wrong = Steering::new(keys, all[0].endpoints(), 0).expect("it is below");
    let (mut own, mut found) = (0, 0);
    for _ in 0..TRIES * u32::from(all[0].endpoints().get()) {
        let mut id = [0; ID];
        rng.fill(&mut id);
        if all[0].owner(&id) == Some(0) {
            own += 1;
            found += u32::from(wrong.owner(&id) == Some(0));
        }
    }
    let (own, chance) = (f64::from(own), 1.0 / all.len() as f64);
    let deviation = (own * chance * (1.0 - chance)).sqrt();
    // Eight standard deviations: less than once in 10^14 executions.
    assert!(
        f64::from(found) <= own * chance + 8.0 * deviation + 8.0,
        "{found} of {own}, {} endpoints",
        all.len()
    );
}

/// The IDs by which a client addresses the endpoint that took its connection.
fn ids_that_are_given_are_own(all: &[Steering]) {
    // The client chooses its first ID, the same in each run.
    static FIRST: OnceLock<Vec<u8>> = OnceLock::new();
    let first = FIRST.get_or_init(|| {
        let mut pair = support::Pair::with_server(1, support::tls::server_config(1));
        pair.capture = Some(Vec::new());
        pair.connect();
        pair.drain();
        pair.capture.expect("it was set")[0].1[6..6 + ID].to_vec()
    });
    let owner = all[0].owner(first).expect("it has eight bytes");
    let mut pair = support::Pair::with_server(1, server(all[usize::from(owner)]));
    pair.capture = Some(Vec::new());
    pair.establish();
    let captured = pair.capture.take().expect("it was set");
    let mut later = 0;
    for (_, datagram) in
        captured.iter().filter(|(from_client, datagram)| *from_client && datagram[0] & 0x80 == 0)
    {
        assert_eq!(all[0].owner(&datagram[1..=ID]), Some(owner));
        later += 1;
    }
    assert!(later > 0, "no datagram behind the handshake");
    assert_eq!(pair.server.endpoint.stats().misplaced, 0);
}

/// What the kernel's interpreter of classic BPF returns (networking/filter); 0 where a load is out of the datagram.
fn run(program: &[(u16, u8, u8, u32)], datagram: &[u8]) -> u32 {
    let (mut a, mut x, mut memory, mut at) = (0_u32, 0_u32, [0_u32; 16], 0_usize);
    let load = |offset: u32, len: usize| -> Option<u32> {
        let from = usize::try_from(offset).ok()?;
        let bytes = datagram.get(from..from.checked_add(len)?)?;
        Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    };
    loop {
        let (code, if_true, if_false, k) = program[at];
        at += 1;
        match code {
            0x20 => match load(k, 4) {
                Some(value) => a = value,
                None => return 0,
            },
            0x30 => match load(k, 1) {
                Some(value) => a = value,
                None => return 0,
            },
            0x60 => a = memory[k as usize],
            0x02 => memory[k as usize] = a,
            0x05 => at += k as usize,
            0x45 => at += usize::from(if a & k != 0 { if_true } else { if_false }),
            0xa4 => a ^= k,
            0xac => a ^= x,
            0x24 => a = a.wrapping_mul(k),
            0x74 => a >>= k,
            0x94 => a %= k,
            0x07 => x = a,
            0x16 => return a,
            _ => panic!("instruction {code:#x} is not known here"),
        }
    }
}
