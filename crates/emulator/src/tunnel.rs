//! A tunnel between two network namespaces, whose packets meet an emulated path.

mod address;
mod carrier;
mod checksum;
mod device;
mod error;
mod interface;
mod ip_packet;
mod log;
mod namespace;
mod netlink;
mod precision;
mod shared;
mod validity;

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use posthaste_path::{Path, PathConfig, PathStats};
use posthaste_units::{ByteCount, Rng};

use address::Block;
use carrier::Carrier;
use device::Devices;
use interface::{Interface, Rank};
use ip_packet::IpPacket;
use log::{Direction, LogWriter, PacketLog};
use namespace::NamespaceThread;
use shared::Shared;

use crate::clock::Clock;
use crate::lateness::Lateness;

pub use device::DeviceKind;
pub use error::TunnelError;
pub use namespace::{is_permitted, isolate};
pub use validity::{LATENESS_BOUND, Validity};

/// What the tunnel does to packets.
#[derive(Debug, Clone)]
pub struct TunnelConfig {
    /// Towards the namespace that the tunnel makes. Lengths are those of IP packets.
    pub down: PathConfig,
    /// Out of it.
    pub up: PathConfig,
    /// The lab's first link with this seed meets the same fates, packet by packet.
    pub seed: u64,
    /// What is at both ends; TUN devices where they can be made, and else pairs of virtual Ethernet interfaces, if
    /// nothing is given.
    pub device: Option<DeviceKind>,
}

/// One direction's counts.
#[derive(Debug, Clone, Default)]
pub struct DirectionReport {
    /// What the path has done.
    pub path: PathStats,
    /// Bytes waiting at the bottleneck now.
    pub queue: ByteCount,
    /// How late packets left compared with the model, the time that they waited to be read included.
    pub lateness: Lateness,
    /// Packets that interfaces dropped, which the model did not ask for.
    pub unaccounted: u64,
    /// Packets for an interface that somebody had taken down.
    pub undeliverable: u64,
    /// True if the system granted real-time scheduling.
    pub is_real_time: bool,
    /// Why the direction broke off, if it did.
    pub failure: Option<String>,
}

/// A tunnel's counts.
#[derive(Debug, Clone, Default)]
pub struct TunnelReport {
    /// Towards the tunnel's namespace.
    pub down: DirectionReport,
    /// Out of it.
    pub up: DirectionReport,
    /// Lines that the log lacks because the disk did not keep up.
    pub missing_lines: u64,
}

/// Both ends of a tunnel, and the addresses that they took.
type Ends = (Interface, Interface, Block);

/// Ends of this kind, one in the namespace of the calling thread.
fn ends(device: DeviceKind, namespace: &NamespaceThread, rank: Rank) -> Result<Ends, TunnelError> {
    let devices = Devices::of(device)?;
    let (far, block) = Interface::far(&devices)?;
    let near = namespace.run(move || Interface::near(&devices, block, rank))??;
    Ok((far, near, block))
}

/// Ends of the kind that can be made here.
fn any_ends(namespace: &NamespaceThread, rank: Rank) -> Result<(DeviceKind, Ends), TunnelError> {
    match ends(DeviceKind::Tun, namespace, rank) {
        Err(tun @ TunnelError::Device(_)) => match ends(DeviceKind::Veth, namespace, rank) {
            Ok(ends) => Ok((DeviceKind::Veth, ends)),
            Err(veth @ TunnelError::Pair { .. }) => {
                Err(TunnelError::NoDevice { tun: Box::new(tun), veth: Box::new(veth) })
            }
            Err(error) => Err(error),
        },
        result => Ok((DeviceKind::Tun, result?)),
    }
}

/// A network namespace whose only way out is an emulated path, which leads into the calling thread's namespace.
///
/// Nothing of it outlives this, or the process: interfaces and routes are bound to open files, the namespace to a
/// thread and to the processes that run in it.
#[derive(Debug)]
pub struct Tunnel {
    far: Arc<Interface>,
    near: Arc<Interface>,
    device: DeviceKind,
    addresses: (Ipv4Addr, Ipv4Addr),
    shared: Arc<Shared>,
    is_stopped: Arc<AtomicBool>,
    carriers: Vec<(Direction, JoinHandle<()>)>,
    log: Option<LogWriter>,
    namespace: Arc<NamespaceThread>,
}

impl Tunnel {
    /// Makes namespace, interfaces and routes, and carries packets from then on. `log` gets a line for each packet's
    /// arrival and fate, in CSV.
    ///
    /// It takes the right to make network namespaces: [`is_permitted`], or [`isolate`] before.
    ///
    /// # Errors
    /// A direction is out of its range, or the system permits something not.
    pub fn start(config: TunnelConfig, log: Option<Box<dyn Write + Send>>) -> Result<Self, TunnelError> {
        Self::into_namespace(Arc::new(NamespaceThread::start()?), Rank::First, config, log)
    }

    /// A second path into the same namespace: what leaves it goes this way when the first one is down
    /// ([`Self::take_down`], or `ip link set posthaste down` inside).
    ///
    /// # Errors
    /// As [`Self::start`]; there is one such path already.
    pub fn beside(&self, config: TunnelConfig) -> Result<Self, TunnelError> {
        Self::into_namespace(Arc::clone(&self.namespace), Rank::Second, config, None)
    }

