//! Making a connection: names to addresses, addresses raced, HTTP/3 on top.

use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use posthaste_endpoint::{ClientConfig, Connection, GroupToken};
use posthaste_http3::qpack::Tables;
use posthaste_http3::{Code, Event, Role, Settings};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::earlier::Earlier;
use super::{ClientError, Inner, lock};
use crate::link::{self, Link, LinkError};
use crate::patience::Progress;
use crate::uri::Origin;

/// Head start of each address before the next is tried too (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// How often a connection that the server is leaving is looked at, whether it is still in use.
const LOOK_AT_USE: Duration = Duration::from_millis(50);

/// Addresses of one name that are tried at most.
const MAX_ADDRESSES: usize = 8;

/// A connection that HTTP/3 runs on.
pub(super) struct Live {
    /// How many the client had made before it.
    pub(super) index: usize,
    origin: Origin,
    quic: Connection,
    resolution: Duration,
    http3: Http3,
    /// Moves with all that the server sends.
    pub(super) progress: Progress,
    /// No new requests.
    left: AtomicBool,
    /// Held by each request until its response is dropped.
    busy: Busy,
}

/// Shows, by the number of its clones, whether a connection is in use.
pub(super) type Busy = Arc<()>;

/// The connection beside its requests.
struct Http3 {
    /// The first request that the server will not process, once it is leaving.
    leaving: watch::Receiver<Option<u64>>,
    /// How the server broke the protocol, if it did.
    breach: Arc<OnceLock<String>>,
    driver: AbortHandle,
    /// The dynamic tables for field sections.
    tables: Tables,
}

impl Live {
    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn quic(&self) -> &Connection {
        &self.quic
    }

    /// The connection's dynamic tables for field sections.
    pub(super) fn tables(&self) -> &Tables {
        &self.http3.tables
    }

    pub(super) fn resolution(&self) -> Duration {
        self.resolution
    }

    /// Waits until the handshake is complete.
    pub(super) async fn handshake(&self) -> Result<(), ClientError> {
        let done = self.quic.handshake().await;
        done.map(drop).map_err(|error| ClientError::connect(&self.origin, self.quic.remote_address(), error))
    }

    /// Whether a new request may be sent on it.
    pub(super) fn is_usable(&self) -> bool {
        let is_leaving = self.http3.leaving.borrow().is_some();
        !is_leaving && !self.left.load(Ordering::Relaxed) && self.quic.close_reason().is_none()
    }

    /// Keeps the connection open, even if the server is leaving.
    pub(super) fn busy(&self) -> Busy {
        Arc::clone(&self.busy)
    }

    /// Sends no new requests on it.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    /// True if the server takes no new requests (RFC 9114 section 5.2).
    pub(super) fn is_leaving(&self) -> bool {
        self.http3.leaving.borrow().is_some()
    }

    /// Resolves when it is known that the server will not process the request on `stream`.
    pub(super) async fn refused(&self, stream: u64) {
        let mut leaving = self.http3.leaving.clone();
        if leaving.wait_for(|first| first.is_some_and(|first| stream >= first)).await.is_err() {
            // The connection is over, which the request's stream tells.
            std::future::pending::<()>().await;
        }
    }

    /// How the server broke the protocol outside of any request.
    pub(super) fn breach(&self) -> Option<&str> {
        self.http3.breach.get().map(String::as_str)
    }

