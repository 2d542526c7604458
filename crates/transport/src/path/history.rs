//! What a server has learnt of its clients' paths: where it is kept between connections, and what one connection
//! knows of it. The router asks and tells (`router/path_histories.rs`); what is made of it is the start policy's business.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posthaste_policy::history::{Change, History, HistoryRules, PathRecord};
use posthaste_policy::sample::PathHistory;
use posthaste_units::{ByteCount, Duration};

/// The first byte of a token's payload that holds a path's record.
const PAYLOAD_KIND: u8 = 1;

/// A token is made anew once what the path carries has changed by more than one in so many.
pub(crate) const SIGNIFICANT_CHANGE: u64 = 4;

/// Round trips between two tokens at the least (RFC 9959: several), but for those of a window that has doubled.
pub(crate) const LEAST_ROUNDS: u64 = 4;

/// A window so many times the one in the last token is told without waiting: a transfer that ends in slow start has no
/// later round trip, and the client would come back with a small part of what the path has shown.
pub(crate) const AT_ONCE: u64 = 2;

/// Tokens after which the time between two of them doubles with each, so that a long connection costs few.
pub(crate) const FREQUENT_TOKENS: u32 = 4;

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

/// The name of a client's path to a server in a [`PathStore`], which names paths by one address: a multicast address of
/// IPv6 (`ff04::/16`, `ff06::/16`), which is no host's, that holds the client's network and the server.
///
/// Over another network (Wi-Fi, mobile) the same server is at the end of another path. Of IPv4 the client's first 24 bits
/// and the whole server count, of IPv6 the client's first 48 and the server's first 64 bits. `local` is the client's
/// address, if it is known.
pub fn path_to_server(local: Option<IpAddr>, server: IpAddr) -> IpAddr {
    let mut name = [0; 16];
    match server.to_canonical() {
        IpAddr::V4(server) => {
            name[..2].copy_from_slice(&[0xff, 4]);
            if let Some(IpAddr::V4(local)) = local.map(|local| local.to_canonical()) {
                name[2..5].copy_from_slice(&local.octets()[..3]);
            }
            name[12..].copy_from_slice(&server.octets());
        }
        IpAddr::V6(server) => {
            name[..2].copy_from_slice(&[0xff, 6]);
            if let Some(IpAddr::V6(local)) = local {
                name[2..8].copy_from_slice(&local.octets()[..6]);
            }
            name[8..].copy_from_slice(&server.octets()[..8]);
        }
    }
    IpAddr::from(name)
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
pub(crate) struct ConnectionHistory {
    /// On a client: what it learns is kept.
    pub(crate) is_clients: bool,
    /// Whose path it is; set once the connection has asked what is known of it.
    pub(crate) client: Option<IpAddr>,
    /// The connection uses what is known; nobody else may meanwhile.
    pub(crate) is_user: bool,
    /// The router has been told that what was known is wrong.
    pub(crate) is_failure_told: bool,
    /// What had been delivered when the path was last sampled: the rest is too little to count as another transfer.
    pub(crate) sampled: Option<ByteCount>,
    /// What the client's token had to say.
    pub(crate) from_token: Option<PathRecord>,
    /// The window in the last token that was made, and when the next may be if the window stays about as it is.
    pub(crate) offered: Option<ByteCount>,
    pub(crate) next_round: u64,
    /// The round in which to ask again, whatever the window.
    pub(crate) next_look: u64,
    /// How many were made of this connection.
    pub(crate) tokens: u32,
}

/// A path's record as the payload of a token.
pub(crate) fn to_payload(record: &PathRecord) -> Vec<u8> {
    [&[PAYLOAD_KIND], &record.to_bytes()[..]].concat()
}

/// The record in a token's payload. Only this server's secret has sealed it, but another version of it may have.
pub(crate) fn from_payload(payload: &[u8]) -> Option<PathRecord> {
    payload.strip_prefix(&[PAYLOAD_KIND]).and_then(PathRecord::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_to_a_server_has_two_ends() {
        let name = |local: &str, server: &str| {
            path_to_server(local.parse().ok(), server.parse().unwrap()).to_string()
        };
        assert_eq!(name("192.0.2.7", "198.51.100.1"), "ff04:c000:200::c633:6401");
        assert_eq!(
            name("192.0.2.9", "::ffff:198.51.100.1"),
            name("192.0.2.7", "198.51.100.1"),
            "one network"
        );
        assert_eq!(name("", "198.51.100.1"), "ff04::c633:6401", "not known");
        assert_eq!(name("2001:db8:1::7", "2001:db8:2:3::1"), "ff06:2001:db8:1:2001:db8:2:3");
        let names = [
            name("192.0.2.7", "198.51.100.1"),
            name("192.0.3.7", "198.51.100.1"),
            name("192.0.2.7", "198.51.100.2"),
            name("2001:db8:1::7", "2001:db8:2:3::1"),
            name("2001:db8:2::7", "2001:db8:2:3::1"),
            name("2001:db8:1::7", "2001:db8:2:4::1"),
        ];
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len(), "{names:?}");
    }
}
