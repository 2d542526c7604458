//! Who the edge is: certificates by name.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::acme::{ACME_TLS, Challenges};
use crate::config::CertificateFiles;
use crate::hosts::{Hosts, normal};

mod loaded;
mod watch;

pub(crate) use loaded::Loaded;
pub use loaded::{CertificateState, names_and_validity};
pub use watch::Watched;

/// Chooses the certificate of a connection by the name that the client asks for. Clones share the certificates; what
/// replaces them does not touch connections.
#[derive(Clone)]
pub struct Resolver {
    certificates: Arc<ArcSwap<Certificates>>,
    challenges: Challenges,
}

impl Resolver {
    pub(crate) fn new(certificates: Certificates) -> Self {
        Self {
            certificates: Arc::new(ArcSwap::from_pointee(certificates)),
            challenges: Challenges::default(),
        }
    }

    /// The answers to an authority that looks whether a name leads here: a client that offers [`ACME_TLS`] gets the
    /// certificate that is there for that name, or none.
    pub fn challenges(&self) -> &Challenges {
        &self.challenges
    }

    pub(crate) fn set(&self, certificates: Certificates) {
        self.certificates.store(Arc::new(certificates));
    }

    pub(crate) fn current(&self) -> Arc<Certificates> {
        self.certificates.load_full()
    }

    /// Reads a certificate that is new in these files, and has the site of these names use it.
    ///
    /// # Errors
    /// The files cannot be used; why, for people.
    pub(crate) fn install(&self, files: &CertificateFiles, names: &[String]) -> Result<(), String> {
        let loaded = Arc::new(Loaded::read(files)?);
        self.certificates.rcu(|current| {
            let mut next = current.with(&loaded);
            next.add(Arc::clone(&loaded), names);
            next
        });
        Ok(())
    }

    /// The certificates in use, each with its names and its end.
    pub fn states(&self) -> Vec<CertificateState> {
        self.current().all.iter().map(|loaded| loaded.state()).collect()
    }

    /// True if the certificate that a client got who asked for `server_name` is good for `host`, too: a client that has
    /// checked it may use the connection for both (RFC 9114 section 3.3).
    pub(crate) fn covers(&self, server_name: Option<&str>, host: &str) -> bool {
        self.certificates.load().choose(server_name).is_some_and(|shown| shown.covers(host))
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if hello.alpn().is_some_and(|mut protocols| protocols.any(|protocol| protocol == ACME_TLS)) {
            return self.challenges.certificate(&normal(hello.server_name()?));
        }
        self.certificates.load().choose(hello.server_name()).map(|loaded| Arc::clone(&loaded.key))
    }
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver").field("certificates", &self.current().all.len()).finish()
    }
}

/// The certificates of all sites.
#[derive(Clone, Default)]
pub(crate) struct Certificates {
    /// The first is for clients that ask for no name, or for one that nobody has.
    all: Vec<Arc<Loaded>>,
    /// Indexes by the names of sites.
    by_site: Hosts<usize>,
}

impl Certificates {
    /// Adds a site's certificate, once for all sites that have its files; a default site's becomes the first.
    pub(crate) fn add(&mut self, loaded: Arc<Loaded>, names: &[String]) {
        let known = self.all.iter().position(|other| other.files == loaded.files);
        let index = known.unwrap_or(self.all.len());
        if known.is_none() {
            self.all.push(loaded);
        }
        for name in names {
            self.by_site.add(name, index);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Loaded>> {
        self.all.iter()
    }

    /// The same with a certificate in the place of the one from the same files.
    pub(crate) fn with(&self, loaded: &Arc<Loaded>) -> Self {
        let mut other = self.clone();
        for place in other.all.iter_mut().filter(|place| place.files == loaded.files) {
            *place = Arc::clone(loaded);
        }
        other
    }

    /// That of the site of this name, or one that has the name, or the first.
    fn choose(&self, server_name: Option<&str>) -> Option<&Arc<Loaded>> {
        let named = server_name.map(normal).and_then(|name| {
            let of_site = self.by_site.get(&name).and_then(|index| self.all.get(*index));
            of_site.or_else(|| self.all.iter().find(|loaded| loaded.covers(&name)))
        });
        named.or_else(|| self.all.first())
    }
}

#[cfg(test)]
mod tests;
