//! What a server has learnt of its clients' paths: where it is kept between connections, and what one connection
//! knows of it. The router asks and tells (`router/learning.rs`); what is made of it is the start policy's business.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posthaste_policy::history::{Average, Change, History, HistoryRules, PathRecord, RECORD_LEN};
use posthaste_policy::sample::PathHistory;
use posthaste_units::{ByteCount, Duration, Time};
use posthaste_wire::Side;

use crate::connection::Connection;

/// The first byte of a token's payload that holds a path's record.
const PAYLOAD_KIND: u8 = 1;

/// A token is made anew once what the path carries has changed by more than one in so many.
const SIGNIFICANT_CHANGE: u64 = 4;

/// Round trips between two tokens at the least (RFC 9959: several), but for those of a window that has doubled.
const LEAST_ROUNDS: u64 = 4;

/// A window so many times the one in the last token is told without waiting: a transfer that ends in slow start has no
/// later round trip, and the client would come back with a small part of what the path has shown.
const AT_ONCE: u64 = 2;

/// Tokens after which the time between two of them doubles with each, so that a long connection costs few.
const FREQUENT_TOKENS: u32 = 4;

/// Where a server keeps what it learns of paths, for the start policies that make use of it
/// ([`posthaste_policy::Profile::history_rules`]). Implementations bound what they keep, and never wait: they are
/// called while connections do.
pub trait PathStore: fmt::Debug + Send + Sync {
    /// What is known of the path to `client` at `at`, the time since the Unix epoch.
    fn recall(&self, at: Duration, client: IpAddr) -> Option<PathHistory>;

    /// A connection with `client` has seen this of the path.
    fn record(&self, at: Duration, client: IpAddr, seen: &PathHistory);

    /// What is known of the path to `client` has proved wrong.
    fn forget(&self, client: IpAddr);
}

/// Where a server keeps what it learns of paths.
#[derive(Debug, Clone, Default)]
pub enum PathMemory {
    /// Nowhere: every connection starts anew.
    #[default]
    Nowhere,
    /// With the server.
    Store(Arc<dyn PathStore>),
    /// With the client, sealed in the tokens of `NEW_TOKEN` frames. Servers that share a secret need share nothing
    /// else.
    Tokens,
}

/// A history in memory.
#[derive(Debug)]
pub struct MemoryStore(Mutex<History>);

impl MemoryStore {
    /// An empty one, kept by a profile's rules.
    pub fn new(rules: HistoryRules) -> Self {
        Self::from(History::new(rules))
    }

    /// Adds what a connection has seen; what has changed by that.
    pub fn record_change(&self, at: Duration, client: IpAddr, seen: &PathHistory) -> Vec<Change> {
        self.lock().record(at, client, seen)
    }

    /// Forgets a path; what has changed by that.
    pub fn forget_change(&self, client: IpAddr) -> Vec<Change> {
        self.lock().forget(client)
    }

