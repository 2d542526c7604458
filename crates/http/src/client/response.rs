//! A response as it arrives.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use posthaste_endpoint::{CloseReason, Side, WriteError};
use posthaste_http3::{Code, MessageError, MessageKind, Part, encode};
use tokio::time::Instant;

use super::connect::{Busy, Live};
use super::upload::Upload;
use super::{ClientError, ClientOptions, ConnectionReport};
use crate::message_stream::{MessageReceiver, MessageSender, ReceiveError};
use crate::service::Body;

/// Informational responses (RFC 9110 section 15.2) that may precede a response.
const MAX_INFORMATIONAL: usize = 32;

/// A response whose headers have arrived, and whose body is read with [`Self::chunk`]. Dropping it gives the rest up.
pub struct Response {
    uri: Uri,
    head: http::Response<()>,
    live: Arc<Live>,
    _busy: Busy,
    receiver: MessageReceiver,
    /// The request's body, while it is being sent.
    upload: Option<Upload>,
    first_byte: Duration,
    idle_timeout: Duration,
    received: u64,
    trailers: Option<HeaderMap>,
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
        request: http::Request<Body>,
        options: &ClientOptions,
        started: Instant,
    ) -> Result<Self, ClientError> {
        let (uri, busy) = (request.uri().clone(), live.busy());
        let limit = options.first_byte_timeout;
        let mut upload = None;
        let heads = exchange_heads(&live, request, options.max_header_size, &mut upload);
        let heads =
            live.progress.wait(limit, pin!(heads)).await.unwrap_or(Err(ClientError::FirstByteTimeout(limit)));
        let (receiver, head) = heads.map_err(|error| blame(upload.as_ref(), error))?;
        Ok(Self {
            uri,
            head,
            live,
            _busy: busy,
            receiver,
            upload,
            first_byte: started.elapsed(),
            idle_timeout: options.idle_timeout,
            received: 0,
            trailers: None,
            is_over: false,
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
        self.receiver.announced()
    }

    /// Time from the call of [`super::Client::get`] to the response's headers.
    pub fn first_byte(&self) -> Duration {
        self.first_byte
    }

    /// The trailers (RFC 9110 section 6.5), if there are any; they come behind the body.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    /// Bytes of the body so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The connection that the response comes over.
    pub fn connection(&self) -> ConnectionReport {
        self.live.report()
    }

    /// The same.
    pub(super) fn live(&self) -> &Arc<Live> {
        &self.live
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
        loop {
            let part = self.live.progress.wait(self.idle_timeout, pin!(self.receiver.next())).await;
            match part.ok_or(ClientError::IdleTimeout(self.idle_timeout))? {
                Ok(Some(Part::Data(data))) => {
                    self.live.progress.note();
                    self.received += data.len() as u64;
                    return Ok(Some(data));
                }
                Ok(Some(Part::Trailers(trailers))) => self.trailers = Some(trailers),
                // No head comes behind a head.
                Ok(Some(Part::Request(_) | Part::Response(_))) => {}
                Ok(None) => {
                    self.is_over = true;
                    return Ok(None);
                }
                Err(error) => {
                    self.is_over = true;
                    return Err(blame(self.upload.as_ref(), explain(&self.live, error)));
                }
            }
        }
    }

    /// Waits until the server has acknowledged all of the request's body: what closes the connection earlier may cut off
    /// its tail. A server may answer before it has read the body. False if it wants no more of it, or cannot have it any
    /// more. Cancel safe.
    ///
    /// # Errors
    /// [`ClientError::Body`] if the body's source has failed; [`ClientError::IdleTimeout`] if nothing goes on for the
    /// idle timeout.
    pub async fn body_sent(&mut self) -> Result<bool, ClientError> {
        let Some(upload) = &mut self.upload else { return Ok(true) };
        let ended = self.live.progress.wait(self.idle_timeout, pin!(upload.ended())).await;
        let is_whole = ended.ok_or(ClientError::IdleTimeout(self.idle_timeout))?;
        match upload.failure() {
            Some(reason) => Err(ClientError::Body { reason: reason.to_owned() }),
            None => Ok(is_whole),
        }
    }
}

/// Sends the request, or begins to, and reads to the head of its response, past informational ones.
async fn exchange_heads(
    live: &Arc<Live>,
    request: http::Request<Body>,
    max_header_size: u64,
    upload: &mut Option<Upload>,
) -> Result<(MessageReceiver, http::Response<()>), ClientError> {
    let protocol = |reason: String| ClientError::Protocol { origin: live.origin().clone(), reason };
    let not_processed = || ClientError::NotProcessed { origin: live.origin().clone() };
    let (parts, body) = request.into_parts();
    let request = http::Request::from_parts(parts, ());
    let kind = MessageKind::Response { to_head: request.method() == Method::HEAD };
    // spec: rfc9114 4.1 one-request-a-stream
    let (send, recv) = live.quic().open_bi().await.map_err(|error| explain(live, error.into()))?;
    let mut sender = MessageSender::new(send, Side::Client);
    let mut receiver = MessageReceiver::new(recv, live.quic(), kind, max_header_size, live.tables());
    // spec: rfc9114 5.2 nothing-new-after-goaway
    if live.is_leaving() {
        return Err(not_processed());
    }
    let head = encode::request_with(&request, Some((live.tables(), sender.id())));
    let head = head.map_err(|error| protocol(error.to_string()))?;
    let mut refused = pin!(live.refused(sender.id()));
    sender.frame(head);
    if http_body::Body::is_end_stream(&body) {
        match sender.finish().await {
            // spec: rfc9114 4.1 client-ends-stream, 4.1 end-waits-for-no-response, 4.1 early-response-kept
            // A server may answer what it does not want to read (RFC 9114 section 4.1).
            Ok(()) | Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {}
            Err(WriteError::ConnectionLost(lost)) => return Err(explain(live, lost.into())),
        }
    } else {
        *upload = Some(Upload::start(Arc::clone(live), sender, body));
    }
    for _ in 0..=MAX_INFORMATIONAL {
        let part = tokio::select! {
            biased;
            part = receiver.next() => part,
            () = &mut refused => return Err(not_processed()),
        };
        match part.map_err(|error| explain(live, error))? {
            Some(Part::Response(head)) if !head.status().is_informational() => return Ok((receiver, head)),
            Some(_) => {}
            None => return Err(protocol("there is no response".to_owned())),
        }
    }
    Err(protocol("informational responses without end".to_owned()))
}

/// A request whose body could not be sent has no response for that reason, whatever the server says.
fn blame(upload: Option<&Upload>, error: ClientError) -> ClientError {
    match upload.and_then(Upload::failure) {
        Some(reason) => ClientError::Body { reason: reason.to_owned() },
        None => error,
    }
}

/// What went wrong, in the client's words. A connection knows best why it ended, unless this end closed it.
fn explain(live: &Live, error: ReceiveError) -> ClientError {
    let origin = live.origin().clone();
    match error {
        // spec: rfc9114 5.4 perhaps-processed
        ReceiveError::Reset(Code::H3_REQUEST_REJECTED) => ClientError::NotProcessed { origin },
        // spec: rfc9114 8 unknown-code-is-no-error
        ReceiveError::Reset(code) => ClientError::Reset { code: code.to_string() },
        ReceiveError::Message(MessageError::Length { announced, received }) => {
            ClientError::Length { expected: announced, received }
        }
        // spec: rfc9114 4.1.2 malformed-response-refused
        ReceiveError::Message(error) => ClientError::Protocol { origin, reason: error.to_string() },
        ReceiveError::Lost(lost) => match (live.breach(), live.quic().close_reason()) {
            (Some(reason), _) => ClientError::Protocol { origin, reason: reason.to_owned() },
            (None, Some(reason)) if !matches!(reason, CloseReason::Local { .. }) => {
                ClientError::Lost { origin, reason }
            }
            _ => ClientError::Protocol { origin, reason: lost.to_string() },
        },
    }
}
