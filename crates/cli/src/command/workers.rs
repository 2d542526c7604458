//! A server on several cores: each worker is a thread with a runtime, sockets, connections and requests of its own.

use std::io;
use std::time::Duration;

use futures::future::{FutureExt as _, select};
use futures::stream::{FuturesUnordered, StreamExt as _};
use posthaste_endpoint::Endpoint;
use posthaste_http::Ended;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::running::{Terms, told};
use crate::FAREWELL;
use crate::exit::Failure;

/// `H3_INTERNAL_ERROR` (RFC 9114 section 8.1), for the clients of a worker that has failed.
const INTERNAL_ERROR: u64 = 0x102;

/// What these clients get to be told.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A worker before it runs: its runtime, in which its sockets are to be made.
pub(super) struct Worker(Option<Runtime>);

impl Worker {
    pub(super) fn new() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build().map(|runtime| Self(Some(runtime)))
    }

    /// Makes something that belongs to its runtime.
    pub(super) fn make<T>(&self, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let _within = self.0.as_ref().map(Runtime::enter);
        make()
    }

    /// Runs `work` on a thread of its own. If that panics, the endpoint's connections end with an error.
    ///
    /// # Errors
    /// There is no thread, or `work` has panicked.
    async fn run(
        mut self,
        endpoint: Endpoint,
        work: impl Future<Output = Ended> + Send + 'static,
    ) -> io::Result<Ended> {
        let (end, ended) = oneshot::channel();
        let Some(runtime) = self.0.take() else { return Err(io::Error::other("it runs already")) };
        std::thread::Builder::new().name("worker".to_owned()).spawn(move || {
            let result = runtime.block_on(guarded(endpoint, work));
            // A file system that does not answer must not keep the process.
            runtime.shutdown_timeout(FAREWELL);
            let _ = end.send(result);
        })?;
        ended.await.unwrap_or_else(|_| Err(io::Error::other("its thread has panicked")))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // To wait for its threads is not possible within another runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

async fn guarded(
    endpoint: Endpoint,
    work: impl Future<Output = Ended> + Send + 'static,
) -> io::Result<Ended> {
    let ended = tokio::spawn(work).await;
    if ended.is_err() {
        endpoint.close(INTERNAL_ERROR, b"the server has failed");
        let _ = timeout(LAST_WORDS, endpoint.wait_idle()).await;
    }
    ended.map_err(io::Error::other)
}

/// Runs workers until the terms say that it is over; `start` gives each its work, on terms of their own. A worker that
/// ends before is not replaced, for the kernel would go on giving it a part of the clients: the others finish their
/// requests, and the server ends.
///
/// # Errors
/// A worker has ended too early.
pub(super) async fn run<F>(
    terms: Terms,
    start: impl FnOnce(Terms) -> Vec<(Worker, Endpoint, F)>,
) -> Result<Ended, Failure>
where
    F: Future<Output = Ended> + Send + 'static,
{
    let (fall, has_fallen) = oneshot::channel();
    let is_over = terms.stop.clone();
    let stop = select(terms.stop.clone(), told(has_fallen).boxed()).map(drop).boxed().shared();
    let workers = start(Terms { stop, ..terms });
    let runs = workers.into_iter().map(|(worker, endpoint, work)| worker.run(endpoint, work));
    let mut runs: FuturesUnordered<_> = runs.collect();
    let (mut all, mut fall, mut failure) = (Ended::default(), Some(fall), None);
    while let Some(ended) = runs.next().await {
        let is_early = is_over.clone().now_or_never().is_none();
        let reason = match ended {
            Ok(ended) => {
                all = all + ended;
                if !is_early {
                    continue;
                }
                "its endpoint is lost".to_owned()
            }
            Err(error) => error.to_string(),
        };
        if fall.take().is_some() {
            tracing::error!(
                reason,
                "a worker has failed: the others finish their requests, then the process ends"
            );
            failure = Some(reason);
        }
    }
    match failure {
        None => Ok(all),
        Some(reason) => Err(Failure::runtime(format!("a worker has failed: {reason}"))
            .hint("start it again; a service manager does so with Restart=on-failure")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use posthaste_endpoint::{ClientConfig, CloseReason, ServerConfig, default_transport, tls};

    use super::*;
    use crate::command::running::Told;

    fn terms(stop: Told) -> Terms {
        let cut = futures::future::pending().boxed().shared();
        Terms { grace: Duration::from_secs(5), access_log: None, stop, cut }
    }

    /// Workers that wait for the terms to end, the first of them with a panic in its work.
    async fn run_with_panic(first_panics: bool, stop: Told) -> (Result<Ended, Failure>, usize) {
        let finished = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&finished);
        let start = |terms: Terms| {
            (0..2)
                .map(|index| {
                    let worker = Worker::new().unwrap();
                    let local = "127.0.0.1:0".parse().unwrap();
                    let endpoint = worker.make(|| Endpoint::client(local)).unwrap();
                    let (count, stop) = (Arc::clone(&count), terms.stop.clone());
                    let work = async move {
                        assert!(index == 1 || !first_panics, "as the test wants it");
                        stop.await;
                        count.fetch_add(1, Ordering::Relaxed);
                        Ended { cut_off: 1, requests_cut_off: 2 }
                    };
                    (worker, endpoint, work)
                })
                .collect()
        };
        (run(terms(stop), start).await, finished.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_worker_that_panics_lets_the_others_finish_and_fails_the_server() {
        let never = futures::future::pending().boxed().shared();
        let (ended, finished) = timeout(Duration::from_secs(60), run_with_panic(true, never)).await.unwrap();
        let failure = ended.unwrap_err().to_string();
        assert!(failure.contains("a worker has failed") && failure.contains("panicked"), "{failure}");
        assert_eq!(finished, 1);
    }

    /// A server endpoint of this worker, and how clients reach it.
    fn server(worker: &Worker) -> (Endpoint, ClientConfig) {
        let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(identity.cert.der().clone()).unwrap();
        let key = identity.signing_key.serialize_der().try_into().unwrap();
        let tls = tls::server_config(vec![identity.cert.into()], key, &[posthaste_http::ALPN]).unwrap();
        let config = ServerConfig::new(tls, default_transport());
        let endpoint = worker.make(|| Endpoint::server("127.0.0.1:0".parse().unwrap(), config)).unwrap();
        let tls = tls::client_config_with_roots(roots, &[posthaste_http::ALPN]).unwrap();
        (endpoint, ClientConfig::new(tls, default_transport()))
    }

    #[tokio::test]
    async fn clients_of_a_worker_that_panics_are_told_of_an_internal_error() {
        let worker = Worker::new().unwrap();
        let (endpoint, config) = server(&worker);
        let address = endpoint.local_addr().unwrap();
        let (fail, failing) = oneshot::channel::<()>();
        // Until the server has the client's Finished, a CONNECTION_CLOSE of the application names no code of its own
        // (RFC 9000 section 10.2.3).
        let accepting = endpoint.clone();
        let (confirm, confirmed) = oneshot::channel();
        let work = async move {
            let accepted = accepting.accept().await.unwrap();
            accepted.handshake().await.unwrap();
            // Not dropped by the panic, which would close it before the worker's end does.
            confirm.send(accepted).unwrap();
            let _ = failing.await;
            panic!("as the test wants it");
        };
        let never = futures::future::pending().boxed().shared();
        let serving = run(terms(never), |_| vec![(worker, endpoint, work)]);
        let visiting = async {
            let client = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let connection = client.connect(&config, address, "localhost").await.unwrap();
            let _at_server = confirmed.await.unwrap();
            fail.send(()).unwrap();
            connection.closed().await
        };
        let both = async { tokio::join!(serving, visiting) };
        let (ended, reason) = timeout(Duration::from_secs(60), both).await.unwrap();
        let failure = ended.unwrap_err().to_string();
        assert!(failure.contains("a worker has failed"), "{failure}");
        let CloseReason::PeerApplication { error_code, reason } = reason else { panic!("{reason:?}") };
        assert_eq!((error_code, &reason[..]), (INTERNAL_ERROR, &b"the server has failed"[..]));
    }

    #[tokio::test]
    async fn what_workers_have_cut_off_is_a_sum() {
        let over = futures::future::ready(()).boxed().shared();
        let (ended, finished) = timeout(Duration::from_secs(60), run_with_panic(false, over)).await.unwrap();
        let ended = ended.unwrap();
        assert_eq!((ended.cut_off, ended.requests_cut_off, finished), (2, 4, 2));
    }
}
