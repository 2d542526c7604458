//! What the endpoint keeps for one connection beside the transport's own state: who waits for what.

use std::io;
use std::mem::{Discriminant, discriminant};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

use posthaste_transport::{
    CloseReason, Connection, ConnectionStats, Direction, Event, Side, StreamEvent, StreamId,
};
use posthaste_units::Time;
use rustls::pki_types::CertificateDer;

use crate::connection::EarlyData;
use crate::error::ConnectionError;
use crate::stream_table::StreamTable;
use crate::wakers::WakerSet;

/// What a task may wait for on a connection. Its end wakes all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// An event of the transport's, whatever it carries.
    Event(Discriminant<Event>),
    Open(Direction),
    Accept(Direction),
    Closed,
}

impl Wait {
    /// The next event of this kind.
    pub(crate) fn event(example: &Event) -> Self {
        Self::Event(discriminant(example))
    }
}

/// How a connection ended.
#[derive(Debug, Clone)]
pub(crate) enum Ended {
    Closed(CloseReason),
    Socket(Arc<io::Error>),
}

impl Ended {
    pub(crate) fn error(&self) -> ConnectionError {
        match self {
            Self::Closed(reason) => ConnectionError::Closed(reason.clone()),
            Self::Socket(error) => ConnectionError::Socket(Arc::clone(error)),
        }
    }

    /// The reason in the transport's terms; a broken socket is this end's doing.
    pub(crate) fn reason(&self) -> CloseReason {
        match self {
            Self::Closed(reason) => reason.clone(),
            Self::Socket(_) => CloseReason::Local { error_code: 0 },
        }
    }
}

/// What remains to be known of a connection after the transport has forgotten it.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) remote: SocketAddr,
    pub(crate) alpn: Option<Vec<u8>>,
    pub(crate) server_name: Option<String>,
    pub(crate) is_resumed: bool,
    pub(crate) certificates: Option<Vec<CertificateDer<'static>>>,
}

impl Identity {
    pub(crate) fn of(connection: &Connection) -> Self {
        Self {
            remote: connection.remote(),
            alpn: connection.alpn().map(<[u8]>::to_vec),
            server_name: connection.server_name().map(str::to_owned),
            is_resumed: connection.is_resumed(),
            certificates: connection.peer_certificates().map(<[_]>::to_vec),
        }
    }
}

/// One connection's share of the endpoint's state.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) side: Side,
    pub(crate) started: Time,
    pub(crate) connected_at: Option<Time>,
    /// What became of early data, once that is known and there were any.
    pub(crate) is_early_accepted: Option<bool>,
    /// On a server: it has been put into the queue of those that wait to be accepted.
    pub(crate) is_offered: bool,
    pub(crate) ended: Option<Ended>,
    /// The transport has forgotten the connection.
    pub(crate) drained: bool,
    /// Application handles: one for each time that the connection was given out, clones share it.
    pub(crate) references: usize,
    /// Statistics at the end, set then.
    pub(crate) last_stats: Option<Box<ConnectionStats>>,
    /// Set at the end.
    pub(crate) identity: Option<Box<Identity>>,
    /// Bidirectional streams of the peer's that the application has taken.
    accepted_bidi: u64,
    /// Of each thing that was waited for, the tasks that still do.
    waiting: Vec<(Wait, WakerSet)>,
    streams: StreamTable,
}

/// Who waits for what on a stream that the application holds.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    /// Halves that the application holds.
    halves: u8,
    pub(crate) reader: Option<Waker>,
    pub(crate) writer: Option<Waker>,
    /// A write was refused for want of room, and no event has told of room since.
    pub(crate) write_blocked: bool,
    /// Tasks that wait for the sending half to be stopped or acknowledged. In a box, because few streams have any.
    enders: Option<Box<WakerSet>>,
    pub(crate) fate: SendFate,
}

/// What became of a sending half; the first that happens stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SendFate {
    /// Nothing yet.
    #[default]
    Open,
    /// The peer has stopped it, with this code.
    Stopped(u64),
    /// This end has reset it.
    Reset,
    /// The peer has acknowledged everything.
    Complete,
}

impl StreamState {
    /// Records what became of the sending half, and wakes those who wait for it.
    pub(crate) fn decide(&mut self, fate: SendFate, wakes: &mut Vec<Waker>) {
        if self.fate == SendFate::Open {
            self.fate = fate;
        }
        self.write_blocked = false;
        wakes.extend(self.writer.take());
        self.wake_enders(wakes);
    }

    /// The tasks that wait for the sending half to be stopped or acknowledged.
    pub(crate) fn enders(&mut self) -> &mut WakerSet {
        self.enders.get_or_insert_default()
    }

