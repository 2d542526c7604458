//! A response as it arrives.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::RequestStream;
use h3::error::{Code, StreamError};
use http::{HeaderMap, Method, StatusCode, Uri, header};
use tokio::time::{Instant, timeout};

use super::connect::Live;
use super::{ClientError, ClientOptions, ConnectionReport};
use crate::quic_adapter::{BidiStream, Payload};

/// Informational responses (RFC 9110 section 15.2) that may precede a response.
const MAX_INFORMATIONAL: usize = 32;

/// A response whose headers have arrived, and whose body is read with [`Self::chunk`]. Dropping it gives the rest up.
pub struct Response {
    uri: Uri,
    head: http::Response<()>,
    live: Arc<Live>,
    stream: RequestStream<BidiStream, Payload>,
    first_byte: Duration,
    idle_timeout: Duration,
    /// What `content-length` announces of a body that is sent.
    expected: Option<u64>,
    received: u64,
    is_over: bool,
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response").field("uri", &self.uri).field("head", &self.head).finish_non_exhaustive()
    }
}

impl Response {
    /// Sends `request` and waits for the response's headers.
    pub(super) async fn receive(
        live: Arc<Live>,
        request: http::Request<()>,
        options: &ClientOptions,
        started: Instant,
    ) -> Result<Self, ClientError> {
        let uri = request.uri().clone();
        let is_head = request.method() == Method::HEAD;
        let limit = options.first_byte_timeout;
        let (stream, head) = timeout(limit, exchange_heads(&live, request))
            .await
            .unwrap_or(Err(ClientError::FirstByteTimeout(limit)))?;
        let has_body =
            !is_head && !matches!(head.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let expected = if has_body { content_length(head.headers()) } else { None };
        Ok(Self {
            uri,
            head,
            live,
            stream,
            first_byte: started.elapsed(),
            idle_timeout: options.idle_timeout,
            expected,
            received: 0,
            is_over: !has_body,
        })
    }

    /// The URI that answered: the requested one, or where redirects led.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.head.status()
    }

    /// The header fields.
    pub fn headers(&self) -> &HeaderMap {
        self.head.headers()
    }

    /// Length of the body in bytes, if it is announced.
    pub fn content_length(&self) -> Option<u64> {
        self.expected
    }

    /// Time from the call of [`super::Client::get`] to the response's headers.
    pub fn first_byte(&self) -> Duration {
        self.first_byte
    }

    /// Bytes of the body so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The connection that the response comes over.
    pub fn connection(&self) -> ConnectionReport {
        self.live.report()
    }

    /// The body's next bytes, or `None` when it is complete.
    ///
    /// # Errors
    /// If the body does not arrive whole: the stream is reset, the connection lost, nothing comes for the idle
    /// timeout, or the length is not the announced one.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        if self.is_over {
            return Ok(None);
        }
        let data = match timeout(self.idle_timeout, self.stream.recv_data()).await {
            Ok(Ok(data)) => data.map(|mut data| data.copy_to_bytes(data.remaining())),
            Ok(Err(error)) => return Err(explain(&self.live, error)),
            Err(_) => return Err(ClientError::IdleTimeout(self.idle_timeout)),
        };
        let Some(data) = data else {
            self.is_over = true;
            return match self.expected {
                Some(expected) if expected != self.received => {
                    Err(ClientError::Length { expected, received: self.received })
                }
                _ => Ok(None),
            };
        };
        self.received += data.len() as u64;
        match self.expected {
            Some(expected) if self.received > expected => {
                self.is_over = true;
                Err(ClientError::Length { expected, received: self.received })
            }
            _ => Ok(Some(data)),
        }
    }
}

async fn exchange_heads(
    live: &Live,
    request: http::Request<()>,
) -> Result<(RequestStream<BidiStream, Payload>, http::Response<()>), ClientError> {
    let fail = |error| explain(live, error);
    let mut stream = live.sender().send_request(request).await.map_err(fail)?;
    stream.finish().await.map_err(fail)?;
    for _ in 0..=MAX_INFORMATIONAL {
        let head = stream.recv_response().await.map_err(fail)?;
        if !head.status().is_informational() {
            return Ok((stream, head));
        }
    }
    let reason = "informational responses without end".to_owned();
    Err(ClientError::Protocol { origin: live.origin().clone(), reason })
}

/// The announced length. Several equal ones are one (RFC 9110 section 8.6); of others none is believed.
fn content_length(headers: &HeaderMap) -> Option<u64> {
    let mut lengths =
        headers.get_all(header::CONTENT_LENGTH).iter().map(|value| value.to_str().ok()?.parse().ok());
    let first: Option<u64> = lengths.next()?;
    first.filter(|first| lengths.all(|other| other == Some(*first)))
}

/// What h3's error means. A connection knows best why it ended, unless it was h3 that ended it.
fn explain(live: &Live, error: StreamError) -> ClientError {
    use posthaste_endpoint::CloseReason;

    let origin = live.origin().clone();
    match error {
        StreamError::RemoteClosing => ClientError::NotProcessed { origin },
        StreamError::RemoteTerminate { code } if code == Code::H3_REQUEST_REJECTED => {
            ClientError::NotProcessed { origin }
        }
        StreamError::RemoteTerminate { code } => ClientError::Reset { code: code.to_string() },
        other => match live.quic().close_reason() {
            Some(reason) if !matches!(reason, CloseReason::Local { .. }) => {
                ClientError::Lost { origin, reason }
            }
            _ => ClientError::Protocol { origin, reason: other.to_string() },
        },
    }
}
