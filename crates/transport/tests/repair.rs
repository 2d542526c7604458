//! Copies of tails and of the handshake's first flight: what they save, what they cost, and what they must not change.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_transport::{
    ConnectionHandle, Direction, Event, Move, RetryPolicy, StreamEvent, StreamId, TransportConfig,
};
use posthaste_units::{Duration, Time};
use posthaste_wire::Frame;
use posthaste_wire::frame::AckFrame;
use posthaste_wire::packet::PacketType;

use crate::support::arena::Arena;
use crate::support::resuming::Tokens;
use crate::support::rogue::proper;
use crate::support::transfer::{Readers, Writers, pattern_bytes};
use crate::support::{Link, Pair, resuming, tls};

const RTT: Duration = Duration::from_millis(20);
const SEEDS: u64 = 20;

/// A first flight of 32 datagrams, with this repair policy.
fn config(repair: &str) -> TransportConfig {
    config_with(32, repair)
}

fn config_with(datagrams: u32, repair: &str) -> TransportConfig {
    let text = format!("[start.initial]\ndatagrams = {datagrams}\n[congestion.bbr3]\n[repair.{repair}\n");
    let profile = posthaste_schemes::from_toml("repair", &text).expect("a profile");
    TransportConfig { profile, mtu_discovery: false, max_datagram_size: 1200, ..crate::support::defaults() }
}

const TAIL: &str = "tail]";
const NONE: &str = "none]";

/// Both ends repair so.
fn pair(seed: u64, repair: &str) -> (Pair, ConnectionHandle) {
    let mut pair = Pair::new(seed, crate::support::defaults(), config(repair));
    let client = tls::client_config(seed).with_transport(Arc::new(config(repair)));
    let handle = pair.connect_with(&client);
    (pair, handle)
}

/// When the client knows the handshake to be confirmed.
fn confirmed_at(pair: &mut Pair, client: ConnectionHandle) -> Duration {
    pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
    pair.now.since(Time::ZERO)
}

/// The server sends a stream of `len` bytes, on which the client reads; when it has all of it.
fn download(pair: &mut Pair, client: ConnectionHandle, len: u64) -> Duration {
    let server = *pair.server.accepted.first().expect("the server has accepted");
    let id = pair.server.connection(server).open(Direction::Unidirectional).expect("a stream");
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    writers.add(id, len);
    let begun = pair.now;
    pair.run_promptly_until(|pair| {
        writers.pump(pair.server.connection(server));
        let now = pair.now;
        readers.pump(now, pair.client.connection(client), usize::MAX);
        readers.finished.contains_key(&id)
    });
    assert_eq!(readers.finished[&id], len);
    pair.now.since(begun)
}

#[test]
fn a_lost_server_hello_costs_the_handshake_nothing() {
    let lost = |repair| {
        let (mut pair, client) = pair(1, repair);
        pair.doomed = vec![(false, 0)];
        confirmed_at(&mut pair, client)
    };
    assert!(lost(NONE) >= Duration::from_millis(900), "the probe timeout is a second");
    assert_eq!(lost(TAIL), RTT * 2);
}

#[test]
fn a_lost_client_initial_costs_five_milliseconds() {
    let lost = |repair| {
        let (mut pair, client) = pair(1, repair);
        pair.doomed = vec![(true, 0)];
        confirmed_at(&mut pair, client)
    };
    assert!(lost(NONE) >= Duration::from_millis(900));
    assert_eq!(lost(TAIL), RTT * 2 + Duration::from_millis(5));
}

#[test]
fn the_flights_of_a_handshake_are_copied_once_each() {
    let (mut pair, client) = pair(1, TAIL);
    confirmed_at(&mut pair, client);
    pair.run_for(Duration::from_secs(1));
    let server = pair.server.accepted[0];
    // The Initial and the Handshake packet of the first datagram.
    assert_eq!(pair.server.connection(server).stats().packets_copied, 2);
    // Initial and Finished: both are older than 5 ms before they can be acknowledged.
    assert_eq!(pair.client.connection(client).stats().packets_copied, 2);
}

#[test]
fn nothing_is_copied_once_it_has_been_acknowledged() {
    let (mut pair, client) = pair(1, TAIL);
    (pair.up.delay, pair.down.delay) = (Duration::from_millis(1), Duration::from_millis(1));
    confirmed_at(&mut pair, client);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.client.connection(client).stats().packets_copied, 0);
}

