//! What a server has learnt of paths, on disk: for its next run.
//!
//! All of it lives in memory; a thread of its own writes what changes into a redb file, in batches. Connections never
//! wait for the disk. The file is open only while a batch is written, so that others can read it meanwhile; what a
//! crash costs is the last batch.
//!
//! A disk that is full, or fails, costs the file and nothing else, at the start as later: it is tried again, then with
//! all that is in memory. A place that cannot be (no such folder, no permission, a folder in the file's place) is
//! somebody's mistake instead, and an error at the start; [`may_pass`] draws the line.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration as Span, Instant};

use posthaste_policy::history::{Change, History, HistoryRules, MAX_PATHS, PathKey, PathRecord};
use posthaste_policy::sample::PathHistory;
use posthaste_transport::{MemoryStore, PathStore};
use posthaste_units::Duration;
use redb::backends::FileBackend;
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
/// From the first on, changes are gathered for so long before they are written.
const GATHER: Span = Span::from_millis(200);
/// A file that could not be written is tried again after so long.
const RETRY: Span = Span::from_secs(5);
/// A file that another process writes to at the moment is tried so often.
const TRIES: u32 = 20;
/// And so long after each try.
const TRY_AGAIN: Span = Span::from_millis(25);
/// Memory for redb's pages while the file is open.
const CACHE: usize = 1 << 20;
/// How long [`HistoryStore::flush`], and then the end of a store, wait for the disk.
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
        /// What kind of refusal it is.
        kind: ErrorKind,
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
    /// The disk did not answer when it was last waited for.
    is_stuck: AtomicBool,
    /// Closed when the writer is done.
    done: Mutex<Receiver<()>>,
}

enum Message {
    Changed(Vec<Change>),
    /// Somebody waits until all is in the file, and is told whether it is.
    Flush(SyncSender<bool>),
}

impl HistoryStore {
    /// The history in the file `path`, kept by a profile's rules. Without the file it begins empty.
    ///
    /// A file that cannot be read is moved aside, to the same name with `.damaged` behind it, and the history begins
    /// empty, with a warning in the log. So it does where the disk is full or fails; the file is then tried again every
    /// few seconds. What it held then counts as lost: it is replaced by what was learnt since.
    ///
    /// # Errors
    /// [`HistoryError::Io`] if there can be no such file: there is no such folder, it may not be written to, or the
    /// path is that of a folder; [`HistoryError::InUse`] if another program holds the file for long.
    pub fn open(path: &Path, rules: HistoryRules) -> Result<Self, HistoryError> {
        let (rows, unread) = pardon(Self::read_or_begin_anew(path))?;
        let now = Duration::from(clock::unix_time());
        let mut history = History::new(rules);
        for (key, record) in rows.unwrap_or_default() {
            history.restore(now, key, record);
        }
        // Shows now whether it can be written at all, and with what is still good alone.
        let memory = MemoryStore::from(history);
        let unwritten = match unread {
            None => pardon(write(path, &memory, None))?.1,
            unread => unread,
        };
        Self::start(path, memory, unwritten.as_ref(), RETRY)
    }

    /// Begins to write; `failure` is why nothing is in the file yet.
    fn start(
        path: &Path,
        memory: MemoryStore,
        failure: Option<&HistoryError>,
        retry: Span,
    ) -> Result<Self, HistoryError> {
        let (queue, messages) = sync_channel(QUEUE);
        let (memory, is_behind) = (Arc::new(memory), Arc::new(AtomicBool::new(failure.is_some())));
        let mut writer = Writer {
            path: path.to_owned(),
            memory: Arc::clone(&memory),
            is_behind: Arc::clone(&is_behind),
            is_failure_told: false,
            retry,
        };
        if let Some(failure) = failure {
            writer.tell(failure);
        }
        let (running, done) = sync_channel(0);
        let run = move || {
            writer.run(&messages);
            drop(running);
        };
        let writer = std::thread::Builder::new()
            .name("posthaste-history".to_owned())
            .spawn(run)
            .map_err(|error| io_error(path, &error))?;
        let (is_stuck, done) = (AtomicBool::new(false), Mutex::new(done));
        Ok(Self { memory, queue: Some(queue), is_behind, writer: Some(writer), is_stuck, done })
    }

