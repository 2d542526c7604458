//! `--fallback`: HTTP/2 or HTTP/1.1 over TCP where HTTP/3 does not get through.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, Version, header};
use http_body_util::{BodyExt, Empty};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use posthaste_http::client::Response;
use posthaste_http::{Client, ClientError, Origin, resolve_reference};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use tokio::time::{Instant, sleep, timeout};

use super::Problem;

/// Head start of HTTP/3 (RFC 8305 section 5 has the same for addresses).
const HEAD_START: Duration = Duration::from_millis(250);

/// Time to connect, and for a response or its next bytes, unless the user says otherwise. The same as over HTTP/3.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

type Pool = legacy::Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// How far and for how long a client over TCP goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// Redirects that are followed; with 0 a redirect is a response like any other.
    pub(crate) max_redirects: usize,
    /// For each step; the defaults of `get` if not given.
    pub(crate) timeout: Option<Duration>,
}

/// What QUIC uses, and the suites of TLS 1.2, all of which have ephemeral keys and authenticated encryption: servers over TCP
/// may have nothing newer.
pub(crate) fn provider_over_tcp() -> Arc<CryptoProvider> {
    let mut provider = posthaste_endpoint::tls::crypto_provider().as_ref().clone();
    let all = rustls::crypto::aws_lc_rs::default_provider().cipher_suites;
    provider.cipher_suites.extend(all.into_iter().filter(|suite| suite.tls13().is_none()));
    Arc::new(provider)
}

/// TLS for TCP: the connector says which versions of HTTP it speaks.
///
/// # Errors
/// The provider knows no version of TLS.
pub(crate) fn tls_config(
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
) -> Result<rustls::ClientConfig, rustls::Error> {
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// A client over TCP beside that over QUIC.
pub(crate) struct Fallback {
    pool: Pool,
    max_redirects: usize,
    idle_timeout: Duration,
    connect_timeout: Duration,
    /// Origins that answered over TCP first: they are not waited for again.
    without_quic: Mutex<BTreeSet<Origin>>,
}

/// A response over either.
pub(crate) enum Reply {
    Quic(Box<Response>),
    Tcp(Box<TcpResponse>),
}

/// A response over TCP, and its body as it comes.
pub(crate) struct TcpResponse {
    pub(crate) uri: Uri,
    pub(crate) head: http::response::Parts,
    body: hyper::body::Incoming,
    /// From the call of [`Fallback::get`].
    pub(crate) first_byte: Duration,
    received: u64,
    idle_timeout: Duration,
}

/// Why there is no response over TCP, for people.
#[derive(Debug, Clone)]
pub(crate) struct TcpError(Arc<str>);

impl TcpError {
    fn new(error: &dyn std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            // Writing to a text cannot fail.
            let _ = write!(text, ": {error}");
            source = error.source();
        }
        Self(text.into())
    }

    fn silent(waited: Duration) -> Self {
        Self(format!("nothing came for {} s", waited.as_secs_f64()).into())
    }
}

