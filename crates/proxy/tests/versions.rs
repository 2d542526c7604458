//! The upstream gets the same bytes whichever version of HTTP a request came by (but for `Via`, which names the version).

use std::fmt::Write as _;

use crate::common::Server;
use crate::over_tcp::{self, frame};
use crate::raw::{self, Raw, data};
use crate::recorder::{Recorder, Reply, When};
use crate::scene::proxy;

/// One request: method, path, fields, body.
struct Case(&'static str, &'static str, &'static [(&'static str, &'static str)], Option<&'static str>);

/// What only HTTP/1.1 adds, which is not for the upstream.
const HOP: &str = "Connection: x-hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n";

const CASES: &[Case] = &[
    Case("GET", "/", &[], None),
    Case("GET", "//a/../b%2e%2e;c?d=e&f#", &[("accept", "*/*"), ("user-agent", "a b/1 (c)")], None),
    // Over HTTP/3 and 2 cookies are joined; over HTTP/3 behind the other fields.
    Case("HEAD", "/x", &[("x-a", "1"), ("x-a", "2"), ("cookie", "a=b; c=d")], None),
    Case("OPTIONS", "*", &[], None),
    Case("DELETE", "/x", &[("te", "trailers"), ("x-forwarded-for", "6.6.6.6"), ("x_real_ip", "6")], None),
    Case("POST", "/none", &[], None),
    Case("POST", "/length", &[("content-type", "text/plain"), ("content-length", "4")], Some("four")),
    Case("PUT", "/chunks", &[("expect", "100-continue"), ("proxy", "evil")], Some("four")),
    Case("PATCH", "/null", &[("content-length", "0")], None),
    Case("WHATEVER", "/?", &[("priority", "u=1"), ("early-datum", "1")], Some("")),
];

impl Case {
    fn http1(&self) -> Vec<u8> {
        let Self(method, path, fields, body) = self;
        // The client's own text: a fragment is not sent.
        let path = path.trim_end_matches('#');
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{HOP}");
        for (name, value) in *fields {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        let has_length = fields.iter().any(|field| field.0 == "content-length");
        match body {
            Some(body) if !has_length && !body.is_empty() => {
                let length = body.len();
                write!(text, "Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n").unwrap();
            }
            Some("") => text += "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            body => write!(text, "\r\n{}", body.unwrap_or_default()).unwrap(),
        }
        text.into_bytes()
    }

    /// The fields of HTTP/2 and 3, each cookie in its own.
    fn fields(&self) -> Vec<(&str, &str)> {
        let Self(method, path, fields, _) = self;
        let path = path.trim_end_matches('#');
        let mut all = vec![(":method", *method), (":scheme", "https"), (":authority", "localhost")];
        all.push((":path", path));
        for (name, value) in *fields {
            if *name == "cookie" {
                all.extend(value.split("; ").map(|cookie| ("cookie", cookie)));
            } else {
                all.push((name, value));
            }
        }
        all
    }

    fn http2(&self) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in self.fields() {
            // A literal without indexing (RFC 7541 section 6.2.2).
            block.extend([0, name.len() as u8]);
            block.extend(name.as_bytes());
            block.push(value.len() as u8);
            block.extend(value.as_bytes());
        }
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(4, 0, 0, &[]));
        bytes.extend(frame(1, if self.3.is_some() { 4 } else { 5 }, 1, &block));
        if let Some(body) = self.3 {
            bytes.extend(frame(0, 1, 1, body.as_bytes()));
        }
        bytes
    }

    fn http3(&self) -> Vec<u8> {
        let mut bytes = raw::headers(&self.fields());
        bytes.extend(self.3.filter(|body| !body.is_empty()).map(data).unwrap_or_default());
        bytes
    }
}

/// What the upstream has got, without the one field that differs.
async fn received(upstream: &Recorder, count: usize) -> String {
    let all = |links: &[crate::recorder::Link]| links.iter().map(|link| link.messages().len()).sum::<usize>();
    let links = upstream.wait("a request is missing", |links| all(links) >= count).await;
    let bytes: Vec<u8> = links.last().unwrap().bytes.clone();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("\r\nvia: "), "{text}");
    text.split("\r\n").filter(|line| !line.starts_with("via: ")).collect::<Vec<_>>().join("\n")
}

/// To a server of its own; waits for the recorder's answer.
async fn over_tcp(upstream: &Recorder, alpn: &str, bytes: &[u8]) {
    let service = proxy(&format!("http://{}", upstream.address), |_| {});
    let server = over_tcp::Server::start(service, |_| {}).await;
    let mut stream = server.connect(alpn, bytes).await;
    over_tcp::until(&mut stream, "answer").await;
}

#[tokio::test]
async fn the_upstream_gets_the_same_bytes_over_all_versions() {
    for case in CASES {
        let mut seen = Vec::new();
        for version in ["http/1.1", "h2", "h3"] {
            // A response to HEAD, too, is known by its end: a body that is dropped closes the connection.
            let upstream = Recorder::start(When::Whole, |message| {
                let body = if message.method == "HEAD" { "" } else { "answer" };
                Reply::keep(format!("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n{body}"))
            })
            .await;
            match version {
                "h3" => {
                    let service = proxy(&format!("http://{}", upstream.address), |_| {});
                    let server = Server::start(service, |_| {});
                    let raw = Raw::connect(&server).await;
                    assert_eq!(raw.ask(&case.http3()).await, raw::End::Status(200));
                    seen.push(received(&upstream, 1).await);
                }
                _ if case.0 == "HEAD" => {
                    let bytes = if version == "h2" { case.http2() } else { case.http1() };
                    let asked = over_tcp(&upstream, version, &bytes);
                    tokio::select! {
                        () = asked => panic!("HEAD has no body"),
                        text = received(&upstream, 1) => seen.push(text),
                    }
                }
                _ => {
                    let bytes = if version == "h2" { case.http2() } else { case.http1() };
                    over_tcp(&upstream, version, &bytes).await;
                    seen.push(received(&upstream, 1).await);
                }
            }
        }
        assert_eq!(seen[0], seen[2], "HTTP/1.1 and 3: {} {}", case.0, case.1);
        assert_eq!(seen[1], seen[2], "HTTP/2 and 3: {} {}", case.0, case.1);
    }
}
