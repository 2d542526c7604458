//! qlog traces as files in a directory.

mod background;

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use posthaste_transport::{ConnectionId, QlogSink, Side};

use background::Background;

/// What the last traces get to be written when a directory with a thread is dropped.
const FAREWELL: Duration = Duration::from_secs(2);

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
    background: Option<Arc<Background>>,
}

impl QlogDirectory {
    /// Traces go to `directory`, which must exist. Connections wait while their blocks are written.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), failed: Arc::default(), background: None }
    }

    /// The same for servers: a thread writes, so that a file system that does not answer holds up no connection. At most
    /// 16 MiB wait for it; a trace that would exceed them ends early, with one warning for all. When this is dropped, it
    /// waits for up to two seconds until the traces of connections that are gone are written.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn in_background(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let failed = Arc::default();
        let background = Some(Background::start(Arc::clone(&failed), create)?);
        Ok(Self { directory: directory.into(), failed, background })
    }
}

impl Drop for QlogDirectory {
    fn drop(&mut self) {
        if self.background.as_ref().is_some_and(|background| !background.flush(FAREWELL)) {
            log_once(&self.failed, &io::Error::other("the file system does not answer"));
        }
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
        let path = self.directory.join(&name);
        if let Some(background) = &self.background {
            return background.open(path).map(|trace| Box::new(trace) as _);
        }
        match create(&path) {
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
    fn a_thread_writes_the_same_and_overwrites_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let traces = QlogDirectory::in_background(directory.path()).unwrap();
        let id = ConnectionId::new(&[1]).unwrap();
        for text in ["first", "second"] {
            let mut trace = traces.open(&id, Side::Server).unwrap();
            trace.write_all(text.as_bytes()).unwrap();
            trace.write_all(text.as_bytes()).unwrap();
        }
        drop(traces);
        assert_eq!(std::fs::read(directory.path().join("01_server.sqlog")).unwrap(), b"firstfirst");
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
