//! One end of a host pair's connections as a [`Peer`]: streams over HTTP/2 or HTTP/1.1 over TLS over TCP.
//!
//! HTTP/2: one connection; streams with something to send take turns, a frame each. HTTP/1.1: up to six
//! connections, opened when an exchange finds all others busy, each with its own handshakes; an exchange takes the
//! first connection that becomes free. Both ends know a stream by the client's count.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use posthaste_units::{ByteCount, Time};

use super::channel::{Channel, Stage};
use super::connection::{Connection, Death, Parameters};
use super::handshake as sizes;
use super::stream::Stream;
use super::tape::{Content, SharedTapes};
use crate::HttpVersion;
use crate::packet::{Body, Packet};
use crate::peer::{Counters, Peer, PeerEvent, Read, Snapshot, StreamKey};
use crate::segment::{Kind, Segment};

/// Connections that a browser opens to a host with HTTP/1.1.
const MAX_CONNECTIONS: usize = 6;

/// Streams that a client may have open at once, as for the QUIC stacks.
const MAX_STREAMS: usize = 256;

/// Bytes of a stream that wait outside of the socket, at least; more if the congestion window is large.
const LEAST_BUFFER: u64 = 128 << 10;

/// HTTP/2's receive windows as browsers set them: of a stream and of the connection. Their updates are not
/// modelled, so they bound what lies unread and never the speed.
const STREAM_WINDOW: u64 = 6 << 20;
const CONNECTION_WINDOW: u64 = 15 << 20;

/// What an HTTP/1.1 client keeps outside of the socket.
const READ_BUFFER: u64 = 64 << 10;

/// One end.
#[derive(Debug)]
pub(super) struct Host {
    is_client: bool,
    version: HttpVersion,
    parameters: Parameters,
    tapes: SharedTapes,
    channels: Vec<Channel>,
    streams: BTreeMap<StreamKey, Stream>,
    /// Exchanges without a connection (HTTP/1.1).
    waiting: VecDeque<StreamKey>,
    next_key: u64,
    wants_stream: bool,
    unread: u64,
    /// Where polling goes on.
    turn: usize,
    /// Segments that left in answer to segments.
    leaving: VecDeque<Segment>,
    life: Life,
    events: VecDeque<PeerEvent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Young,
    Connected,
    Over,
}

impl Host {
    pub(super) fn new(
        is_client: bool,
        version: HttpVersion,
        parameters: Parameters,
        tapes: SharedTapes,
    ) -> Self {
        Self {
            is_client,
            version,
            parameters,
            tapes,
            channels: Vec::new(),
            streams: BTreeMap::new(),
            waiting: VecDeque::new(),
            next_key: 0,
            wants_stream: false,
            unread: 0,
            turn: 0,
            leaving: VecDeque::new(),
            life: Life::Young,
            events: VecDeque::new(),
        }
    }

    /// Bytes that HTTP adds to a frame.
    fn frame_overhead(&self) -> u64 {
        match self.version {
            HttpVersion::Http11 => 0,
            HttpVersion::Http2 => sizes::FRAME_OVERHEAD,
        }
    }

    /// Bytes that may lie unread: of one stream and of all.
    fn read_limits(&self) -> (u64, u64) {
        match self.version {
            HttpVersion::Http11 => (READ_BUFFER, u64::MAX),
            HttpVersion::Http2 => (STREAM_WINDOW, CONNECTION_WINDOW),
        }
    }

    /// Bytes that may wait in a stream on this connection, so that a whole window can leave before the
    /// application writes again.
    fn write_limit(&self, channel: Option<usize>) -> u64 {
        let window = channel.map_or(0, |index| self.channels[index].connection.sender.window_bytes());
        LEAST_BUFFER.max(2 * window)
    }

    fn add_channel(&mut self) {
        let number = self.channels.len();
        let connection = if self.is_client {
            Connection::client(number as u16, &self.parameters)
        } else {
            Connection::server(number as u16, &self.parameters)
        };
        self.channels.push(Channel::new(number, connection, self.is_client, &self.tapes));
    }

