//! Port 80: everything is elsewhere.

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Response, StatusCode, Version};
use posthaste_service::host_field;
use tokio::net::TcpListener;

use crate::plain::plain;

/// The port of an `https` URI that names none.
const HTTPS: u16 = 443;

/// Answers each HTTP/1.1 request by [`redirection`]. One request per connection. Runs until it is dropped.
pub async fn redirect(listener: TcpListener, port: u16) {
    plain(listener, move |request| redirection(request, port)).await;
}

/// The response 308 (RFC 9110 section 15.4.9) with the request's URI, but `https` and this port; 400 if the request names no
/// place.
pub fn redirection(request: &http::Request<()>, port: u16) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = match location(request, port) {
        Some(location) => {
            response.headers_mut().insert(header::LOCATION, location);
            StatusCode::PERMANENT_REDIRECT
        }
        None => StatusCode::BAD_REQUEST,
    };
    response
}

/// The same place over TLS; `None` if the request names no place.
fn location(request: &http::Request<()>, port: u16) -> Option<HeaderValue> {
    if request.method() == Method::CONNECT || request.version() > Version::HTTP_11 {
        return None;
    }
    let authority = host_field(request.headers())?;
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