    pub(super) fn close(&self) {
        self.quic.close(Code::H3_NO_ERROR.value(), b"");
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.close();
        self.http3.driver.abort();
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
    // Early data must not go to an address that perhaps nobody answers at: others would not be tried.
    let met = lock(&inner.met).remove(origin).filter(|address| addresses.contains(address));
    let again = match met {
        Some(address) => {
            timeout_at(deadline, attempt(inner, origin, address, true)).await.ok().and_then(Result::ok)
        }
        None => None,
    };
    let quic = match again {
        Some(quic) => quic,
        None => race(inner, origin, &addresses, deadline).await?,
    };
    inner.remember(origin, quic.remote_address());
    live(inner, origin, quic, resolution, deadline).await
}

/// Connects to an origin once more, at the address of its first connection. With a group's size and name the connection
/// joins it: only if the server coordinates, else there is none.
pub(super) async fn beside(
    inner: &Inner,
    origin: &Origin,
    address: SocketAddr,
    group: Option<(usize, GroupToken)>,
) -> Result<Live, ClientError> {
    let options = &inner.options;
    let deadline = Instant::now() + options.connect_timeout;
    let mut config = options.quic.clone();
    config.group_size = group.map_or(0, |(size, _)| size);
    let connecting = connect_with(&config, inner, origin, address, false);
    let quic = timeout_at(deadline, connecting).await.unwrap_or_else(|_| {
        let (origin, waited) = (origin.clone(), options.connect_timeout);
        Err(ClientError::NoAnswer { origin, addresses: vec![address], waited })
    })?;
    if let Some((_, token)) = group {
        quic.join_group(token).map_err(|error| ClientError::connect(origin, address, error))?;
    }
    live(inner, origin, quic, Duration::ZERO, deadline).await
}

/// HTTP/3 on a connection.
async fn live(
    inner: &Inner,
    origin: &Origin,
    quic: Connection,
    resolution: Duration,
    deadline: Instant,
) -> Result<Live, ClientError> {
    let busy = Busy::default();
    let hello = http3(inner, origin, quic.clone(), Arc::downgrade(&busy));
    let http3 = timeout_at(deadline, hello).await.unwrap_or_else(|_| {
        quic.close(Code::H3_NO_ERROR.value(), b"");
        Err(ClientError::NoHttp3 { origin: origin.clone(), reason: "it permits no streams".to_owned() })
    })?;
    Ok(Live {
        index: 0,
        origin: origin.clone(),
        quic,
        resolution,
        http3,
        progress: Progress::default(),
        left: AtomicBool::new(false),
        busy,
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
                attempts.extend(waiting.next().map(|address| attempt(inner, origin, address, false)));
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

async fn attempt(
    inner: &Inner,
    origin: &Origin,
    address: SocketAddr,
    may_be_early: bool,
) -> Result<Connection, ClientError> {
    connect_with(&inner.options.quic, inner, origin, address, may_be_early).await
}

async fn connect_with(
    config: &ClientConfig,
    inner: &Inner,
    origin: &Origin,
    address: SocketAddr,
    may_be_early: bool,
) -> Result<Connection, ClientError> {
    let endpoint = inner.endpoint(address)?;
    tracing::debug!(%origin, %address, "connecting");
    let connected = if may_be_early {
        endpoint.connect_early(config, address, &origin.host).await
    } else {
        endpoint.connect(config, address, &origin.host).await
    };
    let connection = connected.map_err(|error| ClientError::connect(origin, address, error))?;
    if let Some((rate, round_trip)) = inner.options.path_hint {
        connection.path_hint(rate, round_trip);
    }
    Ok(connection)
}

/// Starts HTTP/3: the settings are sent, the server's are read as they come.
async fn http3(
    inner: &Inner,
    origin: &Origin,
    quic: Connection,
    busy: Weak<()>,
) -> Result<Http3, ClientError> {
    let fail = |reason: String| ClientError::NoHttp3 { origin: origin.clone(), reason };
    if let Some(alpn) = quic.alpn().filter(|alpn| alpn != crate::ALPN) {
        return Err(fail(format!("it speaks `{}`", String::from_utf8_lossy(&alpn))));
    }
    let max_field_section_size = inner.options.max_header_size;
    let settings = Settings { max_field_section_size, ..link::settings() };
    let mut link = Link::new(quic.clone(), Role::Client, &settings);
    link.ready().await.map_err(|error| fail(error.to_string()))?;
    let tables = link.tables().clone();
    let (leaving_sender, leaving) = watch::channel(None);
    let breach = Arc::new(OnceLock::new());
    let earlier = Arc::clone(&inner.earlier);
    let driver = drive((quic, link), origin.clone(), earlier, leaving_sender, Arc::clone(&breach), busy);
    Ok(Http3 { leaving, breach, driver: tokio::spawn(driver).abort_handle(), tables })
}

async fn drive(
    (quic, mut link): (Connection, Link),
    origin: Origin,
    earlier: Arc<Earlier>,
    leaving: watch::Sender<Option<u64>>,
    breach: Arc<OnceLock<String>>,
    busy: Weak<()>,
) {
    // The connection itself holds it, too.
    let is_idle = || busy.strong_count() <= 1;
    let mut was_idle = false;
    loop {
        let event = tokio::select! {
            event = poll_fn(|cx| link.poll_event(cx)) => match event {
                Ok(Event::Settings(settings)) => {
                    let checked = earlier.on_settings(&origin, settings, quic.early_data());
                    checked.map(|()| Event::Settings(settings)).map_err(|error| link.fail(error))
                }
                event => event,
            },
            () = sleep(LOOK_AT_USE), if leaving.borrow().is_some() => {
                // A server that leaves waits for its clients. Twice, because a request may just be about to begin.
                if is_idle() && was_idle {
                    return;
                }
                was_idle = is_idle();
                continue;
            }
        };
        match event {
            Ok(Event::GoAway(first)) => {
                leaving.send_replace(Some(first));
            }
            // Servers rank nothing, and their settings bind the encoder, which has them.
            Ok(Event::Settings(_) | Event::PriorityUpdate { .. }) => {}
            Err(reason) => {
                tracing::debug!(%origin, %reason, "connection ended");
                if let LinkError::Broken(error) = reason {
                    // It is set once: nothing comes behind a breach.
                    let _ = breach.set(error.to_string());
                }
                return;
            }
        }
    }
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
