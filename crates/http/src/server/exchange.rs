//! One request and its response.

use std::future::{Future, poll_fn, ready};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use http::{HeaderMap, Method, StatusCode, Uri, Version, header};
use posthaste_http3::{Code, ConnectProtocol, MessageError, Part};
use posthaste_service::{Answer, EarlyHints, HintsReceiver, Upgrade, complete, refuse_early};
use tokio::time::Instant;

use super::Shared;
use super::incoming::{self, Begun, Left, Rest, Wanted};
use super::outgoing::Outgoing;
use super::slots::Seat;
use super::visitor::RequestStream;
use crate::message_stream::{MessageReceiver, ReceiveError};
use crate::patience::in_time;
use crate::service::{AccessRecord, AnyService, Body, Outcome, Protocol, Remarks, Request, Response, text};

/// Bytes of a request's body that are read and thrown away while it is answered, once the service has dropped the body;
/// the rest stays where it is.
const MAX_DISCARDED: u64 = 64 * 1024;

/// Informational responses ahead of one response, at most; further ones are dropped.
const MAX_HINTS: usize = 8;

/// A client that gives a request up so soon after its beginning has not waited for the response.
pub(super) const SOON: Duration = Duration::from_secs(1);

/// What a task that serves a request leaves behind.
pub(super) enum Served {
    /// The request was answered, or died while it was.
    Answered,
    /// The client gave it up [`SOON`], before there was a response.
    GivenUp,
    /// It never became a request.
    Abandoned,
}

impl Served {
    /// Of a request that lasted so long.
    fn of(outcome: &Outcome, has_responded: bool, duration: Duration) -> Self {
        // The server's own limits on slow clients are longer.
        let is_soon = duration < SOON;
        if matches!(outcome, Outcome::Aborted(_)) && !has_responded && is_soon {
            Self::GivenUp
        } else {
            Self::Answered
        }
    }
}

/// A request whose head has been read, and that may be worked on.
struct Arrived<'s> {
    request: Request,
    rest: Left,
    wanted: Wanted,
    seat: Seat<'s>,
}

/// What the access log is told of a request.
struct Asked {
    method: Method,
    target: Uri,
    remarks: Remarks,
}

/// A request that the service has.
struct Working {
    answering: Answer,
    hinted: HintsReceiver,
    method: Method,
    upgrade: Option<Upgrade>,
    /// The origin of the request is told of its alternative.
    is_told: bool,
}

/// Reads a request, has it answered and sends the answer. What this future has room for is moved with each request and
/// kept while it lasts, so nothing large lives across a wait that is not needed behind it.
#[expect(clippy::manual_async_fn, reason = "an `async fn` has a second place for what it is given")]
pub(super) fn run(
    shared: Arc<Shared>,
    service: Box<dyn AnyService>,
    mut stream: RequestStream,
    receiver: MessageReceiver,
) -> impl Future<Output = Served> + Send {
    async move {
        let started = Instant::now();
        let arrived = arrive(&shared, &mut stream, receiver).await;
        let Some(Arrived { request, rest, wanted, mut seat }) = arrived else { return Served::Abandoned };
        let (stream, seat) = (&mut stream, &mut seat);
        let mut exchange = Exchange { shared: &shared, stream, seat, responded: None, body_bytes: 0 };
        let (working, asked) = exchange.begin(service, request);
        let outcome = exchange.answer(working, (rest, wanted)).await;
        let duration = started.elapsed();
        if let (Some(log), Some(Asked { method, target, remarks })) = (&shared.options.access_log, &asked) {
            log.record(&AccessRecord {
                client: exchange.stream.visitor.address,
                protocol: Protocol::Http3,
                method,
                target,
                status: exchange.responded.map(|(status, _)| status),
                first_byte: exchange.responded.map(|(_, at)| at - started),
                body_bytes: exchange.body_bytes,
                duration,
                tells_http3: false,
                urgency: Some(exchange.stream.urgency()),
                outcome: &outcome,
                remarks,
            });
        }
        Served::of(&outcome, exchange.responded.is_some(), duration)
    }
}

