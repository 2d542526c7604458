//! What junk and handshakes cost a server, for `cargo xtask bench junk` and `bench handshakes`.
//!
//! `cost STACK WORK COUNT`: STACK is one of the lab's, or `none`, which takes packets and forgets them: what the
//! program itself costs. WORK is
//! - `random`, `one-byte`, `jumbo`, `forged`: COUNT such datagrams at a server that has one live connection, ten
//!   microseconds apart (`forged`: a short header with that connection's ID);
//! - `full`, `resumed`, `early`: COUNT handshakes of that kind, each with a request of one packet.
//!
//! One thread does it all; it prints the CPU nanoseconds that the server took of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use nix::time::{ClockId, clock_gettime};
use posthaste_lab::packet::{Body, Packet};
use posthaste_lab::peer::{Peer, PeerEvent, Read, StreamKey};
use posthaste_lab::peers::{Settings, Stack};
use posthaste_lab::tls::{self, Returning};
use posthaste_units::{Duration, Rng, Time};

/// Different datagrams that are sent in turn.
const POOL: usize = 64;

/// Bytes of a datagram, unless its kind says otherwise.
const LENGTH: usize = 1200;

/// The largest UDP payload over IPv4.
const JUMBO: usize = 65_507;

/// Length of connection IDs, in bytes, in all stacks.
const ID: usize = 8;

/// What a client asks for: the size of a small request's head.
const REQUEST: [u8; 100] = [b'r'; 100];

/// Flights after which a handshake has failed.
const MAX_FLIGHTS: u32 = 100;

/// How long a connection in which nothing moves waits for its timers.
const PATIENCE: Duration = Duration::from_millis(30);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [stack, work, count] = &words[..] else { panic!("cost STACK WORK COUNT") };
    let count: u64 = count.parse().expect("COUNT is a number");
    let stack: Option<Stack> =
        (stack != "none").then(|| stack.parse().unwrap_or_else(|error| panic!("{error}")));
    let mut rng = Rng::from_test_seed(1);
    tls::seed_thread(rng.fork());
    let returning = match work.as_str() {
        "full" => Some(Returning::Forgetful),
        "resumed" => Some(Returning::Resuming),
        "early" => Some(Returning::Early),
        _ => None,
    };
    let cpu = match (returning, &stack) {
        (Some(returning), Some(stack)) => handshakes(stack, returning, count, &mut rng),
        (Some(_), None) => panic!("{work}: without a stack there are no handshakes"),
        (None, stack) => junk(stack.as_ref(), work, count, &mut rng),
    };
    println!("{cpu}");
}

/// CPU nanoseconds of this thread.
fn thread_cpu() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock");
    u64::try_from(time.tv_sec()).expect("since the thread's start") * 1_000_000_000
        + u64::try_from(time.tv_nsec()).expect("below a second")
}

/// CPU nanoseconds of the servers in `count` handshakes.
fn handshakes(stack: &Stack, returning: Returning, count: u64, rng: &mut Rng) -> u64 {
    let resumed = Arc::new(AtomicU64::new(0));
    let settings = Settings { tls: tls::ticketing(returning, Arc::clone(&resumed)), ..Settings::default() };
    // The first one of all fetches the ticket that the next resumes with, as each after it does.
    let first = Visit::new(stack, &settings, rng).run(stack);
    assert!(!first.is_early, "nobody can be early without having been there");
    let mut cpu = 0;
    for index in 0..count {
        let visit = Visit::new(stack, &settings, rng).run(stack);
        cpu += visit.server_cpu;
        let found = resumed.load(Ordering::Relaxed);
        let expected = if returning == Returning::Forgetful { 0 } else { index + 1 };
        assert_eq!(found, expected, "{stack}: sessions found again after {} returns", index + 1);
        assert_eq!(visit.is_early, returning == Returning::Early, "{stack}: the request came early");
    }
    cpu
}

/// One connection over a perfect wire, from its first packet to the request's arrival and to silence.
#[expect(clippy::struct_excessive_bools, reason = "what has happened so far, in no one order")]
struct Visit {
    client: Box<dyn Peer>,
    server: Box<dyn Peer>,
    now: Time,
    server_cpu: u64,
    is_client_connected: bool,
    is_server_connected: bool,
    has_asked: bool,
    has_request: bool,
    /// The request was there before the client's second flight.
    is_early: bool,
    /// What the client calls the server by, from its packets with a short header.
    id: Vec<u8>,
}

impl Visit {
    fn new(stack: &Stack, settings: &Settings, rng: &mut Rng) -> Self {
        let pair = stack.pair(settings, rng);
        Self {
            client: pair.client,
            server: pair.server,
            now: Time::ZERO,
            server_cpu: 0,
            is_client_connected: false,
            is_server_connected: false,
            has_asked: false,
            has_request: false,
            is_early: false,
            id: Vec::new(),
        }
    }

