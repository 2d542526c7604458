//! TLS configurations whose transcripts repeat: real rustls, with seeded randomness, a fixed key share, a fixed
//! clock and a fixed Ed25519 certificate (whose signatures are deterministic and of one length).

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use posthaste_units::Rng;
use rustls::client::Resumption;
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, StoresServerSessions};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{CipherSuite, ClientConfig, NamedGroup, RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};

/// The application protocol of the lab.
pub const ALPN: &[u8] = b"posthaste-lab";

/// The server's name.
pub const SERVER_NAME: &str = "localhost";

/// A moment inside the certificate's validity: 2026-01-01, in seconds since 1970.
const NOW: u64 = 1_767_225_600;

thread_local! {
    /// What [`ThreadRandom`] draws from. A provider borrows its generator for ever; one a thread, seeded anew for
    /// each run (a run never leaves its thread), leaks nothing.
    static RANDOM: RefCell<Option<Rng>> = const { RefCell::new(None) };
}

/// Everything that TLS draws on this thread from now on comes from `rng`. Call it before each run.
pub fn seed_thread(rng: Rng) {
    RANDOM.set(Some(rng));
}

#[derive(Debug)]
struct ThreadRandom;

impl SecureRandom for ThreadRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        RANDOM.with_borrow_mut(|random| match random {
            Some(rng) => {
                rng.fill(buffer);
                Ok(())
            }
            None => Err(GetRandomFailed),
        })
    }
}

/// The clock that certificates are checked by.
#[derive(Debug)]
struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(NOW)))
    }
}

/// X25519 with one fixed private key: only for runs that must repeat.
#[derive(Debug)]
struct FixedX25519;

struct FixedExchange {
    private: PrivateKey,
    public: Vec<u8>,
}

impl SupportedKxGroup for FixedX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        let failed = || rustls::Error::General("the fixed key cannot be used".into());
        let private = PrivateKey::from_private_key(&X25519, &[7; 32]).map_err(|_| failed())?;
        let public = private.compute_public_key().map_err(|_| failed())?.as_ref().to_vec();
        Ok(Box::new(FixedExchange { private, public }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

impl ActiveKeyExchange for FixedExchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, rustls::Error> {
        let failed = rustls::Error::General("key agreement".into());
        agree(&self.private, UnparsedPublicKey::new(&X25519, peer), failed, |secret| {
            Ok(SharedSecret::from(secret))
        })
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

fn provider() -> CryptoProvider {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    // Whether another crate has TLS 1.2 compiled in must not change the length of a handshake.
    provider.cipher_suites.retain(|suite| suite.tls13().is_some());
    CryptoProvider { kx_groups: vec![&FixedX25519], secure_random: &ThreadRandom, ..provider }
}

/// The certificate's key: any 32 bytes are an Ed25519 seed. The PKCS#8 wrapping is RFC 8410's.
fn certificate_key() -> PrivatePkcs8KeyDer<'static> {
    let mut der =
        vec![0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
    der.extend_from_slice(&[42; 32]);
    der.into()
}

fn certificate() -> CertificateDer<'static> {
    let key = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&certificate_key(), &rcgen::PKCS_ED25519)
        .expect("a fixed, valid key");
    let mut parameters =
        rcgen::CertificateParams::new(vec![SERVER_NAME.to_owned()]).expect("a fixed, valid name");
    parameters.serial_number = Some(rcgen::SerialNumber::from(7));
    parameters.self_signed(&key).expect("a certificate of fixed parts").der().clone()
}

/// A server for [`SERVER_NAME`] without session tickets: every handshake is a full one, and runs share no state.
///
/// # Panics
/// Never: all parts are fixed.
pub fn server() -> Arc<ServerConfig> {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    Arc::clone(CONFIG.get_or_init(|| Arc::new(server_with(provider()))))
}

fn server_with(provider: CryptoProvider) -> ServerConfig {
    let mut config = ServerConfig::builder_with_details(Arc::new(provider), Arc::new(FixedTime))
        .with_protocol_versions(&[&TLS13])
        .expect("the provider speaks TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate()], PrivateKeyDer::Pkcs8(certificate_key()))
        .expect("the key is the certificate's");
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    // Sizes must not depend on how well a library compresses.
    config.cert_compressors.clear();
    config
}

/// A client that trusts [`server`] and remembers nothing.
///
/// # Panics
/// Never: all parts are fixed.
pub fn client() -> Arc<ClientConfig> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    Arc::clone(CONFIG.get_or_init(|| Arc::new(client_with(provider()))))
}

fn client_with(provider: CryptoProvider) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate()).expect("a valid certificate");
    let mut config = ClientConfig::builder_with_details(Arc::new(provider), Arc::new(FixedTime))
        .with_protocol_versions(&[&TLS13])
        .expect("the provider speaks TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    config.cert_decompressors.clear();
    config
}

/// The TLS configurations of the two ends of a connection.
#[derive(Clone)]
pub struct Pair {
    /// The end that begins.
    pub client: Arc<ClientConfig>,
    /// The end that answers.
    pub server: Arc<ServerConfig>,
}

/// [`client`] and [`server`]: every handshake is a full one.
impl Default for Pair {
    fn default() -> Self {
        Self { client: client(), server: server() }
    }
}

/// What a client makes of having met the server before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returning {
    /// Nothing: a full handshake.
    Forgetful,
    /// It resumes its session.
    Resuming,
    /// It resumes its session, and sends before the handshake is complete (0-RTT).
    Early,
}

/// Sessions that a server keeps at once, in [`ticketing`].
const SESSIONS: usize = 1_024;

/// Ends of which the server gives each client a ticket, and takes early data; with AES-128-GCM, which most programs
/// prefer. The server counts in `resumed` the sessions that it has found again. Clients of one pair share what they
/// remember.
///
/// # Panics
/// Never: all parts are fixed.
pub fn ticketing(returning: Returning, resumed: Arc<AtomicU64>) -> Pair {
    let mut provider = provider();
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    let mut server = server_with(provider.clone());
    server.session_storage =
        Arc::new(CountedSessions { found: resumed, inner: ServerSessionMemoryCache::new(SESSIONS) });
    server.send_tls13_tickets = 1;
    // The only value but zero that QUIC knows (RFC 9001 section 4.6.1).
    server.max_early_data_size = u32::MAX;
    let mut client = client_with(provider);
    if returning != Returning::Forgetful {
        client.resumption = Resumption::in_memory_sessions(SESSIONS);
        client.enable_early_data = returning == Returning::Early;
    }
    Pair { client: Arc::new(client), server: Arc::new(server) }
}

/// A store that counts what is found in it.
#[derive(Debug)]
struct CountedSessions {
    found: Arc<AtomicU64>,
    inner: Arc<ServerSessionMemoryCache>,
}

impl CountedSessions {
    fn counted(&self, session: Option<Vec<u8>>) -> Option<Vec<u8>> {
        self.found.fetch_add(u64::from(session.is_some()), Ordering::Relaxed);
        session
    }
}

impl StoresServerSessions for CountedSessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.inner.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.counted(self.inner.get(key))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.counted(self.inner.take(key))
    }

    fn can_cache(&self) -> bool {
        true
    }
}
