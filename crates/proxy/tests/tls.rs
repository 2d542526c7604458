//! Upstreams over TLS: whose name is asked for, whose certificate is good.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use posthaste_endpoint::tls;
use posthaste_proxy::{Proxy, ProxyOptions, Upstream};
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::common::{PATIENCE, Server, body};
use crate::raw::{End, Raw, headers};
use crate::recorder::{Recorder, Reply, When};

/// A server that answers one request per connection with `it`, by a certificate for `site.test`, and the names that it was
/// asked for.
async fn start() -> (SocketAddr, CertificateDer<'static>, Arc<Mutex<Vec<Option<String>>>>) {
    let made = rcgen::generate_simple_self_signed(["site.test".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let certificate = made.cert.der().clone();
    let config = tls::server_config(vec![certificate.clone()], key.into(), &[b"http/1.1"]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let names = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&names);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = TlsAcceptor::from(Arc::clone(&config)).accept(stream).await else {
                continue;
            };
            log.lock().unwrap().push(stream.get_ref().1.server_name().map(str::to_owned));
            let mut buffer = [0; 10_000];
            if stream.read(&mut buffer).await.is_ok() {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nit";
                stream.write_all(answer).await.unwrap();
                let _ = stream.shutdown().await;
            }
        }
    });
    (address, certificate, names)
}

/// A server whose upstream is at `url`, and is trusted by this certificate.
fn front(url: &str, certificate: &CertificateDer<'static>, is_neighbour: bool, connect: Duration) -> Server {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let tls = tls::client_config_with_roots(roots, &[b"http/1.1"]).unwrap();
    let upstream = Upstream::new(&url.parse().unwrap(), Some(tls)).unwrap();
    let upstream = if is_neighbour { upstream.neighbour() } else { upstream };
    let options = ProxyOptions { connect_timeout: connect, ..ProxyOptions::default() };
    Server::start(Proxy::new(upstream, options).unwrap(), |_| {})
}

async fn ask(server: &Server, authority: &str) -> End {
    let fields = [(":method", "GET"), (":scheme", "https"), (":authority", authority), (":path", "/")];
    Raw::connect(server).await.ask(&headers(&fields)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neighbour_is_asked_for_the_name_in_the_request() {
    let (address, certificate, names) = start().await;
    let server = front(&format!("https://{address}"), &certificate, true, PATIENCE);
    assert_eq!(ask(&server, "Site.test:8443").await, End::Status(200));
    assert_eq!(*names.lock().unwrap(), [Some("site.test".to_owned())]);
    // It cannot prove another name.
    assert_eq!(ask(&server, "other.test").await, End::Status(502));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_upstream_proves_the_name_in_its_url() {
    let (address, certificate, names) = start().await;
    // The certificate is not for the address.
    let server = front(&format!("https://{address}"), &certificate, false, PATIENCE);
    assert_eq!(ask(&server, "site.test").await, End::Status(502));
    assert!(names.lock().unwrap().is_empty());
    // A stranger's certificate.
    let stranger = rcgen::generate_simple_self_signed(["site.test".to_owned()]).unwrap();
    let server = front(&format!("https://{address}"), stranger.cert.der(), true, PATIENCE);
    assert_eq!(ask(&server, "site.test").await, End::Status(502));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_stands_still_is_504() {
    let made = rcgen::generate_simple_self_signed(["site.test".to_owned()]).unwrap();
    let silent = Recorder::start(When::Never, |_| Reply::keep("")).await;
    let limit = Duration::from_millis(200);
    let server = front(&format!("https://{}", silent.address), made.cert.der(), false, limit);
    let response = server.client().get(&server.uri("/")).await.unwrap();
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    let text = String::from_utf8(body(response).await.unwrap()).unwrap();
    assert!(text.ends_with("did not accept a connection within 0.2 s\n"), "{text}");
}
