//! A browser's process: started in a group of its own, which ends with it.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// What a browser gets to end by itself.
const GRACE: Duration = Duration::from_secs(3);

/// Bytes of the browser's last words that are shown.
const LAST_WORDS: usize = 600;

/// A browser that runs; dropped, it ends with all that it has started.
pub(super) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`. What it says on stderr goes to `browser.log` in `folder`.
    pub(super) fn start(mut command: Command, folder: &Path) -> Result<Self, String> {
        let log = folder.join("browser.log");
        let program = command.get_program().to_owned();
        let failed = |error: &dyn std::fmt::Display| {
            format!("cannot start {}: {error}", Path::new(&program).display())
        };
        let errors = File::create(&log).map_err(|error| failed(&error))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).process_group(0);
        let child = command.spawn().map_err(|error| failed(&error))?;
        Ok(Self { child, log })
    }

    /// An error once the browser has ended.
    pub(super) fn check(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(format!("the browser has ended ({status}){}", self.last_words())),
            _ => Ok(()),
        }
    }

    /// All that the browser has said on stderr.
    pub(super) fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// What the browser said last.
    pub(super) fn last_words(&self) -> String {
        let text = self.said();
        let start = text.len().saturating_sub(LAST_WORDS);
        let tail =
            text.char_indices().find(|(index, _)| *index >= start).map_or("", |(index, _)| &text[index..]);
        if tail.trim().is_empty() { String::new() } else { format!(": {}", tail.trim()) }
    }

    /// Lets a browser that was asked to end do so.
    pub(super) fn wait_for_the_end(&mut self) {
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Its whole group; an error says that nobody is left.
        let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}
