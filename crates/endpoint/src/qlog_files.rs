//! qlog traces as files in a directory.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use posthaste_transport::{ConnectionId, QlogSink, Side};

/// Writes one trace a connection, `<original destination connection ID>_<client|server>.sqlog`, to a directory.
///
/// Tracing never disturbs a connection: the first failure is logged, and everything else goes on without the trace.
/// A trace that exists is not overwritten. Traces are buffered and complete when their connection is gone.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use posthaste_endpoint::{QlogDirectory, TransportConfig, default_transport};
///
/// let traces = QlogDirectory::new(std::env::temp_dir());
/// let transport = TransportConfig { qlog: Some(Arc::new(traces)), ..default_transport() };
/// assert!(transport.qlog.is_some());
/// ```
#[derive(Debug)]
pub struct QlogDirectory {
    directory: PathBuf,
    failed: Arc<AtomicBool>,
}

impl QlogDirectory {
    /// Traces go to `directory`, which must exist.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), failed: Arc::default() }
    }
}

impl QlogSink for QlogDirectory {
    fn open(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Write + Send + Sync>> {
        let mut name = String::new();
        for byte in original_destination.as_slice() {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        name.push_str(match side {
            Side::Client => "_client.sqlog",
            Side::Server => "_server.sqlog",
        });
        match create(&self.directory.join(&name)) {
            Ok(file) => {
                Some(Box::new(Trace { file: Some(BufWriter::new(file)), failed: Arc::clone(&self.failed) }))
            }
            Err(error) => {
                log_once(&self.failed, &error);
                None
            }
        }
    }
}

/// A new file that only its owner may read: it tells who asked whom. A peer chooses its identifier: it must not be able
/// to have an older trace overwritten.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn log_once(failed: &AtomicBool, error: &io::Error) {
    if !failed.swap(true, Ordering::Relaxed) {
        tracing::warn!(%error, "a qlog trace cannot be written (further failures are not logged)");
    }
}

/// A trace that swallows what can no longer be written.
struct Trace<W: Write> {
    file: Option<W>,
    failed: Arc<AtomicBool>,
}

impl<W: Write> Trace<W> {
    fn attempt(&mut self, operation: impl FnOnce(&mut W) -> io::Result<()>) {
        if let Some(file) = &mut self.file
            && let Err(error) = operation(file)
        {
            log_once(&self.failed, &error);
            self.file = None;
        }
    }
}

impl<W: Write> Write for Trace<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.attempt(|file| file.write_all(data));
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt(W::flush);
        Ok(())
    }
}

impl<W: Write> Drop for Trace<W> {
    fn drop(&mut self) {
        self.attempt(W::flush);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_a_file_named_after_the_connection() {
        let directory = tempfile::tempdir().unwrap();
        let traces = QlogDirectory::new(directory.path());
        let id = ConnectionId::new(&[0xab, 0x01, 0xff]).unwrap();
        let mut trace = traces.open(&id, Side::Server).unwrap();
        trace.write_all(b"{}\n").unwrap();
        drop(trace);
        let path = directory.path().join("ab01ff_server.sqlog");
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n");
        #[cfg(unix)]
        {
            let permissions = path.metadata().unwrap().permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&permissions) & 0o777, 0o600);
        }
        assert!(traces.open(&id, Side::Server).is_none(), "a trace that exists is kept");
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n");
        assert!(traces.open(&id, Side::Client).is_some(), "the other end's trace is another file");
    }

    #[test]
    fn without_its_directory_there_is_no_trace_and_no_error() {
        let directory = tempfile::tempdir().unwrap();
        let traces = QlogDirectory::new(directory.path().join("absent"));
        assert!(traces.open(&ConnectionId::new(&[1]).unwrap(), Side::Client).is_none());
        assert!(traces.failed.load(Ordering::Relaxed));
    }

    #[test]
    fn a_full_disk_ends_the_trace_and_nothing_else() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut trace = Trace { file: Some(Full), failed: Arc::default() };
        assert_eq!(trace.write(b"event").unwrap(), 5);
        assert!(trace.file.is_none());
        assert!(trace.failed.load(Ordering::Relaxed));
        trace.flush().unwrap();
    }
}