    /// Acts on what has changed at a connection.
    fn progress(&mut self, now: Time, index: usize) {
        let channel = &mut self.channels[index];
        match channel.connection.death() {
            Some(Death::Wished) => return self.end(None),
            Some(Death::GivenUp(reason)) => return self.end(Some(reason.to_owned())),
            None => {}
        }
        if self.is_client && channel.stage == Stage::Begin && channel.connection.is_established() {
            channel.stage = Stage::Greeted;
            channel.append(now, sizes::CLIENT_HELLO, [Content::ClientHello]);
        }
        while self.may_take(index) {
            let Some(content) = self.channels[index].take() else { break };
            self.on_content(now, index, content);
        }
        self.channels[index].tell_consumed(now);
    }

    /// False while a slow reader holds the connection up.
    fn may_take(&mut self, index: usize) -> bool {
        let (of_one, of_all) = self.read_limits();
        let channel = &mut self.channels[index];
        if let Some(key) = channel.held_by {
            let unread = self.streams.get(&key).map_or(0, Stream::unread);
            if unread >= of_one || unread > 0 && self.unread >= of_all {
                return false;
            }
            channel.held_by = None;
        }
        true
    }

    fn on_content(&mut self, now: Time, index: usize, content: Content) {
        let channel = &mut self.channels[index];
        match content {
            Content::ClientHello => {
                channel.stage = Stage::Greeted;
                channel.append(now, sizes::SERVER_FLIGHT, [Content::ServerFlight]);
            }
            Content::ServerFlight => {
                channel.append(now, sizes::CLIENT_FINISHED, [Content::ClientFinished]);
                if self.version == HttpVersion::Http2 {
                    channel.append(now, sizes::CLIENT_SETTINGS, [Content::Settings]);
                }
                self.on_ready(index);
            }
            Content::ClientFinished => self.on_ready(index),
            Content::Settings if self.is_client => {
                channel.append(now, sizes::SETTINGS_ACK, [Content::SettingsAck]);
            }
            Content::Settings => channel.append(now, sizes::SERVER_SETTINGS, [Content::Settings]),
            Content::SettingsAck => {}
            Content::Frame { stream, bytes, is_last } => self.on_frame(index, stream, bytes, is_last),
        }
    }

    fn on_ready(&mut self, index: usize) {
        self.channels[index].stage = Stage::Ready;
        if self.life == Life::Young {
            self.life = Life::Connected;
            self.events.push_back(PeerEvent::Connected);
        }
        self.assign();
    }

    fn on_frame(&mut self, index: usize, key: StreamKey, bytes: Bytes, is_last: bool) {
        let length = bytes.len() as u64;
        let (of_one, of_all) = self.read_limits();
        let is_new = !self.streams.contains_key(&key);
        if is_new && self.is_client {
            // The rest of a stream that the application has left.
            return;
        }
        let stream = self.streams.entry(key).or_insert_with(|| Stream::new(Some(index), false));
        let wakes_reader = stream.on_data(bytes, is_last);
        self.unread += length;
        if stream.unread() >= of_one || self.unread >= of_all {
            self.channels[index].held_by = Some(key);
        }
        if is_new {
            self.events.push_back(PeerEvent::Opened(key));
        } else if wakes_reader {
            self.events.push_back(PeerEvent::Readable(key));
        }
        if is_last && self.is_client && self.version == HttpVersion::Http11 {
            self.channels[index].exchange = None;
            self.assign();
        }
    }

    /// Gives waiting exchanges to free connections, and opens connections for the others (HTTP/1.1).
    fn assign(&mut self) {
        for index in 0..self.channels.len() {
            let channel = &mut self.channels[index];
            if channel.stage != Stage::Ready || channel.exchange.is_some() {
                continue;
            }
            let Some(key) = self.waiting.pop_front() else { return };
            channel.exchange = Some(key);
            channel.turns.push_back(key);
            if let Some(stream) = self.streams.get_mut(&key) {
                stream.channel = Some(index);
            }
        }
        let coming = self.channels.iter().filter(|channel| channel.stage != Stage::Ready).count();
        let missing = self.waiting.len().saturating_sub(coming);
        for _ in 0..missing.min(MAX_CONNECTIONS.saturating_sub(self.channels.len())) {
            self.add_channel();
        }
    }

