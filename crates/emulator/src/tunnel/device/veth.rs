//! A pair of virtual Ethernet interfaces: one end in the namespace, one on the wire.
//!
//! Packets from the namespace are read at its own end; on the wire nobody takes them. Packets for it are sent on the wire.
//!
//! The end in the namespace is set so that its kernel hands over packets as a wire would have them: none is larger
//! than the MTU (no segmentation offload, which is the kernel's default here), and nobody asks for hardware addresses.
//! Checksums it leaves to the hardware all the same: `checksum` completes them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkAttribute};
use rtnetlink::{Handle, LinkUnspec, LinkVeth};

use super::frame_socket::{Inlet, Outlet, hardware_address};
use super::wire::{Look, Wire, take_up};
use super::{Device, Handed, Losses, TunnelError};
use crate::tunnel::netlink::index_of;

/// Bytes of an IP packet, at most.
const MTU: u32 = 1_500;

/// A pair whose one end is in the calling thread's namespace; `None` if the name is taken.
pub(super) async fn open(
    wire: &Arc<Wire>,
    netlink: &Handle,
    name: &str,
    end: &'static str,
) -> Result<Option<Box<dyn Device>>, TunnelError> {
    let failed = |what| move |error: rtnetlink::Error| TunnelError::Pair { what, why: error.to_string() };
    let other = LinkUnspec::new_with_name(end)
        .address(hardware_address(false).to_vec())
        .mtu(MTU)
        .setns_by_fd(wire.descriptor())
        .build();
    let pair = LinkVeth::new(name, end)
        .address(hardware_address(true).to_vec())
        .mtu(MTU)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(other)))
        .build();
    match netlink.link().add(pair).execute().await {
        // Somebody else's, made at the same time.
        Err(_) if index_of(name).is_some() => return Ok(None),
        result => result.map_err(failed("a pair of veth"))?,
    }
    let end = End { wire: Arc::clone(wire), name: end };
    let plain = LinkUnspec::new_with_name(name)
        .arp(false)
        .append_extra_attribute(LinkAttribute::GsoMaxSegs(1))
        .build();
    netlink.link().set(plain).execute().await.map_err(failed("a veth without offloads"))?;
    let no_socket =
        |error: io::Error| TunnelError::Pair { what: "an AF_PACKET socket", why: error.to_string() };
    let outlet = Outlet::of(name).map_err(no_socket)?;
    let inlet = end.inlet()?.map_err(no_socket)?;
    let counted = Mutex::new(Counted { last: wire.look(end.name)?, ..Counted::default() });
    Ok(Some(Box::new(Veth { outlet, inlet, end, counted })))
}

/// The wire's end of a pair, which takes the other one along when it is dropped.
#[derive(Debug)]
struct End {
    wire: Arc<Wire>,
    name: &'static str,
}

impl End {
    /// Takes it up. The other end is not up yet.
    fn inlet(&self) -> Result<io::Result<Inlet>, TunnelError> {
        let name = self.name;
        self.wire.run(move || {
            take_up(name)?;
            Ok(Inlet::at(name))
        })?
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // Without this it would go with its namespace, but later.
        if let Err(error) = self.wire.remove(self.name) {
            tracing::debug!(%error, "an interface goes with its namespace");
        }
    }
}

/// The pair.
#[derive(Debug)]
struct Veth {
    outlet: Outlet,
    inlet: Inlet,
    end: End,
    counted: Mutex<Counted>,
}

impl Veth {
    /// Frames from the namespace that the interface has counted and the socket has not got. There is nobody else who
    /// reads it.
    fn missed(&self) -> io::Result<u64> {
        // The socket has each before it is counted.
        let sent = self.end.wire.look(self.end.name)?.received;
        self.outlet.drain()?;
        Ok(sent.saturating_sub(self.outlet.received()))
    }
}

impl Device for Veth {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.outlet.receive(buffer)
    }

    fn send(&self, packet: &[u8]) -> Handed {
        self.inlet.send(packet)
    }

    fn losses(&self, interface: Losses, is_over: bool) -> io::Result<Losses> {
        // The kernel tells of an overflow with the next frame, and there may be none.
        let missed = if is_over { self.missed()? } else { 0 };
        let now = self.end.wire.look(self.end.name)?;
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.see(now);
        Ok(Losses {
            sent: interface.sent + self.outlet.overflowed().max(missed),
            // Some drops both ends count.
            received: interface.received.max(counted.dropped),
            undeliverable: counted.undeliverable,
        })
    }
}

impl AsFd for Veth {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.outlet.as_fd()
    }
}

/// What is known from looking at the wire's end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counted {
    last: Look,
    /// Frames that did not reach the namespace although the interface there was up.
    dropped: u64,
    /// Frames that did not reach the namespace because it was down.
    undeliverable: u64,
}

impl Counted {
    /// The kernel counts both together: if it was down at some time between two looks, all that was lost between them
    /// was lost by that.
    fn see(&mut self, now: Look) {
        let news = now.dropped.saturating_sub(self.last.dropped);
        let was_down = !self.last.has_carrier || now.downs != self.last.downs;
        *(if was_down { &mut self.undeliverable } else { &mut self.dropped }) += news;
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_while_it_is_down_is_told_apart() {
        let mut counted = Counted::default();
        let mut see = |dropped, has_carrier, downs| {
            counted.see(Look { received: 0, dropped, has_carrier, downs });
            (counted.dropped, counted.undeliverable)
        };
        assert_eq!(see(0, true, 1), (0, 0));
        assert_eq!(see(2, true, 1), (2, 0), "up all the time");
        assert_eq!(see(5, false, 2), (2, 3), "it went down");
        assert_eq!(see(6, true, 2), (2, 4), "it was down until now");
        assert_eq!(see(7, true, 2), (3, 4));
        assert_eq!(see(9, true, 3), (3, 6), "down and up again");
    }
}
