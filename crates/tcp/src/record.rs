//! The access log's record of a request, written when the request is over.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{Method, StatusCode, Uri};
use posthaste_service::{AccessLog, AccessRecord, Outcome, Protocol};
use tokio::time::Instant;

/// What is known of a request; told to the log when dropped.
pub(crate) struct Record {
    log: Option<Arc<dyn AccessLog>>,
    client: SocketAddr,
    protocol: Protocol,
    method: Method,
    pub(crate) target: Uri,
    began: Instant,
    pub(crate) status: Option<StatusCode>,
    pub(crate) body_bytes: u64,
    /// Without one, the client has left.
    pub(crate) outcome: Option<Outcome>,
}

impl Record {
    pub(crate) fn new(
        log: Option<Arc<dyn AccessLog>>,
        client: SocketAddr,
        protocol: Protocol,
        method: Method,
        target: Uri,
    ) -> Self {
        let began = Instant::now();
        let (status, body_bytes, outcome) = (None, 0, None);
        Self { log, client, protocol, method, target, began, status, body_bytes, outcome }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let Some(log) = &self.log else { return };
        let outcome = self.outcome.take();
        let outcome =
            outcome.unwrap_or_else(|| Outcome::Aborted("the client, or the connection, gave up".to_owned()));
        log.record(&AccessRecord {
            client: self.client,
            protocol: self.protocol,
            method: &self.method,
            target: &self.target,
            status: self.status,
            body_bytes: self.body_bytes,
            duration: self.began.elapsed(),
            outcome: &outcome,
        });
    }
}
