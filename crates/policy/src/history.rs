//! What was learnt of paths, kept for the connections to come: bounded, expiring, in a fixed order.
//!
//! Pure: whoever owns it passes the time in, as the time since the Unix epoch, and keeps it on a disk if it likes
//! ([`History::record`] tells what has changed).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use posthaste_units::{ByteCount, Duration};

use crate::sample::{PathHistory, PathLoss};

/// Paths in one history; the ones measured the longest ago go first. At some 200 bytes each that is 13 MB.
pub const MAX_PATHS: usize = 1 << 16;

/// The weight of a new sample in a moving average is one in so many.
const MOVING_WEIGHT: f64 = 8.0;

/// The greatest window that is taken for one: 64 GiB, as congestion control has it. It keeps reals finite.
const GREATEST_WINDOW: f64 = 68_719_476_736.0;

/// The longest round trip that is taken for one.
const LONGEST_RTT: Duration = Duration::from_secs(60);

/// Bytes of a record as [`PathRecord::to_bytes`] has it.
pub const RECORD_LEN: usize = 40;

/// Bytes of a record from before the path's loss was kept.
const LOSSLESS_LEN: usize = 32;

/// How a start policy's history is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryRules {
    /// Whose paths count as one.
    pub scope: Scope,
    /// Where nothing is known of a client's network, what is known of all takes its place.
    pub has_fallback: bool,
    /// What is made of several samples.
    pub average: Average,
    /// How long a path is good for after its last sample.
    pub lifetime: Duration,
    /// One connection at a time may use what is known (RFC 9959 section 4.2).
    pub is_exclusive: bool,
}

/// Whose paths count as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All clients'.
    Everyone,
    /// Those of clients whose addresses begin with the same bits.
    Prefix {
        /// Of IPv4, at most 32.
        ipv4: u8,
        /// Of IPv6, at most 128.
        ipv6: u8,
    },
    /// One client address's.
    Address,
}

/// What is made of several samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Average {
    /// The latest counts.
    Latest,
    /// A moving average, in which a new sample weighs one in eight.
    Moving,
    /// The arithmetic mean.
    Mean,
}

/// Names a path in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathKey {
    /// All clients.
    Everyone,
    /// Addresses that begin with these bits; the rest of the address is zero.
    Network {
        /// The network's address.
        address: IpAddr,
        /// How many bits count.
        bits: u8,
    },
}

/// What is known of one path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathRecord {
    /// The average window in bytes.
    window: f64,
    min_rtt: Duration,
    samples: u64,
    /// When the latest sample was taken, since the Unix epoch.
    measured_at: Duration,
    loss: PathLoss,
}

/// What a change leaves of a path: its record, or nothing.
pub type Change = (PathKey, Option<PathRecord>);

/// What is known of all paths; see the module.
#[derive(Debug, Clone)]
pub struct History {
    rules: HistoryRules,
    records: BTreeMap<PathKey, PathRecord>,
    by_age: BTreeSet<(Duration, PathKey)>,
}

impl PathKey {
    /// The path of `client` in the scope.
    pub fn of(scope: Scope, client: IpAddr) -> Self {
        let client = client.to_canonical();
        let bits = match (scope, client) {
            (Scope::Everyone, _) => return Self::Everyone,
            (Scope::Prefix { ipv4, .. }, IpAddr::V4(_)) => ipv4.min(32),
            (Scope::Prefix { ipv6, .. }, IpAddr::V6(_)) => ipv6.min(128),
            (Scope::Address, IpAddr::V4(_)) => 32,
            (Scope::Address, IpAddr::V6(_)) => 128,
        };
        Self::Network { address: network(client, bits), bits }
    }

