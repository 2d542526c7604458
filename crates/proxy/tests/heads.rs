//! Heads that are wrong: nothing of them reaches the upstream.

use crate::raw::{End, Raw, headers, request};
use crate::recorder::Reply;
use crate::scene::Scene;

const MESSAGE_ERROR: u64 = 0x10e;

/// Fields of which each makes a request malformed.
pub(super) const MALFORMED: [(&str, &str); 25] = [
    ("transfer-encoding", "chunked"),
    ("connection", "close"),
    ("upgrade", "websocket"),
    ("keep-alive", "timeout=5"),
    ("proxy-connection", "close"),
    ("te", "gzip"),
    ("x-cut", "a\r\nb: c"),
    ("x-line", "a\nb"),
    ("x-null", "a\0b"),
    ("x-blank", " a"),
    ("x-tab", "a\t"),
    ("x\r\ny", "a"),
    ("X-Upper", "a"),
    ("x y", "a"),
    ("x\"y", "a"),
    ("", "a"),
    (":path", "/again"),
    (":status", "200"),
    (":protocol", "websocket"),
    ("host", "other.test"),
    ("content-length", "+5"),
    ("content-length", "5,5"),
    ("content-length", ""),
    ("content-length", "0x5"),
    ("content-length", "18446744073709551616"),
];

/// The four fields that every request has, with some exchanged.
fn with(changes: &[(&'static str, &'static str)]) -> Vec<u8> {
    let usual = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/raw")];
    let fields: Vec<_> = usual
        .iter()
        .map(|field| *changes.iter().find(|change| change.0 == field.0).unwrap_or(field))
        .collect();
    headers(&fields)
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_heads_are_reset_and_nothing_is_sent() {
    // spec: rfc9114 4.1.2 malformed-not-forwarded, 4.1.2 malformed-is-stream-error
    let scene = Scene::new(|_| Reply::ok(b"")).await;
    let raw = Raw::connect(&scene.server).await;
    for (name, value) in MALFORMED {
        let end = raw.ask(&request("GET", &[(name, value)])).await;
        assert_eq!(end, End::Reset(MESSAGE_ERROR), "{name:?}: {value:?}");
    }
    let pseudo = [
        (":method", "GET /x"),
        (":method", "GET\r\n"),
        (":method", ""),
        (":path", ""),
        (":path", "raw"),
        (":path", "https://other.test/"),
        (":path", "/a b"),
        (":path", "/a\r\nb"),
        (":path", "/a\0"),
        (":path", "/a#b"),
        (":path", "*"),
        (":authority", ""),
        (":authority", "user@localhost"),
        (":authority", "local\r\nhost"),
        (":authority", "a b"),
        (":scheme", "1"),
    ];
    for change in pseudo {
        assert_eq!(raw.ask(&with(&[change])).await, End::Reset(MESSAGE_ERROR), "{change:?}");
    }
    let behind = headers(&[(":method", "GET"), ("x", "1"), (":scheme", "https"), (":path", "/")]);
    assert_eq!(raw.ask(&behind).await, End::Reset(MESSAGE_ERROR));
    let hosts = request("GET", &[("host", "localhost"), ("host", "localhost")]);
    assert_eq!(raw.ask(&hosts).await, End::Reset(MESSAGE_ERROR));
    assert!(scene.upstream.links().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_for_others_are_answered_here() {
    let scene = Scene::new(|_| Reply::ok(b"")).await;
    let raw = Raw::connect(&scene.server).await;
    for scheme in ["http", "ftp"] {
        assert_eq!(raw.ask(&with(&[(":scheme", scheme)])).await, End::Status(400), "{scheme}");
    }
    let connect = headers(&[(":method", "CONNECT"), (":authority", "other.test:443")]);
    assert_eq!(raw.ask(&connect).await, End::Status(501));
    assert_eq!(raw.ask(&request("GET", &[("via", "1.1 cdn, 3.0 Edge (here)")])).await, End::Status(508));
    let large = "x".repeat(40_000);
    assert_eq!(raw.ask(&request("GET", &[("x", &large)])).await, End::Status(431));
    let path = format!("/{}", "x".repeat(65_536));
    let long =
        headers(&[(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", &path)]);
    assert_eq!(raw.ask(&long).await, End::Status(431));
    assert!(scene.upstream.links().is_empty());
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_upstream_gets_one_host_and_the_target_as_it_is() {
    // spec: rfc9114 4.3.1 host-made-for-http1
    let scene = Scene::new(|_| Reply::ok(b"")).await;
    let raw = Raw::connect(&scene.server).await;
    for authority in ["localhost", "LOCALHOST:8443", "[::1]:443", "127.0.0.1"] {
        assert_eq!(raw.ask(&with(&[(":authority", authority)])).await, End::Status(200));
        assert_eq!(scene.upstream.messages().last().unwrap().all("host"), [authority]);
    }
    let by_host = headers(&[(":method", "GET"), (":scheme", "https"), (":path", "/"), ("host", "by-host")]);
    assert_eq!(raw.ask(&by_host).await, End::Status(200));
    assert_eq!(scene.upstream.messages().last().unwrap().all("host"), ["by-host"]);
    for path in ["/", "//", "/../a", "/%2e%2e/a?b=/../c", "/a//b?", "/?", "/\u{e4}"] {
        let change = with(&[(":path", Box::leak(path.to_owned().into_boxed_str()))]);
        let end = raw.ask(&change).await;
        if path.is_ascii() {
            assert_eq!(end, End::Status(200), "{path}");
            assert_eq!(scene.upstream.messages().last().unwrap().target, path);
        }
    }
    assert_eq!(raw.ask(&with(&[(":method", "OPTIONS"), (":path", "*")])).await, End::Status(200));
    let last = scene.upstream.messages().pop().unwrap();
    assert_eq!((last.method.as_str(), last.target.as_str()), ("OPTIONS", "*"));
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_are_set_here_are_nobody_elses() {
    let scene = Scene::new(|_| Reply::ok(b"")).await;
    let raw = Raw::connect(&scene.server).await;
    let imitations = [
        ("x-forwarded-for", "10.0.0.1"),
        ("x_forwarded_for", "10.0.0.1"),
        ("x-real-ip", "10.0.0.1"),
        ("forwarded", "for=10.0.0.1"),
        ("x-forwarded-host", "bank.test"),
        ("expect", "100-continue"),
        ("proxy-authorization", "Basic eA=="),
        ("proxy", "http://evil.test"),
        ("http2-settings", "x"),
        ("alt-svc", "clear"),
        ("te", "trailers"),
        ("cookie", "a=b"),
        ("cookie", "c=d"),
    ];
    assert_eq!(raw.ask(&request("GET", &imitations)).await, End::Status(200));
    let fields = scene.upstream.messages().pop().unwrap().fields;
    let lines: Vec<_> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(
        lines,
        [
            "host: localhost",
            "cookie: a=b; c=d",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-proto: https",
            "x-forwarded-host: localhost",
            "x-forwarded-port: 443",
            "via: 3.0 edge",
            "te: trailers",
            "connection: te",
        ]
    );
}
