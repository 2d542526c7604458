//! A certificate as it was read from its files.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use posthaste_endpoint::tls::crypto_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::config::CertificateFiles;
use crate::hosts::{Hosts, normal};

/// A certificate that ends sooner than this is warned of, unless that is more than a third of its time.
const WARNING: Duration = Duration::from_secs(14 * 86_400);

/// A certificate with its key, and what it says of itself.
pub(crate) struct Loaded {
    pub(crate) files: CertificateFiles,
    pub(crate) key: Arc<CertifiedKey>,
    names: Vec<String>,
    covered: Hosts<()>,
    begins: SystemTime,
    ends: SystemTime,
}

/// A certificate in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateState {
    /// The chain's file.
    pub chain: PathBuf,
    /// The names that it is good for.
    pub names: Vec<String>,
    /// When it begins.
    pub begins: SystemTime,
    /// When it ends.
    pub ends: SystemTime,
    /// From when on its end is near.
    pub warn_from: SystemTime,
}

impl CertificateState {
    /// What is to be said of its end, if anything.
    pub fn warning(&self, now: SystemTime) -> Option<String> {
        let (file, days) = (self.chain.display(), |time: Duration| time.as_secs() / 86_400);
        match self.ends.duration_since(now) {
            Err(past) => Some(format!("the certificate in {file} ended {} days ago", days(past.duration()))),
            Ok(left) if now >= self.warn_from => {
                Some(format!("the certificate in {file} ends in {} days", days(left)))
            }
            Ok(_) => None,
        }
    }
}

impl Loaded {
    /// Reads the files.
    ///
    /// # Errors
    /// What is wrong with them, for people.
    pub(crate) fn read(files: &CertificateFiles) -> Result<Self, String> {
        let chain = chain(&files.chain)?;
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| {
            let file = files.key.display();
            format!("cannot read a private key from {file}: {error} (it must be an unencrypted PEM file)")
        })?;
        let (names, [begins, ends]) = names_and_validity(&chain[0])
            .ok_or_else(|| format!("the first certificate in {} cannot be read", files.chain.display()))?;
        let key = CertifiedKey::from_der(chain, key, &crypto_provider()).map_err(|error| {
            format!(
                "the key in {} is not that of the first certificate in {}: {error}",
                files.key.display(),
                files.chain.display()
            )
        })?;
        let mut covered = Hosts::default();
        for name in &names {
            covered.add(name, ());
        }
        Ok(Self { files: files.clone(), key: Arc::new(key), names, covered, begins, ends })
    }

    /// True if it is good for a host in its normal form.
    pub(crate) fn covers(&self, host: &str) -> bool {
        self.covered.get(host).is_some()
    }

    pub(crate) fn state(&self) -> CertificateState {
        let third = self.ends.duration_since(self.begins).unwrap_or_default() / 3;
        let warn_from = self.ends.checked_sub(WARNING.min(third)).unwrap_or(UNIX_EPOCH);
        CertificateState {
            chain: self.files.chain.clone(),
            names: self.names.clone(),
            begins: self.begins,
            ends: self.ends,
            warn_from,
        }
    }
}

fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = read.map_err(|error| format!("cannot read certificates from {}: {error}", file.display()))?;
    if chain.is_empty() {
        return Err(format!("{} contains no line `-----BEGIN CERTIFICATE-----`", file.display()));
    }
    Ok(chain)
}

/// The names that a certificate is good for, and its begin and end; `None` if it is no certificate of version 3 (RFC 5280).
pub fn names_and_validity(certificate: &CertificateDer<'_>) -> Option<(Vec<String>, [SystemTime; 2])> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let alternatives = certificate.subject_alternative_name().ok()?;
    let names = alternatives.iter().flat_map(|names| &names.value.general_names).filter_map(name).collect();
    let validity = certificate.validity();
    let time = |seconds: i64| UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    Some((names, [validity.not_before.timestamp(), validity.not_after.timestamp()].map(time)))
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(normal(name).into_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
            let v6 = || <[u8; 16]>::try_from(*bytes).map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)));
            v4.or_else(|_| v6()).ok().map(|address| address.to_string())
        }
        _ => None,
    }
}
