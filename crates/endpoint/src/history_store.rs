//! What a server has learnt of paths, on disk: for its next run.
//!
//! All of it lives in memory; a thread of its own writes what changes into a redb file, in batches. Connections never
//! wait for the disk. The file is open only while a batch is written, so that others can read it meanwhile; what a
//! crash costs is the last batch.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration as Span;

use posthaste_policy::history::{Change, History, HistoryRules, MAX_PATHS, PathKey, PathRecord};
use posthaste_policy::sample::PathHistory;
use posthaste_transport::{MemoryStore, PathStore};
use posthaste_units::Duration;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::clock;

/// Keys and records as their own bytes.
const PATHS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("paths");
/// What the file is.
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
/// The key in [`ABOUT`] of the layout's number.
const LAYOUT: &str = "layout";
/// The layout that this version writes.
const LAYOUT_NOW: u64 = 1;

/// Batches of changes that wait to be written; what comes on top is written later, all at once.
const QUEUE: usize = 1024;
/// Changes are gathered for so long before they are written.
const GATHER: Span = Span::from_millis(200);
/// A file that another process writes to at the moment is tried so often.
const TRIES: u32 = 20;
/// And so long after each try.
const TRY_AGAIN: Span = Span::from_millis(25);
/// Memory for redb's pages while the file is open.
const CACHE: usize = 1 << 20;
/// How long [`HistoryStore::flush`] waits.
const FLUSH: Span = Span::from_secs(2);

/// Why a history cannot be kept in, or read from, a file.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file is none of ours, is of another version, or is damaged.
    #[error("{} is no history of paths that this version can read: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another process holds the file.
    #[error("{} is in use by another program", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses to read or write it.
    #[error("cannot use {}: {reason}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
}

/// A history of paths that is kept in a file; see the module.
#[derive(Debug)]
pub struct HistoryStore {
    memory: Arc<MemoryStore>,
    queue: Option<SyncSender<Message>>,
    /// Something could not be queued: the file lacks it.
    is_behind: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

enum Message {
    Changed(Vec<Change>),
    Flush(SyncSender<()>),
}

impl HistoryStore {
    /// The history in the file `path`, kept by a profile's rules. Without the file it begins empty.
    ///
    /// A file that cannot be read is moved aside, to the same name with `.damaged` behind it, and the history begins
    /// empty, with a warning in the log.
    ///
    /// # Errors
    /// [`HistoryError::Io`] if the system refuses, [`HistoryError::InUse`] if another program holds the file for long.
    pub fn open(path: &Path, rules: HistoryRules) -> Result<Self, HistoryError> {
        let rows = match Self::read(path) {
            Err(HistoryError::Damaged { reason, .. }) => {
                let aside = aside(path);
                std::fs::rename(path, &aside).map_err(|error| io_error(path, &error))?;
                tracing::warn!(
                    path = %path.display(), aside = %aside.display(), reason,
                    "the history of paths cannot be read: it is moved aside and begins anew"
                );
                Vec::new()
            }
            other => other?,
        };
        // Shows now whether it can be written at all, and with what is still good alone.
        let now = Duration::from(clock::unix_time());
        let mut history = History::new(rules);
        for (key, record) in &rows {
            history.restore(now, *key, *record);
        }
        let memory = Arc::new(MemoryStore::from(history));
        write(path, &memory, None)?;
        let (queue, messages) = sync_channel(QUEUE);
        let is_behind = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            path: path.to_owned(),
            memory: Arc::clone(&memory),
            is_behind: Arc::clone(&is_behind),
            is_failure_told: false,
        };
        let writer = std::thread::Builder::new()
            .name("posthaste-history".to_owned())
            .spawn(move || writer.run(&messages))
            .map_err(|error| io_error(path, &error))?;
        Ok(Self { memory, queue: Some(queue), is_behind, writer: Some(writer) })
    }

