//! A server on loopback and what its tests need.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{StatusCode, Uri};
use posthaste_endpoint::{ClientConfig, Endpoint, ServerConfig, TransportConfig, tls};
use posthaste_http::{
    ALPN, AccessLog, AccessRecord, Body, Client, ClientError, ClientOptions, Ended, Handler, HandlerFuture,
    Outcome, Response, ServerOptions, serve,
};
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

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
    pub(crate) fn start(handler: impl Handler, configure: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::start_at(listen(), handler, configure)
    }

    pub(crate) fn start_at(
        (endpoint, certificate): (Endpoint, CertificateDer<'static>),
        handler: impl Handler,
        configure: impl FnOnce(&mut ServerOptions),
    ) -> Self {
        let address = endpoint.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let mut options =
            ServerOptions { access_log: Some(Arc::clone(&log) as _), ..ServerOptions::default() };
        configure(&mut options);
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(serve(endpoint, Arc::new(handler), options, async move {
            let _ = stopped.await;
        }));
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
pub(crate) type Line = (String, StatusCode, u64, Outcome);

impl AccessLog for Log {
    fn record(&self, record: &AccessRecord<'_>) {
        assert!(record.client.ip().is_loopback());
        let request = format!("{} {}", record.method, record.target.path());
        self.0.lock().unwrap().push((request, record.status, record.body_bytes, record.outcome.clone()));
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

/// A handler made of a function of the path.
pub(crate) struct By<F>(pub(crate) F);

impl<F: Fn(&str) -> Response + Send + Sync + 'static> Handler for By<F> {
    fn handle<'a>(&'a self, request: &'a http::Request<()>) -> HandlerFuture<'a> {
        Box::pin(async move { (self.0)(request.uri().path()) })
    }
}

/// A response whose body is fed piece by piece.
pub(crate) fn fed() -> (tokio::sync::mpsc::Sender<std::io::Result<Bytes>>, Response) {
    let (feed, pieces) = tokio::sync::mpsc::channel(1);
    let mut response = Response::new(StatusCode::OK);
    response.body = Body::Channel(pieces);
    (feed, response)
}
