//! What junk and handshakes cost a stack, for `cargo xtask bench junk` and `bench handshakes`.
//!
//! `cost STACK WORK COUNT`: STACK is one of the lab's, or `none`, which takes packets and forgets them: what the
//! program itself costs. WORK is
//! - `random`, `one-byte`, `jumbo`, `forged`: COUNT such datagrams at a server that has one live connection, ten
//!   microseconds apart (`forged`: a short header with that connection's ID);
//! - `handshake`: COUNT handshakes, both ends, each a full one.
//!
//! The caller measures the process.

use bytes::BytesMut;
use posthaste_lab::packet::{Body, Packet};
use posthaste_lab::peer::{Peer, PeerEvent};
use posthaste_lab::peers::{Settings, Stack};
use posthaste_units::{Duration, Rng, Time};

/// Different datagrams that are sent in turn.
const POOL: usize = 64;

/// Bytes of a datagram, unless its kind says otherwise.
const LENGTH: usize = 1200;

/// The largest UDP payload over IPv4.
const JUMBO: usize = 65_507;

/// Length of connection IDs, in bytes, in all stacks.
const ID: usize = 8;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [stack, work, count] = &words[..] else { panic!("cost STACK WORK COUNT") };
    let count: u64 = count.parse().expect("COUNT is a number");
    let stack: Option<Stack> =
        (stack != "none").then(|| stack.parse().unwrap_or_else(|error| panic!("{error}")));
    let mut rng = Rng::from_test_seed(1);
    posthaste_lab::tls::seed_thread(rng.fork());
    if work == "handshake" {
        for _ in 0..count {
            if let Some(stack) = &stack {
                connect(stack, &mut rng);
            }
        }
    } else {
        junk(stack.as_ref(), work, count, &mut rng);
    }
}

/// A connected server, its client, and the ID that the client calls it by.
struct Connected {
    server: Box<dyn Peer>,
    _client: Box<dyn Peer>,
    id: Vec<u8>,
    now: Time,
}

/// A handshake over a perfect wire.
fn connect(stack: &Stack, rng: &mut Rng) -> Connected {
    let pair = stack.pair(&Settings::default(), rng);
    let (mut client, mut server) = (pair.client, pair.server);
    let (mut now, mut id, mut connected) = (Time::ZERO, Vec::new(), 0);
    client.connect(now);
    for _ in 0..100 {
        let mut is_silent = true;
        while let Some(packet) = client.poll_transmit(now) {
            if let Body::Udp(payload) = &packet.body
                && payload[0] & 0x80 == 0
            {
                id = payload[1..=ID].to_vec();
            }
            server.on_packet(now, packet);
            is_silent = false;
        }
        while let Some(packet) = server.poll_transmit(now) {
            client.on_packet(now, packet);
            is_silent = false;
        }
        for peer in [&mut client, &mut server] {
            while let Some(event) = peer.poll_event() {
                connected += u32::from(event == PeerEvent::Connected);
            }
        }
        if connected == 2 && is_silent && !id.is_empty() {
            return Connected { server, _client: client, id, now };
        }
        now += Duration::from_millis(30);
        for peer in [&mut client, &mut server] {
            if peer.next_timeout().is_some_and(|at| at <= now) {
                peer.on_timeout(now);
            }
        }
    }
    panic!("{stack}: no handshake");
}

fn junk(stack: Option<&Stack>, kind: &str, count: u64, rng: &mut Rng) {
    let mut connected = stack.map(|stack| connect(stack, rng));
    let length = match kind {
        "random" | "forged" => LENGTH,
        "one-byte" => 1,
        "jumbo" => JUMBO,
        _ => panic!("{kind}: not one of random, one-byte, jumbo, forged, handshake"),
    };
    let pool: Vec<Vec<u8>> = (0..POOL)
        .map(|_| {
            let mut datagram = vec![0; length];
            rng.fill(&mut datagram);
            if let ("forged", Some(connected)) = (kind, &connected) {
                datagram[0] = 0x40 | datagram[0] & 0x3f;
                datagram[1..=ID].copy_from_slice(&connected.id);
            }
            datagram
        })
        .collect();
    let mut now = connected.as_ref().map_or(Time::ZERO, |connected| connected.now);
    let mut answers = 0_u64;
    for index in 0..count {
        let packet = Packet::udp(BytesMut::from(&pool[index as usize % POOL][..]), None);
        now += Duration::from_micros(10);
        let Some(Connected { server, .. }) = &mut connected else {
            std::hint::black_box(packet);
            continue;
        };
        server.on_packet(now, packet);
        while server.poll_transmit(now).is_some() {
            answers += 1;
        }
        while let Some(event) = server.poll_event() {
            assert!(!matches!(event, PeerEvent::Closed(_)), "{kind}: {event:?}");
        }
    }
    println!("{answers} answers");
}
