//! Address validation: Retry and `NEW_TOKEN`, from both ends (RFC 9000 section 8.1).

use std::sync::Arc;

use crate::support::resuming::Tokens;
use crate::support::{Link, Pair, tls};
use bytes::{Bytes, BytesMut};
use posthaste_transport::{
    ClientConfig, CloseReason, DatagramInfo, Event, RetryPolicy, Secret, ServerConfig, TransportErrorCode,
    Version,
};
use posthaste_units::{Duration, Time};
use posthaste_wire::packet::{Header, PacketType, split};

fn server(retry: RetryPolicy) -> ServerConfig {
    ServerConfig { retry, secret: Some(Secret([9; 32])), ..tls::server_config(1) }
}

fn pair(retry: RetryPolicy) -> Pair {
    Pair::with_server(1, server(retry))
}

/// A client that keeps its tokens there.
fn client(tokens: &Arc<Tokens>) -> ClientConfig {
    tls::client_config(1).with_tokens(Arc::clone(tokens) as _)
}

/// Connects, exchanges the handshake and closes; how long the handshake took.
fn visit(pair: &mut Pair, config: &ClientConfig) -> Duration {
    let begun = pair.now;
    let handle = pair.connect_with(config);
    pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Connected));
    let took = pair.now.since(begun);
    pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
    pair.run_for(Duration::from_millis(100));
    let now = pair.now;
    pair.client.connection(handle).close(now, 0, Bytes::new());
    pair.run_for(Duration::from_secs(5));
    took
}

/// The kinds of the packets that begin the datagrams sent so far, with who sent them.
fn kinds(pair: &Pair) -> Vec<(bool, PacketType)> {
    let datagrams = pair.capture.iter().flatten();
    let kind = |(from_client, data): &(bool, Vec<u8>)| {
        let packet = split(BytesMut::from(&data[..]), 8).next()?.ok()?;
        Some((*from_client, packet.header.packet_type()))
    };
    datagrams.filter_map(kind).collect()
}

#[test]
fn a_retry_costs_one_round_trip_and_validates_the_address() {
    // spec: rfc9369 4.1 retry-in-original, 4.1 token-in-original, 4.1 retry-parameters
    // spec: rfc9000 8.1.2 retry-token-repeated, 17.2.5.1 retry-id-used, 17.2.5.1 one-retry-a-datagram
    for version in [Version::V1, Version::V2] {
        let mut pair = pair(RetryPolicy::Always);
        pair.capture = Some(Vec::new());
        let took = visit(&mut pair, &tls::client_config(1).with_version(version));
        assert_eq!(took, Duration::from_millis(40), "two round trips of 20 ms");
        let kinds = kinds(&pair);
        assert_eq!(
            kinds[..3],
            [(true, PacketType::Initial), (false, PacketType::Retry), (true, PacketType::Initial)]
        );
        let stats = pair.server.endpoint.stats();
        assert_eq!((stats.retries_sent, stats.accepted, stats.validated_by_token), (1, 1, 1));
    }
}

#[test]
fn packet_numbers_go_on_after_a_retry() {
    let mut pair = pair(RetryPolicy::Always);
    let handle = pair.connect();
    pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
    // Both Initials carried the same bytes of the handshake; the server has seen only the second packet.
    let stats = pair.client.connection(handle).stats();
    assert_eq!(stats.packets_lost, 0, "what the Retry answered was not lost");
    assert_eq!(stats.probe_timeouts, 0);
}

#[test]
fn a_server_keeps_nothing_of_a_client_until_it_has_answered_the_retry() {
    let mut pair = pair(RetryPolicy::Always);
    for _ in 0..100 {
        pair.connect();
    }
    // The Retries never arrive: as many false addresses.
    pair.down = Link { loss: 1.0, ..Link::CLEAN };
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.server.endpoint.connections(), 0);
    assert_eq!(pair.server.endpoint.stats().accepted, 0);
    // At most 32 answers wait at a time.
    assert!(pair.server.endpoint.stats().retries_sent >= 32);
    assert_eq!(pair.server.endpoint.next_timeout(), None);
}

