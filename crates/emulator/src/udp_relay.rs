//! A UDP relay that impairs both directions.
//!
//! Every client address has an upstream socket and a pair of directions of its own, as if it came over an access
//! link of its own; the server sees one port a client. A thread of its own carries the packets, so that neither an
//! async runtime's timer nor its other tasks hold them up.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use posthaste_path::{PathConfig, PathStats};

use crate::lateness::{Lateness, LatenessHistogram};
use crate::outage::Outage;
use crate::relay::Relay;
use crate::system::{Waker, waker};

/// What to relay and how.
#[derive(Debug, Clone)]
pub struct RelayConfig {
    /// Where clients send to; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The server.
    pub upstream: SocketAddr,
    /// From the server to each client. Lengths are those of IP packets: 28 bytes more than a UDP payload (IPv6: 48).
    pub down: PathConfig,
    /// From each client to the server.
    pub up: PathConfig,
    /// Two relays with the same seed that see the same packets at the same times treat them alike. Times count from
    /// each client's first packet. The first client meets what it would meet in the lab in a run with this seed.
    pub seed: u64,
    /// Clients at once; packets of further ones are dropped and counted.
    pub max_clients: usize,
}

/// Counts since the start, summed over clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RelayStats {
    /// From servers to clients.
    pub down: PathStats,
    /// From clients to servers.
    pub up: PathStats,
    /// Clients that were given a place.
    pub clients: u64,
    /// Packets dropped because all places were taken.
    pub refused: u64,
    /// Packets that a socket did not take or give (a full buffer, a dead server).
    pub socket_errors: u64,
    /// Packets that the system dropped before the relay could read them, where the system tells (Linux): losses that
    /// the model did not ask for.
    pub missed: u64,
    /// How late packets left, compared with the model.
    pub lateness: Lateness,
}

/// What the relay's thread and its handle share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) is_stopped: AtomicBool,
    counts: Mutex<Counts>,
}

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) stats: RelayStats,
    pub(crate) lateness: LatenessHistogram,
    /// The longest of each client, of as many clients as the relay may have at once.
    pub(crate) outages: BTreeMap<SocketAddr, Outage>,
}

impl Shared {
    /// Counts stay whole even if a thread panicked while it held them: every update is a plain addition.
    pub(crate) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running relay; dropping it stops it.
#[derive(Debug)]
pub struct UdpRelay {
    local_addr: SocketAddr,
    shared: Arc<Shared>,
    waker: Option<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl UdpRelay {
    /// Binds `config.listen` and relays from then on.
    ///
    /// # Errors
    /// The address cannot be bound, no thread can be started, or a [`PathConfig`] is out of range (`InvalidInput`).
    #[expect(
        clippy::unused_async,
        reason = "where it binds is no business of its callers, who are all async"
    )]
    pub async fn start(config: RelayConfig) -> io::Result<Self> {
        let (waker, waiter) = waker()?;
        let counts = Counts {
            stats: RelayStats::default(),
            lateness: LatenessHistogram::new(),
            outages: BTreeMap::new(),
        };
        let shared = Arc::new(Shared { is_stopped: AtomicBool::new(false), counts: Mutex::new(counts) });
        let relay = Relay::new(config, waiter, Arc::clone(&shared))?;
        let local_addr = relay.local_addr()?;
        let thread = std::thread::Builder::new().name("udp relay".to_owned()).spawn(move || relay.run())?;
        Ok(Self { local_addr, shared, waker: Some(waker), thread: Some(thread) })
    }

    /// Where clients send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Counts since the start.
    pub fn stats(&self) -> RelayStats {
        let counts = self.shared.counts();
        RelayStats { lateness: counts.lateness.summary(), ..counts.stats }
    }

    /// How late packets left, to be merged with that of other relays.
    pub fn lateness(&self) -> LatenessHistogram {
        self.shared.counts().lateness.clone()
    }

    /// The longest outage of each client that met one of at least two seconds, by address. Once there are
    /// [`RelayConfig::max_clients`] of them, further clients' are not recorded.
    pub fn outages(&self) -> Vec<Outage> {
        self.shared.counts().outages.values().copied().collect()
    }

    /// Stops, drops what is under way, and returns the final counts once every socket is closed. It waits for the
    /// relay's thread, a matter of microseconds.
    #[expect(clippy::unused_async, reason = "the counterpart of `start`")]
    pub async fn shutdown(mut self) -> RelayStats {
        self.stop();
        self.stats()
    }

    fn stop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        drop(self.waker.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the relay's thread has panicked");
        }
    }
}

impl Drop for UdpRelay {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
#[path = "udp_relay_tests.rs"]
mod tests;