/// Reads a request's head and waits until it may be worked on. `None` if there is no request; then the client knows.
#[expect(clippy::manual_async_fn, reason = "an `async fn` has a second place for what it is given")]
fn arrive<'s>(
    shared: &'s Shared,
    stream: &mut RequestStream,
    mut receiver: MessageReceiver,
) -> impl Future<Output = Option<Arrived<'s>>> + Send {
    async move {
        let client = stream.visitor.address;
        let read = in_time(shared.options.header_timeout, pin!(head(&mut receiver))).await;
        let head = match read {
            Some(Ok(head)) => head,
            // spec: rfc9114 4.1.2 malformed-not-forwarded
            Some(Err(error)) => {
                tracing::debug!(%client, %error, "no request");
                // Rare, and larger than all that the others need: in a box it is no part of every request's task.
                Box::pin(decline(shared, stream, error)).await;
                return None;
            }
            None => {
                tracing::debug!(%client, "a request's headers did not arrive in time");
                Box::pin(end_overdue(shared, stream, receiver)).await;
                return None;
            }
        };
        stream.prioritize(head.headers());
        let seat = shared.budget.slots.seat(client.ip()).await;
        let is_upgrade = head.extensions().get::<ConnectProtocol>().is_some();
        // How long a tunnel may be silent is the service's matter.
        let stall = (!is_upgrade).then_some(shared.options.stall_timeout);
        // Most requests end with their heads: what arrived with it tells.
        let first = poll_fn(|cx| Poll::Ready(receiver.poll_next(cx))).await;
        match incoming::body(receiver, first, &stream.visitor, head.headers(), stall) {
            Ok(Begun { body, rest, wanted }) => {
                Some(Arrived { request: head.map(|()| body), rest, wanted, seat })
            }
            Err(error) => {
                tracing::debug!(%client, %error, "no request");
                Box::pin(decline(shared, stream, error.into())).await;
                None
            }
        }
    }
}

/// What the client asks for by extended CONNECT (RFC 9220); the request becomes a GET without a body.
fn upgrade(request: &mut Request) -> Option<Upgrade> {
    let protocol = request.extensions_mut().remove::<ConnectProtocol>()?;
    let upgrade = Upgrade::new(protocol.as_str(), std::mem::take(request.body_mut()));
    *request.method_mut() = Method::GET;
    request.extensions_mut().insert(upgrade.clone());
    Some(upgrade)
}

/// The request's head, which comes first or not at all.
async fn head(receiver: &mut MessageReceiver) -> Result<http::Request<()>, ReceiveError> {
    match receiver.next().await? {
        Some(Part::Request(request)) => Ok(request),
        _ => Err(MessageError::Incomplete.into()),
    }
}

/// Ends a stream that brought no request.
async fn decline(shared: &Shared, stream: &mut RequestStream, error: ReceiveError) {
    match error {
        // RFC 9114 section 4.2.2 leaves the choice; this says what is wrong.
        ReceiveError::Message(MessageError::TooLarge { .. }) => {
            refuse(shared, stream, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE).await;
        }
        // spec: rfc9114 4.1.2 malformed-is-stream-error
        ReceiveError::Message(error) => stream.sender.reset(error.code()),
        ReceiveError::Reset(_) => stream.sender.reset(Code::H3_REQUEST_CANCELLED),
        ReceiveError::Lost(_) => {}
    }
}

/// Ends a stream whose request's head is overdue: with a response (RFC 9110 section 15.5.9) if a part of it has come.
async fn end_overdue(shared: &Shared, stream: &mut RequestStream, mut receiver: MessageReceiver) {
    if receiver.has_begun() {
        // Asks the client to stop without an error (RFC 9114 section 4.1): the response is to be read.
        drop(receiver);
        refuse(shared, stream, StatusCode::REQUEST_TIMEOUT).await;
    } else {
        receiver.stop(Code::H3_REQUEST_CANCELLED);
        stream.sender.reset(Code::H3_REQUEST_CANCELLED);
    }
}

