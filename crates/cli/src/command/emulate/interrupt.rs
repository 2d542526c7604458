//! SIGINT: the terminal's, which COMMAND gets as well, and that which somebody sends to this process alone.

use std::io;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

fn interrupt() -> SigSet {
    SigSet::from(Signal::SIGINT)
}

/// From now on SIGINT waits until [`Interrupts`] asks for it. For a process with a single thread: all that it starts
/// begins like that, processes too, until they [`let_through`].
pub(super) fn hold_back() -> io::Result<()> {
    Ok(interrupt().thread_block()?)
}

/// The opposite, for a process that is about to become another program.
pub(super) fn let_through() -> io::Result<()> {
    Ok(interrupt().thread_unblock()?)
}

/// What has been held back.
#[derive(Debug)]
pub(super) struct Interrupts(AsyncFd<SignalFd>);

impl Interrupts {
    /// To be called inside of the runtime.
    #[expect(
        deprecated,
        reason = "the successor is unsafe: it asks for a descriptor that stays open and the same, as this one does"
    )]
    pub(super) fn catch() -> io::Result<Self> {
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let descriptor = SignalFd::with_flags(&interrupt(), flags)?;
        Ok(Self(AsyncFd::with_interest(descriptor, Interest::READABLE)?))
    }

    /// True if there was one of either kind since it was last asked.
    pub(super) fn has_come(&self) -> io::Result<bool> {
        Ok(self.0.get_ref().read_signal()?.is_some())
    }

    /// Waits for one that is COMMAND's and did not reach it. A terminal sends its own to all of its foreground
    /// processes, COMMAND among them, by way of the kernel: a code above zero (sigaction(2)).
    pub(super) async fn sent_elsewhere(&self) -> io::Result<()> {
        loop {
            let mut ready = self.0.readable().await?;
            let read =
                ready.try_io(|from| from.get_ref().read_signal()?.ok_or(io::ErrorKind::WouldBlock.into()));
            match read {
                Ok(Ok(signal)) if signal.ssi_code <= 0 => return Ok(()),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(_)) | Err(_) => {}
            }
        }
    }
}
