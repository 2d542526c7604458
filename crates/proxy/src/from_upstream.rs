//! A response's head and trailers on their way from the upstream.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::response::Parts;
use http::{StatusCode, Version};
use posthaste_service::EarlyHints;

use crate::failure::Failure;
use crate::limits;
use crate::to_upstream::{may_be_trailer, named_by_connection};

/// Fields that speak of the connection to the upstream, or of its other addresses, which do not concern the client.
const DROPPED: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::UPGRADE,
    header::ALT_SVC,
];

/// Makes an upstream's head one for the client.
///
/// # Errors
/// It changes the protocol, or is too large.
pub(crate) fn head(parts: Parts) -> Result<Parts, Failure> {
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Failure::Switched);
    }
    any_head(parts)
}

/// The same for one that may change the protocol.
///
/// # Errors
/// It is too large.
pub(crate) fn any_head(mut parts: Parts) -> Result<Parts, Failure> {
    let fields = &mut parts.headers;
    // A head that arrives at once may exceed what its reader would wait for.
    let size: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if size > limits::RESPONSE_HEAD {
        return Err(Failure::NoResponse(format!("its head has {size} bytes").into()));
    }
    // spec: rfc9114 4.2 intermediary-removes
    let dropped = named_by_connection(fields);
    for name in dropped.iter().chain(&DROPPED) {
        fields.remove(name);
    }
    // Where both were there, the length was not the content's (RFC 9112 section 6.3).
    if fields.remove(header::TRANSFER_ENCODING).is_some() {
        fields.remove(header::CONTENT_LENGTH);
    }
    // Twice the same length is one length; others have not come this far.
    let length = fields.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.split(',').next()?.trim().parse::<u64>().ok());
    if let Some(length) = length {
        fields.insert(header::CONTENT_LENGTH, length.into());
    }
    parts.extensions.clear();
    // RFC 9110 section 6.2: what is sent on has the version of who sends it. As HTTP/1.0 it would end the client's connection,
    // and one that breaks off would look whole.
    parts.version = Version::HTTP_11;
    Ok(parts)
}

/// Passes the links of a 103 on (RFC 8297); other informational responses end here.
pub(crate) fn hint(status: StatusCode, fields: &HeaderMap, hints: &EarlyHints) {
    if status != StatusCode::EARLY_HINTS {
        return;
    }
    let links = fields.get_all(header::LINK);
    let size: usize = links.iter().map(HeaderValue::len).sum();
    if (1..=limits::HINT).contains(&size) {
        hints.send(links.iter().map(|link| (header::LINK, link.clone())).collect());
    }
}

/// Takes out what cannot stand in trailers.
pub(crate) fn trailers(fields: HeaderMap) -> HeaderMap {
    let mut last = None;
    let mut kept = HeaderMap::new();
    for (name, value) in fields {
        // A further value of the same field comes without its name.
        last = name.or(last);
        if let Some(name) = last.as_ref().filter(|name| may_be_trailer(name)) {
            kept.append(name, value);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn passed(status: u16, pairs: &[(&'static str, &'static str)]) -> Result<HeaderMap, Failure> {
        let mut response = http::Response::builder().status(status).body(()).unwrap();
        *response.headers_mut() = of(pairs);
        head(response.into_parts().0).map(|parts| parts.headers)
    }

    #[test]
    fn what_speaks_of_the_connection_stays_behind() {
        let came = [
            ("connection", "close, X-Hop"),
            ("keep-alive", "timeout=5"),
            ("x-hop", "1"),
            ("upgrade", "h2c"),
            ("alt-svc", "h2=\":8443\""),
            ("server", "it"),
        ];
        assert_eq!(passed(200, &came).unwrap(), of(&[("server", "it")]));
        let both = [("transfer-encoding", "chunked"), ("content-length", "5")];
        assert_eq!(passed(200, &both).unwrap(), HeaderMap::new());
        for twice in [&[("content-length", "5"), ("content-length", "5")][..], &[("content-length", "5, 5")]]
        {
            assert_eq!(passed(200, twice).unwrap(), of(&[("content-length", "5")]));
        }
        assert!(matches!(passed(101, &[]), Err(Failure::Switched)));
    }

    #[test]
    fn trailers_do_not_change_what_came_before_them() {
        let came =
            of(&[("checksum", "1"), ("checksum", "2"), ("content-length", "5"), ("set-cookie", "a=b")]);
        assert_eq!(trailers(came), of(&[("checksum", "1"), ("checksum", "2")]));
    }
}
