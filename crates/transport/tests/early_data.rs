//! 0-RTT, from both ends (RFC 9000 sections 7.4.1 and 17.2.3, RFC 9001 section 4.6, RFC 8446 section 8).

use std::sync::Arc;

use crate::support::resuming::{self, Tokens};
use crate::support::transfer::{Readers, Writers};
use crate::support::{Link, Pair};
use bytes::{Bytes, BytesMut};
use posthaste_transport::{
    ClientConfig, ConnectionHandle, DatagramInfo, Direction, Event, ReceiveBudget, RetryPolicy, Secret,
    ServerConfig, StreamId, TransportConfig, Version,
};
use posthaste_units::{ByteCount, Duration, Time};
use posthaste_wire::packet::{PacketType, split};
use rustls::server::StoresServerSessions;

/// A server in front of its store of sessions, and a client.
struct Stage {
    pair: Pair,
    client: ClientConfig,
    sessions: Arc<dyn StoresServerSessions>,
}

impl Stage {
    /// A client that has been here once: it holds sessions.
    fn new(seed: u64) -> Self {
        let sessions = resuming::sessions();
        let pair = Pair::with_server(seed, resuming::server_config(seed, &sessions));
        let mut stage = Self { pair, client: resuming::client_config(seed), sessions };
        stage.visit();
        stage
    }

    /// A whole connection; false if the client could not send early.
    fn visit(&mut self) -> bool {
        let handle = self.pair.connect_with(&self.client);
        let is_early = self.pair.client.connection(handle).may_send_early();
        self.pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
        self.pair.run_for(Duration::from_millis(100));
        self.leave(handle);
        is_early
    }

    fn leave(&mut self, handle: ConnectionHandle) {
        let now = self.pair.now;
        self.pair.client.connection(handle).close(now, 0, Bytes::new());
        self.pair.run_for(Duration::from_secs(5));
        self.pair.server.accepted.clear();
    }

    /// Puts another server in the place of the present one.
    fn replace_server(&mut self, seed: u64, config: ServerConfig) {
        let now = self.pair.now;
        self.pair = Pair::with_server(seed, config);
        self.pair.now = now;
    }

    /// Connects and writes `len` bytes at once; the stream.
    fn begin(&mut self, len: u64) -> (ConnectionHandle, StreamId, Writers) {
        let handle = self.pair.connect_with(&self.client);
        let mut writers = Writers::default();
        let id = self
            .pair
            .client
            .connection(handle)
            .open(Direction::Bidirectional)
            .expect("streams may be opened");
        writers.add(id, len);
        writers.pump(self.pair.client.connection(handle));
        (handle, id, writers)
    }

    /// Runs until the server has all of the stream; when.
    fn finish(&mut self, handle: ConnectionHandle, id: StreamId, writers: &mut Writers) -> Time {
        let mut readers = Readers::default();
        let mut done = None;
        self.pair.run_until(|pair| {
            writers.pump(pair.client.connection(handle));
            if let Some(server) = pair.server.accepted.last().copied() {
                let now = pair.now;
                readers.pump(now, pair.server.connection(server), usize::MAX);
            }
            done = readers.finished.contains_key(&id).then_some(pair.now);
            done.is_some()
        });
        done.expect("it is")
    }
}

fn is_accepted(event: &Event) -> bool {
    *event == Event::EarlyDataAccepted
}

fn is_rejected(event: &Event) -> bool {
    *event == Event::EarlyDataRejected
}

/// The packets of each datagram that the client has sent.
fn client_packets(pair: &Pair) -> Vec<Vec<PacketType>> {
    let datagrams = pair.capture.iter().flatten().filter(|(from_client, _)| *from_client);
    let kinds = |(_, data): &(bool, Vec<u8>)| {
        let packets = split(BytesMut::from(&data[..]), 8).filter_map(Result::ok);
        packets.map(|packet| packet.header.packet_type()).collect()
    };
    datagrams.map(kinds).collect()
}

