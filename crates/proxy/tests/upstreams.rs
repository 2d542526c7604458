//! Upstreams behind Unix sockets and over HTTP/2 without TLS.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use posthaste_http::Body;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::common::{PATIENCE, Server, body};
use crate::scene::proxy;
use crate::tunnels::{Front, Way};

async fn send(server: &Server, method: &Method, path: &str, content: Body) -> (u16, Vec<u8>) {
    let request = http::Request::builder().method(method).uri(server.uri(path)).header("te", "trailers");
    let request = request.body(content).unwrap();
    let exchange = async {
        let response = server.client().send(request).await.unwrap();
        (
            response.status().as_u16(),
            body(response).await.unwrap_or_else(|error| error.to_string().into_bytes()),
        )
    };
    timeout(PATIENCE, exchange).await.expect("no answer")
}

#[cfg(unix)]
#[tokio::test]
async fn an_upstream_behind_a_unix_socket() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.sock");
    let server = Server::start(proxy(&format!("unix:{}", path.display()), |_| {}), |_| {});
    assert_eq!(send(&server, &Method::GET, "/", Body::empty()).await.0, 502, "there is no socket yet");
    let listener = UnixListener::bind(&path).unwrap();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await.unwrap();
        String::from_utf8(head).unwrap()
    });
    assert_eq!(send(&server, &Method::GET, "/x?y", Body::empty()).await, (200, b"hi".to_vec()));
    let head = serving.await.unwrap();
    let port = server.address.port();
    assert!(head.starts_with(&format!("GET /x?y HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n")), "{head}");
}

/// Answers with what it has got.
async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (parts, mut incoming) = request.into_parts();
    let mut names: Vec<_> = parts.headers.keys().map(|name| name.as_str().to_owned()).collect();
    names.sort();
    let (sender, body) = Body::channel();
    tokio::spawn(async move {
        let head = format!("{} {} {}\n", parts.method, parts.uri, names.join(" "));
        sender.send(head).await?;
        loop {
            let frame =
                std::future::poll_fn(|cx| http_body::Body::poll_frame(std::pin::Pin::new(&mut incoming), cx));
            match frame.await.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => sender.send(data).await?,
                Some(Ok(Err(_))) => {}
                Some(Err(error)) => return sender.fail(error).await,
                None if parts.uri.path() == "/broken" => return sender.fail("broken").await,
                None => return sender.finish().await,
            }
        }
    });
    Ok(Response::new(body))
}

/// An upstream that speaks HTTP/2 without TLS.
async fn over_http2() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let builder = http2::Builder::new(TokioExecutor::new());
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    });
    address
}

#[tokio::test]
async fn an_upstream_over_http2() {
    let address = over_http2().await;
    let server = Server::start(proxy(&format!("h2c://{address}"), |_| {}), |_| {});
    let usual = "accept priority te user-agent via x-forwarded-for x-forwarded-host x-forwarded-port x-forwarded-proto";
    let site = format!("http://127.0.0.1:{}", server.address.port());
    let (status, text) = send(&server, &Method::GET, "/x?y", Body::empty()).await;
    assert_eq!((status, text), (200, format!("GET {site}/x?y {usual}\n").into_bytes()));
    let content = Bytes::from("0123456789".repeat(100_000));
    let (sender, body) = Body::channel();
    let feed = {
        let content = content.clone();
        tokio::spawn(async move {
            sender.send(content).await.unwrap();
            sender.finish().await.unwrap();
        })
    };
    let (status, echo) = send(&server, &Method::POST, "/", body).await;
    feed.await.unwrap();
    assert_eq!(status, 200);
    let head = format!("POST {site}/ {usual}\n");
    assert!(echo.starts_with(head.as_bytes()), "{}", String::from_utf8_lossy(&echo[..200]));
    assert!(echo[head.len()..] == content[..]);
    // A response that breaks off does not look whole.
    let (status, text) = send(&server, &Method::GET, "/broken", Body::empty()).await;
    assert!(status == 200 && !text.starts_with(b"GET"), "{}", String::from_utf8_lossy(&text));
}

#[tokio::test]
async fn websocket_is_not_forwarded_over_http2() {
    for way in [Way::Http1, Way::Http3] {
        let front = Front::of(way, proxy(&format!("h2c://{}", over_http2().await), |_| {}), true).await;
        assert_eq!(front.open().await.err(), Some(501), "{way:?}");
    }
}
