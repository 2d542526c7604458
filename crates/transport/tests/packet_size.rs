//! Packets whose size follows the state of the window: what leaves before and after a loss.

use std::sync::Arc;

use bytes::Bytes;
use posthaste_transport::{ConnectionHandle, Direction, Event, TransportConfig, WhenFull};
use posthaste_units::Duration;

use crate::support::{Pair, defaults, tls};

const LARGEST: usize = 1452;
const LEAST: usize = 1200;

/// A server that has sent a while, 40 ms away, and lost one datagram of the last round trip. What it sent until then is
/// off the log.
fn after_a_loss(profile: &str) -> (Pair, ConnectionHandle, ConnectionHandle) {
    let config = |profile| TransportConfig {
        profile: posthaste_schemes::named(profile).expect("a profile"),
        max_datagram_size: LARGEST,
        max_datagram_frame_size: 65_535,
        mtu_discovery: false,
        ..defaults()
    };
    let mut pair = Pair::new(3, defaults(), config(profile));
    (pair.up.delay, pair.down.delay) = (Duration::from_millis(20), Duration::from_millis(20));
    let client = pair.connect_with(&tls::client_config(3).with_transport(Arc::new(config("cubic"))));
    pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
    let server = pair.server.accepted[0];
    let connection = pair.server.connection(server);
    let stream = connection.open(Direction::Unidirectional).expect("a stream");
    while connection.write(stream, &mut Bytes::from(vec![7; 65_536])).is_ok_and(|taken| taken == 65_536) {}
    pair.run_for(Duration::from_millis(70));
    assert!(sizes(&pair).contains(&LARGEST), "whole datagrams before the loss");
    pair.doomed.push((false, pair.server.sent + 1));
    let mut highest = pair.server.connection(server).stats().congestion.window;
    pair.run_until(|pair| {
        let window = pair.server.connection(server).stats().congestion.window;
        highest = highest.max(window);
        window < highest
    });
    pair.log.clear();
    (pair, client, server)
}

/// The sizes of the server's datagrams in the log.
fn sizes(pair: &Pair) -> Vec<usize> {
    pair.log.iter().filter(|sent| !sent.from_client).map(|sent| sent.size).collect()
}

#[test]
fn packets_are_small_after_a_window_that_shrank_and_whole_again_once_it_grows() {
    let (mut pair, ..) = after_a_loss("cubic@packet_size=state");
    pair.run_for(Duration::from_millis(400));
    let sizes = sizes(&pair);
    let small = sizes.iter().position(|size| *size == LEAST).expect("small packets");
    let whole = sizes.iter().rposition(|size| *size == LARGEST).expect("whole packets");
    let run = sizes[small..].iter().take_while(|size| **size <= LEAST).count();
    assert!(run >= 10, "a round trip of them: {run}");
    assert!(whole > small + run - 1, "{small}, {run}, {whole}");
}

#[test]
fn packets_stay_whole_by_default() {
    let (mut pair, ..) = after_a_loss("cubic");
    pair.run_for(Duration::from_millis(400));
    let sizes = sizes(&pair);
    assert!(sizes.len() > 20 && !sizes.contains(&LEAST), "{sizes:?}");
}

#[test]
fn a_message_that_needs_a_whole_datagram_leaves_in_a_state_of_small_ones() {
    let (mut pair, client, server) = after_a_loss("cubic@packet_size=state");
    pair.run_until(|pair| sizes(pair).contains(&LEAST));
    let connection = pair.server.connection(server);
    let largest = connection.max_datagram_size().expect("permitted");
    assert!(largest > LEAST, "{largest}");
    connection.send_datagram(Bytes::from(vec![9; largest]), WhenFull::Refuse).expect("there is room");
    let sent_at = pair.now;
    let mut got = None;
    pair.run_until(|pair| {
        got = pair.client.connection(client).receive_datagram();
        got.is_some()
    });
    assert_eq!(got.map(|message| message.len()), Some(largest));
    // It has not waited for the window to grow: half a round trip, and what pacer and window take.
    assert!(pair.now.since(sent_at) < Duration::from_millis(50), "{:?}", pair.now.since(sent_at));
}