#[test]
fn no_copy_of_a_handshake_exceeds_the_amplification_limit() {
    // spec: rfc9000 8.1 server-three-times
    // From certificates that leave room for a copy to such that fill the limit without one.
    for names in [0, 10, 20, 30, 40, 50, 60, 80, 400] {
        let server = tls::server_config_with_names(1, names).with_transport(Arc::new(config(TAIL)));
        let mut pair = Pair::with_server(1, server);
        pair.connect_with(&tls::client_config_for(1, names, &[tls::ALPN]));
        pair.down.loss = 1.0;
        pair.drain();
        pair.up.loss = 1.0;
        pair.run_for(Duration::from_secs(20));
        let bytes = |from_client| {
            let sent = pair.log.iter().filter(|sent| sent.from_client == from_client);
            sent.map(|sent| sent.size).sum::<usize>()
        };
        let received = pair.log.iter().find(|sent| sent.from_client).expect("an Initial").size;
        assert!(bytes(false) <= 3 * received, "{names} names: {} bytes for {received}", bytes(false));
        assert!(bytes(false) > received, "{names} names");
    }
}

#[test]
fn a_server_that_knows_the_client_waits_with_the_copy() {
    let mut server = tls::server_config(1).with_transport(Arc::new(config(TAIL)));
    server.retry = RetryPolicy::Always;
    let mut pair = Pair::with_server(1, server);
    let client = pair.connect_with(&tls::client_config(1).with_transport(Arc::new(config(TAIL))));
    confirmed_at(&mut pair, client);
    let sent: Vec<Duration> = pair
        .log
        .iter()
        .filter(|sent| !sent.from_client && sent.size >= 1000)
        .map(|sent| sent.at.since(Time::ZERO))
        .collect();
    let (first, last) = (sent[0], sent[sent.len() - 1]);
    assert_eq!(last, first + Duration::from_millis(5), "{sent:?}");
}

#[test]
fn a_server_that_has_lost_its_flight_answers_the_clients_probe_with_it() {
    // RFC 9002 section 6.2.3
    let lost = |repair| {
        let mut pair = Pair::new(1, crate::support::defaults(), config(repair));
        // As browsers: the client's probe timeout is 300 ms. The server's is a second.
        let guess = std::time::Duration::from_millis(100);
        let transport = TransportConfig { initial_rtt: guess, ..crate::support::defaults() };
        let client = pair.connect_with(&tls::client_config(1).with_transport(Arc::new(transport)));
        pair.doomed = vec![(false, 0), (false, 1)];
        confirmed_at(&mut pair, client)
    };
    assert!(lost(NONE) >= Duration::from_millis(900), "{:?}", lost(NONE));
    // The next probe acknowledges the acknowledgements that the first was answered with, and so tells of the loss.
    assert!(lost("tail]\nanswers = 0") >= Duration::from_millis(400));
    assert_eq!(lost(TAIL), Duration::from_millis(300) + RTT * 2);
}

/// A client that sends PING in a packet of this kind so many milliseconds after the server's flight, and acknowledges
/// nothing; the CRYPTO frames that it is sent for each.
fn answers(repair: &str, kind: PacketType, times: &[u64]) -> Vec<usize> {
    let server = tls::server_config(1).with_transport(Arc::new(config(repair)));
    let mut arena = Arena::server_with(server, proper());
    for datagram in arena.rogue.flight() {
        arena.inject(&datagram);
    }
    arena.drain();
    let flight_at = arena.now;
    let mut answer = |time: &u64| {
        arena.now = flight_at + Duration::from_millis(*time);
        let before = arena.rogue.seen.len();
        arena.send(kind, &[Frame::Ping]);
        arena.rogue.seen[before..].iter().filter(|(_, frame)| matches!(frame, Frame::Crypto(_))).count()
    };
    times.iter().map(&mut answer).collect()
}

#[test]
fn two_probes_of_a_client_are_answered_and_none_before_a_tenth_of_a_second() {
    let times = [5, 99, 100, 101, 199, 200, 300, 400, 1000];
    for kind in [PacketType::Initial, PacketType::Handshake] {
        let answers = |repair| answers(repair, kind, &times).into_iter().map(|frames| frames > 0);
        let answered = [false, false, true, false, false, true, false, false, false];
        assert!(answers(TAIL).eq(answered), "{kind:?}: {:?}", answers(TAIL).collect::<Vec<_>>());
        assert!(answers(NONE).all(|is_answered| !is_answered), "{kind:?}");
    }
}