#[test]
fn early_data_arrive_with_the_first_flight() {
    // spec: rfc9287 3.1 no-early-clearing
    let mut stage = Stage::new(1);
    let begun = stage.pair.now;
    stage.pair.capture = Some(Vec::new());
    let (handle, id, mut writers) = stage.begin(3000);
    assert!(stage.pair.client.connection(handle).may_send_early());
    let arrived = stage.finish(handle, id, &mut writers);
    assert_eq!(arrived.since(begun), Duration::from_millis(10), "half a round trip");
    let first = client_packets(&stage.pair).remove(0);
    assert_eq!(first, [PacketType::Initial, PacketType::ZeroRtt], "coalesced");
    let server = *stage.pair.server.accepted.last().expect("accepted");
    assert!(stage.pair.server.has(server, is_accepted) && !stage.pair.server.has(server, is_rejected));
    assert!(stage.pair.server.connection(server).is_handshaking(), "what it has read may be a repetition");
    assert!(stage.pair.server.connection(server).is_early_data_accepted(), "and it says so");
    assert_eq!(stage.pair.server.connection(server).alpn(), Some(crate::support::tls::ALPN), "known by then");
    stage.pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
    assert!(stage.pair.client.has(handle, is_accepted) && !stage.pair.client.has(handle, is_rejected));
    let connection = stage.pair.client.connection(handle);
    assert!(!connection.may_send_early() && connection.is_early_data_accepted());
    assert_eq!(connection.stats().streams.resent.get(), 0);
    assert_eq!(connection.stats().packets_lost, 0);
}

#[test]
fn a_server_answers_early_data_before_the_handshake_is_complete() {
    let mut stage = Stage::new(1);
    let begun = stage.pair.now;
    let (handle, id, mut writers) = stage.begin(100);
    stage.finish(handle, id, &mut writers);
    let server = *stage.pair.server.accepted.last().expect("accepted");
    let (mut answers, mut readers) = (Writers::default(), Readers::default());
    answers.add(id, 2000);
    readers.add(id);
    stage.pair.run_until(|pair| {
        answers.pump(pair.server.connection(server));
        let now = pair.now;
        readers.pump(now, pair.client.connection(handle), usize::MAX);
        !readers.finished.is_empty()
    });
    assert_eq!(
        stage.pair.now.since(begun),
        Duration::from_millis(20),
        "one round trip for question and answer"
    );
}

#[test]
fn much_early_data_stay_within_window_and_remembered_limits_and_go_on_in_1_rtt() {
    // spec: rfc9000 17.2.3 no-early-data-late, rfc9001 5.6 no-early-after-data-keys
    let mut stage = Stage::new(1);
    stage.pair.capture = Some(Vec::new());
    let (handle, id, mut writers) = stage.begin(1_000_000);
    stage.pair.drain();
    let in_flight = stage.pair.client.connection(handle).stats().in_flight.get();
    assert!(in_flight <= 10 * 1252, "{in_flight} bytes: the initial window holds for 0-RTT too");
    stage.finish(handle, id, &mut writers);
    assert!(stage.pair.client.has(handle, is_accepted));
    let packets = client_packets(&stage.pair);
    let early = packets.iter().flatten().filter(|kind| **kind == PacketType::ZeroRtt).count();
    assert!((5..=12).contains(&early), "{early} 0-RTT packets");
    // RFC 9001 section 4.9.3: once there are 1-RTT keys, no 0-RTT packets.
    let kinds: Vec<PacketType> = packets.into_iter().flatten().collect();
    let last_early = kinds.iter().rposition(|kind| *kind == PacketType::ZeroRtt);
    let first_late = kinds.iter().position(|kind| *kind == PacketType::Short);
    assert!(last_early < first_late);
}

