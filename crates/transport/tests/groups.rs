//! Connections of one client that a server coordinates: who gets into a group, and what members have in common.

use std::sync::Arc;

use crate::support::transfer::{Readers, Writers};
use crate::support::{Link, Name, Pair, name_of, tls};
use posthaste_policy::group::MAX_MEMBERS;
use posthaste_transport::{
    ClientConfig, ConnectionHandle, Direction, Event, GroupToken, LocalError, Secret, ServerConfig, StreamId,
    TransportConfig,
};
use posthaste_units::{ByteCount, Duration};

const DATAGRAM: u64 = 1252;

/// As [`asking_for`], with a receive window that bounds what an endless link carries: 100 kB a round trip.
fn asking_for_little(size: usize) -> ClientConfig {
    let text =
        "[credit.stream.fixed]\nwindow = \"100 KiB\"\n[credit.connection.fixed]\nwindow = \"100 KiB\"\n";
    let profile = posthaste_schemes::from_toml("narrow", text).expect("a profile");
    asking_for(size).with_transport(Arc::new(TransportConfig { profile, ..crate::support::defaults() }))
}

/// Connections of one client, and the server's ends of them.
struct Party {
    pair: Pair,
    clients: Vec<ConnectionHandle>,
    servers: Vec<ConnectionHandle>,
    downloads: Vec<(StreamId, Writers, Readers)>,
}

fn server(profile: &str) -> TransportConfig {
    let profile = posthaste_schemes::named(profile).expect("a profile");
    TransportConfig { profile, ..crate::support::defaults() }
}

fn asking_for(size: usize) -> ClientConfig {
    tls::client_config(1).with_group_size(size)
}

impl Party {
    fn new(seed: u64, profile: &str) -> Self {
        Self::at(Pair::new(seed, crate::support::defaults(), server(profile)))
    }

    fn at(pair: Pair) -> Self {
        Self { pair, clients: Vec::new(), servers: Vec::new(), downloads: Vec::new() }
    }

    /// `size` connections, each on its own.
    fn met(seed: u64, profile: &str, size: usize) -> Self {
        Self::met_by(seed, profile, size, &asking_for(size))
    }

    fn met_by(seed: u64, profile: &str, size: usize, config: &ClientConfig) -> Self {
        let mut party = Self::new(seed, profile);
        for _ in 0..size {
            party.connect(config);
        }
        party
    }

    /// `size` connections in one group.
    fn joined(seed: u64, profile: &str, size: usize) -> Self {
        Self::joined_by(seed, profile, size, &asking_for(size))
    }

    fn joined_by(seed: u64, profile: &str, size: usize, config: &ClientConfig) -> Self {
        let mut party = Self::met_by(seed, profile, size, config);
        let token = party.token(0);
        for place in 1..size {
            party.join(place, token).expect("the server forms groups");
        }
        party.pair.run_for(Duration::from_millis(50));
        assert_eq!(party.members(0), size);
        party
    }

    fn connect(&mut self, config: &ClientConfig) {
        let client = self.pair.connect_with(config);
        let count = self.servers.len();
        self.pair.run_until(|pair| {
            pair.client.has(client, |event| *event == Event::Confirmed) && pair.server.accepted.len() > count
        });
        self.pair.run_for(Duration::from_millis(50));
        self.clients.push(client);
        self.servers.push(self.pair.server.accepted[count]);
    }

    fn token(&mut self, place: usize) -> GroupToken {
        let client = self.clients[place];
        assert!(self.pair.client.has(client, |event| *event == Event::Grouped));
        self.pair.client.connection(client).group_token().expect("a group")
    }

    fn join(&mut self, place: usize, token: GroupToken) -> Result<(), LocalError> {
        self.pair.client.connection(self.clients[place]).join_group(token)
    }

    fn members(&self, place: usize) -> usize {
        self.pair.server.endpoint.group_members(self.servers[place])
    }

    fn window(&mut self, place: usize) -> ByteCount {
        self.pair.server.connection(self.servers[place]).stats().congestion.window
    }

