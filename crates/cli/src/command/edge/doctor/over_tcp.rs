//! The site over TCP, as every browser meets it first.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use tokio::time::{Instant, timeout_at};

use super::Subject;
use super::addresses::Reached;
use super::certificate::Observer;
use super::finding::Finding;
use crate::command::get::fallback::{Fallback, Reach, Reply, provider_over_tcp, tls_config};

/// Bytes of a body that are read to compare its length.
const MAX_BODY: u64 = 16 << 20;

/// An answer.
pub(super) struct Visit {
    /// As ALPN calls it.
    pub(super) protocol: &'static str,
    pub(super) status: StatusCode,
    pub(super) fields: HeaderMap,
    pub(super) bytes: u64,
    /// The body ended within [`MAX_BODY`] and in time.
    pub(super) is_whole: bool,
}

/// Whether any address accepts connections.
pub(super) fn reachable(subject: &Subject, reached: &[Reached]) -> Finding {
    let count = reached.iter().filter(|it| it.outcome.is_ok()).count();
    if count > 0 {
        return Finding::ok("tcp", format!("port {} accepts connections", subject.port));
    }
    let reasons: Vec<_> =
        reached.iter().filter_map(|it| it.outcome.as_ref().err()).map(ToString::to_string).collect();
    let detail = format!("port {} does not accept connections: {}", subject.port, reasons.join(", "));
    let next = "start the site's server and open TCP port 443: browsers come over TCP first";
    Finding::failed("tcp", detail, next)
}

/// Asks for the resource, without following redirects.
pub(super) async fn visit(subject: &Subject, observer: &Arc<Observer>) -> Result<Visit, String> {
    let uri = subject.uri().ok_or("the URL is not valid")?;
    let config =
        tls_config(provider_over_tcp(), Arc::clone(observer) as _).map_err(|error| error.to_string())?;
    let client = Fallback::new(Reach { max_redirects: 0, timeout: Some(subject.timeout) }, config);
    let started = Instant::now();
    let response = client.over_tcp(&uri, started).await.map_err(|error| error.to_string())?;
    let protocol = response.protocol();
    let (status, fields) = (response.head.status, response.head.headers.clone());
    let (bytes, is_whole) = read(Reply::Tcp(response), subject.timeout).await?;
    Ok(Visit { protocol, status, fields, bytes, is_whole })
}

/// Reads a body: its length, and whether it ended within [`MAX_BODY`] and in time.
pub(super) async fn read(mut reply: Reply, patience: Duration) -> Result<(u64, bool), String> {
    let until = Instant::now() + patience;
    while let Ok(next) = timeout_at(until, reply.chunk()).await {
        let next = next.map_err(|error| error.to_string())?;
        if next.is_none() || reply.received() > MAX_BODY {
            return Ok((reply.received(), next.is_none()));
        }
    }
    Ok((reply.received(), false))
}

/// Whether the site answers over TCP, and by which version of HTTP.
pub(super) fn findings(visit: &Result<Visit, String>) -> Vec<Finding> {
    let visit = match visit {
        Ok(visit) => visit,
        Err(error) => {
            let next = "see the log of the server on the TCP port, and of what is behind it";
            return vec![Finding::failed("http", format!("no answer over TCP: {error}"), next)];
        }
    };
    let detail = format!("{} over {}, {}", visit.status, visit.protocol, length(visit.bytes, visit.is_whole));
    let http = if visit.status.is_server_error() {
        Finding::failed("http", detail, "see the log of the application: is it running?")
    } else if visit.status.is_client_error() {
        Finding::warning("http", detail, "examine a page that exists: --path /PAGE")
    } else {
        Finding::ok("http", detail)
    };
    let http2 = if visit.protocol == "h2" {
        Finding::ok("http2", "ALPN chose h2")
    } else {
        let next = "turn HTTP/2 on in the TCP server, for visitors whose network blocks UDP";
        Finding::warning("http2", "ALPN did not choose h2", next)
    };
    vec![http, http2]
}

pub(super) fn length(bytes: u64, is_whole: bool) -> String {
    if is_whole { format!("{bytes} bytes") } else { format!("more than {bytes} bytes") }
}
