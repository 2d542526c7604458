//! Path histories of an endpoint, a server's of its clients', a client's of those to servers: asked for when a connection
//! begins, told when it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use posthaste_policy::history::{HistoryRules, PathRecord};
use posthaste_policy::sample::PathHistory;
use posthaste_units::{Duration, Time};

use super::Endpoint;
use crate::config::{ClientConfig, ServerConfig};
use crate::connection::Connection;
use crate::limits;
use crate::path::history::{PathMemory, from_payload, to_payload};

/// What an endpoint needs for them; none where the profile's start makes nothing of it, or nothing is kept.
#[derive(Debug)]
pub(super) struct PathHistories {
    rules: HistoryRules,
    memory: PathMemory,
    /// Connections that have asked what is known, by client.
    clients: BTreeMap<IpAddr, BTreeSet<u32>>,
    /// Clients whose path is in use: what is known of a path serves one connection at a time (RFC 9959 section 4.2).
    in_use: BTreeSet<IpAddr>,
    distrusted: Distrusted,
}

/// Paths that have proved to be others than a token says: their tokens until then are not believed.
#[derive(Debug, Default)]
struct Distrusted {
    until: BTreeMap<IpAddr, Duration>,
    /// No token made until then is believed: who was forgotten for lack of room is among them.
    floor: Option<Duration>,
}

impl Distrusted {
    fn insert(&mut self, client: IpAddr, at: Duration) {
        self.until.insert(client, at);
        if self.until.len() > limits::DISTRUSTED_PATHS
            && let Some((oldest, until)) = self.until.iter().min_by_key(|(_, until)| **until)
        {
            let (oldest, until) = (*oldest, *until);
            self.until.remove(&oldest);
            self.floor = Some(until);
        }
    }

    fn believes(&self, client: IpAddr, record: &PathRecord) -> bool {
        let is_after = |until: Option<&Duration>| until.is_none_or(|until| record.measured_at() > *until);
        is_after(self.until.get(&client)) && is_after(self.floor.as_ref())
    }
}

impl PathHistories {
    pub(super) fn new(server: Option<&ServerConfig>) -> Option<Self> {
        let server = server?;
        let rules = server.transport.profile.history_rules()?;
        let memory = server.path_memory.clone();
        (!matches!(memory, PathMemory::Nowhere)).then(|| Self::with(rules, memory))
    }

    fn with(rules: HistoryRules, memory: PathMemory) -> Self {
        Self {
            rules,
            memory,
            clients: BTreeMap::new(),
            in_use: BTreeSet::new(),
            distrusted: Distrusted::default(),
        }
    }

    /// What is known of the path of a connection with `client`.
    fn known(&self, at: Duration, client: IpAddr, record: Option<&PathRecord>) -> Option<PathHistory> {
        if self.rules.is_exclusive && self.in_use.contains(&client) {
            return None;
        }
        match &self.memory {
            PathMemory::Nowhere => None,
            PathMemory::Store(store) => store.recall(at, client),
            PathMemory::Tokens => record
                .filter(|record| record.is_good(self.rules.lifetime, at))
                .filter(|record| self.distrusted.believes(client, record))
                .map(|record| record.recalled(at)),
        }
    }

    fn record(&self, at: Duration, client: IpAddr, seen: &PathHistory) {
        if let PathMemory::Store(store) = &self.memory {
            store.record(at, client, seen);
        }
    }

    /// What was known of the path has proved wrong.
    fn forget(&mut self, at: Duration, client: IpAddr) {
        match &self.memory {
            PathMemory::Nowhere => {}
            PathMemory::Store(store) => store.forget(client),
            PathMemory::Tokens => self.distrusted.insert(client, at),
        }
    }
}

impl Endpoint {
    /// A client connects: true if what its connection learns is kept.
    pub(super) fn keeps_histories_as_client(&mut self, config: &ClientConfig) -> bool {
        let (Some(rules), Some(store)) = (config.transport.profile.history_rules(), &config.path_store)
        else {
            return false;
        };
        if self.path_histories.is_none() {
            self.path_histories = Some(PathHistories::with(rules, PathMemory::Store(Arc::clone(store))));
            if self.server.is_none() {
                self.clock_offset = config.clock_offset.into();
            }
        }
        // A server's endpoint whose clients keep what it learns has nowhere to keep this.
        self.path_histories.as_ref().is_some_and(|histories| matches!(histories.memory, PathMemory::Store(_)))
    }

