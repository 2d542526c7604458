//! What the upstream is told of the client: `X-Forwarded-*`, `Forwarded` (RFC 7239) and `Via` (RFC 9110 section 7.6.3).

use std::net::IpAddr;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::Authority;
use http::{StatusCode, Version};
use ipnet::IpNet;

use crate::failure::Failure;

pub(crate) const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(crate) const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub(crate) const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
pub(crate) const PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
/// Read by many applications, written by none of the standards: only a trusted client may send it.
pub(crate) const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Fields that say who a client is. What an untrusted client sends in them goes.
pub(crate) const ALL: [HeaderName; 6] = [FOR, PROTO, HOST, PORT, REAL_IP, header::FORWARDED];

/// The port of `https` URIs that name none.
const HTTPS: u16 = 443;

/// Versions of HTTP as `Via` has them.
const VERSIONS: [&str; 4] = ["1.0", "1.1", "2.0", "3.0"];

/// What a proxy says of itself and whom it believes.
#[derive(Debug, Clone)]
pub(crate) struct Introduction {
    /// Its name in `Via`.
    name: String,
    trusted: Vec<IpNet>,
    /// Also write `Forwarded`.
    forwarded: bool,
    /// `Via` of a request that has passed no other proxy, by its version.
    signatures: [Option<HeaderValue>; VERSIONS.len()],
}

impl Introduction {
    /// `name` is a token.
    pub(crate) fn new(name: String, trusted: Vec<IpNet>, forwarded: bool) -> Self {
        let signatures = VERSIONS.map(|version| HeaderValue::try_from(format!("{version} {name}")).ok());
        Self { name, trusted, forwarded, signatures }
    }

    /// Whether a client's word about clients counts.
    fn trusts(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        self.trusted.iter().any(|network| network.contains(&client))
    }

    /// Writes the fields of a request from `client` for `authority` into `fields`, which have the authority in `Host`;
    /// `came` has those that came with it.
    pub(crate) fn introduce(
        &self,
        fields: &mut HeaderMap,
        came: &HeaderMap,
        client: Option<IpAddr>,
        authority: &Authority,
    ) {
        let is_trusted = client.is_some_and(|client| self.trusts(client));
        let kept = |name: &HeaderName| if is_trusted { joined(came, name) } else { None };
        let client = client.map(|client| client.to_canonical());
        set(fields, FOR, append(kept(&FOR), client.map(|client| client.to_string())));
        match kept(&PROTO) {
            None => insert(fields, PROTO, Some(HeaderValue::from_static("https"))),
            kept => set(fields, PROTO, kept),
        }
        match kept(&HOST) {
            None => {
                let host = fields.get(header::HOST).cloned();
                insert(fields, HOST, host);
            }
            kept => set(fields, HOST, kept),
        }
        match (kept(&PORT), authority.port_u16()) {
            (None, None | Some(HTTPS)) => insert(fields, PORT, Some(HeaderValue::from_static("443"))),
            (None, Some(port)) => insert(fields, PORT, Some(port.into())),
            (kept, _) => set(fields, PORT, kept),
        }
        set(fields, REAL_IP, kept(&REAL_IP));
        let own = client.filter(|_| self.forwarded).map(|client| element(client, authority));
        set(fields, header::FORWARDED, append(kept(&header::FORWARDED), own));
    }

    /// Writes `Via`: what came, and this proxy.
    ///
    /// # Errors
    /// The request has been here.
    pub(crate) fn sign(
        &self,
        fields: &mut HeaderMap,
        came: &HeaderMap,
        version: Version,
    ) -> Result<(), Failure> {
        let path = joined(came, &header::VIA);
        let mut names = path.iter().flat_map(|path| path.split(',')).filter_map(received_by);
        if names.any(|name| name.eq_ignore_ascii_case(&self.name)) {
            let detail = "the request has passed this proxy before: its upstream leads back to it";
            return Err(Failure::Refused(StatusCode::LOOP_DETECTED, detail));
        }
        let at = match version {
            Version::HTTP_10 => 0,
            Version::HTTP_2 => 2,
            Version::HTTP_3 => 3,
            _ => 1,
        };
        match path {
            None => insert(fields, header::VIA, self.signatures[at].clone()),
            path => set(fields, header::VIA, append(path, Some(format!("{} {}", VERSIONS[at], self.name)))),
        }
        Ok(())
    }
}

/// The name in an element of `Via`, which stands behind the version.
fn received_by(element: &str) -> Option<&str> {
    element.split_ascii_whitespace().nth(1)
}

/// All values of a field as one, unless one of them is no text.
fn joined(fields: &HeaderMap, name: &HeaderName) -> Option<String> {
    if !fields.contains_key(name) {
        return None;
    }
    let values = fields.get_all(name).iter().map(HeaderValue::to_str).collect::<Result<Vec<_>, _>>().ok()?;
    (!values.is_empty()).then(|| values.join(", "))
}

fn append(list: Option<String>, element: Option<String>) -> Option<String> {
    match (list, element) {
        (Some(list), Some(element)) => Some(format!("{list}, {element}")),
        (list, element) => list.or(element),
    }
}

/// Values are made of those that came and of addresses: all of them can be sent.
fn set(fields: &mut HeaderMap, name: HeaderName, value: Option<String>) {
    insert(fields, name, value.and_then(|value| HeaderValue::try_from(value).ok()));
}

fn insert(fields: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        fields.insert(name, value);
    }
}

/// An element of `Forwarded`: whatever is no token is quoted (RFC 7239 section 4).
fn element(client: IpAddr, authority: &Authority) -> String {
    let client = match client {
        IpAddr::V4(_) => client.to_string(),
        IpAddr::V6(v6) => format!("\"[{v6}]\""),
    };
    format!("for={client};host=\"{authority}\";proto=https")
}

#[cfg(test)]
mod tests;
