//! Conversion of fields into message heads, and validation (RFC 9114 sections 4.1.2, 4.2 and 4.3).

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, COOKIE, HOST, TE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

use crate::qpack::Field;

/// Reason why a message is malformed.
pub(crate) type Malformed = &'static str;

/// Connection-specific fields, forbidden in HTTP/3 (RFC 9114 section 4.2).
pub(crate) fn is_connection_specific(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
    )
}

/// Name of the protocol that an extended CONNECT request asks for (`:protocol`, RFC 9220 section 3): an extension of the
/// request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectProtocol(String);

impl ConnectProtocol {
    /// The protocol of this name, such as `websocket`; `None` if the name is not a token (RFC 9110 section 5.6.2).
    pub fn new(name: &str) -> Option<Self> {
        // Methods are tokens, too.
        Method::from_bytes(name.as_bytes()).is_ok().then(|| Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request's head. `permits_protocol` says that this end has announced extended CONNECT.
pub(crate) fn request(fields: Vec<Field>, permits_protocol: bool) -> Result<http::Request<()>, Malformed> {
    let (mut pseudo, headers) = split(fields)?;
    if pseudo.status.is_some() {
        // spec: rfc9114 4.3 of-responses-not-in-requests
        return Err("a status in a request");
    }
    check_blanks(&headers)?;
    let method = pseudo.method.as_ref().ok_or("a request without a method")?;
    let method = Method::from_bytes(method).map_err(|_| "the method is no token")?;
    let protocol = match pseudo.protocol.take() {
        Some(protocol) if permits_protocol && method == Method::CONNECT => {
            let name = std::str::from_utf8(&protocol).ok().and_then(ConnectProtocol::new);
            Some(name.ok_or("the protocol is not a token")?)
        }
        Some(_) => return Err("a protocol where there can be none"),
        None => None,
    };
    // Extended CONNECT has the target of other requests (RFC 8441 section 4).
    let is_plain_connect = method == Method::CONNECT && protocol.is_none();
    let uri = if is_plain_connect { connect_uri(pseudo)? } else { uri(&method, pseudo, &headers)? };
    let mut request = http::Request::new(());
    if let Some(protocol) = protocol {
        request.extensions_mut().insert(protocol);
    }
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    *request.version_mut() = http::Version::HTTP_3;
    Ok(request)
}

/// A response's head, final or not.
pub(crate) fn response(fields: Vec<Field>) -> Result<http::Response<()>, Malformed> {
    let (pseudo, headers) = split(fields)?;
    if pseudo.method.is_some()
        || pseudo.scheme.is_some()
        || pseudo.authority.is_some()
        || pseudo.path.is_some()
        || pseudo.protocol.is_some()
    {
        // spec: rfc9114 4.3 of-requests-not-in-responses
        return Err("a request's pseudo-header field in a response");
    }
    // spec: rfc9114 4.3.2 status-required
    let status = pseudo.status.ok_or("a response without a status")?;
    let status = StatusCode::from_bytes(&status).map_err(|_| "the status is no number of three digits")?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err("a switch of protocols (RFC 9114 section 4.5)");
    }
    let mut response = http::Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    *response.version_mut() = http::Version::HTTP_3;
    Ok(response)
}

/// Trailers, which have no pseudo-header fields.
pub(crate) fn trailers(fields: Vec<Field>) -> Result<HeaderMap, Malformed> {
    if fields.iter().any(|field| field.name.starts_with(b":")) {
        // spec: rfc9114 4.3 none-in-trailers
        return Err("a pseudo-header field in trailers");
    }
    split(fields).map(|(_, headers)| headers)
}

/// Announced content length. Several equal fields count as one (RFC 9110 section 8.6).
pub(crate) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Malformed> {
    let mut announced = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let digits = value.to_str().unwrap_or_default();
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let length: u64 = digits.parse().ok().filter(|_| is_number).ok_or("content-length is no number")?;
        if announced.is_some_and(|other| other != length) {
            return Err("two different values of content-length");
        }
        announced = Some(length);
    }
    Ok(announced)
}

#[derive(Default)]
struct Pseudo {
    method: Option<Bytes>,
    scheme: Option<Bytes>,
    authority: Option<Bytes>,
    path: Option<Bytes>,
    protocol: Option<Bytes>,
    status: Option<Bytes>,
}

impl Pseudo {
    fn slot(&mut self, name: &[u8]) -> Result<&mut Option<Bytes>, Malformed> {
        Ok(match name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":authority" => &mut self.authority,
            b":path" => &mut self.path,
            b":protocol" => &mut self.protocol,
            b":status" => &mut self.status,
            // spec: rfc9114 4.3 undefined-malformed
            _ => return Err("an unknown pseudo-header field"),
        })
    }
}

