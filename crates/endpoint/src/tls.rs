//! TLS configurations fit for QUIC: TLS 1.3 only, with an application protocol.
//!
//! The cryptography is always aws-lc-rs, whatever the process's default may be. Where the environment variable
//! `SSLKEYLOGFILE` names a file, the connections' secrets are appended to it, for Wireshark and the like.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::StoresServerSessions;
use rustls::{
    CipherSuite, ClientConfig, DigitallySignedStruct, Error, KeyLogFile, PeerIncompatible, RootCertStore,
    ServerConfig, SignatureScheme,
};

/// The provider of all cryptography, with AES-128-GCM before AES-256-GCM, as browsers order them: the hash that comes
/// with the latter, SHA-384, is slow on most machines and would take a quarter of a handshake's time.
pub fn crypto_provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    // Another crate may have switched on the older versions, which QUIC does not have.
    provider.cipher_suites.retain(|suite| suite.tls13().is_some());
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// A cipher of TLS 1.3 that QUIC has (RFC 9001 section 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cipher {
    /// `TLS_AES_128_GCM_SHA256`.
    Aes128Gcm,
    /// `TLS_AES_256_GCM_SHA384`.
    Aes256Gcm,
    /// `TLS_CHACHA20_POLY1305_SHA256`: the fastest where the processor has no instructions for AES.
    ChaCha20Poly1305,
}

impl Cipher {
    const fn suite(self) -> CipherSuite {
        match self {
            Self::Aes128Gcm => CipherSuite::TLS13_AES_128_GCM_SHA256,
            Self::Aes256Gcm => CipherSuite::TLS13_AES_256_GCM_SHA384,
            Self::ChaCha20Poly1305 => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        }
    }
}

/// The same provider with one cipher only: a peer that does not know it cannot connect. (Initial packets keep theirs,
/// which the version prescribes: RFC 9001 section 5.2.)
pub fn crypto_provider_with(cipher: Cipher) -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() == cipher.suite());
    Arc::new(provider)
}

/// A server with this certificate chain (its own first), its key, and the application protocols that it speaks in
/// its order of preference.
///
/// # Errors
/// The key is unusable or does not belong to the certificate.
///
/// # Example
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
/// let key = identity.signing_key.serialize_der().try_into()?;
/// let tls = posthaste_endpoint::tls::server_config(vec![identity.cert.into()], key, &[b"h3"])?;
/// let config = posthaste_endpoint::ServerConfig::new(tls, posthaste_endpoint::default_transport());
/// # Ok(())
/// # }
/// ```
pub fn server_config(
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    alpn: &[&[u8]],
) -> Result<Arc<ServerConfig>, Error> {
    server_config_using(crypto_provider(), certificates, key, alpn)
}

/// The same with the cryptography of `provider`.
///
/// # Errors
/// As [`server_config`], or the provider does not support TLS 1.3.
pub fn server_config_using(
    provider: Arc<CryptoProvider>,
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    alpn: &[&[u8]],
) -> Result<Arc<ServerConfig>, Error> {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    config.alpn_protocols = owned(alpn);
    config.key_log = Arc::new(KeyLogFile::new());
    Ok(Arc::new(config))
}

/// A client that trusts servers certified by one of `roots`, and offers these application protocols.
///
/// # Errors
/// There is no root.
pub fn client_config_with_roots(roots: RootCertStore, alpn: &[&[u8]]) -> Result<Arc<ClientConfig>, Error> {
    client_config_with_verifier(trust_in_roots(roots)?, alpn)
}

/// A client that trusts whom `verifier` trusts (the platform's verifier, say), and offers these application
/// protocols.
///
/// # Errors
/// The provider does not support TLS 1.3.
pub fn client_config_with_verifier(
    verifier: Arc<dyn ServerCertVerifier>,
    alpn: &[&[u8]],
) -> Result<Arc<ClientConfig>, Error> {
    client_config_using(crypto_provider(), verifier, alpn)
}

/// The same with the cryptography of `provider`.
///
/// # Errors
/// The provider does not support TLS 1.3.
pub fn client_config_using(
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
    alpn: &[&[u8]],
) -> Result<Arc<ClientConfig>, Error> {
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(finish(config, alpn))
}