    /// What a file holds, whatever its age: none if there is no file.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn read(path: &Path) -> Result<Vec<(PathKey, PathRecord)>, HistoryError> {
        match std::fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error(path, &error)),
            Ok(metadata) if !metadata.is_file() => {
                return Err(HistoryError::Io { path: path.to_owned(), reason: "it is no file".to_owned() });
            }
            Ok(_) => {}
        }
        attempt(path, |database| {
            let transaction = database.begin_read()?;
            match transaction.open_table(ABOUT)?.get(LAYOUT)?.map(|layout| layout.value()) {
                Some(LAYOUT_NOW) => {}
                layout => return Err(Problem::Layout(layout)),
            }
            let table = transaction.open_table(PATHS)?;
            let mut rows = Vec::new();
            for row in table.iter()? {
                let (key, record) = row?;
                let parsed = PathKey::from_bytes(key.value()).zip(PathRecord::from_bytes(record.value()));
                rows.push(parsed.ok_or(Problem::Row)?);
                if rows.len() > MAX_PATHS {
                    return Err(Problem::TooMany);
                }
            }
            Ok(rows)
        })
    }

    /// Empties a file; how many paths were in it. A server that runs meanwhile still has them in memory.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn clear(path: &Path) -> Result<usize, HistoryError> {
        let count = Self::read(path)?.len();
        if count > 0 {
            attempt(path, |database| {
                let transaction = database.begin_write()?;
                transaction.delete_table(PATHS)?;
                transaction.open_table(PATHS)?;
                transaction.commit()?;
                Ok(())
            })?;
        }
        Ok(count)
    }

    /// Waits until all that is known so far is in the file, for at most two seconds; false if it is not.
    pub fn flush(&self) -> bool {
        let (done, is_done) = sync_channel(1);
        let sent = self.queue.as_ref().is_some_and(|queue| queue.send(Message::Flush(done)).is_ok());
        sent && is_done.recv_timeout(FLUSH).is_ok()
    }

    fn queue(&self, changes: Vec<Change>) {
        let message = Message::Changed(changes);
        if self.queue.as_ref().is_none_or(|queue| queue.try_send(message).is_err()) {
            self.is_behind.store(true, Ordering::Relaxed);
        }
    }
}

impl PathStore for HistoryStore {
    fn recall(&self, at: Duration, client: IpAddr) -> Option<PathHistory> {
        self.memory.recall(at, client)
    }

    fn record(&self, at: Duration, client: IpAddr, seen: &PathHistory) {
        self.queue(self.memory.record_change(at, client, seen));
    }

    fn forget(&self, client: IpAddr) {
        self.queue(self.memory.forget_change(client));
    }
}

impl Drop for HistoryStore {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// The thread that writes.
struct Writer {
    path: PathBuf,
    memory: Arc<MemoryStore>,
    is_behind: Arc<AtomicBool>,
    is_failure_told: bool,
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        while let Ok(first) = messages.recv() {
            let (mut changes, mut waiting) = (Vec::new(), Vec::new());
            let mut next = Some(first);
            while let Some(message) = next.take() {
                match message {
                    Message::Changed(more) => changes.extend(more),
                    Message::Flush(done) => waiting.push(done),
                }
                // Whoever waits for the file gets what is there; else others may join in.
                let wait = if waiting.is_empty() { GATHER } else { Span::ZERO };
                let is_full = changes.len() >= MAX_PATHS;
                next = match messages.recv_timeout(if is_full { Span::ZERO } else { wait }) {
                    Ok(message) if !is_full => Some(message),
                    Ok(Message::Flush(done)) => {
                        waiting.push(done);
                        None
                    }
                    Ok(Message::Changed(_)) => {
                        self.is_behind.store(true, Ordering::Relaxed);
                        None
                    }
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
                };
            }
            self.write(&changes);
            for done in waiting {
                let _ = done.send(());
            }
        }
    }

    /// Writes the changes, or everything if some were missed. A failure costs the file, never the traffic.
    fn write(&mut self, changes: &[Change]) {
        let is_behind = self.is_behind.swap(false, Ordering::Relaxed);
        if changes.is_empty() && !is_behind {
            return;
        }
        match write(&self.path, &self.memory, (!is_behind).then_some(changes)) {
            Ok(()) if self.is_failure_told => {
                self.is_failure_told = false;
                tracing::info!(path = %self.path.display(), "the history of paths is written again");
            }
            Ok(()) => {}
            Err(error) => {
                self.is_behind.store(true, Ordering::Relaxed);
                if !self.is_failure_told {
                    self.is_failure_told = true;
                    tracing::warn!(
                        %error,
                        "the history of paths is kept in memory only for now; the file is tried again with each change"
                    );
                }
            }
        }
    }
}

