//! What the runtime's thread has to tell the event loop.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::{Fault, lock};
use crate::response::Started;

/// What has become of an operation.
pub(crate) enum Outcome {
    /// What was waited for can be looked at again.
    Ready,
    /// The head of a response is here.
    Response(Box<Started>),
    Failed(Fault),
}

/// Completed operations, and a descriptor that is readable while there are any. Bounded by the operations that Python
/// has begun: each completes once.
pub(crate) struct Completions {
    next: AtomicU64,
    state: Mutex<State>,
    /// The event loop's end, and the runtime's.
    reader: UnixStream,
    writer: UnixStream,
}

#[derive(Default)]
struct State {
    done: Vec<(u64, Outcome)>,
    /// A byte is on its way to the loop, so no other is needed.
    is_signalled: bool,
}

impl Completions {
    pub(crate) fn new() -> Result<Self, Fault> {
        let pair = || {
            let (reader, writer) = UnixStream::pair()?;
            reader.set_nonblocking(true)?;
            writer.set_nonblocking(true)?;
            Ok::<_, std::io::Error>((reader, writer))
        };
        let (reader, writer) =
            pair().map_err(|error| Fault::config(format!("cannot open a pair of sockets: {error}")))?;
        Ok(Self { next: AtomicU64::new(1), state: Mutex::default(), reader, writer })
    }

    /// The descriptor to watch.
    pub(crate) fn descriptor(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// A number for a new operation.
    pub(crate) fn begin(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// An operation is complete.
    pub(crate) fn complete(&self, operation: u64, outcome: Outcome) {
        let mut state = lock(&self.state);
        state.done.push((operation, outcome));
        if !std::mem::replace(&mut state.is_signalled, true) {
            // At most one byte is ever on its way, for which there is room; a reader that is gone wants none.
            let _ = (&self.writer).write(&[0]);
        }
    }

    /// Everything that has completed since the last call.
    pub(crate) fn take(&self) -> Vec<(u64, Outcome)> {
        // The byte first: what completes behind it sends another.
        let _ = (&self.reader).read(&mut [0; 8]);
        let mut state = lock(&self.state);
        state.is_signalled = false;
        std::mem::take(&mut state.done)
    }
}
