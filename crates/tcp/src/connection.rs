//! One client's connection, from its handshake to its end.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use posthaste_service::{AnyService, Phase, Protocol};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_rustls::server::TlsStream;

use crate::activity::Activity;
use crate::exchange::{self, Context};
use crate::io::{Cut, Guarded};
use crate::options::TcpOptions;
use crate::server::Shared;
use crate::silence::{Silence, Verdict};

/// Bytes of requests' bodies that a client may send before a service reads them: per HTTP/2 stream, and per connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Bytes of a response that hyper buffers per HTTP/2 stream.
const SEND_BUFFER: usize = 64 * 1024;

/// Streams of one HTTP/2 connection that may end by an error of the client (CVE-2025-8671).
const MAX_ERRORS: usize = 256;

/// The least that hyper takes as the limit of an HTTP/1.1 head.
const LEAST_HEAD: u32 = 8 * 1024;

/// Serves one connection to its end. How many of its requests the end of the server has cut off.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    service: Box<dyn AnyService>,
    (stream, client): (TcpStream, SocketAddr),
    mut phases: watch::Receiver<Phase>,
) -> usize {
    // Small responses must not wait for the acknowledgement of others.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%client, %error, "TCP_NODELAY");
    }
    let handshake = timeout(shared.options.handshake_timeout, shared.tls.accept(stream));
    let stream = tokio::select! {
        shaken = handshake => match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%client, %error, "no TLS handshake");
                return 0;
            }
            Err(_) => {
                tracing::debug!(%client, "the TLS handshake took too long");
                return 0;
            }
        },
        _ = phases.wait_for(|phase| *phase != Phase::Serving) => return 0,
    };
    let tls = stream.get_ref().1;
    let protocol = match tls.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        None | Some(b"http/1.1") => Protocol::Http1,
        // The handshake was all that it was for.
        Some(_) => return 0,
    };
    let server_name = tls.server_name().map(Arc::from);
    let activity = Arc::<Activity>::default();
    let (stream, cut, gone) = Guarded::new(stream, shared.options.stall_timeout);
    let context = Context { shared, client, protocol, server_name, activity, cut };
    speak(context, service, (stream, gone), phases).await
}

async fn speak(
    context: Context,
    service: Box<dyn AnyService>,
    (stream, gone): (Guarded<TlsStream<TcpStream>>, oneshot::Receiver<()>),
    mut phases: watch::Receiver<Phase>,
) -> usize {
    let (options, activity) = (context.shared.options.clone(), Arc::clone(&context.activity));
    let (protocol, cut) = (context.protocol, Arc::clone(&context.cut));
    // Tunnels do not outlive this, however it ends.
    let _end = CutAtEnd(Arc::clone(&cut));
    let stream = TokioIo::new(stream);
    let service = service_fn(move |request| exchange::answer(context.clone(), service.another(), request));
    let watched = Watched { options: &options, activity: &activity, cut: &cut };
    let cut_off = if protocol == Protocol::Http2 {
        let connection = http2(&options).serve_connection(stream, service);
        watched.run(connection, http2::Connection::graceful_shutdown, &mut phases).await
    } else {
        let connection = http1(&options).serve_connection(stream, service).with_upgrades();
        watched.run(connection, http1::UpgradeableConnection::graceful_shutdown, &mut phases).await
    };
    // What the connection has become may live on: it counts, and ends when the server ends.
    tokio::select! {
        biased;
        _ = gone => cut_off,
        _ = phases.wait_for(|phase| *phase == Phase::Over) => {
            cut.cut();
            cut_off + 1
        }
    }
}

/// Cuts a connection when dropped.
struct CutAtEnd(Arc<Cut>);

impl Drop for CutAtEnd {
    fn drop(&mut self) {
        self.0.cut();
    }
}

fn http1(options: &TcpOptions) -> http1::Builder {
    let mut builder = http1::Builder::new();
    let head = options.max_header_size.max(LEAST_HEAD) as usize;
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_headers(options.max_fields)
        .max_header_size(head)
        .max_buf_size(head);
    builder
}

fn http2(options: &TcpOptions) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.max_streams)
        .max_pending_accept_reset_streams(options.max_reset_streams)
        .max_local_error_reset_streams(MAX_ERRORS)
        .max_header_list_size(options.max_header_size)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER);
    if options.upgrades {
        builder.enable_connect_protocol();
    }
    builder
}

/// A connection's bounds in time.
struct Watched<'a> {
    options: &'a TcpOptions,
    activity: &'a Activity,
    cut: &'a Cut,
}

impl Watched<'_> {
    /// Runs the connection to its end; `stop` has it take no further request. How many of its requests the end of the server
    /// has cut off.
    async fn run<C>(
        &self,
        connection: C,
        stop: impl Fn(Pin<&mut C>),
        phases: &mut watch::Receiver<Phase>,
    ) -> usize
    where
        C: Future<Output = hyper::Result<()>>,
    {
        let mut connection = pin!(connection);
        let mut silence = Silence::new(self.options, self.activity, Instant::now());
        let mut ticks = interval(silence.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A server that has begun to stop meanwhile is noticed by the first turn.
        phases.mark_changed();
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "connection ended");
                    }
                    return 0;
                }
                Ok(()) = phases.changed() => match *phases.borrow_and_update() {
                    Phase::Serving => {}
                    Phase::Stopping => {
                        stop(connection.as_mut());
                        silence.hurry(Instant::now());
                    }
                    Phase::Over => {
                        self.cut.cut();
                        return self.activity.open();
                    }
                },
                now = ticks.tick() => match silence.judge(now) {
                    Verdict::Fine => {}
                    Verdict::Idle => stop(connection.as_mut()),
                    Verdict::Over => {
                        self.cut.cut();
                        return 0;
                    }
                },
            }
        }
    }
}
