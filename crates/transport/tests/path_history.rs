//! What a server has learnt of a path serves the client's next connection: from a store, from the client's token, and
//! over a restart (RFC 9959; the paper's Algorithm 1).

use std::sync::Arc;

use crate::support::resuming::{self, Tokens};
use crate::support::transfer::{Readers, Writers};
use crate::support::{Link, Pair};
use bytes::Bytes;
use posthaste_policy::history::HistoryRules;
use posthaste_policy::sample::{PathHistory, PathLoss};
use posthaste_transport::{
    ClientConfig, ConnectionHandle, Direction, Event, MemoryStore, PathMemory, PathStore, Secret,
    ServerConfig, StreamId, TransportConfig,
};
use posthaste_units::{ByteCount, Duration, Time};
use rustls::server::StoresServerSessions;

const RTT: Duration = Duration::from_millis(20);

struct Stage {
    pair: Pair,
    client: ClientConfig,
    tokens: Arc<Tokens>,
    sessions: Arc<dyn StoresServerSessions>,
    profile: &'static str,
    memory: PathMemory,
    /// The server answers before it sends anything else.
    is_prompt: bool,
}

/// A download under way.
struct Fetch {
    client: ConnectionHandle,
    server: Option<ConnectionHandle>,
    id: StreamId,
    bytes: u64,
    writers: Writers,
    readers: Readers,
    is_answered: bool,
    /// Named phases of the server's start policy, in order.
    phases: Vec<&'static str>,
    /// When the server had the request, and when it was first seen to have jumped.
    answered_at: Option<Time>,
    jumped_at: Option<Time>,
    took: Duration,
    /// What the server knew of the path.
    recalled: Option<PathHistory>,
    /// The server's greatest window.
    widest: ByteCount,
}

impl Stage {
    fn new(profile: &'static str, memory: PathMemory) -> Self {
        let (tokens, sessions) = (Arc::new(Tokens::default()), resuming::sessions());
        let client = resuming::client_config(1).with_tokens(Arc::clone(&tokens) as _);
        let pair = Pair::with_server(1, server(profile, &memory, &sessions));
        Self { pair, client, tokens, sessions, profile, memory, is_prompt: false }
    }

    /// The server ends and another begins, with the same secret.
    fn restart(&mut self) {
        let now = self.pair.now;
        self.pair = Pair::with_server(2, server(self.profile, &self.memory, &self.sessions));
        self.pair.now = now;
    }

    fn begin(&mut self, bytes: u64) -> Fetch {
        let client = self.pair.connect_with(&self.client);
        let connection = self.pair.client.connection(client);
        let id = connection.open(Direction::Bidirectional).unwrap_or_else(|_| StreamId::from_wire(0));
        Fetch {
            client,
            server: None,
            id,
            bytes,
            writers: Writers::default(),
            readers: Readers::default(),
            is_answered: false,
            phases: Vec::new(),
            answered_at: None,
            jumped_at: None,
            took: Duration::ZERO,
            recalled: None,
            widest: ByteCount::ZERO,
        }
    }

    /// Runs a fetch to its end and leaves the connection open.
    fn finish(&mut self, fetch: &mut Fetch) {
        let begun = self.pair.now;
        let mut is_asked = false;
        let others = self.pair.server.accepted.len();
        let act = |pair: &mut Pair| {
            if !is_asked {
                let connection = pair.client.connection(fetch.client);
                if connection.may_send_early() || !connection.is_handshaking() {
                    if connection.write(fetch.id, &mut Bytes::from_static(b"x")).is_err() {
                        fetch.id = connection.open(Direction::Bidirectional).expect("a stream");
                        connection.write(fetch.id, &mut Bytes::from_static(b"x")).expect("it has room");
                    }
                    connection.finish(fetch.id).expect("it is open");
                    fetch.readers.add(fetch.id);
                    is_asked = true;
                }
            }
            fetch.server = fetch.server.or_else(|| pair.server.accepted.get(others).copied());
            if let Some(server) = fetch.server {
                fetch.serve(pair, server);
            }
            let now = pair.now;
            fetch.readers.pump(now, pair.client.connection(fetch.client), usize::MAX);
            fetch.readers.finished.contains_key(&fetch.id)
        };
        if self.is_prompt {
            self.pair.run_promptly_until(act);
        } else {
            self.pair.run_until(act);
        }
        fetch.took = self.pair.now.since(begun);
        assert_eq!(fetch.readers.finished[&fetch.id], fetch.bytes);
        let server = fetch.server.expect("it was served");
        fetch.recalled = self.pair.server.connection(server).recalled_path();
        self.pair.run_for(Duration::from_millis(200));
    }

