//! The first congestion window that a client asks for, and what a server makes of it.

use std::sync::Arc;

use bytes::Bytes;
use posthaste_transport::{Direction, Event, SendBudget, TransportConfig};
use posthaste_units::{ByteCount, Duration};

use crate::support::{Pair, defaults, tls};

const KIB: u64 = 1024;

fn config(profile: &str) -> TransportConfig {
    let profile = posthaste_schemes::named(profile).expect("a profile");
    TransportConfig { profile, max_datagram_size: 1252, mtu_discovery: false, ..defaults() }
}

/// The server's window once its client has asked, and what is in flight when it has sent all it may, 100 ms away, before
/// the first ack of it.
fn first_flight(server: &str, client: &str) -> (u64, u64) {
    first_flight_of(config(server), client)
}

fn first_flight_of(server: TransportConfig, client: &str) -> (u64, u64) {
    let mut pair = Pair::new(1, defaults(), server);
    (pair.up.delay, pair.down.delay) = (Duration::from_millis(50), Duration::from_millis(50));
    let client = pair.connect_with(&tls::client_config(1).with_transport(Arc::new(config(client))));
    pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
    let server = pair.server.accepted[0];
    pair.run_for(Duration::from_millis(500));
    let connection = pair.server.connection(server);
    let window = connection.stats().congestion.window.get();
    let stream = connection.open(Direction::Unidirectional).expect("a stream");
    // What is written makes room for more once it has left.
    for _ in 0..99 {
        let connection = pair.server.connection(server);
        while connection.write(stream, &mut Bytes::from(vec![7; 65_536])).is_ok_and(|taken| taken > 0) {}
        pair.run_for(Duration::from_millis(1));
    }
    (window, pair.server.connection(server).stats().in_flight.get())
}

#[test]
fn a_client_asks_for_a_window_and_the_server_grants_cuts_or_ignores_it() {
    let plain = first_flight("cubic", "cubic");
    // What the handshake has brought in acks is in the window, too.
    let near = |window: u64, asked: u64| (asked..asked + 6_000).contains(&window);
    let granting = "cubic@max_stated_window=64kib";
    assert!(near(first_flight(granting, "cubic@stated_window=48kib").0, 48 * KIB));
    assert!(near(first_flight(granting, "cubic@stated_window=4kib").0, 4 * KIB), "less than its own, too");
    let (window, in_flight) = first_flight(granting, "cubic@stated_window=4gib");
    assert!(near(window, 64 * KIB) && in_flight > plain.1 && in_flight <= window, "{window}, {in_flight}");
    // Clients that ask for nothing, servers that grant nothing, and starts that know of no such wish.
    assert_eq!(first_flight(granting, "cubic"), plain);
    assert_eq!(first_flight("cubic", "cubic@stated_window=4gib"), plain);
    let careful = first_flight("mobile", "cubic");
    assert_eq!(first_flight("mobile", "cubic@stated_window=4gib"), careful);
}

#[test]
fn a_window_beyond_what_the_client_takes_is_bounded_by_its_credit() {
    let (window, in_flight) = first_flight("cubic@max_stated_window=4gib", "cubic@stated_window=4gib");
    assert!(window >= 4 << 30, "{window}");
    // One stream, 1 MiB, and the packets' headers.
    assert!((1_000_000..=1_150_000).contains(&in_flight), "{in_flight}");
}

#[test]
fn a_window_beyond_the_send_budget_sends_what_the_budget_keeps() {
    let budget = SendBudget::new(ByteCount::new(256 * KIB));
    let server = TransportConfig { send_budget: budget.clone(), ..config("cubic@max_stated_window=4gib") };
    let (window, in_flight) = first_flight_of(server, "cubic@stated_window=4gib");
    assert!(window >= 4 << 30, "{window}");
    // A connection takes no more of the budget than it leaves over, and has 64 KiB besides.
    assert!((128 * KIB..=256 * KIB).contains(&in_flight), "{in_flight}");
    assert!(budget.taken() <= budget.capacity());
}