#[test]
fn the_limits_of_last_time_hold_for_early_data() {
    // spec: rfc9000 7.4.1 early-by-old-values, 7.4.1 rest-remembered
    let sessions = resuming::sessions();
    let few = TransportConfig { max_concurrent_bidi_streams: 2, ..crate::support::defaults() };
    let config = resuming::server_config(1, &sessions).with_transport(Arc::new(few));
    let pair = Pair::with_server(1, config);
    let mut stage = Stage { pair, client: resuming::client_config(1), sessions };
    stage.visit();
    let handle = stage.pair.connect_with(&stage.client);
    let connection = stage.pair.client.connection(handle);
    assert!(
        connection.open(Direction::Bidirectional).is_ok()
            && connection.open(Direction::Bidirectional).is_ok()
    );
    assert!(connection.open(Direction::Bidirectional).is_err(), "two are permitted");
}

#[test]
fn a_restarted_server_that_kept_its_sessions_accepts_early_data() {
    let mut stage = Stage::new(1);
    let config = resuming::server_config(2, &stage.sessions);
    stage.replace_server(2, config);
    let (handle, id, mut writers) = stage.begin(3000);
    stage.finish(handle, id, &mut writers);
    stage.pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
    assert!(stage.pair.client.has(handle, is_accepted));
}

#[test]
fn rejected_early_data_are_sent_again_whole() {
    // spec: rfc9000 7.4.1 accepted-not-violated
    // spec: rfc9000 7.4.1 accepted-not-smaller, 7.4.1 unsupported-rejected, rfc9001 4.6.2 rejected-not-processed
    // spec: rfc9001 4.6.2 rejected-resets
    // A server that has lost its sessions; one that takes none; one whose limits are lower than last time.
    let strangers: [fn(&Stage) -> ServerConfig; 3] = [
        |_| resuming::server_config(2, &resuming::sessions()),
        |_| crate::support::tls::server_config(2),
        |stage| {
            let small = posthaste_schemes::named("cubic-fixed").expect("a profile");
            let lower = TransportConfig {
                profile: small,
                max_concurrent_bidi_streams: 3,
                max_concurrent_uni_streams: 0,
                ..crate::support::defaults()
            };
            resuming::server_config(2, &stage.sessions).with_transport(Arc::new(lower))
        },
    ];
    for (index, stranger) in strangers.into_iter().enumerate() {
        for len in [0, 100, 200_000] {
            let mut stage = Stage::new(1);
            let config = stranger(&stage);
            stage.replace_server(2, config);
            let (handle, id, mut writers) = stage.begin(len);
            assert!(stage.pair.client.connection(handle).may_send_early());
            stage.finish(handle, id, &mut writers);
            assert!(stage.pair.client.has(handle, is_rejected), "stranger {index}");
            assert!(!stage.pair.client.has(handle, is_accepted));
            let server = *stage.pair.server.accepted.last().expect("accepted");
            assert!(!stage.pair.server.has(server, is_accepted));
            assert!(stage.pair.server.has(server, is_rejected), "stranger {index}");
            let stats = stage.pair.client.connection(handle).stats();
            assert_eq!(stats.packets_lost, 0, "a rejection is no congestion");
            // Fresh sessions have come: next time it works again.
            stage.pair.run_for(Duration::from_millis(100));
            stage.leave(handle);
        }
    }
}

#[test]
fn early_data_are_rejected_once_the_application_promises_something_else() {
    // spec: rfc9114 7.2.4.2 unsure-refuses-early, 7.2.4.2 early-not-reduced
    let (nothing, old, new) = (&b""[..], &b"32 KiB"[..], &b"16 KiB"[..]);
    for (before, after, is_good) in [
        (nothing, nothing, true),
        (old, old, true),
        (old, new, false),
        (old, nothing, false),
        // Sessions of a server that promised nothing yet.
        (nothing, new, false),
    ] {
        let sessions = resuming::sessions();
        let server = |promised: &[u8]| {
            let mut pair = Pair::with_server(1, resuming::server_config(1, &sessions));
            pair.server.endpoint.set_early_data_context(promised);
            pair
        };
        let (pair, client) = (server(before), resuming::client_config(1));
        let mut stage = Stage { pair, client, sessions: Arc::clone(&sessions) };
        stage.visit();
        let now = stage.pair.now;
        stage.pair = server(after);
        stage.pair.now = now;
        let (handle, id, mut writers) = stage.begin(1000);
        assert!(stage.pair.client.connection(handle).may_send_early());
        stage.finish(handle, id, &mut writers);
        stage.pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
        assert_eq!(stage.pair.client.has(handle, is_accepted), is_good, "{before:?} {after:?}");
        assert_eq!(stage.pair.client.has(handle, is_rejected), !is_good, "{before:?} {after:?}");
    }
}