    /// The key as bytes, for a store.
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Everyone => vec![0],
            Self::Network { address: IpAddr::V4(address), bits } => {
                [&[4, bits], &address.octets()[..]].concat()
            }
            Self::Network { address: IpAddr::V6(address), bits } => {
                [&[6, bits], &address.octets()[..]].concat()
            }
        }
    }

    /// The key that [`Self::to_bytes`] gave; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (address, bits): (IpAddr, u8) = match bytes {
            [0] => return Some(Self::Everyone),
            [4, bits @ 0..=32, octets @ ..] => (<[u8; 4]>::try_from(octets).ok()?.into(), *bits),
            [6, bits @ 0..=128, octets @ ..] => (<[u8; 16]>::try_from(octets).ok()?.into(), *bits),
            _ => return None,
        };
        let key = Self::Network { address, bits };
        let is_proper = Self::of(Scope::Prefix { ipv4: bits, ipv6: bits }, address) == key;
        is_proper.then_some(key)
    }
}

/// The address with all but its first bits zero.
fn network(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

impl std::fmt::Display for PathKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Everyone => f.write_str("all clients"),
            Self::Network { address, bits } => write!(f, "{address}/{bits}"),
        }
    }
}

impl PathRecord {
    /// The record after one more sample, taken at `at`; `before` is none for the first.
    pub fn after(before: Option<&Self>, average: Average, at: Duration, sample: &PathHistory) -> Self {
        let latest = sample.window.as_f64().min(GREATEST_WINDOW);
        let (window, samples) = match (before, average) {
            (None, _) | (_, Average::Latest) => (latest, before.map_or(0, |before| before.samples)),
            (Some(before), Average::Moving) => {
                (before.window + (latest - before.window) / MOVING_WEIGHT, before.samples)
            }
            (Some(before), Average::Mean) => {
                (before.window + (latest - before.window) / (before.samples as f64 + 1.0), before.samples)
            }
        };
        Self {
            window,
            min_rtt: sample.min_rtt.min(LONGEST_RTT),
            samples: samples.saturating_add(1),
            measured_at: at,
            loss: sample.loss,
        }
    }

    /// What it tells a connection that asks at `at`.
    pub fn recalled(&self, at: Duration) -> PathHistory {
        let age = at.saturating_sub(self.measured_at);
        PathHistory { window: self.window(), min_rtt: self.min_rtt, age, continues: false, loss: self.loss }
    }

    /// True if the record may be used at `at`. One of the future is the work of a clock that was put back: nobody
    /// knows its age.
    pub fn is_good(&self, lifetime: Duration, at: Duration) -> bool {
        self.measured_at <= at && at.saturating_sub(self.measured_at) <= lifetime
    }

    /// The average window.
    pub fn window(&self) -> ByteCount {
        ByteCount::from_f64(self.window)
    }

    /// The least round trip of the connection that was sampled last.
    pub fn min_rtt(&self) -> Duration {
        self.min_rtt
    }

    /// Samples in it.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// When the latest sample was taken, since the Unix epoch.
    pub fn measured_at(&self) -> Duration {
        self.measured_at
    }

    /// What the path lost where no queue stood.
    pub fn loss(&self) -> PathLoss {
        self.loss
    }

    /// The record as bytes, for a store or a token.
    pub fn to_bytes(&self) -> [u8; RECORD_LEN] {
        let loss = u64::from(self.loss.settled()) << 32 | u64::from(self.loss.lost());
        let fields =
            [self.window.to_bits(), self.min_rtt.as_nanos(), self.samples, self.measured_at.as_nanos(), loss];
        let mut bytes = [0; RECORD_LEN];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    /// The record that [`Self::to_bytes`] gave, or gave before it had the path's loss; `None` for anything that cannot be
    /// one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != RECORD_LEN && bytes.len() != LOSSLESS_LEN {
            return None;
        }
        let mut fields =
            bytes.chunks_exact(8).filter_map(|field| Some(u64::from_be_bytes(field.try_into().ok()?)));
        let record = Self {
            window: f64::from_bits(fields.next()?),
            min_rtt: Duration::from_nanos(fields.next()?),
            samples: fields.next()?,
            measured_at: Duration::from_nanos(fields.next()?),
            loss: fields.next().map_or(Some(PathLoss::UNKNOWN), loss_from)?,
        };
        // NaN is in no range.
        let is_sane = (0.0..=GREATEST_WINDOW).contains(&record.window)
            && record.min_rtt <= LONGEST_RTT
            && record.samples > 0;
        is_sane.then_some(record)
    }
}

