//! Certificates from an authority that speaks ACME (RFC 8555).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use instant_acme::{Account, CertificateIdentifier, Error};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::task::spawn_blocking;

use crate::certificates::{CertificateState, Resolver};
use crate::config::{AcmeConfig, Config};
use crate::hosts::normal;

mod challenges;
mod http;
mod order;
mod store;

pub use challenges::{ACME_TLS, Challenge, Challenges};

/// How often an authority is asked at least when a certificate is to be renewed.
const ASK: Duration = Duration::from_secs(6 * 3600);

/// After a renewal: an authority that wants another one at once is not followed.
const REST: Duration = Duration::from_secs(3600);

/// It is not asked more often than this.
const LEAST_ASK: Duration = Duration::from_secs(60);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcmeError {
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The authority cannot be reached, or the exchange with it failed.
    #[error("{0}")]
    Protocol(#[from] Error),
    /// The authority did not find that the name leads here.
    #[error("{name}: {reason}")]
    Refused {
        /// The name.
        name: String,
        /// What the authority says.
        reason: String,
    },
    /// The authority wants to be shown in another way that a name leads here.
    #[error("{name}: the authority offers neither TLS-ALPN-01 nor HTTP-01 as it is needed")]
    NoChallenge {
        /// The name.
        name: String,
    },
    /// A key or a request cannot be made.
    #[error("{0}")]
    Request(#[from] rcgen::Error),
    /// What the authority has given is no certificate.
    #[error("the authority's certificate cannot be used: {0}")]
    Unusable(String),
}

impl AcmeError {
    /// True if the authority has refused: asking again soon would use up what it permits (rate limits).
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::NoChallenge { .. } | Self::Protocol(Error::Api(_)))
    }
}

/// An authority, and the account there.
#[derive(Clone)]
pub struct Authority {
    config: AcmeConfig,
    http: http::Http,
    challenges: Challenges,
    /// Held while the account is looked for: sites that begin together register one.
    account: Arc<tokio::sync::Mutex<()>>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A site whose certificate comes from an authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeSite {
    /// As the configuration has it.
    pub name: String,
    /// All of its names in their normal form.
    pub names: Vec<String>,
}

impl Config {
    /// The sites that have no certificate's files, if there is an authority.
    pub fn acme_sites(&self) -> Vec<AcmeSite> {
        if self.edge.acme.is_none() {
            return Vec::new();
        }
        let site = |(name, site): (&String, &crate::SiteConfig)| {
            let others = site.names.iter().map(|name| normal(name.get_ref()).into_owned());
            AcmeSite {
                name: name.clone(),
                names: std::iter::once(normal(name).into_owned()).chain(others).collect(),
            }
        };
        self.sites.iter().filter(|(_, site)| site.certificate.is_none()).map(site).collect()
    }
}

impl Authority {
    /// The authority is asked over TLS with the trust of `tls`, whose ALPN must be empty. Servers answer by `challenges`.
    pub fn new(config: AcmeConfig, tls: rustls::ClientConfig, challenges: Challenges) -> Self {
        Self { config, http: http::Http::new(tls), challenges, account: Arc::default() }
    }

    /// Has a site's certificate made or renewed if that is due `now`, and used from then on. Returns when to look again.
    ///
    /// # Errors
    /// The certificate is due and cannot be had. What there was stays in use.
    pub async fn attend(
        &self,
        site: &AcmeSite,
        kind: Challenge,
        resolver: &Resolver,
        now: SystemTime,
    ) -> Result<Attended, AcmeError> {
        let files = self.config.files(&site.name);
        let covers = |state: &CertificateState| site.names.iter().all(|name| state.names.contains(name));
        let known = resolver.states().into_iter().find(|state| state.chain == files.chain && covers(state));
        let replaces = match &known {
            Some(_) => store::read(&files.chain).await?.and_then(|pem| identifier(&pem)),
            None => None,
        };
        if known.is_none() {
            // An account is made for it, too.
            store::has_room(&files.chain).await?;
        }
        let account = order::account(self).await;
        if let Some(state) = &known {
            let (due, ask) = match (&account, &replaces) {
                (Ok(account), Some(replaces)) => due(account, replaces, state).await,
                _ => (without_window(state), ASK),
            };
            if let Ok(left) = due.duration_since(now)
                && !left.is_zero()
            {
                return Ok(Attended { renewed: false, again: left.min(ask) });
            }
            store::has_room(&files.chain).await?;
        }
        let issued = order::issue(self, &account?, &site.names, kind, replaces).await?;
        store::write(&files.chain, issued).await?;
        let (resolver, names) = (resolver.clone(), site.names.clone());
        let installed = spawn_blocking(move || resolver.install(&files, &names)).await;
        installed.unwrap_or_else(|error| Err(error.to_string())).map_err(AcmeError::Unusable)?;
        Ok(Attended { renewed: true, again: REST })
    }
}

/// When a certificate is due, and when to ask again whether that has changed.
async fn due(
    account: &Account,
    certificate: &CertificateIdentifier<'_>,
    state: &CertificateState,
) -> (SystemTime, Duration) {
    match account.renewal_info(certificate).await {
        Ok((info, again)) => {
            let window = (info.suggested_window.start.into(), info.suggested_window.end.into());
            (within(window, state), again.clamp(LEAST_ASK, ASK))
        }
        Err(_) => (without_window(state), ASK),
    }
}

/// What [`Authority::attend`] has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attended {
    /// There is a new certificate.
    pub renewed: bool,
    /// When to look again.
    pub again: Duration,
}

