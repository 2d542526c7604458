//! Port 80: everything is elsewhere.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::uri::{Authority, PathAndQuery};
use http::{Method, Response, StatusCode, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::accept::accept;

/// Connections at once.
const MAX_CONNECTIONS: usize = 1024;

/// Time for a connection's one request and its answer.
const LIFETIME: Duration = Duration::from_secs(10);

/// Bytes of a head.
const MAX_HEAD: usize = 16 * 1024;

/// The port of an `https` URI that names none.
const HTTPS: u16 = 443;

/// Answers each HTTP/1.1 request with 308 (RFC 9110 section 15.4.9) and the same URI with `https` and this port. One request
/// per connection. Runs until it is dropped.
pub async fn redirect(listener: TcpListener, port: u16) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            (stream, _) = accept(&listener) => {
                if connections.len() >= MAX_CONNECTIONS {
                    continue;
                }
                connections.spawn(timeout(LIFETIME, async move {
                    let service = service_fn(move |request| std::future::ready(Ok::<_, Infallible>(answer(&request, port))));
                    let mut builder = http1::Builder::new();
                    builder.timer(TokioTimer::new()).keep_alive(false).max_buf_size(MAX_HEAD);
                    // Whatever ends it, it is over.
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                }));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

fn answer(request: &http::Request<Incoming>, port: u16) -> Response<Full<Bytes>> {
    let location = location(request, port);
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    if let Some(location) = location {
        *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// The same place over TLS; `None` if the request names no place.
fn location<B>(request: &http::Request<B>, port: u16) -> Option<HeaderValue> {
    if request.method() == Method::CONNECT || request.version() > Version::HTTP_11 {
        return None;
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return None };
    let authority = Authority::try_from(host.as_bytes()).ok()?;
    if authority.host().is_empty() || authority.as_str().contains('@') {
        return None;
    }
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let path = if path.starts_with('/') { path } else { "/" };
    let host = authority.host();
    let location =
        if port == HTTPS { format!("https://{host}{path}") } else { format!("https://{host}:{port}{path}") };
    HeaderValue::try_from(location).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(target: &str, hosts: &[&str], port: u16) -> Option<String> {
        let mut request = http::Request::builder().uri(target);
        for host in hosts {
            request = request.header("host", *host);
        }
        let location = location(&request.body(()).unwrap(), port)?;
        Some(location.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_request_is_sent_to_the_same_place_over_tls() {
        assert_eq!(of("/x?y", &["a.test:80"], 443).unwrap(), "https://a.test/x?y");
        assert_eq!(of("/x", &["[::1]"], 8443).unwrap(), "https://[::1]:8443/x");
        assert_eq!(of("http://a.test/x", &["a.test"], 443).unwrap(), "https://a.test/x");
        // `//` is a path here, and no host.
        assert_eq!(of("//b.test", &["a.test"], 443).unwrap(), "https://a.test//b.test");
        for hosts in [&[][..], &["a.test", "b.test"], &["u@a.test"], &[""], &["a.test/x"]] {
            assert_eq!(of("/", hosts, 443), None, "{hosts:?}");
        }
    }
}
