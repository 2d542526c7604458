//! Which connections count as one client's live ones: a policy that stands for as many flows must not be told of
//! connections that are none.

use crate::support::transfer::{Readers, Writers};
use crate::support::{Link, Pair, tls};
use bytes::Bytes;
use posthaste_policy::Profile;
use posthaste_transport::{ConnectionHandle, Direction, Event, Move, StreamId, TransportConfig};
use posthaste_units::{ByteCount, Duration};

/// Connections of one client, and what the server sends on each.
struct Client {
    pair: Pair,
    clients: Vec<ConnectionHandle>,
    servers: Vec<ConnectionHandle>,
    downloads: Vec<(StreamId, Writers, Readers)>,
    /// The server's greatest window.
    widest: ByteCount,
}

impl Client {
    fn new(profile: Profile, connections: usize) -> Self {
        let config = TransportConfig { profile, ..crate::support::defaults() };
        let pair = Pair::new(5, crate::support::defaults(), config);
        let mut client = Self {
            pair,
            clients: Vec::new(),
            servers: Vec::new(),
            downloads: Vec::new(),
            widest: ByteCount::ZERO,
        };
        for _ in 0..connections {
            client.connect();
        }
        client
    }

    fn connect(&mut self) {
        let handle = self.pair.connect_with(&tls::client_config(1));
        let count = self.servers.len();
        self.pair.run_until(|pair| {
            pair.client.has(handle, |event| *event == Event::Confirmed) && pair.server.accepted.len() > count
        });
        self.pair.run_for(Duration::from_millis(100));
        self.clients.push(handle);
        self.servers.push(self.pair.server.accepted[count]);
        self.downloads.push((StreamId::from_wire(0), Writers::default(), Readers::default()));
    }

    /// The server sends `len` bytes on a connection.
    fn download(&mut self, place: usize, len: u64) {
        let connection = self.pair.server.connection(self.servers[place]);
        let id = connection.open(Direction::Unidirectional).expect("a stream");
        self.downloads[place].0 = id;
        self.downloads[place].1.add(id, len);
    }

    fn is_done(&self, place: usize) -> bool {
        self.downloads[place].2.finished.contains_key(&self.downloads[place].0)
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.pair.now + span;
        while self.pair.now < end {
            for (place, (_, writers, readers)) in self.downloads.iter_mut().enumerate() {
                let server = self.pair.server.connection(self.servers[place]);
                writers.pump(server);
                self.widest = self.widest.max(server.stats().congestion.window);
                let now = self.pair.now;
                readers.pump(now, self.pair.client.connection(self.clients[place]), usize::MAX);
            }
            if !self.pair.step() {
                return;
            }
        }
    }

    /// What a connection's policies were told.
    fn told(&self, place: usize) -> u32 {
        self.pair.server.endpoint.live_connections(self.servers[place])
    }
}

fn modquic() -> Profile {
    posthaste_schemes::named("modquic-cubic").expect("a profile")
}

#[test]
fn first_packets_from_a_forged_address_are_no_connections() {
    let mut client = Client::new(modquic(), 1);
    client.download(0, 30_000_000);
    client.run_for(Duration::from_millis(100));
    assert_eq!(client.told(0), 1);
    // Somebody sends Initials with the client's address; what the server answers comes to nobody.
    let before = client.pair.server.endpoint.connections();
    client.pair.down = Link { loss: 1.0, ..Link::CLEAN };
    for _ in 0..64 {
        client.pair.connect();
        client.pair.step();
    }
    client.pair.run_for(Duration::from_millis(15));
    client.pair.down = Link::CLEAN;
    let begun = client.pair.server.endpoint.connections() - before;
    assert!(begun >= 32, "the server has begun {begun}");
    assert_eq!(client.told(0), 1, "of {begun} that have validated nothing");
}

#[test]
fn connections_that_have_nothing_in_flight_share_nothing() {
    let mut client = Client::new(modquic(), 3);
    client.download(0, 100_000_000);
    client.run_for(Duration::from_millis(50));
    assert_eq!(client.told(0), 1, "two more are open, and idle");
    client.download(1, 100_000_000);
    client.download(2, 30_000);
    client.run_for(Duration::from_millis(15));
    assert_eq!([0, 1, 2].map(|place| client.told(place)), [3; 3]);
    client.run_for(Duration::from_millis(70));
    assert!(client.is_done(2) && !client.is_done(0) && !client.is_done(1));
    assert_eq!([0, 1].map(|place| client.told(place)), [2; 2], "the third has all it wanted");
}

#[test]
fn a_connection_leaves_as_it_closes_and_not_only_once_it_is_drained() {
    let mut client = Client::new(modquic(), 2);
    client.download(0, 30_000_000);
    client.download(1, 30_000_000);
    client.run_for(Duration::from_millis(100));
    assert_eq!([0, 1].map(|place| client.told(place)), [2; 2]);
    let now = client.pair.now;
    client.pair.server.connection(client.servers[1]).close(now, 0, Bytes::new());
    client.pair.drain();
    assert_eq!(client.told(0), 1, "at once");
    assert_eq!(client.pair.server.endpoint.connections(), 2, "it is not drained yet");
}

#[test]
fn a_connection_that_moves_counts_where_it_is() {
    let mut client = Client::new(modquic(), 3);
    for place in 0..3 {
        client.download(place, 100_000_000);
    }
    client.run_for(Duration::from_millis(50));
    assert_eq!(client.told(0), 3);
    client.pair.client.address = "10.1.2.3:999".parse().expect("an address");
    let now = client.pair.now;
    let moving = client.pair.client.connection(client.clients[2]);
    moving.migrate(now, Move::Network).expect("the server lets it");
    // The support's host has one address: the others move as they send, as behind a NAT.
    client.run_for(Duration::from_millis(100));
    let told = [0, 1, 2].map(|place| client.told(place));
    assert_eq!(told, [3; 3], "all are at the new address, none at the old one");
}

#[test]
fn sixty_four_live_connections_complete_with_bounded_windows() {
    for name in ["modquic-cubic", "modquic-cubic-paper"] {
        let mut client = Client::new(posthaste_schemes::named(name).expect("a profile"), 64);
        client.pair.down = Link { loss: 0.02, ..Link::CLEAN };
        for place in 0..64 {
            client.download(place, 60_000);
        }
        client.run_for(Duration::from_millis(12));
        assert_eq!(client.told(63), 64, "{name}");
        client.run_for(Duration::from_secs(10));
        for place in 0..64 {
            assert!(client.is_done(place), "{name}: connection {place}");
        }
        // Nobody had more than so many bytes to send: slow start doubles what was acknowledged at the most.
        assert!(client.widest <= ByteCount::new(200_000), "{name}: {}", client.widest);
    }
}
