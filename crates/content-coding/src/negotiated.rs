//! From a request's wishes to the response.

use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use posthaste_service::{Body, Coding, Request, Response, accepted_codings, list_members};
use tokio::sync::Semaphore;

use crate::body::CompressedBody;
use crate::encoder::Encoder;
use crate::suitable::is_suitable;

/// Responses that are compressed at once by what one [`Compression`] and its clones have begun. Clients that read slowly keep
/// their encoders, 1.6 MiB at most each; further responses go out as they are.
pub const ENCODERS: usize = 128;

/// Fields that are true of the content before it was compressed only.
const OF_THE_CONTENT: [HeaderName; 5] = [
    header::CONTENT_LENGTH,
    header::ACCEPT_RANGES,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// Codings that a server is willing to use. Clones share the bound on encoders.
#[derive(Debug, Clone)]
pub struct Compression {
    codings: Arc<[Coding]>,
    encoders: Arc<Semaphore>,
}

impl Compression {
    /// These codings, the best first, of which at most [`ENCODERS`] are at work at once.
    pub fn new(codings: &[Coding]) -> Self {
        Self { codings: codings.into(), encoders: Arc::new(Semaphore::new(ENCODERS)) }
    }

    /// Other codings within the same bound on encoders.
    #[must_use]
    pub fn with_codings(&self, codings: &[Coding]) -> Self {
        Self { codings: codings.into(), encoders: Arc::clone(&self.encoders) }
    }

    /// What a request wishes of its response.
    pub fn negotiate(&self, request: &Request) -> Negotiated {
        let fields = request.headers();
        Negotiated {
            coding: accepted_codings(fields, &self.codings).first().copied(),
            is_head: *request.method() == Method::HEAD,
            known_tags: fields.get_all(header::IF_NONE_MATCH).iter().cloned().collect(),
            encoders: Arc::clone(&self.encoders),
        }
    }
}

/// What was negotiated for one response.
#[derive(Debug)]
pub struct Negotiated {
    coding: Option<Coding>,
    is_head: bool,
    /// The values of `if-none-match`.
    known_tags: Vec<HeaderValue>,
    encoders: Arc<Semaphore>,
}

impl Negotiated {
    /// Compresses the response if the client accepts it and the response is suitable, and tells caches what it depends on.
    pub fn apply(self, response: &mut Response) {
        if response.status() == StatusCode::NOT_MODIFIED {
            return self.validate(response.headers_mut());
        }
        if !is_suitable(response) {
            return;
        }
        vary(response.headers_mut());
        let Some(coding) = self.coding else { return };
        if !self.is_head && !self.compress(coding, response.body_mut()) {
            return;
        }
        let fields = response.headers_mut();
        fields.insert(header::CONTENT_ENCODING, coding.field_value());
        for name in &OF_THE_CONTENT {
            fields.remove(name);
        }
        if let Some(weak) = weak_tag(fields) {
            fields.insert(header::ETAG, weak);
        }
    }

    /// False if it stays as it is.
    fn compress(&self, coding: Coding, body: &mut Body) -> bool {
        let Ok(permit) = Arc::clone(&self.encoders).try_acquire_owned() else { return false };
        let Ok(encoder) = Encoder::new(coding) else { return false };
        let source = std::mem::take(body);
        *body = Body::new(CompressedBody::new(source, encoder, permit));
        true
    }

    /// Who has a compressed response knows it by its weak tag, and is told that this one is still good: caches find what to
    /// keep by a tag that is the same (RFC 9111 section 4.3.4).
    fn validate(&self, fields: &mut HeaderMap) {
        let Some(weak) = weak_tag(fields) else { return };
        if self.known_tags.iter().any(|value| has_tag(value, &weak)) {
            fields.insert(header::ETAG, weak);
            vary(fields);
        }
    }
}

/// The weak form of a strong entity tag: the same content, other bytes (RFC 9110 section 8.8.1).
fn weak_tag(fields: &HeaderMap) -> Option<HeaderValue> {
    let strong = fields.get(header::ETAG).filter(|tag| tag.as_bytes().starts_with(b"\""))?;
    HeaderValue::from_bytes(&[b"W/", strong.as_bytes()].concat()).ok()
}

/// True if this tag is in a list of tags. One with a comma in it could be found within another: then the client is told of a
/// tag that it has not, and asks again.
fn has_tag(list: &HeaderValue, tag: &HeaderValue) -> bool {
    let (list, tag) = (list.as_bytes(), tag.as_bytes());
    list.windows(tag.len()).any(|part| part == tag)
}

/// What is sent depends on what the client accepts (RFC 9110 section 12.5.5).
fn vary(fields: &mut HeaderMap) {
    let is_told = |member: &str| member == "*" || member.eq_ignore_ascii_case("accept-encoding");
    if !list_members(fields, &header::VARY).any(is_told) {
        fields.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
}

#[cfg(test)]
mod tests;
