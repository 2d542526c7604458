//! Names of hosts: of sites, of certificates, of requests.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

/// A value for each of some names, some of which stand for many.
#[derive(Debug, Clone)]
pub(crate) struct Hosts<T> {
    exact: HashMap<String, T>,
    /// By what follows the first label.
    wildcard: HashMap<String, T>,
}

impl<T> Default for Hosts<T> {
    fn default() -> Self {
        Self { exact: HashMap::new(), wildcard: HashMap::new() }
    }
}

impl<T> Hosts<T> {
    /// Adds a name in its [normal form](normal); `*.a.test` is every name with one label before `.a.test`. False if it
    /// is there already.
    pub(crate) fn add(&mut self, name: &str, value: T) -> bool {
        let (names, name) = match name.strip_prefix("*.") {
            Some(parent) => (&mut self.wildcard, parent),
            None => (&mut self.exact, name),
        };
        names.insert(name.to_owned(), value).is_none()
    }

    /// All values; one with several names comes as often.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.exact.values().chain(self.wildcard.values())
    }

    /// The value of a name in its [normal form](normal).
    pub(crate) fn get(&self, host: &str) -> Option<&T> {
        self.exact.get(host).or_else(|| {
            let (_, parent) = host.split_once('.').filter(|(label, _)| !label.is_empty())?;
            // An address has no parent.
            host.parse::<IpAddr>().is_err().then(|| self.wildcard.get(parent))?
        })
    }
}

/// Lower case, without the root's dot and without the brackets of IPv6 addresses, those in their shortest form.
pub(crate) fn normal(host: &str) -> Cow<'_, str> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    // An address has colons, or is one of IPv4, of which only one form is parsed: names need not be tried.
    let is_numeric = bare.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if bare.contains(':')
        && let Ok(address) = bare.parse::<IpAddr>()
    {
        return address.to_string().into();
    }
    if is_numeric && bare.parse::<Ipv4Addr>().is_ok() {
        return bare.into();
    }
    let name = bare.strip_suffix('.').unwrap_or(bare);
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return name.to_ascii_lowercase().into();
    }
    name.into()
}

/// True if a name can be one of a site: labels of letters, digits, hyphens and underscores, or an address.
pub(crate) fn is_valid(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_character = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=63).contains(&label.len()) && label.bytes().all(is_character)
    };
    let labels = name.strip_prefix("*.").unwrap_or(name);
    name.parse::<IpAddr>().is_ok() || (labels.len() <= 253 && labels.split('.').all(is_label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_one_label() {
        let mut hosts = Hosts::default();
        assert!(hosts.add("a.test", 1) && hosts.add("*.a.test", 2) && hosts.add("x.a.test", 3));
        assert!(!hosts.add("a.test", 4));
        for (host, found) in [
            ("x.a.test", Some(3)),
            ("y.a.test", Some(2)),
            ("y.y.a.test", None),
            (".a.test", None),
            ("b.test", None),
            ("test", None),
        ] {
            assert_eq!(hosts.get(host).copied(), found, "{host}");
        }
    }

    #[test]
    fn names_have_one_form() {
        for (host, form) in [
            ("A.Test.", "a.test"),
            ("[::0:1]", "::1"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("[::FFFF:1.2.3.4]", "::ffff:1.2.3.4"),
        ] {
            assert_eq!(normal(host), form);
        }
        for name in ["a", "*.a.test", "::1", "1.2.3.4", "a_b.test"] {
            assert!(is_valid(name), "{name}");
        }
        for name in ["", "*", "a..b", "a.*.b", "a b", "https://a", "a:1", "a/"] {
            assert!(!is_valid(name), "{name}");
        }
    }
}
