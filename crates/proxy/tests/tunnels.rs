//! Clients that ask for WebSocket over each version of HTTP, and upstreams that the tests hold in their hands.

use std::fmt::Write as _;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use posthaste_endpoint::{ReadError, RecvStream};
use posthaste_http::Body;
use posthaste_http3::{MessageKind, MessageReader, Part};
use posthaste_proxy::{Proxy, ProxyOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::common::{self, PATIENCE};
use crate::over_tcp;
use crate::raw::{self, Raw};
use crate::scene::proxy;

/// The versions of HTTP by which a client may come.
pub(crate) const WAYS: [Way; 3] = [Way::Http1, Way::Http2, Way::Http3];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Http1,
    Http2,
    Http3,
}

/// What a tunnel is to its client.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A server that runs the proxy.
pub(crate) enum Front {
    Tcp(over_tcp::Server, Way),
    Quic(common::Server),
}

/// A tunnel at its client.
pub(crate) struct Tunnel {
    pub(crate) stream: Box<dyn Stream>,
    /// The code with which the stream was reset, over HTTP/3.
    pub(crate) reset: oneshot::Receiver<u64>,
    /// The connection, which ends when this is dropped.
    _connection: Option<(Raw, Aborted)>,
}

/// A task that ends with this.
struct Aborted(JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The fields of a request for WebSocket, but for those that the version adds.
pub(crate) const FIELDS: &[(&str, &str)] = &[("sec-websocket-version", "13")];

impl Front {
    pub(crate) async fn new(
        way: Way,
        upstream: SocketAddr,
        configure: impl FnOnce(&mut ProxyOptions),
    ) -> Self {
        Self::of(way, proxy(&format!("http://{upstream}"), configure), true).await
    }

    pub(crate) async fn of(way: Way, proxy: Proxy, upgrades: bool) -> Self {
        match way {
            Way::Http3 => Self::Quic(common::Server::start(proxy, |options| {
                options.upgrades = upgrades;
                options.grace = std::time::Duration::from_secs(2);
            })),
            _ => Self::Tcp(over_tcp::Server::start(proxy, |options| options.upgrades = upgrades).await, way),
        }
    }

    /// Asks for WebSocket; the tunnel, or the status of another answer.
    pub(crate) async fn open(&self) -> Result<Tunnel, u16> {
        self.ask("websocket", FIELDS).await
    }

    pub(crate) async fn ask(&self, protocol: &str, fields: &[(&str, &str)]) -> Result<Tunnel, u16> {
        let asked = async {
            match self {
                Self::Tcp(server, Way::Http1) => by_upgrade(server, protocol, fields).await,
                Self::Tcp(server, _) => by_http2(server, protocol, fields).await,
                Self::Quic(server) => by_http3(server, protocol, fields).await,
            }
        };
        timeout(PATIENCE, asked).await.expect("no answer")
    }
}

/// Reads up to the end of a head.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn by_upgrade(
    server: &over_tcp::Server,
    protocol: &str,
    fields: &[(&str, &str)],
) -> Result<Tunnel, u16> {
    let mut ask = format!(
        "GET /chat HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: {protocol}\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    );
    for (name, value) in fields {
        write!(ask, "{name}: {value}\r\n").unwrap();
    }
    ask += "\r\n";
    let mut stream = server.connect("http/1.1", ask).await;
    let head = head(&mut stream).await.to_ascii_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    if status != 101 {
        return Err(status);
    }
    for field in
        ["connection: upgrade", "upgrade: websocket", "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="]
    {
        assert_eq!(head.matches(&format!("\r\n{field}\r\n")).count(), 1, "{head}");
    }
    Ok(Tunnel { stream: Box::new(stream), reset: oneshot::channel().1, _connection: None })
}

async fn by_http2(server: &over_tcp::Server, protocol: &str, fields: &[(&str, &str)]) -> Result<Tunnel, u16> {
    let stream = TokioIo::new(server.try_connect("h2").await.unwrap());
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new()).handshake(stream).await.unwrap();
    let driver = Aborted(tokio::spawn(async {
        let _ = connection.await;
    }));
    let request = |method: Method, fields: &[(&str, &str)]| {
        let mut request = Request::builder().method(method).uri("https://localhost/chat");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    };
    // A request that the proxy refuses: with its answer the server's settings have come, which permit the next one.
    let loops = request(Method::GET, &[("via", "1.1 edge")]);
    assert_eq!(sender.send_request(loops).await.unwrap().status(), 508);
    let mut connect = request(Method::CONNECT, fields);
    connect.extensions_mut().insert(hyper::ext::Protocol::from(protocol));
    let mut response = sender.send_request(connect).await.unwrap();
    if response.status() != 200 {
        return Err(response.status().as_u16());
    }
    assert!(!response.headers().contains_key("sec-websocket-accept"));
    let stream = TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap());
    // The connection lives as long as its driver.
    let (near, far) = duplex(64 * 1024);
    tokio::spawn(async move {
        let _driver = driver;
        let (mut far, mut stream) = (far, stream);
        let _ = tokio::io::copy_bidirectional(&mut far, &mut stream).await;
    });
    Ok(Tunnel { stream: Box::new(near), reset: oneshot::channel().1, _connection: None })
}

