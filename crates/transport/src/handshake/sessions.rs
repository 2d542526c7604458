//! TLS sessions of a server, kept apart by what binds them: the QUIC version (RFC 9369 section 5), the limits that a
//! client which resumes may rely on before the handshake is complete (RFC 9000 section 7.4.1), and what the application
//! has promised it (RFC 9114 section 7.2.4.2).

use std::sync::Arc;

use aws_lc_rs::digest;
use posthaste_wire::TransportParameters;
use rustls::server::{ProducesTickets, StoresServerSessions};

/// Bytes of the scope's name. A session keeps no more than these of what binds it.
const SCOPE_LEN: usize = 8;

/// Bytes of an [`EarlyDataContext`].
const CONTEXT_LEN: usize = 32;

/// Names a set of sessions.
type Scope = [u8; SCOPE_LEN];

/// What the application has promised to clients that send early data: a hash of its words, so that any number of them
/// takes the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EarlyDataContext(Option<[u8; CONTEXT_LEN]>);

impl EarlyDataContext {
    /// The context of these words; none of no words.
    pub(crate) fn new(words: &[u8]) -> Self {
        let hash = digest::digest(&digest::SHA256, words);
        Self(hash.as_ref().try_into().ok().filter(|_| !words.is_empty()))
    }
}

/// The scope in which sessions are issued, and another whose sessions are as good, because their clients rely on less.
/// Both may be the same.
type Scopes = [Scope; 2];

/// A store that finds only the sessions of its scopes. Others are as good as unknown: their clients make a full
/// handshake, and what they have sent early is dropped.
#[derive(Debug)]
struct Scoped {
    scopes: Scopes,
    inner: Arc<dyn StoresServerSessions>,
}

impl Scoped {
    fn keys(&self, key: &[u8]) -> [Vec<u8>; 2] {
        self.scopes.map(|scope| [&scope, key].concat())
    }
}

impl StoresServerSessions for Scoped {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let [own, _] = self.keys(&key);
        self.inner.put(own, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.keys(key).iter().find_map(|key| self.inner.get(key))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.keys(key).iter().find_map(|key| self.inner.take(key))
    }

    fn can_cache(&self) -> bool {
        self.inner.can_cache()
    }
}

/// The same for tickets that hold their sessions. They resume without early data.
#[derive(Debug)]
struct ScopedTickets {
    scopes: Scopes,
    inner: Arc<dyn ProducesTickets>,
}

impl ProducesTickets for ScopedTickets {
    fn enabled(&self) -> bool {
        self.inner.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.inner.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let [own, _] = &self.scopes;
        self.inner.encrypt(&[own, plain].concat())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let plain = self.inner.decrypt(cipher)?;
        self.scopes.iter().find_map(|scope| plain.strip_prefix(scope)).map(<[u8]>::to_vec)
    }
}

/// The scope of sessions of this version, with these limits and this promise.
fn scope(version: u32, granted: &TransportParameters, promised: &EarlyDataContext) -> Scope {
    // spec: rfc9369 5 servers-sessions
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(&version.to_be_bytes());
    for limit in granted.relied_on_early() {
        context.update(&limit.to_be_bytes());
    }
    // spec: rfc9114 7.2.4.2 unsure-refuses-early, 7.2.4.2 early-not-reduced
    if let EarlyDataContext(Some(hash)) = promised {
        context.update(hash);
    }
    let mut scope = [0; SCOPE_LEN];
    for (to, from) in scope.iter_mut().zip(context.finish().as_ref()) {
        *to = *from;
    }
    scope
}

/// The configuration for connections of this version which grant a client the first of these limits: its sessions are
/// those of connections that grant the same, or the second, and promise the same. No limit of the second may be beyond
/// the first's.
pub(crate) fn scoped(
    tls: &Arc<rustls::ServerConfig>,
    version: u32,
    (granted, least): (&TransportParameters, &TransportParameters),
    promised: &EarlyDataContext,
) -> Arc<rustls::ServerConfig> {
    // spec: rfc9000 7.4.1 accepted-not-violated, 7.4.1 accepted-not-smaller, 7.4.1 unsupported-rejected
    let scopes = [granted, least].map(|limits| scope(version, limits, promised));
    let mut config = rustls::ServerConfig::clone(tls);
    config.session_storage = Arc::new(Scoped { scopes, inner: Arc::clone(&tls.session_storage) });
    config.ticketer = Arc::new(ScopedTickets { scopes, inner: Arc::clone(&tls.ticketer) });
    Arc::new(config)
}

#[cfg(test)]
mod tests;
