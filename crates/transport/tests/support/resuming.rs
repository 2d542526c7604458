//! Configurations with what outlives a connection: sessions, 0-RTT and address tokens.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use posthaste_transport::{ClientConfig, ServerConfig, TokenOwner, TokenStore};
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

use super::tls;

/// Server name, port and version.
type Owner = (String, u16, u32);

/// Keeps tokens, and gives the newest out first.
#[derive(Debug, Default)]
pub struct Tokens(Mutex<BTreeMap<Owner, Vec<Bytes>>>);

impl Tokens {
    /// All tokens kept, whoever's.
    pub fn all(&self) -> Vec<Bytes> {
        self.0.lock().expect("no panic before").values().flatten().cloned().collect()
    }

    /// Forgets all tokens and keeps this one, for the server of the tests.
    pub fn set(&self, token: Bytes) {
        let mut tokens = self.0.lock().expect("no panic before");
        for kept in tokens.values_mut() {
            *kept = vec![token.clone()];
        }
        tokens.entry(("localhost".to_owned(), 443, 1)).or_insert_with(|| vec![token]);
    }
}

fn key(owner: &TokenOwner<'_>) -> Owner {
    (owner.server_name.to_owned(), owner.port, owner.version)
}

impl TokenStore for Tokens {
    fn take(&self, owner: &TokenOwner<'_>) -> Option<Bytes> {
        self.0.lock().expect("no panic before").get_mut(&key(owner))?.pop()
    }

    fn put(&self, owner: &TokenOwner<'_>, token: Bytes) {
        self.0.lock().expect("no panic before").entry(key(owner)).or_default().push(token);
    }
}

/// A store of sessions that outlives the servers that use it.
pub fn sessions() -> Arc<dyn StoresServerSessions> {
    ServerSessionMemoryCache::new(1024)
}

/// A server that takes 0-RTT data from clients whose sessions are in `sessions`.
pub fn server_config(seed: u64, sessions: &Arc<dyn StoresServerSessions>) -> ServerConfig {
    let mut config = tls::server_config(seed);
    let mut tls = rustls::ServerConfig::clone(&config.tls);
    tls.max_early_data_size = u32::MAX;
    tls.session_storage = Arc::clone(sessions);
    tls.send_tls13_tickets = 2;
    config.tls = Arc::new(tls);
    config
}

/// A client that sends 0-RTT data once it has a session.
pub fn client_config(seed: u64) -> ClientConfig {
    let mut config = tls::client_config(seed);
    let mut tls = rustls::ClientConfig::clone(&config.tls);
    tls.enable_early_data = true;
    config.tls = Arc::new(tls);
    config
}
