//! What tells one state of one file from all others.

use std::fs::Metadata;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file system that shows fractions of a second ticks at least this often.
pub(super) const FINE_TICK: Duration = Duration::from_millis(50);

/// One that shows whole seconds only may tick every other second (FAT).
const COARSE_TICK: Duration = Duration::from_secs(2);

/// Which file it is, and in which state: whatever writes to it or gives its name to another moves one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Device and inode (Unix).
    file: (u64, u64),
    length: u64,
    modified: SystemTime,
    /// Time of inode change, which programs cannot set (Unix).
    changed: SystemTime,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            file: identity(metadata),
            length: metadata.len(),
            modified: metadata.modified().unwrap_or(UNIX_EPOCH),
            changed: changed(metadata),
        }
    }

    /// Whether a change after `now` would show: the last one is more than a tick of the file system's clock ago.
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        is_settled(self.modified, now) && is_settled(self.changed, now)
    }

    /// In bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The number of its file system.
    #[cfg(target_os = "linux")]
    pub(super) fn device(&self) -> u64 {
        self.file.0
    }
}

/// Whether `time` is more than a tick before `now`.
pub(super) fn is_settled(time: SystemTime, now: SystemTime) -> bool {
    let has_fractions = time.duration_since(UNIX_EPOCH).is_ok_and(|time| time.subsec_nanos() != 0);
    let tick = if has_fractions { FINE_TICK } else { COARSE_TICK };
    now.duration_since(time).is_ok_and(|age| age > tick)
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;

    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(unix)]
fn changed(metadata: &Metadata) -> SystemTime {
    use std::os::unix::fs::MetadataExt;

    let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
    let nanoseconds = u64::try_from(metadata.ctime_nsec()).unwrap_or(0);
    UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}

#[cfg(not(unix))]
fn changed(metadata: &Metadata) -> SystemTime {
    metadata.modified().unwrap_or(UNIX_EPOCH)
}
