//! DATAGRAM frames (RFC 9221): between two of ours, and from a peer that breaks the rules. With quinn-proto: `quinn_interop.rs`.

use std::sync::Arc;

use crate::support::arena::Arena;
use crate::support::{Link, Pair, tls};
use bytes::Bytes;
use posthaste_transport::{
    ConnectionHandle, DatagramOrder, Direction, Event, SendDatagramError, TransportConfig, WhenFull,
};
use posthaste_units::{ByteCount, Duration};
use posthaste_wire::Frame;
use posthaste_wire::packet::PacketType;

const RECEIVE: usize = 1024;

fn config() -> TransportConfig {
    TransportConfig { max_datagram_frame_size: 65_535, ..crate::support::defaults() }
}

/// Both ends take datagrams of these sizes.
fn pair(seed: u64, client: u64, server: u64) -> (Pair, ConnectionHandle, ConnectionHandle) {
    let with = |size| Arc::new(TransportConfig { max_datagram_frame_size: size, ..config() });
    let mut pair = Pair::with_server(seed, tls::server_config(seed).with_transport(with(server)));
    let config = tls::client_config(seed).with_transport(with(client));
    let client = pair.connect_with(&config);
    pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
    let server = *pair.server.accepted.first().expect("the server has accepted");
    (pair, client, server)
}

fn message(index: u64, len: usize) -> Bytes {
    let mut bytes = index.to_be_bytes().to_vec();
    bytes.resize(len.max(8), 7);
    bytes.into()
}

fn index(message: &Bytes) -> u64 {
    u64::from_be_bytes(*message.first_chunk().expect("eight bytes"))
}

#[test]
fn messages_of_all_sizes_go_both_ways() {
    // spec: rfc9221 5 one-frame-each
    let (mut pair, client, server) = pair(1, 65_535, 65_535);
    let max = pair.client.connection(client).max_datagram_size().expect("permitted");
    assert!(max > 1_200 && max < 1_252, "{max}");
    for len in [0, 1, 63, 64, 1_000, max] {
        for is_up in [true, false] {
            let data = Bytes::from(vec![len as u8; len]);
            let from = if is_up { pair.client.connection(client) } else { pair.server.connection(server) };
            from.send_datagram(data.clone(), WhenFull::Refuse).expect("there is room");
            let to = |pair: &mut Pair| {
                let to = if is_up { pair.server.connection(server) } else { pair.client.connection(client) };
                to.receive_datagram()
            };
            let mut got = None;
            pair.run_until(|pair| {
                got = to(pair);
                got.is_some()
            });
            assert_eq!(got, Some(data), "{len}");
            assert_eq!(to(&mut pair), None);
        }
    }
    assert!(pair.server.has(server, |event| *event == Event::DatagramsReceived));
    let stats = pair.client.connection(client).stats().datagrams;
    assert_eq!((stats.sent, stats.received), (6, 6));
    assert_eq!((stats.dropped_unsent, stats.dropped_unread), (0, 0));
}

#[test]
fn what_the_peer_does_not_take_is_refused_here() {
    // spec: rfc9221 3 not-before-parameter, 3 within-parameter
    let (mut pair, client, server) = pair(2, 100, 0);
    let connection = pair.client.connection(client);
    assert_eq!(connection.max_datagram_size(), None);
    let outcome = connection.send_datagram(Bytes::new(), WhenFull::DropOldest);
    assert_eq!(outcome, Err(SendDatagramError::Unsupported));
    // One end's silence does not bind the other.
    let connection = pair.server.connection(server);
    let max = connection.max_datagram_size().expect("permitted");
    assert!((95..=98).contains(&max), "{max}");
    let outcome = connection.send_datagram(Bytes::from(vec![0; max + 1]), WhenFull::DropOldest);
    assert_eq!(outcome, Err(SendDatagramError::TooLarge { max }));
    connection.send_datagram(Bytes::from(vec![0; max]), WhenFull::DropOldest).expect("fits");
    pair.run_until(|pair| pair.client.connection(client).receive_datagram().is_some());
    let now = pair.now;
    pair.server.connection(server).close(now, 0, Bytes::new());
    let outcome = pair.server.connection(server).send_datagram(Bytes::new(), WhenFull::Refuse);
    assert_eq!(outcome, Err(SendDatagramError::Closed));
}

