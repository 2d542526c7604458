//! A path between a client and a server that can break: userspace UDP with a rate, a delay, outages and a NAT.

use std::collections::{BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Result;

/// One way.
pub(super) const DELAY: Duration = Duration::from_millis(10);
/// Bytes per second to the client.
const RATE: u64 = 1_000_000;
/// Bytes that wait at most.
const QUEUE: usize = 100_000;
/// Between two looks at the sockets.
const TICK: Duration = Duration::from_micros(200);

/// What it does behind each connection's first flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trick {
    Nothing,
    /// The client seems to come from another port from then on, and answers to the old one are lost.
    Moves,
    /// Version negotiations that the server has not sent reach the client first.
    ForgesVersions,
}

/// A path for one client; it ends with this.
pub(super) struct Path {
    /// Where the client connects.
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Shared {
    began: Instant,
    is_out: AtomicBool,
    is_over: AtomicBool,
    /// When the first datagram passed after the last outage, in nanoseconds since `began`; 0 for none.
    first: AtomicU64,
    /// How many first flights have come.
    flights: AtomicU64,
}

/// A socket that leads to the server.
fn socket_to(server: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl Path {
    pub(super) fn to(server: SocketAddr) -> Result<Self> {
        Self::with(Trick::Nothing, server)
    }

    pub(super) fn with(trick: Trick, server: SocketAddr) -> Result<Self> {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        front.set_nonblocking(true)?;
        let back = socket_to(server)?;
        let address = front.local_addr()?;
        let shared = Arc::new(Shared {
            began: Instant::now(),
            is_out: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            first: AtomicU64::new(0),
            flights: AtomicU64::new(0),
        });
        let theirs = Arc::clone(&shared);
        let thread = Some(std::thread::spawn(move || forward(&front, back, trick, &theirs)));
        Ok(Self { address, shared, thread })
    }

    /// Begins an outage: what is on the way is lost, too.
    pub(super) fn break_off(&self) {
        self.shared.is_out.store(true, Ordering::Relaxed);
    }

    /// Ends it; when.
    pub(super) fn mend(&self) -> Instant {
        self.shared.first.store(0, Ordering::Relaxed);
        self.shared.is_out.store(false, Ordering::Relaxed);
        Instant::now()
    }

    /// How many connections have begun.
    pub(super) fn flights(&self) -> u64 {
        self.shared.flights.load(Ordering::Relaxed)
    }

    /// When the first datagram came through after that.
    pub(super) fn first_sign(&self) -> Option<Instant> {
        let nanos = self.shared.first.load(Ordering::Relaxed);
        (nanos > 0).then(|| self.shared.began + Duration::from_nanos(nanos))
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Datagrams on the way in one direction.
struct Direction {
    waiting: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    free_at: Instant,
    rate: u64,
}

impl Direction {
    fn new(rate: u64) -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, free_at: Instant::now(), rate }
    }

    fn put(&mut self, datagram: &[u8]) {
        if self.bytes + datagram.len() > QUEUE {
            return;
        }
        let length = datagram.len() as u64;
        self.free_at =
            self.free_at.max(Instant::now()) + Duration::from_nanos(length * 1_000_000_000 / self.rate);
        self.bytes += datagram.len();
        self.waiting.push_back((self.free_at + DELAY, datagram.to_vec()));
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        self.waiting.front().filter(|(at, _)| *at <= Instant::now())?;
        let (_, datagram) = self.waiting.pop_front()?;
        self.bytes -= datagram.len();
        Some(datagram)
    }
}

/// Destination and source ID of a client's first packet (RFC 9000 section 17.2.2), of version 1.
pub(super) fn initial(datagram: &[u8]) -> Option<[&[u8]; 2]> {
    let (&[first, 0, 0, 0, 1], rest) = datagram.split_first_chunk()? else { return None };
    let (&length, rest) = rest.split_first()?;
    let (destination, rest) = rest.split_at_checked(length.into())?;
    let (&length, rest) = rest.split_first()?;
    (first & 0xf0 == 0xc0).then_some([destination, rest.get(..length.into())?])
}

/// Version negotiations (RFC 9000 section 17.2.1) to the client with these IDs: with another destination, with another source,
/// and one that names version 1, which the client has.
fn forged([destination, source]: [&[u8]; 2]) -> [Vec<u8>; 3] {
    let other = [0x5a; 8];
    let negotiation = |to: &[u8], from: &[u8], versions: &[u8]| {
        [&[0xc0, 0, 0, 0, 0, to.len() as u8], to, &[from.len() as u8], from, versions].concat()
    };
    let unknown = [0xfa, 0xce, 0xb0, 0x0c];
    [
        negotiation(&other, destination, &unknown),
        negotiation(source, &other, &unknown),
        negotiation(source, destination, &[0, 0, 0, 1]),
    ]
}

fn forward(front: &UdpSocket, mut back: UdpSocket, trick: Trick, shared: &Shared) {
    let (mut up, mut down) = (Direction::new(RATE), Direction::new(RATE));
    let (mut client, mut clients, mut is_moving) = (None, BTreeSet::new(), false);
    let mut buffer = vec![0; 65_536];
    while !shared.is_over.load(Ordering::Relaxed) {
        loop {
            match front.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    client = Some(from);
                    let datagram = buffer.get(..length).unwrap_or_default();
                    // A client's own ID stays the same while it shakes hands.
                    if let Some(ids) = initial(datagram).filter(|ids| clients.insert(ids[1].to_vec())) {
                        shared.flights.fetch_add(1, Ordering::Relaxed);
                        is_moving = trick == Trick::Moves;
                        for datagram in forged(ids).iter().filter(|_| trick == Trick::ForgesVersions) {
                            let _ = front.send_to(datagram, from);
                        }
                    }
                    up.put(datagram);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // A report about a datagram that nobody took.
                Err(_) => {}
            }
        }
        while let Ok(length) = back.recv(&mut buffer) {
            if std::mem::take(&mut is_moving)
                && let Ok(server) = back.peer_addr()
                && let Ok(other) = socket_to(server)
            {
                back = other;
                break;
            }
            down.put(buffer.get(..length).unwrap_or_default());
        }
        let is_out = shared.is_out.load(Ordering::Relaxed);
        let pass = || {
            if !is_out && shared.first.load(Ordering::Relaxed) == 0 {
                shared.first.store(shared.began.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
            !is_out
        };
        while let Some(datagram) = up.take() {
            if pass() {
                let _ = back.send(&datagram);
            }
        }
        while let Some(datagram) = down.take() {
            if let (true, Some(client)) = (pass(), client) {
                let _ = front.send_to(&datagram, client);
            }
        }
        std::thread::sleep(TICK);
    }
}