/// Sorts the fields of a section (RFC 9114 section 4.3): pseudo-header fields first, each once.
fn split(fields: Vec<Field>) -> Result<(Pseudo, HeaderMap), Malformed> {
    let mut pseudo = Pseudo::default();
    let mut headers = HeaderMap::new();
    let mut has_regular = false;
    let mut cookie = BytesMut::new();
    for field in fields {
        if field.name.starts_with(b":") {
            if has_regular {
                // spec: rfc9114 4.3 late-malformed
                return Err("a pseudo-header field behind other fields");
            }
            if pseudo.slot(&field.name)?.replace(field.value).is_some() {
                // spec: rfc9114 4.3.1 each-exactly-once
                return Err("a pseudo-header field is there twice");
            }
            continue;
        }
        has_regular = true;
        // spec: rfc9114 4.2 uppercase-malformed, 10.3 invalid-names-malformed
        let name = HeaderName::from_lowercase(&field.name)
            .ok()
            // The crate `http` takes it for a token's (RFC 9110 section 5.6.2).
            .filter(|name| !name.as_str().bytes().any(|byte| byte == b'"'))
            .ok_or("a field's name is no token in lower case")?;
        let is_sensitive = field.is_sensitive;
        // spec: rfc9114 10.3 invalid-values-malformed
        let mut value = HeaderValue::from_maybe_shared(field.value)
            .map_err(|_| "a field's value has characters that it cannot have")?;
        value.set_sensitive(is_sensitive);
        if is_connection_specific(&name) {
            // spec: rfc9114 4.2 connection-fields-malformed
            return Err("a field that speaks of the connection");
        }
        if name == TE && !value.as_bytes().eq_ignore_ascii_case(b"trailers") {
            // spec: rfc9114 4.2 te-trailers-only
            return Err("`te` says more than `trailers`");
        }
        if name == COOKIE {
            // spec: rfc9114 4.2.1 cookies-joined
            // Cut into pieces for QPACK's sake, and one again for everyone else (RFC 9114 section 4.2.1).
            if !cookie.is_empty() {
                cookie.extend_from_slice(b"; ");
            }
            cookie.extend_from_slice(value.as_bytes());
            continue;
        }
        headers.try_append(name, value).map_err(|_| "too many fields")?;
    }
    if !cookie.is_empty() {
        let mut value =
            HeaderValue::from_maybe_shared(cookie.freeze()).map_err(|_| "a cookie that cannot be")?;
        value.set_sensitive(true);
        headers.try_append(COOKIE, value).map_err(|_| "too many fields")?;
    }
    Ok((pseudo, headers))
}

/// Values of a request have no blanks around them: behind an HTTP/1.1 hop they would be gone (RFC 9110 section 5.5; RFC 9113
/// section 8.2.1 says so of HTTP/2). Servers that send them are borne with.
pub(crate) fn check_blanks(fields: &HeaderMap) -> Result<(), Malformed> {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let has_blanks = |value: &[u8]| is_blank(value.first()) || is_blank(value.last());
    let any = fields.values().any(|value| has_blanks(value.as_bytes()));
    if any { Err("a field's value begins or ends with a blank") } else { Ok(()) }
}

/// Target of CONNECT: only an authority (RFC 9114 section 4.4).
fn connect_uri(pseudo: Pseudo) -> Result<Uri, Malformed> {
    if pseudo.scheme.is_some() || pseudo.path.is_some() {
        // spec: rfc9114 4.4 connect-form
        return Err("a scheme or a path in a CONNECT request");
    }
    let authority = parse_authority(pseudo.authority.ok_or("a CONNECT request without an authority")?)?;
    let mut parts = http::uri::Parts::default();
    parts.authority = Some(authority);
    Uri::from_parts(parts).map_err(|_| "the authority is none")
}

/// The target of any other request (RFC 9114 section 4.3.1).
fn uri(method: &Method, pseudo: Pseudo, headers: &HeaderMap) -> Result<Uri, Malformed> {
    let scheme = pseudo.scheme.ok_or("a request without a scheme")?;
    if !is_scheme(&scheme) {
        return Err("the scheme is none");
    }
    let scheme = Scheme::try_from(scheme.as_ref()).map_err(|_| "the scheme is none")?;
    let path = pseudo.path.ok_or("a request without a path")?;
    let is_asterisk = path.as_ref() == b"*" && method == Method::OPTIONS;
    if !path.starts_with(b"/") && !is_asterisk {
        // spec: rfc9114 4.3.1 path-not-empty, 4.3.1 options-asterisk
        return Err("the path does not begin with a slash");
    }
    if path.contains(&b'#') {
        return Err("a fragment in the path");
    }
    let path =
        PathAndQuery::from_maybe_shared(path).map_err(|_| "the path has characters that it cannot have")?;
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().map(|value| Bytes::copy_from_slice(value.as_bytes()));
    if hosts.next().is_some() {
        return Err("`host` is there twice");
    }
    let authority = match (pseudo.authority, host) {
        // spec: rfc9114 4.3.1 authority-is-host, 4.3.1 authority-or-host
        (Some(authority), Some(host)) if !authority.eq_ignore_ascii_case(&host) => {
            return Err("`host` differs from the authority");
        }
        (Some(authority), _) | (None, Some(authority)) => parse_authority(authority)?,
        (None, None) => return Err("a request without an authority"),
    };
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(scheme);
    parts.authority = Some(authority);
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).map_err(|_| "the target is no URI")
}

fn parse_authority(authority: Bytes) -> Result<Authority, Malformed> {
    if authority.contains(&b'@') {
        // spec: rfc9114 4.3.1 no-userinfo
        return Err("a user in the authority");
    }
    if authority.is_empty() || authority.starts_with(b":") {
        // spec: rfc9114 4.3.1 authority-not-empty
        return Err("the authority names no host");
    }
    Authority::from_maybe_shared(authority).map_err(|_| "the authority is none")
}

/// RFC 3986 section 3.1.
fn is_scheme(scheme: &[u8]) -> bool {
    scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
