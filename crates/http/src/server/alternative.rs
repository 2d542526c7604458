//! What a server says of itself in `Alt-Svc` (RFC 7838).

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Uri, header};
use posthaste_endpoint::Endpoint;

/// The port of an `https` URI that names none.
const HTTPS: u16 = 443;

/// That an origin's own port speaks HTTP/3.
pub(super) struct Alternative {
    port: u16,
    field: HeaderValue,
}

impl Alternative {
    /// For the port that `endpoint` is bound to, to be remembered for `max_age`.
    pub(super) fn new(endpoint: &Endpoint, max_age: Duration) -> Option<Self> {
        let port = endpoint.local_addr().ok()?.port();
        let field = format!("h3=\":{port}\"; ma={}", max_age.as_secs());
        Some(Self { port, field: HeaderValue::try_from(field).ok()? })
    }

    /// Adds the field to a response unless the service has said something else. An origin at another port is not told of: it
    /// may have sent its client here itself, or a translated address lies between, and the port seen here is not the one to
    /// come back to.
    pub(super) fn tell(&self, origin: &Uri, fields: &mut HeaderMap) {
        if origin.port_u16().unwrap_or(HTTPS) == self.port {
            fields.entry(header::ALT_SVC).or_insert_with(|| self.field.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(port: u16, origin: &str, mut fields: HeaderMap) -> HeaderMap {
        let field = HeaderValue::from_static("h3=\":4433\"; ma=60");
        Alternative { port, field }.tell(&origin.parse().unwrap(), &mut fields);
        fields
    }

    #[test]
    fn only_origins_at_the_same_port_are_told() {
        let is_told = |port, origin| told(port, origin, HeaderMap::new()).contains_key(header::ALT_SVC);
        assert!(is_told(4433, "https://a.test:4433/"));
        assert!(is_told(443, "https://a.test/x"));
        assert!(!is_told(4433, "https://a.test/"));
        assert!(!is_told(443, "https://[::1]:8443/"));
    }

    #[test]
    fn what_the_service_says_of_itself_stays() {
        let said: HeaderMap = [(header::ALT_SVC, HeaderValue::from_static("clear"))].into_iter().collect();
        assert_eq!(told(4433, "https://a.test:4433/", said)[header::ALT_SVC], "clear");
    }
}