impl fmt::Display for TcpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Fallback {
    /// With the trust of `tls`, whose ALPN must be empty.
    pub(crate) fn new(reach: Reach, tls: rustls::ClientConfig) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connect_timeout = reach.timeout.unwrap_or(CONNECT_TIMEOUT);
        tcp.set_connect_timeout(Some(connect_timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_all_versions()
            .wrap_connector(tcp);
        Self {
            pool: legacy::Client::builder(TokioExecutor::new()).build(connector),
            max_redirects: reach.max_redirects,
            idle_timeout: reach.timeout.unwrap_or(IDLE_TIMEOUT),
            connect_timeout,
            without_quic: Mutex::default(),
        }
    }

    /// Fetches over whichever answers first. HTTP/3 has a head start, and once its handshake is done TCP is not tried.
    pub(crate) async fn get(&self, quic: &Client, uri: &Uri) -> Result<Reply, Problem> {
        let started = Instant::now();
        let origin = Origin::of(uri).map_err(ClientError::from)?;
        if self.knows(&origin) {
            return self.over_tcp(uri, started).await.map(Reply::Tcp).map_err(Problem::Tcp);
        }
        let mut over_quic = pin!(quic.get(uri));
        let mut why_not = None;
        tokio::select! {
            biased;
            response = &mut over_quic => match response {
                Err(error) if is_without_quic(&error) => why_not = Some(error),
                response => return Ok(response?.into()),
            },
            () = sleep(HEAD_START) => {}
        }
        let is_connected = quic
            .connections()
            .iter()
            .any(|connection| connection.origin == origin && connection.handshake.is_some());
        if why_not.is_none() && is_connected {
            return Ok(over_quic.await?.into());
        }
        let mut over_tcp = pin!(self.over_tcp(uri, started));
        let mut tcp_error = None;
        loop {
            tokio::select! {
                biased;
                response = &mut over_quic, if why_not.is_none() => match response {
                    Err(error) if is_without_quic(&error) => why_not = Some(error),
                    response => return Ok(response?.into()),
                },
                response = &mut over_tcp, if tcp_error.is_none() => match response {
                    Ok(response) => {
                        self.note(origin);
                        return Ok(Reply::Tcp(response));
                    }
                    Err(error) => tcp_error = Some(error),
                },
            }
            if let (Some(quic), Some(tcp)) = (&why_not, &tcp_error) {
                return Err(Problem::Neither(Box::new((quic.clone(), tcp.clone()))));
            }
        }
    }

    fn knows(&self, origin: &Origin) -> bool {
        self.without_quic.lock().unwrap_or_else(PoisonError::into_inner).contains(origin)
    }

    fn note(&self, origin: Origin) {
        self.without_quic.lock().unwrap_or_else(PoisonError::into_inner).insert(origin);
    }

    /// Follows redirects, as over HTTP/3.
    pub(crate) async fn over_tcp(&self, uri: &Uri, started: Instant) -> Result<Box<TcpResponse>, TcpError> {
        let mut uri = uri.clone();
        for _ in 0..=self.max_redirects {
            let request = Request::get(uri.clone())
                .header(header::USER_AGENT, concat!("posthaste/", env!("CARGO_PKG_VERSION")))
                .header(header::ACCEPT, "*/*")
                .body(Empty::new())
                .map_err(|error| TcpError::new(&error))?;
            let response = timeout(self.connect_timeout + self.idle_timeout, self.pool.request(request))
                .await
                .map_err(|_| TcpError::silent(self.connect_timeout + self.idle_timeout))?
                .map_err(|error| TcpError::new(&error))?;
            let location = response.headers().get(header::LOCATION).filter(|_| {
                let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
                is_redirect && self.max_redirects > 0
            });
            let Some(location) = location else {
                let (head, body) = response.into_parts();
                return Ok(Box::new(TcpResponse {
                    uri,
                    head,
                    body,
                    first_byte: started.elapsed(),
                    received: 0,
                    idle_timeout: self.idle_timeout,
                }));
            };
            let location = String::from_utf8_lossy(location.as_bytes());
            uri = resolve_reference(&uri, &location).map_err(|error| TcpError::new(&error))?;
        }
        Err(TcpError(format!("more than {} redirects", self.max_redirects).into()))
    }
}

/// True for errors that another transport may not meet. A certificate that is not accepted is none: nothing is sent to a
/// server that cannot say who it is.
fn is_without_quic(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::NoAnswer { .. }
            | ClientError::Socket(_)
            | ClientError::Connect { .. }
            | ClientError::NoHttp3 { .. }
    )
}

impl Reply {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Quic(response) => response.status(),
            Self::Tcp(response) => response.head.status,
        }
    }

    /// Length of the body, if it is announced.
    pub(crate) fn content_length(&self) -> Option<u64> {
        match self {
            Self::Quic(response) => response.content_length(),
            Self::Tcp(response) => {
                let length = response.head.headers.get(header::CONTENT_LENGTH)?;
                length.to_str().ok()?.parse().ok()
            }
        }
    }

    /// Bytes of the body so far.
    pub(crate) fn received(&self) -> u64 {
        match self {
            Self::Quic(response) => response.received(),
            Self::Tcp(response) => response.received,
        }
    }

    /// The body's next bytes, or `None` when it is complete.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Problem> {
        match self {
            Self::Quic(response) => Ok(response.chunk().await?),
            Self::Tcp(response) => response.chunk().await.map_err(Problem::Tcp),
        }
    }

    /// Waits until the server has acknowledged all of the request's body; false if it takes no more of it.
    pub(super) async fn upload_sent(&mut self) -> Result<bool, ClientError> {
        match self {
            Self::Quic(response) => response.body_sent().await,
            // Nothing is sent over TCP.
            Self::Tcp(_) => Ok(true),
        }
    }
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self::Quic(Box::new(response))
    }
}

impl TcpResponse {
    /// The body's next bytes, or `None` when it is complete.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, TcpError> {
        loop {
            let frame = timeout(self.idle_timeout, self.body.frame())
                .await
                .map_err(|_| TcpError::silent(self.idle_timeout))?;
            let Some(frame) = frame.transpose().map_err(|error| TcpError::new(&error))? else {
                return Ok(None);
            };
            // Trailers are nothing to write.
            if let Ok(data) = frame.into_data() {
                self.received += data.len() as u64;
                return Ok(Some(data));
            }
        }
    }

    /// As ALPN calls it.
    pub(crate) fn protocol(&self) -> &'static str {
        if self.head.version == Version::HTTP_2 { "h2" } else { "http/1.1" }
    }
}
