//! What became of each packet, line by line.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;

use posthaste_units::{ByteCount, Duration, Time};

/// Lines that may wait for the file: the threads that carry packets wait for no disk.
const WAITING: usize = 1 << 16;

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Towards the namespace that the tunnel is for.
    Down,
    /// Out of it.
    Up,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Arrival,
    Departure,
    Overflow,
    Managed,
    Mark,
    Loss,
    Corruption,
    Duplicate,
    Reordering,
}

/// A line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    /// On the path's clock.
    pub(super) at: Time,
    pub(super) direction: Direction,
    pub(super) event: Event,
    /// Bytes of the packet, zero where the path does not say which it was.
    pub(super) length: usize,
    /// Bytes waiting at the bottleneck afterwards.
    pub(super) queue: ByteCount,
    /// How much later than `at` it really was.
    pub(super) late: Duration,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Down => "down",
            Direction::Up => "up",
        };
        let event = match self.event {
            Event::Arrival => "in",
            Event::Departure => "out",
            Event::Overflow => "overflow",
            Event::Managed => "aqm-drop",
            Event::Mark => "mark",
            Event::Loss => "loss",
            Event::Corruption => "corrupt",
            Event::Duplicate => "duplicate",
            Event::Reordering => "held-back",
        };
        let micros = |nanos: u64| format!("{}.{:03}", nanos / 1_000, nanos % 1_000);
        let (at, late) = (micros(self.at.as_nanos()), micros(self.late.as_nanos()));
        write!(f, "{at},{direction},{event},{},{},{late}", self.length, self.queue.get())
    }
}

/// The columns.
const HEADER: &str = "microseconds,direction,event,bytes,queue_bytes,late_microseconds";

/// A direction's end of the log.
#[derive(Debug, Clone)]
pub(super) struct PacketLog {
    lines: SyncSender<Record>,
    missing: Arc<AtomicU64>,
}

impl PacketLog {
    pub(super) fn write(&mut self, record: Record) {
        if self.lines.try_send(record).is_err() {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The thread that writes.
#[derive(Debug)]
pub(super) struct LogWriter {
    thread: JoinHandle<io::Result<()>>,
    missing: Arc<AtomicU64>,
}

impl LogWriter {
    /// Writes what is put into the log, until the last [`PacketLog`] is gone.
    pub(super) fn start(to: impl Write + Send + 'static) -> io::Result<(Self, PacketLog)> {
        let (lines, waiting) = mpsc::sync_channel::<Record>(WAITING);
        let thread = std::thread::Builder::new().name("packet log".to_owned()).spawn(move || {
            let mut to = BufWriter::with_capacity(1 << 16, to);
            writeln!(to, "{HEADER}")?;
            for record in waiting {
                writeln!(to, "{record}")?;
            }
            to.flush()
        })?;
        let missing = Arc::new(AtomicU64::new(0));
        Ok((Self { thread, missing: Arc::clone(&missing) }, PacketLog { lines, missing }))
    }

    /// Waits until all is written, and says how many lines are missing.
    pub(super) fn finish(self) -> io::Result<u64> {
        self.thread.join().map_err(|_| io::Error::other("the log's thread has panicked"))??;
        Ok(self.missing.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_when_which_way_and_what() {
        let record = Record {
            at: Time::ZERO + Duration::from_nanos(1_234_567),
            direction: Direction::Up,
            event: Event::Departure,
            length: 1500,
            queue: ByteCount::new(3000),
            late: Duration::from_nanos(45_001),
        };
        assert_eq!(record.to_string(), "1234.567,up,out,1500,3000,45.001");
        assert_eq!(record.to_string().matches(',').count(), HEADER.matches(',').count());
    }
}
