//! All streams of a connection (RFC 9000 sections 2 to 4): their data in and out, their limits, their order.
//!
//! [`Streams`] is told of frames and of the fate of packets, and writes frames when the connection has room.
//! Its methods are spread by who calls them: `application`, `incoming`, `outgoing`, `ack_updates`.

mod ack_updates;
mod application;
mod assembler;
mod incoming;
mod lost_again;
mod map;
mod outgoing;
mod ranges;
mod recv;
mod riding;
mod schedule;
mod send;
mod send_buffer;
mod send_memory;
mod stream;
mod tail;
mod tail_code;
mod unsent_bound;

use std::collections::{BTreeSet, VecDeque};

use posthaste_policy::Credit;
use posthaste_policy::sample::CreditMoment;
use posthaste_units::ByteCount;
use posthaste_wire::{Direction, Side, StreamId, TransportParameters, varint};

use self::map::{Found, StreamMap};
use self::riding::Riding;
use self::schedule::Schedule;
use self::send::{Ending, SendHalf};
use self::send_memory::{MIN_BUFFER, SendMemory};
use self::stream::{Maker, PeerLimits};
use self::tail::Tail;
use self::tail_code::TailCode;
use self::unsent_bound::UnsentBound;
use crate::error::LocalError;
use crate::flow::{ReceiveWindow, SendWindow};

use crate::flow::receive_budget::Account;
use crate::flow::send_budget::SendShare;
use crate::limits::MAX_CONCURRENT_STREAMS;

pub(crate) use self::assembler::Assembler;
pub use self::recv::Read;
pub use self::schedule::Priority;
pub(crate) use self::send_buffer::SendBuffer;
pub(crate) use self::stream::CreditFactory;
pub(crate) use self::tail_code::LONGEST_BLOCK;
pub(crate) use crate::flow::CreditContext;

/// What [`Streams`] are made from.
pub(crate) struct StreamsConfig {
    /// This end.
    pub(crate) side: Side,
    /// Bidirectional streams that the peer may have open at once, at most [`MAX_CONCURRENT_STREAMS`].
    pub(crate) max_streams_bidi: u64,
    /// Unidirectional streams that the peer may have open at once, at most [`MAX_CONCURRENT_STREAMS`].
    pub(crate) max_streams_uni: u64,
    /// What the connection has of the send budget.
    pub(crate) send_share: SendShare,
    /// Bytes kept for the whole connection until they are acknowledged, while the congestion window is small; at least
    /// [`MIN_BUFFER`].
    pub(crate) send_buffer: ByteCount,
    /// Bytes of one stream that may wait unsent before writes block; at least [`MIN_BUFFER`].
    pub(crate) unsent_limit: ByteCount,
    /// Makes the policy that grants a stream's credit.
    pub(crate) stream_credit: CreditFactory,
    /// The policy that grants the connection's credit.
    pub(crate) connection_credit: Box<dyn Credit>,
    /// What bounds it.
    pub(crate) account: Account,
}

/// What this end grants in its transport parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the names of the transport parameters")]
pub(crate) struct LocalLimits {
    pub(crate) max_data: u64,
    /// The same for every kind of stream.
    pub(crate) max_stream_data: u64,
    pub(crate) max_streams_bidi: u64,
    pub(crate) max_streams_uni: u64,
}

/// Something that a user of streams may want to act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer has opened streams that can be accepted.
    Opened {
        /// Which.
        direction: Direction,
    },
    /// A stream on which a read found nothing (or none was tried) has data, its end or a reset.
    Readable(StreamId),
    /// A stream on which a write took nothing has room.
    Writable(StreamId),
    /// The peer wants no more of a stream; it has been reset.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer application's reason.
        error_code: u64,
    },
    /// The peer permits more streams after one could not be opened.
    Available(Direction),
    /// The peer has received all of a stream, its end included.
    SendComplete(StreamId),
}

/// Why nothing could be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The peer wants no more of the stream.
    #[error("the peer stopped the stream with code {0:#x}")]
    Stopped(u64),
    /// The call was wrong.
    #[error(transparent)]
    Local(#[from] LocalError),
}

