//! Handshakes and transfers in memory, over clean and poor links.

use std::sync::Arc;

use crate::support::transfer::{Readers, Writers};
use crate::support::{Link, Pair, tls};
use bytes::Bytes;
use posthaste_transport::{
    CloseReason, DatagramInfo, Direction, Event, StreamEvent, TransportConfig, Version,
};
use posthaste_units::{ByteCount, Duration};

/// The client opens a stream and sends `len` bytes; the server checks them. Returns the virtual seconds it took.
fn upload(pair: &mut Pair, len: u64) -> f64 {
    let (client, server) = pair.establish();
    let started = pair.now;
    let id = pair.client.connection(client).open(Direction::Bidirectional).expect("a stream");
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    writers.add(id, len);
    pair.run_until(|pair| {
        writers.pump(pair.client.connection(client));
        let now = pair.now;
        readers.pump(now, pair.server.connection(server), usize::MAX);
        !readers.finished.is_empty()
    });
    assert_eq!(readers.finished.get(&id), Some(&len));
    pair.now.since(started).as_secs_f64()
}

#[test]
fn handshake_confirms_at_both_ends_in_two_round_trips() {
    // spec: rfc9001 4.1.2 done-at-once
    let mut pair = Pair::default();
    let (client, server) = pair.establish();
    // One round trip for the handshake, half of one for HANDSHAKE_DONE: 30 ms and no timer on the way.
    assert_eq!(pair.now.as_nanos(), Duration::from_millis(40).as_nanos());
    assert_eq!(pair.client.connection(client).alpn(), Some(tls::ALPN));
    assert_eq!(pair.server.connection(server).server_name(), Some("localhost"));
    assert_eq!(pair.client.connection(client).stats().probe_timeouts, 0);
}

#[test]
fn a_megabyte_arrives_whole_over_a_clean_link() {
    let mut pair = Pair::default();
    upload(&mut pair, 1_000_000);
    let stats = pair.client.connection(pair.client.events[0].0).stats();
    assert_eq!(stats.packets_lost, 0, "{stats:?}");
}

#[test]
fn data_arrives_whole_over_links_that_lose_reorder_duplicate_and_corrupt() {
    // spec: rfc9000 2.2 ordered-delivery, 2.2 bytes-never-change
    let bad = Link {
        loss: 0.05,
        reorder: 0.05,
        duplicate: 0.05,
        corrupt: 0.02,
        delay: Duration::from_millis(20),
        ..Link::CLEAN
    };
    for seed in 0..20 {
        let mut pair = Pair::new(seed, crate::support::defaults(), crate::support::defaults());
        (pair.up, pair.down) = (bad, bad);
        upload(&mut pair, 300_000);
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let run = |seed| {
        let mut pair = Pair::new(seed, crate::support::defaults(), crate::support::defaults());
        pair.up.loss = 0.03;
        pair.down.reorder = 0.1;
        upload(&mut pair, 200_000);
        (pair.trace_hash, pair.now)
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).0, run(6).0, "another seed must give another trace");
}

#[test]
fn a_certificate_longer_than_the_amplification_limit_allows_gets_through() {
    let mut pair = Pair::with_server(1, tls::server_config_with_names(1, 400));
    let client = pair.connect_with(&tls::client_config_for(1, 400, &[tls::ALPN]));
    pair.capture = Some(Vec::new());
    pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
    // Until the client's second flight the server may send three times what it received (RFC 9000 section 8.1).
    let capture = pair.capture.take().expect("set above");
    let first_flight: usize =
        capture.iter().take_while(|(from_client, _)| *from_client).map(|(_, data)| data.len()).sum();
    let answer = capture
        .iter()
        .skip_while(|(from_client, _)| *from_client)
        .take_while(|(from_client, _)| !*from_client);
    let answered: usize = answer.map(|(_, data)| data.len()).sum();
    assert!(answered <= 3 * first_flight, "{answered} bytes for {first_flight}");
    assert!(answered > 2 * first_flight, "the certificate must be what fills the limit: {answered}");
    let server = pair.server.accepted[0];
    let waited = pair.server.connection(server).stats().waited;
    assert!(waited.validation >= Duration::from_millis(20), "a round trip: {waited:?}");
}

