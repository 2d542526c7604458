//! What the requests of one connection share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use posthaste_endpoint::{Connection, RecvStream, SendStream, Side, StreamId};
use posthaste_http3::qpack::Tables;
use posthaste_http3::{MessageKind, Priorities, Priority, PriorityParameters};

use super::early::QuicHandshake;
use super::{ServerOptions, ranking};
use crate::message_stream::{MessageReceiver, MessageSender, transport_priority};
use crate::patience::Progress;
use crate::service::{Early, Peer, Protocol};

/// A client's connection, as its requests see it.
pub(super) struct Visitor {
    connection: Connection,
    pub(super) address: SocketAddr,
    server_name: Option<Arc<str>>,
    /// The connection's dynamic tables for field sections.
    pub(super) tables: Tables,
    priorities: Mutex<Priorities>,
    /// The client has ranked a request: then it means the default where it says nothing.
    ranks: AtomicBool,
    /// The handshake was seen to be complete, which it stays.
    is_handshaken: AtomicBool,
    /// Moves with all that the client takes.
    pub(super) progress: Progress,
}

impl Visitor {
    pub(super) fn new(connection: Connection, tables: Tables) -> Self {
        let address = connection.remote_address();
        let server_name = connection.server_name().map(Arc::from);
        Self {
            connection,
            address,
            server_name,
            tables,
            priorities: Mutex::default(),
            ranks: AtomicBool::new(false),
            is_handshaken: AtomicBool::new(false),
            progress: Progress::default(),
        }
    }

    /// The client, for services.
    pub(super) fn peer(&self) -> Peer {
        Peer::new(self.address, Protocol::Http3, self.server_name.clone())
    }

    /// While what the client says may be somebody's repetition.
    pub(super) fn early(&self) -> Option<Early> {
        if self.is_handshaken.load(Ordering::Relaxed) {
            return None;
        }
        let is_handshaking = self.connection.is_handshaking();
        self.is_handshaken.store(!is_handshaking, Ordering::Relaxed);
        is_handshaking.then(|| Early::new(QuicHandshake(self.connection.clone())))
    }

    /// The client ranks a request anew, be it on its way or still to come.
    pub(super) fn update_priority(&self, stream: u64, priority: Priority) {
        self.ranks.store(true, Ordering::Relaxed);
        if self.priorities().on_update(stream, priority) {
            self.connection.set_priority(StreamId::from_wire(stream), transport_priority(priority));
        }
    }

    /// The data behind the lock is whole after every call, so a panic elsewhere does not spoil it.
    fn priorities(&self) -> MutexGuard<'_, Priorities> {
        self.priorities.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sending half of a request's stream, from the request's arrival to its end.
pub(super) struct RequestStream {
    pub(super) visitor: Arc<Visitor>,
    pub(super) sender: MessageSender,
    stream: u64,
    /// By the request's header.
    asked: Priority,
    /// What the response was ranked as last.
    ranked: Priority,
}

impl RequestStream {
    /// The client has opened a stream for a request. Requests arrive in the order of their streams.
    pub(super) fn arrived(
        visitor: Arc<Visitor>,
        send: SendStream,
        recv: RecvStream,
        options: &ServerOptions,
    ) -> (Self, MessageReceiver) {
        let stream = send.id().to_wire();
        let sender = MessageSender::new(send, Side::Server);
        let (kind, limit) = (MessageKind::Request, options.max_header_size);
        let mut receiver = MessageReceiver::new(recv, &visitor.connection, kind, limit, &visitor.tables);
        if options.upgrades {
            receiver.permit_extended_connect();
        }
        let ranked = visitor.priorities().on_arrival(stream).unwrap_or_default();
        (Self { visitor, sender, stream, asked: Priority::default(), ranked }, receiver)
    }

    /// Ranks the response as the request's header says, unless an update said something else. Before that nothing may be
    /// sent: the stream still has the transport's rank.
    pub(super) fn prioritize(&mut self, request: &HeaderMap) {
        // spec: rfc9218 4 defaults-assumed
        if let Some(parameters) = PriorityParameters::of(request) {
            self.asked = parameters.over(Priority::default());
            self.visitor.ranks.store(true, Ordering::Relaxed);
        }
        self.rank(None);
    }

    /// Ranks the response as its own header says: the server knows better (RFC 9218 section 8). Without one, `by_type` has a
    /// client that ranks nothing get what a page needs first.
    pub(super) fn reprioritize(&mut self, response: &HeaderMap, by_type: bool) {
        if let Some(parameters) = PriorityParameters::of(response) {
            self.rank(Some(parameters));
        } else if by_type && !self.visitor.ranks.load(Ordering::Relaxed) {
            self.asked = ranking::by_type(response);
            self.rank(None);
        }
    }

    fn rank(&mut self, response: Option<PriorityParameters>) {
        let priorities = self.visitor.priorities();
        let wanted = priorities.on_header(self.stream, self.asked);
        let priority = response.map_or(wanted, |response| response.over(wanted));
        // Under the lock, so that an update cannot come in between and be overwritten.
        self.sender.set_priority(priority);
        drop(priorities);
        self.ranked = priority;
    }

    /// The urgency of the response, as far as it has been ranked.
    pub(super) fn urgency(&self) -> u8 {
        self.ranked.urgency
    }
}

impl Drop for RequestStream {
    fn drop(&mut self) {
        self.visitor.priorities().on_end(self.stream);
    }
}
