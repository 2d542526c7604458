//! Certificates for the peers that use rustls.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::contract::{Again, Result};

/// Of this program.
static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();

/// rustls on aws-lc-rs, if [`use_ring`] did not come first.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::clone(PROVIDER.get_or_init(|| with_aes_first(aws_lc_rs::default_provider())))
}

/// Makes ring the provider of this program.
///
/// # Errors
/// It has one already.
pub fn use_ring() -> Result<()> {
    PROVIDER.set(with_aes_first(ring::default_provider())).map_err(|_| "there is a provider already".into())
}

/// Offers AES-128-GCM first: it is what `BoringSSL` chooses on machines with AES instructions, so that all peers of a
/// bench use one cipher.
fn with_aes_first(mut provider: CryptoProvider) -> Arc<CryptoProvider> {
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// A client that trusts the roots in `ca` only.
///
/// # Errors
/// The file cannot be read or holds no certificate.
pub fn client(ca: &Path, alpn: &[u8]) -> Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca)? {
        roots.add(certificate?)?;
    }
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(config)
}

/// Has a client's later handshakes be of this kind; full ones without it.
pub fn resume(config: &mut rustls::ClientConfig, again: Option<Again>) {
    if again.is_none() {
        config.resumption = rustls::client::Resumption::disabled();
    }
    config.enable_early_data = again == Some(Again::Early);
}

/// A server with one certificate chain.
///
/// # Errors
/// A file cannot be read, or key and certificate do not match.
pub fn server(cert: &Path, key: &Path, alpn: &[u8]) -> Result<rustls::ServerConfig> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<std::result::Result<Vec<_>, _>>()?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(config)
}