#[test]
fn the_copy_of_a_handshake_leaves_before_an_early_answer_fills_the_window() {
    let transport = Arc::new(config(TAIL));
    let server = resuming::server_config(1, &resuming::sessions()).with_transport(Arc::clone(&transport));
    let mut pair = Pair::with_server(1, server);
    let config =
        resuming::client_config(1).with_transport(transport).with_tokens(Arc::new(Tokens::default()));
    let first = pair.connect_with(&config);
    confirmed_at(&mut pair, first);
    pair.run_for(Duration::from_millis(100));
    pair.server.accepted.clear();
    let client = pair.connect_with(&config);
    let id = pair.client.connection(client).open(Direction::Bidirectional).expect("a stream");
    pair.client.connection(client).write(id, &mut pattern_bytes(id, 0, 100)).expect("room");
    // The handshake leaves, and is lost. The answer follows, more than the window has room for.
    pair.doomed = vec![(false, pair.server.sent)];
    pair.run_promptly_until(|pair| !pair.server.accepted.is_empty());
    assert_eq!(pair.server.sent, pair.doomed[0].1 + 1, "the copy has yet to leave");
    let (begun, server) = (pair.now, pair.server.accepted[0]);
    let mut answers = Writers::default();
    answers.add(id, 100_000);
    pair.run_until(|pair| {
        answers.pump(pair.server.connection(server));
        pair.client.has(client, |event| *event == Event::Confirmed)
    });
    // Half a round trip for the copy, a whole one until the client knows that its answer has arrived.
    assert_eq!(pair.now.since(begun), RTT + RTT / 2);
}

/// The sizes of the datagrams that the server has sent since `before`.
fn sizes(pair: &Pair, before: usize) -> Vec<usize> {
    pair.log.iter().skip(before).filter(|sent| !sent.from_client).map(|sent| sent.size).collect()
}

#[test]
fn a_copy_with_a_longer_packet_number_leaves_no_rest() {
    // All leaves before anything is acknowledged: the numbers of the last packets could have one byte, those of their
    // copies have two.
    let mut pair = Pair::new(1, crate::support::defaults(), config_with(200, TAIL));
    (pair.up.delay, pair.down.delay) = (Duration::from_millis(50), Duration::from_millis(50));
    let client = pair.connect();
    confirmed_at(&mut pair, client);
    pair.run_for(Duration::from_secs(1));
    let server = pair.server.accepted[0];
    let (before, copied) = (pair.log.len(), pair.server.connection(server).stats().packets_copied);
    download(&mut pair, client, 138_000);
    let copied = pair.server.connection(server).stats().packets_copied - copied;
    let sizes = sizes(&pair, before);
    assert!(copied > 20, "{copied} copies");
    // The end of the stream and its copy fill no packet.
    assert!(sizes.iter().filter(|size| **size < 1200).count() <= 2, "{sizes:?}");
}

#[test]
fn an_acknowledgement_that_may_wait_leaves_lost_data_no_rest() {
    let (mut pair, client) = pair(1, TAIL);
    confirmed_at(&mut pair, client);
    pair.run_for(Duration::from_millis(200));
    let server = pair.server.accepted[0];
    // The second of eleven packets is lost. The stream may go on, so that nothing is copied.
    pair.doomed = vec![(false, pair.server.sent + 1)];
    let id = pair.server.connection(server).open(Direction::Unidirectional).expect("a stream");
    pair.server.connection(server).write(id, &mut pattern_bytes(id, 0, 12_000)).expect("room");
    // A packet of the client's, which the server is to acknowledge within 25 ms, arrives just before the loss is known.
    pair.run_for(Duration::from_millis(9));
    let before = pair.log.len();
    let asks = pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
    pair.client.connection(client).write(asks, &mut pattern_bytes(asks, 0, 10)).expect("room");
    pair.run_for(Duration::from_millis(15));
    let stats = pair.server.connection(server).stats();
    assert_eq!(stats.packets_lost, 1);
    assert_eq!(sizes(&pair, before), [1200]);
}

#[test]
fn a_tail_whose_last_packets_are_lost_arrives_half_a_round_trip_later() {
    let lost = |repair| {
        let (mut pair, client) = pair(1, repair);
        confirmed_at(&mut pair, client);
        pair.run_for(Duration::from_millis(200));
        let sent = pair.server.sent;
        // 20,000 bytes are 18 datagrams, of which the last four vanish.
        pair.doomed = (14..18).map(|index| (false, sent + index)).collect();
        download(&mut pair, client, 20_000)
    };
    assert!(lost(NONE) > RTT * 2, "{:?}", lost(NONE));
    assert!(lost(TAIL) < RTT, "{:?}", lost(TAIL));
}

