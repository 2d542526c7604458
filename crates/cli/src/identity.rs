//! The server's certificate: given, or made for localhost and kept.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use posthaste_endpoint::tls::crypto_provider;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, SanType};
use rustls::CertificateError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::civil_date::year_month_day;
use crate::exit::Failure;

/// Certificate and key that are kept, in one file so that they always belong together.
pub(crate) const KEPT: &str = "localhost.pem";

/// The name that every certificate made here has.
const LOCALHOST: &str = "localhost";

/// What was there before, in case that it was the clock that was wrong.
const REPLACED: &str = "localhost-replaced.pem";

/// The certificate alone, to be given to clients.
const PUBLIC: &str = "localhost-certificate.pem";

/// How long a made certificate is valid; browsers accept 398 days at most.
const VALIDITY: Duration = Duration::from_secs(397 * 24 * 3600);

/// A kept certificate that ends sooner than this is replaced.
const RENEWAL: Duration = Duration::from_secs(7 * 24 * 3600);

/// Clocks of other machines may be behind.
const CLOCK_SKEW: Duration = Duration::from_secs(24 * 3600);

/// Who the server is.
pub(crate) struct Identity {
    /// The chain, the server's own first.
    pub(crate) chain: Vec<CertificateDer<'static>>,
    /// The key of the first.
    pub(crate) key: PrivateKeyDer<'static>,
    /// The certificate's file.
    pub(crate) file: PathBuf,
    /// Whether it was made here, so that no client trusts it unless told to.
    pub(crate) is_own: bool,
    /// SHA-256 of the public key, as Chromium wants it.
    pub(crate) spki_hash: String,
}

impl Identity {
    /// From PEM files.
    pub(crate) fn load(certificate: &Path, key: &Path) -> Result<Self, Failure> {
        let unreadable = |what: &str, path: &Path, error: &dyn std::fmt::Display| {
            Failure::usage(format!("cannot read the {what} from {}: {error}", path.display()))
        };
        let pem = "it must be a PEM file, with lines `-----BEGIN CERTIFICATE-----`";
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unreadable("certificate", certificate, &error).hint(pem))?;
        if chain.is_empty() {
            return Err(unreadable("certificate", certificate, &"it contains no certificate").hint(pem));
        }
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| {
            unreadable("private key", key, &error)
                .hint("it must be an unencrypted PEM file: PKCS#8, SEC1 or PKCS#1")
        })?;
        let spki_hash = spki_hash(&private).map_err(|error| {
            Failure::usage(format!("the private key in {} is unusable: {error}", key.display()))
        })?;
        Ok(Self { chain, key: private, file: certificate.to_owned(), is_own: false, spki_hash })
    }

    /// The one kept in `state`, if it is good for another while, or a new one that is then kept.
    ///
    /// Clients trust the one that is kept, and the clock may be wrong: one that has not begun yet stays, unless the one
    /// before is good; one that has ended is replaced and set aside. Both are told in the log.
    pub(crate) fn keep(state: &Path, now: SystemTime) -> Result<Self, Failure> {
        Self::keep_for(state, LOCALHOST, now)
    }

    /// The same, and a certificate that is made also names this host; one that is kept may be for another.
    pub(crate) fn keep_for(state: &Path, host: &str, now: SystemTime) -> Result<Self, Failure> {
        let file = state.join(PUBLIC);
        let fail = |error: &dyn std::fmt::Display| {
            Failure::runtime(format!("cannot keep a certificate in {}: {error}", state.display()))
                .hint("choose a writable directory with --state DIR, or give --cert and --key")
        };
        let kept = state.join(KEPT);
        if !recover(state, now).map_err(|error| fail(&error))? {
            let made = make(host, now).map_err(|error| fail(&error))?;
            create_private_directory(state).map_err(|error| fail(&error))?;
            replace(&kept, made.as_bytes()).map_err(|error| fail(&error))?;
        }
        let ((chain, key, spki_hash), _) =
            read_kept(&kept, now).ok_or_else(|| fail(&"what was written cannot be read back"))?;
        let public = pem_of(&chain);
        if std::fs::read(&file).ok().as_deref() != Some(public.as_bytes()) {
            replace(&file, public.as_bytes()).map_err(|error| fail(&error))?;
        }
        Ok(Self { chain, key, file, is_own: true, spki_hash })
    }
}

type Kept = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, String);

/// How a kept certificate stands to the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Good now and for another while.
    Good,
    /// It begins later.
    Early,
    /// It has ended, or ends soon.
    Late,
}

