//! A path between a client and a server that can break: userspace UDP with a rate, a delay and outages.

use std::collections::VecDeque;
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
}

impl Path {
    pub(super) fn to(server: SocketAddr) -> Result<Self> {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let back = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        back.connect(server)?;
        front.set_nonblocking(true)?;
        back.set_nonblocking(true)?;
        let address = front.local_addr()?;
        let shared = Arc::new(Shared {
            began: Instant::now(),
            is_out: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            first: AtomicU64::new(0),
        });
        let theirs = Arc::clone(&shared);
        let thread = Some(std::thread::spawn(move || forward(&front, &back, &theirs)));
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

fn forward(front: &UdpSocket, back: &UdpSocket, shared: &Shared) {
    let (mut up, mut down) = (Direction::new(RATE), Direction::new(RATE));
    let mut client = None;
    let mut buffer = vec![0; 65_536];
    while !shared.is_over.load(Ordering::Relaxed) {
        loop {
            match front.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    client = Some(from);
                    up.put(buffer.get(..length).unwrap_or_default());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // A report about a datagram that nobody took.
                Err(_) => {}
            }
        }
        while let Ok(length) = back.recv(&mut buffer) {
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
