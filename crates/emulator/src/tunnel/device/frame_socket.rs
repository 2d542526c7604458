//! IP packets as Ethernet frames: an `AF_PACKET` socket at an interface.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvmsg,
    sendmsg, setsockopt, socket, sockopt,
};

use super::Handed;
use crate::tunnel::checksum;

/// Destination, source, type of content (RFC 894).
const HEADER: usize = 14;

/// Types of content (IANA, IEEE 802 numbers).
const IPV4: [u8; 2] = 0x0800_u16.to_be_bytes();
const IPV6: [u8; 2] = 0x86dd_u16.to_be_bytes();

/// What the kernel calls a frame that was sent, not received (`PACKET_OUTGOING`).
const OUTGOING: u8 = 4;

/// Bytes of frames that may wait to be read, as the kernel counts them: some 10,000 full ones. Where root is not
/// root outside of its namespace it is what everybody may have (`net.core.rmem_max`).
const BUFFER: usize = 32 << 20;

/// Hardware addresses, told apart by their last byte: locally administered, and the same in all tunnels, as none ever
/// sees another.
pub(super) const fn hardware_address(is_in_namespace: bool) -> [u8; 6] {
    [0x02, 0x50, 0x48, 0, 0, if is_in_namespace { 1 } else { 2 }]
}

/// Reads and writes the frames of an interface whose other end is in a tunnel's namespace. Never blocks.
#[derive(Debug)]
pub(super) struct FrameSocket {
    descriptor: OwnedFd,
    /// Frames that it has got.
    received: AtomicU64,
    /// Frames that found its buffer full, as far as the kernel has told.
    overflowed: AtomicU64,
}

impl FrameSocket {
    /// At an interface of the calling thread's namespace which is up, and whose other end is not.
    pub(super) fn at(interface: &str) -> io::Result<Self> {
        // The library has no other way to an address of this kind.
        let address = getifaddrs()?
            .filter(|found| found.interface_name == interface)
            .find_map(|found| found.address?.as_link_addr().copied())
            .ok_or_else(|| io::Error::other("the interface has no hardware address"))?;
        let descriptor = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
            SockProtocol::EthAll,
        )?;
        setsockopt(&descriptor, sockopt::RxqOvfl, &1)?;
        let _ = setsockopt(&descriptor, sockopt::RcvBufForce, &BUFFER)
            .or_else(|_| setsockopt(&descriptor, sockopt::RcvBuf, &BUFFER));
        let _ = setsockopt(&descriptor, sockopt::SndBufForce, &BUFFER)
            .or_else(|_| setsockopt(&descriptor, sockopt::SndBuf, &BUFFER));
        bind(descriptor.as_raw_fd(), &address)?;
        let this = Self { descriptor, received: AtomicU64::new(0), overflowed: AtomicU64::new(0) };
        // Until it was bound it belonged to all interfaces.
        this.drain()?;
        this.received.store(0, Ordering::Relaxed);
        Ok(this)
    }

    /// Reads what waits, for nothing but the counts.
    pub(super) fn drain(&self) -> io::Result<()> {
        let mut buffer = [0; 64];
        while self.frame(&mut [0; HEADER], &mut buffer)?.is_some() {}
        Ok(())
    }

    /// Frames that the other end has sent, and that were read.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Frames that found the buffer full, known with the next one that did not.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// The next IP packet, with the checksums that the kernel has left to its hardware.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut header = [0; HEADER];
        while let Some(length) = self.frame(&mut header, buffer)? {
            // Whatever else there is belongs to Ethernet, which nothing behind a path has.
            if let Some(packet) = buffer.get_mut(..length)
                && [IPV4, IPV6].iter().any(|kind| header.ends_with(kind))
            {
                checksum::complete(packet);
                return Ok(Some(length));
            }
        }
        Ok(None)
    }

    /// The next frame's header and the length of its content; `None` if there is none now.
    fn frame(&self, header: &mut [u8; HEADER], buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let mut control = nix::cmsg_space!(u32);
            let mut slices = [IoSliceMut::new(header), IoSliceMut::new(buffer)];
            let descriptor = self.descriptor.as_raw_fd();
            let message =
                match recvmsg::<LinkAddr>(descriptor, &mut slices, Some(&mut control), MsgFlags::empty()) {
                    Ok(message) => message,
                    Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                    Err(error) => return Err(error.into()),
                };
            for control in message.cmsgs()? {
                if let ControlMessageOwned::RxqOvfl(count) = control {
                    self.overflowed.store(count.into(), Ordering::Relaxed);
                }
            }
            // What the kernel itself might send at the wire's end.
            if message.address.is_some_and(|address| address.pkttype() == OUTGOING) {
                continue;
            }
            self.received.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(message.bytes.saturating_sub(HEADER)));
        }
    }

    pub(super) fn send(&self, packet: &[u8]) -> Handed {
        let kind = match packet.first().map(|first| first >> 4) {
            Some(4) => IPV4,
            Some(6) => IPV6,
            _ => return Handed::Refused,
        };
        let mut header = [0; HEADER];
        header[..6].copy_from_slice(&hardware_address(true));
        header[6..12].copy_from_slice(&hardware_address(false));
        header[12..].copy_from_slice(&kind);
        let slices = [IoSlice::new(&header), IoSlice::new(packet)];
        match sendmsg::<()>(self.descriptor.as_raw_fd(), &slices, &[], MsgFlags::empty(), None) {
            // The second is what newer kernels say of a frame that the other end did not take; all count it.
            Ok(_) | Err(Errno::ENOBUFS) => Handed::Over,
            Err(_) => Handed::Refused,
        }
    }
}

impl AsFd for FrameSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