    /// A copy of the history as it stands.
    pub fn history(&self) -> History {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<History> for MemoryStore {
    fn from(history: History) -> Self {
        Self(Mutex::new(history))
    }
}

impl PathStore for MemoryStore {
    fn recall(&self, at: Duration, client: IpAddr) -> Option<PathHistory> {
        self.lock().recall(at, client)
    }

    fn record(&self, at: Duration, client: IpAddr, seen: &PathHistory) {
        self.record_change(at, client, seen);
    }

    fn forget(&self, client: IpAddr) {
        self.forget_change(client);
    }
}

/// What one connection has to do with what is known of its path.
#[derive(Debug, Default)]
pub(crate) struct PathLearning {
    /// Whose path it is; set once the connection has asked what is known of it.
    client: Option<IpAddr>,
    /// The connection uses what is known; nobody else may meanwhile.
    is_user: bool,
    /// The router has been told that what was known is wrong.
    is_failure_told: bool,
    /// What had been delivered when the path was last sampled: the rest is too little to count as another transfer.
    sampled: Option<ByteCount>,
    /// What the client's token had to say.
    from_token: Option<PathRecord>,
    /// The window in the last token that was made, and when the next may be if the window stays about as it is.
    offered: Option<ByteCount>,
    next_round: u64,
    /// The round in which to ask again, whatever the window.
    next_look: u64,
    /// How many were made of this connection.
    tokens: u32,
}

impl Connection {
    /// True once the connection is one that data may be sent on, so that what is known of its path is of use: early
    /// data have been accepted, or the handshake is complete.
    pub(crate) fn is_ready_to_learn(&self) -> bool {
        let is_new = self.side == Side::Server && self.learning.client.is_none();
        is_new && (!self.is_handshaking() || self.is_early_data_accepted())
    }

    /// Whose path it is, once the connection has asked what is known of it.
    pub(crate) fn learnt_client(&self) -> Option<IpAddr> {
        self.learning.client
    }

    /// The connection has asked what is known of its path; its client's token had this to say.
    pub(crate) fn begin_learning(&mut self, client: IpAddr, from_token: Option<PathRecord>) {
        self.learning.client = Some(client);
        self.learning.from_token = from_token;
    }

    /// Begins with what is known of the path; if `is_exclusive`, nobody else may use it meanwhile.
    pub(crate) fn use_history(&mut self, now: Time, known: &PathHistory, is_exclusive: bool) {
        self.path.control.recall(known, now);
        self.learning.is_user = is_exclusive;
    }

    /// True if the connection uses what is known, and nobody else may.
    pub(crate) fn uses_history(&self) -> bool {
        self.learning.is_user
    }

    /// True, once, if what was known of the path has proved wrong.
    pub(crate) fn take_start_failure(&mut self) -> bool {
        let is_news = self.path.control.has_start_failed() && !self.learning.is_failure_told;
        self.learning.is_failure_told |= is_news;
        is_news
    }

    /// What another connection over the same path goes on from.
    pub(crate) fn path_as_it_stands(&self) -> Option<PathHistory> {
        self.path.control.remember()
    }

    /// When the handshake was complete.
    pub(crate) fn connected_at(&self) -> Option<Time> {
        self.counters.connected_at
    }

    /// What there is to remember of the path that has not been told yet: one sample a transfer.
    pub(crate) fn take_path_sample(&mut self) -> Option<PathHistory> {
        let control = &self.path.control;
        let delivered = control.delivered();
        let least = ByteCount::from(self.path.max_datagram_size()) * 10;
        if self.learning.sampled.is_some_and(|sampled| delivered < sampled + least) {
            return None;
        }
        let sample = control.remember()?;
        self.learning.sampled = Some(delivered);
        Some(sample)
    }

    /// What the next token has to say of the path, if it is time for one: the path has changed much since the last.
    pub(crate) fn next_token_record(&mut self, average: Average, at: Duration) -> Option<PathRecord> {
        let control = &self.path.control;
        let round = control.rounds();
        if round < self.learning.next_look || self.is_handshaking() || control.has_start_failed() {
            return None;
        }
        self.learning.next_look = round + 1;
        let sample = control.remember()?;
        if let Some(offered) = self.learning.offered {
            let step = sample.window.get().abs_diff(offered.get());
            let is_due = round >= self.learning.next_round && step * SIGNIFICANT_CHANGE > offered.get();
            if !is_due && sample.window < offered * AT_ONCE {
                return None;
            }
        }
        self.learning.offered = Some(sample.window);
        self.learning.tokens += 1;
        let doublings = self.learning.tokens.saturating_sub(FREQUENT_TOKENS).min(32);
        self.learning.next_round = round + (LEAST_ROUNDS << doublings);
        // One sample a transfer: each token of a connection has it instead of the one before.
        Some(PathRecord::after(self.learning.from_token.as_ref(), average, at, &sample))
    }

    /// On a server: what was known of the path when the connection began, if anything.
    pub fn recalled_path(&self) -> Option<PathHistory> {
        self.path.control.recalled()
    }
}

/// A path's record as the payload of a token.
pub(crate) fn to_payload(record: &PathRecord) -> Vec<u8> {
    [&[PAYLOAD_KIND], &record.to_bytes()[..]].concat()
}

/// The record in a token's payload. Only this server's secret has sealed it, but another version of it may have.
pub(crate) fn from_payload(payload: &[u8]) -> Option<PathRecord> {
    let record = payload.strip_prefix(&[PAYLOAD_KIND])?;
    (record.len() == RECORD_LEN).then(|| PathRecord::from_bytes(record)).flatten()
}
