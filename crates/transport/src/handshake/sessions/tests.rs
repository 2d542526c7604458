use rustls::server::{ResolvesServerCertUsingSni, ServerSessionMemoryCache};

use super::*;

/// Tickets in the clear, backwards.
#[derive(Debug)]
struct Reversing;

impl ProducesTickets for Reversing {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        77
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        Some(plain.iter().rev().copied().collect())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.encrypt(cipher)
    }
}

fn tls() -> Arc<rustls::ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
    config.session_storage = ServerSessionMemoryCache::new(8);
    config.ticketer = Arc::new(Reversing);
    Arc::new(config)
}

#[test]
fn sessions_and_tickets_are_good_where_they_were_issued() {
    // spec: rfc9369 5 servers-sessions, rfc9114 7.2.4.2 unsure-refuses-early
    let tls = tls();
    let granted = TransportParameters { initial_max_data: 1000, ..TransportParameters::default() };
    let less = TransportParameters { initial_max_data: 999, ..TransportParameters::default() };
    let (none, promise) = (EarlyDataContext::default(), EarlyDataContext::new(b"32 KiB"));
    let home = scoped(&tls, 1, (&granted, &granted), &promise);
    home.session_storage.put(b"key".to_vec(), b"session".to_vec());
    let ticket = home.ticketer.encrypt(b"session").unwrap();
    assert_eq!((home.ticketer.enabled(), home.ticketer.lifetime()), (true, 77));
    for (version, granted, promised, is_good) in [
        (1, &granted, promise, true),
        (2, &granted, promise, false),
        (1, &less, promise, false),
        (1, &granted, EarlyDataContext::new(b"16 KiB"), false),
        (1, &granted, none, false),
    ] {
        let here = scoped(&tls, version, (granted, granted), &promised);
        assert_eq!(here.session_storage.get(b"key").is_some(), is_good, "{version} {promised:?}");
        let opened = here.ticketer.decrypt(&ticket);
        assert_eq!(opened.as_deref(), is_good.then_some(&b"session"[..]), "{version} {promised:?}");
    }
    // Tickets of a former build, or of nobody.
    for foreign in [&b""[..], b"short", &[7; 500]] {
        assert_eq!(home.ticketer.decrypt(foreign), None);
    }
}

#[test]
fn sessions_of_lower_limits_are_good_and_those_of_higher_ones_are_not() {
    let tls = tls();
    let of = |initial_max_data| TransportParameters { initial_max_data, ..TransportParameters::default() };
    let (much, least) = (of(1000), of(10));
    let promise = EarlyDataContext::default();
    let roomy = scoped(&tls, 1, (&much, &least), &promise);
    let full = scoped(&tls, 1, (&least, &least), &promise);
    for (issuer, judge, is_good) in
        [(&full, &roomy, true), (&roomy, &full, false), (&roomy, &roomy, true), (&full, &full, true)]
    {
        issuer.session_storage.put(b"key".to_vec(), b"session".to_vec());
        let ticket = issuer.ticketer.encrypt(b"session").unwrap();
        assert_eq!(judge.session_storage.get(b"key").is_some(), is_good);
        assert_eq!(judge.session_storage.take(b"key").is_some(), is_good);
        assert_eq!(judge.ticketer.decrypt(&ticket).is_some(), is_good);
        issuer.session_storage.take(b"key");
    }
}

#[test]
fn promises_of_any_length_take_the_same_place() {
    assert_eq!(EarlyDataContext::new(b""), EarlyDataContext::default());
    let long = vec![1; 1_000_000];
    assert_ne!(EarlyDataContext::new(&long), EarlyDataContext::new(&long[1..]));
}
