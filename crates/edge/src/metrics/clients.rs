//! Clients over time: which of them were told of HTTP/3 and came, and how long responses took over TCP and over HTTP/3.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use posthaste_endpoint::units::client_network;
use posthaste_service::{AccessRecord, Outcome, Protocol};

use self::medians::Spread;
use super::status::DiscoveryStatus;

mod medians;

/// Clients that are remembered. For a new one, the one that came first is forgotten.
const CLIENTS: usize = 4096;

/// Responses over TCP that are remembered of a client until it comes over HTTP/3.
const EARLIER: usize = 16;

/// Bounds of the classes of sizes, in bytes. The first is what a first flight carries; a socket's buffer in Linux grows to
/// what the last begins with.
pub(super) const SIZES: [u64; 3] = [16 << 10, 256 << 10, 4 << 20];

/// Clients told of HTTP/3, none of whom came, that lead to a warning.
const WITHOUT_ANY: u64 = 200;

/// What is known of clients.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_network: BTreeMap<IpAddr, Client>,
    /// In the order in which they came.
    order: VecDeque<IpAddr>,
    discovery: DiscoveryStatus,
    all: Times,
    /// Of clients that came over TCP and over HTTP/3.
    both: Times,
    is_warned: bool,
}

#[derive(Debug, Default)]
struct Client {
    was_told: bool,
    over_tcp: bool,
    over_http3: bool,
    /// Responses over TCP until it comes over HTTP/3.
    earlier: Vec<Sample>,
}

/// One whole response.
#[derive(Debug, Clone, Copy)]
struct Sample {
    class: usize,
    first_byte: Duration,
    whole: Duration,
}

/// Times by class of size.
#[derive(Debug, Clone, Default)]
pub(super) struct Times {
    pub(super) over_tcp: [Both; SIZES.len() + 1],
    pub(super) over_http3: [Both; SIZES.len() + 1],
}

/// To the head and to the end of responses.
#[derive(Debug, Clone, Default)]
pub(super) struct Both {
    pub(super) first_byte: Spread,
    pub(super) whole: Spread,
}

impl Both {
    fn add(&mut self, sample: Sample) {
        self.first_byte.add(sample.first_byte);
        self.whole.add(sample.whole);
    }
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, Known> {
        // Sums are whole after each call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn record(&self, record: &AccessRecord<'_>) {
        let sample = sample(record);
        let mut known = self.lock();
        known.record(client_network(record.client.ip()), record.protocol, record.tells_http3, sample);
        if known.discovery.offered >= WITHOUT_ANY && known.discovery.taken == 0 && !known.is_warned {
            known.is_warned = true;
            tracing::warn!(
                clients = known.discovery.offered,
                "none of the clients that were told of HTTP/3 has come over it: the UDP port does not seem to reach this \
                 machine; `posthaste edge doctor NAME` on another machine tells"
            );
        }
    }

    pub(super) fn discovery(&self) -> DiscoveryStatus {
        self.lock().discovery
    }

    /// Of all clients, and of those that came over TCP and over HTTP/3.
    pub(super) fn times(&self) -> (Times, Times) {
        let known = self.lock();
        (known.all.clone(), known.both.clone())
    }
}

/// A response that counts: one with content that the client has got whole.
fn sample(record: &AccessRecord<'_>) -> Option<Sample> {
    let is_counted = record.outcome == &Outcome::Complete
        && record.status.is_some_and(|status| status.is_success())
        && record.body_bytes > 0;
    let first_byte = record.first_byte.filter(|_| is_counted)?;
    let class = SIZES.iter().filter(|bound| record.body_bytes >= **bound).count();
    Some(Sample { class, first_byte, whole: record.duration })
}

impl Known {
    fn record(&mut self, network: IpAddr, protocol: Protocol, is_told: bool, sample: Option<Sample>) {
        self.admit(network);
        let Some(client) = self.by_network.get_mut(&network) else { return };
        if protocol == Protocol::Http3 {
            if client.was_told && !client.over_http3 {
                self.discovery.taken += 1;
            }
            client.over_http3 = true;
        } else {
            if is_told && !client.was_told && !client.over_http3 {
                self.discovery.offered += 1;
                client.was_told = true;
            }
            client.over_tcp = true;
        }
        let is_both = client.over_tcp && client.over_http3;
        if is_both {
            for earlier in std::mem::take(&mut client.earlier) {
                self.both.over_tcp[earlier.class].add(earlier);
            }
        }
        let Some(sample) = sample else { return };
        if protocol == Protocol::Http3 {
            self.all.over_http3[sample.class].add(sample);
            if is_both {
                self.both.over_http3[sample.class].add(sample);
            }
        } else {
            self.all.over_tcp[sample.class].add(sample);
            if is_both {
                self.both.over_tcp[sample.class].add(sample);
            } else if client.earlier.len() < EARLIER {
                client.earlier.push(sample);
            }
        }
    }

    fn admit(&mut self, network: IpAddr) {
        if self.by_network.contains_key(&network) {
            return;
        }
        if self.order.len() >= CLIENTS
            && let Some(first) = self.order.pop_front()
        {
            self.by_network.remove(&first);
        }
        self.order.push_back(network);
        self.by_network.insert(network, Client::default());
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn client(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    fn took(milliseconds: u64) -> Sample {
        let whole = Duration::from_millis(milliseconds);
        Sample { class: 0, first_byte: whole / 2, whole }
    }

    #[test]
    fn a_client_takes_what_it_was_offered_once() {
        let mut known = Known::default();
        for _ in 0..2 {
            known.record(client(1), Protocol::Http2, true, None);
        }
        known.record(client(2), Protocol::Http1, false, None);
        // This one knew from elsewhere.
        known.record(client(3), Protocol::Http3, false, None);
        known.record(client(3), Protocol::Http2, true, None);
        assert_eq!(known.discovery, DiscoveryStatus { offered: 1, taken: 0 });
        for number in [1, 1, 2] {
            known.record(client(number), Protocol::Http3, false, None);
        }
        assert_eq!(known.discovery, DiscoveryStatus { offered: 1, taken: 1 });
    }

    #[test]
    fn responses_from_before_the_first_over_http3_count_for_those_that_come() {
        let mut known = Known::default();
        known.record(client(1), Protocol::Http2, true, Some(took(100)));
        known.record(client(2), Protocol::Http2, true, Some(took(900)));
        known.record(client(1), Protocol::Http3, false, Some(took(40)));
        known.record(client(3), Protocol::Http3, false, Some(took(1)));
        known.record(client(1), Protocol::Http2, true, Some(took(104)));
        let numbers = |times: &Times| [times.over_tcp[0].whole.count(), times.over_http3[0].whole.count()];
        assert_eq!((numbers(&known.all), numbers(&known.both)), ([3, 2], [2, 1]));
    }

    #[test]
    fn what_clients_can_fill_is_bounded() {
        let mut known = Known::default();
        for number in 0..2 * CLIENTS as u32 {
            for _ in 0..2 * EARLIER {
                known.record(client(number), Protocol::Http2, true, Some(took(1)));
            }
        }
        assert_eq!((known.by_network.len(), known.order.len()), (CLIENTS, CLIENTS));
        assert!(known.by_network.values().all(|client| client.earlier.len() == EARLIER));
        assert!(known.by_network.contains_key(&client(2 * CLIENTS as u32 - 1)));
    }
}
