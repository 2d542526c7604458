//! Which responses are worth it, and may be changed.

use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, HeaderMap};
use http::{StatusCode, header};
use posthaste_service::{Response, list_members};

/// Shorter content would save no datagram.
const LEAST: u64 = 512;

/// Media types that are text, or compress like it, beside `text/*`, `*+json`, `*+xml` and `*+text`.
const LIKE_TEXT: [&str; 19] = [
    "application/dns-json",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/manifest+json",
    "application/rtf",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/xml",
    "application/yaml",
    "font/collection",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/svg+xml",
    "image/vnd.microsoft.icon",
    "image/x-icon",
];

/// Events go out one by one, and clients count on getting each at once.
const EVENTS: &str = "text/event-stream";

/// True if this response would be compressed for a client that accepts it: a whole one with content of a suitable type that
/// nobody has compressed or wants to have as it is.
pub(crate) fn is_suitable(response: &Response) -> bool {
    let fields = response.headers();
    let length = http_body::Body::size_hint(response.body()).exact().filter(|length| *length > 0);
    let length = length.or_else(|| fields.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok());
    has_content(response.status())
        && length.is_none_or(|length| length >= LEAST)
        && !fields.contains_key(CONTENT_ENCODING)
        && !fields.contains_key(CONTENT_RANGE)
        && is_like_text(fields)
        && !list_members(fields, &CACHE_CONTROL).any(|member| member.eq_ignore_ascii_case("no-transform"))
}

fn has_content(status: StatusCode) -> bool {
    let without = [StatusCode::NO_CONTENT, StatusCode::PARTIAL_CONTENT, StatusCode::NOT_MODIFIED];
    !status.is_informational() && !without.contains(&status)
}

fn is_like_text(fields: &HeaderMap) -> bool {
    let Some(Ok(media_type)) = fields.get(CONTENT_TYPE).map(|value| value.to_str()) else { return false };
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case(EVENTS) {
        return false;
    }
    let begins =
        |prefix: &str| media_type.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    let ends = |suffix: &&str| {
        let end = media_type.len().checked_sub(suffix.len()).and_then(|begin| media_type.get(begin..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
    };
    begins("text/")
        || ["+json", "+xml", "+text"].iter().any(ends)
        || LIKE_TEXT.iter().any(|like| media_type.eq_ignore_ascii_case(like))
}

#[cfg(test)]
mod tests {
    use posthaste_service::Body;

    use super::*;

    fn response(fields: &[(&'static str, &'static str)]) -> Response {
        let mut builder = http::Response::builder();
        for (name, value) in fields {
            builder = builder.header(*name, *value);
        }
        builder.body(Body::from("x".repeat(LEAST as usize))).unwrap()
    }

    #[test]
    fn text_is_suitable_and_what_is_compressed_is_not() {
        for media_type in
            ["text/html; charset=utf-8", "TEXT/CSS", "application/problem+json", "image/svg+xml", "font/ttf"]
        {
            assert!(is_suitable(&response(&[("content-type", media_type)])), "{media_type}");
        }
        for media_type in ["image/png", "font/woff2", "video/mp4", "application/zip", "text/event-stream", ""]
        {
            assert!(!is_suitable(&response(&[("content-type", media_type)])), "{media_type}");
        }
        assert!(!is_suitable(&response(&[])));
    }

    #[test]
    fn parts_and_what_nobody_may_change_are_left_alone() {
        for (name, value) in [
            ("content-encoding", "gzip"),
            ("content-encoding", "identity"),
            ("content-range", "bytes 0-511/1000"),
            ("cache-control", "public, No-Transform"),
        ] {
            assert!(
                !is_suitable(&response(&[("content-type", "text/html"), (name, value)])),
                "{name}: {value}"
            );
        }
        let html = || response(&[("content-type", "text/html")]);
        for (status, suitable) in
            [(200, true), (404, true), (500, true), (101, false), (204, false), (206, false), (304, false)]
        {
            let mut response = html();
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            assert_eq!(is_suitable(&response), suitable, "{status}");
        }
        let mut short = html();
        *short.body_mut() = Body::from("x".repeat(LEAST as usize - 1));
        assert!(!is_suitable(&short));
        let mut head = html();
        *head.body_mut() = Body::empty();
        assert!(is_suitable(&head), "of unknown length");
        head.headers_mut().insert("content-length", 5.into());
        assert!(!is_suitable(&head));
    }
}