    fn windows(&mut self) -> Vec<f64> {
        (0..self.servers.len()).map(|place| self.window(place).as_f64() / DATAGRAM as f64).collect()
    }

    /// What an end of a connection sends to. Nothing else may be under way.
    fn name(&mut self, place: usize, from_client: bool) -> Name {
        self.pair.run_for(Duration::from_millis(500));
        self.pair.capture = Some(Vec::new());
        let (host, handle) = if from_client {
            (&mut self.pair.client, self.clients[place])
        } else {
            (&mut self.pair.server, self.servers[place])
        };
        host.connection(handle).ping();
        self.pair.drain();
        let captured = self.pair.capture.take().expect("a capture");
        captured.iter().find_map(|(of, data)| (*of == from_client).then(|| name_of(data))?).expect("a ping")
    }

    /// All download, and have left slow start.
    fn download_for_long(&mut self) {
        self.download(1_000_000_000);
        self.run_for(Duration::from_millis(100));
        self.pair.down = Link { loss: 0.01, ..Link::CLEAN };
        self.run_for(Duration::from_millis(300));
        self.pair.down = Link::CLEAN;
        self.run_for(Duration::from_millis(100));
    }

    /// The server sends `len` bytes on each connection that does not yet.
    fn download(&mut self, len: u64) {
        for place in self.downloads.len()..self.clients.len() {
            let id = {
                let connection = self.pair.server.connection(self.servers[place]);
                connection.open(Direction::Unidirectional).expect("a stream")
            };
            let mut writers = Writers::default();
            writers.add(id, len);
            self.downloads.push((id, writers, Readers::default()));
        }
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.pair.now + span;
        while self.pair.now < end {
            for (place, (_, writers, readers)) in self.downloads.iter_mut().enumerate() {
                writers.pump(self.pair.server.connection(self.servers[place]));
                let now = self.pair.now;
                readers.pump(now, self.pair.client.connection(self.clients[place]), usize::MAX);
            }
            if !self.pair.step() {
                return;
            }
        }
    }
}

#[test]
fn connections_of_one_address_join_by_the_token_that_one_of_them_got() {
    let mut party = Party::joined(3, "mquic-cubic", 3);
    assert_eq!([0, 1, 2].map(|place| party.members(place)), [3; 3]);
    let token = party.token(0);
    for place in 1..3 {
        assert_ne!(party.token(place), token, "each had a group of its own before");
    }
}

#[test]
fn the_initial_window_is_divided_by_the_number_that_the_client_announces() {
    for (profile, size, datagrams) in [
        ("mquic-cubic-paper", 1, 30.0),
        ("mquic-cubic-paper", 3, 10.0),
        ("mquic-cubic-paper", 6, 5.0),
        ("mquic-cubic-plain", 3, 30.0),
        ("mquic-cubic", 1, 10.0),
        // More than there may be count as the most, and no window is below two datagrams.
        ("mquic-cubic-paper", 64, 3.75),
        ("mquic-cubic", 64, 2.0),
    ] {
        let mut party = Party::new(4, profile);
        party.connect(&asking_for(size));
        let window = party.windows()[0];
        assert!((window - datagrams).abs() < 0.01, "{profile}, {size}: {window} datagrams");
    }
}

/// At how many moments of a lossy transfer one, two or three of three members stepped back.
fn steps_back(mut party: Party) -> [usize; 3] {
    party.pair.down = Link { loss: 0.004, ..Link::CLEAN };
    party.download(100_000_000);
    // All are busy, and the window has been divided.
    party.run_for(Duration::from_millis(10));
    let mut counts = [0; 3];
    let mut before = party.windows();
    for _ in 0..6000 {
        party.run_for(Duration::from_nanos(1));
        let after = party.windows();
        let stepped = before.iter().zip(&after).filter(|(before, after)| **after < **before * 0.9).count();
        if stepped > 0 {
            counts[stepped - 1] += 1;
        }
        before = after;
    }
    counts
}

