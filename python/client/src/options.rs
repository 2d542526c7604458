//! The settings of a client from what Python gives.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posthaste_endpoint::rustls::client::danger::ServerCertVerifier;
use posthaste_endpoint::rustls::pki_types::CertificateDer;
use posthaste_endpoint::rustls::pki_types::pem::PemObject;
use posthaste_endpoint::rustls::{self, RootCertStore};
use posthaste_endpoint::schemes::{self, ProfileError};
use posthaste_endpoint::{ClientConfig, QlogDirectory, TokenCache, TransportConfig, Version, tls};
use posthaste_http::{ALPN, ClientOptions};
use pyo3::prelude::*;

use crate::fault::Fault;

/// The longest timeout, in seconds: a year.
const MAX_SECONDS: f64 = 365.0 * 86_400.0;

/// Settings as they come from Python. The descriptions are in `posthaste.Client`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    profile: String,
    verify: Verify,
    timeout: Option<f64>,
    keep_alive: Option<f64>,
    max_redirects: usize,
    early_data: bool,
    quic_version: u8,
    qlog: Option<PathBuf>,
}

/// Whom to trust.
#[derive(FromPyObject)]
enum Verify {
    /// The system's certificates, or anyone.
    #[pyo3(transparent)]
    System(bool),
    /// The certificates in this PEM text, and the name of its file.
    #[pyo3(transparent)]
    Roots((String, Vec<u8>)),
}

impl Settings {
    /// The options of a client that keeps its address tokens in `tokens`.
    pub(crate) fn options(&self, tokens: &Arc<TokenCache>) -> Result<ClientOptions, Fault> {
        let profile = schemes::find(&self.profile).map_err(|error| match error {
            ProfileError::Unknown { .. } => {
                Fault::config(format!("{error}\n  `posthaste profiles` describes each"))
            }
            error => Fault::config(error),
        })?;
        let mut transport = TransportConfig::new(profile);
        transport.keep_alive = self.keep_alive.map(|value| seconds("keep_alive", value)).transpose()?;
        transport.qlog = self.qlog.as_ref().map(|folder| Arc::new(QlogDirectory::new(folder)) as _);
        let version = match self.quic_version {
            1 => Version::V1,
            2 => Version::V2,
            other => return Err(Fault::config(format!("quic_version is 1 or 2, not {other}"))),
        };
        let mut tls = tls::client_config_with_verifier(self.verifier()?, &[ALPN]).map_err(unusable)?;
        if self.early_data {
            tls = tls::client_with_early_data(&tls);
        }
        let quic =
            ClientConfig::new(tls, transport).with_version(version).with_tokens(Arc::clone(tokens) as _);
        let mut options = ClientOptions::new(quic);
        options.max_redirects = self.max_redirects;
        if let Some(timeout) = self.timeout {
            let timeout = seconds("timeout", timeout)?;
            options.connect_timeout = timeout;
            options.first_byte_timeout = timeout;
            options.idle_timeout = timeout;
        }
        Ok(options)
    }

    fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, Fault> {
        match &self.verify {
            Verify::System(true) => {
                let verifier = rustls_platform_verifier::Verifier::new(tls::crypto_provider());
                Ok(Arc::new(verifier.map_err(unusable)?))
            }
            Verify::System(false) => Ok(tls::trust_in_everyone()),
            Verify::Roots((file, pem)) => roots(pem).map_err(|reason| {
                Fault::config(format!(
                    "cannot read certificates from {file}: {reason}\n  \
                     it must be a PEM file, with lines `-----BEGIN CERTIFICATE-----`"
                ))
            }),
        }
    }
}

fn roots(pem: &[u8]) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("it contains no certificate".to_owned());
    }
    tls::trust_in_roots(roots).map_err(|error| error.to_string())
}

fn unusable(error: rustls::Error) -> Fault {
    Fault::config(format!(
        "the system's trusted certificates cannot be used: {error}\n  name trusted certificates with verify=FILE"
    ))
}

fn seconds(name: &str, value: f64) -> Result<Duration, Fault> {
    if value > 0.0 && value <= MAX_SECONDS {
        return Ok(Duration::from_secs_f64(value));
    }
    Err(Fault::config(format!("{name} is a number of seconds above 0 and up to {MAX_SECONDS}, not {value}")))
}
