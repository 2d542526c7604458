//! One request and its response.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::{HeaderMap, Method, StatusCode, Version, header};
use posthaste_http3::{Code, ConnectProtocol, MessageError, Part};
use posthaste_service::{EarlyHints, Upgrade, complete, refuse_early};
use tokio::time::Instant;

use super::Shared;
use super::incoming::{self, Begun, Left, Rest, Wanted};
use super::outgoing::Outgoing;
use super::slots::Seat;
use super::visitor::RequestStream;
use crate::message_stream::{MessageReceiver, ReceiveError};
use crate::patience::in_time;
use crate::service::{AccessRecord, AnyService, Outcome, Protocol, Remarks, Request, Response, text};

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

/// Reads a request, has it answered and sends the answer.
pub(super) async fn run(
    shared: Arc<Shared>,
    service: Box<dyn AnyService>,
    (mut stream, mut receiver): (RequestStream, MessageReceiver),
) -> Served {
    let started = Instant::now();
    let client = stream.visitor.address;
    let read = in_time(shared.options.header_timeout, pin!(head(&mut receiver))).await;
    let request = match read {
        Some(Ok(request)) => request,
        // spec: rfc9114 4.1.2 malformed-not-forwarded
        Some(Err(error)) => {
            tracing::debug!(%client, %error, "no request");
            // Rare, and larger than all that the others need: in a box it is no part of every request's task.
            Box::pin(decline(&shared, stream, &error)).await;
            return Served::Abandoned;
        }
        None => {
            tracing::debug!(%client, "a request's headers did not arrive in time");
            Box::pin(end_overdue(&shared, stream, receiver)).await;
            return Served::Abandoned;
        }
    };
    stream.prioritize(request.headers());
    let mut seat = shared.budget.slots.seat(client.ip()).await;
    let is_upgrade = request.extensions().get::<ConnectProtocol>().is_some();
    // How long a tunnel may be silent is the service's matter.
    let stall = (!is_upgrade).then_some(shared.options.stall_timeout);
    let Begun { body, rest, wanted } =
        match incoming::body(receiver, &stream.visitor, request.headers(), stall).await {
            Ok(begun) => begun,
            Err(error) => {
                tracing::debug!(%client, %error, "no request");
                Box::pin(decline(&shared, stream, &error.into())).await;
                return Served::Abandoned;
            }
        };
    let asked =
        shared.options.access_log.as_ref().map(|log| (log, request.method().clone(), request.uri().clone()));
    let (stream, seat) = (&mut stream, &mut seat);
    let remarks = Remarks::default();
    let mut request = request.map(|()| body);
    if asked.is_some() {
        request.extensions_mut().insert(remarks.clone());
    }
    let mut exchange = Exchange { shared: &shared, stream, seat, responded: None, body_bytes: 0 };
    let outcome = exchange.answer(service, request, (rest, wanted)).await;
    let duration = started.elapsed();
    if let Some((log, method, target)) = &asked {
        log.record(&AccessRecord {
            client,
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
            remarks: &remarks,
        });
    }
    Served::of(&outcome, exchange.responded.is_some(), duration)
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
async fn decline(shared: &Shared, mut stream: RequestStream, error: &ReceiveError) {
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
async fn end_overdue(shared: &Shared, mut stream: RequestStream, mut receiver: MessageReceiver) {
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
async fn refuse(shared: &Shared, mut stream: RequestStream, status: StatusCode) {
    let mut response = text(status, "");
    response.headers_mut().insert(header::DATE, shared.date.now());
    let mut seat = shared.budget.slots.seat_without_slot(stream.visitor.address.ip());
    Outgoing::new(shared, &mut stream, &mut seat).send(response, &mut 0).await;
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
    async fn answer(
        &mut self,
        service: Box<dyn AnyService>,
        mut request: Request,
        (rest, wanted): (Left, Wanted),
    ) -> Outcome {
        let visitor = &self.stream.visitor;
        let early = visitor.early();
        let method = request.method().clone();
        let refused = refuse_early(early.is_some(), &method, request.headers());
        let upgrade = upgrade(&mut request);
        let alternative = self.shared.alternative.as_ref().filter(|it| it.is_of(request.uri()));
        // spec: rfc9114 10.9 replay-mitigated
        let (mut response, failure) = if let Err((status, detail)) = refused {
            drop(request);
            (text(status, detail), None)
        } else {
            request.extensions_mut().insert(visitor.peer());
            if let Some(early) = early {
                request.extensions_mut().insert(early);
            }
            match self.call(service, request, upgrade.as_ref(), wanted).await {
                Ok(answer) => answer,
                Err(gave_up) => return gave_up,
            }
        };
        let is_tunnel = upgrade.is_some_and(|upgrade| upgrade.conclude(Version::HTTP_3, &mut response));
        if !is_tunnel {
            complete(&method, &mut response);
        }
        response.headers_mut().entry(header::DATE).or_insert_with(|| self.shared.date.now());
        if let Some(alternative) = alternative {
            alternative.tell(response.headers_mut());
        }
        self.stream.reprioritize(response.headers(), self.shared.options.rank_by_type);
        self.responded = Some((response.status(), Instant::now()));
        let outcome = self.send(response, is_tunnel, rest).await;
        match failure {
            Some(failure) if outcome == Outcome::Complete => Outcome::Failed(failure),
            _ => outcome,
        }
    }

    /// What the service answers; the text says what it did wrong. A client that gives up ends the service's work.
    async fn call(
        &mut self,
        service: Box<dyn AnyService>,
        mut request: Request,
        upgrade: Option<&Upgrade>,
        mut wanted: Wanted,
    ) -> Result<(Response, Option<String>), Outcome> {
        let (hints, mut hinted) = EarlyHints::channel();
        // A tunnel has nothing to fetch.
        if upgrade.is_none() {
            request.extensions_mut().insert(hints);
        }
        let mut answering = pin!(AssertUnwindSafe(service.answer(request)).catch_unwind());
        let mut unwanted = pin!(self.stream.sender.unwanted());
        let mut left = MAX_HINTS;
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answering => break answer,
                fields = hinted.next(), if left > 0 => {
                    left -= 1;
                    self.ahead(StatusCode::EARLY_HINTS, fields).await?;
                }
                () = asked_for(&mut wanted) => self.ahead(StatusCode::CONTINUE, HeaderMap::new()).await?,
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

    /// Sends the response, and sees to the rest of the request meanwhile: what breaks the protocol there counts too.
    async fn send(&mut self, response: Response, is_tunnel: bool, rest: Left) -> Outcome {
        let mut outgoing = Outgoing::new(self.shared, self.stream, self.seat);
        if is_tunnel {
            outgoing = outgoing.of_tunnel();
        }
        let malformed = tokio::select! {
            biased;
            malformed = breach(rest) => malformed,
            outcome = outgoing.send(response, &mut self.body_bytes) => return outcome,
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
