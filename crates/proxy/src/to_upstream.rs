//! A request's head on its way to the upstream.

use std::net::IpAddr;

use http::header::{self, Entry, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{Method, StatusCode, Version};
use posthaste_service::{EARLY_DATA, Peer, host_field, list_members, names_host};

use crate::failure::Failure;
use crate::forwarded::{self, Introduction};
use crate::limits;

/// Fields that speak of one connection, or that are this proxy's to set: what came in them does not go on.
/// RFC 9110 section 7.6.1 has most of them; `proxy` is no field of HTTP, but programs take it for their environment's.
const DROPPED: [&str; 16] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "alt-svc",
    "proxy",
    "expect",
    "early-data",
    // Set by this proxy.
    "host",
    "via",
    "content-length",
];

/// A request's head as the upstream gets it, but for the length of its body.
#[derive(Debug)]
pub(crate) struct Outline {
    pub(crate) method: Method,
    /// The site that is asked for.
    pub(crate) authority: Authority,
    /// The target in origin form.
    pub(crate) path: PathAndQuery,
    pub(crate) fields: HeaderMap,
    /// Trailers that the client has announced.
    pub(crate) trailers: Vec<HeaderName>,
    /// The client says that the request was early data to somebody before.
    pub(crate) was_early: bool,
}

/// Makes the head for the upstream.
///
/// # Errors
/// The request cannot be forwarded.
pub(crate) fn outline(parts: &Parts, who: &Introduction) -> Result<Outline, Failure> {
    if parts.method == Method::CONNECT {
        return Err(refused(StatusCode::NOT_IMPLEMENTED, "CONNECT is not supported"));
    }
    if parts.version == Version::HTTP_3 && parts.uri.scheme_str() != Some("https") {
        return Err(bad("the scheme is not https"));
    }
    let authority = authority(parts)?;
    let path = path(parts)?;
    let came = &parts.headers;
    let mut fields = HeaderMap::with_capacity(came.len() + 6);
    // The first line of a head by custom.
    let host = HeaderValue::from_str(authority.as_str()).map_err(|_| bad("the authority is not valid"))?;
    // spec: rfc9114 4.3.1 host-made-for-http1
    fields.insert(header::HOST, host);
    let named = named_by_connection(came);
    for (name, value) in came {
        // HTTP/2's library lets both pass (RFC 9113 section 8.2.1).
        if value.as_bytes().trim_ascii().len() != value.len() {
            return Err(bad("a field's value begins or ends with a blank"));
        }
        if name.as_str().contains('"') {
            return Err(bad("a field's name is no token"));
        }
        if !is_dropped(name) && !named.contains(name) {
            fields.append(name, value.clone());
        }
    }
    let client: Option<IpAddr> = parts.extensions.get::<Peer>().map(|peer| peer.address.ip());
    who.introduce(&mut fields, came, client, &authority);
    who.sign(&mut fields, came, parts.version)?;
    let takes_trailers = list_members(came, &header::TE).any(|token| token.eq_ignore_ascii_case("trailers"));
    if takes_trailers {
        fields.insert(header::TE, HeaderValue::from_static("trailers"));
        // RFC 9110 section 10.1.4.
        fields.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
    Ok(Outline {
        method: parts.method.clone(),
        authority,
        path,
        fields,
        trailers: announced_trailers(came),
        was_early: came.contains_key(EARLY_DATA),
    })
}

pub(crate) fn refused(status: StatusCode, detail: &'static str) -> Failure {
    Failure::Refused(status, detail)
}

pub(crate) fn bad(detail: &'static str) -> Failure {
    refused(StatusCode::BAD_REQUEST, detail)
}

/// The site that is asked for.
fn authority(parts: &Parts) -> Result<Authority, Failure> {
    let authority = if let Some(authority) = parts.uri.authority() {
        authority.clone()
    } else {
        host_field(&parts.headers).ok_or_else(|| bad("the request does not name one host"))?
    };
    if names_host(&authority) { Ok(authority) } else { Err(bad("the host is not valid")) }
}

/// The target in origin form, or `*` of OPTIONS.
fn path(parts: &Parts) -> Result<PathAndQuery, Failure> {
    let path = parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let is_asterisk = parts.method == Method::OPTIONS && path == "*";
    if path.as_str().starts_with('/') || is_asterisk {
        return Ok(path);
    }
    // `https://a.test?x` has an empty path.
    let whole = format!("/{path}");
    whole.parse().map_err(|_| bad("the path is not valid"))
}

/// The names in the `Connection` fields: fields that speak of the connection that they came by.
pub(crate) fn named_by_connection(fields: &HeaderMap) -> Vec<HeaderName> {
    list_members(fields, &header::CONNECTION).filter_map(|name| name.parse().ok()).collect()
}

/// Whether a field is dropped. Underscores are hyphens to many programs: `X_Forwarded_For` would be read as the field that
/// is set here.
fn is_dropped(name: &HeaderName) -> bool {
    let is_ours =
        |name: &str| DROPPED.contains(&name) || forwarded::ALL.iter().any(|field| field.as_str() == name);
    let name = name.as_str();
    is_ours(name) || (name.contains('_') && is_ours(&name.replace('_', "-")))
}

/// Names of trailers that the client announces and that may be trailers.
fn announced_trailers(fields: &HeaderMap) -> Vec<HeaderName> {
    let names = list_members(fields, &header::TRAILER).filter_map(|name| name.parse::<HeaderName>().ok());
    names.filter(may_be_trailer).take(limits::TRAILER_NAMES).collect()
}

/// Whether a field may stand behind the content: not if it decides about framing, routing, or what came before it
/// (RFC 9110 section 6.5.1).
pub(crate) fn may_be_trailer(name: &HeaderName) -> bool {
    let is_early = [
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::CONTENT_ENCODING,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        header::COOKIE,
        header::MAX_FORWARDS,
        header::SET_COOKIE,
    ]
    .contains(name);
    !is_early && !is_dropped(name)
}

/// Announces trailers to the upstream, if there can be any.
pub(crate) fn announce_trailers(fields: &mut HeaderMap, names: &[HeaderName]) {
    for name in names {
        let value = HeaderValue::from_name(name.clone());
        match fields.entry(header::TRAILER) {
            Entry::Vacant(first) => {
                first.insert(value);
            }
            Entry::Occupied(mut others) => others.append(value),
        }
    }
}

#[cfg(test)]
mod tests;