    /// Turns what waits in streams into records while the socket takes them.
    fn fill(&mut self, now: Time, index: usize) {
        while self.channels[index].wants_frames() {
            let Some(key) = self.channels[index].turns.pop_front() else { return };
            self.send_frame(now, index, key);
        }
    }

    fn send_frame(&mut self, now: Time, index: usize, key: StreamKey) {
        let overhead = self.frame_overhead();
        let limit = self.write_limit(Some(index));
        let Some(stream) = self.streams.get_mut(&key) else { return };
        if !stream.has_outgoing() {
            return;
        }
        let (pieces, length, is_last) = stream.take_frame(sizes::MAX_RECORD - overhead);
        let channel = &mut self.channels[index];
        if stream.has_outgoing() {
            channel.turns.push_back(key);
        }
        if stream.wakes_writer(limit) {
            self.events.push_back(PeerEvent::Writable(key));
        }
        let is_bare_end = length == 0 && self.version == HttpVersion::Http11;
        let end = if is_bare_end { sizes::LAST_CHUNK } else { 0 };
        let last = pieces.len().saturating_sub(1);
        let frames = pieces.into_iter().enumerate().map(|(position, bytes)| Content::Frame {
            stream: key,
            bytes,
            is_last: is_last && position == last,
        });
        channel.append(now, sizes::RECORD_OVERHEAD + overhead + length + end, frames);
        self.forget_if_over(key);
    }

    /// Puts a stream with something to send in turn.
    fn schedule(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get(&key).filter(|stream| stream.has_outgoing()) else { return };
        let Some(channel) = stream.channel.and_then(|index| self.channels.get_mut(index)) else { return };
        if !channel.turns.contains(&key) {
            channel.turns.push_back(key);
        }
    }

    fn forget_if_over(&mut self, key: StreamKey) {
        if self.streams.get(&key).is_some_and(Stream::is_over) {
            self.streams.remove(&key);
            if std::mem::take(&mut self.wants_stream) {
                self.events.push_back(PeerEvent::Available);
            }
        }
    }

    fn end(&mut self, reason: Option<String>) {
        if self.life == Life::Over {
            return;
        }
        self.life = Life::Over;
        for channel in &mut self.channels {
            channel.connection.reset();
        }
        self.streams.clear();
        self.waiting.clear();
        self.events.push_back(PeerEvent::Closed(reason));
    }
}

impl Peer for Host {
    fn connect(&mut self, _now: Time) {
        if self.is_client && self.channels.is_empty() {
            self.add_channel();
        }
    }

    fn on_packet(&mut self, now: Time, packet: Packet) {
        let Body::Tcp(segment) = packet.body else { return };
        let index = usize::from(segment.connection);
        if !self.accepts(index, &segment) {
            return;
        }
        let connection = &mut self.channels[index].connection;
        connection.on_segment(now, &segment);
        // The kernel answers each segment, from what is in the socket, before the application hears of it. So
        // segments that arrive at the same time are still acknowledged, and clock others out, one by one.
        self.leaving.extend(std::iter::from_fn(|| connection.poll(now)));
        self.progress(now, index);
        if self.life == Life::Connected {
            self.fill(now, index);
        }
    }

    fn on_timeout(&mut self, now: Time) {
        for index in 0..self.channels.len() {
            if self.channels[index].connection.next_timeout().is_some_and(|at| at <= now) {
                self.channels[index].connection.on_timeout(now);
                self.progress(now, index);
            }
        }
    }

    fn next_timeout(&mut self) -> Option<Time> {
        self.channels.iter().filter_map(|channel| channel.connection.next_timeout()).min()
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if let Some(segment) = self.leaving.pop_front() {
            return Some(Packet::tcp(segment));
        }
        for _ in 0..self.channels.len() {
            let index = self.turn % self.channels.len();
            self.fill(now, index);
            if let Some(segment) = self.channels[index].connection.poll(now) {
                return Some(Packet::tcp(segment));
            }
            self.turn = index + 1;
        }
        None
    }

