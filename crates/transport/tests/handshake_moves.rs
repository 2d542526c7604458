//! Clients whose port changes before the handshake is confirmed, and clients that move at once (RFC 9000 section 9).

use std::net::SocketAddr;

use crate::support::transfer::{Readers, Writers};
use crate::support::{Pair, name_of, resuming, tls};
use bytes::Bytes;
use posthaste_transport::{ClientConfig, Direction, Event, Move};
use posthaste_units::Duration;

fn port(number: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], number))
}

/// Connects, and changes the client's port when its first flight has left. With a session the flight has a request in it.
fn connect_from_two_ports(pair: &mut Pair, config: &ClientConfig) {
    let client = pair.connect_with(config);
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    let is_early = pair.client.connection(client).may_send_early();
    if is_early {
        let id = pair.client.connection(client).open(Direction::Bidirectional).expect("remembered limits");
        writers.add(id, 3_000);
        writers.pump(pair.client.connection(client));
    }
    pair.drain();
    let began = pair.now;
    pair.client.address = port(2000);
    pair.run_until(|pair| {
        writers.pump(pair.client.connection(client));
        if let Some(server) = pair.server.accepted.last().copied() {
            let now = pair.now;
            readers.pump(now, pair.server.connection(server), usize::MAX);
        }
        let is_confirmed = pair.client.has(client, |event| *event == Event::Confirmed);
        is_confirmed && readers.finished.len() == usize::from(is_early)
    });
    // The first probe timeout is a second without a round trip that is known.
    let took = pair.now.since(began);
    assert!(took < Duration::from_secs(2), "{took:?}, early data: {is_early}");
    let server = *pair.server.accepted.last().expect("a connection");
    assert_eq!(pair.server.connection(server).remote(), port(2000));
    let now = pair.now;
    pair.client.connection(client).close(now, 0, Bytes::new());
    pair.run_for(Duration::from_secs(5));
    pair.server.accepted.clear();
    assert_eq!(is_early, config.tls.enable_early_data);
}

#[test]
fn a_port_that_changes_behind_the_first_flight_is_followed() {
    connect_from_two_ports(&mut Pair::default(), &tls::client_config(1));
}

#[test]
fn a_port_that_changes_behind_early_data_is_followed() {
    let sessions = resuming::sessions();
    let mut pair = Pair::with_server(1, resuming::server_config(1, &sessions));
    let config = resuming::client_config(1);
    let first = pair.connect_with(&config);
    pair.run_until(|pair| pair.client.has(first, |event| *event == Event::Confirmed));
    pair.run_for(Duration::from_millis(100));
    let now = pair.now;
    pair.client.connection(first).close(now, 0, Bytes::new());
    pair.run_for(Duration::from_secs(5));
    pair.server.accepted.clear();
    connect_from_two_ports(&mut pair, &config);
}

#[test]
fn all_ports_of_a_host_together_get_three_times_what_they_sent() {
    // spec: rfc9000 8 three-times-at-most, 8.1 server-three-times
    let mut pair = Pair::default();
    pair.connect();
    pair.down.loss = 1.0;
    for turn in 0..12_u16 {
        pair.client.address = port(2000 + turn);
        pair.run_for(Duration::from_millis(700));
    }
    let (mut from_client, mut from_server, mut ports) = (0, 0, std::collections::BTreeSet::new());
    for sent in &pair.log {
        if sent.from_client {
            from_client += sent.size;
        } else {
            from_server += sent.size;
            ports.insert(sent.to.port());
        }
        assert!(from_server <= 3 * from_client, "{from_server} bytes for {from_client}");
    }
    assert!(ports.len() >= 3, "{ports:?}");
}

#[test]
fn another_host_is_not_answered_before_the_handshake_is_confirmed() {
    let mut pair = Pair::default();
    pair.connect();
    pair.drain();
    pair.client.address = SocketAddr::from(([10, 0, 0, 1], 1000));
    pair.run_for(Duration::from_secs(10));
    assert!(pair.log.iter().filter(|sent| !sent.from_client).all(|sent| sent.to == port(1000)));
}

#[test]
fn a_client_may_move_as_soon_as_the_handshake_is_confirmed() {
    for seed in 0..20 {
        let mut pair = Pair::new(seed, crate::support::defaults(), crate::support::defaults());
        pair.capture = Some(Vec::new());
        let client = pair.connect();
        pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
        let names = |pair: &mut Pair, of_client: bool| {
            let capture = pair.capture.replace(Vec::new()).unwrap_or_default();
            let of_sender = capture.into_iter().filter(|(from_client, _)| *from_client == of_client);
            of_sender.filter_map(|(_, data)| name_of(&data)).collect::<Vec<_>>()
        };
        let before = names(&mut pair, true);
        let now = pair.now;
        pair.client.address = SocketAddr::from(([10, 0, 0, 1], 1000));
        assert_eq!(pair.client.connection(client).migrate(now, Move::Network), Ok(()), "seed {seed}");
        pair.run_for(Duration::from_millis(200));
        let server = pair.server.accepted[0];
        assert_eq!(pair.server.connection(server).remote(), pair.client.address);
        let after = names(&mut pair, true);
        assert!(!after.is_empty() && after.iter().all(|name| !before.contains(name)), "seed {seed}");
    }
}

/// A server's `NEW_CONNECTION_ID` frames leave with its first 1-RTT packet, in front of the data.
#[test]
fn a_client_of_a_busy_server_may_move_as_soon_as_the_handshake_is_confirmed() {
    let mut pair = Pair::default();
    let client = pair.connect();
    let mut writers = Writers::default();
    let mut moved = None;
    pair.run_promptly_until(|pair| {
        if let Some(server) = pair.server.accepted.last().copied() {
            let connection = pair.server.connection(server);
            if let Ok(id) = connection.open(Direction::Unidirectional) {
                writers.add(id, 1_000_000);
            }
            writers.pump(connection);
        }
        if pair.client.has(client, |event| *event == Event::Confirmed) {
            let now = pair.now;
            moved = Some(pair.client.connection(client).migrate(now, Move::Port));
        }
        moved.is_some()
    });
    assert_eq!(moved, Some(Ok(())));
}