/// **Dangerous**: a client that trusts every server, whoever it is. Anyone on the path can read and change
/// everything. For tests on one's own machines only.
///
/// # Errors
/// The provider does not support TLS 1.3.
pub fn client_config_insecure(alpn: &[&[u8]]) -> Result<Arc<ClientConfig>, Error> {
    client_config_with_verifier(trust_in_everyone(), alpn)
}

/// The verifier of a client that trusts servers certified by one of `roots`.
///
/// # Errors
/// There is no root.
pub fn trust_in_roots(roots: RootCertStore) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), crypto_provider()).build();
    Ok(verifier.map_err(|error| Error::General(error.to_string()))?)
}

/// **Dangerous**: the verifier of [`client_config_insecure`].
pub fn trust_in_everyone() -> Arc<dyn ServerCertVerifier> {
    let algorithms = crypto_provider().signature_verification_algorithms;
    Arc::new(DangerouslyTrustEveryServer { algorithms })
}

/// The same server with early data (0-RTT): clients that come back may send before the handshake is complete, and
/// the server reads it, once. What such a client asks for must do no harm when it happens twice: see
/// [`Connection::is_handshaking`](crate::Connection::is_handshaking).
pub fn server_with_early_data(
    config: &ServerConfig,
    sessions: Arc<dyn StoresServerSessions>,
) -> Arc<ServerConfig> {
    let mut config = config.clone();
    // The only value but zero that QUIC knows (RFC 9001 section 4.6.1).
    // spec: rfc9001 4.6.1 early-size-sentinel
    config.max_early_data_size = u32::MAX;
    config.session_storage = sessions;
    Arc::new(config)
}

/// The same client with early data (0-RTT), for [`Endpoint::connect_early`](crate::Endpoint::connect_early).
pub fn client_with_early_data(config: &ClientConfig) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.enable_early_data = true;
    Arc::new(config)
}

fn finish(mut config: ClientConfig, alpn: &[&[u8]]) -> Arc<ClientConfig> {
    config.alpn_protocols = owned(alpn);
    config.key_log = Arc::new(KeyLogFile::new());
    Arc::new(config)
}

fn owned(alpn: &[&[u8]]) -> Vec<Vec<u8>> {
    alpn.iter().map(|protocol| protocol.to_vec()).collect()
}

/// Accepts every certificate, but not a server that does not hold the certificate's key.
#[derive(Debug)]
struct DangerouslyTrustEveryServer {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for DangerouslyTrustEveryServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // QUIC has no TLS 1.2 (RFC 9001 section 4.2).
        Err(Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_carry_the_application_protocols_in_order() {
        let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = identity.signing_key.serialize_der().try_into().unwrap();
        let server = server_config(vec![identity.cert.into()], key, &[b"h3", b"hq-interop"]).unwrap();
        assert_eq!(server.alpn_protocols, [b"h3".to_vec(), b"hq-interop".to_vec()]);
        let client = client_config_insecure(&[b"h3"]).unwrap();
        assert_eq!(client.alpn_protocols, [b"h3".to_vec()]);
    }

    #[test]
    fn a_provider_of_one_cipher_has_no_other() {
        for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
            let suites = &crypto_provider_with(cipher).cipher_suites;
            assert_eq!(
                suites.iter().map(rustls::SupportedCipherSuite::suite).collect::<Vec<_>>(),
                [cipher.suite()]
            );
        }
    }

    #[test]
    fn the_suite_with_the_fast_hash_comes_first_and_none_is_missing() {
        let suites = |provider: &CryptoProvider| -> Vec<_> {
            provider.cipher_suites.iter().map(rustls::SupportedCipherSuite::suite).collect()
        };
        let ours = suites(&crypto_provider());
        assert_eq!(ours[0], CipherSuite::TLS13_AES_128_GCM_SHA256);
        let mut all = rustls::crypto::aws_lc_rs::default_provider();
        all.cipher_suites.retain(|suite| suite.tls13().is_some());
        let all = suites(&all);
        assert_eq!(ours.len(), all.len());
        assert!(all.iter().all(|suite| ours.contains(suite)));
    }

    #[test]
    fn a_key_that_is_not_the_certificates_is_refused() {
        let one = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = other.signing_key.serialize_der().try_into().unwrap();
        assert!(server_config(vec![one.cert.into()], key, &[b"h3"]).is_err());
    }
}