    /// A connection has taken something in: asks for what is known of its path as soon as data may be sent on it. The
    /// first of them must not leave before, for the first flight is what the start policies decide on.
    pub(super) fn recall(&mut self, now: Time, index: u32) {
        if !self.slots.get(index).is_some_and(Connection::is_ready_for_history) {
            return;
        }
        let Some(mut histories) = self.path_histories.take() else { return };
        self.begin_history(&mut histories, now, index);
        self.path_histories = Some(histories);
    }

    /// A connection has settled: tells what it has seen of its path.
    pub(super) fn keep_history(&mut self, now: Time, index: u32) {
        let Some(mut histories) = self.path_histories.take() else { return };
        let at = self.clock_offset + now.since(Time::ZERO);
        if let Some(connection) = self.slots.get_mut(index)
            && let Some(client) = connection.history_client()
        {
            if connection.take_start_failure() {
                histories.forget(at, client);
            }
            if connection.is_closed() {
                end_history(&mut histories, at, client, index, connection);
            } else if matches!(histories.memory, PathMemory::Tokens)
                && let Some(record) = connection.next_token_record(histories.rules.average, at)
            {
                // With too many under way already, the next one will tell.
                let _ = connection.offer_token(&to_payload(&record));
            }
        }
        self.path_histories = Some(histories);
    }

    fn begin_history(&mut self, histories: &mut PathHistories, now: Time, index: u32) {
        let at = self.clock_offset + now.since(Time::ZERO);
        let Some(connection) = self.slots.get(index) else { return };
        let client = connection.path_name();
        let resumes = connection.is_early_data_accepted() && !histories.rules.is_exclusive;
        let earlier = if resumes { self.sample_earlier(histories, at, client) } else { None };
        let Some(connection) = self.slots.get_mut(index) else { return };
        let record = connection.token_payload().and_then(from_payload);
        let known = earlier.or_else(|| histories.known(at, client, record.as_ref()));
        connection.begin_history(client, record);
        if let Some(known) = known {
            connection.use_history(now, &known, histories.rules.is_exclusive);
            if histories.rules.is_exclusive {
                histories.in_use.insert(client);
            }
        }
        histories.clients.entry(client).or_default().insert(index);
    }

    /// A client's 0-RTT handshake has come: its connections that are still there are sampled, and the new one goes on
    /// from where the last of them stands.
    fn sample_earlier(
        &mut self,
        histories: &mut PathHistories,
        at: Duration,
        client: IpAddr,
    ) -> Option<PathHistory> {
        let mut last = None;
        for index in histories.clients.get(&client)? {
            let Some(earlier) = self.slots.get_mut(*index) else { continue };
            let begun = earlier.connected_at();
            if let Some(stands) = earlier.path_as_it_stands() {
                let newest = last.as_ref().is_none_or(|(other, _)| begun >= *other);
                if newest {
                    last = Some((begun, PathHistory { continues: true, ..stands }));
                }
            }
            if let Some(seen) = earlier.take_path_sample() {
                histories.record(at, client, &seen);
            }
        }
        last.map(|(_, stands)| stands)
    }

    /// The payload of a client's first token: what its last one said, until this connection knows better.
    pub(super) fn first_payload(&self, index: u32) -> Vec<u8> {
        let in_tokens = self
            .path_histories
            .as_ref()
            .is_some_and(|histories| matches!(histories.memory, PathMemory::Tokens));
        // What was known of an address is void at another.
        let is_there = |connection: &&Connection| {
            connection.history_client().is_none_or(|client| client == connection.path_name())
        };
        let connection = self.slots.get(index).filter(|_| in_tokens).filter(is_there);
        let record = connection.and_then(Connection::token_payload).and_then(from_payload);
        record.as_ref().map(to_payload).unwrap_or_default()
    }
}

/// The connection is over: its path is sampled, and free for others. Nothing is done twice.
fn end_history(
    histories: &mut PathHistories,
    at: Duration,
    client: IpAddr,
    index: u32,
    connection: &mut Connection,
) {
    let Some(indices) = histories.clients.get_mut(&client) else { return };
    if !indices.remove(&index) {
        return;
    }
    if indices.is_empty() {
        histories.clients.remove(&client);
    }
    if connection.uses_history() {
        histories.in_use.remove(&client);
    }
    if let Some(seen) = connection.take_path_sample() {
        histories.record(at, connection.path_name(), &seen);
    }
}