/// Why nothing could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The peer gave the stream up; what was unread is void.
    #[error("the peer reset the stream with code {0:#x}")]
    Reset(u64),
    /// The call was wrong.
    #[error(transparent)]
    Local(#[from] LocalError),
}

/// Counters and gauges of the streams of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamsStats {
    /// Stream bytes sent for the first time.
    pub sent: ByteCount,
    /// Stream bytes sent again after a loss.
    pub resent: ByteCount,
    /// Stream bytes received: the sum of the highest offsets.
    pub received: ByteCount,
    /// Stream bytes written that are not acknowledged.
    pub buffered: ByteCount,
    /// What the peer still permits to be sent on the connection, all streams together.
    pub credit: ByteCount,
    /// What this end permits the peer to send on the connection beyond what has been read, sent or not.
    pub granted: ByteCount,
    /// Streams open, both ends' together.
    pub open: usize,
    /// Bidirectional streams of the peer that the application has accepted.
    pub accepted: u64,
    /// Streams that have data which their limit keeps back.
    pub blocked_streams: usize,
    /// True if the connection's limit keeps data back.
    pub is_connection_blocked: bool,
}

/// Streams that this end opens in one direction.
#[derive(Debug, Default)]
struct LocalStreams {
    /// The peer's limit, in streams.
    window: SendWindow,
    /// An attempt to open a stream has failed: an event is owed when there is room.
    is_opener_waiting: bool,
}

/// Streams that the peer opens in one direction.
#[derive(Debug)]
struct RemoteStreams {
    /// Streams that may be open at once.
    concurrent: u64,
    /// Streams that the peer may open in all, as it has been told or will be.
    advertised: u64,
    /// Streams that are over.
    closed: u64,
    /// Streams that the application has accepted.
    accepted: u64,
    is_update_pending: bool,
    is_event_queued: bool,
}

impl RemoteStreams {
    fn new(concurrent: u64) -> Self {
        let concurrent = concurrent.min(MAX_CONCURRENT_STREAMS);
        Self {
            concurrent,
            advertised: concurrent,
            closed: 0,
            accepted: 0,
            is_update_pending: false,
            is_event_queued: false,
        }
    }

    /// Raises the limit if streams have ended: at once if `is_urgent`, else an eighth at a time, so that not
    /// every end of a stream costs a frame.
    fn advance(&mut self, is_urgent: bool) {
        // spec: rfc9000 4.6 streams-without-being-asked
        let target = self.closed.saturating_add(self.concurrent).min(MAX_STREAMS);
        let step = if is_urgent { 1 } else { (self.concurrent / 8).max(1) };
        if target.saturating_sub(self.advertised) >= step {
            self.advertised = target;
            self.is_update_pending = true;
        }
    }
}

/// The largest number of streams that identifiers can tell apart (RFC 9000 section 4.6).
const MAX_STREAMS: u64 = 1 << 60;

/// All streams of a connection.
pub(crate) struct Streams {
    side: Side,
    map: StreamMap,
    schedule: Schedule,
    /// Streams with control frames due.
    control: BTreeSet<StreamId>,
    events: VecDeque<StreamEvent>,
    /// The connection's credit: what the peer may send, and what this end may.
    receive_window: ReceiveWindow,
    send_window: SendWindow,
    initial_max_data: u64,
    local: [LocalStreams; 2],
    remote: [RemoteStreams; 2],
    /// False until the peer's transport parameters are known.
    is_limits_known: bool,
    /// Streams that have received data since the last ACK left.
    received_since_ack: Vec<StreamId>,
    riding: Riding,
    /// What is kept for all streams until it is acknowledged.
    send_memory: SendMemory,
    /// Bytes that a stream may leave unsent.
    unsent_limit: u64,
    /// Streams that wait for room in that, by their urgency and then in the order in which they found none.
    memory_waiters: BTreeSet<(u8, u64, StreamId)>,
    next_waiter: u64,
    blocked_count: usize,
    tail: Tail,
    /// What may leave twice of what is lost for the second time, of each stream's bytes.
    lost_again: Option<lost_again::Share>,
    code: TailCode,
    /// For the trace: streams that have become blocked (true) or are no longer, if anybody watches.
    blocked_changes: Option<Vec<(StreamId, bool)>>,
    /// What credit policies were told last, for the calls that cannot tell them anything newer.
    last_context: Option<CreditContext>,
    sent: u64,
    resent: u64,
}

