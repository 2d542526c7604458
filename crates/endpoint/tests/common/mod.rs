//! What the integration tests share: an identity, and a server and a client on loopback.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use posthaste_endpoint::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, tls};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;

pub(crate) const ALPN: &[&[u8]] = &[b"test"];

/// A self-signed certificate for `localhost`, and the roots of a client that trusts it.
pub(crate) fn identity() -> (Arc<rustls::ServerConfig>, RootCertStore) {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(identity.cert.der().clone()).unwrap();
    let key: PrivateKeyDer<'static> = identity.signing_key.serialize_der().try_into().unwrap();
    (tls::server_config(vec![identity.cert.into()], key, ALPN).unwrap(), roots)
}

/// A server, a client, and what the client needs to connect.
pub(crate) struct Pair {
    pub(crate) server: Endpoint,
    pub(crate) client: Endpoint,
    pub(crate) address: SocketAddr,
    pub(crate) config: ClientConfig,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with(posthaste_endpoint::default_transport(), posthaste_endpoint::default_transport())
    }

    pub(crate) fn with(server: TransportConfig, client: TransportConfig) -> Self {
        Self::at("127.0.0.1:0", server, client)
    }

    pub(crate) fn at(local: &str, server: TransportConfig, client: TransportConfig) -> Self {
        let (server_tls, roots) = identity();
        let config = ServerConfig::new(server_tls, server);
        let server = Endpoint::server(local.parse().unwrap(), config).unwrap();
        let address = server.local_addr().unwrap();
        let client_tls = tls::client_config_with_roots(roots, ALPN).unwrap();
        let config = ClientConfig::new(client_tls, client);
        Self { server, client: Endpoint::client(local.parse().unwrap()).unwrap(), address, config }
    }

    /// One more connection: its client's end and its server's.
    pub(crate) async fn connect(&self) -> (Connection, Connection) {
        let (client, server) =
            tokio::join!(self.client.connect(&self.config, self.address, "localhost"), self.server.accept());
        (client.unwrap(), server.unwrap())
    }
}

/// Runs a test that must end within half a minute.
pub(crate) async fn bounded<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), test).await.expect("the test hangs")
}

/// `length` bytes that no shift or mix-up of blocks leaves unchanged.
pub(crate) fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut data = Vec::with_capacity(length + 8);
    while data.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data.extend_from_slice(&state.to_le_bytes());
    }
    data.truncate(length);
    data
}