#[test]
fn a_hundred_streams_both_ways_at_once() {
    let mut pair = Pair::default();
    pair.down.loss = 0.02;
    let (client, server) = pair.establish();
    let (mut up, mut down) = (Writers::default(), Writers::default());
    let (mut at_server, mut at_client) = (Readers::default(), Readers::default());
    for _ in 0..100 {
        let id = pair.client.connection(client).open(Direction::Bidirectional).expect("a stream");
        up.add(id, 5_000);
        at_client.add(id);
    }
    let mut answered = std::collections::BTreeSet::new();
    pair.run_until(|pair| {
        up.pump(pair.client.connection(client));
        let now = pair.now;
        at_server.pump(now, pair.server.connection(server), 1000);
        for id in at_server.finished.keys() {
            if answered.insert(*id) {
                down.add(*id, 20_000);
            }
        }
        down.pump(pair.server.connection(server));
        at_client.pump(now, pair.client.connection(client), usize::MAX);
        at_client.finished.len() == 100
    });
    assert!(at_server.finished.values().all(|len| *len == 5_000));
    assert!(at_client.finished.values().all(|len| *len == 20_000));
    // Both ends forget finished streams.
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.client.connection(client).open_streams(), 0);
    assert_eq!(pair.server.connection(server).open_streams(), 0);
}

#[test]
fn a_close_reaches_the_peer_with_its_code_and_reason() {
    let mut pair = Pair::default();
    let (client, server) = pair.establish();
    let now = pair.now;
    pair.client.connection(client).close(now, 77, "enough"[..].into());
    pair.run_for(Duration::from_secs(5));
    let expected = CloseReason::PeerApplication { error_code: 77, reason: "enough".into() };
    assert!(pair.server.has(server, |event| *event == Event::Closed(expected.clone())));
    for host in [&pair.client, &pair.server] {
        assert!(host.events.iter().any(|(_, event)| *event == Event::Drained));
        assert_eq!(host.endpoint.connections(), 0);
        assert_eq!(host.endpoint.next_timeout(), None, "nothing is left to do");
    }
}

#[test]
fn a_reader_that_closes_at_the_end_acknowledges_the_end() {
    let mut pair = Pair::default();
    let (client, server) = pair.establish();
    let id = pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    writers.add(id, 3_000);
    pair.run_promptly_until(|pair| {
        writers.pump(pair.client.connection(client));
        let (now, reader) = (pair.now, pair.server.connection(server));
        readers.pump(now, reader, usize::MAX);
        if readers.finished.contains_key(&id) {
            reader.close(now, 0, Bytes::new());
        }
        reader.is_closed()
    });
    pair.run_for(Duration::from_millis(100));
    let events: Vec<&Event> = pair.client.events.iter().map(|(_, event)| event).collect();
    let acknowledged =
        events.iter().position(|event| **event == Event::Stream(StreamEvent::SendComplete(id)));
    let closed = events.iter().position(|event| matches!(event, Event::Closed(_)));
    assert!(acknowledged.is_some() && acknowledged < closed, "{events:?}");
}

#[test]
fn a_silent_peer_ends_the_connection_at_the_idle_timeout() {
    let config =
        TransportConfig { max_idle_timeout: Duration::from_secs(5).into(), ..crate::support::defaults() };
    let mut pair = Pair::new(1, crate::support::defaults(), config);
    let (client, _) = pair.establish();
    let at = pair.now;
    pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Closed(CloseReason::IdleTimeout)));
    let waited = pair.now.since(at);
    assert!((5.0..5.1).contains(&waited.as_secs_f64()), "{waited:?}");
}

#[test]
fn keep_alive_outlives_the_idle_timeout() {
    let idle = std::time::Duration::from_secs(5);
    let server = TransportConfig { max_idle_timeout: idle, ..crate::support::defaults() };
    let mut pair = Pair::new(1, crate::support::defaults(), server);
    let keep_alive =
        TransportConfig { keep_alive: Some(std::time::Duration::from_secs(2)), ..crate::support::defaults() };
    let client = pair.connect_with(&tls::client_config(1).with_transport(keep_alive.into()));
    pair.run_for(Duration::from_secs(60));
    assert!(!pair.client.connection(client).is_closed());
}