    /// The file's rows; none of a damaged one, which is moved aside.
    fn read_or_begin_anew(path: &Path) -> Result<Vec<(PathKey, PathRecord)>, HistoryError> {
        let reason = match Self::read(path) {
            Err(HistoryError::Damaged { reason, .. }) => reason,
            other => return other,
        };
        let aside = aside(path);
        std::fs::rename(path, &aside).map_err(|error| io_error(path, &error))?;
        tracing::warn!(
            path = %path.display(), aside = %aside.display(), reason,
            "the history of paths cannot be read: it is moved aside and begins anew"
        );
        Ok(Vec::new())
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
                let (kind, reason) = (ErrorKind::IsADirectory, "it is no file".to_owned());
                return Err(HistoryError::Io { path: path.to_owned(), kind, reason });
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
        let until = clock::instant() + FLUSH;
        let is_sent = self.queue.as_ref().is_some_and(|queue| send_until(queue, Message::Flush(done), until));
        let left = until.saturating_duration_since(clock::instant());
        let flushed = if is_sent { is_done.recv_timeout(left) } else { Err(RecvTimeoutError::Timeout) };
        self.is_stuck.store(flushed == Err(RecvTimeoutError::Timeout), Ordering::Relaxed);
        flushed == Ok(true)
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
        // A file system that does not answer must not keep the process.
        let done = self.done.get_mut().unwrap_or_else(PoisonError::into_inner);
        let wait = if *self.is_stuck.get_mut() { Span::ZERO } else { FLUSH };
        let is_over = done.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
        if let Some(writer) = self.writer.take().filter(|_| is_over) {
            let _ = writer.join();
        }
    }
}

/// Queues a message as soon as there is room for it, until then; false if it is not queued.
#[expect(clippy::disallowed_methods, reason = "whoever flushes waits for the disk")]
fn send_until(queue: &SyncSender<Message>, mut message: Message, until: Instant) -> bool {
    loop {
        message = match queue.try_send(message) {
            Ok(()) => return true,
            Err(TrySendError::Disconnected(_)) => return false,
            Err(TrySendError::Full(message)) => message,
        };
        if clock::instant() >= until {
            return false;
        }
        std::thread::sleep(TRY_AGAIN);
    }
}

/// The thread that writes.
struct Writer {
    path: PathBuf,
    memory: Arc<MemoryStore>,
    is_behind: Arc<AtomicBool>,
    is_failure_told: bool,
    /// How long a file is left alone that could not be written.
    retry: Span,
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        while let Some(first) = self.first(messages) {
            let (changes, waiting) = gather(first, messages, clock::instant);
            let is_written = self.write(&changes);
            if let Some(waiting) = waiting {
                let _ = waiting.send(is_written);
            }
        }
        // The last chance of what the file lacks.
        self.write(&[]);
    }

    /// The next message that there is something to do for; none at the end. While the file lacks something it is tried
    /// again meanwhile, then with all that is in memory: changes need not be gathered.
    fn first(&mut self, messages: &Receiver<Message>) -> Option<Message> {
        let mut next_try = None;
        while self.is_behind.load(Ordering::Relaxed) {
            let wait = if self.is_failure_told { self.retry } else { GATHER };
            let at = *next_try.get_or_insert_with(|| clock::instant() + wait);
            match messages.recv_timeout(at.saturating_duration_since(clock::instant())) {
                Ok(Message::Changed(_)) if clock::instant() < at => {}
                Ok(Message::Changed(_)) | Err(RecvTimeoutError::Timeout) => {
                    self.write(&[]);
                    next_try = None;
                }
                Ok(flush @ Message::Flush(_)) => return Some(flush),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        messages.recv().ok()
    }

    /// Writes the changes, or everything if some were missed; whether the file has all. A failure costs the file, never
    /// the traffic.
    fn write(&mut self, changes: &[Change]) -> bool {
        let is_behind = self.is_behind.swap(false, Ordering::Relaxed);
        if changes.is_empty() && !is_behind {
            return true;
        }
        match write(&self.path, &self.memory, (!is_behind).then_some(changes)) {
            Ok(()) => {
                if std::mem::take(&mut self.is_failure_told) {
                    tracing::info!(path = %self.path.display(), "the history of paths is written again");
                }
                true
            }
            Err(error) => {
                self.is_behind.store(true, Ordering::Relaxed);
                self.tell(&error);
                false
            }
        }
    }

    /// Says once that the file is not written.
    fn tell(&mut self, error: &HistoryError) {
        if !std::mem::replace(&mut self.is_failure_told, true) {
            tracing::warn!(
                %error,
                "the history of paths is kept in memory only for now; the file is tried again every few seconds"
            );
        }
    }
}

/// The changes that come within [`GATHER`] of the first, however closely one follows the other: what a crash costs must
/// not grow with the load. Ends early for whoever waits for the file. `now` is the clock.
fn gather(
    first: Message,
    messages: &Receiver<Message>,
    mut now: impl FnMut() -> Instant,
) -> (Vec<Change>, Option<SyncSender<bool>>) {
    let until = now() + GATHER;
    let mut changes = Vec::new();
    let mut next = Some(first);
    while let Some(message) = next.take() {
        match message {
            Message::Changed(more) => changes.extend(more),
            Message::Flush(done) => return (changes, Some(done)),
        }
        let left = until.saturating_duration_since(now());
        if !left.is_zero() && changes.len() < MAX_PATHS {
            next = messages.recv_timeout(left).ok();
        }
    }
    (changes, None)
}

/// Whether what the system refuses may be granted later though nobody has changed the path: the disk is full or fails.
/// What is left is a path that cannot be.
fn may_pass(kind: ErrorKind) -> bool {
    !matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::InvalidFilename
            | ErrorKind::InvalidInput
            | ErrorKind::Unsupported
    )
}