impl Streams {
    /// No streams yet.
    pub(crate) fn new(config: StreamsConfig) -> Self {
        let initial = |credit: &dyn Credit| credit.initial_window().get().min(varint::MAX);
        let riding = Riding::new(config.connection_credit.rides_on_acks());
        let receive_window = ReceiveWindow::rationed(config.side, config.connection_credit, config.account);
        let maker = Maker {
            side: config.side,
            initial_window: initial(&*(config.stream_credit)()),
            stream_credit: config.stream_credit,
            peer_limits: PeerLimits::default(),
            permitted: [0; 2],
        };
        Self {
            side: config.side,
            map: StreamMap::new(maker),
            schedule: Schedule::default(),
            control: BTreeSet::new(),
            events: VecDeque::new(),
            initial_max_data: receive_window.advertised(),
            receive_window,
            send_window: SendWindow::default(),
            local: Default::default(),
            remote: [RemoteStreams::new(config.max_streams_bidi), RemoteStreams::new(config.max_streams_uni)],
            is_limits_known: false,
            received_since_ack: Vec::new(),
            riding,
            send_memory: SendMemory::new(config.send_share, config.send_buffer),
            unsent_limit: config.unsent_limit.get().max(MIN_BUFFER),
            memory_waiters: BTreeSet::new(),
            next_waiter: 0,
            blocked_count: 0,
            tail: Tail::default(),
            lost_again: None,
            code: TailCode::default(),
            blocked_changes: None,
            last_context: None,
            sent: 0,
            resent: 0,
        }
    }

    /// Whether to remember for [`Self::take_blocked_changes`] which streams their limits begin or cease to block.
    pub(crate) fn watch_blocked(&mut self, is_watched: bool) {
        self.blocked_changes = is_watched.then(Vec::new);
    }

