//! A thread that writes traces, so that no connection waits for a file system.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use super::log_once;

/// Bytes that wait for the file system, over all traces, at most; a trace that would exceed them ends.
const MAX_WAITING: usize = 16 << 20;

/// Bytes that a message counts in addition to its content.
const OVERHEAD: usize = 128;

enum Message {
    Open(u64, PathBuf),
    /// Whole records of a file.
    Block(u64, Vec<u8>),
    Close(u64),
    /// Answered when all before it is written.
    Flush(SyncSender<()>),
}

/// The queue to the thread, which ends when nobody has one any more.
#[derive(Debug)]
pub(super) struct Background {
    queue: Sender<Message>,
    waiting: Arc<AtomicUsize>,
    files: AtomicU64,
    failed: Arc<AtomicBool>,
}

impl Background {
    /// Starts the thread; `create` makes the file of a trace.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn start<W: Write>(
        failed: Arc<AtomicBool>,
        create: impl Fn(&Path) -> io::Result<W> + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let (queue, messages) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let of_thread = (Arc::clone(&waiting), Arc::clone(&failed));
        let work = move || write_all(&messages, &of_thread.0, &of_thread.1, create);
        std::thread::Builder::new().name("posthaste-qlog".to_owned()).spawn(work)?;
        Ok(Arc::new(Self { queue, waiting, files: AtomicU64::new(0), failed }))
    }

    /// A trace into the file `path`; none if too much waits.
    pub(super) fn open(self: &Arc<Self>, path: PathBuf) -> Option<QueuedTrace> {
        let file = self.files.fetch_add(1, Ordering::Relaxed);
        let length = path.as_os_str().len();
        let is_queued = self.push(Message::Open(file, path), length);
        is_queued.then(|| QueuedTrace { file, background: Arc::clone(self), is_over: false })
    }

    /// Waits until all that has been queued is written, for `limit` at most; false if it is not.
    pub(super) fn flush(&self, limit: Duration) -> bool {
        let (done, is_done) = sync_channel(1);
        self.queue.send(Message::Flush(done)).is_ok() && is_done.recv_timeout(limit).is_ok()
    }

    /// Queues a message with so many bytes of content; false, after a word in the log, if too much waits.
    fn push(&self, message: Message, length: usize) -> bool {
        let cost = length + OVERHEAD;
        let is_queued = self.waiting.fetch_add(cost, Ordering::Relaxed) + cost <= MAX_WAITING
            && self.queue.send(message).is_ok();
        if !is_queued {
            self.waiting.fetch_sub(cost, Ordering::Relaxed);
            log_once(&self.failed, &io::Error::other("the file system is too slow: traces end early"));
        }
        is_queued
    }
}

/// The trace of a connection on its way to the thread.
pub(super) struct QueuedTrace {
    file: u64,
    background: Arc<Background>,
    is_over: bool,
}

impl Write for QueuedTrace {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if !self.is_over {
            // A trace with a hole in it would be misread.
            self.is_over = !self.background.push(Message::Block(self.file, data.to_vec()), data.len());
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for QueuedTrace {
    fn drop(&mut self) {
        // Not counted: there are no more of them than of files that have been opened.
        let _ = self.background.queue.send(Message::Close(self.file));
    }
}

/// Does what the messages say until nobody can send another.
fn write_all<W: Write>(
    messages: &Receiver<Message>,
    waiting: &AtomicUsize,
    failed: &AtomicBool,
    create: impl Fn(&Path) -> io::Result<W>,
) {
    let mut files = HashMap::new();
    while let Ok(message) = messages.recv() {
        let (done, length) = match message {
            Message::Open(file, path) => {
                (create(&path).map(|opened| drop(files.insert(file, opened))), path.as_os_str().len())
            }
            Message::Block(file, block) => {
                let written = files.get_mut(&file).map_or(Ok(()), |opened| opened.write_all(&block));
                if written.is_err() {
                    files.remove(&file);
                }
                (written, block.len())
            }
            Message::Close(file) => {
                files.remove(&file);
                continue;
            }
            Message::Flush(done) => {
                let _ = done.send(());
                continue;
            }
        };
        waiting.fetch_sub(length + OVERHEAD, Ordering::Relaxed);
        if let Err(error) = done {
            log_once(failed, &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A file that is written to when the test permits it.
    #[derive(Clone, Default)]
    struct Slow {
        gate: Arc<Mutex<()>>,
        written: Arc<AtomicUsize>,
    }

    impl Write for Slow {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            drop(self.gate.lock());
            self.written.fetch_add(data.len(), Ordering::Relaxed);
            Ok(data.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_system_that_does_not_answer_holds_up_no_connection_and_fills_no_memory() {
        let slow = Slow::default();
        let (failed, file) = (Arc::<AtomicBool>::default(), slow.clone());
        let background = Background::start(Arc::clone(&failed), move |_| Ok(file.clone())).unwrap();
        let closed = slow.gate.lock().unwrap();
        let block = vec![7; 16 * 1024];
        let mut traces: Vec<_> = (0..4).map(|_| background.open("trace".into()).unwrap()).collect();
        for _ in 0..2 * MAX_WAITING / block.len() / traces.len() {
            for trace in &mut traces {
                trace.write_all(&block).unwrap();
            }
        }
        assert!(background.waiting.load(Ordering::Relaxed) <= MAX_WAITING);
        assert!(traces.iter().all(|trace| trace.is_over), "they end");
        assert!(failed.load(Ordering::Relaxed), "and that is said");
        assert!(!background.flush(Duration::from_millis(10)));
        drop((traces, closed));
        assert!(background.flush(Duration::from_secs(10)));
        assert_eq!(background.waiting.load(Ordering::Relaxed), 0);
        let written = slow.written.load(Ordering::Relaxed);
        assert!((MAX_WAITING * 9 / 10..=MAX_WAITING).contains(&written), "{written}");
        assert!(background.open("next".into()).unwrap().write_all(&block).is_ok());
        assert!(background.flush(Duration::from_secs(10)));
        assert_eq!(slow.written.load(Ordering::Relaxed), written + block.len(), "later traces are whole");
    }
}
