//! TLS over TCP: with clients, and with upstreams.

use std::sync::Arc;

use posthaste_endpoint::tls::crypto_provider;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, Error, KeyLogFile, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};

use crate::certificates::Resolver;
use crate::config::TlsVersion;

/// Newest first.
static VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];

/// What QUIC uses, and the suites of TLS 1.2: all of them have ephemeral keys and authenticated encryption.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = crypto_provider().as_ref().clone();
    let all = rustls::crypto::aws_lc_rs::default_provider().cipher_suites;
    provider
        .cipher_suites
        .extend(all.into_iter().filter(|suite| matches!(suite, SupportedCipherSuite::Tls12(_))));
    Arc::new(provider)
}

fn versions(oldest: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    match oldest {
        TlsVersion::Tls12 => &VERSIONS,
        TlsVersion::Tls13 => &VERSIONS[..1],
    }
}

/// For clients over TCP, with the certificates of `resolver`, the application protocols `alpn` in the order of preference,
/// and TLS no older than `oldest`.
///
/// # Errors
/// The cryptography does not support that.
pub fn server_over_tcp(
    resolver: &Resolver,
    alpn: &[&[u8]],
    oldest: TlsVersion,
) -> Result<Arc<ServerConfig>, Error> {
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(versions(oldest))?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(resolver.clone()));
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    config.key_log = Arc::new(KeyLogFile::new());
    Ok(Arc::new(config))
}

/// For upstreams that speak HTTP/1.1 and are certified as `verifier` says.
pub(crate) fn upstream(verifier: Arc<dyn ServerCertVerifier>) -> Result<Arc<ClientConfig>, Error> {
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&VERSIONS)?;
    let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.key_log = Arc::new(KeyLogFile::new());
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_suites_have_ephemeral_keys_and_authenticated_encryption() {
        let suites = provider().cipher_suites.clone();
        let old: Vec<_> = suites.iter().filter(|suite| suite.tls13().is_none()).collect();
        assert_eq!((suites.len(), old.len()), (9, 6));
        for suite in old {
            let name = format!("{:?}", suite.suite());
            assert!(name.starts_with("TLS_ECDHE_"), "{name}");
            assert!(name.contains("_GCM_") || name.contains("_CHACHA20_POLY1305_"), "{name}");
        }
        assert!(crypto_provider().cipher_suites.iter().all(|suite| suite.tls13().is_some()), "QUIC has none");
    }
}
