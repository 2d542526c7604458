//! A server on several cores: each worker is a thread with an endpoint, and with connections and requests of its own.

use std::io;
use std::thread;

use futures::TryFutureExt;
use futures::future::join_all;
use posthaste_endpoint::Worker;
use posthaste_http::{Ended, ServerOptions, StaticFiles, serve};
use tokio::sync::oneshot;

use crate::FAREWELL;
use crate::command::running::{Terms, over_quic};

/// Serves with all of them until the terms say that it is over. A single one has a thread of its own, too: requests that
/// change threads cost more than they gain (docs/results/benchmarks.md).
pub(super) async fn run(workers: Vec<Worker>, files: StaticFiles, terms: Terms) -> Ended {
    let count = workers.len();
    let ends = workers.into_iter().map(|worker| {
        let served = on_a_thread(work(worker, count, files.clone(), terms.clone()));
        served.unwrap_or_else(|error| {
            tracing::error!(%error, "a worker does not serve: restart the server, or clients of that worker wait in vain");
            Ended::default()
        })
    });
    join_all(ends).await.into_iter().fold(Ended::default(), std::ops::Add::add)
}

/// One worker's life.
async fn work(worker: Worker, count: usize, files: StaticFiles, terms: Terms) -> io::Result<Ended> {
    let server = serve(worker.start()?, files);
    Ok(over_quic(server, share(ServerOptions::default(), count), terms).run().await)
}

/// Runs `served` on a thread of its own.
async fn on_a_thread(served: impl Future<Output = io::Result<Ended>> + Send + 'static) -> io::Result<Ended> {
    let (end, ended) = oneshot::channel();
    thread::Builder::new().name("worker".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let _ = end.send(runtime.and_then(|runtime| {
            let ended = runtime.block_on(served);
            // A file system that does not answer must not keep the process.
            runtime.shutdown_timeout(FAREWELL);
            ended
        }));
    })?;
    ended.await.unwrap_or_else(|_| Err(io::Error::other("its thread has panicked")))
}

/// What one of `count` workers may hold of what `options` permit the server: connections meet each of them equally often.
fn share(options: ServerOptions, count: usize) -> ServerOptions {
    let part = |whole: usize| whole.div_ceil(count);
    ServerOptions {
        max_connections: part(options.max_connections),
        max_requests: part(options.max_requests),
        max_requests_per_client: part(options.max_requests_per_client),
        max_stalled: part(options.max_stalled),
        ..options
    }
}