    fn leave(&mut self, fetch: &Fetch) {
        let now = self.pair.now;
        self.pair.client.connection(fetch.client).close(now, 0, Bytes::new());
        self.pair.run_for(Duration::from_secs(5));
        self.pair.server.accepted.clear();
    }

    fn fetch(&mut self, bytes: u64) -> Fetch {
        let mut fetch = self.begin(bytes);
        self.finish(&mut fetch);
        self.leave(&fetch);
        fetch
    }
}

impl Fetch {
    fn serve(&mut self, pair: &mut Pair, server: ConnectionHandle) {
        let now = pair.now;
        let connection = pair.server.connection(server);
        if !self.is_answered && connection.accept(Direction::Bidirectional) == Some(self.id) {
            self.is_answered = true;
            self.answered_at = Some(now);
            let _ = connection.read(now, self.id, 10);
            self.writers.add(self.id, self.bytes);
        }
        self.writers.pump(connection);
        let congestion = connection.stats().congestion;
        self.widest = self.widest.max(congestion.window);
        let phase = congestion.phase.name();
        let is_named = ["reconnaissance", "unvalidated", "validating", "safe_retreat"].contains(&phase);
        if is_named && self.phases.last() != Some(&phase) {
            self.phases.push(phase);
            if phase == "unvalidated" {
                self.jumped_at = Some(now);
            }
        }
    }

    fn has_jumped(&self) -> bool {
        self.phases.contains(&"unvalidated")
    }
}

fn server(profile: &str, memory: &PathMemory, sessions: &Arc<dyn StoresServerSessions>) -> ServerConfig {
    let profile = posthaste_schemes::named(profile).expect("it is built in");
    ServerConfig {
        path_memory: memory.clone(),
        secret: Some(Secret([7; 32])),
        transport: Arc::new(TransportConfig { profile, ..crate::support::defaults() }),
        ..resuming::server_config(1, sessions)
    }
}

fn rules(profile: &str) -> HistoryRules {
    posthaste_schemes::named(profile).unwrap().history_rules().expect("it keeps a history")
}

fn store(profile: &str) -> (Arc<MemoryStore>, PathMemory) {
    let store = Arc::new(MemoryStore::new(rules(profile)));
    (Arc::clone(&store), PathMemory::Store(store))
}

const BIG: u64 = 2_000_000;

#[test]
fn who_comes_back_jumps_and_is_faster() {
    let (store, memory) = store("history");
    for memory in [memory, PathMemory::Tokens] {
        let mut stage = Stage::new("history", memory);
        let first = stage.fetch(BIG);
        assert_eq!((first.recalled, first.phases.len()), (None, 0));
        let again = stage.fetch(BIG);
        let known = again.recalled.expect("it was here before");
        assert!(known.window >= ByteCount::new(4 * 12_000) && known.min_rtt >= RTT, "{known:?}");
        assert_eq!(again.phases, ["reconnaissance", "unvalidated", "validating"]);
        assert!(again.took + RTT < first.took, "{:?} after {:?}", again.took, first.took);
        // Over a restart, by the store or by the client.
        stage.restart();
        let later = stage.fetch(BIG);
        assert!(later.has_jumped(), "{:?}", later.recalled);
    }
    assert_eq!(store.history().len(), 1);
}

#[test]
fn without_a_place_to_keep_it_nothing_is_known() {
    for (profile, memory) in [("history", PathMemory::Nowhere), ("cubic", PathMemory::Tokens)] {
        let mut stage = Stage::new(profile, memory);
        stage.fetch(BIG);
        assert_eq!(stage.fetch(BIG).recalled, None);
    }
}

#[test]
fn a_path_serves_one_connection_at_a_time() {
    // spec: rfc9959 3.2 one-connection-each
    for memory in [store("history").1, PathMemory::Tokens] {
        let mut stage = Stage::new("history", memory);
        stage.fetch(BIG);
        stage.fetch(BIG);
        let mut one = stage.begin(BIG);
        stage.finish(&mut one);
        assert!(one.has_jumped());
        let mut two = stage.begin(BIG);
        stage.finish(&mut two);
        assert_eq!((two.recalled, two.has_jumped()), (None, false), "the path is in use");
        stage.leave(&one);
        stage.leave(&two);
        assert!(stage.fetch(BIG).has_jumped(), "and free again");
    }
}

