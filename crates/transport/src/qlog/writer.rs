//! Records in order, in blocks, to a sink that may fail.

use std::io::{self, Write};

use posthaste_units::{Duration, Time};
use qlog::events::{Event, EventData, EventImportance, JsonEvent};
use qlog::{QlogSeq, TraceSeq};

/// What begins each record of a JSON text sequence (RFC 7464 section 2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

/// Bytes collected before they are handed to the sink.
const BLOCK: usize = 16 * 1024;

/// Time after which a block goes out though it is not full: what is lost when a process is killed.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Media type of a JSON text sequence of qlog records.
const SERIALIZATION_FORMAT: &str = "application/qlog+json-seq";

/// The `title` of every trace.
const TITLE: &str = "posthaste";

/// Writes whole records only, so that what the sink has is a valid trace at any moment. The first failure ends the
/// trace and is logged; nobody else notices.
pub(crate) struct Writer {
    /// `None` until somebody wants the trace.
    sink: Option<Box<dyn Write + Send + Sync>>,
    /// Where the times of records count from.
    start: Time,
    /// The time of the newest record: times ascend.
    newest: Time,
    handed_over_at: Time,
    /// Records that the sink does not have yet.
    block: Vec<u8>,
    is_over: bool,
}

impl Writer {
    /// A trace that begins with the description of itself. Until it has a sink it is kept in memory.
    pub(crate) fn new(start: Time, trace: TraceSeq) -> Self {
        let mut writer = Self {
            sink: None,
            start,
            newest: start,
            handed_over_at: start,
            block: Vec::new(),
            is_over: false,
        };
        let header = QlogSeq {
            file_schema: qlog::QLOGFILESEQ_URI.to_owned(),
            serialization_format: SERIALIZATION_FORMAT.to_owned(),
            title: Some(TITLE.to_owned()),
            description: None,
            trace,
        };
        writer.record(start, |block| serde_json::to_writer(block, &header));
        writer
    }

    /// Sets where the trace goes; nowhere if there is no sink.
    pub(crate) fn set_sink(&mut self, sink: Option<Box<dyn Write + Send + Sync>>) {
        self.is_over = sink.is_none();
        self.sink = sink;
    }

    /// True once nothing is written any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Writes an event.
    pub(crate) fn event(&mut self, now: Time, data: EventData) {
        let event = Event::with_time(self.milliseconds(now), data);
        self.record(now, |block| serde_json::to_writer(block, &event));
    }

    /// Writes an event whose name the qlog crate does not know.
    pub(crate) fn named_event(&mut self, now: Time, name: &str, data: serde_json::Value) {
        let time = self.milliseconds(now);
        let event = JsonEvent { time, importance: EventImportance::Base, name: name.to_owned(), data };
        self.record(now, |block| serde_json::to_writer(block, &event));
    }

    /// Hands everything to the sink.
    pub(crate) fn flush(&mut self) {
        let Some(sink) = self.sink.as_mut().filter(|_| !self.is_over) else { return };
        let result = sink.write_all(&self.block).and_then(|()| sink.flush());
        self.block.clear();
        self.handed_over_at = self.newest;
        if let Err(error) = result {
            self.fail(&error);
        }
    }

    /// Milliseconds since the trace's start, to the microsecond.
    fn milliseconds(&mut self, now: Time) -> f64 {
        self.newest = self.newest.max(now);
        self.newest.since(self.start).as_micros() as f64 / 1000.0
    }

    fn record(&mut self, now: Time, serialize: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>) {
        if self.is_over {
            return;
        }
        self.block.push(RECORD_SEPARATOR);
        if let Err(error) = serialize(&mut self.block) {
            self.fail(&error.into());
            return;
        }
        self.block.push(b'\n');
        if self.block.len() >= BLOCK || now.since(self.handed_over_at) >= MAX_DELAY {
            self.flush();
        }
    }

    fn fail(&mut self, error: &io::Error) {
        self.is_over = true;
        self.block = Vec::new();
        tracing::warn!(%error, "a qlog trace cannot be written; it ends here");
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.flush();
    }
}
