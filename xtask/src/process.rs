//! Child processes that cannot outlive their guard, with their output in files.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::time::TimeValLike as _;
use nix::unistd::Pid;

use crate::Result;

/// How often a child is looked at.
const TICK: Duration = Duration::from_millis(5);
/// What a child gets to end by itself: more than a server of ours gives clients that went without a word (10 s), whose
/// traces it writes after that.
const GRACE: Duration = Duration::from_secs(13);

/// Of `/proc/PID/stat`, on all Linux machines (`USER_HZ`).
const TICKS_PER_SECOND: u64 = 100;

/// A running child and everything that it starts (its process group); dropping it ends them.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    name: String,
    stdout: PathBuf,
}

impl Running {
    /// Starts `command` with its output in `directory/NAME.stdout` and `NAME.stderr`; stdin is a pipe that stays
    /// open until the child is ended.
    pub(crate) fn spawn(command: &mut Command, name: &str, directory: &Path) -> Result<Self> {
        let stdout = directory.join(format!("{name}.stdout"));
        let stderr = File::create(directory.join(format!("{name}.stderr")))?;
        command.stdin(Stdio::piped()).stdout(File::create(&stdout)?).stderr(stderr).process_group(0);
        let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        Ok(Self { child, name: name.to_owned(), stdout })
    }

    /// Waits for a line of output from which `read` makes a value.
    pub(crate) fn wait_for<T>(&mut self, timeout: Duration, read: impl Fn(&str) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + timeout;
        loop {
            let output = self.output()?;
            // Only whole lines: the last one may still be being written.
            let whole = output.rfind('\n').map_or("", |end| &output[..end]);
            if let Some(value) = whole.lines().find_map(&read) {
                return Ok(value);
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("{} ended before it was ready: {status}", self.name).into());
            }
            if Instant::now() > deadline {
                return Err(format!("{} was not ready after {} s", self.name, timeout.as_secs()).into());
            }
            std::thread::sleep(TICK);
        }
    }

    /// Waits for the end.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<ExitStatus> {
        match self.poll_end(timeout)? {
            Some(status) => Ok(status),
            None => Err(format!("{} did not end within {} s", self.name, timeout.as_secs()).into()),
        }
    }

    /// Its process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// True while it has not ended.
    pub(crate) fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Closes the child's stdin, which asks a holder of idle connections to end.
    pub(crate) fn close_stdin(&mut self) {
        self.child.stdin = None;
    }

    /// Gives the child a line to read.
    pub(crate) fn write_line(&mut self, line: &str) -> Result<()> {
        let stdin = self.child.stdin.as_mut().ok_or("its stdin is closed")?;
        Ok(writeln!(stdin, "{line}")?)
    }

    /// What it has printed so far.
    pub(crate) fn output(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(&self.stdout)?).into_owned())
    }

    /// Its resident memory in bytes (`VmRSS`).
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes * 1024)
    }

    /// Its processor time so far, all threads together, to the kernel's tick.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name may contain anything; behind it, fields 14 and 15 are user and system time in ticks.
        let (_, fields) = stat.rsplit_once(')').ok_or("no name in stat")?;
        let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<u64>);
        let sum = ticks.next().ok_or("no times in stat")?? + ticks.next().ok_or("no times in stat")??;
        Ok(Duration::from_millis(sum * 1_000 / TICKS_PER_SECOND))
    }

    /// The same to the nanosecond; threads that have ended are not in it.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        let mut nanos = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            nanos += text.split_whitespace().next().ok_or("no schedstat")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }

    /// How many descriptors it has open.
    pub(crate) fn descriptors(&self) -> Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }

    /// Ends the child at once, as a crash would.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    /// Asks the child to read its configuration again.
    pub(crate) fn hang_up(&self) {
        self.signal(Signal::SIGHUP);
    }

    /// Asks the child, and none of its own children, to read its configuration again.
    ///
    /// # Errors
    /// It is gone.
    pub(crate) fn hang_up_alone(&self) -> Result<()> {
        Ok(kill(self.pid(), Signal::SIGHUP)?)
    }

    /// The same for those that do so on SIGUSR2.
    ///
    /// # Errors
    /// It is gone.
    pub(crate) fn reload_by_usr2(&self) -> Result<()> {
        Ok(kill(self.pid(), Signal::SIGUSR2)?)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Asks the child to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends the child and its process group, gently first.
    pub(crate) fn end(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            // What it started may live on in its group.
            self.signal(Signal::SIGKILL);
            return;
        }
        self.signal(Signal::SIGTERM);
        let gone = matches!(self.poll_end(GRACE), Ok(Some(_)));
        self.signal(Signal::SIGKILL);
        if !gone {
            // Killed: it ends now, and a failure to wait leaves nothing to do.
            let _ = self.child.wait();
        }
    }

    fn poll_end(&mut self, timeout: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            std::thread::sleep(TICK);
        }
    }

    fn signal(&self, signal: Signal) {
        // An error says that the group is gone.
        let _ = killpg(self.pid(), signal);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// User and system time of all children that have ended and been waited for.
pub(crate) fn children_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(micros.cast_unsigned()))
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
