//! A fixed amount of work with both ends in one thread, for `cargo xtask bench instructions`.
//!
//! `work KIND COUNT`, where KIND is
//! - `bulk`: COUNT MB on one stream over QUIC;
//! - `requests-N`: COUNT times 100 bytes there and 1,000 back, each on a stream of its own, N at once, over QUIC;
//! - `whole-N`: the same, each request and response in one call;
//! - `http-N`: COUNT times a response of 1,000 bytes from memory over HTTP/3, N at once;
//! - `handshakes`: COUNT connections with one request each, without resumption, over QUIC;
//! - `idle`: COUNT connections with one request each, held idle until the last handshake's state is gone;
//! - `idle_http`: the same with an HTTP/3 server, and clients that know no more of HTTP/3 than their request;
//! - `gone`: COUNT connections with one request each, closed, and forgotten by both ends.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use posthaste_endpoint::rustls::RootCertStore;
use posthaste_endpoint::{ClientConfig, Connection, Endpoint, ServerConfig, default_transport, tls};
use posthaste_http::{ALPN, Body, Client, ClientOptions, Request, Response, serve, service_fn};
use posthaste_http3::{Settings, encode};
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The application protocol of what is not HTTP/3.
const PLAIN: &[u8] = b"work";
/// Bytes of a request over QUIC, and of every response but `bulk`'s.
const REQUEST: usize = 100;
const RESPONSE: usize = 1_000;
/// What `bulk` writes at once.
const PIECE: usize = 1_000_000;
/// How long `idle` waits: acknowledgements and the end of the handshake's state come later than the last response.
const SETTLE: Duration = Duration::from_secs(2);
/// Bytes that `idle` takes and gives back at its end: more than the first handshake takes to compress a certificate.
const PEAK: usize = 128 << 20;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, count] = words.as_slice() else {
        return Err("work KIND COUNT, and see its first lines".into());
    };
    let count: i64 = count.parse()?;
    let (kind, at_once) =
        kind.rsplit_once('-').map_or((kind.as_str(), 1), |(kind, n)| (kind, n.parse().unwrap_or(0)));
    match kind {
        "bulk" => bulk(count).await,
        "requests" => requests(count, at_once, false).await,
        "whole" => requests(count, at_once, true).await,
        "http" => http(count, at_once).await,
        "handshakes" => handshakes(count).await,
        "idle" => idle(count).await,
        "idle_http" => idle_http(count).await,
        "gone" => gone(count).await,
        _ => Err("KIND is bulk, requests-N, whole-N, http-N, handshakes, idle, idle_http or gone".into()),
    }
}

/// A server's endpoint, and the client's configuration for it.
fn ends(protocol: &[u8]) -> Result<(Endpoint, ClientConfig), Error> {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let mut roots = RootCertStore::empty();
    roots.add(identity.cert.der().clone())?;
    let key = identity.signing_key.serialize_der().try_into()?;
    let config = tls::server_config(vec![identity.cert.into()], key, &[protocol])?;
    let server = Endpoint::server("127.0.0.1:0".parse()?, ServerConfig::new(config, default_transport()))?;
    let client = ClientConfig::new(tls::client_config_with_roots(roots, &[protocol])?, default_transport());
    Ok((server, client))
}

async fn bulk(count: i64) -> Result<(), Error> {
    let (server, config) = ends(PLAIN)?;
    let address = server.local_addr()?;
    let content = Bytes::from(vec![b'x'; PIECE]);
    tokio::spawn(async move {
        let Some(connection) = server.accept().await else { return };
        let Ok((mut send, _)) = connection.accept_bi().await else { return };
        for _ in 0..count {
            if send.write_bytes(content.clone()).await.is_err() {
                return;
            }
        }
        send.finish();
        connection.closed().await;
    });
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connection = client.connect(&config, address, "localhost").await?;
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(b"?").await?;
    send.finish();
    let mut received = 0;
    while let Some(chunk) = recv.read_chunk(usize::MAX).await? {
        received += chunk.len();
    }
    expect(received, usize::try_from(count)? * PIECE)
}

async fn requests(count: i64, at_once: usize, is_whole: bool) -> Result<(), Error> {
    let (server, config) = ends(PLAIN)?;
    let address = server.local_addr()?;
    tokio::spawn(answer(server, is_whole));
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connection = client.connect(&config, address, "localhost").await?;
    side_by_side(count, at_once, |left| {
        let connection = connection.clone();
        async move {
            while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                if is_whole {
                    whole_request(&connection).await?;
                } else {
                    request(&connection).await?;
                }
            }
            Ok(())
        }
    })
    .await
}