/// Puts the certificate in its place that the clock asks for, and sets one aside that has ended; true if one is in place
/// then.
fn recover(state: &Path, now: SystemTime) -> std::io::Result<bool> {
    let (kept, replaced) = (state.join(KEPT), state.join(REPLACED));
    let (year, month, day) = year_month_day(now);
    let clock = format!("{year}-{month:02}-{day:02}");
    let file = kept.display();
    match read_kept(&kept, now).map(|(_, fit)| fit) {
        Some(Fit::Good) => Ok(true),
        Some(Fit::Early) if read_kept(&replaced, now).is_some_and(|(_, fit)| fit == Fit::Good) => {
            std::fs::rename(&replaced, &kept)?;
            tracing::warn!(%clock, "the certificate in {file} begins later; the one before it is good and used again");
            Ok(true)
        }
        Some(Fit::Early) => {
            tracing::warn!(
                %clock,
                "the certificate in {file} begins later; it is kept: set the clock, or delete it to get a new one"
            );
            Ok(true)
        }
        Some(Fit::Late) => {
            std::fs::rename(&kept, &replaced)?;
            let aside = replaced.display();
            tracing::warn!(
                %clock,
                "the certificate in {file} has ended or ends soon; a new one takes its place, which clients must be given; \
                 the old one is in {aside}, and used again if the clock was wrong"
            );
            Ok(false)
        }
        None => {
            if kept.exists() {
                tracing::warn!("{file} is damaged or of no use; a new certificate takes its place");
            }
            Ok(false)
        }
    }
}

/// What is in the file, unless it is missing, damaged, or refused by a client that trusts it, whatever the time.
fn read_kept(path: &Path, now: SystemTime) -> Option<(Kept, Fit)> {
    let pem = std::fs::read(path).ok()?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().ok()?;
    let key = PrivateKeyDer::from_pem_slice(&pem).ok()?;
    let certificate = chain.first()?;
    let signing_key = crypto_provider().key_provider.load_private_key(key.clone_key()).ok()?;
    rustls::sign::CertifiedKey::new(chain.clone(), signing_key).keys_match().ok()?;
    let fit = match fit(certificate, now)? {
        Fit::Good => fit(certificate, now + RENEWAL)?,
        other => other,
    };
    let hash = spki_hash(&key).ok()?;
    Some(((chain, key, hash), fit))
}

/// Whether a client that trusts `certificate` accepts it for localhost at `time`; `None` if it does at no time.
fn fit(certificate: &CertificateDer<'static>, time: SystemTime) -> Option<Fit> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).ok()?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), crypto_provider()).build().ok()?;
    let time = UnixTime::since_unix_epoch(time.duration_since(UNIX_EPOCH).ok()?);
    for name in [LOCALHOST, "127.0.0.1", "::1"] {
        let name = ServerName::try_from(name).ok()?;
        match verifier.verify_server_cert(certificate, &[], &name, &[], time) {
            Ok(_) => {}
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
            )) => return Some(Fit::Early),
            Err(rustls::Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. },
            )) => return Some(Fit::Late),
            Err(_) => return None,
        }
    }
    Some(Fit::Good)
}

/// A new certificate for this host and localhost, and its key, in PEM. ECDSA on P-256, which every client has.
fn make(host: &str, now: SystemTime) -> Result<String, rcgen::Error> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let others = Some(host).filter(|&host| host != LOCALHOST);
    let names: Vec<String> = [LOCALHOST].into_iter().chain(others).map(str::to_owned).collect();
    let mut params = CertificateParams::new(names)?;
    params
        .subject_alt_names
        .extend([IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)].map(SanType::IpAddress));
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "posthaste on localhost");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let day = |time| {
        let (year, month, day) = year_month_day(time);
        rcgen::date_time_ymd(year, month, day)
    };
    params.not_before = day(now.checked_sub(CLOCK_SKEW).unwrap_or(UNIX_EPOCH));
    params.not_after = day(now + VALIDITY - CLOCK_SKEW);
    let certificate = params.self_signed(&key)?;
    Ok(format!("{}{}", certificate.pem(), key.serialize_pem()))
}

