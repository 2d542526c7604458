//! Address tokens (RFC 9000 section 8.1): what a server gives a client, in a Retry or in `NEW_TOKEN`, so that the
//! client can show later that it receives at its address. They are sealed: the server keeps nothing.
//!
//! A token is one byte of kind and key, a nonce, and sealed with AES-256-GCM: version, address, time and lifetime,
//! then what its kind needs.

use std::net::{IpAddr, SocketAddr};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hmac;
use posthaste_units::{Duration, Rng};
use posthaste_wire::ConnectionId;
use posthaste_wire::varint::{Reader, Truncated};

use crate::limits;

/// Set in the first byte of tokens that came with a Retry.
// spec: rfc9000 8.1.1 token-kinds-differ
const RETRY: u8 = 0x80;
/// The bits of the first byte that name the key.
const KEY: u8 = 0x7f;

const NONCE_LEN: usize = 12;

/// Names a token: no two have the same.
pub(crate) type TokenId = [u8; NONCE_LEN];

/// How long tokens are good for, and how their keys change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenTimes {
    /// Lifetime of a Retry's token: the time in which the client must answer. Default 15 s.
    pub retry: std::time::Duration,
    /// Lifetime of a `NEW_TOKEN`, at most [`Self::key_rotation`]. Default 24 h.
    pub new_token: std::time::Duration,
    /// Interval at which the key that seals changes; the key before still opens. Default 24 h, at least 1 minute.
    pub key_rotation: std::time::Duration,
}

impl Default for TokenTimes {
    fn default() -> Self {
        let day = std::time::Duration::from_secs(24 * 3600);
        Self { retry: std::time::Duration::from_secs(15), new_token: day, key_rotation: day }
    }
}

/// Who presents a token, where and when; also for whom one is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bearer {
    /// Since the Unix epoch.
    pub(crate) at: Duration,
    /// The client's address.
    pub(crate) remote: SocketAddr,
    /// The connection's version: tokens are good for the version that they came in (RFC 9369 section 5).
    pub(crate) version: u32,
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: it is none of ours, or no longer good. As good as no token (section 8.1.3).
    Void,
    /// It claims to be of a Retry, but is not good: the client cannot be served (section 8.1.2).
    BadRetry,
    /// The client has received the Retry that answered an Initial sent to `original`.
    Retry {
        /// What the client's very first Initial was sent to.
        original: ConnectionId,
    },
    /// The client has received at its address before.
    Known {
        /// The token's name, for the guard against reuse.
        id: TokenId,
        /// When it was made, since the Unix epoch.
        made_at: Duration,
        /// What was given along, at most 64 bytes.
        payload: Vec<u8>,
    },
}

/// Seals and opens tokens. The keys follow from a secret and the time: one for each rotation interval, of which the
/// current one seals, and it and the one before open.
pub(crate) struct TokenSealer {
    secret: hmac::Key,
    retry: Duration,
    new_token: Duration,
    key_rotation: Duration,
}