/// Takes a failure that may pass out of the way.
fn pardon<T>(result: Result<T, HistoryError>) -> Result<(Option<T>, Option<HistoryError>), HistoryError> {
    match result {
        Ok(done) => Ok((Some(done), None)),
        Err(error @ HistoryError::Io { kind, .. }) if may_pass(kind) => Ok((None, Some(error))),
        Err(error) => Err(error),
    }
}

/// Writes changes into the file, or, with none, all that is in memory in the place of what is in it.
fn write(path: &Path, memory: &MemoryStore, changes: Option<&[Change]>) -> Result<(), HistoryError> {
    let is_new = match std::fs::metadata(path) {
        Ok(metadata) => metadata.is_file() && metadata.len() == 0,
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    let done = attempt(path, |database| {
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
    });
    if is_new && matches!(done, Err(HistoryError::Io { .. })) {
        // Half a file would pass for a damaged one.
        let _ = std::fs::remove_file(path);
    }
    done
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

/// The file as a database. One that is made here only its owner may read: it tells who was there.
fn create(path: &Path) -> Result<Database, redb::Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let backend = FileBackend::new(options.open(path)?)?;
    Ok(Database::builder().set_cache_size(CACHE).create_with_backend(backend)?)
}

/// Opens the file for as long as `work` takes, and tells damage from refusals. What others do to the file for a moment
/// is waited for.
#[expect(clippy::disallowed_methods, reason = "on the writer's own thread, or before a server begins")]
fn attempt<T>(path: &Path, work: impl Fn(&Database) -> Result<T, Problem>) -> Result<T, HistoryError> {
    // A file full of nonsense may make redb panic; that is as good as an error.
    let open = || {
        let database = create(path)?;
        work(&database)
    };
    for _ in 0..TRIES {
        let damaged = |reason: String| HistoryError::Damaged { path: path.to_owned(), reason };
        return match without_report(open) {
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

thread_local! {
    /// A panic of this thread is expected, and told by who caught it.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives; an error if it panics, and then no message of the panic on stderr. Those of other threads are
/// reported as ever.
fn without_report<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    static HOOK: Once = Once::new();

    HOOK.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                report(panic);
            }
        }));
    });
    IS_CAUGHT.set(true);
    let result = std::panic::catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(false);
    result
}

fn judge(path: &Path, error: redb::Error) -> HistoryError {
    use redb::Error;

    let path = path.to_owned();
    match error {
        // Nonsense instead of a header shows as invalid data or a file that ends too early.
        Error::Io(error) if !matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
            HistoryError::Io { path, kind: error.kind(), reason: error.to_string() }
        }
        Error::PreviousIo | Error::LockPoisoned(_) | Error::DatabaseClosed => {
            HistoryError::Io { path, kind: ErrorKind::Other, reason: error.to_string() }
        }
        error => HistoryError::Damaged { path, reason: error.to_string() },
    }
}

fn io_error(path: &Path, error: &std::io::Error) -> HistoryError {
    HistoryError::Io { path: path.to_owned(), kind: error.kind(), reason: error.to_string() }
}

/// Where a file that cannot be read goes.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".damaged");
    name.into()
}

#[cfg(test)]
mod tests;