#[test]
fn a_clients_request_is_a_tail_too() {
    let lost = |repair| {
        let (mut pair, client) = pair(1, repair);
        confirmed_at(&mut pair, client);
        pair.run_for(Duration::from_millis(200));
        pair.doomed = vec![(true, pair.client.sent)];
        let server = pair.server.accepted[0];
        let id = pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
        let (mut writers, mut readers) = (Writers::default(), Readers::default());
        writers.add(id, 200);
        let begun = pair.now;
        pair.run_until(|pair| {
            writers.pump(pair.client.connection(client));
            let now = pair.now;
            readers.pump(now, pair.server.connection(server), usize::MAX);
            readers.finished.contains_key(&id)
        });
        pair.now.since(begun)
    };
    assert!(lost(NONE) > RTT * 2);
    assert_eq!(lost(TAIL), Duration::from_millis(10 + 3));
}

#[test]
fn a_stream_that_may_go_on_is_not_copied() {
    let (mut pair, client) = pair(1, TAIL);
    confirmed_at(&mut pair, client);
    pair.run_for(Duration::from_millis(200));
    let server = pair.server.accepted[0];
    let before = pair.server.connection(server).stats().packets_copied;
    let id = pair.server.connection(server).open(Direction::Unidirectional).expect("a stream");
    let connection = pair.server.connection(server);
    connection.write(id, &mut pattern_bytes(id, 0, 20_000)).expect("room");
    pair.run_for(Duration::from_millis(500));
    assert_eq!(pair.server.connection(server).stats().packets_copied, before);
}

#[test]
fn copies_keep_to_their_budget_and_leave_nothing_behind_whatever_the_links_do() {
    for seed in 0..SEEDS {
        let (mut pair, client) = pair(seed, TAIL);
        confirmed_at(&mut pair, client);
        let link = Link { loss: 0.1, reorder: 0.1, duplicate: 0.05, ..Link::CLEAN };
        (pair.up, pair.down) = (link, link);
        let mut sent = 0;
        for len in [500, 20_000, 100_000, 300_000] {
            download(&mut pair, client, len);
            sent += len;
        }
        pair.run_for(Duration::from_secs(30));
        let server = pair.server.accepted[0];
        let stats = pair.server.connection(server).stats();
        assert_eq!((stats.in_flight.get(), stats.streams.buffered.get()), (0, 0), "seed {seed}");
        // 32 packets, 16 more for retransmissions, and a datagram of the handshake. A copy with a longer header or an
        // ACK frame leaves a few bytes for a packet of its own.
        let rests = stats.packets_copied * 30;
        let most = (48 * 1200).max(sent * 14 / 100) + 1200 + rests;
        assert!(stats.packets_copied > 3, "seed {seed}");
        assert!(stats.bytes_copied.get() <= most, "seed {seed}: {} bytes of copies", stats.bytes_copied);
        assert_eq!(pair.server.connection(server).open_streams(), 0);
    }
}

#[test]
fn early_data_that_are_rejected_arrive_once_and_whole() {
    for seed in 0..5 {
        let sessions = resuming::sessions();
        let transport = Arc::new(config(TAIL));
        let server =
            |sessions| resuming::server_config(seed, sessions).with_transport(Arc::clone(&transport));
        let mut pair = Pair::with_server(seed, server(&sessions));
        let config = resuming::client_config(seed).with_transport(Arc::clone(&transport));
        let first = pair.connect_with(&config);
        confirmed_at(&mut pair, first);
        pair.run_for(Duration::from_millis(100));
        // A server that has never heard of the session.
        let now = pair.now;
        pair = Pair::with_server(seed, server(&resuming::sessions()));
        pair.now = now;
        (pair.up.loss, pair.down.loss) = (0.1, 0.1);
        let client = pair.connect_with(&config);
        assert!(pair.client.connection(client).may_send_early());
        let id = pair.client.connection(client).open(Direction::Bidirectional).expect("a stream");
        let (mut writers, mut readers) = (Writers::default(), Readers::default());
        writers.add(id, 10_000);
        pair.run_until(|pair| {
            writers.pump(pair.client.connection(client));
            if let Some(server) = pair.server.accepted.last().copied() {
                let now = pair.now;
                readers.pump(now, pair.server.connection(server), usize::MAX);
            }
            readers.finished.get(&id) == Some(&10_000)
        });
        assert!(pair.client.has(client, |event| *event == Event::EarlyDataRejected), "seed {seed}");
    }
}

