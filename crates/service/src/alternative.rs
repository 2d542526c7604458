//! What a server says of itself in `Alt-Svc` (RFC 7838).

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Uri, header};

/// The port of an `https` URI that names none.
const HTTPS: u16 = 443;

/// That an origin's own port speaks HTTP/3.
#[derive(Debug, Clone)]
pub struct Alternative {
    port: u16,
    field: HeaderValue,
}

impl Alternative {
    /// For the UDP port that a server is bound to, to be remembered for `max_age`, in whole seconds.
    pub fn new(port: u16, max_age: Duration) -> Self {
        let field = format!("h3=\":{port}\"; ma={}", max_age.as_secs());
        // Digits and ASCII punctuation are always a field's value.
        Self { port, field: HeaderValue::try_from(field).unwrap_or(HeaderValue::from_static("clear")) }
    }

    /// True if this is the alternative of the origin of `target`. An origin at another port is not told of it: it may have
    /// sent its client here itself, or a translated address lies between, and the port seen here is not the one to come back
    /// to.
    pub fn is_of(&self, target: &Uri) -> bool {
        target.port_u16().unwrap_or(HTTPS) == self.port
    }

    /// Adds the field to a response unless the service has said something else. True if the response has this field now.
    pub fn tell(&self, fields: &mut HeaderMap) -> bool {
        *fields.entry(header::ALT_SVC).or_insert_with(|| self.field.clone()) == self.field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Alternative {
        Alternative { port, field: HeaderValue::from_static("h3=\":4433\"; ma=60") }
    }

    #[test]
    fn only_origins_at_the_same_port_are_told() {
        let is_of = |port, target: &str| at(port).is_of(&target.parse().unwrap());
        assert!(is_of(4433, "https://a.test:4433/"));
        assert!(is_of(443, "https://a.test/x"));
        assert!(!is_of(4433, "https://a.test/"));
        assert!(!is_of(443, "https://[::1]:8443/"));
    }

    #[test]
    fn what_the_service_says_of_itself_stays() {
        let mut fields: HeaderMap =
            [(header::ALT_SVC, HeaderValue::from_static("clear"))].into_iter().collect();
        assert!(!at(4433).tell(&mut fields));
        assert_eq!(fields[header::ALT_SVC], "clear");
        fields.clear();
        assert!(at(4433).tell(&mut fields));
        assert_eq!(fields[header::ALT_SVC], "h3=\":4433\"; ma=60");
    }
}
