//! What servers add to responses, and take out of them.

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};

use crate::{Body, Response};

/// Fields of a response that speak of the connection, which is not the service's matter (RFC 9110 section 7.6.1).
const OF_CONNECTION: [HeaderName; 5] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Makes the response to a request with this method what HTTP wants of it: no fields of the connection, a length if that is
/// known, and no content where there can be none (RFC 9110 sections 6.4.1, 7.6.1 and 8.6).
pub fn complete(method: &Method, response: &mut Response) {
    let (status, body) = (response.status(), response.body());
    let has_content = !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = http_body::Body::size_hint(body).exact();
    strip(response.headers_mut());
    if let (true, true, Some(length)) = (has_content, *method != Method::HEAD, length) {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    if *method == Method::HEAD || !has_content {
        *response.body_mut() = Body::empty();
    }
}

/// Takes out the fields of the connection.
pub(crate) fn strip(fields: &mut HeaderMap) {
    // To compare the few names that are there takes less than to look for each of these.
    if fields.keys().any(|name| OF_CONNECTION.contains(name)) {
        for name in &OF_CONNECTION {
            fields.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_says_what_it_has() {
        for (method, status, length, content) in [
            (Method::GET, 200, Some("4"), 4),
            (Method::HEAD, 200, None, 0),
            (Method::GET, 204, None, 0),
            (Method::GET, 304, None, 0),
            (Method::POST, 500, Some("4"), 4),
        ] {
            let response = http::Response::builder().status(status).header("keep-alive", "timeout=5");
            let mut response = response.body(Body::from("four")).unwrap();
            complete(&method, &mut response);
            let told = response.headers().get("content-length").map(|length| length.to_str().unwrap());
            assert_eq!(told, length, "{method} {status}");
            assert_eq!(http_body::Body::size_hint(response.body()).exact(), Some(content));
            assert!(!response.headers().contains_key("keep-alive"));
        }
    }
}
