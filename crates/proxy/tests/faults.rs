//! Upstreams that are away, slow, or say what is not HTTP.

use std::time::Duration;

use http::{Method, StatusCode};
use posthaste_http::{Body, ClientError};
use posthaste_proxy::ProxyOptions;

use crate::common::{PATIENCE, Server, body};
use crate::over_tcp;
use crate::recorder::{Recorder, Reply, Then, When};
use crate::scene::{Scene, proxy};

/// The statuses of requests with these methods, and how many connections the upstream saw.
async fn answers(methods: &[&str], bytes: impl Into<Vec<u8>>, then: Then) -> (Vec<u16>, usize) {
    let bytes = bytes.into();
    let scene = Scene::new(move |_| Reply { bytes: bytes.clone(), then }).await;
    let mut statuses = Vec::new();
    for method in methods {
        let asked = scene.request(&method.parse().unwrap(), "/", Body::empty());
        statuses.push(scene.send(asked).await.unwrap().status().as_u16());
    }
    (statuses, scene.upstream.links().len())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_response_is_502_and_asked_once_more_where_that_is_safe() {
    for (bytes, then) in [
        ("", Then::Close),
        ("", Then::Reset),
        ("HTTP/1.1 200 OK\r\nContent-Le", Then::Close),
        ("SSH-2.0-OpenSSH_9.2\r\n", Then::Keep),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nfive5", Then::Keep),
        ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nfive5", Then::Keep),
        ("HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n", Then::Keep),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Then::Keep),
        ("HTTP/2 200\r\n\r\n", Then::Keep),
    ] {
        assert_eq!(answers(&["GET"], bytes, then).await, (vec![502], 2), "GET {bytes:?}");
        assert_eq!(answers(&["POST"], bytes, then).await, (vec![502], 1), "POST {bytes:?}");
    }
    // Heads beyond the bounds.
    let large = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(70_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: 1\r\n".repeat(300));
    for bytes in [large, many] {
        assert_eq!(answers(&["POST"], bytes, Then::Keep).await, (vec![502], 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_protocol_that_nobody_asked_for_is_502() {
    let switched = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";
    assert_eq!(answers(&["GET", "GET"], switched, Then::Keep).await, (vec![502, 502], 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_break_off_are_reset_and_their_connections_closed() {
    for (bytes, then) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", Then::Close),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", Then::Close),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nnonsense\r\n\r\n", Then::Keep),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalfhalf\r\n0\r\n\r\n", Then::Keep),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhalf", Then::Keep),
    ] {
        let scene = Scene::new(move |message| match message.target.as_str() {
            "/well" => Reply::ok(b""),
            _ => Reply { bytes: bytes.into(), then },
        })
        .await;
        let response = scene.get("/").await;
        let ended = match response {
            Ok(response) => body(response).await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(matches!(ended, Err(ClientError::Reset { .. })), "{bytes:?}: {ended:?}");
        scene.upstream.wait("the connection ends", |links| links[0].is_closed).await;
        scene.is_well().await;
    }
}

/// All that an HTTP/1.1 client gets of two requests, the second of which has the connection closed.
async fn by_http1(reply: Reply) -> String {
    let upstream = Recorder::start(When::Whole, move |_| reply.clone()).await;
    let service = proxy(&format!("http://{}", upstream.address), |_| {});
    let server = over_tcp::Server::start(service, |_| {}).await;
    server
        .http1("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_of_http_1_0_are_passed_on_as_ours() {
    // RFC 9110 section 6.2. Many applications answer so, Python's `http.server` among them.
    let whole = by_http1(Reply::close("HTTP/1.0 200 OK\r\n\r\nwhole")).await;
    assert_eq!(whole.matches("HTTP/1.1 200 OK\r\n").count(), 2, "the client's connection stays: {whole}");
    assert!(whole.ends_with("5\r\nwhole\r\n0\r\n\r\n"), "{whole}");
    let length = by_http1(Reply::close("HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nwhole")).await;
    assert_eq!(length.matches("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n").count(), 2, "{length}");
    // Its end is that of the connection: one that breaks must not look like it.
    let reset = Reply { bytes: "HTTP/1.0 200 OK\r\n\r\nhalf".into(), then: Then::Reset };
    let broken = by_http1(reset).await;
    assert!(!broken.contains("0\r\n\r\n") && !broken.contains("HTTP/1.0"), "{broken}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lengths_that_contradict_each_other_are_the_chunks() {
    let both =
        "HTTP/1.1 200 OK\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n";
    let scene = Scene::new(move |_| Reply::keep(both)).await;
    let response = scene.get("/").await.unwrap();
    assert_eq!(response.content_length(), None);
    assert_eq!(body(response).await.unwrap(), b"four");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_a_response_belongs_to_nobody() {
    let two =
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\noneHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother";
    let scene = Scene::new(move |_| Reply::keep(two)).await;
    for _ in 0..3 {
        assert_eq!(body(scene.get("/").await.unwrap()).await.unwrap(), b"one");
    }
    // To HEAD there is no content.
    let content = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother";
    let scene = Scene::new(move |_| Reply::keep(content)).await;
    for _ in 0..3 {
        let asked = scene.request(&Method::HEAD, "/", Body::empty());
        assert!(body(scene.send(asked).await.unwrap()).await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_away_is_502() {
    // Nobody gets port 1 without asking for it.
    let server = Server::start(proxy("http://127.0.0.1:1", |_| {}), |_| {});
    let client = server.client();
    for method in [Method::GET, Method::POST] {
        let asked = http::Request::builder().method(method).uri(server.uri("/")).body("x".into()).unwrap();
        let response = client.send(asked).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        let text = String::from_utf8(body(response).await.unwrap()).unwrap();
        assert_eq!(text, "502 Bad Gateway\nthe server behind this one cannot be reached\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_does_not_answer_is_504() {
    let configure = |options: &mut ProxyOptions| options.head_timeout = Duration::from_millis(200);
    let interim: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    for bytes in [b"".as_slice(), b"HTTP/1.1 200 OK\r\nX:", interim] {
        let scene = Scene::with(When::Whole, configure, move |_| Reply::keep(bytes)).await;
        let response = scene.get("/").await.unwrap();
        assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
        let text = String::from_utf8(body(response).await.unwrap()).unwrap();
        assert!(text.ends_with("the server behind this one did not answer within 0.2 s\n"), "{text}");
        let links = scene.upstream.wait("the connection ends", |links| links[0].is_closed).await;
        assert_eq!(links.len(), 1, "what is slow is not asked again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_interim_responses_end_with_the_timeout() {
    let configure = |options: &mut ProxyOptions| options.head_timeout = Duration::from_millis(200);
    let storm = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1000);
    let scene =
        Scene::with(When::Whole, configure, move |_| Reply { bytes: storm.clone(), then: Then::Repeat })
            .await;
    assert_eq!(scene.get("/").await.unwrap().status(), StatusCode::GATEWAY_TIMEOUT);
    scene.upstream.wait("the connection ends", |links| links[0].is_closed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_upload_is_no_silence_of_the_upstream() {
    // The upstream has this long for its answer, the client a pause that is longer.
    let configure = |options: &mut ProxyOptions| options.head_timeout = Duration::from_secs(3);
    let scene = Scene::with(When::Whole, configure, |message| Reply::ok(&message.body)).await;
    let (feed, unannounced) = Body::channel();
    let feeding = async move {
        feed.send("xx").await.unwrap();
        tokio::time::sleep(Duration::from_secs(4)).await;
        feed.send("xx").await.unwrap();
        feed.finish().await.unwrap();
    };
    let (response, ()) = tokio::join!(scene.send(scene.request(&Method::PUT, "/", unannounced)), feeding);
    assert_eq!(body(response.unwrap()).await.unwrap(), b"xxxx");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_the_upstream_ends_cost_no_request() {
    // Ends each connection behind its first response, without a word of it in the head.
    let scene =
        Scene::new(|message| Reply { then: Then::Close, ..Reply::ok(message.target.as_bytes()) }).await;
    for round in 0..20 {
        let path = format!("/{round}");
        let response = tokio::time::timeout(PATIENCE, scene.get(&path)).await.unwrap().unwrap();
        assert_eq!(response.status(), StatusCode::OK, "round {round}");
    }
}
