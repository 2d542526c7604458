//! A client's connection to the edge, over any version of HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri, Version, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioExecutor, TokioIo};
use posthaste_endpoint::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use posthaste_endpoint::rustls::{self, RootCertStore};
use posthaste_endpoint::{ClientConfig, Endpoint, default_transport, tls};
use posthaste_http::client::Response;
use posthaste_http::{ALPN, Client, ClientOptions};
use posthaste_http3::ConnectProtocol;
use posthaste_service::{Body, BodySender};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Result;

/// How a client comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    Http1,
    Http2,
    Http3,
}

impl Way {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "h1",
            Self::Http2 => "h2",
            Self::Http3 => "h3",
        }
    }
}

/// Where clients connect to, and whom they trust. Clients share their TLS sessions.
#[derive(Clone)]
pub(crate) struct Place {
    address: SocketAddr,
    /// For how long a response over HTTP/3 may be silent.
    pub(crate) silence: Duration,
    quic: ClientConfig,
    http1: Arc<rustls::ClientConfig>,
    http2: Arc<rustls::ClientConfig>,
}

/// A connection.
pub(crate) enum Connection {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
    Http3(Client),
}

/// A response whose head is here.
pub(crate) enum Answer {
    Tcp(http::Response<Incoming>),
    Quic(Box<Response>),
}

/// A WebSocket's bytes.
pub(crate) enum Tunnel {
    Tcp(Box<TokioIo<Upgraded>>),
    Quic(BodySender, Box<Response>),
}

impl Place {
    /// With the certificates of this file.
    pub(crate) fn new(ca: &str, address: SocketAddr) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(ca)?)?;
        let config = |protocol: &[u8]| tls::client_config_with_roots(roots.clone(), &[protocol]);
        let quic = tls::client_with_early_data(&*config(ALPN)?);
        let quic = ClientConfig::new(quic, default_transport());
        let silence = Duration::from_secs(30);
        Ok(Self { address, silence, quic, http1: config(b"http/1.1")?, http2: config(b"h2")? })
    }

    pub(crate) fn uri(&self, path: &str) -> Result<Uri> {
        Ok(format!("https://{}{path}", self.address).parse()?)
    }

    /// A connection for HTTP/3 by hand, and its endpoint.
    pub(crate) async fn raw(&self) -> Result<(Endpoint, posthaste_endpoint::Connection)> {
        let endpoint = Endpoint::client((std::net::Ipv4Addr::LOCALHOST, 0).into())?;
        let host = self.address.ip().to_string();
        let connection = endpoint.connect(&self.quic, self.address, &host).await?;
        Ok((endpoint, connection))
    }

    /// Connects. Over TCP a client that `vanishes` ends its connection by a reset.
    pub(crate) async fn connect(&self, way: Way, vanishes: bool) -> Result<Connection> {
        let tls = match way {
            Way::Http1 => &self.http1,
            Way::Http2 => &self.http2,
            Way::Http3 => {
                let options = ClientOptions::new(self.quic.clone());
                let options = ClientOptions { idle_timeout: self.silence, ..options };
                return Ok(Connection::Http3(Client::new(options)));
            }
        };
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        if vanishes {
            stream.set_zero_linger()?;
        }
        let name = ServerName::from(self.address.ip());
        let stream = TokioIo::new(TlsConnector::from(Arc::clone(tls)).connect(name, stream).await?);
        // Each ends when its sender is dropped; what goes wrong is an error of the request.
        if way == Way::Http1 {
            let (sender, connection) = http1::handshake(stream).await?;
            tokio::spawn(async { drop(connection.with_upgrades().await) });
            return Ok(Connection::Http1(sender));
        }
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
        tokio::spawn(async { drop(connection.await) });
        Ok(Connection::Http2(sender))
    }
}

impl Connection {
    /// Asks for a path.
    pub(crate) async fn get(&mut self, uri: &Uri) -> Result<Answer> {
        if let Self::Http3(client) = self {
            let response = client.request(&Method::GET, uri, &HeaderMap::new()).await?;
            return Ok(Answer::Quic(Box::new(response)));
        }
        self.send(Request::get(uri.clone()).body(Body::empty())?).await
    }

