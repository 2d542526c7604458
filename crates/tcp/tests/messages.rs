//! Requests and responses as services and clients see them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use posthaste_service::{Body, Outcome, Peer, Protocol, Request, Response, service_fn};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::common::{PATIENCE, Server, frame, get, preface, rest, until};

/// Answers with what it sees, and sends the body back.
async fn echo(request: Request) -> Response {
    let peer = request.extensions().get::<Peer>().unwrap();
    let seen = format!("{} {} {}", peer.protocol, request.uri(), peer.server_name.as_deref().unwrap_or("-"));
    // As a body, too: fields of HTTP/2 are coded.
    let is_get = request.method() == http::Method::GET;
    let body = if is_get { Body::from(seen.clone()) } else { request.into_body() };
    let mut response = http::Response::new(body);
    response.headers_mut().insert("seen", HeaderValue::from_str(&seen).unwrap());
    response
}

#[tokio::test]
async fn a_service_sees_an_absolute_uri_and_the_client() {
    let server = Server::start(service_fn(echo), |_| {}).await;
    let answer = server
        .http1("POST /x?y HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfour");
    let answer = answer.await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("seen: h1 https://a.test/x?y localhost\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nfour"), "{answer}");
    let mut client = server.connect("h2", [preface(&[]), get(1, "/two")].concat()).await;
    until(&mut client, "h2 https://localhost/two localhost").await;
    drop(client);
    let lines = server.log.lines(2).await;
    assert_eq!(lines[0], (Protocol::Http1, Some(200), 4, Outcome::Complete));
    assert_eq!(lines[1], (Protocol::Http2, Some(200), 34, Outcome::Complete));
    assert_eq!(server.ended().await.cut_off, 0);
}

/// What a service gets of a connection's bytes.
async fn seen(bytes: &str) -> (Vec<(String, String)>, String) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let service = service_fn(move |request: Request| {
        let record = Arc::clone(&record);
        async move {
            let uri = request.uri().to_string();
            let body = request.into_body().collect(1000).await;
            let body = body.map_or_else(|error| format!("error: {error}"), |body| format!("{body:?}"));
            record.lock().unwrap().push((uri, body));
            Response::new(Body::from("ok"))
        }
    });
    let server = Server::start(service, |options| options.header_timeout = Duration::from_secs(1)).await;
    let answer = server.http1(bytes).await;
    drop(server);
    (seen.lock().unwrap().clone(), answer)
}

