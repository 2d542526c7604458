//! Who the servers are, and how clients know: keys that live as long as the race.
//!
//! The handshake has the size that it has in the lab (X25519, an Ed25519 certificate, no tickets), so that real and
//! virtual time can be set side by side: with the hybrid key exchange that `posthaste get` prefers, the client's first
//! flight would be two datagrams instead of one, and lost twice as often.

use std::sync::Arc;

use posthaste_endpoint::tls::crypto_provider;
use posthaste_http::ALPN;
use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::kx_group::X25519;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::exit::Failure;

/// A certificate for 127.0.0.1 and its key.
pub(super) struct Keys {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Keys {
    pub(super) fn make() -> Result<Self, Failure> {
        let fail = |error: rcgen::Error| Failure::runtime(format!("cannot make a certificate: {error}"));
        let pair = KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(fail)?;
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::IpAddress(std::net::Ipv4Addr::LOCALHOST.into())];
        let certificate = params.self_signed(&pair).map_err(fail)?.der().clone();
        let key = PrivateKeyDer::try_from(pair.serialize_der())
            .map_err(|error| Failure::runtime(format!("cannot make a key: {error}")))?;
        Ok(Self { certificate, key })
    }

    pub(super) fn server(&self) -> Result<Arc<ServerConfig>, Failure> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| unusable(&error))?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            .map_err(|error| unusable(&error))?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.key_log = Arc::new(rustls::KeyLogFile::new());
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    pub(super) fn client(&self) -> Result<Arc<ClientConfig>, Failure> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).map_err(|error| unusable(&error))?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| unusable(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.key_log = Arc::new(rustls::KeyLogFile::new());
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

fn unusable(error: &rustls::Error) -> Failure {
    Failure::runtime(format!("TLS cannot be set up: {error}"))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { kx_groups: vec![X25519], ..crypto_provider().as_ref().clone() })
}
