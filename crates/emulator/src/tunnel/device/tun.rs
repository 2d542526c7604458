//! A TUN device.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::{Device, Handed, Losses, TunnelError};
use crate::tunnel::netlink::index_of;

/// Where devices come from.
const SOURCE: &str = "/dev/net/tun";

/// A TUN device of the namespace in which it was opened.
struct Tun(SyncDevice);

impl std::fmt::Debug for Tun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tun")
    }
}

/// A device in the calling thread's namespace; `None` if the name is taken.
pub(super) fn open(name: &str) -> Result<Option<Box<dyn Device>>, TunnelError> {
    // The library would make the file where it is missing, and leave it there.
    OpenOptions::new().read(true).write(true).open(SOURCE).map_err(TunnelError::Device)?;
    match DeviceBuilder::new().name(name).enable(false).build_sync() {
        Ok(device) => {
            device.set_nonblocking(true)?;
            Ok(Some(Box::new(Tun(device))))
        }
        // An interface of another kind is an invalid argument.
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy || index_of(name).is_some() => Ok(None),
        Err(error) => Err(TunnelError::Device(error)),
    }
}

impl Device for Tun {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.0.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn send(&self, packet: &[u8]) -> Handed {
        match self.0.send(packet) {
            Ok(_) => Handed::Over,
            // What the kernel answers where the interface is down.
            Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => Handed::ToNobody,
            Err(_) => Handed::Refused,
        }
    }

    fn losses(&self, interface: Losses, _is_over: bool) -> io::Result<Losses> {
        Ok(interface)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
