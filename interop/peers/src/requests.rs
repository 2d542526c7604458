//! Requests and replies over raw QUIC streams.
//!
//! The client opens a bidirectional stream, sends [`REQUEST`] and ends its side; the server answers with [`REPLY`] and
//! ends its own. Before what is measured there are [`WARM_UP`] requests; then the client prints `READY` and waits for a
//! line on its standard input, so that the harness can read the processor times of both ends.

use std::collections::VecDeque;
use std::io::BufRead as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde::Serialize;
use tokio::task::JoinSet;

use crate::contract::{HandshakeClientArgs, RequestClientArgs, Result, print_json, print_line};

/// What a client sends on each stream.
pub static REQUEST: [u8; 100] = [b'?'; 100];
/// What the server answers.
pub static REPLY: [u8; 1_000] = [b'!'; 1_000];
/// Requests that are not measured: windows, estimates and memory are as they will stay.
pub const WARM_UP: u64 = 2_000;

/// The client's result, printed as a line of JSON.
#[derive(Debug, Serialize)]
struct Report {
    requests: u64,
    seconds: f64,
}

/// The clock of the requests that count.
#[derive(Debug)]
pub struct Measured {
    requests: u64,
    started: Instant,
}

impl Measured {
    /// Tells the harness that the warm-up is over, and waits for its word. The thread stands still meanwhile: a few
    /// milliseconds.
    ///
    /// # Errors
    /// The harness is gone.
    pub fn start(requests: u64) -> Result<Self> {
        print_line("READY")?;
        if std::io::stdin().lock().read_line(&mut String::new())? == 0 {
            return Err("the harness has closed stdin".into());
        }
        Ok(Self { requests, started: Instant::now() })
    }

    /// Prints the result: all requests are answered.
    ///
    /// # Errors
    /// Stdout is gone.
    pub fn finish(self) -> Result<()> {
        print_json(&Report { requests: self.requests, seconds: self.started.elapsed().as_secs_f64() })
    }
}

/// Makes requests in `args.in_flight` tasks, over one connection after the other in turn: the warm-up, then those that count.
///
/// # Errors
/// A request fails, or the harness is gone.
pub async fn run<C, F>(
    args: &RequestClientArgs,
    connections: Vec<C>,
    request: impl Fn(C) -> F + Clone + Send + 'static,
) -> Result<()>
where
    C: Clone + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send,
{
    let (connections, next) = (Arc::new(connections), Arc::new(AtomicU64::new(0)));
    let request = move || {
        let index = next.fetch_add(1, Ordering::Relaxed) as usize % connections.len();
        request(connections[index].clone())
    };
    // Each connection has its share of the warm-up.
    side_by_side(args.in_flight, WARM_UP.max(2 * args.connections), &request).await?;
    let measured = Measured::start(args.requests)?;
    side_by_side(args.in_flight, args.requests, &request).await?;
    measured.finish()
}

/// Connections before those that count.
const HANDSHAKE_WARM_UP: u64 = 50;

/// Makes connections in `args.in_flight` tasks: the warm-up, then those that count. `connect` makes one, with
/// [`REQUESTS_EACH`] requests, and says whether its handshake was what `args.again` wants. It stays open for a while longer:
/// tickets for later ones come behind the replies.
///
/// # Errors
/// A connection fails, more than a tenth of the handshakes were not what they should be, or the harness is gone.
pub async fn handshakes<C, F>(
    args: &HandshakeClientArgs,
    connect: impl Fn() -> F + Clone + Send + 'static,
) -> Result<()>
where
    C: Send + 'static,
    F: Future<Output = Result<(bool, C)>> + Send,
{
    let meant = Arc::new(AtomicU64::new(0));
    let (counted, open) = (Arc::clone(&meant), Arc::new(Mutex::new(VecDeque::new())));
    let most = 2 * args.in_flight as usize;
    let connect = move || {
        let (connecting, counted, open) = (connect(), Arc::clone(&counted), Arc::clone(&open));
        async move {
            let (is_meant, connection) = connecting.await?;
            counted.fetch_add(is_meant.into(), Ordering::Relaxed);
            let mut open = open.lock().map_err(|_| "another task has panicked")?;
            open.push_back(connection);
            let oldest = if open.len() > most { open.pop_front() } else { None };
            drop(open);
            // Without a handle it is closed.
            drop(oldest);
            Ok(())
        }
    };
    side_by_side(args.in_flight, HANDSHAKE_WARM_UP, &connect).await?;
    let measured = Measured::start(args.count)?;
    meant.store(0, Ordering::Relaxed);
    side_by_side(args.in_flight, args.count, &connect).await?;
    let meant = meant.load(Ordering::Relaxed);
    if meant * 10 < args.count * 9 {
        return Err(format!("{meant} of {} handshakes were what they should be", args.count).into());
    }
    measured.finish()
}

/// Requests on each connection of [`handshakes`], both at once.
pub const REQUESTS_EACH: usize = 2;

async fn side_by_side<F>(
    in_flight: u64,
    count: u64,
    request: &(impl Fn() -> F + Clone + Send + 'static),
) -> Result<()>
where
    F: Future<Output = Result<()>> + Send,
{
    let begun = Arc::new(AtomicU64::new(0));
    let mut tasks: JoinSet<Result<()>> = JoinSet::new();
    for _ in 0..in_flight {
        let (begun, request) = (Arc::clone(&begun), request.clone());
        tasks.spawn(async move {
            while begun.fetch_add(1, Ordering::Relaxed) < count {
                request().await?;
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// What the server does with a request.
///
/// # Errors
/// It is not [`REQUEST`].
pub fn check_request(received: &[u8]) -> Result<()> {
    check(received, &REQUEST)
}

/// What the client does with a reply.
///
/// # Errors
/// It is not [`REPLY`].
pub fn check_reply(received: &[u8]) -> Result<()> {
    check(received, &REPLY)
}

fn check(received: &[u8], expected: &[u8]) -> Result<()> {
    if received == expected { Ok(()) } else { Err(format!("{} wrong bytes", received.len()).into()) }
}
