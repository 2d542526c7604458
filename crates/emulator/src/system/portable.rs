//! Any system: no time stamps, no ECN, and sockets are looked at every half millisecond.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use posthaste_units::Duration;

use super::Received;

/// The longest time that a datagram waits unseen.
const GLANCE: Duration = Duration::from_micros(500);

/// Nothing can be done about timers here.
pub(crate) fn prefer_precision() {}

/// Both ends of what interrupts a [`Waiter`].
pub(crate) fn waker() -> io::Result<(Waker, Waiter)> {
    Ok((Waker, Waiter))
}

/// Has no effect: no wait is long.
#[derive(Debug)]
pub(crate) struct Waker;

/// Waits for sockets.
#[derive(Debug)]
pub(crate) struct Waiter;

impl Waiter {
    /// Waits a moment, at most `timeout`; any socket may then have something.
    #[expect(clippy::disallowed_methods, reason = "the relay waits in real time")]
    pub(crate) fn wait<'a>(
        &self,
        sockets: impl Iterator<Item = &'a Socket>,
        timeout: Duration,
        ready: &mut Vec<usize>,
    ) -> io::Result<()> {
        std::thread::sleep(timeout.min(GLANCE).into());
        ready.clear();
        ready.extend(0..sockets.count());
        Ok(())
    }
}

/// A UDP socket that never blocks.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
}

impl Socket {
    pub(crate) fn bind(local: SocketAddr) -> io::Result<Self> {
        let io = UdpSocket::bind(local)?;
        io.set_nonblocking(true)?;
        Ok(Self { io })
    }

    pub(crate) fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        self.io.connect(remote)
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// The system does not tell.
    pub(crate) fn overflowed(&self) -> u64 {
        0
    }

    /// The next datagram, or `None` if there is none now.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        match self.io.recv_from(buffer) {
            Ok((length, from)) => Ok(Some(Received { length, from, ecn: 0, age: Duration::ZERO })),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends to `to`, or to the address that the socket is connected to.
    pub(crate) fn send(&self, payload: &[u8], _ecn: u8, to: Option<SocketAddr>) -> io::Result<()> {
        match to {
            Some(to) => self.io.send_to(payload, to),
            None => self.io.send(payload),
        }
        .map(|_| ())
    }
}
