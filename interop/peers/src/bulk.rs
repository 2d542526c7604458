//! The bulk protocol over one raw QUIC stream, and the settings that every library is given.
//!
//! The client opens a bidirectional stream, sends the number of bytes that it wants (8 bytes, big endian) and
//! ends its side; the server answers with as many bytes of [`PATTERN`] and ends its own. There may be several such streams
//! at once, on one connection or several.

use std::time::{Duration, Instant};

use serde::Serialize;

use tokio::task::JoinSet;

use crate::contract::{BulkClientArgs, Result, print_json};

/// The ALPN token.
pub const ALPN: &[u8] = b"posthaste-bulk";
/// Receive and send windows of stream and connection, in bytes.
pub const WINDOW: u64 = 16 << 20;
/// Bidirectional streams that a peer may have open.
pub const STREAMS: u32 = 256;
/// UDP payload of a full packet: what an Ethernet path carries. Loopback would carry 65 kB, which no user has.
pub const UDP_PAYLOAD: u16 = 1452;
/// Kernel buffers asked for on every socket, in bytes.
pub const SOCKET_BUFFER: usize = 4 << 20;
/// Idle connections must outlive the measurement.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// What the server repeats; its period is odd, so that a lost or doubled packet shows.
pub static PATTERN: [u8; 65_535] = pattern();

#[expect(clippy::large_stack_arrays, reason = "evaluated at compile time: no stack is used")]
const fn pattern() -> [u8; 65_535] {
    let mut bytes = [0; 65_535];
    let mut index = 0;
    while index < bytes.len() {
        bytes[index] = (index % 251) as u8;
        index += 1;
    }
    bytes
}

/// What has arrived.
#[derive(Debug)]
pub struct Receipt {
    wanted: u64,
    received: u64,
    started: Instant,
}

/// The client's result, printed as a line of JSON.
#[derive(Debug, Serialize)]
struct Report {
    bytes: u64,
    seconds: f64,
}

impl Receipt {
    /// Starts the clock: the handshake is done, the request about to leave.
    pub fn new(wanted: u64) -> Self {
        Self { wanted, received: 0, started: Instant::now() }
    }

    /// Bytes to ask for.
    pub fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Counts `chunk`, which continues what was counted before, and checks its first and last byte.
    ///
    /// # Errors
    /// A byte is not what the server sent.
    pub fn add(&mut self, chunk: &[u8]) -> Result<()> {
        let expected = |offset: u64| PATTERN[(offset % PATTERN.len() as u64) as usize];
        let (Some(&first), Some(&last)) = (chunk.first(), chunk.last()) else { return Ok(()) };
        let end = self.received + chunk.len() as u64;
        if first != expected(self.received) || last != expected(end - 1) {
            return Err(format!("wrong content in bytes {}..{end}", self.received).into());
        }
        self.received = end;
        Ok(())
    }

    /// Prints the result at the end of the only stream.
    ///
    /// # Errors
    /// Too few or too many bytes have come.
    pub fn finish(self) -> Result<()> {
        let seconds = self.started.elapsed().as_secs_f64();
        print_json(&Report { bytes: self.end()?, seconds })
    }

    /// The end of the stream; how many bytes have come.
    ///
    /// # Errors
    /// Too few or too many.
    pub fn end(self) -> Result<u64> {
        if self.received == self.wanted {
            Ok(self.received)
        } else {
            Err(format!("{} bytes of {}", self.received, self.wanted).into())
        }
    }
}

/// Fetches `args.bytes` on each of `args.streams` streams of all `connections`, and prints the result. A lone stream is
/// fetched without a task of its own.
///
/// # Errors
/// A transfer fails.
pub async fn run<C: Clone, F>(
    args: &BulkClientArgs,
    connections: &[C],
    fetch: impl Fn(C, Receipt) -> F,
) -> Result<()>
where
    F: Future<Output = Result<u64>> + Send + 'static,
{
    let started = Instant::now();
    let mut bytes = 0;
    if let ([connection], 1) = (connections, args.streams) {
        bytes = fetch(connection.clone(), Receipt::new(args.bytes)).await?;
    } else {
        let mut tasks = JoinSet::new();
        for connection in connections {
            for _ in 0..args.streams {
                tasks.spawn(fetch(connection.clone(), Receipt::new(args.bytes)));
            }
        }
        while let Some(ended) = tasks.join_next().await {
            bytes += ended??;
        }
    }
    print_json(&Report { bytes, seconds: started.elapsed().as_secs_f64() })
}

/// Waits until the harness closes stdin.
pub async fn until_stdin_ends() {
    use tokio::io::AsyncReadExt as _;
    let mut byte = [0];
    while matches!(tokio::io::stdin().read(&mut byte).await, Ok(1..)) {}
}