#[test]
fn congestion_of_one_member_is_that_of_all_in_an_ensemble_and_only_its_own_otherwise() {
    let [one, two, three] = steps_back(Party::joined(5, "mquic-cubic", 3));
    assert!(three > 5 && one + two == 0, "{one}, {two}, {three}");
    let [one, _, three] = steps_back(Party::met(5, "mquic-cubic-plain", 3));
    assert!(one > 5 && three == 0, "{one}, {three}");
}

#[test]
fn a_late_member_starts_from_what_the_others_know_and_a_lost_one_leaves_it() {
    for profile in ["mquic-cubic", "mquic-bbr"] {
        comes_late_and_is_lost(profile);
    }
}

fn comes_late_and_is_lost(profile: &str) {
    let mut party = Party::joined(6, profile, 2);
    party.download(20_000_000);
    party.run_for(Duration::from_millis(120));
    party.connect(&asking_for(3));
    let before = party.windows();
    let token = party.token(0);
    party.join(2, token).expect("the server forms groups");
    party.download(20_000_000);
    party.run_for(Duration::from_millis(21));
    let after = party.windows();
    assert!(before[2] < 11.0, "as any new connection: {before:?}");
    let total: f64 = before.iter().sum();
    assert!(after[2] > total / 3.0 * 0.8, "one round trip later: {before:?}, {after:?}");

    let now = party.pair.now;
    party.pair.client.connection(party.clients[1]).close(now, 0, bytes::Bytes::new());
    let two = [0, 2];
    let before: f64 = two.iter().map(|place| party.windows()[*place]).sum();
    party.downloads.truncate(1);
    party.run_for(Duration::from_millis(30));
    assert_eq!(party.members(0), 2);
    let server = party.servers[1];
    assert_eq!(party.pair.server.endpoint.group_members(server), 1);
    let after: f64 = two.iter().map(|place| party.windows()[*place]).sum();
    assert!(after > before * 1.3, "its part is the others': {before}, {after}");
}

#[test]
fn a_token_is_worth_nothing_to_a_stranger() {
    let mut party = Party::joined(7, "mquic-cubic", 2);
    let token = party.token(0);

    // From another address.
    party.pair.client.address = "10.1.2.3:999".parse().expect("an address");
    party.connect(&asking_for(2));
    party.join(2, token).expect("sent");
    party.pair.run_for(Duration::from_millis(50));
    assert_eq!((party.members(0), party.members(2)), (2, 1));

    // Guessed.
    let mut forged = party.token(2);
    forged[15] ^= 1;
    party.join(2, forged).expect("sent");
    party.pair.run_for(Duration::from_millis(50));
    assert_eq!(party.members(2), 1);
    assert!(!party.pair.server.connection(party.servers[2]).is_closed(), "harmless");
}

#[test]
fn a_token_of_before_a_restart_or_of_another_server_joins_nothing() {
    let mut before = Party::joined(13, "mquic-cubic", 2);
    let token = before.token(0);
    // The next process draws other names, with the same secret or, elsewhere, with another.
    for (seed, secret) in [(14, Secret([7; 32])), (15, Secret([8; 32]))] {
        let config = tls::server_config(13).with_transport(Arc::new(server("mquic-cubic")));
        let config = ServerConfig { secret: Some(secret), ..config };
        let mut party = Party::at(Pair::with_server(seed, config));
        for place in 0..2 {
            party.connect(&asking_for(2));
            party.join(place, token).expect("sent");
        }
        party.pair.run_for(Duration::from_millis(50));
        assert_eq!((party.members(0), party.members(1)), (1, 1), "{seed}");
        // The groups of its own are as good as ever, and so are the connections.
        let own = party.token(0);
        party.join(1, own).expect("sent");
        party.download(100_000);
        party.run_for(Duration::from_millis(500));
        assert_eq!((party.members(0), party.members(1)), (2, 2), "{seed}");
        assert!(party.downloads.iter().all(|(id, _, readers)| readers.finished.contains_key(id)), "{seed}");
    }
}