/// By which an authority knows the first certificate of a chain.
fn identifier(pem: &[u8]) -> Option<CertificateIdentifier<'static>> {
    let first = CertificateDer::pem_slice_iter(pem).next()?.ok()?;
    CertificateIdentifier::try_from(&first).ok().map(CertificateIdentifier::into_owned)
}

/// A moment of the window that the authority suggests (RFC 9773 section 4.2), the same whenever it is asked for.
fn within((start, end): (SystemTime, SystemTime), state: &CertificateState) -> SystemTime {
    start + end.duration_since(start).unwrap_or_default().mul_f64(luck(state))
}

/// After two thirds of the certificate's time, or up to a 50th of it later.
fn without_window(state: &CertificateState) -> SystemTime {
    let time = state.ends.duration_since(state.begins).unwrap_or_default();
    state.begins + time.mul_f64(2.0 / 3.0 + luck(state) / 50.0)
}

/// From 0 to 1, of its own for each certificate: those that were made together are not renewed together.
fn luck(state: &CertificateState) -> f64 {
    let mut hasher = DefaultHasher::new();
    (&state.names, state.ends).hash(&mut hasher);
    (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(names: &[&str]) -> CertificateState {
        let day = |day: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(day * 86_400);
        CertificateState {
            chain: "chain.pem".into(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
            begins: day(100),
            ends: day(190),
            warn_from: day(176),
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_authority_is_asked_for_nothing_that_cannot_be_kept() {
        let folder = tempfile::tempdir().unwrap();
        // Nobody listens there; that would be another error.
        let directory = "https://127.0.0.1:1/directory".to_owned();
        let config = AcmeConfig { directory, ..AcmeConfig::lets_encrypt(folder.path().to_owned()) };
        // What is written for the site meets a full disk.
        std::fs::create_dir(config.folder()).unwrap();
        std::os::unix::fs::symlink("/dev/full", config.folder().join("a.test.new")).unwrap();
        let tls = rustls::ClientConfig::builder_with_provider(posthaste_endpoint::tls::crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let resolver = Resolver::new(crate::certificates::Certificates::default());
        let authority = Authority::new(config, tls, Challenges::default());
        let site = AcmeSite { name: "a.test".to_owned(), names: vec!["a.test".to_owned()] };
        let attended = authority.attend(&site, Challenge::TlsAlpn, &resolver, SystemTime::UNIX_EPOCH).await;
        assert!(matches!(attended, Err(AcmeError::Store { .. })), "{attended:?}");
    }

    #[test]
    fn renewals_are_spread_and_in_time() {
        let moments: Vec<f64> = (0..100)
            .map(|number| {
                let state = state(&[&format!("{number}.test")]);
                let left = state.ends.duration_since(without_window(&state)).unwrap();
                left.as_secs_f64() / 86_400.0
            })
            .collect();
        assert!(moments.iter().all(|left| (28.19..=30.01).contains(left)), "{moments:?}");
        let (least, most) = moments.iter().fold((99.0_f64, 0.0_f64), |(a, b), &it| (a.min(it), b.max(it)));
        assert!(most - least > 1.0, "{least} {most}");
        let window = (state(&[]).begins, state(&[]).ends);
        let moment = within(window, &state(&["a.test"]));
        assert_eq!(moment, within(window, &state(&["a.test"])), "the same moment whenever it is asked for");
        assert!(moment >= window.0 && moment <= window.1);
    }
}