/// Others that come, and stay, change what is left of the budget from one visit to the next, and not what a connection
/// is granted first: sessions resume under the limits that they were issued under.
#[test]
fn connections_keep_0_rtt_however_many_others_stay() {
    let sessions = resuming::sessions();
    let receive_budget = ReceiveBudget::new(ByteCount::new(128 << 20));
    let transport = TransportConfig { receive_budget, ..crate::support::defaults() };
    let config = resuming::server_config(1, &sessions).with_transport(Arc::new(transport));
    let mut stage =
        Stage { pair: Pair::with_server(1, config), client: resuming::client_config(1), sessions };
    stage.visit();
    let mut rejected = 0;
    for visit in 0..60 {
        stage.pair.connect_with(&crate::support::tls::client_config(1));
        stage.pair.run_for(Duration::from_millis(100));
        let (handle, id, mut writers) = stage.begin(1000);
        assert!(stage.pair.client.connection(handle).may_send_early(), "visit {visit}");
        stage.finish(handle, id, &mut writers);
        stage.pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
        rejected += usize::from(!stage.pair.client.has(handle, is_accepted));
        let now = stage.pair.now;
        stage.pair.client.connection(handle).close(now, 0, Bytes::new());
        // Not so long that the others time out.
        stage.pair.run_for(Duration::from_millis(200));
        stage.pair.server.accepted.clear();
    }
    assert_eq!(rejected, 0);
}

#[test]
fn lower_limits_hold_after_a_rejection() {
    let mut stage = Stage::new(1);
    let few = TransportConfig { max_concurrent_bidi_streams: 3, ..crate::support::defaults() };
    let config = resuming::server_config(2, &stage.sessions).with_transport(Arc::new(few));
    stage.replace_server(2, config);
    let handle = stage.pair.connect_with(&stage.client);
    let mut writers = Writers::default();
    for _ in 0..40 {
        let id =
            stage.pair.client.connection(handle).open(Direction::Bidirectional).expect("256 were permitted");
        writers.add(id, 50);
    }
    let reset = stage.pair.client.connection(handle).open(Direction::Bidirectional).expect("one more");
    stage.pair.client.connection(handle).write(reset, &mut Bytes::from_static(b"no")).expect("there is room");
    stage.pair.drain();
    stage.pair.client.connection(handle).reset(reset, 5).expect("not ended");
    let mut readers = Readers::default();
    stage.pair.run_until(|pair| {
        writers.pump(pair.client.connection(handle));
        if let Some(server) = pair.server.accepted.last().copied() {
            let now = pair.now;
            readers.pump(now, pair.server.connection(server), usize::MAX);
            // Its answers are empty, so that streams end and others may be opened.
            let finished: Vec<StreamId> = readers.finished.keys().copied().collect();
            for id in finished {
                let _ = pair.server.connection(server).finish(id);
            }
            let reset: Vec<StreamId> = readers.reset.keys().copied().collect();
            for id in reset {
                let _ = pair.server.connection(server).finish(id);
            }
        }
        readers.finished.len() == 40 && readers.reset.len() == 1
    });
    assert!(stage.pair.client.has(handle, is_rejected));
    assert!(!stage.pair.client.has(handle, |event| matches!(event, Event::Closed(_))));
}