#[test]
fn a_group_has_a_bounded_number_of_members_and_ends_with_the_last() {
    let mut party = Party::joined(8, "mquic-newreno", MAX_MEMBERS);
    let token = party.token(0);
    party.connect(&asking_for(100));
    party.join(MAX_MEMBERS, token).expect("sent");
    party.pair.run_for(Duration::from_millis(50));
    assert_eq!(party.members(0), MAX_MEMBERS);
    assert_eq!(party.members(MAX_MEMBERS), 1, "it stays on its own");
    // Twice is once, and one's own group is left by joining it again no more than any other.
    party.join(1, token).expect("sent");
    party.pair.run_for(Duration::from_millis(50));
    assert_eq!(party.members(1), MAX_MEMBERS);
    for place in 0..MAX_MEMBERS {
        let now = party.pair.now;
        let client = party.clients[place];
        party.pair.client.connection(client).close(now, 0, bytes::Bytes::new());
    }
    party.pair.run_for(Duration::from_millis(100));
    party.join(MAX_MEMBERS, token).expect("sent");
    party.pair.run_for(Duration::from_millis(50));
    assert_eq!(party.members(MAX_MEMBERS), 1, "the name of a group that has ended");
}

#[test]
fn a_member_that_moves_to_another_network_is_on_its_own() {
    let mut party = Party::joined(9, "mquic-cubic", 2);
    party.pair.client.address = "10.1.2.3:999".parse().expect("an address");
    for place in 0..2 {
        let client = party.clients[place];
        let now = party.pair.now;
        let connection = party.pair.client.connection(client);
        connection.migrate(now, posthaste_transport::Move::Network).expect("the server lets it");
    }
    party.pair.run_for(Duration::from_millis(500));
    assert_eq!((party.members(0), party.members(1)), (1, 1));
}

#[test]
fn a_member_that_moves_leaves_what_it_had_to_the_others() {
    let mut party = Party::joined(13, "mquic-cubic", 2);
    let name = party.name(1, true);
    party.download_for_long();
    let before = party.windows();
    assert!(before[1] > 20.0, "well above the initial window of another path: {before:?}");
    party.pair.aliases.push((name, "10.1.2.3:999".parse().expect("an address")));
    party.run_for(Duration::from_millis(25));
    assert_eq!((party.members(0), party.members(1)), (1, 1));
    let after = party.window(0).as_f64() / DATAGRAM as f64;
    assert!(after > (before[0] + before[1]) * 0.9, "{before:?}: {after}");
}

#[test]
fn a_member_that_moves_and_returns_is_led_by_nobody() {
    let mut party = Party::joined_by(14, "mquic-bbr", 2, &asking_for_little(2));
    let name = party.name(1, true);
    party.download_for_long();
    party.pair.aliases.push((name, "10.1.2.3:999".parse().expect("an address")));
    party.run_for(Duration::from_millis(40));
    assert_eq!((party.members(0), party.members(1)), (1, 1));
    party.pair.aliases.clear();
    party.run_for(Duration::from_millis(100));
    // Whoever decides here hears of an outage.
    let clean = party.pair.down;
    party.pair.down = Link { loss: 1.0, ..clean };
    party.run_for(Duration::from_secs(2));
    party.pair.down = clean;
    let mut windows = Vec::new();
    for _ in 0..20 {
        party.run_for(Duration::from_millis(50));
        windows.push(party.window(1));
    }
    windows.dedup();
    assert!(windows.len() > 1, "a window that nobody changes any more: {windows:?}");
}

#[test]
fn a_member_whose_client_vanishes_hands_its_part_back_and_gets_one_again_with_its_next_ack() {
    for profile in ["mquic-cubic", "mquic-bbr"] {
        let mut party = Party::joined_by(15, profile, 2, &asking_for_little(2));
        let names = [party.name(1, true), party.name(1, false)];
        party.download_for_long();
        let before = party.windows();
        party.pair.silenced.extend(names);
        party.run_for(Duration::from_millis(600));
        let alone = party.windows();
        assert_eq!(party.members(0), 2, "the idle timeout is far away");
        assert!(alone[1] < 3.0 && alone[0] > alone[1] * 5.0, "{profile}, {before:?}: {alone:?}");
        // A model follows what arrives, which one receive window bounds now.
        let is_whole = alone[0] > (before[0] + before[1]) * 0.9;
        assert!(is_whole || profile == "mquic-bbr", "{before:?}: {alone:?}");
        party.pair.silenced.clear();
        party.run_for(Duration::from_secs(2));
        let again = party.windows();
        assert!(again[1] > again[0] * 0.7, "{profile}, {before:?}, {alone:?}: {again:?}");
    }
}

