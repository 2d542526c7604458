//! An end of a tunnel: an interface with its addresses and routes, and what the kernel counts for it.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use futures::TryStreamExt;
use rtnetlink::packet_route::address::{AddressAttribute, AddressMessage};
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};

use super::address::{Block, candidates};
use super::device::{Device, Devices, Handed, Losses};
use super::error::TunnelError;
use super::netlink::{index_of, loopback_up, prefer, with_netlink};

/// Packets that may wait in an interface until they are read: 20 ms of small packets at the most that a TUN device
/// can do. The usual 500 are less than what one window of a fast sender brings at once.
const QUEUE_PACKETS: u32 = 8_192;

/// The interfaces' names inside, by rank; those that lead to other tunnels have a number.
const NEAR_NAMES: [&str; 2] = ["posthaste", "posthaste-2nd"];

/// What the way out costs in the kernel's eyes, for each rank beyond the first: the cheapest is taken.
const METRIC: u32 = 100;

/// What lets a namespace pass on packets that are not for itself.
const FORWARD: &str = "net/ipv4/ip_forward";

/// Which of a namespace's ways out a tunnel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// The one that is taken while it is there.
    First,
    /// The one that is taken when the first is not.
    Second,
}

/// An end of a tunnel. It is gone when this is.
#[derive(Debug)]
pub(super) struct Interface {
    device: Box<dyn Device>,
    name: String,
    /// `/proc/thread-self/net/dev` of its namespace.
    counters: File,
}

impl Interface {
    /// A tunnel's far end, in the namespace of the calling thread, and the block that it took.
    pub(super) fn far(devices: &Devices) -> Result<(Self, Block), TunnelError> {
        with_netlink(async |netlink| {
            let around = surrounding(&netlink).await?;
            loopback_up(&netlink).await?;
            let blocks = candidates(around);
            for (index, &block) in blocks.iter().enumerate() {
                let name = format!("{}{index}", NEAR_NAMES[0]);
                let Some(device) = devices.open(&netlink, &name, "far").await? else { continue };
                let this = Self::with_device(device, name)?;
                this.set_up(&netlink, block.far(), block).await?;
                if around.is_some() && !is_forwarding() {
                    tracing::warn!(
                        "what leaves this path gets no further than {}: the namespace around it does not forward \
                         (net.ipv4.ip_forward is 0). The path around could not set it, as where a container has \
                         /proc/sys read-only; run both where it may be written",
                        block.far()
                    );
                }
                return Ok((this, block));
            }
            Err(TunnelError::Full { taken: blocks.len() })
        })
    }

    /// The near end of the tunnel with this block, and a way out of the calling thread's namespace.
    pub(super) fn near(devices: &Devices, block: Block, rank: Rank) -> Result<Self, TunnelError> {
        with_netlink(async |netlink| {
            loopback_up(&netlink).await?;
            let name = NEAR_NAMES[rank as usize];
            let taken = || io::Error::new(io::ErrorKind::AlreadyExists, format!("there is a {name} already"));
            let device = devices.open(&netlink, name, "near").await?.ok_or_else(taken)?;
            let this = Self::with_device(device, name.to_owned())?;
            this.set_up(&netlink, block.near(), block).await?;
            let mut route = RouteMessageBuilder::<Ipv4Addr>::new().gateway(block.far());
            if rank == Rank::Second {
                route = route.priority(METRIC);
            }
            netlink
                .route()
                .add(route.build())
                .execute()
                .await
                .map_err(TunnelError::interface("the way out"))?;
            // For tunnels that are started inside: their way out leads through here.
            prefer(FORWARD, "1");
            Ok(this)
        })
    }

    fn with_device(device: Box<dyn Device>, name: String) -> io::Result<Self> {
        Ok(Self { device, name, counters: File::open("/proc/thread-self/net/dev")? })
    }

    /// For the thread that is in its namespace.
    fn index(&self) -> Result<u32, TunnelError> {
        index_of(&self.name)
            .ok_or_else(|| TunnelError::Interface { what: "an interface", why: "it is gone".to_owned() })
    }

