//! Making a connection: names to addresses, addresses raced, HTTP/3 on top.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use h3::error::Code;
use posthaste_endpoint::Connection;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::{ClientError, ClientOptions, Inner, lock};
use crate::quic_adapter::{Opener, Payload, QuicConnection};
use crate::uri::Origin;

/// Head start of each address before the next is tried too (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// Addresses of one name that are tried at most.
const MAX_ADDRESSES: usize = 8;

/// Sends requests on a connection.
pub(super) type Sender = h3::client::SendRequest<Opener, Payload>;

/// A connection that HTTP/3 runs on.
pub(super) struct Live {
    /// Its place among those that the client has made.
    pub(super) index: usize,
    origin: Origin,
    quic: Connection,
    resolution: Duration,
    /// Behind a lock only because a sender may be moved between threads but not shared.
    sender: Mutex<Sender>,
    /// The server is leaving: no new requests.
    left: AtomicBool,
}

impl Live {
    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn quic(&self) -> &Connection {
        &self.quic
    }

    pub(super) fn resolution(&self) -> Duration {
        self.resolution
    }

    pub(super) fn sender(&self) -> Sender {
        lock(&self.sender).clone()
    }

    /// Whether a new request may be sent on it.
    pub(super) fn is_usable(&self) -> bool {
        !self.left.load(Ordering::Relaxed) && self.quic.close_reason().is_none()
    }

    /// Sends no new requests on it.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    pub(super) fn close(&self) {
        self.quic.close(Code::H3_NO_ERROR.value(), b"");
    }
}

/// Connects to an origin.
pub(super) async fn connect(inner: &Inner, origin: &Origin) -> Result<Live, ClientError> {
    let options = &inner.options;
    let started = Instant::now();
    let deadline = started + options.connect_timeout;
    let addresses = timeout_at(deadline, resolve(origin)).await.unwrap_or_else(|_| {
        let source = std::io::Error::new(std::io::ErrorKind::TimedOut, "the name server does not answer");
        Err(ClientError::Resolve { host: origin.host.clone(), source: Arc::new(source) })
    })?;
    let resolution = started.elapsed();
    let quic = race(inner, origin, &addresses, deadline).await?;
    let hello = http3(options, origin, quic.clone());
    let sender = timeout_at(deadline, hello).await.unwrap_or_else(|_| {
        quic.close(Code::H3_NO_ERROR.value(), b"");
        Err(ClientError::NoHttp3 { origin: origin.clone(), reason: "it permits no streams".to_owned() })
    })?;
    Ok(Live {
        index: 0,
        origin: origin.clone(),
        quic,
        resolution,
        sender: Mutex::new(sender),
        left: AtomicBool::new(false),
    })
}

/// The origin's addresses, the families in turn, beginning with the resolver's favourite (RFC 8305 section 4).
async fn resolve(origin: &Origin) -> Result<Vec<SocketAddr>, ClientError> {
    let fail = |source| ClientError::Resolve { host: origin.host.clone(), source: Arc::new(source) };
    if let Ok(address) = origin.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, origin.port)]);
    }
    if origin.host == "localhost" {
        // Both are this machine's, whatever its resolver says (RFC 6761 section 6.3), and a server may listen on one.
        let both: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        return Ok(both.map(|address| SocketAddr::new(address, origin.port)).to_vec());
    }
    let found = tokio::net::lookup_host((origin.host.as_str(), origin.port)).await.map_err(fail)?;
    let mut addresses = interleave(found);
    addresses.truncate(MAX_ADDRESSES);
    if addresses.is_empty() {
        return Err(fail(std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address")));
    }
    Ok(addresses)
}

fn interleave(found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut distinct: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !distinct.contains(&address) {
            distinct.push(address);
        }
    }
    let first_is_v6 = distinct.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        distinct.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut ordered = Vec::new();
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            return ordered;
        }
        ordered.extend(pair.into_iter().flatten());
    }
}

/// The first connection that stands. Later addresses start when the earlier ones have failed or are slow.
async fn race(
    inner: &Inner,
    origin: &Origin,
    addresses: &[SocketAddr],
    deadline: Instant,
) -> Result<Connection, ClientError> {
    let mut waiting = addresses.iter().copied().peekable();
    let mut attempts = FuturesUnordered::new();
    let mut failure = None;
    let mut head_start = std::pin::pin!(sleep(Duration::ZERO));
    loop {
        tokio::select! {
            biased;
            Some(result) = attempts.next() => match result {
                Ok(connection) => return Ok(connection),
                Err(error) => {
                    failure = Some(error);
                    head_start.as_mut().reset(Instant::now());
                }
            },
            () = &mut head_start, if waiting.peek().is_some() => {
                attempts.extend(waiting.next().map(|address| attempt(inner, origin, address)));
                head_start.as_mut().reset(Instant::now() + HEAD_START);
            }
            () = sleep_until(deadline) => break,
            else => break,
        }
        if attempts.is_empty() && waiting.peek().is_none() {
            break;
        }
    }
    Err(failure.unwrap_or_else(|| ClientError::NoAnswer {
        origin: origin.clone(),
        addresses: addresses.to_vec(),
        waited: inner.options.connect_timeout,
    }))
}

async fn attempt(inner: &Inner, origin: &Origin, address: SocketAddr) -> Result<Connection, ClientError> {
    let endpoint = inner.endpoint(address)?;
    tracing::debug!(%origin, %address, "connecting");
    let connected = endpoint.connect(&inner.options.quic, address, &origin.host).await;
    connected.map_err(|error| ClientError::connect(origin, address, error))
}

/// Starts HTTP/3. Reserved frames stay off: h3 would send one with each request, not one a connection.
async fn http3(options: &ClientOptions, origin: &Origin, quic: Connection) -> Result<Sender, ClientError> {
    let fail = |reason: String| ClientError::NoHttp3 { origin: origin.clone(), reason };
    if let Some(alpn) = quic.alpn().filter(|alpn| alpn != crate::ALPN) {
        return Err(fail(format!("it speaks `{}`", String::from_utf8_lossy(&alpn))));
    }
    let mut builder = h3::client::builder();
    builder.max_field_section_size(options.max_header_size).send_grease(false);
    let (mut driver, sender) =
        builder.build(QuicConnection::new(quic)).await.map_err(|error| fail(error.to_string()))?;
    let origin = origin.clone();
    tokio::spawn(async move {
        let ended = driver.wait_idle().await;
        tracing::debug!(%origin, reason = %ended, "connection ended");
    });
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let parse =
            |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let found = parse(&["[::1]:1", "[::2]:1", "[::1]:1", "1.1.1.1:1", "2.2.2.2:1", "3.3.3.3:1"]);
        let expected = parse(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "3.3.3.3:1"]);
        assert_eq!(interleave(found.into_iter()), expected);
        let v4_first = parse(&["1.1.1.1:1", "[::1]:1"]);
        assert_eq!(interleave(v4_first.clone().into_iter()), v4_first);
    }
}