async fn by_http3(server: &common::Server, protocol: &str, fields: &[(&str, &str)]) -> Result<Tunnel, u16> {
    let raw = Raw::connect(server).await;
    let (mut send, mut recv) = raw.open().await;
    let mut all = vec![(":method", "CONNECT"), (":protocol", protocol), (":scheme", "https")];
    all.extend([(":authority", "localhost"), (":path", "/chat")]);
    all.extend(fields);
    send.write_all(&raw::headers(&all)).await.unwrap();
    let mut reader = MessageReader::new(MessageKind::Response { to_head: false }, 100_000);
    let mut input = Bytes::new();
    let response = loop {
        if let Some(Part::Response(response)) = reader.next(&mut input).unwrap() {
            break response;
        }
        input = recv.read_chunk(65_536).await.unwrap().expect("the stream ended without a response");
    };
    if response.status() != 200 {
        return Err(response.status().as_u16());
    }
    assert!(!response.headers().contains_key("sec-websocket-accept"));
    let (near, far) = duplex(64 * 1024);
    let (mut reading, writing) = split(far);
    let sending = async move {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            match reading.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(length) => {
                    let mut frame = Vec::new();
                    posthaste_http3::encode::data_header(&mut frame, length as u64);
                    frame.extend_from_slice(&buffer[..length]);
                    if send.write_all(&frame).await.is_err() {
                        return;
                    }
                }
            }
        }
        send.finish();
        let _ = send.acknowledged().await;
    };
    let (tell, reset) = oneshot::channel();
    let receiving = receive(recv, reader, input, writing, tell);
    let driver = Aborted(tokio::spawn(async {
        tokio::join!(sending, receiving);
    }));
    Ok(Tunnel { stream: Box::new(near), reset, _connection: Some((raw, driver)) })
}

async fn receive(
    mut recv: RecvStream,
    mut reader: MessageReader,
    mut input: Bytes,
    mut writing: tokio::io::WriteHalf<DuplexStream>,
    reset: oneshot::Sender<u64>,
) {
    loop {
        while let Some(part) = reader.next(&mut input).unwrap() {
            let Part::Data(data) = part else { panic!("{part:?}") };
            if writing.write_all(&data).await.is_err() {
                return;
            }
        }
        match recv.read_chunk(65_536).await {
            Ok(Some(data)) => input = data,
            Err(ReadError::Reset(code)) => {
                let _ = reset.send(code);
                return drop(writing.shutdown().await);
            }
            Ok(None) | Err(_) => return drop(writing.shutdown().await),
        }
    }
}

/// An upstream that agrees to WebSocket and then gives its connections to the test. The heads come with them.
pub(crate) async fn upstream() -> (SocketAddr, mpsc::UnboundedReceiver<(TcpStream, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (give, connections) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = head(&mut stream).await;
            let lower = head.to_ascii_lowercase();
            let at = lower.find("\r\nsec-websocket-key: ").expect("no key") + 21;
            let key = head[at..].split("\r\n").next().unwrap();
            let accept = derive_accept_key(key.as_bytes());
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\
                 Sec-WebSocket-Accept: {accept}\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            if give.send((stream, head)).is_err() {
                return;
            }
        }
    });
    (address, connections)
}

/// Both ends of a tunnel, and what is between them.
pub(crate) struct Joined {
    pub(crate) client: Tunnel,
    pub(crate) upstream: TcpStream,
    pub(crate) head: String,
    pub(crate) front: Front,
}

pub(crate) async fn joined(way: Way, configure: impl FnOnce(&mut ProxyOptions)) -> Joined {
    let (address, mut connections) = upstream().await;
    let front = Front::new(way, address, configure).await;
    let client = front.open().await.unwrap();
    let (upstream, head) = connections.recv().await.unwrap();
    Joined { client, upstream, head, front }
}

/// All that comes until the end, whatever that is.
pub(crate) async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut all = Vec::new();
    let reading = async {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(length @ 1..) = stream.read(&mut buffer).await {
            all.extend_from_slice(&buffer[..length]);
        }
    };
    timeout(PATIENCE, reading).await.expect("no end comes");
    all
}

/// Sends this from one end, and waits until it has come to the other.
pub(crate) async fn pass(
    from: &mut (impl AsyncWrite + Unpin),
    to: &mut (impl AsyncRead + Unpin),
    bytes: &[u8],
) {
    let mut came = vec![0; bytes.len()];
    let passing = async {
        from.write_all(bytes).await.unwrap();
        from.flush().await.unwrap();
        to.read_exact(&mut came).await.unwrap();
    };
    timeout(PATIENCE, passing).await.expect("nothing comes");
    assert!(came == bytes);
}