#[test]
fn a_retry_is_asked_for_only_while_many_handshakes_are_in_progress() {
    let mut config = server(RetryPolicy::UnderLoad { handshakes: 8 });
    config.max_pending_handshakes = 12;
    let mut pair = Pair::with_server(1, config);
    pair.down = Link { loss: 1.0, ..Link::CLEAN };
    for _ in 0..8 {
        pair.connect();
    }
    pair.run_for(Duration::from_millis(15));
    let stats = pair.server.endpoint.stats();
    assert_eq!((stats.accepted, stats.retries_sent), (8, 0));
    // From then on none gets in without a proof; those who have one still do, up to the cap.
    pair.down = Link::CLEAN;
    for _ in 0..20 {
        pair.connect();
    }
    pair.run_for(Duration::from_millis(15));
    let stats = pair.server.endpoint.stats();
    assert_eq!((stats.accepted, stats.retries_sent), (8, 20));
    pair.run_for(Duration::from_secs(30));
    let stats = pair.server.endpoint.stats();
    assert!(stats.validated_by_token >= 4, "{stats:?}");
    assert!(stats.accepted >= 12, "{stats:?}");
}

#[test]
fn a_token_of_an_earlier_connection_spares_the_retry() {
    // spec: rfc9000 8.1.3 token-checked, 8.1.3 kept-token-in-all, 8.1.1 token-kinds-differ
    let tokens = Arc::new(Tokens::default());
    let mut pair = pair(RetryPolicy::Always);
    for visits in 0..3 {
        let took = visit(&mut pair, &client(&tokens));
        let expected = if visits == 0 { 40 } else { 20 };
        assert_eq!(took, Duration::from_millis(expected), "visit {visits}");
        assert_eq!(tokens.all().len(), 1, "one was used, one was given");
    }
    let stats = pair.server.endpoint.stats();
    assert_eq!((stats.retries_sent, stats.validated_by_token), (1, 3));
}

#[test]
fn a_client_that_has_moved_gets_a_token_for_where_it_is() {
    let tokens = Arc::new(Tokens::default());
    let mut pair = pair(RetryPolicy::Always);
    let handle = pair.connect_with(&client(&tokens));
    pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
    pair.run_for(Duration::from_millis(100));
    assert_eq!(tokens.all().len(), 1);
    let now = pair.now;
    pair.client.address = "10.9.8.7:1000".parse().expect("an address");
    pair.client.connection(handle).migrate(now, posthaste_transport::Move::Network).expect("a spare ID");
    pair.run_for(Duration::from_millis(200));
    let all = tokens.all();
    assert_eq!(all.len(), 2);
    pair.client.connection(handle).close(now, 0, Bytes::new());
    pair.run_for(Duration::from_secs(5));
    // The first is of no use there, the second is.
    for (token, is_good) in [(&all[0], false), (&all[1], true)] {
        tokens.set(token.clone());
        let before = pair.server.endpoint.stats().retries_sent;
        visit(&mut pair, &client(&tokens));
        assert_eq!(pair.server.endpoint.stats().retries_sent == before, is_good);
    }
}

#[test]
fn tokens_are_unique_and_not_empty() {
    // spec: rfc9000 8.1.3 token-unique, 19.7 token-not-empty
    let tokens = Arc::new(Tokens::default());
    let config = ServerConfig { new_tokens: 4, ..server(RetryPolicy::Never) };
    let mut pair = Pair::with_server(1, config);
    for _ in 0..10 {
        visit(&mut pair, &client(&tokens));
    }
    let all = tokens.all();
    let unique: std::collections::BTreeSet<Bytes> = all.iter().cloned().collect();
    assert_eq!((all.len(), unique.len()), (31, 31), "four a visit, and one is used for each but the first");
    assert!(all.iter().all(|token| !token.is_empty()));
}

