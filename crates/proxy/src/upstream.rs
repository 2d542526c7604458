//! The server to which requests go.

use std::path::Path;
use std::sync::Arc;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use posthaste_service::names_host;
use rustls::ClientConfig;

use crate::observer::UpstreamLog;

/// The URL's scheme for HTTP/2 without TLS, to a server that is known to speak it (RFC 9113 section 3.3).
const H2C: &str = "h2c";

/// What the URL of a socket of this machine begins with.
const UNIX: &str = "unix:";

/// A server that speaks HTTP/1.1 over TCP, TLS or a Unix socket, or HTTP/2 over TCP.
#[derive(Clone)]
pub struct Upstream {
    /// Scheme and authority.
    scheme: Scheme,
    authority: Authority,
    tls: Option<Arc<ClientConfig>>,
    is_neighbour: bool,
    is_http2: bool,
    /// A socket of this machine in the place of the authority.
    socket: Option<Arc<Path>>,
    log: Option<Arc<dyn UpstreamLog>>,
}

/// Why a URL does not name an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// It is not a URL.
    #[error("this is not a URL")]
    Invalid,
    /// It begins with something else.
    #[error("an upstream's URL begins with http://, https://, h2c:// or unix:/")]
    Scheme,
    /// It names a socket without its whole path, or where there are none.
    #[error("a Unix socket is named by its whole path, and only on Unix")]
    Socket,
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
    /// The server at the URL in this text, as [`Self::new`] has it, or at the Unix socket `unix:/PATH`.
    ///
    /// # Errors
    /// The text does not name an upstream.
    pub fn parse(url: &str, tls: Option<Arc<ClientConfig>>) -> Result<Self, UpstreamError> {
        let Some(path) = url.strip_prefix(UNIX) else {
            return Self::new(&url.parse().map_err(|_| UpstreamError::Invalid)?, tls);
        };
        if !cfg!(unix) || !path.starts_with('/') || path.starts_with("//") {
            return Err(UpstreamError::Socket);
        }
        // Any name will do: it is what health checks ask for.
        let authority = Authority::from_static("localhost");
        let socket = Some(Path::new(path).into());
        let (scheme, log) = (Scheme::HTTP, None);
        Ok(Self { scheme, authority, tls: None, is_neighbour: false, is_http2: false, socket, log })
    }

    /// The server at this `http`, `https` or `h2c` URL; the last is HTTP/2 without TLS. `tls` is what an `https` upstream is
    /// judged by: its roots decide which certificates are good.
    ///
    /// # Errors
    /// The URL does not name an upstream.
    pub fn new(uri: &Uri, tls: Option<Arc<ClientConfig>>) -> Result<Self, UpstreamError> {
        let is_http2 = uri.scheme_str() == Some(H2C);
        let scheme = match uri.scheme() {
            Some(_) if is_http2 => Scheme::HTTP,
            Some(scheme) if *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS => scheme.clone(),
            _ => return Err(UpstreamError::Scheme),
        };
        let authority = uri.authority().filter(|it| names_host(it));
        let authority = authority.ok_or(UpstreamError::Host)?.clone();
        if uri.path_and_query().is_some_and(|path| path != "/") {
            return Err(UpstreamError::Path);
        }
        let tls = tls.filter(|_| scheme == Scheme::HTTPS);
        if scheme == Scheme::HTTPS && tls.is_none() {
            return Err(UpstreamError::NoTls);
        }
        Ok(Self { scheme, authority, tls, is_neighbour: false, is_http2, socket: None, log: None })
    }

    /// Makes it a server of the same sites: an `https` upstream is asked for the name that the request names, as its
    /// client would ask, and must have a certificate for that. Otherwise it must have one for its own name.
    pub fn neighbour(mut self) -> Self {
        self.is_neighbour = true;
        self
    }

    /// Tells this log what happens with it. Default none.
    pub fn observed(mut self, log: Arc<dyn UpstreamLog>) -> Self {
        self.log = Some(log);
        self
    }

    pub(crate) fn log(&self) -> Option<&Arc<dyn UpstreamLog>> {
        self.log.as_ref()
    }

    /// Its own host, and its port if that is not the scheme's.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(crate) fn tls(&self) -> Option<&Arc<ClientConfig>> {
        self.tls.as_ref()
    }

    /// True if HTTP/2 is spoken there.
    pub(crate) fn is_http2(&self) -> bool {
        self.is_http2
    }

    /// The socket to connect to, if it is one of this machine.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are none"))]
    pub(crate) fn socket(&self) -> Option<&Arc<Path>> {
        self.socket.as_ref()
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
        // The URI is all that tells an upstream over HTTP/2 which site is asked for.
        let name = match (self.is_http2, self.is_neighbour && self.tls.is_some()) {
            (true, _) => Some(requested.clone()),
            (_, true) => requested.host().to_ascii_lowercase().parse().ok(),
            _ => None,
        };
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
        match &self.socket {
            Some(socket) => write!(f, "{UNIX}{}", socket.display()),
            None if self.is_http2 => write!(f, "{H2C}://{}", self.authority),
            None => write!(f, "{}://{}", self.scheme, self.authority),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(url: &str) -> Result<Upstream, UpstreamError> {
        Upstream::parse(url, None)
    }

    #[test]
    fn an_upstream_is_a_scheme_and_a_host() {
        for url in ["http://[::1]:3000", "h2c://a:50051", "unix:/run/app.sock"] {
            assert_eq!(plain(url).unwrap().to_string(), url);
        }
        assert_eq!(plain("http://a/").unwrap().to_string(), "http://a");
        for (url, error) in [
            ("ftp://a", UpstreamError::Scheme),
            ("/a", UpstreamError::Scheme),
            ("http://user@a", UpstreamError::Host),
            ("http://a/b", UpstreamError::Path),
            ("http://a/?b", UpstreamError::Path),
            ("https://a", UpstreamError::NoTls),
            ("a b", UpstreamError::Invalid),
            ("unix:app.sock", UpstreamError::Socket),
            ("unix://app.sock", UpstreamError::Socket),
            ("h2c://a/b", UpstreamError::Path),
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
    fn http2_asks_for_the_site_by_its_name() {
        let requested = Authority::from_static("site.test:1");
        let target = plain("h2c://a:1").unwrap().target(&requested, PathAndQuery::from_static("/x"));
        assert_eq!(target, "http://site.test:1/x");
    }

    #[test]
    fn plain_upstreams_share_their_connections() {
        let target = |upstream: Upstream| {
            upstream.target(&Authority::from_static("Site.test:1"), PathAndQuery::from_static("/x?y"))
        };
        assert_eq!(target(plain("http://a:3000").unwrap().neighbour()), "http://a:3000/x?y");
    }
}
