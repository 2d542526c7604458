//! IP packets as Ethernet frames: `AF_PACKET` sockets at both ends of a pair of interfaces.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvmsg, sendmsg,
    setsockopt, socket, sockopt,
};
use socket2::{SockFilter, SockRef};

use super::Handed;
use crate::tunnel::checksum;

/// Destination, source, type of content (RFC 894).
const HEADER: usize = 14;

/// Types of content (IANA, IEEE 802 numbers).
const IPV4: [u8; 2] = 0x0800_u16.to_be_bytes();
const IPV6: [u8; 2] = 0x86dd_u16.to_be_bytes();

/// What the kernel calls a frame that is sent, not received (`PACKET_OUTGOING`).
const OUTGOING: u32 = 4;

/// A program for the kernel (BPF): load the kind of the frame (`SKF_AD_OFF + SKF_AD_PKTTYPE`); if it is one that is
/// sent, take all of it, else nothing.
const ONLY_OUTGOING: [SockFilter; 4] = [
    SockFilter::new(0x20, 0, 0, (-0x1000_i32).cast_unsigned() + 4),
    SockFilter::new(0x15, 0, 1, OUTGOING),
    SockFilter::new(0x06, 0, 0, u32::MAX),
    SockFilter::new(0x06, 0, 0, 0),
];

/// Bytes of frames that may wait to be read, of which the kernel makes twice as many, as it counts them: some 25,000
/// full ones. Where root is not root outside of its namespace it is what everybody may have (`net.core.rmem_max`).
const BUFFER: usize = 32 << 20;

/// Hardware addresses, told apart by their last byte: locally administered, and the same in all tunnels, as none ever
/// sees another.
pub(super) const fn hardware_address(is_in_namespace: bool) -> [u8; 6] {
    [0x02, 0x50, 0x48, 0, 0, if is_in_namespace { 1 } else { 2 }]
}

/// A socket at an interface of the calling thread's namespace.
fn socket_at(interface: &str, protocol: impl Into<Option<SockProtocol>>) -> io::Result<OwnedFd> {
    // The library has no other way to an address of this kind.
    let address = getifaddrs()?
        .filter(|found| found.interface_name == interface)
        .find_map(|found| found.address?.as_link_addr().copied())
        .ok_or_else(|| io::Error::other("the interface has no hardware address"))?;
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let descriptor = socket(AddressFamily::Packet, SockType::Raw, flags, protocol)?;
    SockRef::from(&descriptor).attach_filter(&ONLY_OUTGOING)?;
    bind(descriptor.as_raw_fd(), &address)?;
    Ok(descriptor)
}

/// Where packets leave a namespace: it gets a copy of what is sent at the interface, in the order in which it is sent
/// there. (Where they arrive, at the other end, processors may have changed it.)
#[derive(Debug)]
pub(super) struct Outlet {
    descriptor: OwnedFd,
    /// Frames that it has got.
    received: AtomicU64,
    /// Frames that found its buffer full, as far as the kernel has told.
    overflowed: AtomicU64,
}

impl Outlet {
    /// Of an interface of the calling thread's namespace, which is not up yet.
    pub(super) fn of(interface: &str) -> io::Result<Self> {
        let descriptor = socket_at(interface, SockProtocol::EthAll)?;
        setsockopt(&descriptor, sockopt::RxqOvfl, &1)?;
        let _ = setsockopt(&descriptor, sockopt::RcvBufForce, &BUFFER)
            .or_else(|_| setsockopt(&descriptor, sockopt::RcvBuf, &BUFFER));
        let this = Self { descriptor, received: AtomicU64::new(0), overflowed: AtomicU64::new(0) };
        // Until it was bound it belonged to all interfaces.
        this.drain()?;
        this.received.store(0, Ordering::Relaxed);
        Ok(this)
    }

    /// Reads what waits, for nothing but the counts.
    pub(super) fn drain(&self) -> io::Result<()> {
        while self.frame(&mut [0; HEADER], &mut [0; HEADER])?.is_some() {}
        Ok(())
    }

    /// Frames that were read.
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
            let message = match recvmsg::<()>(descriptor, &mut slices, Some(&mut control), MsgFlags::empty())
            {
                Ok(message) => message,
                // Said once each time that the interface goes down.
                Err(Errno::ENETDOWN) => continue,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            for control in message.cmsgs()? {
                if let ControlMessageOwned::RxqOvfl(count) = control {
                    self.overflowed.store(count.into(), Ordering::Relaxed);
                }
            }
            self.received.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(message.bytes.saturating_sub(HEADER)));
        }
    }
}

impl AsFd for Outlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Where packets enter a namespace: what is sent at the other end of its interface.
#[derive(Debug)]
pub(super) struct Inlet {
    descriptor: OwnedFd,
}

impl Inlet {
    /// At an interface of the calling thread's namespace, the other end of that which packets are for.
    pub(super) fn at(interface: &str) -> io::Result<Self> {
        // Of no protocol: it receives nothing.
        let descriptor = socket_at(interface, None)?;
        let _ = setsockopt(&descriptor, sockopt::SndBufForce, &BUFFER)
            .or_else(|_| setsockopt(&descriptor, sockopt::SndBuf, &BUFFER));
        Ok(Self { descriptor })
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
