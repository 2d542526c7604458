//! The target of a request, in one form for all versions of HTTP.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, StatusCode, Uri, Version};
use posthaste_service::{names_host, refuse_early};

/// Why a request is refused.
pub(crate) type Refusal = (StatusCode, &'static str);

/// Gives the request the form that it would have over HTTP/3: an absolute `https` URI, one field of cookies. `is_upgrade`
/// says that it asks for another protocol.
///
/// # Errors
/// It is not clear which site is asked for, or the request cannot be served.
pub(crate) fn unify(parts: &mut Parts, is_upgrade: bool) -> Result<(), Refusal> {
    if parts.method == Method::CONNECT && !is_upgrade {
        return Err((StatusCode::NOT_IMPLEMENTED, "CONNECT is not supported"));
    }
    if parts.uri.scheme().is_some_and(|scheme| *scheme != Scheme::HTTPS) {
        return Err(bad("the scheme is not https"));
    }
    let authority = authority(parts)?;
    if parts.version == Version::HTTP_2 {
        join_cookies(&mut parts.headers)?;
    } else {
        check_coding(&parts.headers)?;
    }
    refuse_early(false, &parts.method, &parts.headers)?;
    let path = parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let is_asterisk = parts.method == Method::OPTIONS && path == "*";
    if !path.as_str().starts_with('/') && !is_asterisk {
        return Err(bad("the target is not a path"));
    }
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(Scheme::HTTPS);
    uri.authority = Some(authority);
    uri.path_and_query = Some(path);
    parts.uri = Uri::from_parts(uri).map_err(|_| bad("the target is not valid"))?;
    Ok(())
}

fn bad(detail: &'static str) -> Refusal {
    (StatusCode::BAD_REQUEST, detail)
}

/// The site that is asked for: by the target, by `Host`, or by both if they agree. HTTP/1.1 requires `Host` in any case
/// (RFC 9112 section 3.2), HTTP/2 one of both (RFC 9113 section 8.3.1).
fn authority(parts: &Parts) -> Result<Authority, Refusal> {
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(bad("there are two Host fields"));
    }
    let authority = match (parts.uri.authority(), host) {
        (Some(target), Some(host)) if !target.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes()) => {
            return Err(bad("Host differs from the target's authority"));
        }
        (Some(_), None) if parts.version != Version::HTTP_2 => return Err(bad("there is no Host field")),
        (Some(target), _) => target.clone(),
        (None, Some(host)) => {
            Authority::try_from(host.as_bytes()).map_err(|_| bad("Host is not the name of a host"))?
        }
        (None, None) => return Err(bad("there is no Host field")),
    };
    if names_host(&authority) { Ok(authority) } else { Err(bad("Host is not the name of a host")) }
}

/// hyper takes the last coding for chunks and leaves others to the service, which does not know of them (RFC 9112 section
/// 6.1).
fn check_coding(fields: &HeaderMap) -> Result<(), Refusal> {
    let mut codings = fields.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err((StatusCode::NOT_IMPLEMENTED, "the only transfer coding here is chunked")),
    }
}

/// HTTP/2 clients may send each cookie in a field of its own; elsewhere there is one (RFC 9113 section 8.2.3).
fn join_cookies(fields: &mut HeaderMap) -> Result<(), Refusal> {
    let mut cookies = fields.get_all(header::COOKIE).iter();
    let (Some(first), Some(second)) = (cookies.next(), cookies.next()) else { return Ok(()) };
    let mut joined = first.as_bytes().to_vec();
    for cookie in std::iter::once(second).chain(cookies) {
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(cookie.as_bytes());
    }
    let joined =
        HeaderValue::from_maybe_shared(Bytes::from(joined)).map_err(|_| bad("cookies are not valid"))?;
    fields.insert(header::COOKIE, joined);
    Ok(())
}

#[cfg(test)]
mod tests;
