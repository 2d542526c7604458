//! Early data (0-RTT) at `posthaste edge --workers 2`, as a whole program: what is recorded on the way and sent again reaches
//! the application once, and what must not happen twice waits for the handshake (RFC 8470).
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::edge::{Edge, certificate, client_config};
use common::{Folders, PATIENCE, free_port};
use posthaste_endpoint::{EarlyData, Endpoint};
use posthaste_http::{Client, ClientOptions};
use tokio::runtime::Runtime;

/// What the application was asked: the request line's first words, and whether that came early.
type Log = Arc<Mutex<Vec<(String, bool)>>>;

/// An application that remembers what it was asked.
fn application() -> (SocketAddr, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, log) = (listener.local_addr().unwrap(), Log::default());
    let all = Arc::clone(&log);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let log = Arc::clone(&all);
            std::thread::spawn(move || answer(&stream, &log));
        }
    });
    (address, log)
}

fn answer(mut stream: &TcpStream, log: &Log) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(first) = lines.next() {
        let asked = first.trim_end_matches(" HTTP/1.1").to_owned();
        let fields: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let is_early = fields.iter().any(|field| field.eq_ignore_ascii_case("early-data: 1"));
        log.lock().unwrap().push((asked, is_early));
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell").is_err() {
            return;
        }
    }
}

/// Whether each request of this kind came early.
fn asked(log: &Log, what: &str) -> Vec<bool> {
    let log = log.lock().unwrap();
    log.iter().filter(|(asked, _)| asked == what).map(|(_, is_early)| *is_early).collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Forwards datagrams between one client and the edge. While it holds, it keeps a copy of all that the client sends, and keeps
/// the answers to itself: for so long, the client can send nothing but its first flight.
struct Relay {
    address: SocketAddr,
    holds: Arc<AtomicBool>,
    flight: Arc<Mutex<Vec<Vec<u8>>>>,
    /// How many answers there were.
    answers: Arc<AtomicUsize>,
}

impl Relay {
    fn start(edge: SocketAddr) -> Self {
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        let back = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        back.connect(edge).unwrap();
        let relay = Self {
            address: front.local_addr().unwrap(),
            holds: Arc::default(),
            flight: Arc::default(),
            answers: Arc::default(),
        };
        let client = Arc::new(Mutex::new(None));
        let (holds, flight) = (Arc::clone(&relay.holds), Arc::clone(&relay.flight));
        let (from, to, known) = (Arc::clone(&front), Arc::clone(&back), Arc::clone(&client));
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((length, address)) = from.recv_from(&mut buffer) {
                *known.lock().unwrap() = Some(address);
                if holds.load(Ordering::Relaxed) {
                    flight.lock().unwrap().push(buffer[..length].to_vec());
                }
                // An edge that is away refuses it.
                let _ = to.send(&buffer[..length]);
            }
        });
        let (holds, answers) = (Arc::clone(&relay.holds), Arc::clone(&relay.answers));
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            loop {
                let Ok(length) = back.recv(&mut buffer) else { continue };
                answers.fetch_add(1, Ordering::Relaxed);
                while holds.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let address = *client.lock().unwrap();
                let _ = front.send_to(&buffer[..length], address.unwrap());
            }
        });
        relay
    }

    fn hold(&self) {
        self.flight.lock().unwrap().clear();
        self.holds.store(true, Ordering::Relaxed);
    }

    /// Lets the answers go; what the client had sent until then.
    fn release(&self) -> Vec<Vec<u8>> {
        let flight = self.flight.lock().unwrap().clone();
        self.holds.store(false, Ordering::Relaxed);
        flight
    }
}

/// An edge with two workers, and what it needs.
struct Scene {
    folders: Folders,
    runtime: Runtime,
    log: Log,
    to: String,
    listen: SocketAddr,
    edge: Edge,
    relay: Relay,
}

impl Scene {
    fn new() -> Self {
        let (folders, (application, log)) = (Folders::new(), application());
        certificate(&folders);
        let (to, listen) = (format!("http://{application}"), SocketAddr::from(([127, 0, 0, 1], free_port())));
        let (edge, relay) = (start(&folders, &to, listen), Relay::start(listen));
        Self { folders, runtime: Runtime::new().unwrap(), log, to, listen, edge, relay }
    }

    fn restart(&mut self) {
        assert!(self.edge.stop().success());
        self.edge = start(&self.folders, &self.to, self.listen);
    }

    /// A visit that leaves sessions. They come after the handshake, and so before the answer to a second request.
    fn visit(&self, client: &Client, path: &str) {
        for path in [path, "/second"] {
            let uri = format!("https://localhost:{}{path}", self.relay.address.port()).parse().unwrap();
            let response = self.runtime.block_on(client.get(&uri)).unwrap();
            assert_eq!(response.status(), 200);
        }
    }

    /// Makes a request by early data; the datagrams that the client has sent for it.
    fn early(&self, client: &Client, path: &str) -> Vec<Vec<u8>> {
        client.hang_up();
        self.relay.hold();
        std::thread::scope(|scope| {
            let visit = scope.spawn(|| self.visit(client, path));
            let began = Instant::now();
            let has_come = || !asked(&self.log, &format!("GET {path}")).is_empty();
            while !has_come() && began.elapsed() < PATIENCE / 2 {
                std::thread::sleep(Duration::from_millis(5));
            }
            // Released in any case, or the visit would not end either.
            let has_come = has_come();
            let flight = self.relay.release();
            visit.join().unwrap();
            assert!(has_come, "nothing comes early");
            assert_eq!(client.connections().last().unwrap().early_data, Some(EarlyData::Accepted));
            flight
        })
    }

