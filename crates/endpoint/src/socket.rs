//! A UDP socket with segmentation offload both ways and ECN.

mod readiness;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use posthaste_transport::{EcnCodepoint, Transmit};
use quinn_udp::{UdpSockRef, UdpSocketState};

use self::readiness::{Io, Taken};
use crate::receive_buffers::ReceiveBuffers;

/// Bytes that the socket's buffers should hold, for bursts; the system grants what it permits.
const SOCKET_BUFFER: usize = 4 << 20;

/// Bytes that one send may carry, however many segments they are (an IPv4 packet less its headers).
const MAX_SEND: usize = 65_507;

/// What a socket did and what went wrong with it. Counters start at zero with the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketStats {
    /// Sends that the system took; one may carry many datagrams.
    pub sends: u64,
    /// Sends that failed, their datagrams lost: too large for the path, no route, refused by a firewall.
    pub send_errors: u64,
    /// Sends that had to wait until the system had room.
    pub sends_blocked: u64,
    /// Receptions; one may carry many datagrams.
    pub receptions: u64,
    /// Errors reported in place of a reception.
    pub receive_errors: u64,
    /// Sockets that took the place of one that reported nothing but errors for 10 s.
    pub replacements: u64,
    /// Datagrams of another endpoint on the port that were lost on the way there: it had too many to read.
    pub passing_on_failed: u64,
}

#[derive(Debug, Default)]
struct Counters {
    sends: AtomicU64,
    send_errors: AtomicU64,
    sends_blocked: AtomicU64,
    receptions: AtomicU64,
    receive_errors: AtomicU64,
    replacements: AtomicU64,
    passing_on_failed: AtomicU64,
}

/// Counts one, and answers whether it was the first.
fn count(counter: &AtomicU64) -> bool {
    counter.fetch_add(1, Ordering::Relaxed) == 0
}

#[derive(Debug)]
pub(crate) struct Socket {
    io: Io,
    offload: UdpSocketState,
    local: SocketAddr,
    /// Other sockets are bound to the same address, and more may be.
    is_shared: bool,
    /// Shared with the sockets that take this one's place.
    counters: Arc<Counters>,
    /// For tests: it reports nothing but errors.
    #[cfg(test)]
    is_broken: std::sync::atomic::AtomicBool,
}

impl Socket {
    /// Binds a socket; must be called inside a tokio runtime.
    pub(crate) fn bind(local: SocketAddr) -> io::Result<Self> {
        Self::bind_with(local, Arc::default())
    }