/// The loss that a record's last field says; `None` if it is none that can be.
fn loss_from(field: u64) -> Option<PathLoss> {
    let settled = u32::try_from(field >> 32).ok()?;
    let lost = u32::try_from(field & u64::from(u32::MAX)).ok()?;
    let read = PathLoss::new(settled, lost);
    (read.settled() == settled && read.lost() == lost).then_some(read)
}

impl History {
    /// An empty history.
    pub fn new(rules: HistoryRules) -> Self {
        Self { rules, records: BTreeMap::new(), by_age: BTreeSet::new() }
    }

    /// The rules that it keeps to.
    pub fn rules(&self) -> &HistoryRules {
        &self.rules
    }

    /// What is known of the path to `client` at `at`.
    pub fn recall(&self, at: Duration, client: IpAddr) -> Option<PathHistory> {
        self.keys(client)
            .into_iter()
            .flatten()
            .find_map(|key| self.records.get(&key).filter(|record| record.is_good(self.rules.lifetime, at)))
            .map(|record| record.recalled(at))
    }

    /// Adds a sample of the path to `client`, taken at `at`; what has changed by it.
    pub fn record(&mut self, at: Duration, client: IpAddr, sample: &PathHistory) -> Vec<Change> {
        let mut changes = self.expire(at);
        for key in self.keys(client).into_iter().flatten() {
            let before = self.records.get(&key).filter(|record| record.is_good(self.rules.lifetime, at));
            let record = PathRecord::after(before, self.rules.average, at, sample);
            self.put(key, record);
            changes.push((key, Some(record)));
        }
        while self.records.len() > MAX_PATHS
            && let Some((_, oldest)) = self.by_age.first().copied()
        {
            changes.push(self.remove(oldest));
        }
        changes
    }

    /// Forgets the path to `client`, which has proved to be another; what has changed by it. What is known of all
    /// clients stays.
    pub fn forget(&mut self, client: IpAddr) -> Vec<Change> {
        let key = PathKey::of(self.rules.scope, client);
        if self.records.contains_key(&key) { vec![self.remove(key)] } else { Vec::new() }
    }

    /// Puts a record back, as a store has kept it. One that is too old at `at`, or of another scope, is left out.
    pub fn restore(&mut self, at: Duration, key: PathKey, record: PathRecord) -> bool {
        let is_of_scope = match (key, self.rules.scope) {
            (PathKey::Everyone, Scope::Everyone) => true,
            (PathKey::Everyone, _) => self.rules.has_fallback,
            (PathKey::Network { address, .. }, scope) => PathKey::of(scope, address) == key,
        };
        let is_fit = is_of_scope && record.is_good(self.rules.lifetime, at) && self.records.len() < MAX_PATHS;
        if is_fit {
            self.put(key, record);
        }
        is_fit
    }

    /// All paths with their records, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&PathKey, &PathRecord)> {
        self.records.iter()
    }

    /// How many paths are known.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// True if none is.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The client's own key, and the one of all where that may take its place.
    fn keys(&self, client: IpAddr) -> [Option<PathKey>; 2] {
        [Some(PathKey::of(self.rules.scope, client)), self.rules.has_fallback.then_some(PathKey::Everyone)]
    }

    fn put(&mut self, key: PathKey, record: PathRecord) {
        if let Some(before) = self.records.insert(key, record) {
            self.by_age.remove(&(before.measured_at, key));
        }
        self.by_age.insert((record.measured_at, key));
    }

    fn remove(&mut self, key: PathKey) -> Change {
        if let Some(before) = self.records.remove(&key) {
            self.by_age.remove(&(before.measured_at, key));
        }
        (key, None)
    }

    fn expire(&mut self, at: Duration) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some((measured_at, key)) = self.by_age.first().copied()
            && measured_at + self.rules.lifetime < at
        {
            changes.push(self.remove(key));
        }
        changes
    }
}

#[cfg(test)]
mod tests;