#[test]
fn retries_name_the_server_anew() {
    // spec: rfc9000 17.2.5.1 retry-new-id
    let mut pair = pair(RetryPolicy::Always);
    pair.capture = Some(Vec::new());
    visit(&mut pair, &tls::client_config(1));
    let header = |datagram: &[u8]| {
        split(BytesMut::from(datagram), 8).next().expect("a packet").expect("a good one").header
    };
    let capture = pair.capture.take().expect("set");
    let first = header(&capture[0].1);
    let retry = capture.iter().find(|(from_client, _)| !from_client).map(|(_, data)| header(data));
    let retry = retry.expect("an answer");
    assert!(matches!(retry, Header::Retry { .. }));
    assert_ne!(retry.scid(), Some(first.dcid()));
}

/// RFC 8879: what a chain repeats does not cost a round trip.
#[test]
fn a_compressed_certificate_fits_into_what_an_unknown_client_may_be_sent() {
    let mut pair = Pair::with_server(1, tls::server_config_with_names(1, 200));
    let config = tls::client_config_for(1, 200, &[tls::ALPN]);
    let mut tls = rustls::ClientConfig::clone(&config.tls);
    // Sessions would spare the certificate.
    tls.resumption = rustls::client::Resumption::disabled();
    for (decompressors, took) in [(&[][..], 40), (rustls::compress::default_cert_decompressors(), 20)] {
        tls.cert_decompressors = decompressors.to_vec();
        let config = ClientConfig { tls: Arc::new(tls.clone()), ..config.clone() };
        assert_eq!(visit(&mut pair, &config), Duration::from_millis(took));
    }
}

#[test]
fn a_known_client_is_not_bound_by_the_amplification_limit() {
    let tokens = Arc::new(Tokens::default());
    // Six datagrams of certificate: without validation the fourth must wait.
    let mut config = tls::server_config_with_names(1, 200);
    config.secret = Some(Secret([9; 32]));
    let mut pair = Pair::with_server(1, config);
    let config = tls::client_config_for(1, 200, &[tls::ALPN]).with_tokens(Arc::clone(&tokens) as _);
    // Sessions would spare the certificate.
    let mut full = rustls::ClientConfig::clone(&config.tls);
    full.resumption = rustls::client::Resumption::disabled();
    let config = ClientConfig { tls: Arc::new(full), ..config };
    assert_eq!(visit(&mut pair, &config), Duration::from_millis(40));
    assert_eq!(visit(&mut pair, &config), Duration::from_millis(20));
}

#[test]
fn a_token_outlives_the_server_that_gave_it_if_the_secret_does() {
    let tokens = Arc::new(Tokens::default());
    let mut first = pair(RetryPolicy::Always);
    visit(&mut first, &client(&tokens));
    let mut second = Pair::with_server(2, server(RetryPolicy::Always));
    second.now = first.now;
    visit(&mut second, &client(&tokens));
    assert_eq!(second.server.endpoint.stats().retries_sent, 0);
    let mut stranger = ServerConfig { secret: Some(Secret([10; 32])), ..server(RetryPolicy::Always) };
    stranger.clock_offset = std::time::Duration::from_secs(1_800_000_000);
    let mut third = Pair::with_server(3, stranger);
    assert_eq!(
        visit(&mut third, &client(&tokens)),
        Duration::from_millis(40),
        "its token is as good as none"
    );
}

#[test]
fn a_token_is_good_once_from_one_address_and_for_a_time() {
    // spec: rfc9000 8.1.4 token-names-address, 8.1.4 token-sealed, 8.1.4 replay-limited
    let tokens = Arc::new(Tokens::default());
    let mut pair = pair(RetryPolicy::Always);
    let retries = |pair: &Pair| pair.server.endpoint.stats().retries_sent;
    visit(&mut pair, &client(&tokens));
    let token = tokens.all()[0].clone();
    assert_eq!(retries(&pair), 1);
    visit(&mut pair, &client(&tokens));
    assert_eq!(retries(&pair), 1, "the first use");
    // What follows is a full handshake with a Retry each time: nobody is turned away for an old token.
    tokens.set(token);
    visit(&mut pair, &client(&tokens));
    assert_eq!(retries(&pair), 2, "a second use");
    pair.client.address = "127.0.0.2:1000".parse().expect("an address");
    visit(&mut pair, &client(&tokens));
    assert_eq!(retries(&pair), 3, "from another address");
    pair.client.address = "127.0.0.2:1001".parse().expect("an address");
    visit(&mut pair, &client(&tokens));
    assert_eq!(retries(&pair), 3, "from another port");
    pair.run_for(Duration::from_secs(25 * 3600));
    visit(&mut pair, &client(&tokens));
    assert_eq!(retries(&pair), 4, "a day later");
    for cut in [1, 10, 40] {
        let mut token = tokens.all()[0].to_vec();
        token.truncate(token.len() - cut);
        tokens.set(token.into());
        visit(&mut pair, &client(&tokens));
    }
    let mut forged = tokens.all()[0].to_vec();
    forged[30] ^= 1;
    tokens.set(forged.into());
    visit(&mut pair, &client(&tokens));
    assert_eq!(retries(&pair), 8, "cut or forged");
}