    fn wake_enders(&mut self, wakes: &mut Vec<Waker>) {
        if let Some(enders) = &mut self.enders {
            enders.take(wakes);
        }
    }
}

impl ConnectionState {
    pub(crate) fn new(now: Time, side: Side) -> Self {
        Self {
            side,
            started: now,
            connected_at: None,
            is_early_accepted: None,
            is_offered: false,
            ended: None,
            drained: false,
            references: 0,
            last_stats: None,
            identity: None,
            accepted_bidi: 0,
            waiting: Vec::new(),
            streams: StreamTable::default(),
        }
    }

    /// What became of early data, once the handshake is complete.
    pub(crate) fn early_data(&self) -> Option<EarlyData> {
        self.connected_at.map(|_| match self.is_early_accepted {
            None => EarlyData::None,
            Some(true) => EarlyData::Accepted,
            Some(false) => EarlyData::Rejected,
        })
    }

    pub(crate) fn waiting(&mut self, wait: Wait) -> &mut WakerSet {
        let known = self.waiting.iter().position(|(other, _)| *other == wait);
        let index = known.unwrap_or_else(|| {
            // Most connections wait for one thing: room for four would be the largest part of their state.
            self.waiting.reserve_exact(1);
            self.waiting.push((wait, WakerSet::default()));
            self.waiting.len() - 1
        });
        &mut self.waiting[index].1
    }

    /// Wakes the tasks that wait for this.
    pub(crate) fn wake(&mut self, wait: Wait, wakes: &mut Vec<Waker>) {
        if let Some((_, tasks)) = self.waiting.iter_mut().find(|(other, _)| *other == wait) {
            tasks.take(wakes);
        }
    }

    pub(crate) fn on_connected(&mut self, now: Time, wakes: &mut Vec<Waker>) {
        self.connected_at = Some(now);
        self.wake(Wait::event(&Event::Connected), wakes);
    }

    /// The connection is over: keeps what may be asked for later and wakes everyone.
    pub(crate) fn end(&mut self, ended: Ended, connection: Option<&Connection>, wakes: &mut Vec<Waker>) {
        self.ended = Some(ended);
        if let Some(connection) = connection {
            self.last_stats = Some(Box::new(connection.stats()));
            self.identity = Some(Box::new(Identity::of(connection)));
        }
        self.waiting.iter_mut().for_each(|(_, tasks)| tasks.take(wakes));
        for stream in self.streams.in_order() {
            wakes.extend(stream.reader.take());
            wakes.extend(stream.writer.take());
            stream.wake_enders(wakes);
        }
    }

    pub(crate) fn on_stream_event(&mut self, event: StreamEvent, wakes: &mut Vec<Waker>) {
        match event {
            StreamEvent::Opened { direction } => self.wake(Wait::Accept(direction), wakes),
            StreamEvent::Available(direction) => self.wake(Wait::Open(direction), wakes),
            StreamEvent::Readable(id) => {
                if let Some(stream) = self.streams.get_mut(id) {
                    wakes.extend(stream.reader.take());
                }
            }
            StreamEvent::Writable(id) => {
                if let Some(stream) = self.streams.get_mut(id) {
                    stream.write_blocked = false;
                    wakes.extend(stream.writer.take());
                }
            }
            StreamEvent::Stopped { id, error_code } => {
                // The peer may stop a stream of its own before the application has taken it.
                if id.initiator() != self.side && id.index() >= self.accepted_bidi {
                    self.streams.entry(id);
                }
                self.decide(id, SendFate::Stopped(error_code), wakes);
            }
            StreamEvent::SendComplete(id) => self.decide(id, SendFate::Complete, wakes),
        }
    }

    /// Records what became of a stream's sending half.
    pub(crate) fn decide(&mut self, id: StreamId, fate: SendFate, wakes: &mut Vec<Waker>) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.decide(fate, wakes);
        }
    }

    /// Makes the record of a stream, of which the application is about to get one or both halves.
    pub(crate) fn add_stream(&mut self, id: StreamId, halves: u8) {
        self.streams.entry(id).halves = halves;
        if id.initiator() != self.side && id.direction() == Direction::Bidirectional {
            self.accepted_bidi = self.accepted_bidi.max(id.index() + 1);
        }
    }

    pub(crate) fn stream(&mut self, id: StreamId) -> Option<&mut StreamState> {
        self.streams.get_mut(id)
    }

    /// The application has dropped a half; the record goes with the last.
    pub(crate) fn release_half(&mut self, id: StreamId, wakes: &mut Vec<Waker>) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.halves = stream.halves.saturating_sub(1);
        if stream.halves == 0 {
            stream.wake_enders(wakes);
            self.streams.remove(id);
        }
    }
}