    /// The changes since the last call.
    pub(crate) fn take_blocked_changes(&mut self) -> Vec<(StreamId, bool)> {
        self.blocked_changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What to grant in this end's transport parameters.
    pub(crate) fn local_limits(&self) -> LocalLimits {
        let [bidirectional, unidirectional] = &self.remote;
        LocalLimits {
            max_data: self.initial_max_data,
            max_stream_data: self.map.maker.initial_window,
            max_streams_bidi: bidirectional.concurrent,
            max_streams_uni: unidirectional.concurrent,
        }
    }

    /// The peer's transport parameters have come: streams opened and written before may now send.
    pub(crate) fn set_peer_limits(&mut self, parameters: &TransportParameters) {
        self.is_limits_known = true;
        // The parameters are named from the point of view of who sends them.
        self.map.maker.peer_limits = PeerLimits {
            local_bidirectional: parameters.initial_max_stream_data_bidi_remote,
            remote_bidirectional: parameters.initial_max_stream_data_bidi_local,
            local_unidirectional: parameters.initial_max_stream_data_uni,
        };
        self.send_window.raise(parameters.initial_max_data);
        self.permit(Direction::Bidirectional, parameters.initial_max_streams_bidi);
        self.permit(Direction::Unidirectional, parameters.initial_max_streams_uni);
        for id in self.map.touched() {
            let limit = self.map.maker.send_limit(id);
            if let Found::Live(stream) = self.map.find(id)
                && let Some(send) = &mut stream.send
            {
                send.window.raise(limit);
            }
            self.refresh(id);
        }
        self.note_blocked();
    }

    /// The peer has dropped all that was sent so far, and its limits are unknown again: 0-RTT was rejected. Streams of
    /// this end stay as they are; the peer cannot have opened any.
    pub(crate) fn start_over(&mut self) {
        self.is_limits_known = false;
        self.send_window = SendWindow::default();
        self.map.maker.peer_limits = PeerLimits::default();
        self.map.maker.permitted = [0; 2];
        for local in &mut self.local {
            local.window.start_over();
        }
        for id in self.map.touched() {
            if let Found::Live(stream) = self.map.find(id)
                && let Some(send) = &mut stream.send
            {
                send.start_over();
            }
            self.refresh(id);
        }
    }

    /// Gives back room that is not in use.
    pub(crate) fn shrink(&mut self) {
        self.map.shrink();
        self.schedule.shrink();
        self.code.receiver.rest();
        self.events.shrink_to_fit();
        self.received_since_ack.shrink_to_fit();
        self.riding.recent.shrink_to_fit();
        // A set that has become empty keeps a node.
        if self.control.is_empty() {
            self.control = BTreeSet::new();
        }
        if self.memory_waiters.is_empty() {
            self.memory_waiters = BTreeSet::new();
        }
    }

    /// The next event.
    pub(crate) fn poll_event(&mut self) -> Option<StreamEvent> {
        let event = self.events.pop_front()?;
        if let StreamEvent::Opened { direction } = event {
            self.remote_mut(direction).is_event_queued = false;
        }
        Some(event)
    }

    /// Counters and gauges.
    pub(crate) fn stats(&self) -> StreamsStats {
        let [bidirectional, _] = &self.remote;
        StreamsStats {
            sent: ByteCount::new(self.sent),
            resent: ByteCount::new(self.resent),
            received: ByteCount::new(self.receive_window.received()),
            buffered: ByteCount::new(self.send_memory.kept()),
            credit: ByteCount::new(self.send_window.available()),
            granted: ByteCount::new(
                self.receive_window.advertised().saturating_sub(self.receive_window.consumed()),
            ),
            open: self.map.open_count(),
            accepted: bidirectional.accepted,
            blocked_streams: self.blocked_count,
            is_connection_blocked: self.is_connection_blocked(),
        }
    }

    fn is_connection_blocked(&self) -> bool {
        self.send_window.is_blocked() && self.schedule.needs_credit()
    }

    /// True if there are data that the peer's limits, of a stream or of the connection, keep back.
    pub(crate) fn waits_for_credit(&self) -> bool {
        self.blocked_count > 0 || self.is_connection_blocked()
    }

    /// Streams that are open at either half.
    pub(crate) fn open_streams(&self) -> usize {
        self.map.open_count()
    }

    /// True if everything written has been acknowledged and nothing is to be sent.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.send_memory.kept() == 0 && self.schedule.next(true).is_none() && !self.has_control()
    }

    fn local_mut(&mut self, direction: Direction) -> &mut LocalStreams {
        let [bidirectional, unidirectional] = &mut self.local;
        match direction {
            Direction::Bidirectional => bidirectional,
            Direction::Unidirectional => unidirectional,
        }
    }

    fn remote_mut(&mut self, direction: Direction) -> &mut RemoteStreams {
        let [bidirectional, unidirectional] = &mut self.remote;
        match direction {
            Direction::Bidirectional => bidirectional,
            Direction::Unidirectional => unidirectional,
        }
    }

    /// The peer permits `maximum` streams: wakes who waits to open one, and lets those go that were opened
    /// before the limit was known.
    fn permit(&mut self, direction: Direction, maximum: u64) {
        let local = self.local_mut(direction);
        let before = local.window.limit();
        let is_raised = local.window.raise(maximum.min(MAX_STREAMS));
        let (limit, opened) = (local.window.limit(), local.window.used());
        if opened > limit {
            local.window.mark_blocked();
        }
        if !is_raised {
            return;
        }
        if local.window.available() > 0 && std::mem::take(&mut local.is_opener_waiting) {
            self.events.push_back(StreamEvent::Available(direction));
        }
        if let Some(permitted) = self.map.maker.permitted.get_mut(direction.index()) {
            *permitted = limit;
        }
        for index in before..limit.min(opened) {
            let id = StreamId::new(self.side, direction, index);
            let limit = self.map.maker.send_limit(id);
            if let Found::Live(stream) = self.map.find(id)
                && let Some(send) = &mut stream.send
            {
                send.window.raise(limit);
            }
            self.refresh(id);
        }
    }

