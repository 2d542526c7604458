//! A server from its start to its end: lines for requests, signals, the last words.

use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use http::Uri;
use posthaste_http::{AccessLog, AccessRecord, Ended, Outcome, Serve, ServerOptions};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::memory;
use crate::FAREWELL;
use crate::civil_date::timestamp;
use crate::exit::{FAILED, Failure};
use crate::interrupt::Interrupts;
use crate::log_queue::LogQueue;
use crate::printer::{self, printable};

/// How a server runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running {
    /// Lines are JSON.
    pub(crate) json: bool,
    /// Whether requests are printed.
    pub(crate) access_log: bool,
    /// Queries are not printed.
    pub(crate) redact_query: bool,
    /// What requests in progress get when it stops.
    pub(crate) grace: Duration,
}

/// What servers that run together share.
#[derive(Clone)]
pub(crate) struct Terms {
    /// What requests in progress get when they stop.
    pub(crate) grace: Duration,
    /// Told of their requests.
    pub(crate) access_log: Option<Arc<dyn AccessLog>>,
    /// Resolves when they are to stop.
    pub(crate) stop: Told,
    /// Resolves when the grace ends early.
    pub(crate) cut: Told,
}

/// A word that all wait for.
pub(crate) type Told = Shared<BoxFuture<'static, ()>>;

impl Running {
    /// Runs all the servers that `start` starts until they are stopped, and prints their requests. What goes to stderr
    /// meanwhile goes through `log`.
    pub(crate) async fn run<F>(
        self,
        start: impl FnOnce(Terms) -> F,
        mut interrupts: Interrupts,
        log: &LogQueue,
    ) -> Result<ExitCode, Failure>
    where
        F: Future<Output = Result<Ended, Failure>> + Send + 'static,
    {
        let stdout = requests_queue(self.json);
        let Self { json, redact_query, .. } = self;
        let printed =
            || Arc::new(Printed { json, redact_query, queue: stdout.clone() }) as Arc<dyn AccessLog>;
        let ((stop, stopped), (cut, is_cut)) = (oneshot::channel(), oneshot::channel());
        let server = tokio::spawn(start(Terms {
            grace: self.grace,
            access_log: self.access_log.then(printed),
            stop: told(stopped).boxed().shared(),
            cut: told(is_cut).boxed().shared(),
        }));
        let memory = tokio::spawn(memory::keep_giving_back());
        let end = until_stopped(self, server, [stop, cut], &mut interrupts, [&stdout, log]).await;
        memory.abort();
        stdout.drain(FAREWELL);
        end
    }
}

/// A server over QUIC on these terms.
pub(crate) fn over_quic(server: Serve, options: ServerOptions, terms: Terms) -> Serve {
    let Terms { grace, access_log, stop, cut } = terms;
    let options = ServerOptions { grace, access_log, ..options };
    server.options(options).until(stop).cut(cut)
}

/// Listens for the signals that stop a server.
pub(crate) fn interrupts() -> Result<Interrupts, Failure> {
    Interrupts::catch().map_err(|error| Failure::runtime(format!("cannot listen for signals: {error}")))
}

/// Resolves when the sender says so, or is dropped.
pub(super) async fn told(receiver: oneshot::Receiver<()>) {
    let _ = receiver.await;
}

/// Waits for the server's end, at the first interrupt for that of its requests, at the second for the word of it to its
/// clients, at the third for nothing.
async fn until_stopped(
    running: Running,
    mut server: JoinHandle<Result<Ended, Failure>>,
    [stop, cut]: [oneshot::Sender<()>; 2],
    interrupts: &mut Interrupts,
    outputs @ [_, log]: [&LogQueue; 2],
) -> Result<ExitCode, Failure> {
    tokio::select! {
        ended = &mut server => return finish(running, ended, outputs),
        () = interrupts.next() => {}
    }
    note(
        log,
        format_args!(
            "stopping; requests in progress get {} s to finish, Ctrl-C again cuts them off",
            running.grace.as_secs_f64()
        ),
    );
    let _ = stop.send(());
    tokio::select! {
        ended = &mut server => return finish(running, ended, outputs),
        () = interrupts.next() => {}
    }
    let _ = cut.send(());
    tokio::select! {
        ended = server => {
            finish(running, ended, outputs)?;
        }
        () = interrupts.next() => note(log, "ended at once"),
    }
    Ok(ExitCode::from(FAILED))
}

/// A remark to stderr.
fn note(log: &LogQueue, message: impl Display) {
    log.line(format_args!("posthaste: {message}"));
}

/// Lines for stdout.
fn requests_queue(json: bool) -> LogQueue {
    LogQueue::new(anstream::stdout(), move |lines| {
        if json {
            serde_json::json!({ "event": "dropped", "lines": lines }).to_string()
        } else {
            format!("{lines} lines were dropped, because nobody read them")
        }
    })
}

/// Why a UDP port cannot be listened on, and what to do.
pub(crate) fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    cannot_listen_over("UDP", address, error)
}