#[test]
fn a_token_that_was_seen_does_not_jump_again() {
    let mut stage = Stage::new("history", PathMemory::Tokens);
    stage.fetch(BIG);
    let token = stage.tokens.all().last().cloned().expect("the server gave some");
    stage.tokens.set(token.clone());
    assert!(stage.fetch(BIG).has_jumped());
    stage.tokens.set(token.clone());
    assert_eq!(stage.fetch(BIG).recalled, None);
    // A token of somebody else's making says nothing, and neither does one that was bent.
    let mut bent = token.to_vec();
    *bent.last_mut().unwrap() ^= 1;
    for hostile in [Bytes::from(bent), Bytes::from(vec![0; 80]), Bytes::from_static(b"x")] {
        stage.tokens.set(hostile);
        assert_eq!(stage.fetch(100_000).recalled, None);
    }
}

#[test]
fn what_was_measured_too_long_ago_is_not_used() {
    // spec: rfc9959 3.2 lifetime-kept
    for memory in [store("history").1, PathMemory::Tokens] {
        let mut stage = Stage::new("history", memory);
        stage.fetch(BIG);
        stage.pair.run_for(Duration::from_secs(3590));
        assert!(stage.fetch(BIG).has_jumped());
        stage.pair.run_for(Duration::from_secs(3620));
        assert_eq!(stage.fetch(BIG).recalled, None);
    }
}

#[test]
fn a_forgotten_path_is_forgotten_by_its_tokens_too() {
    let mut stage = Stage::new("history", PathMemory::Tokens);
    stage.fetch(BIG);
    stage.fetch(BIG);
    let token = stage.tokens.all().last().cloned().expect("the server gave some");
    // The path breaks in the midst of the jump.
    let mut fetch = stage.begin(BIG);
    stage.pair.run_until(|pair| pair.client.has(fetch.client, |event| *event == Event::Connected));
    break_at_the_jump(&mut stage, &mut fetch);
    assert!(fetch.phases.contains(&"safe_retreat"), "{:?}", fetch.phases);
    stage.leave(&fetch);
    stage.tokens.set(token);
    assert_eq!(stage.fetch(100_000).recalled, None, "it was made before the path proved wrong");
}

#[test]
fn a_failed_path_is_forgotten_by_the_store() {
    let (kept, memory) = store("history");
    let mut stage = Stage::new("history", memory);
    stage.fetch(BIG);
    assert_eq!(kept.history().len(), 1);
    let mut fetch = stage.begin(BIG);
    break_at_the_jump(&mut stage, &mut fetch);
    assert!(fetch.phases.contains(&"safe_retreat"), "{:?}", fetch.phases);
    assert!(kept.history().is_empty());
}

/// Runs a fetch whose path loses everything for a moment once the jump has begun.
fn break_at_the_jump(stage: &mut Stage, fetch: &mut Fetch) {
    let mut is_asked = false;
    let others = stage.pair.server.accepted.len().saturating_sub(1);
    let mut until = None;
    stage.pair.run_until(|pair| {
        let connection = pair.client.connection(fetch.client);
        if !is_asked && (connection.may_send_early() || !connection.is_handshaking()) {
            fetch.id = connection.open(Direction::Bidirectional).unwrap_or(fetch.id);
            let _ = connection.write(fetch.id, &mut Bytes::from_static(b"x"));
            let _ = connection.finish(fetch.id);
            fetch.readers.add(fetch.id);
            is_asked = true;
        }
        fetch.server = fetch.server.or_else(|| pair.server.accepted.get(others).copied());
        if let Some(server) = fetch.server {
            fetch.serve(pair, server);
        }
        if fetch.has_jumped() && until.is_none() {
            until = Some(pair.now + Duration::from_millis(3));
        }
        let is_broken = until.is_some_and(|until| pair.now < until);
        pair.down = Link { loss: if is_broken { 1.0 } else { 0.0 }, ..Link::CLEAN };
        let now = pair.now;
        fetch.readers.pump(now, pair.client.connection(fetch.client), usize::MAX);
        fetch.readers.finished.contains_key(&fetch.id)
    });
}

#[test]
fn the_papers_form_begins_with_the_average_at_once() {
    let (kept, memory) = store("history-paper");
    let mut stage = Stage::new("history-paper", memory);
    let first = stage.fetch(BIG);
    let average = kept.history().iter().next().map(|(_, record)| record.window()).expect("a sample");
    assert!(average > ByteCount::new(100_000), "{average}");
    // A full handshake: the average is the first window.
    stage.client = resuming::client_config(2);
    stage.pair.server.accepted.clear();
    let mut again = stage.begin(100_000);
    stage.finish(&mut again);
    assert_eq!(again.recalled.map(|known| (known.window, known.continues)), Some((average, false)));
    assert!(again.phases.is_empty(), "nothing is proved");
    assert!(again.took + RTT < first.took);
    stage.leave(&again);
}

