//! Files that appear under their name when they are whole, and not before.

use std::fs::{File, OpenOptions};
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
        Ok((file, Self { partial, destination: destination.to_owned(), is_left: false }))
    }

    /// The name of the partial file of `destination` that is to be continued.
    pub(crate) fn kept_name(destination: &Path) -> io::Result<PathBuf> {
        let name = destination.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        Ok(destination.with_file_name(format!(".{name}.posthaste-part")))
    }

    /// That file, with the first `length` bytes of what it has. If `is_left`, it stays without being put in place.
    pub(crate) fn keep(destination: &Path, length: u64, is_left: bool) -> io::Result<(File, Self)> {
        let partial = Self::kept_name(destination)?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&partial)?;
        file.set_len(length)?;
        file.seek(SeekFrom::End(0))?;
        keep_permissions(&file, destination)?;
        Ok((file, Self { partial, destination: destination.to_owned(), is_left }))
    }

    /// Gives it its name.
    pub(crate) fn place(mut self) -> io::Result<()> {
        std::fs::rename(&self.partial, &self.destination)?;
        self.is_left = true;
        Ok(())
    }
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
}