fn pem_of(chain: &[CertificateDer<'_>]) -> String {
    let mut pem = String::new();
    for certificate in chain {
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        let text = STANDARD.encode(certificate);
        for line in text.as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
    }
    pem
}

/// SHA-256 of the key's `SubjectPublicKeyInfo`, in base64.
fn spki_hash(key: &PrivateKeyDer<'static>) -> Result<String, rustls::Error> {
    let provider = crypto_provider();
    let signing_key = provider.key_provider.load_private_key(key.clone_key())?;
    let public =
        signing_key.public_key().ok_or_else(|| rustls::Error::General("it has no public part".into()))?;
    sha256(&public)
}

/// SHA-256 in base64.
pub(crate) fn sha256(bytes: &[u8]) -> Result<String, rustls::Error> {
    let sha256 = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256
        .tls13()
        .ok_or_else(|| rustls::Error::General("there is no SHA-256".into()))?
        .common
        .hash_provider;
    Ok(STANDARD.encode(sha256.hash(bytes).as_ref()))
}

pub(crate) fn create_private_directory(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Puts a file in place at once, readable for its owner only.
pub(crate) fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let temporary = path.with_extension(format!("{}.part", std::process::id()));
    // What a crash left behind may have other permissions.
    let _ = std::fs::remove_file(&temporary);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&temporary).and_then(|mut file| file.write_all(content));
    let replaced = written.and_then(|()| std::fs::rename(&temporary, path));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_made_once_kept_and_renewed() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("deep/state");
        let now = SystemTime::now();
        let first = Identity::keep(&state, now).unwrap();
        assert!(first.is_own);
        let again = Identity::keep(&state, now + Duration::from_secs(300 * 24 * 3600)).unwrap();
        assert_eq!((&again.chain, &again.spki_hash), (&first.chain, &first.spki_hash));
        let renewed = Identity::keep(&state, now + Duration::from_secs(391 * 24 * 3600)).unwrap();
        assert_ne!(renewed.chain, first.chain, "it would have ended within a week");

        let given = Identity::load(&renewed.file, &state.join(KEPT)).unwrap();
        assert_eq!((given.chain, given.spki_hash), (renewed.chain, renewed.spki_hash));
        assert!(!given.is_own);
    }

    #[test]
    fn a_clock_that_is_wrong_for_a_time_costs_no_certificate() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path();
        let (now, year) = (SystemTime::now(), Duration::from_secs(366 * 24 * 3600));
        let first = Identity::keep(state, now).unwrap();
        let keeps = |time| Identity::keep(state, time).unwrap().chain == first.chain;
        assert!(keeps(now - year), "a year back");
        assert!(keeps(UNIX_EPOCH), "a battery that is empty");
        assert!(keeps(now));
        let ahead = Identity::keep(state, now + 2 * year).unwrap();
        assert_ne!(ahead.chain, first.chain, "it has ended");
        assert_eq!(Identity::keep(state, now + 2 * year).unwrap().chain, ahead.chain);
        assert!(keeps(now), "the clock was wrong");
        assert_eq!(
            std::fs::read_to_string(&first.file).unwrap(),
            pem_of(&first.chain),
            "clients get it, too"
        );
        // The one before serves only while it is good.
        std::fs::write(state.join(REPLACED), "nonsense").unwrap();
        assert!(keeps(now - year));
    }

    #[cfg(unix)]
    #[test]
    fn the_key_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        Identity::keep(&state, SystemTime::now()).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&state.join(KEPT)), 0o600);
        assert_eq!(mode(&state), 0o700);
    }

    #[test]
    fn a_damaged_file_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let first = Identity::keep(directory.path(), now).unwrap();
        let kept = directory.path().join(KEPT);
        let text = std::fs::read_to_string(&kept).unwrap();
        let other = make(LOCALHOST, now).unwrap();
        let mixed = text.split_inclusive("-----END CERTIFICATE-----\n").next().unwrap().to_owned()
            + other.split_inclusive("-----END CERTIFICATE-----\n").nth(1).unwrap();
        for damaged in ["", "nonsense", &text[..text.len() / 2], &mixed] {
            std::fs::write(&kept, damaged).unwrap();
            let next = Identity::keep(directory.path(), now).unwrap();
            assert_ne!(next.chain, first.chain);
            Identity::load(&next.file, &kept).unwrap();
        }
    }

    #[test]
    fn files_that_are_no_certificate_or_key_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let empty = directory.path().join("empty.pem");
        std::fs::write(&empty, "").unwrap();
        let own = Identity::keep(directory.path(), SystemTime::now()).unwrap();
        let missing = directory.path().join("missing.pem");
        for (certificate, key, expected) in [
            (&missing, &empty, "missing.pem"),
            (&empty, &empty, "empty.pem"),
            (&own.file, &empty, "private key"),
            (&own.file, &missing, "missing.pem"),
        ] {
            let failure = Identity::load(certificate, key).err().unwrap().to_string();
            assert!(failure.contains(expected), "{failure}");
        }
    }

    /// The hash that the OpenSSL command line makes of the same certificate's public key.
    #[test]
    fn the_hash_is_of_the_public_key() {
        let directory = tempfile::tempdir().unwrap();
        let own = Identity::keep(directory.path(), SystemTime::now()).unwrap();
        let script = "openssl x509 -in \"$0\" -pubkey -noout | openssl pkey -pubin -outform der \
                      | openssl dgst -sha256 -binary | openssl enc -base64";
        let Ok(output) = std::process::Command::new("sh").args(["-c", script]).arg(&own.file).output() else {
            return;
        };
        let theirs = String::from_utf8(output.stdout).unwrap();
        if !theirs.trim().is_empty() {
            assert_eq!(theirs.trim(), own.spki_hash);
        }
        assert_eq!(STANDARD.decode(&own.spki_hash).unwrap().len(), 32);
    }
}
