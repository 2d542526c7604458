//! The access log's record of a request, written when the request is over.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode, Uri};
use posthaste_service::{AccessLog, AccessRecord, Outcome, Protocol, Remarks};
use tokio::time::Instant;

/// What is known of a request; told to the log when dropped.
pub(crate) struct Record {
    log: Option<Arc<dyn AccessLog>>,
    client: SocketAddr,
    protocol: Protocol,
    method: Method,
    pub(crate) target: Uri,
    began: Instant,
    status: Option<StatusCode>,
    first_byte: Option<Duration>,
    pub(crate) body_bytes: u64,
    /// The response says that there is HTTP/3.
    pub(crate) tells_http3: bool,
    /// Without one, the client has left.
    pub(crate) outcome: Option<Outcome>,
    remarks: Remarks,
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
        let (status, first_byte, body_bytes, outcome) = (None, None, 0, None);
        let remarks = Remarks::default();
        Self {
            log,
            client,
            protocol,
            method,
            target,
            began,
            status,
            first_byte,
            body_bytes,
            tells_http3: false,
            outcome,
            remarks,
        }
    }

    /// For the service, if somebody will read it.
    pub(crate) fn remarks(&self) -> Option<Remarks> {
        self.log.is_some().then(|| self.remarks.clone())
    }

    /// There is a response.
    pub(crate) fn on_response(&mut self, status: StatusCode) {
        self.status = Some(status);
        self.first_byte = Some(self.began.elapsed());
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
            first_byte: self.first_byte,
            body_bytes: self.body_bytes,
            duration: self.began.elapsed(),
            tells_http3: self.tells_http3,
            urgency: None,
            outcome: &outcome,
            remarks: &self.remarks,
        });
    }
}
