//! Requests before the handshake is complete (RFC 8470): safe ones are answered, others are put off.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::{App, PATIENCE, body, by};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use posthaste_endpoint::{
    ClientConfig, CloseReason, ConnectionHandle, Direction, EarlyData, Endpoint, ServerConfig, SessionStore,
    StreamId, tls,
};
use posthaste_http::{
    ALPN, Client, ClientOptions, Early, Peer, Request, ServerOptions, serve, service_fn, text,
};
use posthaste_http3::{MessageKind, MessageReader, Part, Settings, encode};
use posthaste_transport::{self as transport, DatagramInfo, Read};
use posthaste_units::Time;
use rustls_pki_types::PrivatePkcs8KeyDer;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

/// Configurations of servers that take early data, and share their sessions, and of clients that send such.
fn configs() -> (ServerConfig, ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let tls = tls::server_config(vec![made.cert.der().clone()], key.into(), &[ALPN]).unwrap();
    let tls = tls::server_with_early_data(&tls, Arc::new(SessionStore::new()));
    let server = ServerConfig::new(tls, posthaste_endpoint::default_transport());
    let client = crate::common::trust(made.cert.der());
    (server, ClientConfig { tls: tls::client_with_early_data(&client.tls), ..client })
}

fn listen(config: &ServerConfig) -> (Endpoint, SocketAddr) {
    let endpoint = Endpoint::server("127.0.0.1:0".parse().unwrap(), config.clone()).unwrap();
    let address = endpoint.local_addr().unwrap();
    (endpoint, address)
}

