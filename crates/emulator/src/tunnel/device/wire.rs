//! The namespace between a tunnel's two ends, if they are of the kind that has another end.
//!
//! Nothing in it has an address, nothing is forwarded in it: the kernel's own protocols have no part in it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use futures::TryStreamExt;
use rtnetlink::LinkUnspec;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};

use crate::tunnel::error::TunnelError;
use crate::tunnel::namespace::NamespaceThread;
use crate::tunnel::netlink::{index_of, prefer, with_netlink};

/// A namespace that nothing but a thread of this process and what was opened there hold.
#[derive(Debug)]
pub(in crate::tunnel) struct Wire {
    thread: NamespaceThread,
    /// For the kernel, which is to put interfaces into it.
    handle: File,
}

/// What the kernel says of an interface in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// Frames that have come from the other end.
    pub(super) received: u64,
    /// Frames that did not get to the other end.
    pub(super) dropped: u64,
    /// True if the other end is up.
    pub(super) has_carrier: bool,
    /// How often the other end has gone down.
    pub(super) downs: u32,
}

impl Wire {
    pub(super) fn start() -> Result<Self, TunnelError> {
        let thread = NamespaceThread::start()?;
        let handle = thread.run(|| {
            // Its interfaces would look for neighbours and routers at the other ends.
            for which in ["all", "default"] {
                prefer(&format!("net/ipv6/conf/{which}/disable_ipv6"), "1");
            }
            File::open("/proc/thread-self/ns/net")
        })??;
        Ok(Self { thread, handle })
    }

    /// Names it to the kernel.
    pub(super) fn descriptor(&self) -> RawFd {
        self.handle.as_raw_fd()
    }

    /// What `job` returns when it has been run there.
    pub(super) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        self.thread.run(job)
    }

    /// What the kernel has counted since the interface was made.
    pub(super) fn look(&self, name: &'static str) -> io::Result<Look> {
        let look = self.run(move || {
            with_netlink(async |netlink| {
                let request = netlink.link().get().match_name(name);
                let message = std::pin::pin!(request.execute()).try_next().await;
                let message = message.map_err(TunnelError::interface("what interfaces have counted"))?;
                Ok(message.as_ref().map(Look::from).unwrap_or_default())
            })
        })?;
        look.map_err(io::Error::other)
    }

    /// Removes an interface, and with it its other end.
    pub(super) fn remove(&self, name: &'static str) -> io::Result<()> {
        let removed = self.run(move || {
            with_netlink(async |netlink| {
                let Some(index) = index_of(name) else { return Ok(()) };
                netlink
                    .link()
                    .del(index)
                    .execute()
                    .await
                    .map_err(TunnelError::interface("an interface's end"))
            })
        })?;
        removed.map_err(io::Error::other)
    }
}

/// Takes an interface of the calling thread's namespace up.
pub(super) fn take_up(name: &'static str) -> Result<(), TunnelError> {
    with_netlink(async |netlink| {
        let link = LinkUnspec::new_with_name(name).arp(false).up().build();
        netlink.link().set(link).execute().await.map_err(TunnelError::interface("the wire"))
    })
}

impl From<&LinkMessage> for Look {
    fn from(message: &LinkMessage) -> Self {
        let mut look = Self::default();
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::Stats64(counts) => {
                    look.received = counts.rx_packets;
                    look.dropped = counts.tx_dropped + counts.tx_errors;
                }
                LinkAttribute::Carrier(carrier) => look.has_carrier = *carrier != 0,
                LinkAttribute::CarrierDownCount(downs) => look.downs = *downs,
                _ => {}
            }
        }
        look
    }
}
