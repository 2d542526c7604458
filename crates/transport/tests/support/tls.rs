//! TLS configurations whose transcripts repeat: seeded randomness and key shares, a fixed Ed25519 certificate.

use std::sync::{Arc, Mutex};

use posthaste_transport::{ClientConfig, ServerConfig};
use posthaste_units::Rng;
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
    aws_lc_rs,
};
use rustls::{NamedGroup, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The application protocol of the tests.
pub const ALPN: &[u8] = b"test";

#[derive(Debug)]
struct SeededRandom(Mutex<Rng>);

impl SecureRandom for SeededRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        self.0.lock().map_err(|_| GetRandomFailed)?.fill(buffer);
        Ok(())
    }
}

/// X25519 with one fixed private key: only for runs that must repeat.
#[derive(Debug)]
struct FixedX25519;

struct FixedExchange {
    private: aws_lc_rs_agreement::PrivateKey,
    public: Vec<u8>,
}

use ::aws_lc_rs::agreement as aws_lc_rs_agreement;

impl SupportedKxGroup for FixedX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        let algorithm = &aws_lc_rs_agreement::X25519;
        let failed = |_| rustls::Error::General("fixed key".into());
        let private =
            aws_lc_rs_agreement::PrivateKey::from_private_key(algorithm, &[7; 32]).map_err(failed)?;
        let public = private.compute_public_key().map_err(|_| rustls::Error::General("fixed key".into()))?;
        Ok(Box::new(FixedExchange { public: public.as_ref().to_vec(), private }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

impl ActiveKeyExchange for FixedExchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, rustls::Error> {
        let peer = aws_lc_rs_agreement::UnparsedPublicKey::new(&aws_lc_rs_agreement::X25519, peer);
        let failed = rustls::Error::General("key agreement".into());
        aws_lc_rs_agreement::agree(&self.private, peer, failed, |secret| Ok(SharedSecret::from(secret)))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// A provider whose every draw follows from `seed`.
pub fn provider(seed: u64) -> Arc<CryptoProvider> {
    // A provider borrows its generator and groups for ever; tests may leak them.
    let random = Box::leak(Box::new(SeededRandom(Mutex::new(Rng::from_test_seed(seed)))));
    Arc::new(CryptoProvider {
        kx_groups: vec![&FixedX25519],
        secure_random: random,
        ..aws_lc_rs::default_provider()
    })
}

/// The certificate's key: any 32 bytes are an Ed25519 seed. The PKCS#8 wrapping is RFC 8410's.
fn certificate_key() -> Vec<u8> {
    let mut der =
        vec![0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
    der.extend_from_slice(&[42; 32]);
    der
}

/// A self-signed certificate for `localhost`, the same for the whole process. `extra_names` make it long.
pub fn certificate(extra_names: usize) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let pkcs8 = PrivatePkcs8KeyDer::from(certificate_key());
    let key =
        rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &rcgen::PKCS_ED25519).expect("a valid key");
    let extra = (0..extra_names).map(|index| format!("name-{index}.of-a-long-certificate.example"));
    let names: Vec<String> = std::iter::once("localhost".to_owned()).chain(extra).collect();
    let mut parameters = rcgen::CertificateParams::new(names).expect("valid names");
    parameters.serial_number = Some(rcgen::SerialNumber::from(7));
    let certificate = parameters.self_signed(&key).expect("a certificate");
    (certificate.der().clone(), PrivateKeyDer::Pkcs8(pkcs8))
}

/// A server for `localhost`.
pub fn server_config(seed: u64) -> ServerConfig {
    server_config_with_names(seed, 0)
}

/// A server whose certificate carries `extra_names` names beside `localhost`.
pub fn server_config_with_names(seed: u64, extra_names: usize) -> ServerConfig {
    let (certificate, key) = certificate(extra_names);
    let mut tls = rustls::ServerConfig::builder_with_provider(provider(seed ^ 0x5e))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a usable certificate");
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.send_tls13_tickets = 1;
    ServerConfig::new(Arc::new(tls), crate::support::defaults())
}

/// A client that trusts [`server_config`]'s certificate.
pub fn client_config(seed: u64) -> ClientConfig {
    client_config_for(seed, 0, &[ALPN])
}

/// A client that trusts the certificate with `extra_names` names and offers `alpn`.
pub fn client_config_for(seed: u64, extra_names: usize, alpn: &[&[u8]]) -> ClientConfig {
    client_config_with_roots(seed, roots_for(extra_names), alpn)
}

/// Trust in [`server_config`]'s certificate.
pub fn roots() -> RootCertStore {
    roots_for(0)
}

fn roots_for(extra_names: usize) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(certificate(extra_names).0).expect("a certificate");
    roots
}

/// A client that trusts `roots`.
pub fn client_config_with_roots(seed: u64, roots: RootCertStore, alpn: &[&[u8]]) -> ClientConfig {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider(seed ^ 0xc1))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    // Certificates have the lengths that tests give them.
    tls.cert_decompressors.clear();
    ClientConfig::new(Arc::new(tls), crate::support::defaults())
}