#[test]
fn lost_messages_are_not_sent_again_and_loss_slows_them() {
    // spec: rfc9221 5.2 ack-eliciting, 5.4 congestion-controlled
    let (mut pair, client, server) = pair(3, 65_535, 65_535);
    pair.up = Link { loss: 0.1, delay: Duration::from_millis(20), ..Link::CLEAN };
    let mut next = 0;
    let mut got = Vec::new();
    let (mut flight, mut window) = (ByteCount::ZERO, ByteCount::ZERO);
    pair.run_promptly_until(|pair| {
        let connection = pair.client.connection(client);
        while next < 3_000 && connection.send_datagram(message(next, 1_000), WhenFull::Refuse).is_ok() {
            next += 1;
        }
        let stats = connection.stats();
        (flight, window) = (flight.max(stats.in_flight), window.max(stats.congestion.window));
        while let Some(message) = pair.server.connection(server).receive_datagram() {
            got.push(index(&message));
        }
        let stats = pair.client.connection(client).stats();
        stats.datagrams.sent == 3_000 && stats.in_flight.is_zero()
    });
    assert!(pair.client.has(client, |event| *event == Event::DatagramsUnblocked));
    let stats = pair.client.connection(client).stats();
    assert!(stats.packets_lost > 100, "{stats:?}");
    // A megabyte waits; the window may have been larger between two looks than at either.
    assert!(flight <= window * 2 && window < ByteCount::new(200_000), "{flight} in flight, window {window}");
    assert!(got.is_sorted() && got.windows(2).all(|pair| pair[0] < pair[1]), "none twice");
    let missing = 3_000 - got.len() as u64;
    assert!((150..=600).contains(&missing), "{missing} are missing");
}

#[test]
fn a_slow_reader_loses_the_oldest_and_the_memory_is_bounded() {
    let (mut pair, client, server) = pair(4, 65_535, 65_535);
    let mut next = 0;
    pair.run_promptly_until(|pair| {
        let connection = pair.client.connection(client);
        while next < 5_000 && connection.send_datagram(message(next, 500), WhenFull::Refuse).is_ok() {
            next += 1;
        }
        pair.server.connection(server).stats().datagrams.received == 5_000
    });
    let stats = pair.server.connection(server).stats().datagrams;
    assert_eq!(stats.dropped_unread, 5_000 - RECEIVE as u64);
    let mut got = Vec::new();
    while let Some(message) = pair.server.connection(server).receive_datagram() {
        got.push(index(&message));
    }
    assert_eq!(got, (5_000 - RECEIVE as u64..5_000).collect::<Vec<_>>());
}

/// Bytes of a stream that have left by the time at which the last of many messages has.
fn stream_bytes_before_messages(order: DatagramOrder) -> u64 {
    let (mut pair, client, server) = pair(5, 65_535, 65_535);
    pair.up.delay = Duration::from_millis(10);
    let connection = pair.client.connection(client);
    connection.set_datagram_order(order);
    let stream = connection.open(Direction::Unidirectional).expect("a stream");
    let mut data = Bytes::from(vec![1; 200_000]);
    assert_eq!(connection.write(stream, &mut data), Ok(200_000));
    for index in 0..200 {
        connection.send_datagram(message(index, 1_000), WhenFull::Refuse).expect("there is room");
    }
    pair.run_promptly_until(|pair| {
        let _ = pair.server.connection(server).receive_datagram();
        pair.client.connection(client).stats().datagrams.sent == 200
    });
    pair.client.connection(client).stats().streams.sent.get()
}

#[test]
fn messages_go_before_streams_or_after_them() {
    let first = stream_bytes_before_messages(DatagramOrder::BeforeStreams);
    let last = stream_bytes_before_messages(DatagramOrder::AfterStreams);
    // Streams have what messages leave of a packet and of the window.
    assert!(first < 100_000, "{first} bytes of the stream left before the messages");
    assert_eq!(last, 200_000);
}

#[test]
fn frames_that_were_not_announced_or_are_too_large_close() {
    // spec: rfc9221 3 unannounced-closes, 3 oversized-closes
    for (announced, len, is_taken) in
        [(0, 0, false), (0, 50, false), (51, 50, true), (50, 50, false), (1, 0, true)]
    {
        let config = TransportConfig { max_datagram_frame_size: announced, ..crate::support::defaults() };
        let mut arena = Arena::server_for(config);
        arena.send(PacketType::Short, &[Frame::Datagram(Bytes::from(vec![1; len]))]);
        let expected = (!is_taken).then_some((0x0a, 0x30));
        assert_eq!(arena.close_code(), expected, "{len} bytes where {announced} were announced");
        if is_taken {
            assert_eq!(arena.connection().receive_datagram().map(|message| message.len()), Some(len));
        }
    }
}

#[test]
fn a_flood_fills_no_more_than_its_queue() {
    let mut arena = Arena::server_for(config());
    for _ in 0..200 {
        let frames: Vec<Frame> = (0..200).map(|_| Frame::Datagram(Bytes::new())).collect();
        arena.send(PacketType::Short, &frames);
    }
    assert_eq!(arena.close_code(), None);
    let stats = arena.connection().stats().datagrams;
    assert_eq!((stats.received, stats.dropped_unread), (40_000, 40_000 - RECEIVE as u64));
    let events = arena.events.iter().filter(|(_, event)| *event == Event::DatagramsReceived).count();
    assert!(events <= 200, "one event for each packet at most: {events}");
}
