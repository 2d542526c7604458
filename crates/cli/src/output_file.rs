//! Files that appear under their name when they are whole, and not before.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Why something could not be written.
#[derive(Debug)]
pub(crate) struct OutputError {
    pub(crate) shown: String,
    pub(crate) error: io::Error,
}

impl std::fmt::Display for OutputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { shown, error } = self;
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                write!(f, "no space left to write {shown}; make room or write elsewhere")
            }
            io::ErrorKind::FileTooLarge => {
                write!(f, "{shown} would be larger than the file system or a limit permits")
            }
            io::ErrorKind::NotFound => {
                write!(f, "cannot write {shown}: there is no such folder; create it or write elsewhere")
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                write!(f, "cannot write {shown}: {error}; choose a place that you may write to")
            }
            io::ErrorKind::NotSeekable => {
                write!(
                    f,
                    "{shown} takes bytes needs them in order, and several connections bring them in none; \
                           write to a file, or use --connections 1"
                )
            }
            io::ErrorKind::ResourceBusy => {
                write!(
                    f,
                    "another `posthaste get --continue` is writing {shown}; wait until it ends, or write elsewhere"
                )
            }
            _ => write!(f, "cannot write {shown}: {error}"),
        }
    }
}

/// A file that is written at once, later. Dropped before, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: File,
    partial: Option<PartialFile>,
    shown: String,
}

impl OutputFile {
    /// Makes sure that it can be written, before there is anything to write.
    pub(crate) fn create(path: &Path) -> Result<Self, OutputError> {
        let shown = path.display().to_string();
        match open_file(path) {
            Ok((file, partial)) => Ok(Self { file, partial, shown }),
            Err(error) => Err(OutputError { shown, error }),
        }
    }

    /// Writes it, and gives it its name.
    pub(crate) fn write(self, content: &[u8]) -> Result<(), OutputError> {
        let Self { mut file, partial, shown } = self;
        let written = file.write_all(content).and_then(|()| partial.map_or(Ok(()), PartialFile::place));
        written.map_err(|error| OutputError { shown, error })
    }
}

/// What exists and is no regular file (a device, a pipe) is written to as it is; anything else gets a partial file
/// first. A link stays: what it leads to is replaced.
pub(crate) fn open_file(path: &Path) -> io::Result<(File, Option<PartialFile>)> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if !metadata.is_file() => Ok((OpenOptions::new().write(true).open(path)?, None)),
        _ => {
            let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let (file, partial) = PartialFile::create(&real)?;
            Ok((file, Some(partial)))
        }
    }
}

/// A file beside its destination, removed unless it is put in place.
#[derive(Debug)]
pub(crate) struct PartialFile {
    partial: PathBuf,
    destination: PathBuf,
    /// It stays where it is when this is dropped: in place, or to be continued.
    is_left: bool,
    /// Holds the lock of a file that is to be continued, until that file is renamed or removed.
    _lock: Option<File>,
}

impl PartialFile {
    fn create(destination: &Path) -> io::Result<(File, Self)> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);

        let name = destination.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        let short: String = name.chars().take(40).collect();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let partial = destination.with_file_name(format!(".{short}.{}-{number}.part", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&partial)?;
        keep_permissions(&file, destination)?;
        Ok((file, Self { partial, destination: destination.to_owned(), is_left: false, _lock: None }))
    }

    /// The name of the partial file of `destination` that is to be continued.
    pub(crate) fn kept_name(destination: &Path) -> io::Result<PathBuf> {
        let name = destination.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        Ok(destination.with_file_name(format!(".{name}.posthaste-part")))
    }

    /// That file with all that it has, for nobody else until this is dropped. What was empty does not stay.
    ///
    /// # Errors
    /// `ResourceBusy` if another process has it.
    pub(crate) fn claim(destination: &Path) -> io::Result<(File, Self)> {
        let partial = Self::kept_name(destination)?;
        loop {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&partial)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
                // The file system has no locks: nothing protects a file there.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            // Another process may have put it in place between the two calls.
            if !is_at(&file, &partial)? {
                continue;
            }
            let (is_left, lock) = (file.metadata()?.len() > 0, Some(file.try_clone()?));
            return Ok((file, Self { partial, destination: destination.to_owned(), is_left, _lock: lock }));
        }
    }

    /// Keeps the first `length` bytes of what was claimed. If `is_left`, the file stays without being put in place.
    pub(crate) fn keep(&mut self, file: &mut File, length: u64, is_left: bool) -> io::Result<()> {
        self.is_left = is_left;
        file.set_len(length)?;
        file.seek(SeekFrom::End(0))?;
        keep_permissions(file, &self.destination)
    }

    /// Gives it its name.
    pub(crate) fn place(mut self) -> io::Result<()> {
        std::fs::rename(&self.partial, &self.destination)?;
        self.is_left = true;
        Ok(())
    }
}

/// True if this is the file of that name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    let opened = file.metadata()?;
    let is_same = |named: std::fs::Metadata| (named.dev(), named.ino()) == (opened.dev(), opened.ino());
    Ok(path.metadata().is_ok_and(is_same))
}

/// True if there is a file of that name: which one it is, these systems do not tell.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    path.try_exists()
}

/// Who may read the old file may read the new one, and nobody else.
fn keep_permissions(file: &File, destination: &Path) -> io::Result<()> {
    destination.metadata().map_or(Ok(()), |replaced| file.set_permissions(replaced.permissions()))
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.is_left {
            // It may be gone already; there is nothing more to do about it.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_is_replaced_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        OutputFile::create(&path).unwrap().write(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn what_is_continued_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let is_busy = || {
            let error = PartialFile::claim(&path).map(drop).unwrap_err();
            error.kind() == io::ErrorKind::ResourceBusy
        };
        let (first, partial) = PartialFile::claim(&path).unwrap();
        drop(first);
        assert!(is_busy(), "until the guard is dropped");
        drop(partial);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing had come");

        let (mut file, mut partial) = PartialFile::claim(&path).unwrap();
        partial.keep(&mut file, 0, true).unwrap();
        file.write_all(b"one").unwrap();
        drop((file, partial));
        let (mut file, partial) = PartialFile::claim(&path).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 3);
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"two").unwrap();
        assert!(is_busy());
        partial.place().unwrap();
        // What is in place is nobody's to continue, even while its writer has it open.
        let (_next, partial) = PartialFile::claim(&path).unwrap();
        drop((file, partial));
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwo");
    }
}
