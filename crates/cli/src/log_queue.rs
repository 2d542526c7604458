//! Lines that a thread of its own writes: a server must not stop because the reader of its output has.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use serde::Serialize;

/// Bytes that wait to be written, at most; a line that would exceed them is dropped and counted.
const MAX_WAITING: usize = 1 << 20;

/// Output that never blocks. Each `write` is one line or several whole ones; the thread writes them in order.
#[derive(Clone)]
pub(crate) struct LogQueue {
    queue: Sender<Message>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Bytes that wait.
    waiting: AtomicUsize,
    /// Lines dropped since this was last said.
    dropped: AtomicU64,
}

enum Message {
    Text(Vec<u8>),
    /// Everything before it is written.
    Flush(SyncSender<()>),
}

impl LogQueue {
    /// Writes to `output`. `dropped` words the line that says how many lines are missing in its place.
    pub(crate) fn new(
        output: impl Write + Send + 'static,
        dropped: impl Fn(u64) -> String + Send + 'static,
    ) -> Self {
        let (queue, messages) = channel();
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        // It ends with the process: where output blocks, so does the thread.
        std::thread::spawn(move || write_all(output, &messages, &of_thread, dropped));
        Self { queue, shared }
    }

    /// Writes one line. It is dropped if too much waits.
    pub(crate) fn line(&self, text: impl Display) {
        self.push(format!("{text}\n").into_bytes());
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json_line(&self, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(text) => self.line(text),
            Err(error) => tracing::error!(%error, "a line for programs could not be made"),
        }
    }

    fn push(&self, text: Vec<u8>) {
        let length = text.len();
        let before = self.shared.waiting.fetch_add(length, Ordering::Relaxed);
        let has_room = before.saturating_add(length) <= MAX_WAITING;
        if !has_room || self.queue.send(Message::Text(text)).is_err() {
            self.shared.waiting.fetch_sub(length, Ordering::Relaxed);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what was written before is out, for `limit` at most; false if it is not.
    pub(crate) fn drain(&self, limit: Duration) -> bool {
        let (done, is_done) = sync_channel(1);
        self.queue.send(Message::Flush(done)).is_ok() && is_done.recv_timeout(limit).is_ok()
    }
}

impl Write for LogQueue {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.push(text.to_owned());
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes what comes. Where nobody reads any more, nobody misses it.
fn write_all(
    mut output: impl Write,
    messages: &Receiver<Message>,
    shared: &Shared,
    dropped: impl Fn(u64) -> String,
) {
    while let Ok(message) = messages.recv() {
        match message {
            Message::Text(text) => {
                let _ = output.write_all(&text).and_then(|()| output.flush());
                shared.waiting.fetch_sub(text.len(), Ordering::Relaxed);
            }
            Message::Flush(done) => {
                let _ = done.send(());
            }
        }
        let missing = shared.dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let _ = writeln!(output, "{}", dropped(missing)).and_then(|()| output.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Characters of a line.
    const LINE: usize = 1023;

    /// Output that nobody reads before `go`.
    struct Blocked {
        go: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Blocked {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            // Once the sender is gone, it goes on for ever.
            let _ = self.go.recv();
            self.written.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_writes_does_not_wait_and_what_is_dropped_is_said() {
        let (start, go) = channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let output = Blocked { go, written: Arc::clone(&written) };
        let queue = LogQueue::new(output, |count| format!("{count} lines missing"));
        let lines = 2 * MAX_WAITING / (LINE + 1);
        for _ in 0..lines {
            queue.line("x".repeat(LINE));
        }
        assert!(!queue.drain(Duration::from_millis(10)));
        assert!(queue.shared.waiting.load(Ordering::Relaxed) <= MAX_WAITING);
        drop(start);
        assert!(queue.drain(Duration::from_secs(10)));
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let count = |line: &str| line.strip_suffix(" lines missing")?.parse::<usize>().ok();
        let missing: usize = text.lines().filter_map(count).sum();
        let whole = text.lines().filter(|text| *text == "x".repeat(LINE)).count();
        assert!(missing > 0);
        assert_eq!(missing + whole, lines);
    }

    #[test]
    fn output_that_fails_harms_nobody() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let queue = LogQueue::new(Closed, |_| String::new());
        for _ in 0..3 {
            queue.line("a line");
            assert!(queue.drain(Duration::from_secs(10)));
        }
        assert_eq!(queue.shared.waiting.load(Ordering::Relaxed), 0);
    }
}
