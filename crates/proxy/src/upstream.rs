//! The server to which requests go.

use std::sync::Arc;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use rustls::ClientConfig;

/// A server that speaks HTTP/1.1, over TCP or TLS.
#[derive(Clone)]
pub struct Upstream {
    /// Scheme and authority.
    scheme: Scheme,
    authority: Authority,
    tls: Option<Arc<ClientConfig>>,
    is_neighbour: bool,
}

/// Why a URL does not name an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// It begins with something else.
    #[error("an upstream's URL begins with http:// or https://")]
    Scheme,
    /// It names no host, or a user.
    #[error("an upstream's URL names a host, and no user")]
    Host,
    /// It has a path or a query.
    #[error("an upstream's URL ends with its host or port: requests keep their own paths")]
    Path,
    /// It is an `https` URL without a configuration of TLS.
    #[error("an https upstream needs a configuration of TLS")]
    NoTls,
}

impl Upstream {
    /// The server at this `http` or `https` URL. `tls` is what an `https` upstream is judged by: its roots decide which
    /// certificates are good.
    ///
    /// # Errors
    /// The URL does not name an upstream.
    pub fn new(uri: &Uri, tls: Option<Arc<ClientConfig>>) -> Result<Self, UpstreamError> {
        let scheme = uri.scheme().filter(|scheme| **scheme == Scheme::HTTP || **scheme == Scheme::HTTPS);
        let scheme = scheme.ok_or(UpstreamError::Scheme)?.clone();
        let authority = uri.authority().filter(|it| !it.host().is_empty() && !it.as_str().contains('@'));
        let authority = authority.ok_or(UpstreamError::Host)?.clone();
        if uri.path_and_query().is_some_and(|path| path != "/") {
            return Err(UpstreamError::Path);
        }
        let tls = tls.filter(|_| scheme == Scheme::HTTPS);
        if scheme == Scheme::HTTPS && tls.is_none() {
            return Err(UpstreamError::NoTls);
        }
        Ok(Self { scheme, authority, tls, is_neighbour: false })
    }

    /// Makes it a server of the same sites: an `https` upstream is asked for the name that the request names, as its
    /// client would ask, and must have a certificate for that. Otherwise it must have one for its own name.
    pub fn neighbour(mut self) -> Self {
        self.is_neighbour = true;
        self
    }

    pub(crate) fn tls(&self) -> Option<&Arc<ClientConfig>> {
        self.tls.as_ref()
    }

    /// Where to connect to. `http` whatever is spoken there: connections are made by this, TLS by the request's URI.
    pub(crate) fn address(&self) -> Uri {
        let default = if self.scheme == Scheme::HTTPS { 443 } else { 80 };
        let address = format!("{}:{}", self.authority.host(), self.authority.port_u16().unwrap_or(default));
        uri(Scheme::HTTP, address.parse().unwrap_or_else(|_| self.authority.clone()), None)
    }

    /// The URI of a request for `path` of the site `requested`: its scheme and authority tell connections apart, its host
    /// is the name to be proved.
    pub(crate) fn target(&self, requested: &Authority, path: PathAndQuery) -> Uri {
        let is_theirs = self.is_neighbour && self.tls.is_some();
        let name = is_theirs.then(|| requested.host().to_ascii_lowercase().parse().ok()).flatten();
        uri(self.scheme.clone(), name.unwrap_or_else(|| self.authority.clone()), Some(path))
    }
}

fn uri(scheme: Scheme, authority: Authority, path: Option<PathAndQuery>) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(scheme);
    parts.authority = Some(authority);
    parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    // Nothing is missing.
    Uri::from_parts(parts).unwrap_or_default()
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Upstream({self})")
    }
}

impl std::fmt::Display for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(url: &str) -> Result<Upstream, UpstreamError> {
        Upstream::new(&url.parse().unwrap(), None)
    }

    #[test]
    fn an_upstream_is_a_scheme_and_a_host() {
        assert_eq!(plain("http://[::1]:3000/").unwrap().to_string(), "http://[::1]:3000");
        for (url, error) in [
            ("ftp://a", UpstreamError::Scheme),
            ("/a", UpstreamError::Scheme),
            ("http://user@a", UpstreamError::Host),
            ("http://a/b", UpstreamError::Path),
            ("http://a/?b", UpstreamError::Path),
            ("https://a", UpstreamError::NoTls),
        ] {
            assert_eq!(plain(url).unwrap_err(), error, "{url}");
        }
    }

    #[test]
    fn ports_have_defaults() {
        assert_eq!(plain("http://a").unwrap().address(), "http://a:80/");
        assert_eq!(plain("http://[::1]:3000").unwrap().address(), "http://[::1]:3000/");
    }

    #[test]
    fn plain_upstreams_share_their_connections() {
        let target = |upstream: Upstream| {
            upstream.target(&Authority::from_static("Site.test:1"), PathAndQuery::from_static("/x?y"))
        };
        assert_eq!(target(plain("http://a:3000").unwrap().neighbour()), "http://a:3000/x?y");
    }
}
