//! Bounds in number, size and time, and the end of a server.

use std::future::ready;
use std::time::Duration;

use posthaste_service::{Body, Ended, Outcome, Request, Response, service_fn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::common::{PATIENCE, Server, frame, get, preface, rest, until};

async fn ok(_: Request) -> Response {
    Response::new(Body::from("ok"))
}

/// A response that has begun, and ends when it is released.
fn held(mut released: watch::Receiver<bool>) -> Response {
    let (sender, body) = Body::channel();
    tokio::spawn(async move {
        sender.send("begun").await.unwrap();
        let is_released = async { released.wait_for(|released| *released).await.is_ok() };
        let is_released = tokio::select! {
            is_released = is_released => is_released,
            () = sender.closed() => false,
        };
        if is_released {
            let _ = sender.finish().await;
        }
    });
    Response::new(body)
}

const GET: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn a_server_that_stops_lets_requests_finish() {
    let (release, released) = watch::channel(false);
    let service = service_fn(move |_| ready(held(released.clone())));
    let mut server = Server::start(service, |_| {}).await;
    let mut first = server.connect("http/1.1", GET).await;
    let mut second = server.connect("h2", [preface(&[]), get(1, "/")].concat()).await;
    let mut idle = server.connect("h2", preface(&[])).await;
    until(&mut first, "begun").await;
    until(&mut second, "begun").await;
    server.stop();
    // GOAWAY, a frame of type 7, and the end of the connection without requests.
    assert!(rest(&mut idle).await.contains("\0\0\u{8}\u{7}\0\0\0\0\0"));
    let refused = async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, refused).await.expect("it still listens");
    release.send_replace(true);
    assert!(rest(&mut first).await.ends_with("0\r\n\r\n"));
    rest(&mut second).await;
    assert!(server.log.lines(2).await.iter().all(|line| line.3 == Outcome::Complete));
    assert_eq!(server.ended().await, Ended::default());
}

#[tokio::test]
async fn a_server_that_is_cut_counts_what_it_loses() {
    let (_release, released) = watch::channel(false);
    let service = service_fn(move |_| ready(held(released.clone())));
    let mut server = Server::start(service, |_| {}).await;
    let mut first = server.connect("http/1.1", GET).await;
    let mut second = server.connect("h2", [preface(&[]), get(1, "/"), get(3, "/")].concat()).await;
    until(&mut first, "begun").await;
    until(&mut second, "begun").await;
    until(&mut second, "begun").await;
    server.stop();
    server.cut();
    assert_eq!(server.ended().await, Ended { cut_off: 2, requests_cut_off: 3 });
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_ended() {
    let service = service_fn(|_| async { Response::new(Body::from(vec![0; 64 << 20])) });
    let server = Server::start(service, |options| options.stall_timeout = Duration::from_millis(300)).await;
    let first = server.connect("http/1.1", GET).await;
    // INITIAL_WINDOW_SIZE is 0.
    let second = server.connect("h2", [preface(&[0, 4, 0, 0, 0, 0]), get(1, "/")].concat()).await;
    for line in server.log.lines(2).await {
        assert!(matches!(line.3, Outcome::Aborted(_)) && line.2 < 64 << 20, "{line:?}");
    }
    drop((first, second));
}

#[tokio::test]
async fn a_client_that_stops_sending_is_an_error_of_the_body() {
    let service = service_fn(|request: Request| async move {
        let error = request.into_body().collect(100).await.unwrap_err();
        Response::new(Body::from(error.to_string()))
    });
    let server = Server::start(service, |options| options.stall_timeout = Duration::from_millis(200)).await;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfo";
    let answer = server.http1(head).await;
    assert!(answer.contains("the peer sent nothing for 0.2 s"), "{answer}");
}

#[tokio::test]
async fn clients_that_are_slow_or_silent_are_ended() {
    let short = Duration::from_millis(200);
    let server = Server::start(service_fn(ok), |options| options.handshake_timeout = short).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut buffer = [0; 16];
    let ended = timeout(PATIENCE, silent.read(&mut buffer)).await.expect("no end without a handshake");
    assert!(matches!(ended, Ok(0) | Err(_)));
    let server = Server::start(service_fn(ok), |options| {
        options.header_timeout = short;
        options.idle_timeout = short;
    })
    .await;
    for (alpn, bytes) in [("http/1.1", b"GET / HT".to_vec()), ("http/1.1", Vec::new()), ("h2", preface(&[]))]
    {
        rest(&mut server.connect(alpn, bytes).await).await;
    }
    // After a request, too.
    let mut client = server.connect("http/1.1", GET).await;
    assert!(rest(&mut client).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn connections_of_a_client_are_bounded() {
    let server = Server::start(service_fn(ok), |options| options.max_connections_per_client = 2).await;
    let first = server.connect("http/1.1", "").await;
    let _second = server.connect("http/1.1", "").await;
    assert!(server.try_connect("http/1.1").await.is_err());
    drop(first);
    let admitted = async {
        while server.try_connect("http/1.1").await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, admitted).await.expect("a place is not given back");
}

#[tokio::test]
async fn streams_that_are_opened_and_reset_end_the_connection() {
    let service = service_fn(|_| std::future::pending::<Response>());
    let server = Server::start(service, |options| options.max_reset_streams = 20).await;
    let mut client = server.connect("h2", preface(&[])).await;
    let mut flood = Vec::new();
    for request in 0..1000 {
        let stream = 2 * request + 1;
        flood.extend(get(stream, "/"));
        flood.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
    }
    // The server may close before it has all.
    let _ = client.write_all(&flood).await;
    // ENHANCE_YOUR_CALM in a GOAWAY.
    assert!(rest(&mut client).await.contains("\0\0\0\u{b}"), "the connection goes on");
}
