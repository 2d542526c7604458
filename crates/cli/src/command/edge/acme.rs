//! Certificates by ACME: each site has a task that sees to its own.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use posthaste_edge::{AcmeError, AcmeSite, Authority, Challenge, Config, Edge, Metrics};
use posthaste_endpoint::tls;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::exit::Failure;
use crate::log_queue::LogQueue;
use crate::trust;

/// Waits after the first failure, and at most: of an authority that cannot be reached, and of one that has refused. Let's
/// Encrypt permits five refusals per name and hour.
const UNREACHABLE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(600)];
const REFUSED: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(6 * 3600)];

/// Sees to the certificates of a configuration's sites until it is dropped.
pub(super) struct Certifying {
    _sites: JoinSet<()>,
}

/// What all sites' tasks need.
#[derive(Clone)]
struct Means {
    authority: Authority,
    edge: Edge,
    /// Port 80 answers, too.
    has_plain: bool,
    log: LogQueue,
    metrics: Metrics,
}

/// The authority of a configuration, if it names one.
///
/// # Errors
/// The certificates to trust in it cannot be read.
pub(super) fn authority(config: &Config, edge: &Edge) -> Result<Option<Authority>, Failure> {
    let Some(acme) = &config.edge.acme else { return Ok(None) };
    let acme = acme.get_ref().clone();
    let trusted = trust::in_file_or_system(acme.ca.as_deref())?;
    let config = rustls::ClientConfig::builder_with_provider(tls::crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| trust::unusable(&error))?
        .dangerous()
        .with_custom_certificate_verifier(trusted)
        .with_no_client_auth();
    Ok(Some(Authority::new(acme, config, edge.resolver().challenges().clone())))
}

impl Certifying {
    /// Begins for all sites without certificate files.
    pub(super) fn begin(
        config: &Config,
        authority: Option<&Authority>,
        edge: &Edge,
        has_plain: bool,
        (log, metrics): (&LogQueue, &Metrics),
    ) -> Self {
        let mut sites = JoinSet::new();
        for site in config.acme_sites() {
            if let Some(authority) = authority.cloned() {
                let (edge, log, metrics) = (edge.clone(), log.clone(), metrics.clone());
                let means = Means { authority, edge, has_plain, log, metrics };
                sites.spawn(means.keep(Arc::new(site)));
            }
        }
        Self { _sites: sites }
    }
}

impl Means {
    async fn keep(self, site: Arc<AcmeSite>) {
        let mut failures = 0_u32;
        loop {
            // Where one way does not lead here, the other one may.
            let kind = if self.has_plain && failures % 2 == 1 { Challenge::Http } else { Challenge::TlsAlpn };
            let wait = match self.authority.attend(&site, kind, self.edge.resolver(), SystemTime::now()).await
            {
                Ok(attended) => {
                    failures = 0;
                    if attended.renewed {
                        self.note(&format!("a new certificate is in use: {}", site.names.join(", ")));
                    }
                    attended.again
                }
                Err(error) => {
                    let wait = pause(&error, failures);
                    failures = failures.saturating_add(1);
                    self.metrics.on_bad_certificate();
                    self.note(&format!(
                        "no certificate for {}: {error}; the next try is in {} s",
                        site.name,
                        wait.as_secs()
                    ));
                    wait
                }
            };
            sleep(wait).await;
        }
    }

    fn note(&self, message: &str) {
        self.log.line(format_args!("posthaste: {message}"));
    }
}

/// How long to wait after so many failures and one more.
fn pause(error: &AcmeError, failures: u32) -> Duration {
    let [first, most] = if error.is_refusal() { REFUSED } else { UNREACHABLE };
    first.saturating_mul(2_u32.saturating_pow(failures)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_not_asked_for_again_soon() {
        let refusal = AcmeError::Refused { name: "a.test".to_owned(), reason: "no".to_owned() };
        let seconds: Vec<u64> = (0..5).map(|failures| pause(&refusal, failures).as_secs()).collect();
        assert_eq!(seconds, [60, 120, 240, 480, 960]);
        assert_eq!(pause(&refusal, u32::MAX), REFUSED[1]);
        let lost = AcmeError::Unusable("nothing".to_owned());
        assert_eq!((pause(&lost, 0), pause(&lost, 40)), (UNREACHABLE[0], UNREACHABLE[1]));
    }
}