    /// Takes a bound socket over, `is_shared` if others are bound to its address; must be called inside a tokio runtime.
    ///
    /// # Errors
    /// It is no UDP socket over IP, it is not bound or hears one peer only, or the system refuses what an endpoint needs.
    pub(crate) fn adopt(socket: std::net::UdpSocket, is_shared: bool) -> io::Result<Self> {
        let wrong = |reason| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        let kind = socket2::SockRef::from(&socket);
        if kind.r#type()? != socket2::Type::DGRAM {
            return wrong("QUIC needs a UDP socket, not one of a stream");
        }
        let Some(local) = kind.local_addr()?.as_socket() else {
            return wrong("QUIC needs a UDP socket over IP");
        };
        if local.port() == 0 {
            return wrong("the socket is bound to no port");
        }
        if socket.peer_addr().is_ok() {
            return wrong("the socket is connected to one peer, and hears nobody else");
        }
        Self::with(socket, local, is_shared, Arc::default())
    }

    /// Binds another socket to take this one's place: it counts on.
    pub(crate) fn rebind(&self, local: SocketAddr) -> io::Result<Self> {
        let counters = Arc::clone(&self.counters);
        if !self.is_shared {
            return Self::bind_with(local, counters);
        }
        let socket = bind_shared(local)?;
        let local = socket.local_addr()?;
        Self::with(socket, local, true, counters)
    }

    /// A socket bound elsewhere that stands in for this one, so that this one can be dropped, and its address bound again.
    pub(crate) fn stand_in(&self) -> io::Result<Self> {
        let any: std::net::IpAddr = if self.local.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        };
        let stand_in = Self::bind_with(SocketAddr::new(any, 0), Arc::clone(&self.counters))?;
        Ok(Self { local: self.local, is_shared: self.is_shared, ..stand_in })
    }

    /// Binds the address of this stand-in.
    pub(crate) fn take_place(&self) -> io::Result<Self> {
        let socket = self.rebind(self.local)?;
        count(&self.counters.replacements);
        Ok(socket)
    }

    fn bind_with(local: SocketAddr, counters: Arc<Counters>) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(local)?;
        let local = socket.local_addr()?;
        Self::with(socket, local, false, counters)
    }

    fn with(
        socket: std::net::UdpSocket,
        local: SocketAddr,
        is_shared: bool,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(io::Error::other("an endpoint must be made inside a tokio runtime"));
        }
        socket.set_nonblocking(true)?;
        let offload = UdpSocketState::new(UdpSockRef::from(&socket))?;
        stop_timestamps(&socket);
        // Best effort: without the larger buffers, bursts are lost earlier, and recovered.
        let _ = offload.set_recv_buffer_size(UdpSockRef::from(&socket), SOCKET_BUFFER);
        let _ = offload.set_send_buffer_size(UdpSockRef::from(&socket), SOCKET_BUFFER);
        let io = Io::new(socket)?;
        Ok(Self {
            io,
            offload,
            local,
            is_shared,
            counters,
            #[cfg(test)]
            is_broken: std::sync::atomic::AtomicBool::new(false),
        })
    }

    /// The error that a test has the socket report.
    #[cfg(test)]
    fn fault(&self) -> io::Result<()> {
        if self.is_broken.load(Ordering::Relaxed) { Err(io::Error::from_raw_os_error(105)) } else { Ok(()) }
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "it has faults in tests only")]
    fn fault(&self) -> io::Result<()> {
        Ok(())
    }

    /// From now on it reports nothing but errors.
    #[cfg(test)]
    pub(crate) fn break_down(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }

    /// Where it is bound.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The address by which this socket reaches `remote`: an IPv6 socket reaches IPv4 by mapped addresses.
    pub(crate) fn reachable(&self, remote: SocketAddr) -> Option<SocketAddr> {
        match remote {
            _ if remote.port() == 0 => None,
            SocketAddr::V4(v4) if self.local.is_ipv6() => {
                Some(SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()))
            }
            SocketAddr::V6(_) if self.local.is_ipv4() => None,
            _ => Some(remote),
        }
    }

    /// Datagrams that one send may carry.
    pub(crate) fn max_segments(&self) -> usize {
        self.offload.max_gso_segments()
    }

    pub(crate) fn stats(&self) -> SocketStats {
        let Counters {
            sends,
            send_errors,
            sends_blocked,
            receptions,
            receive_errors,
            replacements,
            passing_on_failed,
        } = &*self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SocketStats {
            sends: read(sends),
            send_errors: read(send_errors),
            sends_blocked: read(sends_blocked),
            receptions: read(receptions),
            receive_errors: read(receive_errors),
            replacements: read(replacements),
            passing_on_failed: read(passing_on_failed),
        }
    }

    /// A datagram of another endpoint on the port could not be passed on.
    pub(crate) fn on_passing_on_failed(&self) {
        count(&self.counters.passing_on_failed);
    }

    /// Receives a batch; the number of receptions.
    ///
    /// # Errors
    /// What the system reported: see [`is_final`].
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut ReceiveBuffers,
    ) -> Poll<io::Result<usize>> {
        loop {
            let received = match self.fault() {
                Ok(()) => ready!(self.io.poll_read(cx, |socket| {
                    let value = buffers
                        .fill(|slices, metas| self.offload.recv(UdpSockRef::from(socket), slices, metas))?;
                    Ok(Taken { value, is_all: !buffers.is_full() })
                })),
                Err(error) => Err(error),
            };
            match received {
                Ok(receptions) => {
                    self.counters.receptions.fetch_add(receptions as u64, Ordering::Relaxed);
                    return Poll::Ready(Ok(receptions));
                }
                // The readiness was stale; it is cleared now.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    if count(&self.counters.receive_errors) {
                        tracing::warn!(%error, "the socket reports an error (further ones are logged as debug)");
                    } else {
                        tracing::debug!(%error, "the socket reports an error");
                    }
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    /// Sends what is left of `outgoing`. Pending when the system has no room: nothing is lost, and the task is
    /// woken when it has. Errors are counted and logged: the datagrams are lost as they might be on the way. False if the
    /// last of it was an error.
    pub(crate) fn poll_send(&self, cx: &mut Context<'_>, outgoing: &mut Outgoing) -> Poll<bool> {
        let mut is_sent = true;
        while let Some(transmit) = outgoing.next_send(self.max_segments()) {
            let socket = UdpSockRef::from(self.io.socket());
            let sent = self.fault().and_then(|()| self.offload.try_send(socket, &transmit));
            let (size, segmented) = (transmit.contents.len(), transmit.segment_size.is_some());
            match sent {
                Ok(()) => {
                    self.counters.sends.fetch_add(1, Ordering::Relaxed);
                    outgoing.sent += size;
                    is_sent = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.io.poll_writable(cx).is_pending() {
                        self.counters.sends_blocked.fetch_add(1, Ordering::Relaxed);
                        return Poll::Pending;
                    }
                }
                // The network card does not segment after all, which only a send tells: go on one by one.
                Err(_) if segmented && self.max_segments() == 1 => {}
                Err(error) => {
                    self.note_send_error(&error, outgoing);
                    outgoing.sent += size;
                    is_sent = quinn_udp::is_msg_size_err(&error);
                }
            }
        }
        Poll::Ready(is_sent)
    }

    fn note_send_error(&self, error: &io::Error, outgoing: &Outgoing) {
        let remote = outgoing.transmit.map(|transmit| transmit.remote);
        if quinn_udp::is_msg_size_err(error) {
            // What discovers the path's datagram size runs into this on purpose.
            self.counters.send_errors.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(?remote, "a datagram was too large for the network interface");
        } else if count(&self.counters.send_errors) {
            tracing::warn!(%error, ?remote, "a datagram was not sent (further ones are logged as debug)");
        } else {
            tracing::debug!(%error, ?remote, "a datagram was not sent");
        }
    }
}

/// A socket bound to an address that others are bound to, too (`SO_REUSEPORT`).
///
/// # Errors
/// What the system reported; always where it does not share datagrams among such sockets.
#[cfg(target_os = "linux")]
pub(crate) fn bind_shared(local: SocketAddr) -> io::Result<std::net::UdpSocket> {
    use socket2::{Domain, Protocol, Type};
    let socket = socket2::Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(true)?;
    socket.bind(&local.into())?;
    Ok(socket.into())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn bind_shared(_local: SocketAddr) -> io::Result<std::net::UdpSocket> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "only Linux shares a port's datagrams among several sockets",
    ))
}

