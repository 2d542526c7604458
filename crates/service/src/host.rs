//! The host that a request names.

use http::HeaderMap;
use http::header;
use http::uri::Authority;

/// True if an authority names a host, and no user: what HTTP permits in requests (RFC 9110 sections 4.2.4 and 7.2).
pub fn names_host(authority: &Authority) -> bool {
    !authority.host().is_empty() && !authority.as_str().contains('@')
}

/// The one host that the `Host` field names; `None` if there is no such field, more than one, or one that names no host.
pub fn host_field(fields: &HeaderMap) -> Option<Authority> {
    let mut hosts = fields.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return None };
    Authority::try_from(host.as_bytes()).ok().filter(names_host)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_host_is_one_and_has_no_user() {
        let named = |hosts: &[&'static str]| {
            let mut fields = HeaderMap::new();
            for host in hosts {
                fields.append(header::HOST, HeaderValue::from_static(host));
            }
            host_field(&fields).map(|host| host.to_string())
        };
        assert_eq!(named(&["a.test:1"]).unwrap(), "a.test:1");
        assert_eq!(named(&["[::1]"]).unwrap(), "[::1]");
        for hosts in [&[][..], &["a", "b"], &["u@a.test"], &[""], &[":443"], &["a.test/x"], &["a, b"]] {
            assert_eq!(named(hosts), None, "{hosts:?}");
        }
    }
}