/// Answers a request of which the service learns nothing.
async fn refuse(shared: &Shared, stream: &mut RequestStream, status: StatusCode) {
    stream.prioritize(&HeaderMap::new());
    let mut response = text(status, "");
    response.headers_mut().insert(header::DATE, shared.date.now());
    let mut seat = shared.budget.slots.seat_without_slot(stream.visitor.address.ip());
    let (head, mut body) = response.into_parts();
    let mut outgoing = Outgoing::new(shared, stream, &mut seat);
    outgoing.frame_head(&http::Response::from_parts(head, ()));
    outgoing.send(&mut body, &mut 0).await;
}

/// A request that has a slot.
struct Exchange<'a, 's> {
    shared: &'a Shared,
    stream: &'a mut RequestStream,
    seat: &'a mut Seat<'s>,
    /// Status and time of the response's head.
    responded: Option<(StatusCode, Instant)>,
    body_bytes: u64,
}

impl Exchange<'_, '_> {
    /// Hands the request to the service.
    fn begin(&self, service: Box<dyn AnyService>, mut request: Request) -> (Working, Option<Asked>) {
        let asked = self.shared.options.access_log.is_some().then(|| {
            let remarks = Remarks::default();
            request.extensions_mut().insert(remarks.clone());
            Asked { method: request.method().clone(), target: request.uri().clone(), remarks }
        });
        let visitor = &self.stream.visitor;
        let early = visitor.early();
        let method = request.method().clone();
        let refused = refuse_early(early.is_some(), &method, request.headers());
        let upgrade = upgrade(&mut request);
        let is_told = self.shared.alternative.as_ref().is_some_and(|it| it.is_of(request.uri()));
        let (hints, hinted) = EarlyHints::channel();
        // spec: rfc9114 10.9 replay-mitigated
        let answering: Answer = if let Err((status, detail)) = refused {
            Box::pin(ready(text(status, detail)))
        } else {
            request.extensions_mut().insert(visitor.peer());
            if let Some(early) = early {
                request.extensions_mut().insert(early);
            }
            // A tunnel has nothing to fetch.
            if upgrade.is_none() {
                request.extensions_mut().insert(hints);
            }
            service.answer(request)
        };
        (Working { answering, hinted, method, upgrade, is_told }, asked)
    }

    async fn answer(&mut self, working: Working, (rest, wanted): (Left, Wanted)) -> Outcome {
        let Working { answering, hinted, method, upgrade, is_told } = working;
        let (response, failure) = match self.call(answering, hinted, upgrade.as_ref(), wanted).await {
            Ok(answer) => answer,
            Err(gave_up) => return gave_up,
        };
        let (mut body, is_tunnel) = self.respond(response, &method, upgrade, is_told);
        let outcome = self.send(&mut body, is_tunnel, rest).await;
        match failure {
            Some(failure) if outcome == Outcome::Complete => Outcome::Failed(failure),
            _ => outcome,
        }
    }

    /// Completes the response and begins it with its head; the rest, and whether that is a tunnel.
    fn respond(
        &mut self,
        mut response: Response,
        method: &Method,
        upgrade: Option<Upgrade>,
        is_told: bool,
    ) -> (Body, bool) {
        let is_tunnel = upgrade.is_some_and(|upgrade| upgrade.conclude(Version::HTTP_3, &mut response));
        if !is_tunnel {
            complete(method, &mut response);
        }
        response.headers_mut().entry(header::DATE).or_insert_with(|| self.shared.date.now());
        if let Some(alternative) = self.shared.alternative.as_ref().filter(|_| is_told) {
            alternative.tell(response.headers_mut());
        }
        self.stream.reprioritize(response.headers(), self.shared.options.rank_by_type);
        self.responded = Some((response.status(), Instant::now()));
        let (head, body) = response.into_parts();
        let mut outgoing = Outgoing::new(self.shared, self.stream, self.seat);
        outgoing.frame_head(&http::Response::from_parts(head, ()));
        (body, is_tunnel)
    }

