//! What numbers of connections have brought, by server and network: a later download begins with what was worth it.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use http::Uri;
use posthaste_endpoint::source_towards;
use posthaste_units::client_network;

use super::super::lock;
use super::auto::Rates;
use crate::uri::Origin;

/// Servers and networks that are kept; the oldest go first.
const MAX_KNOWN: usize = 256;

/// Numbers of connections that are kept for each: 1, 2, 4 and 8, and a most in between.
const MAX_NUMBERS: usize = 8;

/// What is older says nothing, as with the histories of paths.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// What adaptive downloads have found out: how many bytes a second each number of connections brought, by server and by
/// the network that it was reached from. It holds for an hour, for 256 of them; the oldest go first.
#[derive(Default)]
pub struct ConnectionGains(Mutex<BTreeMap<Key, Known>>);

/// A server, and the client's own network.
type Key = (Origin, IpAddr);

#[derive(Clone)]
struct Known {
    at: SystemTime,
    rates: Rates,
}

impl ConnectionGains {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many servers and networks are known.
    pub fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// True if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that is known as lines of text, for [`Self::import`] in a later process: server, own network, seconds since
    /// 1970, and numbers of connections, each with its bytes a second.
    pub fn export(&self) -> String {
        let mut text = String::new();
        for ((origin, network), known) in &*lock(&self.0) {
            let at = known.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            let _ = write!(text, "{origin} {network} {at}");
            for (number, rate) in &known.rates {
                let _ = write!(text, " {number} {rate}");
            }
            text.push('\n');
        }
        text
    }

    /// Adds what [`Self::export`]'s text says; how many lines. Others are skipped.
    pub fn import(&self, text: &str) -> usize {
        let read = text.lines().filter_map(parse);
        read.map(|(key, known)| self.put(key, known)).count()
    }

    /// What is known of a server, over the network that leads there now.
    pub(super) fn of(&self, key: &Key, now: SystemTime) -> Rates {
        let mut all = lock(&self.0);
        let is_valid = |known: &Known| now.duration_since(known.at).is_ok_and(|age| age <= LIFETIME);
        match all.get(key) {
            Some(known) if is_valid(known) => known.rates.clone(),
            _ => {
                all.remove(key);
                Rates::new()
            }
        }
    }

    /// Keeps what a download has found out.
    pub(super) fn learn(&self, key: &Key, rates: &[(usize, u64)], now: SystemTime) {
        self.put(key.clone(), Known { at: now, rates: rates.to_vec() });
    }

    fn put(&self, key: Key, known: Known) {
        let mut all = lock(&self.0);
        if all.len() >= MAX_KNOWN && !all.contains_key(&key) {
            let oldest = all.iter().min_by_key(|(_, known)| known.at).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        all.insert(key, known);
    }
}

impl fmt::Debug for ConnectionGains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionGains").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A line of [`ConnectionGains::export`].
fn parse(line: &str) -> Option<(Key, Known)> {
    let mut words = line.split_ascii_whitespace();
    let origin = Origin::of(&words.next()?.parse::<Uri>().ok()?).ok()?;
    let network = words.next()?.parse().ok()?;
    let since = Duration::from_secs(words.next()?.parse().ok()?);
    let at = SystemTime::UNIX_EPOCH.checked_add(since)?;
    let mut rates = Rates::new();
    while let Some(number) = words.next() {
        let (number, rate) = (number.parse().ok()?, words.next()?.parse().ok()?);
        let is_next = rates.last().is_none_or(|(last, _)| number > *last);
        if !is_next || number == 0 || rates.len() >= MAX_NUMBERS {
            return None;
        }
        rates.push((number, rate));
    }
    (!rates.is_empty()).then_some(((origin, network), Known { at, rates }))
}

/// What a server is known by: itself, and the address from which it is reached now. Nothing is sent.
pub(super) fn key(origin: &Origin, remote: SocketAddr) -> Option<Key> {
    let own = source_towards(remote).ok()?;
    Some((origin.clone(), client_network(own)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "what is kept for later processes has the time of the wall clock"
)]
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn server(port: u16, network: &str) -> Key {
        (Origin { host: "example.org".to_owned(), port }, network.parse().unwrap())
    }

    #[test]
    fn each_server_and_network_is_known_for_an_hour() {
        let gains = ConnectionGains::new();
        let wifi = server(443, "192.0.2.1");
        gains.learn(&wifi, &[(1, 100), (2, 200)], at(10_000));
        assert_eq!(gains.of(&wifi, at(13_600)), [(1, 100), (2, 200)]);
        assert_eq!(gains.of(&server(443, "198.51.100.1"), at(10_000)), []);
        assert_eq!(gains.of(&server(444, "192.0.2.1"), at(10_000)), []);
        assert_eq!(gains.of(&wifi, at(13_601)), []);
        assert!(gains.is_empty(), "what is too old goes");
        gains.learn(&wifi, &[(1, 100)], at(10_000));
        assert_eq!(gains.of(&wifi, at(9_999)), [], "nor does anything come from the future");
    }

    #[test]
    fn what_is_known_has_a_bound() {
        let gains = ConnectionGains::new();
        for port in 1..1000 {
            gains.learn(&server(port, "192.0.2.1"), &[(1, 1)], at(port.into()));
        }
        assert_eq!(gains.len(), MAX_KNOWN);
        assert_eq!(gains.of(&server(999, "192.0.2.1"), at(1000)), [(1, 1)]);
        assert_eq!(gains.of(&server(1000 - 257, "192.0.2.1"), at(1000)), []);
    }

    #[test]
    fn what_is_known_survives_as_text_and_damaged_text_does_no_harm() {
        let gains = ConnectionGains::new();
        gains.learn(&server(8443, "2001:db8::"), &[(1, 100), (2, 250)], at(5));
        let text = gains.export();
        assert_eq!(text, "https://example.org:8443 2001:db8:: 5 1 100 2 250\n");
        let other = ConnectionGains::new();
        let damaged = [
            "",
            "x",
            "https://h",
            "https://h 192.0.2.1",
            "https://h 192.0.2.1 5",
            "https://h 192.0.2.1 5 1",
            "https://h 192.0.2.1 5 0 1",
            "https://h 192.0.2.1 5 2 1 1 1",
            "https://h 192.0.2.1 18446744073709551615 1 1",
            "https://h 192.0.2.1 5 1 1 2 1 3 1 4 1 5 1 6 1 7 1 8 1 9 1",
            "http://h 192.0.2.1 5 1 1",
            "https://h nowhere 5 1 1",
        ];
        assert_eq!(other.import(&damaged.join("\n")), 0);
        assert_eq!(other.import(&text), 1);
        assert_eq!(other.export(), text);
    }

    #[test]
    fn the_own_network_is_that_of_the_route() {
        let origin = server(443, "192.0.2.1").0;
        let found = key(&origin, "127.0.0.1:443".parse().unwrap());
        assert_eq!(found, Some(server(443, "127.0.0.1")));
    }
}