#[test]
fn a_client_that_moves_in_the_middle_of_a_tail_gets_all_of_it() {
    for seed in 0..SEEDS {
        let (mut pair, client) = pair(seed, TAIL);
        confirmed_at(&mut pair, client);
        pair.run_for(Duration::from_millis(200));
        let server = pair.server.accepted[0];
        let id = pair.server.connection(server).open(Direction::Unidirectional).expect("a stream");
        let (mut writers, mut readers) = (Writers::default(), Readers::default());
        writers.add(id, 30_000);
        writers.pump(pair.server.connection(server));
        // The flight is under way, and copies of it, when the client's old address ceases to be.
        pair.run_for(Duration::from_millis(5 + seed));
        let now = pair.now;
        pair.client.connection(client).migrate(now, Move::Network).expect("a spare ID");
        pair.client.address = "127.0.0.2:1000".parse().expect("an address");
        pair.run_until(|pair| {
            let now = pair.now;
            readers.pump(now, pair.client.connection(client), usize::MAX);
            readers.finished.get(&id) == Some(&30_000)
        });
    }
}

/// A server that repairs, against a peer without manners that keeps its acknowledgements back; it has sent 12,000 bytes.
fn tail_to_rogue() -> (Arena, StreamId, BTreeSet<u64>) {
    let mut arena = Arena::server_for(config(TAIL));
    arena.run_for(Duration::from_millis(100));
    arena.rogue.is_acking = false;
    let before = arena.rogue.received(PacketType::Short).clone();
    let id = arena.connection().open(Direction::Unidirectional).expect("a stream");
    arena.connection().write(id, &mut pattern_bytes(id, 0, 12_000)).expect("room");
    arena.connection().finish(id).expect("open");
    arena.drain();
    let sent = arena.rogue.received(PacketType::Short).difference(&before).copied().collect();
    (arena, id, sent)
}

fn acknowledge(arena: &mut Arena, numbers: &BTreeSet<u64>) {
    let mut ranges: Vec<std::ops::RangeInclusive<u64>> = Vec::new();
    for number in numbers.iter().rev() {
        match ranges.last_mut() {
            Some(range) if *range.start() == number + 1 => *range = *number..=*range.end(),
            _ => ranges.push(*number..=*number),
        }
    }
    arena.send(PacketType::Short, &[Frame::Ack(AckFrame { delay: 0, ranges, ecn: None })]);
}

#[test]
fn a_peer_that_acknowledges_copies_alone_has_acknowledged_the_stream() {
    let (mut arena, id, originals) = tail_to_rogue();
    arena.run_for(Duration::from_millis(15));
    let copies: BTreeSet<u64> = arena
        .rogue
        .received(PacketType::Short)
        .iter()
        .filter(|number| !originals.contains(number))
        .copied()
        .collect();
    let newest = *originals.last().expect("packets");
    let copies: BTreeSet<u64> = copies.into_iter().filter(|number| *number > newest).collect();
    assert_eq!(copies.len(), originals.len(), "each once");
    acknowledge(&mut arena, &copies);
    assert!(arena.has(|event| *event == Event::Stream(StreamEvent::SendComplete(id))));
    // The originals, lost or late, are no news.
    let sent = arena.sent.len();
    arena.run_for(Duration::from_secs(2));
    assert_eq!(arena.connection().stats().in_flight.get(), 0);
    acknowledge(&mut arena, &originals);
    assert!(arena.sent.len() <= sent + 2, "{} datagrams more", arena.sent.len() - sent);
}

#[test]
fn a_peer_that_acknowledges_nothing_gets_no_more_than_the_budget_and_probes() {
    let (mut arena, _, originals) = tail_to_rogue();
    arena.run_for(Duration::from_secs(20));
    let stats = arena.connection().stats();
    assert!(stats.packets_copied <= 32 + 3, "{} copies", stats.packets_copied);
    let probes = 2 * stats.probe_timeouts as usize;
    let sent = arena.rogue.received(PacketType::Short).len();
    assert!(sent <= originals.len() + 32 + probes + 10, "{sent} packets, {probes} of them probes");
}

#[test]
fn a_peer_that_acknowledges_at_once_is_sent_no_copies() {
    let (mut arena, id, originals) = tail_to_rogue();
    acknowledge(&mut arena, &originals);
    assert!(arena.has(|event| *event == Event::Stream(StreamEvent::SendComplete(id))));
    let copied = arena.connection().stats().packets_copied;
    arena.run_for(Duration::from_secs(1));
    assert_eq!(arena.connection().stats().packets_copied, copied);
    arena.connection().close(Time::ZERO, 0, Bytes::new());
}
