//! Requests from what Python gives.

use posthaste_http::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use posthaste_http::parse_url;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::fault::Fault;

/// Fields that belong to the connection in HTTP/1.1 and must not be in HTTP/3 (RFC 9114 section 4.2).
const OF_THE_CONNECTION: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// A header field of a message, for Python: its name and its value.
pub(crate) type Field<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// The head of a request.
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) fields: HeaderMap,
}

impl Head {
    pub(crate) fn new(
        method: &str,
        url: &str,
        headers: &[(PyBackedBytes, PyBackedBytes)],
    ) -> Result<Self, Fault> {
        let uri = parse_url(url).map_err(Fault::request)?;
        let parsed = Method::from_bytes(method.as_bytes());
        let method = parsed.ok().filter(|method| *method != Method::CONNECT).ok_or_else(|| {
            Fault::request(format!("`{method}` is not a method of requests, such as GET or POST"))
        })?;
        let mut fields = HeaderMap::new();
        for (name, value) in headers {
            let (name, value) = field(name, value)?;
            fields
                .try_append(name, value)
                .map_err(|_| Fault::request("too many header fields; there may be 24,576 of them"))?;
        }
        Ok(Self { method, uri, fields })
    }
}

fn field(name: &[u8], value: &[u8]) -> Result<(HeaderName, HeaderValue), Fault> {
    let shown = String::from_utf8_lossy(name);
    let parsed = HeaderName::from_bytes(name).map_err(|_| {
        Fault::request(format!("`{shown}` is not a name of a header field (letters, digits and hyphens)"))
    })?;
    if OF_THE_CONNECTION.contains(&parsed.as_str()) {
        return Err(Fault::request(format!(
            "the header field `{shown}` does not exist in HTTP/3 (RFC 9114 section 4.2); leave it out"
        )));
    }
    let value = HeaderValue::from_bytes(value).map_err(|_| {
        Fault::request(format!(
            "the value of the header field `{shown}` has a character that is not permitted, such as a line end"
        ))
    })?;
    Ok((parsed, value))
}

/// Header fields for Python: names and values, in the order in which the map gives them.
pub(crate) fn fields<'py>(py: Python<'py>, map: &HeaderMap) -> Vec<Field<'py>> {
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
    map.iter().map(|(name, value)| (bytes(name.as_str().as_bytes()), bytes(value.as_bytes()))).collect()
}