/// Writes changes into the file, or, with none, all that is in memory in the place of what is in it.
fn write(path: &Path, memory: &MemoryStore, changes: Option<&[Change]>) -> Result<(), HistoryError> {
    attempt(path, |database| {
        let transaction = database.begin_write()?;
        {
            transaction.open_table(ABOUT)?.insert(LAYOUT, LAYOUT_NOW)?;
            if changes.is_none() {
                transaction.delete_table(PATHS)?;
            }
            let mut table = transaction.open_table(PATHS)?;
            let all: Vec<Change>;
            let changes = if let Some(changes) = changes {
                changes
            } else {
                all = memory.history().iter().map(|(key, record)| (*key, Some(*record))).collect();
                &all
            };
            for (key, record) in changes {
                let key = key.to_bytes();
                match record {
                    Some(record) => drop(table.insert(&key[..], &record.to_bytes()[..])?),
                    None => drop(table.remove(&key[..])?),
                }
            }
        }
        transaction.commit()?;
        Ok(())
    })
}

/// What redb, or the file's content, has against it.
enum Problem {
    Redb(redb::Error),
    /// Another version's file, or none of ours.
    Layout(Option<u64>),
    /// A row that is none.
    Row,
    TooMany,
}

impl<E: Into<redb::Error>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self::Redb(error.into())
    }
}

/// Opens the file for as long as `work` takes, and tells damage from refusals. What others do to the file for a moment
/// is waited for.
#[expect(clippy::disallowed_methods, reason = "on the writer's own thread, or before a server begins")]
fn attempt<T>(path: &Path, work: impl Fn(&Database) -> Result<T, Problem>) -> Result<T, HistoryError> {
    // A file full of nonsense may make redb panic; that is as good as an error.
    let open = || {
        let database = Database::builder().set_cache_size(CACHE).create(path).map_err(redb::Error::from)?;
        work(&database)
    };
    for _ in 0..TRIES {
        let damaged = |reason: String| HistoryError::Damaged { path: path.to_owned(), reason };
        return match std::panic::catch_unwind(AssertUnwindSafe(open)) {
            Err(_) => Err(damaged("its structure is broken".to_owned())),
            Ok(Ok(done)) => Ok(done),
            Ok(Err(Problem::Layout(None))) => Err(damaged("it does not say what it is".to_owned())),
            Ok(Err(Problem::Layout(Some(layout)))) => {
                Err(damaged(format!("its layout is {layout}, not {LAYOUT_NOW}")))
            }
            Ok(Err(Problem::Row)) => Err(damaged("an entry makes no sense".to_owned())),
            Ok(Err(Problem::TooMany)) => Err(damaged(format!("it has more than {MAX_PATHS} entries"))),
            Ok(Err(Problem::Redb(redb::Error::DatabaseAlreadyOpen))) => {
                std::thread::sleep(TRY_AGAIN);
                continue;
            }
            Ok(Err(Problem::Redb(error))) => Err(judge(path, error)),
        };
    }
    Err(HistoryError::InUse { path: path.to_owned() })
}

fn judge(path: &Path, error: redb::Error) -> HistoryError {
    use redb::Error;

    let path = path.to_owned();
    match error {
        // Nonsense instead of a header shows as invalid data or a file that ends too early.
        Error::Io(error) if !matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
            HistoryError::Io { path, reason: error.to_string() }
        }
        Error::PreviousIo | Error::LockPoisoned(_) | Error::DatabaseClosed => {
            HistoryError::Io { path, reason: error.to_string() }
        }
        error => HistoryError::Damaged { path, reason: error.to_string() },
    }
}

fn io_error(path: &Path, error: &std::io::Error) -> HistoryError {
    HistoryError::Io { path: path.to_owned(), reason: error.to_string() }
}

/// Where a file that cannot be read goes.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".damaged");
    name.into()
}

#[cfg(test)]
mod tests;
