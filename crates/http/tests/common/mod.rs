//! A server on loopback and what its tests need.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::convert::Infallible;
use std::future::ready;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use posthaste_endpoint::{
    ClientConfig, CloseReason, Connection, Endpoint, SendStream, ServerConfig, TransportConfig, tls,
};
use posthaste_http::{
    ALPN, AccessLog, AccessRecord, Body, BodySender, Client, ClientError, ClientOptions, Ended, Outcome,
    Protocol, Request, Response, ServerOptions, serve, service_fn,
};
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower_service::Service;

/// Nothing on loopback takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A server that runs until it is told to stop.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) log: Arc<Log>,
    certificate: CertificateDer<'static>,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Ended>,
}

/// An endpoint that takes connections, and the certificate that it shows.
pub(crate) fn listen() -> (Endpoint, CertificateDer<'static>) {
    listen_with(posthaste_endpoint::default_transport())
}

/// The same with these transport settings.
pub(crate) fn listen_with(transport: TransportConfig) -> (Endpoint, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let tls = tls::server_config(vec![certificate.clone()], key.into(), &[ALPN]).unwrap();
    let local = (Ipv4Addr::LOCALHOST, 0).into();
    let config = ServerConfig::new(tls, transport);
    (Endpoint::server(local, config).unwrap(), certificate)
}

/// For clients that trust this certificate.
pub(crate) fn trust(certificate: &CertificateDer<'static>) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    ClientConfig::new(
        tls::client_config_with_roots(roots, &[ALPN]).unwrap(),
        posthaste_endpoint::default_transport(),
    )
}

impl Server {
    pub(crate) fn start(service: impl App, configure: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::start_at(listen(), service, configure)
    }

    pub(crate) fn start_at(
        (endpoint, certificate): (Endpoint, CertificateDer<'static>),
        service: impl App,
        configure: impl FnOnce(&mut ServerOptions),
    ) -> Self {
        let address = endpoint.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let mut options =
            ServerOptions { access_log: Some(Arc::clone(&log) as _), ..ServerOptions::default() };
        configure(&mut options);
        let (stop, stopped) = oneshot::channel();
        let server = serve(endpoint, service).options(options).until(async move {
            let _ = stopped.await;
        });
        let ended = tokio::spawn(server.run());
        Self { address, log, certificate, stop: Some(stop), ended }
    }

    pub(crate) fn uri(&self, path: &str) -> Uri {
        format!("https://127.0.0.1:{}{path}", self.address.port()).parse().unwrap()
    }

    pub(crate) fn client_config(&self) -> ClientConfig {
        trust(&self.certificate)
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(ClientOptions::new(self.client_config()))
    }

    /// Begins the orderly end; the server is over when the result is.
    pub(crate) fn stop(mut self) -> JoinHandle<Ended> {
        self.stop.take().unwrap().send(()).unwrap();
        self.ended
    }
}

/// Reads a response to its end.
pub(crate) async fn body(mut response: posthaste_http::client::Response) -> Result<Vec<u8>, ClientError> {
    let mut all = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}

/// A line for each request.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<Line>>);

/// Method and path, status, bytes of the body, end.
pub(crate) type Line = (String, Option<u16>, u64, Outcome);

impl AccessLog for Log {
    fn record(&self, record: &AccessRecord<'_>) {
        assert!(record.client.ip().is_loopback());
        assert_eq!(record.protocol, Protocol::Http3);
        let request = format!("{} {}", record.method, record.target.path());
        let status = record.status.map(|status| status.as_u16());
        self.0.lock().unwrap().push((request, status, record.body_bytes, record.outcome.clone()));
    }
}

impl Log {
    /// Waits for so many lines.
    pub(crate) async fn lines(&self, count: usize) -> Vec<Line> {
        let enough = async {
            loop {
                let lines = self.0.lock().unwrap().clone();
                if lines.len() >= count {
                    return lines;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, enough).await.expect("the requests were not logged")
    }
}

/// A service as the tests have them.
pub(crate) trait App:
    Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

impl<S> App for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

/// A service made of a function of the path.
pub(crate) fn by(answer: impl Fn(&str) -> Response + Send + Sync + 'static) -> impl App {
    let answer = Arc::new(answer);
    service_fn(move |request: Request| ready(answer(request.uri().path())))
}

/// A response without a body.
pub(crate) fn status(status: StatusCode) -> Response {
    http::Response::builder().status(status).body(Body::empty()).unwrap()
}

/// A response with this body, whose length is announced.
pub(crate) fn sized(status: StatusCode, body: Bytes) -> Response {
    let response = http::Response::builder().status(status).header(header::CONTENT_LENGTH, body.len());
    response.body(body.into()).unwrap()
}

/// The same response with this header field instead of any of its name.
pub(crate) fn with(mut response: Response, name: HeaderName, value: &str) -> Response {
    response.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
    response
}

/// A response whose body is fed piece by piece.
pub(crate) fn fed() -> (BodySender, Response) {
    let (feed, body) = Body::channel();
    (feed, http::Response::new(body))
}

/// A client by hand. The endpoint must stay as long as the connection.
pub(crate) async fn visit(server: &Server) -> (Endpoint, Connection) {
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let connection = endpoint.connect(&server.client_config(), server.address, "localhost").await.unwrap();
    (endpoint, connection)
}

/// A unidirectional stream that begins with these bytes and stays open.
pub(crate) async fn say(connection: &Connection, bytes: &[u8]) -> SendStream {
    let mut stream = connection.open_uni().await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// The code with which the other end closes the connection.
pub(crate) async fn closed(connection: &Connection) -> u64 {
    match timeout(PATIENCE, connection.closed()).await.expect("the connection stays") {
        CloseReason::PeerApplication { error_code, .. } => error_code,
        other => panic!("{other}"),
    }
}