#[tokio::test]
async fn what_is_not_clear_reaches_no_service() {
    let host = "Host: localhost\r\n";
    for (bytes, status) in [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\n{host}{host}\r\n"), 400),
        (format!("GET / HTTP/1.1\r\n{host}Host: b.test\r\n\r\n"), 400),
        (format!("GET https://b.test/ HTTP/1.1\r\n{host}\r\n"), 400),
        (format!("GET http://localhost/ HTTP/1.1\r\n{host}\r\n"), 400),
        (format!("GET / HTTP/1.1\r\n Host: localhost\r\n{host}\r\n"), 400),
        (format!("GET / HTTP/1.1\r\n{host}X: a\r\n b\r\n\r\n"), 400),
        (format!("GET / HTTP/1.1\r\n{host}X : a\r\n\r\n"), 400),
        (format!("GET / HTTP/1.1\r\n{host}X: a\0b\r\n\r\n"), 400),
        (format!("GET  / HTTP/1.1\r\n{host}\r\n"), 400),
        (format!("POST / HTTP/1.1\r\n{host}Content-Length: 4\r\nContent-Length: 5\r\n\r\nfour"), 400),
        (format!("POST / HTTP/1.1\r\n{host}Content-Length: +4\r\n\r\nfour"), 400),
        (format!("POST / HTTP/1.1\r\n{host}Content-Length: 0x4\r\n\r\nfour"), 400),
        (format!("POST / HTTP/1.1\r\n{host}Content-Length: 18446744073709551616\r\n\r\n"), 400),
        (format!("POST / HTTP/1.0\r\n{host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: gzip\r\n\r\n"), 400),
        (format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 501),
        (format!("CONNECT localhost:443 HTTP/1.1\r\n{host}\r\n"), 501),
        (format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", "a".repeat(40_000)), 431),
        (format!("GET / HTTP/1.1\r\n{host}{}\r\n", "a: b\r\n".repeat(300)), 431),
    ] {
        let (requests, answer) = seen(&format!("{bytes}GET /smuggled HTTP/1.1\r\n{host}\r\n")).await;
        let start: String = bytes.chars().take(90).collect();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{start:?}: {answer:?}");
        assert_eq!(requests, [], "{start:?}");
    }
}

#[tokio::test]
async fn a_body_ends_where_its_message_says() {
    let host = "Host: localhost\r\n";
    let next = format!("GET /next HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
    for (bytes, body) in [
        (format!("POST / HTTP/1.1\r\n{host}Content-Length: 4\r\n\r\nfour"), "b\"four\""),
        (
            format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n"),
            "b\"four\"",
        ),
        // RFC 9112 section 6.3: chunks win.
        (
            format!(
                "POST / HTTP/1.1\r\n{host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n"
            ),
            "b\"four\"",
        ),
        (format!("GET / HTTP/1.1\r\n{host}\r\n"), "b\"\""),
    ] {
        let (requests, answer) = seen(&format!("{bytes}{next}")).await;
        assert_eq!(requests[0].1, body, "{bytes:?}");
        assert!(requests.len() == 1 || requests[1].0 == "https://localhost/next", "{requests:?}");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    for broken in ["x\r\nfour\r\n0\r\n\r\n", "4\r\nfourx\r\n0\r\n\r\n", "-4\r\nfour\r\n0\r\n\r\n"] {
        let head = format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n");
        let (requests, _) = seen(&format!("{head}{broken}{next}")).await;
        assert!(requests.len() == 1 && requests[0].1.starts_with("error: "), "{broken:?}: {requests:?}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_services_work() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let service = service_fn(move |_| {
        let _ = tell.send("begun");
        let guard = Guard(tell.clone());
        async move {
            let _guard = guard;
            std::future::pending::<Response>().await
        }
    });
    let server = Server::start(service, |_| {}).await;
    let first = server.connect("http/1.1", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let second = server.connect("h2", [preface(&[]), get(1, "/")].concat()).await;
    let mut kept = server.connect("h2", [preface(&[]), get(1, "/")].concat()).await;
    let mut next = async || timeout(PATIENCE, told.recv()).await.expect("the service works on").unwrap();
    for _ in 0..3 {
        assert_eq!(next().await, "begun");
    }
    drop((first, second));
    // One stream only: RST_STREAM with CANCEL.
    kept.write_all(&frame(3, 0, 1, &8_u32.to_be_bytes())).await.unwrap();
    for _ in 0..3 {
        assert_eq!(next().await, "over");
    }
    let lines = server.log.lines(3).await;
    assert!(lines.iter().all(|line| matches!(line.3, Outcome::Aborted(_))), "{lines:?}");
}

struct Guard(tokio::sync::mpsc::UnboundedSender<&'static str>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send("over");
    }
}

#[tokio::test]
async fn a_service_that_fails_is_a_status_and_a_body_that_fails_is_no_whole_response() {
    let service = service_fn(|request: Request| async move {
        assert!(request.uri().path() != "/panic", "as asked for");
        let (sender, body) = Body::channel();
        tokio::spawn(async move {
            let _ = sender.send("half").await;
            let _ = sender.fail("the disk is gone").await;
        });
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::ACCEPTED;
        // None of a service's business.
        response.headers_mut().insert("transfer-encoding", HeaderValue::from_static("identity"));
        response.headers_mut().insert("connection", HeaderValue::from_static("upgrade"));
        response
    });
    let server = Server::start(service, |_| {}).await;
    let answer = server.http1("GET /panic HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    let answer = server.http1("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 202 ") && answer.contains("transfer-encoding: chunked"), "{answer}");
    assert!(!answer.contains("identity") && !answer.contains("upgrade"), "{answer}");
    assert!(answer.contains("half") && !answer.ends_with("0\r\n\r\n"), "{answer}");
    // Over HTTP/2 the stream is reset: a frame of type 3.
    let mut client = server.connect("h2", [preface(&[]), get(1, "/")].concat()).await;
    until(&mut client, "half").await;
    until(&mut client, "\0\0\u{4}\u{3}\0\0\0\0\u{1}").await;
    let lines = server.log.lines(3).await;
    assert!(lines.iter().all(|line| matches!(line.3, Outcome::Failed(_))), "{lines:?}");
}

#[tokio::test]
async fn a_body_that_fails_at_once_leaves_the_client_the_head() {
    let service = service_fn(|_| async {
        let (sender, body) = Body::channel();
        let _ = sender.fail("the application is gone").await;
        Response::new(body)
    });
    let server = Server::start(service, |_| {}).await;
    let answer = server.http1("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && !answer.ends_with("0\r\n\r\n"), "{answer:?}");
    // HEADERS that end the head and not the stream, with status 200 first; RST_STREAM later.
    let mut client = server.connect("h2", [preface(&[]), get(1, "/")].concat()).await;
    until(&mut client, "\u{1}\u{4}\0\0\0\u{1}").await;
    until(&mut client, "\0\0\u{4}\u{3}\0\0\0\0\u{1}").await;
}

#[tokio::test]
async fn responses_say_that_the_same_port_speaks_http3() {
    let day = Duration::from_secs(86_400);
    let server = Server::start(service_fn(echo), |options| options.alt_svc = Some(day)).await;
    let port = server.address.port();
    let asked =
        |host: String| server.http1(format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    let answer = asked(format!("localhost:{port}")).await;
    assert!(answer.contains(&format!("alt-svc: h3=\":{port}\"; ma=86400\r\n")), "{answer}");
    assert!(!asked("localhost".to_owned()).await.contains("alt-svc"), "another port");
}

#[tokio::test]
async fn the_answer_to_an_upload_that_is_not_read_arrives() {
    let service = service_fn(|_| async {
        let mut response = Response::new(Body::from("too large"));
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        response
    });
    let server = Server::start(service, |_| {}).await;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n";
    let mut client = server.connect("http/1.1", head).await;
    // Some of it is still on its way when the answer is written.
    let _ = client.write_all(&vec![0; 100_000]).await;
    let answer = rest(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.ends_with("too large"), "{answer}");
}