#[test]
fn a_payload_comes_back_with_the_token() {
    // spec: rfc9000 19.7 client-sends-none
    let tokens = Arc::new(Tokens::default());
    let mut pair = Pair::with_server(1, ServerConfig { new_tokens: 0, ..server(RetryPolicy::Never) });
    let first = pair.connect_with(&client(&tokens));
    pair.run_until(|pair| pair.client.has(first, |event| *event == Event::Confirmed));
    let at_server = pair.server.accepted[0];
    assert_eq!(pair.server.connection(at_server).token_payload(), None);
    assert!(pair.server.connection(at_server).offer_token(&[0; 65]).is_err(), "too long");
    pair.server.connection(at_server).offer_token(&[5; 64]).expect("a good payload");
    assert!(pair.client.connection(first).offer_token(b"").is_err(), "clients give none");
    pair.run_for(Duration::from_millis(100));
    pair.connect_with(&client(&tokens));
    pair.run_for(Duration::from_millis(100));
    let again = pair.server.accepted[1];
    assert_eq!(pair.server.connection(again).token_payload(), Some(&[5; 64][..]));
}

#[test]
fn lost_tokens_are_sent_again() {
    let tokens = Arc::new(Tokens::default());
    let config = ServerConfig { new_tokens: 4, ..server(RetryPolicy::Never) };
    for seed in 0..20 {
        let mut pair = Pair::with_server(seed, config.clone());
        (pair.up, pair.down) = (Link { loss: 0.3, ..Link::CLEAN }, Link { loss: 0.3, ..Link::CLEAN });
        let before = tokens.all().len();
        pair.connect_with(&client(&tokens));
        pair.run_until(|_| tokens.all().len() >= before + 3);
        // One more where the connection lives long enough: a token was used to begin it.
    }
}

/// A Retry as somebody on the path may see it, and what the client does with it.
#[test]
fn a_client_takes_one_retry_that_answers_its_own_initial() {
    // spec: rfc9000 17.2.5.2 one-retry, 17.2.5.2 late-retry-dropped, 17.2.5.2 retry-tag-checked
    let mut pair = pair(RetryPolicy::Always);
    pair.capture = Some(Vec::new());
    let handle = pair.connect();
    pair.step();
    let retry = loop {
        let found = pair.capture.iter().flatten().find(|(from_client, _)| !from_client);
        if let Some((_, datagram)) = found {
            break datagram.clone();
        }
        pair.step();
    };
    let info = DatagramInfo { remote: pair.server.address, local_ip: None, ecn: None };
    let initials = |pair: &mut Pair| pair.client.connection(handle).stats().packets_sent;
    let before = initials(&mut pair);
    let now = pair.now;
    for at in 0..retry.len() {
        let mut forged = retry.clone();
        forged[at] ^= 0x40;
        pair.client.endpoint.on_datagram(now, &info, BytesMut::from(&forged[..]));
        pair.client.endpoint.on_datagram(now, &info, BytesMut::from(&retry[..at]));
    }
    pair.drain();
    assert_eq!(initials(&mut pair), before, "forged and cut Retries change nothing");
    pair.client.endpoint.on_datagram(now, &info, BytesMut::from(&retry[..]));
    pair.drain();
    let after = initials(&mut pair);
    assert!(after > before);
    pair.client.endpoint.on_datagram(now, &info, BytesMut::from(&retry[..]));
    pair.drain();
    assert_eq!(initials(&mut pair), after, "a second Retry is ignored");
    pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
    pair.client.endpoint.on_datagram(now, &info, BytesMut::from(&retry[..]));
    assert!(!pair.client.has(handle, |event| matches!(event, Event::Closed(_))));
}

