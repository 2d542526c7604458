//! A crowd of clients in one process, for `cargo xtask hostile`: many connections that ask for much and read nothing, until
//! stdin says what comes next.
//!
//! `crowd --ca FILE --connect ADDRESS --connections N --requests N --answers N --path PATH --handshakes N` (at once). It prints `ready
//! CONNECTIONS REQUESTS SECONDS` when all requests are sent and the first N of each connection are answered. Each line on
//! stdin is a command:
//! - `move`: another socket; prints `moved-COUNT N SECONDS` when N connections have one more response by the new one.
//! - The end of stdin closes all connections; prints `closed N`, those that were still open.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use posthaste_endpoint::rustls::RootCertStore;
use posthaste_endpoint::rustls::pki_types::{CertificateDer, pem::PemObject as _};
use posthaste_endpoint::{
    ByteCount, ClientConfig, Connection, Endpoint, ReceiveBudget, RecvStream, SendStream, default_transport,
    tls,
};
use posthaste_http::ALPN;
use posthaste_http3::{Settings, encode};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

/// Where they come from; other clients of the machine come from the first address.
const ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::new(127, 0, 0, 2), 0);
/// Handshakes at once, unless told otherwise.
const HANDSHAKES: usize = 64;
/// For a handshake, and for each thing asked.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long an answer of many may fail to come before it counts as held back.
const HELD_BACK: Duration = Duration::from_secs(2);
/// Keeps idle connections.
const KEEP_ALIVE: Duration = Duration::from_secs(8);
/// Bytes of the receive budget for each connection.
const PLACE: u64 = 64 * 1024;

struct Options {
    ca: String,
    connect: SocketAddr,
    connections: usize,
    requests: usize,
    answers: usize,
    path: String,
    handshakes: usize,
}

fn options() -> Result<Options> {
    let mut options = Options {
        ca: String::new(),
        connect: (Ipv4Addr::LOCALHOST, 4433).into(),
        connections: 1,
        requests: 1,
        answers: 1,
        path: "/".to_owned(),
        handshakes: HANDSHAKES,
    };
    let mut words = std::env::args().skip(1);
    while let (Some(word), Some(value)) = (words.next(), words.next()) {
        match word.as_str() {
            "--ca" => options.ca = value,
            "--connect" => options.connect = value.parse()?,
            "--connections" => options.connections = value.parse()?,
            "--requests" => options.requests = value.parse()?,
            "--answers" => options.answers = value.parse()?,
            "--path" => options.path = value,
            "--handshakes" => options.handshakes = value.parse()?,
            _ => return Err(format!("{word}: unknown").into()),
        }
    }
    Ok(options)
}

/// A connection and what it holds open.
struct Visitor {
    connection: Connection,
    _control: SendStream,
    unread: Vec<(SendStream, RecvStream)>,
}

/// A request that is complete.
async fn ask(connection: &Connection, path: &str) -> Result<(SendStream, RecvStream)> {
    let request = http::Request::get(format!("https://localhost{path}")).body(())?;
    let (mut send, recv) = connection.open_bi().await?;
    send.write_bytes(encode::request(&request)?.into()).await?;
    send.finish();
    Ok((send, recv))
}

/// Waits for a response's first byte, and takes no more.
async fn first_byte(recv: &mut RecvStream) -> Result<()> {
    recv.read_chunk(1).await?.ok_or("no response")?;
    Ok(())
}

/// Connects, asks, and sees that a response begins. Further responses that do not come are held back.
async fn visit(endpoint: &Endpoint, config: &ClientConfig, options: &Options) -> Result<Visitor> {
    let connection = timeout(PATIENCE, endpoint.connect(config, options.connect, "localhost")).await??;
    let mut control = connection.open_uni().await?;
    control.write_all(encode::control_stream(&Settings::default(), None).as_ref()).await?;
    let mut unread = Vec::new();
    for count in 0..options.requests {
        // More than the server permits at once.
        let Ok(asked) = timeout(HELD_BACK, ask(&connection, &options.path)).await else { break };
        let (send, mut recv) = asked?;
        if count < options.answers {
            timeout(PATIENCE, first_byte(&mut recv)).await??;
        }
        unread.push((send, recv));
    }
    // And a request of which the rest never comes.
    if let Ok(Ok((mut send, recv))) = timeout(HELD_BACK, connection.open_bi()).await {
        send.write_all(&[0x01, 0x20, 0x00]).await?;
        unread.push((send, recv));
    }
    Ok(Visitor { connection, _control: control, unread })
}

/// True if another response comes.
async fn is_answered(visitor: &Visitor) -> bool {
    let fetch = async {
        let (_send, mut recv) = ask(&visitor.connection, "/small").await?;
        first_byte(&mut recv).await
    };
    matches!(timeout(PATIENCE, fetch).await, Ok(Ok(())))
}

/// The next line of stdin; empty at its end.
async fn next_command() -> Result<String> {
    let read = || std::io::stdin().lines().next().unwrap_or(Ok(String::new()));
    Ok(tokio::task::spawn_blocking(read).await??)
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Arc::new(options()?);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&options.ca)?)?;
    let mut transport = default_transport();
    transport.keep_alive = Some(KEEP_ALIVE);
    // What a connection may have unread is little, so that its responses wait at the server.
    transport.receive_budget = ReceiveBudget::new(ByteCount::new(options.connections as u64 * PLACE));
    let config = ClientConfig::new(tls::client_config_with_roots(roots, &[ALPN])?, transport);
    let endpoint = Endpoint::client(ADDRESS.into())?;
    let began = Instant::now();
    let places = Arc::new(Semaphore::new(options.handshakes));
    let mut tasks = Vec::new();
    for _ in 0..options.connections {
        let place = Arc::clone(&places).acquire_owned().await?;
        let (endpoint, config, options) = (endpoint.clone(), config.clone(), Arc::clone(&options));
        tasks.push(tokio::spawn(async move {
            let visitor = visit(&endpoint, &config, &options).await;
            drop(place);
            visitor
        }));
    }
    let mut visitors = Vec::new();
    for task in tasks {
        match task.await? {
            Ok(visitor) => visitors.push(visitor),
            Err(error) => eprintln!("{error}"),
        }
    }
    let requests: usize = visitors.iter().map(|visitor| visitor.unread.len()).sum();
    println!("ready {} {requests} {}", visitors.len(), began.elapsed().as_secs_f64());
    for moves in 1.. {
        if next_command().await? != "move" {
            break;
        }
        let began = Instant::now();
        // Not before the server has confirmed every handshake and given every connection an ID for it.
        let moved = async {
            while endpoint.rebind(ADDRESS.into()).is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, moved).await?;
        let mut answered = 0;
        for answer in futures::future::join_all(visitors.iter().map(is_answered)).await {
            answered += usize::from(answer);
        }
        println!("moved-{moves} {answered} {}", began.elapsed().as_secs_f64());
    }
    let open = visitors.iter().filter(|visitor| visitor.connection.close_reason().is_none()).count();
    endpoint.close(0x100, b"");
    let _ = timeout(PATIENCE, endpoint.wait_idle()).await;
    println!("closed {open}");
    Ok(())
}