    async fn set_up(&self, netlink: &Handle, address: Ipv4Addr, block: Block) -> Result<(), TunnelError> {
        // Before it is up, or the kernel asks for routers.
        prefer(&format!("net/ipv6/conf/{}/disable_ipv6", self.name), "1");
        let index = self.index()?;
        let link = LinkUnspec::new_with_index(index).txqueuelen(QUEUE_PACKETS).up().build();
        netlink.link().set(link).execute().await.map_err(TunnelError::interface("an interface"))?;
        netlink
            .address()
            .add(index, address.into(), block.prefix())
            .execute()
            .await
            .map_err(TunnelError::interface("an address"))?;
        // What a device has lost before it was up is no loss.
        self.losses(false)?;
        Ok(())
    }

    /// Takes it down, and with it all routes that lead through it. For the thread that is in its namespace.
    pub(super) fn take_down(&self) -> Result<(), TunnelError> {
        with_netlink(async |netlink| {
            let index = self.index()?;
            let link = LinkUnspec::new_with_index(index).down().build();
            netlink.link().set(link).execute().await.map_err(TunnelError::interface("an interface down"))
        })
    }

    /// The next packet that the namespace has sent, or `None` if there is none now.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.device.receive(buffer)
    }

    /// Hands a packet to the namespace.
    pub(super) fn send(&self, packet: &[u8]) -> Handed {
        self.device.send(packet)
    }

    /// What it did not pass on since it was made. If `is_over` nobody else receives from it any more.
    pub(super) fn losses(&self, is_over: bool) -> io::Result<Losses> {
        let text = whole(&self.counters)?;
        let interface = losses_of(&String::from_utf8_lossy(&text), &self.name);
        self.device
            .losses(interface.ok_or_else(|| io::Error::other("the system does not count packets"))?, is_over)
    }
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Whether the calling thread's namespace passes on what is not for itself; true where nobody knows.
fn is_forwarding() -> bool {
    std::fs::read_to_string(format!("/proc/sys/{FORWARD}")).map_or(true, |value| value.trim() != "0")
}

/// All that a file of the kernel's has to say: of a list it gives no more than a page at once, some thirty interfaces.
fn whole(file: &impl FileExt) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut page = [0; 4 << 10];
    loop {
        match file.read_at(&mut page, text.len() as u64) {
            Ok(0) => return Ok(text),
            Ok(length) => text.extend_from_slice(&page[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Finds the line of an interface in `/proc/net/dev`: eight figures of what was received (bytes,
/// packets, errors, drops, ...), then the same of what was sent.
fn losses_of(text: &str, name: &str) -> Option<Losses> {
    let (_, figures) =
        text.lines().filter_map(|line| line.split_once(':')).find(|(found, _)| found.trim() == name)?;
    let figures: Vec<u64> = figures.split_whitespace().map_while(|figure| figure.parse().ok()).collect();
    let lost = |first: usize| Some(figures.get(first + 2)? + figures.get(first + 3)?);
    Some(Losses { received: lost(0)?, sent: lost(8)?, undeliverable: 0 })
}

/// The block whose near end is in this namespace.
async fn surrounding(netlink: &Handle) -> Result<Option<Block>, TunnelError> {
    let mut addresses = netlink.address().get().execute();
    while let Some(message) = addresses.try_next().await.map_err(TunnelError::interface("addresses"))? {
        if let Some(block) = block_of(&message) {
            return Ok(Some(block));
        }
    }
    Ok(None)
}

fn block_of(message: &AddressMessage) -> Option<Block> {
    message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(std::net::IpAddr::V4(address)) => {
            Block::of_near_end(*address, message.header.prefix_len)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        let text = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0
posthaste0: 5000      50    1    2    0     0          0         0     7000      70    3    4    0     0       0          0
";
        assert_eq!(losses_of(text, "posthaste0"), Some(Losses { received: 3, sent: 7, undeliverable: 0 }));
        assert_eq!(losses_of(text, "lo"), Some(Losses::default()));
        assert_eq!(losses_of(text, "posthaste"), None);
    }

    /// A file that gives a page at most at once.
    struct Paged(Vec<u8>);

    impl FileExt for Paged {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let rest = &self.0[offset as usize..];
            let length = rest.len().min(buffer.len()).min(4_000);
            buffer[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        }

        fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    #[test]
    fn the_last_of_many_interfaces_is_found() {
        let lines = (0..200).map(|index| format!("veth{index}: 5000 50 1 2 0 0 0 0 7000 70 3 4 0 0 0 0\n"));
        let file = Paged(lines.collect::<String>().into_bytes());
        let text = String::from_utf8(whole(&file).unwrap()).unwrap();
        assert_eq!(losses_of(&text, "veth199"), Some(Losses { received: 3, sent: 7, undeliverable: 0 }));
    }
}
