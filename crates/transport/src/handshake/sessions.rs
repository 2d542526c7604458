//! TLS sessions of a server, kept apart by what binds them: the QUIC version (RFC 9369 section 5), and the limits
//! that a client which resumes may rely on before the handshake is complete (RFC 9000 section 7.4.1).

use std::sync::Arc;

use aws_lc_rs::digest;
use posthaste_wire::TransportParameters;
use rustls::server::StoresServerSessions;

/// Bytes of the scope's name.
const SCOPE_LEN: usize = 8;

/// A store that finds only the sessions of its scope. Others are as good as unknown: their clients make a full
/// handshake, and what they have sent early is dropped.
#[derive(Debug)]
struct Scoped {
    scope: [u8; SCOPE_LEN],
    inner: Arc<dyn StoresServerSessions>,
}

impl Scoped {
    fn key(&self, key: &[u8]) -> Vec<u8> {
        [&self.scope, key].concat()
    }
}

impl StoresServerSessions for Scoped {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.inner.put(self.key(&key), value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.inner.get(&self.key(key))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.inner.take(&self.key(key))
    }

    fn can_cache(&self) -> bool {
        self.inner.can_cache()
    }
}

/// The configuration whose sessions are those of connections of this version which grant a client the same.
pub(crate) fn scoped(
    tls: &Arc<rustls::ServerConfig>,
    version: u32,
    granted: &TransportParameters,
) -> Arc<rustls::ServerConfig> {
    // spec: rfc9000 7.4.1 accepted-not-violated, 7.4.1 accepted-not-smaller, 7.4.1 unsupported-rejected
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(&version.to_be_bytes());
    for limit in granted.relied_on_early() {
        context.update(&limit.to_be_bytes());
    }
    let mut scope = [0; SCOPE_LEN];
    for (to, from) in scope.iter_mut().zip(context.finish().as_ref()) {
        *to = *from;
    }
    let mut config = rustls::ServerConfig::clone(tls);
    config.session_storage = Arc::new(Scoped { scope, inner: Arc::clone(&tls.session_storage) });
    Arc::new(config)
}
