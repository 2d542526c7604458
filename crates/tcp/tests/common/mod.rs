//! A server, and clients that write what they are told.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use posthaste_service::{AccessLog, AccessRecord, Ended, Outcome, Protocol, Request, Response};
use posthaste_tcp::{ALPN, TcpOptions, serve};
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

/// Nothing on loopback takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Protocol, status, bytes of the body, end.
pub(crate) type Line = (Protocol, Option<u16>, u64, Outcome);

#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<Line>>);

impl AccessLog for Log {
    fn record(&self, record: &AccessRecord<'_>) {
        let status = record.status.map(|status| status.as_u16());
        self.0.lock().unwrap().push((record.protocol, status, record.body_bytes, record.outcome.clone()));
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
        timeout(PATIENCE, enough).await.expect("the requests were not logged")
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) log: Arc<Log>,
    certificate: CertificateDer<'static>,
    stop: Option<oneshot::Sender<()>>,
    cut: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Ended>,
}

impl Server {
    pub(crate) async fn start<S>(service: S, configure: impl FnOnce(&mut TcpOptions)) -> Self
    where
        S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static,
    {
        let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate: CertificateDer<'static> = identity.cert.into();
        let key = identity.signing_key.serialize_der().try_into().unwrap();
        let mut tls = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        tls.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::<Log>::default();
        let mut options = TcpOptions { grace: PATIENCE, ..TcpOptions::default() };
        options.access_log = Some(Arc::clone(&log) as Arc<dyn AccessLog>);
        configure(&mut options);
        let ((stop, stopped), (cut, is_cut)) = (oneshot::channel::<()>(), oneshot::channel::<()>());
        let told = |word: oneshot::Receiver<()>| async {
            let _ = word.await;
        };
        let server = serve(listener, Arc::new(tls), service).options(options);
        let ended = tokio::spawn(server.until(told(stopped)).cut(told(is_cut)).run());
        Self { address, log, certificate, stop: Some(stop), cut: Some(cut), ended }
    }

    pub(crate) fn stop(&mut self) {
        self.stop.take();
    }

    pub(crate) fn cut(&mut self) {
        self.cut.take();
    }

    /// Stops and waits for the end.
    pub(crate) async fn ended(mut self) -> Ended {
        self.stop();
        timeout(PATIENCE, &mut self.ended).await.expect("the server does not end").unwrap()
    }

    /// A connection on which these bytes were sent.
    pub(crate) async fn connect(&self, alpn: &str, bytes: impl AsRef<[u8]>) -> TlsStream<TcpStream> {
        let mut stream = self.try_connect(alpn).await.unwrap();
        stream.write_all(bytes.as_ref()).await.unwrap();
        stream
    }

    pub(crate) async fn try_connect(&self, alpn: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let mut tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        let tcp = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = timeout(PATIENCE, TlsConnector::from(Arc::new(tls)).connect(name, tcp));
        stream.await.expect("no handshake")
    }

    /// All that an HTTP/1.1 connection brings when these bytes are sent, which have it closed.
    pub(crate) async fn http1(&self, bytes: impl AsRef<[u8]>) -> String {
        rest(&mut self.connect("http/1.1", bytes).await).await
    }
}

/// All that comes until the connection ends, however it ends.
pub(crate) async fn rest(stream: &mut TlsStream<TcpStream>) -> String {
    let mut all = Vec::new();
    let reading = async {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(length @ 1..) = stream.read(&mut buffer).await {
            all.extend_from_slice(&buffer[..length]);
        }
    };
    timeout(PATIENCE, reading).await.expect("the connection does not end");
    String::from_utf8_lossy(&all).into_owned()
}

/// Reads until this has come.
pub(crate) async fn until(stream: &mut TlsStream<TcpStream>, what: &str) {
    let mut all = Vec::new();
    let reading = async {
        while !all.windows(what.len()).any(|window| window == what.as_bytes()) {
            all.push(stream.read_u8().await.unwrap());
        }
    };
    timeout(PATIENCE, reading).await.expect("it does not come");
}

/// An HTTP/2 frame (RFC 9113 section 4.1).
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// What an HTTP/2 client sends first: its preface and its settings.
pub(crate) fn preface(settings: &[u8]) -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, settings)].concat()
}

/// A GET of this path without a body: HEADERS with `END_STREAM` and `END_HEADERS` (fields by the static table of RFC 7541).
pub(crate) fn get(stream: u32, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x87, 0x41, 9];
    block.extend(b"localhost");
    block.extend([0x44, path.len() as u8]);
    block.extend(path.as_bytes());
    frame(1, 0x5, stream, &block)
}