#[test]
fn a_0_rtt_handshake_samples_the_connection_before_and_goes_on_from_it() {
    let (kept, memory) = store("history-paper");
    let mut stage = Stage::new("history-paper", memory);
    stage.fetch(BIG);
    let mut open = stage.begin(BIG);
    stage.finish(&mut open);
    let server = open.server.expect("served");
    let stands = stage.pair.server.connection(server).stats().congestion.window;
    let samples = |kept: &MemoryStore| kept.history().iter().next().map(|(_, record)| record.samples());
    assert_eq!(samples(&kept), Some(1));
    // The client comes again while its connection is still there.
    let mut resumed = stage.begin(100_000);
    assert!(stage.pair.client.connection(resumed.client).may_send_early());
    stage.finish(&mut resumed);
    assert_eq!(resumed.recalled.map(|known| (known.window, known.continues)), Some((stands, true)));
    assert_eq!(samples(&kept), Some(2), "sampled as the 0-RTT handshake came");
    stage.leave(&open);
    assert_eq!(samples(&kept), Some(2), "and not again at its end: one sample a transfer");
    stage.leave(&resumed);
    assert_eq!(samples(&kept), Some(3));
}

/// A client that resumes, and one that makes a full handshake.
fn returning_clients(stage: &Stage) -> [ClientConfig; 2] {
    [stage.client.clone(), resuming::client_config(2).with_tokens(Arc::clone(&stage.tokens) as _)]
}

#[test]
fn an_answer_in_the_first_flight_jumps_a_round_trip_later() {
    for turn in 0..2 {
        let mut stage = Stage::new("history", store("history").1);
        stage.is_prompt = true;
        stage.fetch(BIG);
        stage.fetch(BIG);
        stage.client = returning_clients(&stage)[turn].clone();
        let again = stage.fetch(BIG);
        let (answered, jumped) = (again.answered_at.expect("asked"), again.jumped_at.expect("known"));
        // As soon as the window that the first flight has earned is full, which is paced.
        let waited = jumped.since(answered);
        assert!(waited >= RTT && waited < RTT * 2, "{waited:?} in turn {turn}");
    }
}

#[test]
fn an_answer_to_early_data_has_the_papers_window_in_the_first_flight() {
    let (kept, memory) = store("history-paper");
    let mut stage = Stage::new("history-paper", memory);
    stage.is_prompt = true;
    stage.fetch(200_000);
    let average = kept.history().iter().next().map(|(_, record)| record.window()).expect("a sample");
    // More than an initial window, and less than a stream may hold unsent.
    assert!(average > ByteCount::new(60_000) && average < ByteCount::new(256_000), "{average}");
    let mut again = stage.begin(BIG);
    assert!(stage.pair.client.connection(again.client).may_send_early());
    stage.finish(&mut again);
    let answered = again.answered_at.expect("asked");
    let first_flight = stage.pair.log.iter().filter(|sent| !sent.from_client && sent.at == answered);
    let sent: usize = first_flight.map(|sent| sent.size).sum();
    let sent = ByteCount::from(sent);
    assert!(sent <= average && sent + ByteCount::new(1452) > average, "{sent} of {average}");
}

#[test]
fn tokens_are_renewed_as_the_path_becomes_known_and_are_few() {
    let mut stage = Stage::new("history", PathMemory::Tokens);
    let mut fetch = stage.begin(20_000_000);
    stage.finish(&mut fetch);
    let count = stage.tokens.all().len();
    assert!((2..=8).contains(&count), "{count} tokens over {:?}", fetch.took);
}

#[test]
fn a_transfer_that_ends_in_slow_start_is_told_whole() {
    let mut stage = Stage::new("history", PathMemory::Tokens);
    let _ = stage.fetch(1_000_000);
    let known = stage.fetch(1_000_000).recalled.expect("the token has told something").window;
    // Twelve, 24, 48, ... kB: the last flight but one that is acknowledged is about a fifth of it. The first record
    // worth making has 48 kB, from which nobody jumps further than from an initial window.
    assert!(known > ByteCount::new(150_000), "{known:?}");
}

/// A store that is asked and never answers.
#[derive(Debug)]
struct Broken;

impl PathStore for Broken {
    fn recall(&self, _: Duration, _: std::net::IpAddr) -> Option<PathHistory> {
        Some(PathHistory {
            window: ByteCount::new(u64::MAX),
            min_rtt: Duration::ZERO,
            age: Duration::ZERO,
            continues: true,
            loss: PathLoss::new(u32::MAX, u32::MAX),
        })
    }
    fn record(&self, _: Duration, _: std::net::IpAddr, _: &PathHistory) {}
    fn forget(&self, _: std::net::IpAddr) {}
}

