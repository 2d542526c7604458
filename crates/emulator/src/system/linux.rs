//! Linux: kernel time stamps on arrival, `ppoll` with a timer slack of 1 ns, ECN both ways.

use std::io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::UNIX_EPOCH;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl::set_timerslack;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, RecvMsg, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use nix::sys::time::TimeSpec;
use posthaste_units::Duration;

use super::{Received, SOCKET_BUFFER};
use crate::clock;

/// Lets the calling thread's waits end when they are due. The default slack of 50 us lets the kernel group them.
pub(crate) fn prefer_precision() {
    if let Err(error) = set_timerslack(1) {
        tracing::debug!(%error, "timers stay coarse");
    }
}

/// Both ends of what interrupts a [`Waiter`].
pub(crate) fn waker() -> io::Result<(Waker, Waiter)> {
    let (woken, waker) = io::pipe()?;
    Ok((Waker { _pipe: waker }, Waiter { woken }))
}

/// Dropped, it ends the wait of its [`Waiter`], and all its later ones.
#[derive(Debug)]
pub(crate) struct Waker {
    _pipe: PipeWriter,
}

/// Waits for sockets.
#[derive(Debug)]
pub(crate) struct Waiter {
    woken: PipeReader,
}

impl Waiter {
    /// Waits until a socket has something, `timeout` is over (never earlier), or the waker is gone. `ready` then
    /// holds the indices of the sockets that have something.
    pub(crate) fn wait<'a>(
        &self,
        sockets: impl Iterator<Item = &'a Socket>,
        timeout: Duration,
        ready: &mut Vec<usize>,
    ) -> io::Result<()> {
        let poll = |fd: BorrowedFd<'a>| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds: Vec<PollFd<'_>> = sockets.map(|socket| poll(socket.io.as_fd())).collect();
        fds.push(PollFd::new(self.woken.as_fd(), PollFlags::POLLIN));
        ready.clear();
        match ppoll(&mut fds, Some(TimeSpec::from_duration(timeout.into())), None) {
            // A signal that was for somebody else.
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Errors count, too: reading takes them off the socket.
        ready.extend((0..fds.len() - 1).filter(|&index| fds[index].any() == Some(true)));
        Ok(())
    }
}

/// A UDP socket that never blocks.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    control: Vec<u8>,
    /// Datagrams that found its buffer full, as the kernel last said.
    overflowed: u32,
}

impl Socket {
    pub(crate) fn bind(local: SocketAddr) -> io::Result<Self> {
        let io = UdpSocket::bind(local)?;
        io.set_nonblocking(true)?;
        setsockopt(&io, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&io, sockopt::RxqOvfl, &1)?;
        if local.is_ipv4() {
            setsockopt(&io, sockopt::IpRecvTos, &true)?;
        } else {
            setsockopt(&io, sockopt::Ipv6RecvTClass, &true)?;
        }
        // Beyond the system's limit where that is permitted, up to it elsewhere.
        let _ = setsockopt(&io, sockopt::RcvBufForce, &SOCKET_BUFFER)
            .or_else(|_| setsockopt(&io, sockopt::RcvBuf, &SOCKET_BUFFER));
        let _ = setsockopt(&io, sockopt::SndBufForce, &SOCKET_BUFFER)
            .or_else(|_| setsockopt(&io, sockopt::SndBuf, &SOCKET_BUFFER));
        let control = nix::cmsg_space!(TimeSpec, u32, i32);
        Ok(Self { io, control, overflowed: 0 })
    }

    pub(crate) fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        self.io.connect(remote)
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// Datagrams that the system dropped because nobody read in time, as far as it has told.
    pub(crate) fn overflowed(&self) -> u64 {
        self.overflowed.into()
    }

    /// The next datagram, or `None` if there is none now.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut slices = [IoSliceMut::new(buffer)];
        let message: RecvMsg<'_, '_, SockaddrStorage> =
            match recvmsg(self.io.as_raw_fd(), &mut slices, Some(&mut self.control), MsgFlags::empty()) {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        let from = message.address.as_ref().and_then(socket_address);
        let from = from.ok_or_else(|| io::Error::other("a datagram without a sender"))?;
        let mut received = Received { length: message.bytes, from, ecn: 0, age: Duration::ZERO };
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(stamp) => {
                    received.age =
                        clock::age(UNIX_EPOCH + std::time::Duration::from(stamp)).unwrap_or(Duration::ZERO);
                }
                ControlMessageOwned::RxqOvfl(count) => self.overflowed = count,
                ControlMessageOwned::Ipv4Tos(tos) => received.ecn = tos & 0b11,
                ControlMessageOwned::Ipv6TClass(class) => received.ecn = (class & 0b11) as u8,
                _ => {}
            }
        }
        Ok(Some(received))
    }

    /// Sends to `to`, or to the address that the socket is connected to.
    pub(crate) fn send(&self, payload: &[u8], ecn: u8, to: Option<SocketAddr>) -> io::Result<()> {
        let is_ipv4 = to.map_or_else(|| self.io.local_addr(), Ok)?.is_ipv4();
        let class = i32::from(ecn);
        let control =
            if is_ipv4 { ControlMessage::Ipv4Tos(&ecn) } else { ControlMessage::Ipv6TClass(&class) };
        let to = to.map(SockaddrStorage::from);
        sendmsg(self.io.as_raw_fd(), &[IoSlice::new(payload)], &[control], MsgFlags::empty(), to.as_ref())?;
        Ok(())
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddrV4::from(*v4).into());
    }
    address.as_sockaddr_in6().map(|v6| SocketAddrV6::from(*v6).into())
}