#[test]
fn replayed_early_data_are_not_read() {
    // spec: rfc9001 9.2 replay-protected
    let mut stage = Stage::new(1);
    stage.pair.capture = Some(Vec::new());
    let (handle, id, mut writers) = stage.begin(500);
    stage.finish(handle, id, &mut writers);
    let flight: Vec<Vec<u8>> =
        stage.pair.capture.take().into_iter().flatten().filter(|(up, _)| *up).map(|(_, d)| d).collect();
    stage.leave(handle);
    let accepted_before = stage.pair.server.events.iter().filter(|(_, event)| is_accepted(event)).count();
    assert_eq!(accepted_before, 1);
    // The first flight comes again, from somewhere else, to this server and to the one after it.
    for seed in [None, Some(7)] {
        if let Some(seed) = seed {
            let config = resuming::server_config(seed, &stage.sessions);
            stage.replace_server(seed, config);
        }
        let info =
            DatagramInfo { remote: "127.0.0.9:9".parse().expect("an address"), local_ip: None, ecn: None };
        let now = stage.pair.now;
        for datagram in &flight {
            stage.pair.server.endpoint.on_datagram(now, &info, BytesMut::from(&datagram[..]));
        }
        stage.pair.run_for(Duration::from_secs(1));
        let server = *stage.pair.server.accepted.last().expect("the handshake as such may begin again");
        assert!(!stage.pair.server.has(server, is_accepted), "the session was used up");
        assert_eq!(stage.pair.server.connection(server).accept(Direction::Bidirectional), None);
        stage.pair.run_for(Duration::from_secs(60));
    }
}

#[test]
fn each_session_serves_once() {
    let mut stage = Stage::new(1);
    for visit in 0..10 {
        assert!(stage.visit(), "visit {visit}: each connection brings new sessions");
    }
    let accepted = stage.pair.client.events.iter().filter(|(_, event)| is_accepted(event)).count();
    assert_eq!(accepted, 10);
}

#[test]
fn sessions_of_one_version_are_none_of_the_others() {
    // spec: rfc9369 5 clients-sessions, 5 servers-sessions
    let mut stage = Stage::new(1);
    stage.client = stage.client.clone().with_version(Version::V2);
    let (handle, id, mut writers) = stage.begin(1000);
    assert!(!stage.pair.client.connection(handle).may_send_early(), "its sessions are of version 1");
    stage.finish(handle, id, &mut writers);
    assert!(!stage.pair.client.has(handle, is_accepted));
    stage.pair.run_for(Duration::from_millis(100));
    stage.leave(handle);
    // Version 2 has its own 0-RTT packets.
    let (handle, id, mut writers) = stage.begin(1000);
    stage.finish(handle, id, &mut writers);
    stage.pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
    assert!(stage.pair.client.has(handle, is_accepted));
}

#[test]
fn early_data_go_again_after_a_retry() {
    for has_token in [false, true] {
        let sessions = resuming::sessions();
        let config = ServerConfig {
            retry: RetryPolicy::Always,
            secret: Some(Secret([9; 32])),
            ..resuming::server_config(1, &sessions)
        };
        let tokens = Arc::new(Tokens::default());
        let mut client = resuming::client_config(1);
        if has_token {
            client = client.with_tokens(tokens);
        }
        let mut stage = Stage { pair: Pair::with_server(1, config), client, sessions };
        stage.visit();
        let begun = stage.pair.now;
        let (handle, id, mut writers) = stage.begin(5000);
        let arrived = stage.finish(handle, id, &mut writers).since(begun);
        assert_eq!(arrived, Duration::from_millis(if has_token { 10 } else { 30 }), "{has_token}");
        stage.pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
        assert!(stage.pair.client.has(handle, is_accepted));
        assert_eq!(stage.pair.client.connection(handle).stats().packets_lost, 0);
    }
}