    fn run(mut self, stack: &Stack) -> Self {
        self.client.connect(self.now);
        // Before the handshake there is only a stream to open if early data may be sent.
        self.ask();
        for flight in 0..MAX_FLIGHTS {
            let sent = self.client_sends();
            let is_silent = sent.is_empty();
            let answers = self.server_answers(sent);
            self.is_early |= flight == 0 && self.has_request;
            let is_silent = is_silent && answers.is_empty();
            self.client_reads(answers);
            if is_silent {
                if self.is_client_connected && self.is_server_connected && self.has_request {
                    return self;
                }
                self.now += PATIENCE;
                for peer in [&mut self.client, &mut self.server] {
                    if peer.next_timeout().is_some_and(|at| at <= self.now) {
                        peer.on_timeout(self.now);
                    }
                }
            }
        }
        panic!("{stack}: no handshake");
    }

    fn ask(&mut self) {
        if self.has_asked {
            return;
        }
        if let Some(stream) = self.client.open(self.now) {
            let mut request = Bytes::from_static(&REQUEST);
            self.client.write(self.now, stream, &mut request);
            assert!(request.is_empty(), "a request of 100 bytes fits");
            self.client.finish(self.now, stream);
            self.has_asked = true;
        }
    }

    fn client_sends(&mut self) -> Vec<Packet> {
        let packets: Vec<Packet> = std::iter::from_fn(|| self.client.poll_transmit(self.now)).collect();
        for packet in &packets {
            if let Body::Udp(payload) = &packet.body
                && payload[0] & 0x80 == 0
            {
                self.id = payload[1..=ID].to_vec();
            }
        }
        packets
    }

    /// The measured part: all that a server does.
    fn server_answers(&mut self, packets: Vec<Packet>) -> Vec<Packet> {
        let before = thread_cpu();
        let mut answers = Vec::new();
        for packet in packets {
            self.server.on_packet(self.now, packet);
        }
        loop {
            while let Some(event) = self.server.poll_event() {
                match event {
                    PeerEvent::Connected => self.is_server_connected = true,
                    PeerEvent::Opened(stream) | PeerEvent::Readable(stream) => self.read(stream),
                    PeerEvent::Closed(reason) => panic!("the server closed: {reason:?}"),
                    PeerEvent::Writable(_) | PeerEvent::Available => {}
                }
            }
            let Some(answer) = self.server.poll_transmit(self.now) else { break };
            answers.push(answer);
        }
        self.server_cpu += thread_cpu() - before;
        answers
    }

    fn read(&mut self, stream: StreamKey) {
        loop {
            match self.server.read(self.now, stream, REQUEST.len()) {
                Read::Data(data) => assert_eq!(data[..], REQUEST[..data.len()]),
                Read::Finished => {
                    self.has_request = true;
                    return;
                }
                Read::Blocked | Read::Reset => return,
            }
        }
    }

    fn client_reads(&mut self, packets: Vec<Packet>) {
        for packet in packets {
            self.client.on_packet(self.now, packet);
        }
        while let Some(event) = self.client.poll_event() {
            match event {
                PeerEvent::Connected => self.is_client_connected = true,
                PeerEvent::Closed(reason) => panic!("the client closed: {reason:?}"),
                _ => {}
            }
        }
        if self.is_client_connected {
            self.ask();
        }
    }
}

/// CPU nanoseconds of the server, and of the loop around it, for `count` datagrams.
fn junk(stack: Option<&Stack>, kind: &str, count: u64, rng: &mut Rng) -> u64 {
    let mut visit = stack.map(|stack| Visit::new(stack, &Settings::default(), rng).run(stack));
    let length = match kind {
        "random" | "forged" => LENGTH,
        "one-byte" => 1,
        "jumbo" => JUMBO,
        _ => panic!("{kind}: not one of random, one-byte, jumbo, forged, full, resumed, early"),
    };
    let pool: Vec<Vec<u8>> = (0..POOL)
        .map(|_| {
            let mut datagram = vec![0; length];
            rng.fill(&mut datagram);
            if let ("forged", Some(visit)) = (kind, &visit) {
                datagram[0] = 0x40 | datagram[0] & 0x3f;
                datagram[1..=ID].copy_from_slice(&visit.id);
            }
            datagram
        })
        .collect();
    let mut now = visit.as_ref().map_or(Time::ZERO, |visit| visit.now);
    let mut answers = 0_u64;
    let before = thread_cpu();
    for index in 0..count {
        let packet = Packet::udp(BytesMut::from(&pool[index as usize % POOL][..]), None);
        now += Duration::from_micros(10);
        let Some(Visit { server, .. }) = &mut visit else {
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
    let cpu = thread_cpu() - before;
    eprintln!("{answers} answers");
    cpu
}
