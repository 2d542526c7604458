//! How long a request's body is, which is decided before anything goes to the upstream: a request has one length or
//! chunks, never both, and no request has a length without an end.

use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{HeaderName, Method};
use http_body::Frame;
use posthaste_service::{Body, BodyError};
use tokio::time::timeout;

use crate::failure::Failure;
use crate::to_upstream::{announce_trailers, bad};

/// The length of a request's body on its way to the upstream (RFC 9112 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No body, and no word of one.
    None,
    /// As announced; 0 for no body where the method makes one usual.
    Length(u64),
    /// Nobody knows yet.
    Chunked,
}

/// A body, of which the first frame may have been read.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) first: Option<Frame<Bytes>>,
    pub(crate) rest: Body,
}

/// Waits up to `patience` for the body's first frame or its end, and decides.
///
/// # Errors
/// What is announced is no length, or the body is not whole.
pub(crate) async fn decide(
    method: &Method,
    fields: &HeaderMap,
    trailers: &[HeaderName],
    mut body: Body,
    patience: Duration,
) -> Result<(Framing, Begun), Failure> {
    let announced = announced(fields)?;
    // A body that takes its time is forwarded as it comes.
    let first = match timeout(patience, body.frame()).await {
        Ok(Some(first)) => Some(Some(first.map_err(Failure::Body)?)),
        Ok(None) => Some(None),
        Err(_) => None,
    };
    // Trailers alone are no body, but have an end, too.
    let has_only_trailers = matches!(&first, Some(Some(frame)) if frame.is_trailers() && trailers.is_empty());
    if has_only_trailers {
        let end = timeout(patience, body.frame()).await;
        end.map_err(|_| Failure::Body(BodyError::Stalled(patience)))?.transpose().map_err(Failure::Body)?;
    }
    let is_empty = has_only_trailers || matches!(first, Some(None));
    let framing = match announced {
        Some(length) if is_empty && length > 0 => {
            return Err(Failure::Body(BodyError::Length { announced: length, received: 0 }));
        }
        Some(length) => Framing::Length(length),
        None if !is_empty => Framing::Chunked,
        None if matches!(*method, Method::POST | Method::PUT | Method::PATCH) => Framing::Length(0),
        None => Framing::None,
    };
    let rest = if is_empty { Body::empty() } else { body };
    Ok((framing, Begun { first: first.flatten().filter(|_| !is_empty), rest }))
}

/// The announced length; equal ones count once (RFC 9110 section 8.6).
fn announced(fields: &HeaderMap) -> Result<Option<u64>, Failure> {
    let mut announced = None;
    for value in fields.get_all(header::CONTENT_LENGTH) {
        let digits = value.as_bytes();
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let length = value.to_str().ok().filter(|_| is_number).and_then(|digits| digits.parse::<u64>().ok());
        let length = length.ok_or_else(|| bad("content-length is not a length"))?;
        if announced.replace(length).is_some_and(|other| other != length) {
            return Err(bad("two different values of content-length"));
        }
    }
    Ok(announced)
}

impl Framing {
    /// Writes it into a head.
    pub(crate) fn write(self, fields: &mut HeaderMap, trailers: &[HeaderName]) {
        match self {
            Self::None => {}
            Self::Length(length) => {
                fields.insert(header::CONTENT_LENGTH, length.into());
            }
            Self::Chunked => {
                fields.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
                announce_trailers(fields, trailers);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn framing(method: Method, lengths: &[&'static str], body: Body) -> Result<Framing, Failure> {
        let lengths = lengths.iter().map(|length| (header::CONTENT_LENGTH, HeaderValue::from_static(length)));
        let mut fields = HeaderMap::new();
        for (name, value) in lengths {
            fields.append(name, value);
        }
        decide(&method, &fields, &[], body, Duration::from_millis(20)).await.map(|decided| decided.0)
    }

    #[tokio::test]
    async fn what_has_no_body_says_so_where_one_is_usual() {
        for method in [Method::GET, Method::HEAD, Method::DELETE, Method::OPTIONS] {
            assert_eq!(framing(method, &[], Body::empty()).await.unwrap(), Framing::None);
        }
        for method in [Method::POST, Method::PUT, Method::PATCH] {
            assert_eq!(framing(method, &[], Body::empty()).await.unwrap(), Framing::Length(0));
        }
        assert_eq!(framing(Method::GET, &["0"], Body::empty()).await.unwrap(), Framing::Length(0));
    }

    #[tokio::test]
    async fn an_end_that_comes_late_is_waited_for() {
        let (sender, body) = Body::channel();
        let (decided, ended) = tokio::join!(framing(Method::POST, &[], body), sender.finish());
        ended.unwrap();
        assert_eq!(decided.unwrap(), Framing::Length(0));
        let (sender, body) = Body::channel();
        assert_eq!(framing(Method::POST, &[], body).await.unwrap(), Framing::Chunked);
        drop(sender);
    }

    #[tokio::test]
    async fn lengths_are_numbers_and_one() {
        assert_eq!(framing(Method::PUT, &["4", "4"], "four".into()).await.unwrap(), Framing::Length(4));
        for wrong in [&["4", "5"][..], &["+4"], &["4,4"], &[""], &["0x4"], &["18446744073709551616"], &["4 "]]
        {
            assert!(framing(Method::PUT, wrong, "four".into()).await.is_err(), "{wrong:?}");
        }
        assert!(framing(Method::PUT, &["4"], Body::empty()).await.is_err(), "a body that never came");
    }
}