/// The first flight of a client that has written 11,000 bytes, of which nothing arrives.
fn lost_flight(stage: &mut Stage) -> (ConnectionHandle, Vec<Vec<u8>>) {
    stage.pair.capture = Some(Vec::new());
    let (handle, _, _) = stage.begin(11_000);
    stage.pair.up = Link { loss: 1.0, ..Link::CLEAN };
    stage.pair.drain();
    let flight: Vec<Vec<u8>> =
        stage.pair.capture.take().into_iter().flatten().map(|(_, data)| data).collect();
    assert!(flight.len() > 8, "{} datagrams", flight.len());
    (handle, flight)
}

/// The server is handed the datagrams; the bytes that can be read then.
fn read_of(stage: &mut Stage, datagrams: &[&Vec<u8>]) -> u64 {
    let info = DatagramInfo { remote: stage.pair.client.address, local_ip: None, ecn: None };
    let now = stage.pair.now;
    for datagram in datagrams {
        stage.pair.server.endpoint.on_datagram(now, &info, BytesMut::from(&datagram[..]));
    }
    stage.pair.drain();
    let server = *stage.pair.server.accepted.last().expect("accepted");
    let mut readers = Readers::default();
    readers.pump(now, stage.pair.server.connection(server), usize::MAX);
    readers.open.values().chain(readers.finished.values()).sum()
}

#[test]
fn early_packets_that_overtake_the_first_initial_are_read_once_it_comes() {
    let mut stage = Stage::new(1);
    let (_, flight) = lost_flight(&mut stage);
    let before = stage.pair.server.endpoint.stats();
    let order: Vec<&Vec<u8>> = flight[1..].iter().rev().chain(&flight[..1]).collect();
    assert!(read_of(&mut stage, &order) > 9000, "all of the flight");
    let after = stage.pair.server.endpoint.stats();
    assert_eq!(after.early_kept - before.early_kept, flight.len() as u64 - 1);
    assert_eq!(after.unroutable, before.unroutable);
}

#[test]
fn a_flood_of_early_packets_fills_no_more_than_its_bounds() {
    // Ten datagrams of a connection wait, each of them once or not.
    let mut stage = Stage::new(1);
    let (_, flight) = lost_flight(&mut stage);
    let many: Vec<&Vec<u8>> =
        std::iter::repeat_n(&flight[1], 1000).chain(&flight[2..]).chain(&flight[..1]).collect();
    let read = read_of(&mut stage, &many);
    assert!(read < 3000, "{read} bytes: copies of the first have taken the room");
    assert_eq!(stage.pair.server.endpoint.stats().early_kept, 10);
    // Other connection IDs have taken all places; half a second later there is room again.
    for (wait, is_kept) in [(500, false), (501, true)] {
        let mut stage = Stage::new(1);
        let (_, flight) = lost_flight(&mut stage);
        let now = stage.pair.now;
        for number in 0..10_000_u64 {
            let mut forged = flight[1].clone();
            forged[6..14].copy_from_slice(&number.to_be_bytes());
            let info = DatagramInfo { remote: stage.pair.client.address, local_ip: None, ecn: None };
            stage.pair.server.endpoint.on_datagram(now, &info, BytesMut::from(&forged[..]));
        }
        assert_eq!(stage.pair.server.endpoint.stats().early_kept, 16);
        assert_eq!(stage.pair.server.endpoint.connections(), 0);
        stage.pair.now += Duration::from_millis(wait);
        let order: Vec<&Vec<u8>> = flight[1..].iter().chain(&flight[..1]).collect();
        assert_eq!(read_of(&mut stage, &order) > 9000, is_kept, "after {wait} ms");
    }
}