/// A server that takes early data, with this service; its address, and a configuration of clients that send such.
fn start(service: impl App) -> (SocketAddr, ClientConfig) {
    let (server, client) = configs();
    let (endpoint, address) = listen(&server);
    tokio::spawn(serve(endpoint, service).run());
    (address, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_asks_again_with_its_first_packets() {
    // spec: rfc9204 3.2.3 early-maximum-repeated
    let (address, config) = start(by(|_: &str| text(StatusCode::OK, "content")));
    let client = Client::new(ClientOptions::new(config));
    let uri = format!("https://127.0.0.1:{}/file", address.port()).parse().unwrap();
    for round in 0..4 {
        client.hang_up();
        let response = client.get(&uri).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "round {round}");
        assert!(!body(response).await.unwrap().is_empty());
        // Sessions come after the handshake.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let made = client.connections();
    let early: Vec<_> = made.iter().map(|made| (made.is_resumed, made.early_data)).collect();
    let (first, again) = ((false, Some(EarlyData::None)), (true, Some(EarlyData::Accepted)));
    assert_eq!(early, [first, again, again, again]);
    // What is not safe waits for the handshake.
    client.hang_up();
    let response = client.request(&Method::DELETE, &uri, &HeaderMap::new()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_told_to_wait_asks_again_after_the_handshake() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let (address, config) = start(by(move |path: &str| {
        let is_early = path == "/early" && count.fetch_add(1, Ordering::Relaxed) == 0;
        let status = if is_early { StatusCode::TOO_EARLY } else { StatusCode::OK };
        text(status, "content")
    }));
    let client = Client::new(ClientOptions::new(config));
    let uri = |path: &str| format!("https://127.0.0.1:{}/{path}", address.port()).parse().unwrap();
    client.get(&uri("first")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.hang_up();
    let response = client.get(&uri("early")).await.unwrap();
    // On a slow machine the handshake may be complete before the request is written: then 425 is the answer.
    let was_early = client.connections()[1].early_data == Some(EarlyData::Accepted);
    if was_early && asked.load(Ordering::Relaxed) == 2 {
        assert_eq!(response.status(), StatusCode::OK);
    } else {
        assert_eq!((response.status(), asked.load(Ordering::Relaxed)), (StatusCode::TOO_EARLY, 1));
    }
    client.close().await;
}

/// A visit that leaves the client with sessions.
async fn visit(client: &Client, address: SocketAddr) {
    let uri = format!("https://127.0.0.1:{}/", address.port()).parse().unwrap();
    client.get(&uri).await.unwrap();
    // Sessions come after the handshake.
    tokio::time::sleep(Duration::from_millis(200)).await;
}

/// The same without the sessions.
fn stranger(config: &ClientConfig) -> ClientConfig {
    let mut tls = rustls::ClientConfig::clone(&config.tls);
    tls.resumption = rustls::client::Resumption::in_memory_sessions(8);
    ClientConfig { tls: Arc::new(tls), ..config.clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_limits_have_changed_takes_no_early_data() {
    // spec: rfc9114 7.2.4.2 unsure-refuses-early, 7.2.4.2 early-not-reduced
    // (size of headers, extended CONNECT)
    let usual = (32 * 1024, true);
    for (after, expected) in [
        (usual, EarlyData::Accepted),
        ((16 * 1024, true), EarlyData::Rejected),
        ((32 * 1024, false), EarlyData::Rejected),
    ] {
        let (server, client) = configs();
        let [first, second] = [usual, after].map(|(max_header_size, upgrades)| {
            let (endpoint, address) = listen(&server);
            let options = ServerOptions { max_header_size, upgrades, ..ServerOptions::default() };
            tokio::spawn(serve(endpoint, by(|_: &str| text(StatusCode::OK, ""))).options(options).run());
            address
        });
        visit(&Client::new(ClientOptions::new(client.clone())), first).await;
        // It answers, so it runs: connections that came before would not be bound to its limits.
        visit(&Client::new(ClientOptions::new(stranger(&client))), second).await;
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let connection = endpoint.connect_early(&client, second, "127.0.0.1").await.unwrap();
        // Either outcome says that early data was offered; without a session it is `None`. `may_send_early` cannot be
        // asked here: the handshake may be complete by now.
        assert_eq!(connection.handshake().await.unwrap(), expected, "{after:?}");
    }
}

/// A server by hand that takes early data, answers whatever it is asked, and tells each connection the next of these
/// settings. The codes with which its clients close.
fn fickle(config: &ServerConfig, settings: Vec<Settings>) -> (SocketAddr, UnboundedReceiver<u64>) {
    let (endpoint, address) = listen(config);
    let (tell, told) = unbounded_channel();
    tokio::spawn(async move {
        for settings in settings {
            let connection = endpoint.accept().await.unwrap();
            let tell = tell.clone();
            tokio::spawn(async move {
                // Codes of applications come with 1-RTT packets alone.
                connection.handshake().await.unwrap();
                let mut control = connection.open_uni().await.unwrap();
                control.write_bytes(encode::control_stream(&settings, None)).await.unwrap();
                // It may be closed before it has answered.
                if let Ok((mut send, _)) = connection.accept_bi().await {
                    let _ = send.write_bytes(encode::response(&http::Response::new(())).into()).await;
                    send.finish();
                    let _ = send.acknowledged().await;
                }
                let reason = connection.closed().await;
                let CloseReason::PeerApplication { error_code, .. } = reason else { panic!("{reason}") };
                tell.send(error_code).unwrap();
            });
        }
        std::future::pending::<()>().await;
    });
    (address, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_ends_a_connection_whose_settings_break_what_early_data_relied_on() {
    // spec: rfc9114 7.2.4.2 incompatible-closes, 7.2.4.2 omitted-closes
    const SETTINGS_ERROR: u64 = 0x109;
    let limit = |bytes| Settings { max_field_section_size: bytes, ..Settings::default() };
    for (then, is_kept) in [(limit(5000), true), (limit(4999), false), (Settings::default(), false)] {
        let (server, config) = configs();
        let (address, mut told) = fickle(&server, vec![limit(5000), then]);
        let client = Client::new(ClientOptions::new(config));
        visit(&client, address).await;
        client.hang_up();
        assert_eq!(timeout(PATIENCE, told.recv()).await.unwrap(), Some(0x100), "no error");
        let uri = format!("https://127.0.0.1:{}/", address.port()).parse().unwrap();
        // The answer may be here before the settings are looked at.
        let _ = client.get(&uri).await;
        assert_eq!(client.connections()[1].early_data, Some(EarlyData::Accepted), "{then:?}");
        if is_kept {
            client.hang_up();
        }
        let expected = if is_kept { 0x100 } else { SETTINGS_ERROR };
        assert_eq!(timeout(PATIENCE, told.recv()).await.unwrap(), Some(expected), "{then:?}");
    }
}

/// Remembers what it is asked, and whether that came early.
fn asked(log: &Arc<Mutex<Vec<String>>>) -> impl App {
    let log = Arc::clone(log);
    service_fn(move |request: Request| {
        let peer = request.extensions().get::<Peer>().unwrap();
        assert!(peer.address.ip().is_loopback());
        let early = request.extensions().get::<Early>();
        let word = if early.is_some_and(|early| !early.is_settled()) { "early " } else { "" };
        log.lock().unwrap().push(format!("{word}{} {}", request.method(), request.uri().path()));
        std::future::ready(text(StatusCode::OK, "content"))
    })
}

/// A client that sends its first flight and then holds still until it is let go on: for so long, all that it has said is
/// early data.
struct Held {
    endpoint: transport::Endpoint,
    handle: ConnectionHandle,
    socket: UdpSocket,
    server: SocketAddr,
    epoch: Instant,
}

impl Held {
    fn connect(config: &ClientConfig, server: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut endpoint = transport::Endpoint::new([3; 32], None);
        let handle = endpoint.connect(Time::ZERO, config, server, "127.0.0.1").unwrap();
        Self { endpoint, handle, socket, server, epoch: tokio::time::Instant::now().into_std() }
    }

    fn connection(&mut self) -> &mut transport::Connection {
        self.endpoint.connection_mut(self.handle).unwrap()
    }

    /// Opens a stream and writes all of it.
    fn say(&mut self, direction: Direction, mut data: Bytes, is_whole: bool) -> StreamId {
        let id = self.connection().open(direction).unwrap();
        self.connection().write(id, &mut data).unwrap();
        assert!(data.is_empty());
        if is_whole {
            self.connection().finish(id).unwrap();
        }
        id
    }

    fn now(&self) -> Time {
        Time::ZERO + self.epoch.elapsed().into()
    }

    fn send(&mut self) {
        let now = self.now();
        let mut buffer = Vec::new();
        while self.endpoint.poll_transmit(now, &mut buffer, 1).is_some() {
            self.socket.send_to(&buffer, self.server).unwrap();
            buffer.clear();
        }
    }

    /// Goes on until the response on a stream is there; its status.
    fn status(&mut self, id: StreamId) -> StatusCode {
        let mut reader = MessageReader::new(MessageKind::Response { to_head: false }, 10_000);
        let info = DatagramInfo { remote: self.server, local_ip: None, ecn: None };
        let mut buffer = [0; 2048];
        while self.epoch.elapsed() < PATIENCE {
            if let Ok((len, _)) = self.socket.recv_from(&mut buffer) {
                let now = self.now();
                self.endpoint.on_datagram(now, &info, BytesMut::from(&buffer[..len]));
            }
            let now = self.now();
            self.endpoint.on_timeout(now);
            self.send();
            while let Ok(Read::Data(mut data)) = self.connection().read(now, id, usize::MAX) {
                if let Ok(Some(Part::Response(head))) = reader.next(&mut data) {
                    return head.status();
                }
            }
        }
        panic!("no response");
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own plays a client that waits")]
fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_puts_off_early_requests_that_must_not_happen_twice() {
    // spec: rfc9114 10.9 replay-mitigated
    let log = Arc::new(Mutex::new(Vec::new()));
    let (address, config) = start(asked(&log));
    // A first visit brings sessions.
    let client = Client::new(ClientOptions::new(config.clone()));
    let uri = format!("https://127.0.0.1:{}/first", address.port()).parse().unwrap();
    client.get(&uri).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    client.close().await;

    let early = Arc::clone(&log);
    let statuses = tokio::task::spawn_blocking(move || {
        let mut held = Held::connect(&config, address);
        assert!(held.connection().may_send_early());
        let request = |method: Method, path: &str, early: bool| {
            let mut request = http::Request::new(());
            *request.method_mut() = method;
            *request.uri_mut() = format!("https://127.0.0.1/{path}").parse().unwrap();
            if early {
                request.headers_mut().insert("early-data", HeaderValue::from_static("1"));
            }
            encode::request(&request).unwrap().into()
        };
        held.say(Direction::Unidirectional, encode::control_stream(&Settings::default(), None), false);
        let delete = held.say(Direction::Bidirectional, request(Method::DELETE, "unsafe", false), true);
        let get = held.say(Direction::Bidirectional, request(Method::GET, "safe", false), true);
        held.send();
        // The server has all of it now, and no sign of the handshake's end.
        let began = held.epoch;
        while began.elapsed() < PATIENCE && early.lock().unwrap().len() < 2 {
            pause(5);
        }
        pause(500);
        let (delete, get) = (held.status(delete), held.status(get));
        // Later the same is answered, unless somebody in between says that it was early there.
        let again = held.say(Direction::Bidirectional, request(Method::DELETE, "unsafe", false), true);
        let again = held.status(again);
        let relayed = held.say(Direction::Bidirectional, request(Method::DELETE, "relayed", true), true);
        [delete, get, again, held.status(relayed)]
    });
    let statuses = tokio::time::timeout(PATIENCE, statuses).await.expect("it hangs").unwrap();
    let (ok, too_early) = (StatusCode::OK, StatusCode::TOO_EARLY);
    assert_eq!(statuses, [too_early, ok, ok, too_early]);
    assert_eq!(*log.lock().unwrap(), ["GET /first", "early GET /safe", "DELETE /unsafe"]);
}
