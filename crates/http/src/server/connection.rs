//! One client's connection, from its first stream to its end.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use posthaste_endpoint::{Connection, RecvStream, SendStream};
use posthaste_http3::{Code, Event, Role};
use posthaste_service::Phase;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};

use super::Shared;
use super::connections::Observed;
use super::exchange::{self, Served};
use super::visitor::{RequestStream, Visitor};
use crate::link::{Link, LinkError};
use crate::service::AnyService;

/// Requests that a client may abandon before they are readable, on one connection; more is an attack.
const MAX_ABANDONED_REQUESTS: usize = 1000;

/// Requests that are begun, or found to be over, before the connection's other matters are looked at again.
const REQUESTS_AT_ONCE: usize = 16;

/// Requests that a client may give up within a second ([`exchange::SOON`]), on one connection, if they are more than half
/// of all; more is an attack (rapid reset, CVE-2023-44487): each costs the service its beginning, and a proxy a connection.
/// Browsers give up many over hours, but use most; Envoy has such a rule from 500 requests on.
const MAX_GIVEN_UP: usize = 1000;

/// A client is not asked more often than this whether it is still there.
const LEAST_KEEP_ALIVE: Duration = Duration::from_millis(10);

/// What clients are told at the end.
pub(super) const STOPPED: &[u8] = b"the server has stopped";

/// Serves one connection to its end. How many of its requests the end of the server has cut off.
pub(super) async fn serve(
    shared: Arc<Shared>,
    service: Box<dyn AnyService>,
    quic: Connection,
    mut phases: watch::Receiver<Phase>,
) -> usize {
    let log = shared.options.connection_log.clone();
    let _observed = log.map(|log| Observed::new(log, quic.clone()));
    let mut link = Link::new(quic.clone(), Role::Server, &shared.options.settings());
    let visitor = Arc::new(Visitor::new(quic.clone(), link.tables().clone()));
    let mut requests = Requests::new(shared, service, visitor);
    let mut cut_off = 0;
    // A server that has begun to stop meanwhile is noticed by the first turn.
    phases.mark_changed();
    let mut phase = Phase::Serving;
    while !(phase == Phase::Stopping && requests.are_read(Instant::now())) {
        let done = requests.read_at().filter(|_| phase == Phase::Stopping && requests.tasks.is_empty());
        let is_over = tokio::select! {
            // New requests last: a priority that came before its request is known by then, and no flood of requests
            // keeps the rest from being seen.
            biased;
            event = poll_fn(|cx| link.poll_event(cx)) => requests.on_event(event),
            Some(over) = requests.tasks.join_next() => {
                requests.on_served(over, Instant::now());
                let is_flood = requests.is_flood();
                if is_flood {
                    quic.close(Code::H3_EXCESSIVE_LOAD.value(), b"too many requests given up");
                }
                is_flood
            }
            Ok(()) = phases.changed() => {
                phase = *phases.borrow_and_update();
                if phase == Phase::Stopping {
                    // spec: rfc9114 5.2 goaway-sent-never-grows
                    link.go_away(requests.next);
                }
                if phase == Phase::Over {
                    cut_off = requests.tasks.len();
                    quic.close(Code::H3_NO_ERROR.value(), STOPPED);
                }
                phase == Phase::Over
            }
            () = tick(&mut requests.pings) => {
                quic.ping();
                false
            }
            () = wait_until(done) => false,
            accepted = quic.accept_bi() => match accepted {
                Ok(stream) => {
                    requests.on_stream(stream, phase);
                    // Those that have come with it need no turn of their own.
                    for _ in 1..REQUESTS_AT_ONCE {
                        let Some(Ok(stream)) = quic.accept_bi().now_or_never() else { break };
                        requests.on_stream(stream, phase);
                    }
                    link.send_with_message();
                    false
                }
                Err(reason) => requests.on_lost(&reason.into()),
            },
        };
        if is_over {
            break;
        }
    }
    // Their streams are answered, or lost with the connection; either way the tasks come to their end.
    while requests.tasks.join_next().await.is_some() {}
    cut_off
}

/// When a client with an open request is asked whether it is still there.
fn pings(period: Duration) -> Interval {
    let period = period.max(LEAST_KEEP_ALIVE);
    let mut pings = interval_at(Instant::now() + period, period);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings
}

