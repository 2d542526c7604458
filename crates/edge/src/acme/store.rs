//! What is kept between runs: the account's key, certificates and theirs. Files that only their owner can read, written
//! whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use tokio::task::spawn_blocking;

use super::AcmeError;

/// Writes a file that appears under its name when it is whole and on the disk. However slow that is, others go on.
pub(super) async fn write(path: &Path, content: String) -> Result<(), AcmeError> {
    let own = path.to_owned();
    let written = spawn_blocking(move || write_now(&own, content.as_bytes())).await;
    written.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|source| failed(path, source))
}

/// Bytes of a chain with its key, and more.
const ROOM: usize = 32 * 1024;

/// Whether [`write`] has room for a certificate: one that is issued and cannot be kept would be asked for again, and
/// authorities give few.
pub(super) async fn has_room(path: &Path) -> Result<(), AcmeError> {
    let probe = path.with_extension("probe");
    write(&probe, " ".repeat(ROOM)).await?;
    fs::remove_file(&probe).map_err(|source| failed(&probe, source))
}

/// A file's content; `None` if there is none.
pub(super) async fn read(path: &Path) -> Result<Option<Vec<u8>>, AcmeError> {
    let own = path.to_owned();
    let read = spawn_blocking(move || read_now(&own)).await;
    read.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|source| failed(path, source))
}

/// The error of a file.
pub(super) fn failed(path: &Path, source: io::Error) -> AcmeError {
    AcmeError::Store { path: path.to_owned(), source }
}

fn write_now(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    let partial = path.with_extension("new");
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&partial).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
        // What is left of it is of no use.
        let _ = fs::remove_file(&partial);
    })?;
    // The name is on the disk, too, where directories can be synchronised.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn read_now(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_private_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/key.pem");
        assert_eq!(read_now(&path).unwrap(), None);
        for content in [&b"one"[..], b"two"] {
            write_now(&path, content).unwrap();
            assert_eq!(read_now(&path).unwrap().unwrap(), content);
        }
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).unwrap()) & 0o777, 0o600);
        let names = fs::read_dir(path.parent().unwrap()).unwrap().map(|it| it.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["key.pem"]);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_full_disk_is_noticed_and_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.test.pem");
        has_room(&path).await.unwrap();
        fs::write(&path, "old").unwrap();
        // What is written there meets a full disk.
        let full = || std::os::unix::fs::symlink("/dev/full", folder.path().join("a.test.new")).unwrap();
        full();
        let error = has_room(&path).await.unwrap_err();
        assert!(error.to_string().contains("No space left"), "{error}");
        full();
        write(&path, "new".to_owned()).await.unwrap_err();
        let names = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["a.test.pem"]);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn what_cannot_be_written_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        write_now(&folder.path().join("file/key.pem"), b"y").unwrap_err();
        assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"x");
    }
}
