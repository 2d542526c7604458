//! What works: bodies both ways, trailers, connections that are used again, cancellation.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use posthaste_http::{Body, ClientError};
use posthaste_proxy::ProxyOptions;
use tokio::time::timeout;

use crate::common::{PATIENCE, body};
use crate::raw::{End, Raw, end, request};
use crate::recorder::{Message, Reply, Then, When};
use crate::scene::Scene;

fn sample(length: usize) -> Bytes {
    (0..length).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn echo(message: &Message) -> Reply {
    Reply::ok(&message.body)
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_reach_the_upstream_and_come_back() {
    let scene = Scene::new(echo).await;
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::GET] {
        for length in [1, 100, 3_000_000] {
            let content = sample(length);
            let response = scene.send(scene.request(&method, "/", content.clone())).await.unwrap();
            assert_eq!(response.content_length(), Some(length as u64));
            assert!(body(response).await.unwrap() == content, "{method} {length}");
        }
        let (feed, unannounced) = Body::channel();
        let asked = scene.request(&method, "/", unannounced);
        let feeding = async move {
            for piece in ["one ", "two ", "three"] {
                feed.send(piece).await.unwrap();
            }
            feed.finish().await.unwrap();
        };
        let (response, ()) = tokio::join!(scene.send(asked), feeding);
        assert_eq!(body(response.unwrap()).await.unwrap(), b"one two three", "{method}");
    }
    let lengths: Vec<_> = scene.upstream.messages().iter().map(|message| message.body.len()).collect();
    assert_eq!(lengths, [1, 100, 3_000_000, 13].repeat(5));
    let links = scene.upstream.links();
    assert!(links.iter().any(|link| link.messages().len() > 1), "no connection is used again");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_body_say_so_where_one_is_usual() {
    let scene = Scene::new(echo).await;
    let raw = Raw::connect(&scene.server).await;
    for (method, told) in [
        ("GET", ""),
        ("HEAD", ""),
        ("DELETE", ""),
        ("POST", "content-length: 0\r\n"),
        ("PUT", "content-length: 0\r\n"),
    ] {
        // The end comes later than the head (Caddy #7835, HAProxy #3426).
        let (mut send, recv) = raw.open().await;
        send.write_all(&request(method, &[("accept", "*/*")])).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        send.finish();
        assert_eq!(end(recv).await, End::Status(200), "{method}");
        let expected = format!(
            "{method} /raw HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\nx-forwarded-for: 127.0.0.1\r\n\
             x-forwarded-proto: https\r\nx-forwarded-host: localhost\r\nx-forwarded-port: 443\r\n\
             via: 3.0 edge\r\n{told}\r\n"
        );
        let links = scene.upstream.links();
        let is_so = links.iter().any(|link| link.bytes.ends_with(expected.as_bytes()));
        assert!(is_so, "{expected}: {links:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_go_both_ways() {
    let scene = Scene::new(|message| {
        let [(name, value)] = &message.trailers[..] else { return Reply::close("") };
        Reply::keep(format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: {name}\r\n\r\n4\r\ndata\r\n0\r\n\
             {name}: {value}\r\nContent-Length: 7\r\n\r\n"
        ))
    })
    .await;
    let (feed, unannounced) = Body::channel();
    let mut asked = scene.request(&Method::POST, "/", unannounced);
    asked.headers_mut().insert("trailer", HeaderValue::from_static("checksum, host"));
    let feeding = async move {
        feed.send("data").await.unwrap();
        let fields = [("checksum", "7"), ("host", "other"), ("unannounced", "1")];
        let fields =
            fields.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        feed.finish_with(fields.into_iter().collect()).await.unwrap();
    };
    let (response, ()) = tokio::join!(scene.send(asked), feeding);
    let mut response = response.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "data");
    assert_eq!(response.chunk().await.unwrap(), None);
    let trailers = response.trailers().unwrap();
    assert_eq!((trailers.len(), &trailers["checksum"]), (1, &HeaderValue::from_static("7")));
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_come_as_they_are_made_and_in_the_clients_pace() {
    let scene = Scene::new(|_| {
        let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        // The head once would do; a client that reads on would find the second one.
        Reply { bytes: format!("{head}{chunk}").into_bytes(), then: Then::Keep }
    })
    .await;
    let mut response = scene.get("/").await.unwrap();
    // Without an end, the first chunk comes.
    let first = timeout(PATIENCE, response.chunk()).await.expect("the first bytes wait").unwrap().unwrap();
    assert!(!first.is_empty());
    drop(response);
    scene.upstream.wait("a client that leaves ends the connection", |links| links[0].is_closed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_holds_the_upstream() {
    let chunk = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1_u64 << 40);
    let scene = Scene::new(move |_| {
        let mut bytes = chunk.clone().into_bytes();
        bytes.resize(1 << 16, b'x');
        Reply { bytes, then: Then::Repeat }
    })
    .await;
    let response = scene.get("/").await.unwrap();
    // All windows and buffers between, the kernel's included.
    let mut before = usize::MAX;
    let stands = async {
        loop {
            let now = scene.upstream.links()[0].written;
            if now == before && now > 0 {
                return now;
            }
            before = now;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let written = timeout(PATIENCE, stands).await.expect("the upstream is never held");
    assert!(written < 64 << 20, "{written} bytes for a client that reads nothing");
    drop(response);
    scene.upstream.wait("the connection ends", |links| links[0].is_closed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_does_not_read_holds_the_client() {
    let scene = Scene::with(When::Never, |_| {}, |_| Reply::keep("")).await;
    let (feed, unannounced) = Body::channel();
    let taken = AtomicUsize::new(0);
    let feeding = async {
        while feed.send(vec![7; 1 << 16]).await.is_ok() {
            taken.fetch_add(1 << 16, Ordering::Relaxed);
        }
    };
    let stands = async {
        let mut before = usize::MAX;
        while taken.load(Ordering::Relaxed) != before {
            before = taken.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        before
    };
    let asking = scene.client.send(scene.request(&Method::PUT, "/", unannounced));
    // All windows and buffers between, the kernel's included.
    tokio::select! {
        taken = stands => assert!(taken < 64 << 20, "{taken} bytes for an upstream that reads nothing"),
        () = feeding => panic!("the upload ends"),
        response = asking => panic!("{response:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_are_forwarded_as_they_come_and_end_with_their_client() {
    let scene = Scene::with(When::Head, |_| {}, |_| Reply::keep("")).await;
    let (feed, unannounced) = Body::channel();
    let asked = scene.request(&Method::PUT, "/", unannounced);
    let sending = tokio::spawn({
        let client = scene.client.clone();
        async move { client.send(asked).await.map(|_| ()) }
    });
    feed.send(vec![7; 100_000]).await.unwrap();
    let links = scene
        .upstream
        .wait("the bytes come before the end", |links| links.iter().any(|link| link.bytes.len() > 100_000))
        .await;
    assert!(links[0].messages().is_empty(), "the request is not whole");
    sending.abort();
    drop(feed);
    let links =
        scene.upstream.wait("an upload given up ends the connection", |links| links[0].is_closed).await;
    assert!(links[0].messages().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_gives_up_before_the_response_ends_the_connection() {
    let scene = Scene::new(|message| match message.target.as_str() {
        "/well" => Reply::ok(b""),
        _ => Reply::keep(""),
    })
    .await;
    let waiting = tokio::spawn({
        let (client, asked) = (scene.client.clone(), scene.request(&Method::GET, "/", Body::empty()));
        async move { client.send(asked).await.map(|_| ()) }
    });
    scene
        .upstream
        .wait("the request comes", |links| links.iter().any(|link| link.messages().len() == 1))
        .await;
    waiting.abort();
    scene.upstream.wait("the connection ends", |links| links[0].is_closed).await;
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_without_content_have_none() {
    let scene = Scene::new(|message| {
        Reply::keep(match message.target.as_str() {
            "/204" => "HTTP/1.1 204 No Content\r\n\r\n",
            "/304" => "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
            "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
            _ => "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        })
    })
    .await;
    for (method, path, status) in
        [("GET", "/204", 204), ("GET", "/304", 304), ("HEAD", "/head", 200), ("GET", "/1xx", 200)]
    {
        let asked = scene.request(&method.parse().unwrap(), path, Body::empty());
        let response = scene.send(asked).await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        if path == "/head" {
            assert_eq!(response.headers()["content-length"], "1000");
        }
        assert!(body(response).await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_of_responses_pass_without_what_speaks_of_the_connection() {
    // spec: rfc9114 4.2 intermediary-removes
    let scene = Scene::new(|_| {
        Reply::keep(
            "HTTP/1.1 418 Odd\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
             Alt-Svc: h2=\":1\"\r\nDate: then\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nContent-Length: 2\r\n\r\nno",
        )
    })
    .await;
    let response = scene.get("/").await.unwrap();
    assert_eq!(response.status(), StatusCode::IM_A_TEAPOT);
    let mut names: Vec<_> = response.headers().iter().map(|(name, _)| name.as_str().to_owned()).collect();
    names.sort();
    // The server may speak for itself in `alt-svc`.
    names.retain(|name| name != "alt-svc");
    assert_eq!(names, ["content-length", "date", "set-cookie", "set-cookie"]);
    assert_eq!(response.headers()["date"], "then");
    let alternative = response.headers().get("alt-svc").map(|field| field.to_str().unwrap());
    assert!(alternative.is_none_or(|alternative| alternative.starts_with("h3=")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_refusal_passes_and_stops_the_upload() {
    let refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nlarge";
    let scene = Scene::with(When::Head, |_| {}, move |_| Reply::keep(refusal)).await;
    let (feed, unannounced) = Body::channel();
    let feeding = async {
        while feed.send(vec![0; 10_000]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let asking = async {
        let response = scene.send(scene.request(&Method::POST, "/", unannounced)).await.unwrap();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(body(response).await.unwrap(), b"large");
    };
    timeout(PATIENCE, async { tokio::join!(feeding, asking) }).await.expect("the upload goes on");
    scene.upstream.wait("the connection is not used again", |links| links[0].is_closed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_may_be_silent_and_other_bodies_may_not() {
    let configure = |options: &mut ProxyOptions| options.idle_timeout = Duration::from_millis(100);
    let scene = Scene::with(When::Whole, configure, |message| {
        let kind = message.target.trim_start_matches('/');
        Reply::keep(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/{kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
        ))
    })
    .await;
    let mut events = scene.get("/event-stream").await.unwrap();
    let plain = scene.get("/plain").await.unwrap();
    assert!(matches!(body(plain).await, Err(ClientError::Reset { .. })));
    let silent = timeout(Duration::from_millis(300), events.chunk()).await;
    assert!(silent.is_err(), "an event stream waits for its events");
}