#[test]
fn a_client_whose_retry_token_does_not_hold_is_told_so() {
    // The NAT gives the client another port between its two Initials, or its answer comes too late.
    let cases: [(&str, Duration); 2] =
        [("127.0.0.1:1001", Duration::ZERO), ("127.0.0.1:1000", Duration::from_secs(16))];
    for (address, wait) in cases {
        let mut pair = pair(RetryPolicy::Always);
        pair.capture = Some(Vec::new());
        let handle = pair.connect();
        pair.run_until(|pair| pair.server.endpoint.stats().retries_sent == 1);
        pair.client.address = address.parse().expect("an address");
        if !wait.is_zero() {
            pair.up = Link { delay: wait, ..Link::CLEAN };
        }
        pair.run_until(|pair| pair.client.has(handle, |event| matches!(event, Event::Closed(_))));
        let is_told = |event: &Event| {
            matches!(event, Event::Closed(CloseReason::PeerTransport { code, .. })
                if *code == TransportErrorCode::INVALID_TOKEN)
        };
        assert!(pair.client.has(handle, is_told), "{:?}", pair.client.events);
        assert_eq!(pair.server.endpoint.connections(), 0);
        assert_eq!(pair.server.endpoint.stats().accepted, 0);
        assert!(pair.server.endpoint.stats().invalid_tokens >= 1);
    }
}

#[test]
fn the_handshake_with_retry_completes_over_bad_links() {
    // spec: rfc9000 13.3 done-until-acked
    let bad = Link { loss: 0.2, reorder: 0.2, duplicate: 0.1, corrupt: 0.05, ..Link::CLEAN };
    for seed in 0..60 {
        let mut pair = Pair::with_server(seed, server(RetryPolicy::Always));
        (pair.up, pair.down) = (bad, bad);
        let handle = pair.connect();
        pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
    }
}

#[test]
fn a_client_shows_a_servers_token_to_no_other_and_in_no_other_version() {
    // spec: rfc9369 5 clients-tokens
    // spec: rfc9000 8.1.3 token-for-its-server
    let tokens = Arc::new(Tokens::default());
    let mut pair = pair(RetryPolicy::Never);
    visit(&mut pair, &client(&tokens));
    pair.capture = Some(Vec::new());
    let now = pair.now;
    let mut connect = |remote: &str, name: &str, config: &ClientConfig| {
        let remote = remote.parse().expect("an address");
        pair.client.endpoint.connect(now, config, remote, name).expect("a valid configuration");
    };
    connect("127.0.0.1:444", "localhost", &client(&tokens));
    connect("127.0.0.1:443", "elsewhere", &client(&tokens));
    connect("127.0.0.1:443", "localhost", &client(&tokens).with_version(Version::V2));
    connect("127.0.0.1:443", "localhost", &client(&tokens));
    pair.drain();
    let tokens_sent: Vec<usize> = pair
        .capture
        .iter()
        .flatten()
        .filter_map(|(_, data)| split(BytesMut::from(&data[..]), 8).next()?.ok())
        .filter(|packet| matches!(packet.header, Header::Initial { .. }))
        .map(|packet| packet.token().len())
        .collect();
    assert_eq!(tokens_sent.iter().filter(|len| **len > 0).count(), 1, "{tokens_sent:?}");
    assert!(tokens_sent.last().is_some_and(|len| *len > 0));
}

#[test]
fn equal_runs_with_tokens_are_equal_bit_for_bit() {
    let run = || {
        let tokens = Arc::new(Tokens::default());
        let mut pair = pair(RetryPolicy::Always);
        visit(&mut pair, &client(&tokens));
        visit(&mut pair, &client(&tokens));
        (pair.trace_hash, pair.now)
    };
    assert_eq!(run(), run());
    assert!(run().1 > Time::ZERO);
}