/// Turns off the reception times that quinn-udp 0.6.3 asks the kernel for and that nobody here reads. With them,
/// the ancillary data of a GRO reception outgrows quinn-udp's buffer (96 bytes), and what the kernel then cuts off
/// is the ECN mark: ECN would fail validation as soon as datagrams arrive in batches.
#[cfg(target_os = "linux")]
fn stop_timestamps(socket: &std::net::UdpSocket) {
    use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns};
    if let Err(error) = setsockopt(socket, ReceiveTimestampns, &false) {
        tracing::debug!(%error, "reception times stay on; ECN marks may be lost");
    }
}

#[cfg(not(target_os = "linux"))]
fn stop_timestamps(_socket: &std::net::UdpSocket) {}

/// Datagrams for one peer on their way into the socket, in memory that is used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// The datagrams, one behind the other.
    pub(crate) buffer: Vec<u8>,
    /// Where they go; `None` if there is nothing.
    pub(crate) transmit: Option<Transmit>,
    /// Bytes that the system has taken.
    pub(crate) sent: usize,
}

impl Outgoing {
    /// What to give to the system next: as many whole segments as one send may carry.
    fn next_send(&self, max_segments: usize) -> Option<quinn_udp::Transmit<'_>> {
        let transmit = self.transmit.as_ref()?;
        let rest = self.buffer.get(self.sent..transmit.size).filter(|rest| !rest.is_empty())?;
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        let limit = segment * max_segments.min(MAX_SEND / segment).max(1);
        let contents = rest.get(..limit).unwrap_or(rest);
        // quinn-udp forbids fragmentation on every platform that can.
        // spec: rfc9000 14 not-fragmented, 14 dont-fragment
        Some(quinn_udp::Transmit {
            destination: transmit.remote,
            ecn: transmit.ecn.map(to_udp),
            contents,
            segment_size: (contents.len() > segment).then_some(segment),
            src_ip: transmit.local_ip,
        })
    }
}

fn to_udp(codepoint: EcnCodepoint) -> quinn_udp::EcnCodepoint {
    match codepoint {
        EcnCodepoint::Ect0 => quinn_udp::EcnCodepoint::Ect0,
        EcnCodepoint::Ect1 => quinn_udp::EcnCodepoint::Ect1,
        EcnCodepoint::Ce => quinn_udp::EcnCodepoint::Ce,
    }
}

/// The transport's name of a codepoint that was received.
pub(crate) fn from_udp(codepoint: quinn_udp::EcnCodepoint) -> EcnCodepoint {
    match codepoint {
        quinn_udp::EcnCodepoint::Ect0 => EcnCodepoint::Ect0,
        quinn_udp::EcnCodepoint::Ect1 => EcnCodepoint::Ect1,
        quinn_udp::EcnCodepoint::Ce => EcnCodepoint::Ce,
    }
}

/// True for errors after which nothing more can come of a socket: it is closed (`EBADF`, `ENOTSOCK`), or the runtime
/// stops, which no error number of the system says. All others concern a datagram, the network or the machine's state.
pub(crate) fn is_final(error: &io::Error) -> bool {
    match error.raw_os_error() {
        #[cfg(unix)]
        Some(number) => matches!(number, EBADF | ENOTSOCK),
        #[cfg(not(unix))]
        Some(number) => number == WSAENOTSOCK,
        None => true,
    }
}