#[test]
fn a_slow_reader_holds_the_sender_at_its_window() {
    // spec: rfc9000 4.1 sender-keeps-limits, 2.2 only-within-credit
    let mut pair = Pair::default();
    let (client, server) = pair.establish();
    let id = pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
    let mut writers = Writers::default();
    writers.add(id, 50_000_000);
    let until = pair.now + Duration::from_secs(10);
    pair.run_until(|pair| {
        writers.pump(pair.client.connection(client));
        pair.now >= until || pair.next_time().is_none_or(|at| at > until)
    });
    let received = pair.server.connection(server).stats().received.bytes;
    let granted = crate::support::defaults().profile.stream_credit().initial_window();
    assert!(
        received >= granted && received < granted + ByteCount::new(granted.get() / 4),
        "{received:?} {granted:?}"
    );
}

#[test]
fn keys_are_updated_by_either_end_while_data_flows() {
    // spec: rfc9001 6.4 keys-never-older
    let mut pair = Pair::default();
    (pair.up.loss, pair.down.loss) = (0.02, 0.02);
    pair.up.reorder = 0.05;
    let (client, server) = pair.establish();
    let id = pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    writers.add(id, 2_000_000);
    let mut turn = 0_u64;
    pair.run_until(|pair| {
        turn += 1;
        if turn.is_multiple_of(7) {
            let _ = pair.client.connection(client).update_keys();
        }
        if turn.is_multiple_of(11) {
            let _ = pair.server.connection(server).update_keys();
        }
        writers.pump(pair.client.connection(client));
        let now = pair.now;
        readers.pump(now, pair.server.connection(server), usize::MAX);
        !readers.finished.is_empty()
    });
    assert!(pair.client.connection(client).key_updates() >= 3);
    let (a, b) = (pair.client.connection(client).key_updates(), pair.server.connection(server).key_updates());
    assert!(a.abs_diff(b) <= 1, "{a} and {b}");
}

#[test]
fn datagrams_from_elsewhere_do_not_raise_the_amplification_limit() {
    // spec: rfc9000 8.1 all-bytes-count
    let mut pair = Pair::with_server(1, tls::server_config_with_names(1, 400));
    pair.capture = Some(Vec::new());
    pair.connect_with(&tls::client_config_for(1, 400, &[tls::ALPN]));
    pair.drain();
    let flight: Vec<Vec<u8>> = pair.capture.iter().flatten().map(|(_, data)| data.clone()).collect();
    pair.up.loss = 1.0; // The client's first flight is under way; nothing of what follows arrives.
    let elsewhere =
        DatagramInfo { remote: "127.0.0.1:2000".parse().expect("an address"), local_ip: None, ecn: None };
    for _ in 0..100 {
        pair.run_for(Duration::from_millis(100));
        for data in &flight {
            pair.server.endpoint.on_datagram(pair.now, &elsewhere, data[..].into());
        }
    }
    let received: usize = flight.iter().map(Vec::len).sum();
    let capture = pair.capture.take().expect("set above");
    let sent: usize =
        capture.iter().filter(|(from_client, _)| !*from_client).map(|(_, data)| data.len()).sum();
    assert!((received..=3 * received).contains(&sent), "{sent} bytes sent for {received}");
}

#[test]
fn version_2_transfers_as_version_1_does() {
    // spec: rfc9368 2.3 from-clients-list, 3 chosen-is-available
    // spec: rfc9369 3 as-version-1, 4 several-versions, 4.1 crypto-in-negotiated, 4.1 rest-in-negotiated
    let mut pair = Pair::default();
    pair.capture = Some(Vec::new());
    let client = pair.connect_with(&tls::client_config(1).with_version(Version::V2));
    pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
    let id = pair.client.connection(client).open(Direction::Bidirectional).expect("a stream");
    let server = pair.server.accepted[0];
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    writers.add(id, 100_000);
    pair.run_until(|pair| {
        writers.pump(pair.client.connection(client));
        let now = pair.now;
        readers.pump(now, pair.server.connection(server), usize::MAX);
        !readers.finished.is_empty()
    });
    pair.client.connection(client).update_keys().expect("confirmed");
    pair.client.connection(client).ping();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(
        pair.server.connection(server).key_updates(),
        1,
        "the labels of version 2 hold for updates too"
    );
    for (_, datagram) in pair.capture.iter().flatten().filter(|(_, datagram)| datagram[0] & 0x80 != 0) {
        assert_eq!(datagram[1..5], 0x6b33_43cf_u32.to_be_bytes());
    }
}