    /// Sends a request once.
    pub(crate) async fn send(&mut self, mut request: Request<Body>) -> Result<Answer> {
        match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                let authority = request.uri().authority().ok_or("no authority")?.as_str().parse()?;
                request.headers_mut().insert(header::HOST, authority);
                let target = request.uri().path_and_query().ok_or("no path")?.as_str().parse()?;
                *request.uri_mut() = target;
                Ok(Answer::Tcp(sender.send_request(request).await?))
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                *request.version_mut() = Version::HTTP_2;
                Ok(Answer::Tcp(sender.send_request(request).await?))
            }
            Self::Http3(client) => Ok(Answer::Quic(Box::new(client.send(request).await?))),
        }
    }

    /// Asks for WebSocket. Over HTTP/2 and 3 another response must have come before: the server's settings are there then.
    pub(crate) async fn open(&mut self, uri: &Uri) -> Result<Tunnel> {
        let request = Request::builder().uri(uri.clone()).header(header::SEC_WEBSOCKET_VERSION, "13");
        let (feed, body) = Body::channel();
        let request = match self {
            Self::Http1(_) => request
                .header(header::CONNECTION, "upgrade")
                .header(header::UPGRADE, "websocket")
                .header(header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
                .body(Body::empty())?,
            Self::Http2(_) => {
                let protocol = hyper::ext::Protocol::from_static("websocket");
                request.method(Method::CONNECT).extension(protocol).body(Body::empty())?
            }
            Self::Http3(_) => {
                let protocol = ConnectProtocol::new("websocket").ok_or("no protocol")?;
                request.method(Method::CONNECT).extension(protocol).body(body)?
            }
        };
        let expected = match self {
            Self::Http1(_) => StatusCode::SWITCHING_PROTOCOLS,
            _ => StatusCode::OK,
        };
        let answer = self.send(request).await?;
        answer.expect(expected)?;
        Ok(match answer {
            Answer::Tcp(mut response) => {
                Tunnel::Tcp(Box::new(TokioIo::new(hyper::upgrade::on(&mut response).await?)))
            }
            Answer::Quic(response) => Tunnel::Quic(feed, response),
        })
    }

    /// The same connection for a further request at once.
    ///
    /// # Errors
    /// Over HTTP/1.1 there is one request at a time.
    pub(crate) fn another(&self) -> Result<Self> {
        match self {
            Self::Http1(_) => Err("one request at a time".into()),
            Self::Http2(sender) => Ok(Self::Http2(sender.clone())),
            Self::Http3(client) => Ok(Self::Http3(client.clone())),
        }
    }

    /// False if a request needs another connection. An HTTP/3 client would make that by itself, but on the same UDP port.
    /// Browsers take another one, and servers with a socket for each connection (`HAProxy`) need that: the socket of the old
    /// connection, which may be another process's, gets what comes from its port.
    pub(crate) fn is_usable(&self) -> bool {
        match self {
            Self::Http1(sender) => !sender.is_closed(),
            Self::Http2(sender) => !sender.is_closed(),
            Self::Http3(client) => match &client.connections()[..] {
                [] => true,
                [only] => only.takes_requests,
                _ => false,
            },
        }
    }

    /// How many connections this one has followed by itself: the server may have begun to leave since it was asked for.
    pub(crate) fn replaced(&self) -> u64 {
        let Self::Http3(client) = self else { return 0 };
        client.connections().len().saturating_sub(1) as u64
    }

    /// Ends it in good order, where there is an order.
    pub(crate) async fn close(self) {
        if let Self::Http3(client) = self {
            client.close().await;
        }
    }
}

impl Answer {
    fn status(&self) -> StatusCode {
        match self {
            Self::Tcp(response) => response.status(),
            Self::Quic(response) => response.status(),
        }
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let fields = match self {
            Self::Tcp(response) => response.headers(),
            Self::Quic(response) => response.headers(),
        };
        fields.get(name)?.to_str().ok()
    }

    /// # Errors
    /// It has another status.
    pub(crate) fn expect(&self, status: StatusCode) -> Result<()> {
        if self.status() == status { Ok(()) } else { Err(format!("status {}", self.status()).into()) }
    }

    /// The next bytes of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let response = match self {
            Self::Tcp(response) => response.body_mut(),
            Self::Quic(response) => return Ok(response.chunk().await?),
        };
        while let Some(frame) = response.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

impl Tunnel {
    pub(crate) async fn write(&mut self, bytes: Vec<u8>) -> Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.write_all(&bytes).await?;
                Ok(stream.flush().await?)
            }
            Self::Quic(feed, _) => Ok(feed.send(bytes).await?),
        }
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn read(&mut self) -> Result<Option<Bytes>> {
        match self {
            Self::Tcp(stream) => {
                let mut bytes = vec![0; 16 * 1024];
                let length = stream.read(&mut bytes).await?;
                bytes.truncate(length);
                Ok((length > 0).then(|| bytes.into()))
            }
            Self::Quic(_, response) => Ok(response.chunk().await?),
        }
    }

    /// Ends this side, and reads up to the other's end.
    ///
    /// # Errors
    /// The other side does not end well.
    pub(crate) async fn end(self) -> Result<()> {
        let rest = match self {
            Self::Tcp(mut stream) => {
                stream.shutdown().await?;
                stream.read_u8().await.ok().map(|byte| Bytes::from(vec![byte]))
            }
            Self::Quic(feed, mut response) => {
                feed.finish().await?;
                response.chunk().await?
            }
        };
        if rest.is_none() { Ok(()) } else { Err("WRONG bytes behind the end".into()) }
    }
}