#[cfg(unix)]
const EBADF: i32 = 9;
#[cfg(target_os = "linux")]
const ENOTSOCK: i32 = 88;
#[cfg(all(unix, not(target_os = "linux")))]
const ENOTSOCK: i32 = 38;
#[cfg(not(unix))]
const WSAENOTSOCK: i32 = 10_038;

#[cfg(test)]
mod replacement;
#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(size: usize, segment_size: Option<usize>) -> Outgoing {
        let remote = SocketAddr::from(([127, 0, 0, 1], 4433));
        let ecn = Some(EcnCodepoint::Ect0);
        let transmit = Transmit { remote, local_ip: None, ecn, size, segment_size };
        Outgoing { buffer: vec![7; size], transmit: Some(transmit), sent: 0 }
    }

    fn sends(mut outgoing: Outgoing, max_segments: usize) -> Vec<(usize, Option<usize>)> {
        let mut sends = Vec::new();
        while let Some(send) = outgoing.next_send(max_segments) {
            sends.push((send.contents.len(), send.segment_size));
            let size = send.contents.len();
            outgoing.sent += size;
        }
        sends
    }

    #[test]
    fn a_batch_is_cut_to_what_one_send_may_carry() {
        assert_eq!(sends(outgoing(1200, None), 64), [(1200, None)]);
        assert_eq!(sends(outgoing(3000, Some(1200)), 64), [(3000, Some(1200))]);
        assert_eq!(
            sends(outgoing(64 * 1452, Some(1452)), 64),
            [(45 * 1452, Some(1452)), (19 * 1452, Some(1452))]
        );
        assert_eq!(sends(outgoing(3000, Some(1200)), 1), [(1200, None), (1200, None), (600, None)]);
        assert_eq!(sends(outgoing(0, None), 64), []);
        assert_eq!(sends(Outgoing::default(), 64), []);
    }

    #[tokio::test]
    async fn addresses_are_made_fit_for_the_socket() {
        let v4 = Socket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let remote: SocketAddr = "127.0.0.1:443".parse().unwrap();
        assert_eq!(v4.reachable(remote), Some(remote));
        assert_eq!(v4.reachable("[::1]:443".parse().unwrap()), None);
        assert_eq!(v4.reachable("127.0.0.1:0".parse().unwrap()), None);
        let v6 = Socket::bind("[::1]:0".parse().unwrap()).unwrap();
        assert_eq!(v6.reachable(remote), Some("[::ffff:127.0.0.1]:443".parse().unwrap()));
    }

    /// Sends 20 marked datagrams with one call, and counts those that arrive marked.
    async fn marks_that_arrive(from: &str, to: &str) -> usize {
        let sender = Socket::bind(from.parse().unwrap()).unwrap();
        let receiver = Socket::bind(to.parse().unwrap()).unwrap();
        let mut outgoing = outgoing(20 * 1200, Some(1200));
        let port = receiver.local_addr().port();
        let remote = sender.local_addr().ip();
        if let Some(transmit) = &mut outgoing.transmit {
            transmit.remote = SocketAddr::new(remote, port);
        }
        std::future::poll_fn(|cx| sender.poll_send(cx, &mut outgoing)).await;
        let mut buffers = ReceiveBuffers::new();
        let (mut arrived, mut marked) = (0, 0);
        while arrived < 20 {
            std::future::poll_fn(|cx| receiver.poll_receive(cx, &mut buffers)).await.unwrap();
            for (meta, data) in buffers.receptions() {
                let datagrams = data.len().div_ceil(meta.stride);
                arrived += datagrams;
                marked += if meta.ecn == Some(quinn_udp::EcnCodepoint::Ect0) { datagrams } else { 0 };
            }
        }
        marked
    }

    #[tokio::test]
    async fn ecn_marks_survive_batches_in_both_address_families() {
        assert_eq!(marks_that_arrive("127.0.0.1:0", "127.0.0.1:0").await, 20);
        assert_eq!(marks_that_arrive("[::1]:0", "[::1]:0").await, 20);
        assert_eq!(
            marks_that_arrive("127.0.0.1:0", "[::]:0").await,
            20,
            "IPv4 to a socket for both families"
        );
    }

    #[test]
    fn a_socket_is_lost_only_when_it_is_closed() {
        for number in 1..=133 {
            let is_closed = [EBADF, ENOTSOCK].contains(&number);
            assert_eq!(is_final(&io::Error::from_raw_os_error(number)), is_closed, "{number}");
        }
        assert!(is_final(&io::Error::other("the runtime stops")));
    }

    #[test]
    fn outside_a_runtime_binding_says_what_is_missing() {
        let error = Socket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap_err();
        assert!(error.to_string().contains("tokio runtime"), "{error}");
    }
}