#[test]
fn early_packets_are_sent_for_the_application_alone_and_not_opened_late() {
    // spec: rfc9001 5.6 early-data-only-on-request, 4.9.3 early-keys-dropped
    let mut stage = Stage::new(1);
    stage.pair.capture = Some(Vec::new());
    assert!(stage.visit(), "it might have sent some");
    assert!(!client_packets(&stage.pair).concat().contains(&PacketType::ZeroRtt));
    // One of the early packets is held back until long after the handshake.
    for (wait, is_opened) in [(0, true), (20, false)] {
        let mut stage = Stage::new(1);
        let (handle, flight) = lost_flight(&mut stage);
        let (late, rest) = flight.split_last().expect("some");
        read_of(&mut stage, &rest.iter().collect::<Vec<_>>());
        stage.pair.up = Link::CLEAN;
        if wait > 0 {
            stage.pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
            stage.pair.run_for(Duration::from_secs(wait));
        }
        let server = *stage.pair.server.accepted.last().expect("accepted");
        let before = stage.pair.server.connection(server).stats().packets_received;
        let info = DatagramInfo { remote: stage.pair.client.address, local_ip: None, ecn: None };
        let now = stage.pair.now;
        stage.pair.server.endpoint.on_datagram(now, &info, BytesMut::from(&late[..]));
        let after = stage.pair.server.connection(server).stats().packets_received;
        assert_eq!(after > before, is_opened, "after {wait} s");
    }
}

#[test]
fn a_server_without_early_data_keeps_none() {
    let mut stage = Stage::new(1);
    stage.replace_server(2, crate::support::tls::server_config(2));
    let (_, flight) = lost_flight(&mut stage);
    let order: Vec<&Vec<u8>> = flight[1..].iter().chain(&flight[..1]).collect();
    assert_eq!(read_of(&mut stage, &order), 0);
    assert_eq!(stage.pair.server.endpoint.stats().early_kept, 0);
}

#[test]
fn early_packets_that_overtake_the_client_hello_are_kept_within_the_bound() {
    // A long list of protocols makes the ClientHello take two datagrams; its second part comes last.
    let mut stage = Stage::new(1);
    let (handle, flight) = lost_flight(&mut stage);
    let info = DatagramInfo { remote: stage.pair.client.address, local_ip: None, ecn: None };
    let now = stage.pair.now;
    // Each arrives twice, before and after: those that come before the first Initial find no connection.
    for datagram in flight.iter().skip(1).chain(&flight) {
        stage.pair.server.endpoint.on_datagram(now, &info, BytesMut::from(&datagram[..]));
    }
    stage.pair.drain();
    let server = *stage.pair.server.accepted.last().expect("accepted");
    let mut readers = Readers::default();
    readers.pump(now, stage.pair.server.connection(server), usize::MAX);
    let read: u64 = readers.open.values().chain(readers.finished.values()).sum();
    assert!(read > 9000, "{read} bytes");
    assert!(!stage.pair.client.has(handle, is_rejected));
}

#[test]
fn early_data_arrive_whole_over_bad_links_accepted_or_not() {
    let bad = Link { loss: 0.1, reorder: 0.2, duplicate: 0.1, corrupt: 0.02, ..Link::CLEAN };
    let mut outcomes = [0, 0];
    for seed in 0..60 {
        let mut stage = Stage::new(1);
        let kept = if seed % 3 == 0 { resuming::sessions() } else { Arc::clone(&stage.sessions) };
        let config = ServerConfig {
            retry: if seed % 2 == 0 { RetryPolicy::Always } else { RetryPolicy::Never },
            ..resuming::server_config(seed, &kept)
        };
        stage.replace_server(seed, config);
        (stage.pair.up, stage.pair.down) = (bad, bad);
        let (handle, id, mut writers) = stage.begin(20_000);
        stage.finish(handle, id, &mut writers);
        stage.pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
        let accepted = stage.pair.client.has(handle, is_accepted);
        assert_ne!(accepted, stage.pair.client.has(handle, is_rejected));
        outcomes[usize::from(accepted)] += 1;
    }
    assert!(outcomes.iter().all(|count| *count >= 10), "{outcomes:?}");
}

#[test]
fn equal_runs_with_early_data_are_equal_bit_for_bit() {
    let run = || {
        let mut stage = Stage::new(1);
        let (handle, id, mut writers) = stage.begin(30_000);
        stage.finish(handle, id, &mut writers);
        stage.pair.trace_hash
    };
    assert_eq!(run(), run());
}
