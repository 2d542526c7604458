//! Lines that a thread of its own writes: a server must not stop because the reader of its output has.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

/// Bytes that wait to be written, at most; a line that would exceed them is dropped and counted.
const MAX_WAITING: usize = 1 << 20;

/// Between two writes: to wake the thread for each line would cost more than the line.
const PAUSE: Duration = Duration::from_millis(10);

/// Output that never blocks. Each `write` is one line or several whole ones; the thread writes them in order.
#[derive(Clone)]
pub(crate) struct LogQueue {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Tells the thread that there is something to do.
    work: Condvar,
}

/// What the thread has to do.
#[derive(Default)]
struct Waiting {
    text: Vec<u8>,
    /// Bytes that are being written.
    in_hand: usize,
    /// Lines dropped since this was last said.
    dropped: u64,
    /// Told when everything before is written.
    flushes: Vec<SyncSender<()>>,
    /// The thread waits for the first line.
    is_idle: bool,
}

impl LogQueue {
    /// Writes to `output`. `dropped` words the line that says how many lines are missing in its place.
    pub(crate) fn new(
        output: impl Write + Send + 'static,
        dropped: impl Fn(u64) -> String + Send + 'static,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        // It ends with the process: where output blocks, so does the thread.
        std::thread::spawn(move || write_all(output, &of_thread, dropped));
        Self { shared }
    }

    /// Writes one line. It is dropped if too much waits.
    pub(crate) fn line(&self, text: impl Display) {
        self.push(|waiting| {
            // Writing to a vector does not fail.
            let _ = writeln!(waiting, "{text}");
        });
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json_line(&self, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(text) => self.line(text),
            Err(error) => tracing::error!(%error, "a line for programs could not be made"),
        }
    }

    /// Lets `write` append lines to what waits.
    fn push(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut waiting = self.shared.lock();
        let before = waiting.text.len();
        write(&mut waiting.text);
        if waiting.text.len() + waiting.in_hand > MAX_WAITING {
            waiting.text.truncate(before);
            waiting.dropped += 1;
        }
        if std::mem::take(&mut waiting.is_idle) {
            self.shared.work.notify_one();
        }
    }

    /// Waits until what was written before is out, for `limit` at most; false if it is not.
    pub(crate) fn drain(&self, limit: Duration) -> bool {
        let (done, is_done) = sync_channel(1);
        self.shared.lock().flushes.push(done);
        self.shared.work.notify_one();
        is_done.recv_timeout(limit).is_ok()
    }
}

impl Write for LogQueue {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.push(|waiting| waiting.extend_from_slice(text));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A line that panics while it is written is cut off; the lines before it are whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to do.
    fn next(&self) -> (Vec<u8>, u64, Vec<SyncSender<()>>) {
        let nothing = |waiting: &mut Waiting| {
            waiting.is_idle = waiting.text.is_empty() && waiting.dropped == 0 && waiting.flushes.is_empty();
            waiting.is_idle
        };
        let waited = self.work.wait_while(self.lock(), nothing);
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner);
        waiting.in_hand = waiting.text.len();
        let waiting = &mut *waiting;
        let text = std::mem::take(&mut waiting.text);
        (text, std::mem::take(&mut waiting.dropped), std::mem::take(&mut waiting.flushes))
    }

    /// Lets lines gather, unless somebody waits for them.
    fn pause(&self) {
        let mut waiting = self.lock();
        waiting.in_hand = 0;
        let _ = self.work.wait_timeout_while(waiting, PAUSE, |waiting| waiting.flushes.is_empty());
    }
}

/// Writes what comes. Where nobody reads any more, nobody misses it.
fn write_all(mut output: impl Write, shared: &Shared, dropped: impl Fn(u64) -> String) {
    loop {
        let (text, missing, flushes) = shared.next();
        let _ = output.write_all(&text).and_then(|()| output.flush());
        if missing > 0 {
            let _ = writeln!(output, "{}", dropped(missing)).and_then(|()| output.flush());
        }
        for done in flushes {
            let _ = done.send(());
        }
        shared.pause();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

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
        let waiting = |queue: &LogQueue| {
            let waiting = queue.shared.lock();
            waiting.text.len() + waiting.in_hand
        };
        assert!(waiting(&queue) <= MAX_WAITING);
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
        assert!(queue.shared.lock().text.is_empty());
    }

    #[test]
    fn lines_that_come_together_are_written_together() {
        struct Counted(Arc<Mutex<(usize, usize)>>);
        impl Write for Counted {
            fn write(&mut self, text: &[u8]) -> io::Result<usize> {
                let mut counts = self.0.lock().unwrap();
                counts.0 += 1;
                counts.1 += std::str::from_utf8(text).unwrap().lines().count();
                Ok(text.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let counts = Arc::new(Mutex::new((0, 0)));
        let queue = LogQueue::new(Counted(Arc::clone(&counts)), |_| String::new());
        let began = std::time::Instant::now();
        for _ in 0..1000 {
            queue.line("x");
        }
        let pauses = began.elapsed().div_duration_f64(PAUSE).ceil() as usize;
        assert!(queue.drain(Duration::from_secs(10)));
        let (writes, lines) = *counts.lock().unwrap();
        assert_eq!(lines, 1000);
        assert!(writes <= 2 + pauses, "{writes} writes, {pauses} pauses");
    }
}