    /// What the service answers; the text says what it did wrong. A client that gives up ends the service's work.
    async fn call(
        &mut self,
        answering: Answer,
        mut hinted: HintsReceiver,
        upgrade: Option<&Upgrade>,
        mut wanted: Wanted,
    ) -> Result<(Response, Option<String>), Outcome> {
        let mut answering = pin!(AssertUnwindSafe(answering).catch_unwind());
        let mut unwanted = pin!(self.stream.sender.unwanted());
        let mut left = MAX_HINTS;
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answering => break answer,
                fields = hinted.next(), if left > 0 => {
                    left -= 1;
                    // Rare, as the next: in a box it is no part of every request's task.
                    Box::pin(self.ahead(StatusCode::EARLY_HINTS, fields)).await?;
                }
                () = asked_for(&mut wanted) => {
                    Box::pin(self.ahead(StatusCode::CONTINUE, HeaderMap::new())).await?;
                }
                reason = &mut unwanted => {
                    self.stream.sender.reset(Code::H3_REQUEST_CANCELLED);
                    return Err(Outcome::Aborted(reason));
                }
            }
        };
        let failed = |failure: &str| {
            tracing::error!(client = %self.stream.visitor.address, failure, "a request could not be answered");
            (text(StatusCode::INTERNAL_SERVER_ERROR, ""), Some(failure.to_owned()))
        };
        Ok(match answer {
            Ok(response) if upgrade.is_some_and(|upgrade| upgrade.is_agreed(&response)) => (response, None),
            // The client would wait for the response that follows.
            Ok(response) if response.status().is_informational() => {
                failed("the service's response is an informational one")
            }
            Ok(response) => (response, None),
            Err(_) => failed("the service panicked"),
        })
    }

    /// Sends an informational response: a 103 (RFC 8297), or 100.
    async fn ahead(&mut self, status: StatusCode, fields: HeaderMap) -> Result<(), Outcome> {
        let mut head = http::Response::new(());
        *head.status_mut() = status;
        *head.headers_mut() = fields;
        Outgoing::new(self.shared, self.stream, self.seat).ahead(&head).await
    }

    /// Sends the rest of the response, and sees to that of the request meanwhile: what breaks the protocol there counts,
    /// too.
    async fn send(&mut self, body: &mut Body, is_tunnel: bool, rest: Left) -> Outcome {
        let mut outgoing = Outgoing::new(self.shared, self.stream, self.seat);
        if is_tunnel {
            outgoing = outgoing.of_tunnel();
        }
        let malformed = tokio::select! {
            biased;
            malformed = breach(rest) => malformed,
            outcome = outgoing.send(body, &mut self.body_bytes) => return outcome,
        };
        self.stream.sender.reset(malformed.code());
        Outcome::Aborted(malformed.to_string())
    }
}

/// Resolves once, if the service waits for a body for which the client waits to be asked. Cancel safe.
async fn asked_for(wanted: &mut Wanted) {
    if let Some(word) = wanted {
        let is_asked_for = word.await.is_ok();
        *wanted = None;
        if is_asked_for {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Resolves only if the rest of the request breaks the protocol. What the service has left unread is read to a limit and
/// thrown away. A longer body is left where it is: flow control keeps the client from sending more of it, and when this
/// is dropped, behind the response, the client is asked to stop (RFC 9114 section 4.1).
async fn breach(rest: Left) -> MessageError {
    let Some(rest) = rest else { return std::future::pending().await };
    let kept = match rest.await {
        Ok(Rest::Malformed(error)) => return error,
        Ok(Rest::Unread(mut receiver)) => match discard(&mut receiver).await {
            Err(ReceiveError::Message(error)) => return error,
            // A request that is cut off may still have been answered.
            Ok(()) | Err(ReceiveError::Reset(_) | ReceiveError::Lost(_)) => Some(receiver),
        },
        Ok(Rest::Over) | Err(_) => None,
    };
    std::future::pending::<()>().await;
    drop(kept);
    MessageError::Incomplete
}

async fn discard(receiver: &mut MessageReceiver) -> Result<(), ReceiveError> {
    let mut discarded = 0;
    while let Some(part) = receiver.next().await? {
        if let Part::Data(data) = part {
            discarded += data.len() as u64;
        }
        if discarded > MAX_DISCARDED {
            break;
        }
    }
    Ok(())
}