    /// Sends a flight from ten ports. If it must be answered, until it is: the edge takes it for a new client's, and what comes
    /// from the other ports for copies.
    fn replay(&self, flight: &[Vec<u8>], is_answered: bool) {
        let socket = |_| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(self.listen).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let sockets: Vec<UdpSocket> = (0..10).map(socket).collect();
        let send = || {
            for socket in &sockets {
                for datagram in flight {
                    drop(socket.send(datagram));
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        // A server fills datagrams with Initial packets (RFC 9000 section 14.1); a Retry is smaller.
        let has_answer =
            |socket: &UdpSocket| matches!(socket.recv(&mut [0; 2048]), Ok(length) if length >= 1200);
        let began = Instant::now();
        send();
        while is_answered && !sockets.iter().any(has_answer) {
            assert!(began.elapsed() < PATIENCE, "a replayed flight is not looked at");
            send();
        }
    }
}

fn start(folders: &Folders, to: &str, listen: SocketAddr) -> Edge {
    let usual = ["--cert", "cert.pem", "--key", "key.pem", "--state", "state", "--workers", "2"];
    Edge::start(folders, &[&["--to", to, "--listen", &listen.to_string()], &usual[..]].concat())
}

/// The kernel gives a flight to one worker, by its connection ID. Four flights, and after a restart with other keys, meet both.
#[test]
fn a_first_flight_that_is_recorded_and_sent_again_is_read_once() {
    let mut scene = Scene::new();
    let client = Client::new(ClientOptions::new(client_config(&scene.folders)));
    scene.visit(&client, "/first");
    let paths: Vec<String> = (0..4).map(|number| format!("/early-{number}")).collect();
    let flights: Vec<_> = paths.iter().map(|path| scene.early(&client, path)).collect();
    let all_read_once = |scene: &Scene, when: &str| {
        // A request that the replays had brought would be before this one, or just behind it.
        scene.visit(&client, "/later");
        for path in &paths {
            assert_eq!(asked(&scene.log, &format!("GET {path}")), [true], "{path} {when}");
        }
    };
    // Copies belong to a connection as long as it lives, so those of the last flight are nobody else's now.
    scene.replay(&flights[3], false);
    all_read_once(&scene, "beside its connection");
    client.hang_up();
    for flight in &flights {
        scene.replay(flight, true);
    }
    all_read_once(&scene, "when its connection is over");
    scene.restart();
    for flight in &flights {
        scene.replay(flight, true);
    }
    client.hang_up();
    all_read_once(&scene, "after a restart");
    scene.runtime.block_on(client.close());
}

#[test]
fn an_upload_that_comes_early_is_put_off() {
    // Method, https, / and the authority, by QPACK's static table (RFC 9204 appendix A), as a HEADERS frame.
    const POST: &[u8] = b"\x01\x10\0\0\xd4\xd7\xc1\x50\x09localhost";
    const GET: &[u8] = b"\x01\x10\0\0\xd1\xd7\xc1\x50\x09localhost";
    let ask = async |connection: &posthaste_endpoint::Connection, request: &[u8]| {
        let (mut send, recv) = connection.open_bi().await.unwrap();
        send.write_all(request).await.unwrap();
        send.finish();
        recv
    };
    let mut scene = Scene::new();
    let (config, address) = (client_config(&scene.folders), scene.relay.address);
    let endpoint =
        scene.runtime.block_on(async { Endpoint::client("127.0.0.1:0".parse().unwrap()) }).unwrap();
    scene.runtime.block_on(async {
        let first = endpoint.connect(&config, address, "localhost").await.unwrap();
        // Sessions come after the handshake, and so before an answer.
        ask(&first, GET).await.read_to_end(1000).await.unwrap();
        first.close(0x100, b"");
    });
    assert_eq!(scene.edge.event()["status"], 200);
    scene.relay.hold();
    // While it holds, the relay counts one answer more.
    let before = scene.relay.answers.load(Ordering::Relaxed);
    let connection = scene.runtime.block_on(async {
        let connection = endpoint.connect_early(&config, address, "localhost").await.unwrap();
        assert!(connection.may_send_early());
        connection
    });
    let mut early = scene.runtime.block_on(ask(&connection, POST));
    // The edge has read the flight, and cannot have seen the handshake's end.
    wait_until("no answer", || scene.relay.answers.load(Ordering::Relaxed) > before);
    std::thread::sleep(Duration::from_millis(500));
    scene.relay.release();
    let outcome = scene.runtime.block_on(async {
        let outcome = connection.handshake().await.unwrap();
        early.read_to_end(1000).await.unwrap();
        let mut recv = ask(&connection, POST).await;
        recv.read_to_end(1000).await.unwrap();
        outcome
    });
    assert_eq!(outcome, EarlyData::Accepted);
    let mut logged = [scene.edge.event(), scene.edge.event()].map(|event| event["status"].as_u64().unwrap());
    logged.sort_unstable();
    assert_eq!(logged, [200, 425]);
    assert_eq!(asked(&scene.log, "POST /"), [false]);
}
