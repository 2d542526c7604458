//! Whom clients trust.

use std::path::Path;
use std::sync::Arc;

use posthaste_endpoint::tls;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::exit::Failure;

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
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| fail(&error))? {
        roots.add(certificate.map_err(|error| fail(&error))?).map_err(|error| fail(&error))?;
    }
    if roots.is_empty() {
        return Err(fail(&"it contains no certificate"));
    }
    tls::trust_in_roots(roots).map_err(|error| unusable(&error))
}

/// The failure of a trust that cannot be used.
pub(crate) fn unusable(error: &rustls::Error) -> Failure {
    Failure::runtime(format!("the system's trusted certificates cannot be used: {error}"))
        .hint("name trusted certificates with --ca FILE")
}
