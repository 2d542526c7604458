//! The processes of a run: started so that they cannot outlive it, and ended with it.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::{Pid, getpid, getppid};

use super::interrupt;

/// What is left of a run may end by itself for so long.
const GRACE: Duration = Duration::from_secs(1);

/// A command that starts `words` by way of this program, so that it is killed if this process is.
pub(super) fn bound<W: AsRef<OsStr>>(words: &[W]) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("emulate-inside").arg("--parent").arg(getpid().to_string()).arg("--").args(words);
    Ok(command)
}

/// Becomes `words`; returns only if it cannot.
pub(super) fn become_command(parent: u32, words: &[impl AsRef<OsStr>]) -> std::io::Error {
    let Some((program, arguments)) = words.split_first() else {
        return std::io::ErrorKind::InvalidInput.into();
    };
    if let Err(error) = set_pdeathsig(Signal::SIGKILL) {
        return error.into();
    }
    // It may have ended before it was asked for.
    if getppid().as_raw() != parent.cast_signed() {
        return std::io::Error::other("`posthaste emulate` has ended");
    }
    if let Err(error) = interrupt::let_through() {
        return error;
    }
    Command::new(program).args(arguments).exec()
}

/// Sends a signal; that the process has ended already is fine.
pub(super) fn signal(process: u32, signal: Signal) {
    let _ = kill(Pid::from_raw(process.cast_signed()), signal);
}

/// Lets go of processes that have ended here because their parents had ended before: nobody else waits for them. Never
/// of `command`, whose end is the run's.
pub(super) fn reap_adopted(command: u32) {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    // `None` is that none has ended. Behind COMMAND others may wait, but then all is over.
    while let Ok(Some(ended)) = waitid(Id::All, look).map(|status| status.pid())
        && ended.as_raw() != command.cast_signed()
    {
        let _ = waitpid(ended, Some(WaitPidFlag::WNOHANG));
    }
}

/// Ends all children of this process, those too that came to it because their parents ended.
pub(super) fn end_all() {
    let began = Instant::now();
    let mut is_asked = false;
    loop {
        let children = children();
        if children.is_empty() {
            return;
        }
        let is_over = began.elapsed() > GRACE;
        for &child in &children {
            if is_over {
                let _ = kill(child, Signal::SIGKILL);
            } else if !is_asked {
                let _ = kill(child, Signal::SIGTERM);
            }
            let _ = waitpid(child, Some(WaitPidFlag::WNOHANG));
        }
        is_asked = true;
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All processes whose parent this one is.
fn children() -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|&id: &i32| parent_of(id) == Some(getpid().as_raw())).map(Pid::from_raw).collect()
}

/// The fourth field of `/proc/PID/stat`; the second is a name in brackets that can have anything in it.
fn parent_of(process: i32) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}