impl TokenSealer {
    pub(crate) fn new(secret: &[u8; 32], times: TokenTimes) -> Self {
        let key_rotation = Duration::from(times.key_rotation).max(Duration::from_secs(60));
        Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret),
            retry: times.retry.into(),
            new_token: Duration::from(times.new_token).min(key_rotation),
            key_rotation,
        }
    }

    /// The number of the rotation interval.
    fn interval(&self, at: Duration) -> u64 {
        at.as_nanos() / self.key_rotation.as_nanos().max(1)
    }

    fn key(&self, interval: u64) -> Option<LessSafeKey> {
        let mut context = hmac::Context::with_key(&self.secret);
        context.update(b"posthaste address token");
        context.update(&interval.to_be_bytes());
        let key = UnboundKey::new(&AES_256_GCM, context.sign().as_ref()).ok()?;
        Some(LessSafeKey::new(key))
    }

    /// The token of a Retry that names the server `source` and answers an Initial sent to `original`.
    pub(crate) fn for_retry(
        &self,
        bearer: &Bearer,
        original: &ConnectionId,
        source: &ConnectionId,
        rng: &mut Rng,
    ) -> Option<Vec<u8>> {
        let mut plain = common(bearer, bearer.remote.port(), self.retry);
        for id in [original, source] {
            plain.push(id.len() as u8);
            plain.extend_from_slice(id.as_slice());
        }
        self.seal(RETRY, bearer.at, plain, rng)
    }

    /// A token for the client's next connection, with a payload of at most 64 bytes (more is left out).
    pub(crate) fn for_next_time(&self, bearer: &Bearer, payload: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
        // spec: rfc9000 8.1.4 token-names-address
        let mut plain = common(bearer, 0, self.new_token);
        plain.extend_from_slice(payload.get(..limits::TOKEN_PAYLOAD).unwrap_or(payload));
        self.seal(0, bearer.at, plain, rng)
    }

    fn seal(&self, kind: u8, at: Duration, mut plain: Vec<u8>, rng: &mut Rng) -> Option<Vec<u8>> {
        let interval = self.interval(at);
        let first = kind | (interval as u8 & KEY);
        // spec: rfc9000 8.1.3 token-links-nothing, 8.1.3 token-unique, 8.1.4 token-unguessable, 8.1.4 token-sealed
        // spec: rfc9001 9.2 tickets-carry-no-application
        let mut nonce = [0; NONCE_LEN];
        rng.fill(&mut nonce);
        let key = self.key(interval)?;
        let sealing = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(sealing, Aad::from([first]), &mut plain).ok()?;
        Some([&[first], &nonce[..], &plain].concat())
    }

    /// What the token is worth. `destination` is what its Initial was sent to.
    pub(crate) fn open(&self, token: &[u8], bearer: &Bearer, destination: &ConnectionId) -> Verdict {
        let is_retry = token.first().is_some_and(|first| first & RETRY != 0);
        let worthless = if is_retry { Verdict::BadRetry } else { Verdict::Void };
        self.try_open(token, bearer, destination).unwrap_or(worthless)
    }

    fn try_open(&self, token: &[u8], bearer: &Bearer, destination: &ConnectionId) -> Option<Verdict> {
        let (first, rest) = token.split_first()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let now = self.interval(bearer.at);
        let mut intervals = [Some(now), now.checked_sub(1)].into_iter().flatten();
        let interval = intervals.find(|interval| *interval as u8 & KEY == first & KEY)?;
        let mut sealed = sealed.to_vec();
        let opening = Nonce::assume_unique_for_key(*nonce);
        let plain = self.key(interval)?.open_in_place(opening, Aad::from([*first]), &mut sealed).ok()?;
        let mut reader = Reader::new(plain);
        let contents = Contents::read(&mut reader).ok()?;
        let is_retry = first & RETRY != 0;
        if !contents.is_for(bearer, is_retry) {
            return None;
        }
        if is_retry {
            let original = read_id(&mut reader)?;
            let is_whole = read_id(&mut reader)? == *destination && reader.is_empty();
            return is_whole.then_some(Verdict::Retry { original });
        }
        let payload = reader.rest().to_vec();
        Some(Verdict::Known { id: *nonce, made_at: contents.made_at, payload })
    }
}

/// What both kinds of token say first, to be sealed.
fn common(bearer: &Bearer, port: u16, lifetime: Duration) -> Vec<u8> {
    let mut plain = Vec::with_capacity(128);
    plain.extend_from_slice(&bearer.version.to_be_bytes());
    plain.extend_from_slice(&address(bearer.remote.ip()));
    plain.extend_from_slice(&port.to_be_bytes());
    plain.extend_from_slice(&bearer.at.as_nanos().to_be_bytes());
    plain.extend_from_slice(&lifetime.as_nanos().to_be_bytes());
    plain
}

/// The same, read.
struct Contents {
    version: u32,
    address: [u8; 16],
    port: u16,
    made_at: Duration,
    lifetime: Duration,
}

impl Contents {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        Ok(Self {
            version: reader.u32()?,
            address: reader.array()?,
            port: u16::from_be_bytes(reader.array()?),
            made_at: Duration::from_nanos(u64::from_be_bytes(reader.array()?)),
            lifetime: Duration::from_nanos(u64::from_be_bytes(reader.array()?)),
        })
    }

    /// A token made in the future is the work of a clock that was put back: nobody knows its age.
    fn is_for(&self, bearer: &Bearer, is_retry: bool) -> bool {
        let port = if is_retry { bearer.remote.port() } else { 0 };
        // spec: rfc9369 5 servers-tokens
        self.version == bearer.version
            && self.address == address(bearer.remote.ip())
            && self.port == port
            && self.made_at <= bearer.at
            && bearer.at.saturating_sub(self.made_at) <= self.lifetime
    }
}

fn read_id(reader: &mut Reader<'_>) -> Option<ConnectionId> {
    let len = reader.byte().ok()?;
    ConnectionId::new(reader.take(usize::from(len)).ok()?)
}

/// The address in sixteen bytes; IPv4 is the same whatever socket it comes from.
fn address(ip: IpAddr) -> [u8; 16] {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

#[cfg(test)]
mod tests;