    /// Brings everything that depends on a stream's state up to date after that has changed: its place in the
    /// schedule, its control frames, its waiting writer, and whether it is over.
    fn refresh(&mut self, id: StreamId) {
        let is_permitted = self.map.maker.is_permitted(id);
        let waiting = self.blocked_count + self.schedule.count();
        let Found::Live(stream) = self.map.find(id) else { return };
        let mut is_blocked = false;
        if let Some(send) = &mut stream.send {
            let class = send.class().filter(|_| is_permitted).map(|class| (class, send.priority));
            self.schedule.update(id, &mut send.place, class);
            is_blocked = is_permitted && self.is_limits_known && send.is_blocked();
            if is_blocked {
                send.window.mark_blocked();
            }
            let unsent =
                || UnsentBound::new(self.unsent_limit, waiting, self.is_limits_known, &self.send_window);
            if send.is_writer_waiting && !send.is_ended() && send.unsent() <= unsent().of(send) / 2 {
                let urgency = send.priority.urgency;
                if self.send_memory.is_open(urgency) {
                    send.is_writer_waiting = false;
                    self.events.push_back(StreamEvent::Writable(id));
                } else if stream.waits_for_memory.is_none() {
                    stream.waits_for_memory = Some((urgency, self.next_waiter));
                    self.memory_waiters.insert((urgency, self.next_waiter, id));
                    self.next_waiter += 1;
                }
            }
            // spec: rfc9000 3.3 terminal-state-is-silent
            if send.is_done() {
                if send.is_complete() {
                    self.events.push_back(StreamEvent::SendComplete(id));
                }
                stream.end_send();
            }
        }
        let ending = stream.send.as_deref().map_or(Ending::Open, SendHalf::ending);
        let is_ending = ending == Ending::Unacknowledged && stream.counted_ending != ending;
        self.tail.change(&mut stream.counted_ending, ending);
        if is_blocked != stream.is_counted_blocked {
            stream.is_counted_blocked = is_blocked;
            if let Some(changes) = &mut self.blocked_changes {
                changes.push((id, is_blocked));
            }
            self.blocked_count =
                if is_blocked { self.blocked_count + 1 } else { self.blocked_count.saturating_sub(1) };
        }
        if stream.recv.as_deref().is_some_and(recv::RecvHalf::is_done_after_stop) {
            stream.end_recv();
        }
        self.code.refresh(id, stream, is_ending);
        let is_over = stream.send.is_none() && stream.recv.is_none();
        let has_control = is_permitted && stream.has_control();
        if has_control != stream.is_control_queued {
            stream.is_control_queued = has_control;
            if has_control {
                self.control.insert(id);
            } else {
                self.control.remove(&id);
            }
        }
        if is_over {
            self.forget(id);
        }
    }

    /// A stream is over: the peer may open another in its place.
    fn forget(&mut self, id: StreamId) {
        self.map.remove(id);
        if id.initiator() != self.side {
            let remote = self.remote_mut(id.direction());
            remote.closed = remote.closed.saturating_add(1);
            remote.advance(false);
        }
    }

    /// Bytes need no longer be kept: writers that found no room are woken once there is enough, the most urgent first.
    fn release(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.send_memory.release(bytes);
        while let Some((urgency, _, id)) = self.memory_waiters.first().copied() {
            // Who is less urgent has less room.
            if !self.send_memory.is_open(urgency) {
                return;
            }
            self.memory_waiters.pop_first();
            if let Found::Live(stream) = self.map.find(id) {
                stream.waits_for_memory = None;
                self.refresh(id);
            }
        }
    }

    /// Asks the policy of the connection's credit.
    fn ask_connection(&mut self, moment: CreditMoment, context: &CreditContext) {
        self.last_context = Some(*context);
        let around = self.surroundings(!self.received_since_ack.is_empty());
        self.receive_window.ask(moment, context, &around);
    }

    /// How much a stream may leave unsent now.
    fn unsent_bound(&self) -> UnsentBound {
        let waiting = self.blocked_count + self.schedule.count();
        UnsentBound::new(self.unsent_limit, waiting, self.is_limits_known, &self.send_window)
    }

    /// Marks the connection's limit as blocking if it keeps data back.
    fn note_blocked(&mut self) {
        if self.is_limits_known && self.schedule.needs_credit() {
            self.send_window.mark_blocked();
        }
    }
}

#[cfg(test)]
mod tests;