#[test]
fn a_store_full_of_nonsense_stalls_nobody() {
    for profile in ["history", "history-paper", "mobile@history=true"] {
        let mut stage = Stage::new(profile, PathMemory::Store(Arc::new(Broken)));
        for _ in 0..3 {
            let fetch = stage.fetch(BIG);
            assert!(fetch.took < Duration::from_secs(2), "{:?}", fetch.took);
            // The bound of a first window, and what slow start adds to that for these bytes.
            assert!(fetch.widest <= ByteCount::new((16 << 20) + BIG), "{profile}: {}", fetch.widest);
        }
    }
}

/// Uploads by a client that keeps what it learns, each over a connection of its own.
struct Uploads {
    pair: Pair,
    client: ClientConfig,
}

impl Uploads {
    fn new(profile: &str, store: Option<Arc<MemoryStore>>) -> Self {
        let profile = posthaste_schemes::named(profile).expect("it is built in");
        let transport = TransportConfig { profile, ..crate::support::defaults() };
        let mut client = crate::support::tls::client_config(1).with_transport(Arc::new(transport));
        client.path_store = store.map(|store| store as _);
        let mut pair = Pair::new(1, crate::support::defaults(), crate::support::defaults());
        let link = Link { delay: RTT / 2, ..pair.up };
        (pair.up, pair.down) = (link, link);
        Self { pair, client }
    }

    /// How long so many bytes take, and what the client knew of the path.
    fn upload(&mut self, bytes: u64) -> (Duration, Option<PathHistory>) {
        let client = self.pair.connect_with(&self.client);
        self.pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
        let server = *self.pair.server.accepted.last().expect("it was accepted");
        let id = self.pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
        let (mut writers, mut readers) = (Writers::default(), Readers::default());
        writers.add(id, bytes);
        let begun = self.pair.now;
        self.pair.run_promptly_until(|pair| {
            writers.pump(pair.client.connection(client));
            let now = pair.now;
            readers.pump(now, pair.server.connection(server), usize::MAX);
            readers.finished.contains_key(&id)
        });
        let took = self.pair.now.since(begun);
        let recalled = self.pair.client.connection(client).recalled_path();
        let now = self.pair.now;
        self.pair.client.connection(client).close(now, 0, Bytes::new());
        self.pair.run_for(Duration::from_secs(5));
        (took, recalled)
    }
}

#[test]
fn a_client_that_uploads_again_begins_with_what_its_path_carried() {
    for profile in ["history", "history-paper", "mobile@history=true"] {
        let store = Arc::new(MemoryStore::new(rules(profile)));
        let mut uploads = Uploads::new(profile, Some(Arc::clone(&store)));
        let (first, nothing) = uploads.upload(BIG);
        assert_eq!(nothing, None, "{profile}");
        let (again, known) = uploads.upload(BIG);
        let known = known.expect("it was here before");
        assert!(known.window >= ByteCount::new(4 * 12_000), "{profile}: {known:?}");
        assert!(again + RTT < first, "{profile}: {again:?} after {first:?}");
        assert_eq!(store.history().len(), 1);
        // Another process of the same client.
        let mut later = Uploads::new(profile, Some(store));
        later.pair.now = uploads.pair.now;
        assert!(later.upload(BIG).1.is_some(), "{profile}");
    }
}

#[test]
fn a_client_without_a_store_or_a_use_for_it_learns_nothing() {
    let store = Arc::new(MemoryStore::new(rules("history")));
    for (profile, store) in [("history", None), ("cubic", Some(Arc::clone(&store)))] {
        let mut uploads = Uploads::new(profile, store);
        uploads.upload(BIG);
        assert_eq!(uploads.upload(BIG).1, None, "{profile}");
    }
    assert_eq!(store.history().len(), 0);
}

#[test]
fn one_upload_at_a_time_uses_what_is_known() {
    // spec: rfc9959 3.2 one-connection-each
    let store = Arc::new(MemoryStore::new(rules("history")));
    let mut uploads = Uploads::new("history", Some(store));
    uploads.upload(BIG);
    let [one, two] = [(); 2].map(|()| uploads.pair.connect_with(&uploads.client));
    uploads.pair.run_for(Duration::from_secs(1));
    let recalled = [one, two].map(|handle| uploads.pair.client.connection(handle).recalled_path().is_some());
    assert_eq!(recalled, [true, false]);
}
