//! The certificate that a server shows, whether it is trusted or not.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use posthaste_edge::names_and_validity;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, Error};

use super::Subject;
use super::finding::{Finding, State};
use crate::civil_date::year_month_day;
use crate::exit::Failure;
use crate::trust;

/// A certificate that ends sooner is warned of.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// Notes the verdict on certificates, and lets the handshake go on: what lies behind it is to be examined, too. Nothing
/// secret is sent.
#[derive(Debug)]
pub(super) struct Observer {
    judge: Arc<dyn ServerCertVerifier>,
    seen: Mutex<Option<Seen>>,
}

/// The certificate of the last handshake.
#[derive(Debug, Clone)]
struct Seen {
    leaf: CertificateDer<'static>,
    /// Certificates that came with it.
    others: usize,
    verdict: Result<(), Error>,
}

impl Observer {
    /// Judges with the certificates of this file, or the system's.
    pub(super) fn new(ca: Option<&Path>) -> Result<Arc<Self>, Failure> {
        Ok(Arc::new(Self { judge: trust::in_file_or_system(ca)?, seen: Mutex::default() }))
    }

    fn seen(&self) -> Option<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is to be said about the certificate.
    pub(super) fn finding(&self, check: &'static str, subject: &Subject, now: SystemTime) -> Finding {
        let Some(seen) = self.seen() else {
            let detail = "the TLS handshake ended before a certificate was shown";
            return Finding::failed(check, detail, "see the server's log; does it serve TLS for this name?");
        };
        let described = names_and_validity(&seen.leaf);
        let names = described.as_ref().map(|it| it.0.join(", ")).unwrap_or_default();
        let ends = described.map(|it| it.1[1]);
        let date = ends.map(|ends| {
            let (year, month, day) = year_month_day(ends);
            format!("{year}-{month:02}-{day:02}")
        });
        let date = date.unwrap_or_else(|| "an unknown day".to_owned());
        if let Err(error) = &seen.verdict {
            let (detail, next) = fault(error, subject, &names, &date, seen.others);
            return Finding::failed(check, detail, next);
        }
        let detail = format!("for {names}, good until {date}");
        match ends.map(|ends| ends.duration_since(now).unwrap_or_default()) {
            Some(left) if left < SOON => {
                let days = left.as_secs() / 86_400;
                let next = format!("it ends in {days} days: renew it, or let `--acme DIR` do so");
                Finding::warning(check, detail, next)
            }
            _ => Finding::ok(check, detail),
        }
    }
}

/// What is wrong with a certificate, and what to do about it.
fn fault(error: &Error, subject: &Subject, names: &str, date: &str, others: usize) -> (String, String) {
    let Error::InvalidCertificate(reason) = error else {
        return (error.to_string(), "see the server's log".to_owned());
    };
    let host = &subject.host;
    match reason {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
            format!("expired on {date} (for {names})"),
            "renew the certificate; the edge uses changed files within seconds".to_owned(),
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => (
            format!("not valid yet (for {names})"),
            "check the clocks of this machine and of the authority".to_owned(),
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            format!("not for {host}, but for {names}"),
            format!("get a certificate with {host} among its names, or examine one of those names"),
        ),
        // An authority of the same name with another key gives the latter.
        CertificateError::UnknownIssuer | CertificateError::BadSignature if others == 0 => (
            format!(
                "not trusted: the server shows one certificate, without those that link it to an authority ({names})"
            ),
            "serve the whole chain (fullchain.pem), or name a private authority with --ca FILE".to_owned(),
        ),
        CertificateError::UnknownIssuer | CertificateError::BadSignature => (
            format!("not trusted: signed by an authority that is not known here (for {names})"),
            "use a public authority, or name a private one with --ca FILE".to_owned(),
        ),
        other => (format!("not valid: {other:?} (for {names})"), "get another certificate".to_owned()),
    }
}

/// The finding about the certificate over QUIC, and whether it is that over TCP.
pub(super) fn same(tcp: &Observer, finding: Finding, quic: &Observer) -> Finding {
    match (tcp.seen(), quic.seen()) {
        (Some(tcp), Some(quic)) if finding.state != State::Failed && tcp.leaf != quic.leaf => {
            let detail = format!("{}; over TCP there is another one", finding.detail);
            let next = "give both servers the same files, so that both are renewed in time";
            Finding::warning(finding.check, detail, next)
        }
        _ => finding,
    }
}

impl ServerCertVerifier for Observer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self
            .judge
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .map(drop);
        let seen = Seen { leaf: end_entity.clone().into_owned(), others: intermediates.len(), verdict };
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        Ok(ServerCertVerified::assertion())
    }

    trust::signatures_by_judge!();
}