    fn into_namespace(
        namespace: Arc<NamespaceThread>,
        rank: Rank,
        config: TunnelConfig,
        log: Option<Box<dyn Write + Send>>,
    ) -> Result<Self, TunnelError> {
        let mut rng = Rng::from_test_seed(config.seed);
        // The lab's runs give their first fork away (to TLS), the next two to the first link up and down. Taken in
        // the same order, the same seed draws the same fates there and here.
        let _ = rng.fork();
        let up = Path::<IpPacket>::new(config.up, rng.fork())?;
        let down = Path::<IpPacket>::new(config.down, rng.fork())?;
        let (device, (far, near, block)) = match config.device {
            Some(device) => (device, ends(device, &namespace, rank)?),
            None => any_ends(&namespace, rank)?,
        };
        let (writer, log) = log.map(LogWriter::start).transpose()?.unzip();
        let mut this = Self {
            far: Arc::new(far),
            near: Arc::new(near),
            device,
            addresses: (block.far(), block.near()),
            shared: Arc::default(),
            is_stopped: Arc::default(),
            carriers: Vec::new(),
            log: writer,
            namespace,
        };
        let clock = Clock::start();
        this.carry(Direction::Up, up, clock, log.clone())?;
        this.carry(Direction::Down, down, clock, log)?;
        Ok(this)
    }

    fn carry(
        &mut self,
        direction: Direction,
        path: Path<IpPacket>,
        clock: Clock,
        log: Option<PacketLog>,
    ) -> io::Result<()> {
        let (from, to, name) = match direction {
            Direction::Down => (&self.far, &self.near, "path down"),
            Direction::Up => (&self.near, &self.far, "path up"),
        };
        let carrier = Carrier {
            direction,
            path,
            from: Arc::clone(from),
            to: Arc::clone(to),
            clock,
            shared: Arc::clone(&self.shared),
            log,
            is_stopped: Arc::clone(&self.is_stopped),
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || carrier.run())?;
        self.carriers.push((direction, thread));
        Ok(())
    }

    /// What is at both ends.
    pub fn device(&self) -> DeviceKind {
        self.device
    }

    /// The address of the namespace that the tunnel leads to.
    pub fn far_address(&self) -> Ipv4Addr {
        self.addresses.0
    }

    /// The address of the tunnel's own namespace.
    pub fn near_address(&self) -> Ipv4Addr {
        self.addresses.1
    }

    /// Takes the interface inside down, as when a device loses its network. Packets under way to it are lost.
    ///
    /// # Errors
    /// The system does not permit it.
    pub fn take_down(&self) -> Result<(), TunnelError> {
        let near = Arc::clone(&self.near);
        self.namespace.run(move || near.take_down())?
    }

    /// Starts a process in the tunnel's namespace. One that asks to be told of its parent's end (`PR_SET_PDEATHSIG`)
    /// is told when the tunnel ends.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.namespace.run(move || command.spawn())?
    }

    /// Counts since the start.
    ///
    /// # Errors
    /// The system does not tell how many packets its interfaces dropped.
    pub fn report(&self) -> io::Result<TunnelReport> {
        self.count(false)
    }

    fn count(&self, is_over: bool) -> io::Result<TunnelReport> {
        let (far, near) = (self.far.losses(is_over)?, self.near.losses(is_over)?);
        let direction = |direction, dropped: u64, undeliverable: u64| {
            let counts = self.shared.counts(direction);
            DirectionReport {
                path: counts.stats,
                queue: counts.queue,
                lateness: counts.lateness.summary(),
                // What an interface refuses it also counts, but not for every reason.
                unaccounted: dropped.saturating_sub(counts.undeliverable).max(counts.refused),
                undeliverable: counts.undeliverable + undeliverable,
                is_real_time: counts.is_real_time,
                failure: counts.failure.clone(),
            }
        };
        Ok(TunnelReport {
            down: direction(Direction::Down, far.sent + near.received, near.undeliverable),
            up: direction(Direction::Up, near.sent + far.received, far.undeliverable),
            missing_lines: 0,
        })
    }

    /// Ends it and returns the final counts. Packets under way are dropped.
    ///
    /// # Errors
    /// As [`Self::report`], or the log could not be written.
    pub fn finish(mut self) -> io::Result<TunnelReport> {
        self.stop();
        let mut report = self.count(true)?;
        if let Some(log) = self.log.take() {
            report.missing_lines = log.finish()?;
        }
        Ok(report)
    }

    fn stop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        for (direction, carrier) in self.carriers.drain(..) {
            join(&self.shared, direction, carrier);
        }
    }
}

/// Waits for a direction's thread. One that has panicked has carried nothing since: that is a failure like others.
fn join(shared: &Shared, direction: Direction, carrier: JoinHandle<()>) {
    let Err(cause) = carrier.join() else { return };
    let text =
        cause.downcast_ref::<&str>().copied().or_else(|| cause.downcast_ref::<String>().map(String::as_str));
    let failure = format!("its thread has panicked: {}", text.unwrap_or("without a word"));
    tracing::error!(?direction, failure, "the emulated path breaks off");
    shared.counts(direction).failure = Some(failure);
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_is_a_failure_of_its_direction() {
        let shared = Shared::default();
        join(&shared, Direction::Up, std::thread::spawn(|| ()));
        assert_eq!(shared.counts(Direction::Up).failure, None);
        join(&shared, Direction::Down, std::thread::spawn(|| panic!("no packet has a length of {}", -1)));
        let failure = shared.counts(Direction::Down).failure.clone();
        assert_eq!(failure.as_deref(), Some("its thread has panicked: no packet has a length of -1"));
        assert_eq!(shared.counts(Direction::Up).failure, None);
    }
}
