//! Whom clients trust.

use std::path::Path;
use std::sync::Arc;

use posthaste_endpoint::tls;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error};

use crate::exit::Failure;

/// What a verifier leaves to the one in its field `judge`: whether a server holds the key of its certificate.
macro_rules! signatures_by_judge {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &rustls::pki_types::CertificateDer<'_>,
            signature: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            self.judge.verify_tls12_signature(message, certificate, signature)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &rustls::pki_types::CertificateDer<'_>,
            signature: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            self.judge.verify_tls13_signature(message, certificate, signature)
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            self.judge.supported_verify_schemes()
        }
    };
}
#[cfg(feature = "edge")]
pub(crate) use signatures_by_judge;

/// The certificates in this file, or the system's.
pub(crate) fn in_file_or_system(file: Option<&Path>) -> Result<Arc<dyn ServerCertVerifier>, Failure> {
    let Some(file) = file else {
        let verifier = rustls_platform_verifier::Verifier::new(tls::crypto_provider());
        return verifier.map(|verifier| Arc::new(verifier) as _).map_err(|error| unusable(&error));
    };
    let fail = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot read certificates from {}: {error}", file.display()))
            .hint("it must be a PEM file, with lines `-----BEGIN CERTIFICATE-----`")
    };
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(file).map_err(|error| fail(&error))?.collect();
    let certificates = certificates.map_err(|error| fail(&error))?;
    if certificates.is_empty() {
        return Err(fail(&"it contains no certificate"));
    }
    let mut roots = rustls::RootCertStore::empty();
    for certificate in &certificates {
        roots.add(certificate.clone()).map_err(|error| fail(&error))?;
    }
    let judge = tls::trust_in_roots(roots).map_err(|error| unusable(&error))?;
    Ok(Arc::new(Named { certificates, judge }))
}

/// The failure of a trust that cannot be used.
pub(crate) fn unusable(error: &rustls::Error) -> Failure {
    Failure::runtime(format!("the system's trusted certificates cannot be used: {error}"))
        .hint("name trusted certificates with --ca FILE")
}

/// Trusts the certificates of a file as authorities, and as the servers' own.
///
/// `openssl req -x509` makes certificates of authorities unless it is told otherwise, and webpki accepts none of these as a
/// server's own, although the user has named exactly this certificate.
#[derive(Debug)]
struct Named {
    certificates: Vec<CertificateDer<'static>>,
    judge: Arc<dyn ServerCertVerifier>,
}

/// True if nothing else is wrong with a certificate than that it is an authority's. webpki checks its time before; its error
/// has no other name here, and a new text of it would refuse, not accept.
fn is_only_an_authority(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::Other(other))
        if other.to_string() == "CaUsedAsEndEntity")
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict =
            self.judge.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verdict {
            Err(error) if is_only_an_authority(&error) && self.certificates.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    signatures_by_judge!();
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    /// A certificate for localhost as `openssl req -x509` makes it, in a file.
    fn made(directory: &Path, name: &str) -> (CertificateDer<'static>, std::path::PathBuf) {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let file = directory.join(name);
        std::fs::write(&file, certificate.pem()).unwrap();
        (certificate.der().clone(), file)
    }

    #[test]
    fn a_named_certificate_is_trusted_although_it_is_an_authoritys() {
        let directory = tempfile::tempdir().unwrap();
        let (own, file) = made(directory.path(), "own.pem");
        let (foreign, _) = made(directory.path(), "foreign.pem");
        let verifier = in_file_or_system(Some(&file)).unwrap();
        let verify = |certificate: &CertificateDer<'_>, name: &'static str, year: u64| {
            let now = UnixTime::since_unix_epoch(Duration::from_secs((year - 1970) * 31_557_600));
            let name = ServerName::try_from(name).unwrap();
            verifier.verify_server_cert(certificate, &[], &name, &[], now)
        };
        verify(&own, "localhost", 2026).unwrap();
        // Everything else still counts: the name, the time, and that it is this certificate.
        let refused = |error| matches!(error, Err(Error::InvalidCertificate(_)));
        assert!(refused(verify(&own, "example.org", 2026)));
        assert!(refused(verify(&own, "localhost", 2032)));
        assert!(refused(verify(&foreign, "localhost", 2026)));
    }
}