/// The same of a port of this transport.
pub(crate) fn cannot_listen_over(transport: &str, address: SocketAddr, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let next = SocketAddr::new(address.ip(), address.port().checked_add(1).unwrap_or(0));
            Failure::runtime(format!("{transport} port {address} is in use")).hint(format!(
                "another program listens there: stop it, or choose another port, as with --listen {next} \
                 (port 0 picks a free one)"
            ))
        }
        io::ErrorKind::AddrNotAvailable => {
            Failure::runtime(format!("this machine has no address {}", address.ip()))
                .hint("choose an address of this machine, such as --listen 127.0.0.1:4433")
        }
        io::ErrorKind::PermissionDenied => Failure::runtime(format!("no permission to listen on {address}"))
            .hint("choose a port above 1023 with --listen"),
        _ => Failure::runtime(format!("cannot listen on {address}: {error}")),
    }
}

/// An address that clients on this machine can connect to.
pub(crate) fn connectable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

/// Prints a line a request. A server whose stdout is closed, or is not read, goes on serving.
struct Printed {
    json: bool,
    redact_query: bool,
    queue: LogQueue,
}

/// A request for programs.
#[derive(Serialize)]
struct RequestEvent<'a> {
    event: &'static str,
    time: String,
    /// By which other logs know the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    client: SocketAddr,
    /// `h1`, `h2` or `h3`.
    protocol: &'static str,
    /// As the configuration has it; absent if none answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<&'a str>,
    method: &'a str,
    host: Option<&'a str>,
    path: String,
    /// `null` if the client gave up before there was a response.
    status: Option<u16>,
    bytes: u64,
    /// Until the response's head; `null` without a response.
    first_byte_seconds: Option<f64>,
    seconds: f64,
    complete: bool,
    error: Option<&'a str>,
}

impl AccessLog for Printed {
    fn record(&self, record: &AccessRecord<'_>) {
        let path = shown(record.target, self.redact_query);
        let error = match record.outcome {
            Outcome::Complete => None,
            Outcome::Aborted(reason) | Outcome::Failed(reason) => Some(reason.as_str()),
        };
        let time = timestamp(SystemTime::now());
        if self.json {
            self.queue.json_line(&RequestEvent {
                event: "request",
                time,
                id: record.remarks.request_id(),
                client: record.client,
                protocol: record.protocol.name(),
                site: record.remarks.site().map(AsRef::as_ref),
                method: record.method.as_str(),
                host: record.target.host(),
                path: path.into_owned(),
                status: record.status.map(|status| status.as_u16()),
                bytes: record.body_bytes,
                first_byte_seconds: record.first_byte.map(|time| time.as_secs_f64()),
                seconds: record.duration.as_secs_f64(),
                complete: error.is_none(),
                error,
            });
        } else {
            let ending = error.map(|error| format!(" \x1b[31mincomplete: {}\x1b[0m", printable(error)));
            self.queue.line(format_args!(
                "{time} {} {} {} {} {} B {}{}",
                record.client,
                record.method,
                printable(&path),
                record.status.map_or_else(|| "-".to_owned(), |status| status.as_u16().to_string()),
                record.body_bytes,
                printer::duration(record.duration),
                ending.unwrap_or_default()
            ));
        }
    }
}

/// Path and query of a target, the query replaced if it is not for logs.
fn shown(target: &Uri, redact_query: bool) -> Cow<'_, str> {
    let whole = target.path_and_query().map_or("/", |path| path.as_str());
    match whole.split_once('?') {
        Some((path, _)) if redact_query => format!("{path}?redacted").into(),
        _ => whole.into(),
    }
}

fn finish(
    running: Running,
    ended: Result<Result<Ended, Failure>, tokio::task::JoinError>,
    [stdout, log]: [&LogQueue; 2],
) -> Result<ExitCode, Failure> {
    let ended = ended.map_err(|error| Failure::runtime(format!("the server failed: {error}")))??;
    if running.json {
        let stopped = serde_json::json!({
            "event": "stopped",
            "connections_cut_off": ended.cut_off,
            "requests_cut_off": ended.requests_cut_off,
        });
        stdout.json_line(&stopped);
    } else if ended.cut_off > 0 {
        let Ended { cut_off, requests_cut_off } = ended;
        note(log, format_args!("stopped; {requests_cut_off} requests on {cut_off} connections were cut off"));
    } else {
        note(log, "stopped");
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_shown_or_not() {
        for (target, whole, redacted) in [
            ("https://a.test/x?token=1?2", "/x?token=1?2", "/x?redacted"),
            ("https://a.test/x", "/x", "/x"),
            ("https://a.test", "/", "/"),
            ("/?", "/?", "/?redacted"),
        ] {
            let target = target.parse().unwrap();
            assert_eq!((shown(&target, false).as_ref(), shown(&target, true).as_ref()), (whole, redacted));
        }
    }

    #[test]
    fn errors_of_listening_say_what_to_do() {
        let address: SocketAddr = "127.0.0.1:4433".parse().unwrap();
        let message = |kind: io::ErrorKind| cannot_listen(address, &kind.into()).to_string();
        assert!(message(io::ErrorKind::AddrInUse).contains("--listen 127.0.0.1:4434"));
        assert!(message(io::ErrorKind::PermissionDenied).contains("above 1023"));
        assert!(message(io::ErrorKind::AddrNotAvailable).contains("no address 127.0.0.1"));
    }
}
