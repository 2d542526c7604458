//! Sockets that are queues in memory, in place of `src/socket.rs`. A queue is short: who sends waits until there is room,
//! as for the system's send buffer, and nothing is lost.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use posthaste_transport::{EcnCodepoint, Transmit};
use quinn_udp::RecvMeta;

use crate::concurrency::{Mutex, MutexGuard};
use crate::receive_buffers::ReceiveBuffers;

/// Datagrams that a queue takes.
const ROOM: usize = 3;

thread_local! {
    /// The queues of one schedule's sockets.
    static QUEUES: RefCell<BTreeMap<SocketAddr, Arc<Mutex<Queue>>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Forgets all sockets.
pub(crate) fn reset() {
    QUEUES.take();
}

/// From now on the socket at this address reports that it is closed.
pub(crate) fn break_down(local: SocketAddr) {
    let queue = QUEUES.with_borrow(|queues| queues.get(&local).cloned()).expect("a socket");
    let reader = {
        let mut queue = lock(&queue);
        queue.is_broken = true;
        queue.reader.take()
    };
    reader.into_iter().for_each(Waker::wake);
}

/// What is on its way to one socket.
#[derive(Debug, Default)]
struct Queue {
    datagrams: VecDeque<(SocketAddr, Vec<u8>)>,
    reader: Option<Waker>,
    writers: Vec<Waker>,
    is_broken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketStats {
    pub sends_blocked: u64,
}

#[derive(Debug)]
pub(crate) struct Socket {
    local: SocketAddr,
    incoming: Arc<Mutex<Queue>>,
}

#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) buffer: Vec<u8>,
    pub(crate) transmit: Option<Transmit>,
    pub(crate) sent: usize,
}

impl Socket {
    pub(crate) fn bind(local: SocketAddr) -> io::Result<Self> {
        let incoming = Arc::<Mutex<Queue>>::default();
        QUEUES.with_borrow_mut(|queues| queues.insert(local, Arc::clone(&incoming)));
        Ok(Self { local, incoming })
    }

    pub(crate) fn adopt(_socket: std::net::UdpSocket, _is_shared: bool) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn stand_in(&self) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn take_place(&self) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn reachable(&self, remote: SocketAddr) -> Option<SocketAddr> {
        Some(remote)
    }

    pub(crate) fn max_segments(&self) -> usize {
        4
    }

    pub(crate) fn stats(&self) -> SocketStats {
        SocketStats::default()
    }

    pub(crate) fn on_passing_on_failed(&self) {}

    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut ReceiveBuffers,
    ) -> Poll<io::Result<usize>> {
        let mut queue = lock(&self.incoming);
        if queue.is_broken {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        if queue.datagrams.is_empty() {
            queue.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let meta = |addr, len| {
            let mut meta = RecvMeta::default();
            (meta.addr, meta.len, meta.stride) = (addr, len, len);
            meta
        };
        buffers.0 = queue.datagrams.drain(..).map(|(from, data)| (meta(from, data.len()), data)).collect();
        let writers = std::mem::take(&mut queue.writers);
        drop(queue);
        writers.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(buffers.0.len()))
    }

    pub(crate) fn poll_send(&self, cx: &mut Context<'_>, outgoing: &mut Outgoing) -> Poll<bool> {
        let Some(transmit) = outgoing.transmit else { return Poll::Ready(true) };
        let target = QUEUES.with_borrow(|queues| queues.get(&transmit.remote).cloned());
        let Some(target) = target else { return Poll::Ready(true) };
        while outgoing.sent < transmit.size {
            let mut queue = lock(&target);
            if queue.datagrams.len() >= ROOM {
                queue.writers.push(cx.waker().clone());
                return Poll::Pending;
            }
            let end = transmit.size.min(outgoing.sent + transmit.segment_size.unwrap_or(transmit.size));
            queue.datagrams.push_back((self.local, outgoing.buffer[outgoing.sent..end].to_vec()));
            outgoing.sent = end;
            let reader = queue.reader.take();
            drop(queue);
            reader.into_iter().for_each(Waker::wake);
        }
        Poll::Ready(true)
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn from_udp(_codepoint: quinn_udp::EcnCodepoint) -> EcnCodepoint {
    EcnCodepoint::Ect0
}

pub(crate) fn is_final(_error: &io::Error) -> bool {
    true
}