#[test]
fn fixed_bits_are_random_between_ends_that_allow_it_and_set_else() {
    // spec: rfc9287 3 cleared-accepted, 3.1 servers-wait, 3.1 never-unknown
    // spec: rfc9287 3.1 no-early-clearing, 3.1 unpredictable
    for grease in [true, false] {
        let server = TransportConfig { grease, ..crate::support::defaults() };
        let mut pair = Pair::new(3, crate::support::defaults(), server);
        pair.capture = Some(Vec::new());
        upload(&mut pair, 300_000);
        let shorts = pair.capture.iter().flatten().filter(|(_, datagram)| datagram[0] & 0x80 == 0);
        let (set, clear): (Vec<bool>, Vec<bool>) =
            shorts.map(|(_, datagram)| datagram[0] & 0x40 != 0).partition(|is_set| *is_set);
        assert!(set.len() > 50, "{}", set.len());
        assert_eq!(clear.len() > 50, grease, "{}", clear.len());
        let mut longs = pair.capture.iter().flatten().filter(|(_, datagram)| datagram[0] & 0x80 != 0);
        assert!(longs.all(|(_, datagram)| datagram[0] & 0x40 != 0), "nothing is known of the peer yet");
    }
}

#[test]
fn a_server_does_not_rely_on_what_a_client_permitted_in_an_earlier_connection() {
    // spec: rfc9287 3.1 servers-forget, 3.1 never-unknown
    let mut pair = Pair::new(3, crate::support::defaults(), crate::support::defaults());
    let (first, _) = pair.establish();
    let now = pair.now;
    pair.client.connection(first).close(now, 0, bytes::Bytes::new());
    pair.run_for(Duration::from_secs(5));
    let strict = TransportConfig { grease: false, ..crate::support::defaults() };
    pair.capture = Some(Vec::new());
    let client = pair.connect_with(&tls::client_config(3).with_transport(strict.into()));
    pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
    for _ in 0..100 {
        pair.client.connection(client).ping();
        pair.run_for(Duration::from_millis(100));
    }
    let answers: Vec<u8> = pair
        .capture
        .iter()
        .flatten()
        .filter(|(from_client, datagram)| !*from_client && datagram[0] & 0x80 == 0)
        .map(|(_, datagram)| datagram[0])
        .collect();
    assert!(answers.len() > 50, "{}", answers.len());
    assert!(answers.iter().all(|first| first & 0x40 != 0));
}

#[test]
fn a_peer_that_is_asked_for_few_acks_sends_few_and_all_the_same_everything_arrives() {
    let profile = |name: &str| posthaste_schemes::named(name).expect("a built-in profile");
    let acks = |client: &str, loss: f64| {
        let mut pair = Pair::default();
        (pair.up.loss, pair.down.loss) = (loss, loss);
        let transport = TransportConfig {
            profile: profile(client),
            max_datagram_size: 1252,
            mtu_discovery: false,
            ..crate::support::defaults()
        };
        let config = tls::client_config(1).with_transport(Arc::new(transport));
        let client = pair.connect_with(&config);
        pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
        let id = pair.client.connection(client).open(Direction::Bidirectional).expect("a stream");
        let server = pair.server.accepted[0];
        let (mut writers, mut readers) = (Writers::default(), Readers::default());
        writers.add(id, 5_000_000);
        pair.run_until(|pair| {
            writers.pump(pair.client.connection(client));
            let now = pair.now;
            readers.pump(now, pair.server.connection(server), usize::MAX);
            !readers.finished.is_empty()
        });
        pair.client.connection(client).stats().acks_received
    };
    // Losses end slow start, after which the request goes out.
    let (usual, few) = (acks("cubic", 0.005), acks("cubic-few-acks", 0.005));
    assert!(few * 2 < usual, "{few} of {usual} acks");
}