    fn poll_event(&mut self) -> Option<PeerEvent> {
        self.events.pop_front()
    }

    fn open(&mut self, _now: Time) -> Option<StreamKey> {
        if !self.is_client || self.life != Life::Connected {
            return None;
        }
        if self.streams.len() >= MAX_STREAMS {
            self.wants_stream = true;
            return None;
        }
        let key = StreamKey(self.next_key);
        self.next_key += 1;
        let channel = (self.version == HttpVersion::Http2).then_some(0);
        self.streams.insert(key, Stream::new(channel, true));
        if channel.is_none() {
            self.waiting.push_back(key);
            self.assign();
        }
        Some(key)
    }

    fn write(&mut self, _now: Time, stream: StreamKey, data: &mut Bytes) {
        let channel = self.streams.get(&stream).and_then(|stream| stream.channel);
        let limit = self.write_limit(channel);
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.write(data, limit);
        }
        self.schedule(stream);
    }

    fn finish(&mut self, _now: Time, stream: StreamKey) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.finish();
        }
        self.schedule(stream);
    }

    fn read(&mut self, now: Time, stream: StreamKey, max: usize) -> Read {
        let Some(state) = self.streams.get_mut(&stream) else { return Read::Reset };
        let read = state.read(max);
        let channel = state.channel;
        match &read {
            Read::Data(data) => {
                self.unread -= data.len() as u64;
                if let Some(index) = channel.filter(|&index| self.channels[index].held_by.is_some()) {
                    self.progress(now, index);
                }
            }
            Read::Finished => self.forget_if_over(stream),
            Read::Blocked | Read::Reset => {}
        }
        read
    }

    fn close(&mut self, _now: Time) {
        self.end(None);
    }

    fn snapshot(&self) -> Snapshot {
        let sum = |part: fn(&Channel) -> u64| ByteCount::new(self.channels.iter().map(part).sum());
        Snapshot {
            window: Some(sum(|channel| channel.connection.sender.window_bytes())),
            pacing: self.channels.iter().filter_map(|channel| channel.connection.sender.pacing()).max(),
            rtt: self.channels.iter().filter_map(|channel| channel.connection.sender.rtt()).max(),
            in_flight: Some(sum(|channel| channel.connection.sender.in_flight_bytes())),
            credit: Some(sum(|channel| channel.connection.sender.credit())),
            is_blocked: Some(self.channels.iter().any(|channel| channel.connection.sender.is_blocked())),
        }
    }

    fn counters(&self, _now: Time) -> Counters {
        let mut sum = [0; 9];
        for channel in &self.channels {
            let (counts, (sender, lost, resent_bytes)) = channel.connection.counts();
            let parts = [
                lost,
                sender.spurious + sender.unmarked,
                resent_bytes,
                counts.pure_acks,
                counts.acks,
                counts.ack_eliciting,
                sender.timeouts + counts.syn_timeouts,
                sender.reductions,
                sender.blocked.as_nanos(),
            ];
            for (total, part) in sum.iter_mut().zip(parts) {
                *total += part;
            }
        }
        let [lost, spurious, resent, pure_acks, acks, ack_eliciting, timeouts, reductions, blocked] =
            sum.map(Some);
        Counters {
            lost,
            spuriously_lost: spurious,
            resent_bytes: resent,
            pure_acks_sent: pure_acks,
            acks_sent: acks,
            ack_eliciting_sent: ack_eliciting,
            probe_timeouts: timeouts,
            congestion_events: reductions,
            blocked_nanos: blocked,
            ..Counters::default()
        }
    }
}

impl Host {
    /// True if a segment belongs to a connection; a SYN at a server makes one.
    fn accepts(&mut self, index: usize, segment: &Segment) -> bool {
        if index < self.channels.len() {
            return true;
        }
        let is_first = segment.kind == Kind::Syn && !segment.is_corrupted;
        if self.is_client || !is_first || index >= MAX_CONNECTIONS || self.life == Life::Over {
            return false;
        }
        // SYNs may overtake each other; an end without a SYN does nothing.
        while self.channels.len() <= index {
            self.add_channel();
        }
        true
    }
}