async fn http(count: i64, at_once: usize) -> Result<(), Error> {
    let (server, config) = ends(ALPN)?;
    let uri: Uri = format!("https://localhost:{}/file", server.local_addr()?.port()).parse()?;
    let content = Bytes::from(vec![b'x'; RESPONSE]);
    let service = service_fn(move |_: Request| ready(Response::new(Body::from(content.clone()))));
    tokio::spawn(serve(server, service).run());
    let client = Client::new(ClientOptions::new(config));
    side_by_side(count, at_once, |left| {
        let (client, uri) = (client.clone(), uri.clone());
        async move {
            while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                let mut response = client.get(&uri).await?;
                while response.chunk().await?.is_some() {}
                expect(usize::try_from(response.received())?, RESPONSE)?;
            }
            Ok(())
        }
    })
    .await
}

async fn handshakes(count: i64) -> Result<(), Error> {
    let (server, config) = ends(PLAIN)?;
    let address: SocketAddr = server.local_addr()?;
    tokio::spawn(answer(server, false));
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    for _ in 0..count {
        let connection = client.connect(&config, address, "localhost").await?;
        request(&connection).await?;
        connection.close(0, b"");
        connection.closed().await;
    }
    Ok(())
}

async fn idle(count: i64) -> Result<(), Error> {
    let (_client, _connections) = connections(count).await?;
    tokio::time::sleep(SETTLE).await;
    peak();
    Ok(())
}

/// As many connections, with a request each, and the client's endpoint.
async fn connections(count: i64) -> Result<(Endpoint, Vec<Connection>), Error> {
    let (server, config) = ends(PLAIN)?;
    let address: SocketAddr = server.local_addr()?;
    tokio::spawn(answer(server, false));
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let mut connections = Vec::new();
    for _ in 0..count {
        let connection = client.connect(&config, address, "localhost").await?;
        request(&connection).await?;
        connections.push(connection);
    }
    Ok((client, connections))
}

async fn idle_http(count: i64) -> Result<(), Error> {
    let (server, config) = ends(ALPN)?;
    let address: SocketAddr = server.local_addr()?;
    let content = Bytes::from(vec![b'x'; RESPONSE]);
    let service = service_fn(move |_: Request| ready(Response::new(Body::from(content.clone()))));
    tokio::spawn(serve(server, service).run());
    let head = http::Request::get(format!("https://localhost:{}/file", address.port())).body(())?;
    let head = Bytes::from(encode::request(&head)?);
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let mut kept = Vec::new();
    for _ in 0..count {
        let connection = client.connect(&config, address, "localhost").await?;
        let mut control = connection.open_uni().await?;
        control.write_all(&encode::control_stream(&Settings::default(), None)).await?;
        let (mut send, mut recv) = connection.open_bi().await?;
        send.finish_with(head.clone()).await?;
        recv.read_to_end(2 * RESPONSE).await?;
        kept.push((connection, control));
    }
    tokio::time::sleep(SETTLE).await;
    peak();
    Ok(())
}

async fn gone(count: i64) -> Result<(), Error> {
    let (client, connections) = connections(count).await?;
    for connection in &connections {
        connection.close(0, b"");
    }
    drop(connections);
    client.wait_idle().await;
    tokio::time::sleep(SETTLE).await;
    peak();
    Ok(())
}

/// A peak, for a profile of the heap as it is now.
fn peak() {
    std::hint::black_box(vec![1_u8; PEAK]);
}

/// `at_once` tasks that share `count` items.
async fn side_by_side<F>(count: i64, at_once: usize, task: impl Fn(Arc<AtomicI64>) -> F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let left = Arc::new(AtomicI64::new(count));
    let mut tasks: JoinSet<_> = (0..at_once).map(|_| task(Arc::clone(&left))).collect();
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

async fn request(connection: &Connection) -> Result<(), Error> {
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(&[b'?'; REQUEST]).await?;
    send.finish();
    expect(recv.read_to_end(RESPONSE).await?.len(), RESPONSE)
}

async fn whole_request(connection: &Connection) -> Result<(), Error> {
    let (_, mut recv) = connection.open_bi_with(Bytes::from_static(&[b'?'; REQUEST])).await?;
    expect(recv.read_to_end(RESPONSE).await?.len(), RESPONSE)
}

/// Answers each stream of each connection.
async fn answer(server: Endpoint, is_whole: bool) {
    let content = Bytes::from(vec![b'x'; RESPONSE]);
    while let Some(connection) = server.accept().await {
        let content = content.clone();
        tokio::spawn(async move {
            while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                let content = content.clone();
                tokio::spawn(async move {
                    if recv.read_to_end(REQUEST).await.is_err() {
                        return;
                    }
                    if is_whole {
                        let _ = send.finish_with(content).await;
                    } else if send.write_bytes(content).await.is_ok() {
                        send.finish();
                    }
                });
            }
        });
    }
}

fn expect(received: usize, expected: usize) -> Result<(), Error> {
    if received == expected { Ok(()) } else { Err(format!("{received} bytes of {expected}").into()) }
}