#[test]
fn after_an_outage_of_all_members_nobody_goes_on_with_the_windows_of_the_others() {
    let mut party = Party::joined_by(16, "mquic-cubic", 3, &asking_for_little(3));
    party.download_for_long();
    let before: f64 = party.windows().iter().sum();
    let clean = party.pair.down;
    party.pair.down = Link { loss: 1.0, ..clean };
    party.run_for(Duration::from_secs(3));
    party.pair.down = clean;
    let mut least = before;
    for _ in 0..3000 {
        party.run_for(Duration::from_millis(1));
        least = least.min(party.windows().iter().sum());
    }
    // A collapse leaves two datagrams each; the first is heard again before the others.
    assert!(before > 30.0 && least < 12.0, "{before}: {least}");
}

#[test]
fn a_member_that_goes_from_group_to_group_makes_no_windows() {
    for (profile, downloads) in [("mquic-cubic", false), ("mquic-cubic", true), ("mquic-bbr", false)] {
        let mut party = Party::met(17, profile, 5);
        let tokens = [0, 2].map(|place| party.token(place));
        for (place, token) in [(1, tokens[0]), (3, tokens[1])] {
            party.join(place, token).expect("the server forms groups");
        }
        party.pair.run_for(Duration::from_millis(50));
        let before = party.windows();
        if downloads {
            // On a path that delivers nothing.
            party.pair.down = Link { loss: 1.0, ..Link::CLEAN };
            party.download(1_000_000);
        }
        for turn in 0..20 {
            party.join(4, tokens[turn % 2]).expect("a token");
            party.run_for(Duration::from_millis(5));
        }
        let after = party.windows();
        let sum = |windows: &[f64]| windows.iter().sum::<f64>();
        // None is below two datagrams.
        assert!(sum(&after) <= sum(&before) + 5.0 * 2.0, "{profile}: {before:?} became {after:?}");
    }
}

#[test]
fn who_does_not_ask_or_is_not_offered_a_group_has_none() {
    let mut party = Party::new(10, "mquic-cubic");
    party.connect(&tls::client_config(1));
    assert_eq!(party.join(0, [0; 16]), Ok(()), "the server would form groups");
    party.pair.run_for(Duration::from_millis(50));
    assert_eq!(party.members(0), 1);
    let client = party.clients[0];
    assert_eq!(party.pair.client.connection(client).group_token(), None);

    let mut party = Party::new(10, "cubic");
    party.connect(&asking_for(3));
    assert_eq!(party.join(0, [0; 16]), Err(LocalError::NotNow));
    assert_eq!(party.members(0), 1);
}

#[test]
fn a_lost_token_is_sent_again() {
    let mut party = Party::new(11, "mquic-cubic");
    party.pair.down = Link { loss: 0.4, ..Link::CLEAN };
    party.pair.up = Link { loss: 0.4, ..Link::CLEAN };
    party.connect(&asking_for(2));
    party.connect(&asking_for(2));
    party.pair.run_until(|pair| {
        let grouped = pair.client.events.iter().filter(|(_, event)| *event == Event::Grouped).count();
        grouped == 2
    });
    let token = party.token(0);
    party.join(1, token).expect("sent");
    party.pair.run_for(Duration::from_secs(20));
    assert_eq!(party.members(0), 2);
}

#[test]
fn runs_with_groups_repeat() {
    let run = || {
        let mut party = Party::joined(12, "mquic-cubic-paper", 3);
        party.pair.down = Link { loss: 0.02, ..Link::CLEAN };
        party.download(500_000);
        party.run_for(Duration::from_secs(2));
        party.pair.trace_hash
    };
    assert_eq!(run(), run());
}