/// Waits for the next tick, if there is one. Cancel safe.
async fn tick(pings: &mut Option<Interval>) {
    match pings {
        Some(pings) => drop(pings.tick().await),
        None => std::future::pending().await,
    }
}

/// Waits until then. Only servers that stop do so: a timer in a box takes nothing of every connection's task.
async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => Box::pin(sleep_until(at)).await,
        None => std::future::pending().await,
    }
}

/// The requests of one connection.
struct Requests {
    shared: Arc<Shared>,
    service: Box<dyn AnyService>,
    visitor: Arc<Visitor>,
    tasks: JoinSet<Served>,
    /// Counts from when the first of the open requests came; none without one.
    pings: Option<Interval>,
    /// How many tasks are over, and of what kind they were.
    over: usize,
    abandoned: usize,
    given_up: usize,
    /// The stream of the first request that has not come.
    next: u64,
    /// When the last response was acknowledged to its end.
    last: Option<Instant>,
}

impl Requests {
    fn new(shared: Arc<Shared>, service: Box<dyn AnyService>, visitor: Arc<Visitor>) -> Self {
        let tasks = JoinSet::new();
        let (over, abandoned, given_up) = (0, 0, 0);
        Self { shared, service, visitor, tasks, pings: None, over, abandoned, given_up, next: 0, last: None }
    }

    /// True if nothing is left to be answered, and of what was answered nothing to be read. The client's transport
    /// acknowledges what it has received; that its application has read it, it does not say.
    fn are_read(&self, now: Instant) -> bool {
        self.tasks.is_empty() && self.read_at().is_none_or(|at| at <= now)
    }

    /// When the client has had its time to read.
    fn read_at(&self) -> Option<Instant> {
        self.last.map(|last| last + self.shared.options.grace)
    }

    /// True, as in the following, if the connection is over.
    fn on_event(&self, event: Result<Event, LinkError>) -> bool {
        match event {
            Ok(Event::PriorityUpdate { stream, priority }) => self.visitor.update_priority(stream, priority),
            // A client that takes no more pushes never got any, and its settings bind the encoder, which has them.
            Ok(Event::GoAway(_) | Event::Settings(_)) => {}
            Err(reason) => return self.on_lost(&reason),
        }
        false
    }

    fn on_lost(&self, reason: &LinkError) -> bool {
        tracing::debug!(client = %self.visitor.address, %reason, "connection ended");
        true
    }

    /// A task is over; others that are need no turn of their own.
    fn on_served(&mut self, first: Result<Served, JoinError>, now: Instant) {
        let mut count = |served: Result<Served, JoinError>| {
            self.over += 1;
            match served.unwrap_or(Served::Answered) {
                Served::Answered => self.last = Some(now),
                Served::GivenUp => self.given_up += 1,
                Served::Abandoned => self.abandoned += 1,
            }
        };
        count(first);
        for _ in 1..REQUESTS_AT_ONCE {
            let Some(served) = self.tasks.try_join_next() else { break };
            count(served);
        }
        if self.tasks.is_empty() {
            self.pings = None;
        }
    }

    /// The client does nothing but begin requests.
    const fn is_flood(&self) -> bool {
        self.abandoned > MAX_ABANDONED_REQUESTS
            || self.given_up > MAX_GIVEN_UP && self.given_up > self.over / 2
    }

    fn on_stream(&mut self, (send, recv): (SendStream, RecvStream), phase: Phase) {
        if phase != Phase::Serving {
            return reject(send, recv);
        }
        if self.tasks.is_empty() {
            self.pings = Some(pings(self.shared.options.keep_alive));
        }
        self.next = send.id().to_wire() + 4;
        let visitor = Arc::clone(&self.visitor);
        let (stream, receiver) = RequestStream::arrived(visitor, send, recv, &self.shared.options);
        let service = self.service.another();
        // The runtime moves what it is given, several times; a box is moved at little cost.
        self.tasks.spawn(Box::pin(exchange::run(Arc::clone(&self.shared), service, stream, receiver)));
    }
}

/// The client did not know of the end yet: it may ask again elsewhere (RFC 9114 section 5.2).
fn reject(mut send: SendStream, mut recv: RecvStream) {
    // spec: rfc9114 4.1.1 rejected-only-if-unprocessed
    send.reset(Code::H3_REQUEST_REJECTED.value());
    recv.stop(Code::H3_REQUEST_REJECTED.value());
}
