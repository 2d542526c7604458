//! Our transport as a peer: the real [`Endpoint`], nothing of it modelled.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_policy::Profile;
use posthaste_policy::group::MAX_MEMBERS;
use posthaste_transport::{
    ClientConfig, CloseReason, Connection, ConnectionHandle, ConnectionStats, DatagramInfo, Direction,
    Endpoint, Event, ReceiveBudget, Secret, ServerConfig, StreamEvent, StreamId, TransportConfig,
};
use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};

use super::Settings;
use super::buffers::Buffers;
use super::credit_log::CreditLog;
use crate::packet::{Body, Packet};
use crate::peer::{Counters, CreditMoves, Peer, PeerEvent, Read, Snapshot, StreamKey};
use crate::tls;

/// Datagrams taken from the transport at once.
const MAX_SEGMENTS: usize = 64;

/// Streams that a client may open at once: pages of 100 objects must not wait for it.
const MAX_STREAMS: u64 = 256;

/// Bits of a [`StreamKey`] that are the stream's; above them stands the connection.
const STREAM_BITS: u32 = 56;

/// What servers know each other's address tokens by, where clients keep them.
const SHARED_SECRET: Secret = Secret([42; 32]);

/// A client or server endpoint with one connection, or several between the same two ends.
pub(super) struct Posthaste {
    endpoint: Endpoint,
    /// Who the datagrams come from; only ever one.
    remote: SocketAddr,
    /// Set on a client until it connects.
    client: Option<ClientConfig>,
    /// The connections that a client makes, or the most that a server follows.
    wanted: usize,
    legs: Vec<Leg>,
    batch: Vec<u8>,
    buffers: Buffers,
    leaving: VecDeque<Packet>,
    events: VecDeque<PeerEvent>,
    /// What this end has permitted the other to send, and not read: the account, and the most that was in it.
    budget: ReceiveBudget,
    granted: ByteCount,
    /// How a client's stream windows have moved.
    credit_log: Option<CreditLog>,
}

/// One of the connections.
struct Leg {
    handle: ConnectionHandle,
    is_connected: bool,
    watch: Watch,
    /// What it was when the connection had settled last; `None` once it is gone.
    snapshot: Option<Snapshot>,
    /// The counters at the end, once the connection is gone.
    last_counters: Counters,
}

impl Leg {
    fn new(handle: ConnectionHandle) -> Self {
        let (watch, last_counters) = (Watch::default(), Counters::default());
        Self { handle, is_connected: false, watch, snapshot: None, last_counters }
    }
}

/// The end that begins the handshake.
pub(super) fn client(
    profile: &Profile,
    connections: usize,
    settings: &Settings,
    rng: &mut Rng,
) -> Box<dyn Peer> {
    let credit_log = CreditLog::default();
    let transport = transport(&credit_log.around(profile), settings);
    let budget = transport.receive_budget.clone();
    let mut config = ClientConfig::new(settings.tls.client.clone(), transport)
        .with_group_size(if connections > 1 { connections } else { 0 });
    config.tokens.clone_from(&settings.tokens);
    let mut client = Posthaste::new(None, Some(config), connections, budget, rng);
    client.credit_log = Some(credit_log);
    Box::new(client)
}

/// The end that answers it.
pub(super) fn server(
    profile: &Profile,
    connections: usize,
    settings: &Settings,
    rng: &mut Rng,
) -> Box<dyn Peer> {
    let transport = transport(profile, settings);
    let budget = transport.receive_budget.clone();
    let mut config = ServerConfig::new(settings.tls.server.clone(), transport);
    config.path_memory = settings.path_memory.clone();
    if settings.tokens.is_some() {
        config.secret = Some(SHARED_SECRET);
    }
    let mut server = Posthaste::new(Some(config), None, connections, budget, rng);
    server.remote = SocketAddr::from(([10, 0, 0, settings.client_number], 443));
    Box::new(server)
}

fn transport(profile: &Profile, settings: &Settings) -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        max_idle_timeout: settings.idle_timeout.into(),
        max_concurrent_bidi_streams: MAX_STREAMS,
        // One size from the first datagram to the last, as for the other stacks.
        max_datagram_size: usize::from(settings.max_datagram_size),
        mtu_discovery: false,
        #[cfg(feature = "experiments")]
        qlog: settings.qlog.clone(),
        ..TransportConfig::new(profile.clone())
    })
}

impl Posthaste {
    fn new(
        server: Option<ServerConfig>,
        client: Option<ClientConfig>,
        connections: usize,
        budget: ReceiveBudget,
        rng: &mut Rng,
    ) -> Self {
        let mut seed = [0; 32];
        rng.fill(&mut seed);
        Self {
            endpoint: Endpoint::new(seed, server),
            remote: SocketAddr::from(([10, 0, 0, if client.is_some() { 1 } else { 2 }], 443)),
            client,
            wanted: connections.clamp(1, MAX_MEMBERS),
            legs: Vec::new(),
            batch: Vec::new(),
            buffers: Buffers::default(),
            leaving: VecDeque::new(),
            events: VecDeque::new(),
            budget,
            granted: ByteCount::ZERO,
            credit_log: None,
        }
    }

    fn connection(&mut self, leg: usize) -> Option<&mut Connection> {
        self.endpoint.connection_mut(self.legs.get(leg)?.handle)
    }

    /// The connections have sent what their windows and pacers permit.
    fn look(&mut self, now: Time) {
        self.granted = self.granted.max(self.budget.taken());
        for leg in &mut self.legs {
            leg.snapshot = None;
            if let Some(connection) = self.endpoint.connection(leg.handle) {
                let stats = connection.stats();
                leg.watch.look(now, &stats);
                leg.snapshot = Some(snapshot_of(&stats));
            }
        }
    }

    /// The connection's place among all, which it gets when it first shows.
    fn place_of(&mut self, handle: ConnectionHandle) -> Option<usize> {
        let place = self.legs.iter().position(|leg| leg.handle == handle);
        if place.is_none() && self.legs.len() < self.wanted {
            self.legs.push(Leg::new(handle));
            return Some(self.legs.len() - 1);
        }
        place
    }

    /// The client has all its connections in the group that the server has put the first into.
    fn join_all(&mut self) {
        let Some(token) = self.connection(0).and_then(|connection| connection.group_token()) else { return };
        for leg in 1..self.legs.len() {
            if let Some(connection) = self.connection(leg).filter(|leg| leg.group_token() != Some(token)) {
                // One that is not connected yet follows when it is.
                let _ = connection.join_group(token);
            }
        }
    }

    fn on_event(&mut self, leg: usize, event: Event) {
        let key = |id: StreamId| StreamKey(id.to_wire() | (leg as u64) << STREAM_BITS);
        if matches!(event, Event::Closed(_)) {
            let leg = &mut self.legs[leg];
            leg.last_counters = counters_of(&self.endpoint, leg, leg.watch.looked);
        }
        let event = match event {
            Event::Connected => {
                self.legs[leg].is_connected = true;
                self.join_all();
                let are_all = self.legs.iter().filter(|leg| leg.is_connected).count() == self.wanted;
                if !are_all {
                    return;
                }
                PeerEvent::Connected
            }
            Event::Grouped => return self.join_all(),
            Event::Stream(StreamEvent::Readable(id)) => PeerEvent::Readable(key(id)),
            Event::Stream(StreamEvent::Writable(id)) => PeerEvent::Writable(key(id)),
            Event::Stream(StreamEvent::Available(_)) => PeerEvent::Available,
            Event::Stream(StreamEvent::Opened { direction }) => {
                while let Some(id) = self.connection(leg).and_then(|connection| connection.accept(direction))
                {
                    self.events.push_back(PeerEvent::Opened(key(id)));
                }
                return;
            }
            Event::Closed(CloseReason::Local { .. } | CloseReason::PeerApplication { error_code: 0, .. }) => {
                PeerEvent::Closed(None)
            }
            Event::Closed(reason) => PeerEvent::Closed(Some(reason.to_string())),
            // Nothing that an application of the lab waits for.
            _ => return,
        };
        self.events.push_back(event);
    }
}

fn id(key: StreamKey) -> StreamId {
    StreamId::from_wire(key.0 & ((1 << STREAM_BITS) - 1))
}

fn leg_of(key: StreamKey) -> usize {
    (key.0 >> STREAM_BITS) as usize
}

impl Peer for Posthaste {
    fn connect(&mut self, now: Time) {
        let Some(config) = self.client.take() else { return };
        for _ in 0..self.wanted {
            match self.endpoint.connect(now, &config, self.remote, tls::SERVER_NAME) {
                Ok(handle) => self.legs.push(Leg::new(handle)),
                Err(error) => self.events.push_back(PeerEvent::Closed(Some(error.to_string()))),
            }
        }
    }

    fn on_packet(&mut self, now: Time, packet: Packet) {
        if let Body::Udp(data) = packet.body {
            let info = DatagramInfo { remote: self.remote, local_ip: None, ecn: packet.ecn };
            self.endpoint.on_datagram(now, &info, data);
        }
    }

    fn on_timeout(&mut self, now: Time) {
        self.endpoint.on_timeout(now);
    }

    fn next_timeout(&mut self) -> Option<Time> {
        self.endpoint.next_timeout()
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if let Some(packet) = self.leaving.pop_front() {
            return Some(packet);
        }
        self.batch.clear();
        let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.batch, MAX_SEGMENTS) else {
            self.look(now);
            return None;
        };
        let size = transmit.segment_size.unwrap_or(transmit.size);
        for datagram in self.batch.chunks(size) {
            self.leaving.push_back(Packet::udp(self.buffers.datagram(datagram), transmit.ecn));
        }
        self.leaving.pop_front()
    }

    fn poll_event(&mut self) -> Option<PeerEvent> {
        while self.events.is_empty() {
            let (handle, event) = self.endpoint.poll_event()?;
            if let Some(leg) = self.place_of(handle) {
                self.on_event(leg, event);
            }
        }
        self.events.pop_front()
    }

    fn may_send_early(&self) -> bool {
        let first = self.legs.first().and_then(|leg| self.endpoint.connection(leg.handle));
        first.is_some_and(Connection::may_send_early)
    }

    fn open(&mut self, now: Time) -> Option<StreamKey> {
        self.open_on(now, 0)
    }

    fn legs(&self) -> usize {
        self.legs.len().max(1)
    }

    fn open_on(&mut self, _now: Time, leg: usize) -> Option<StreamKey> {
        let id = self.connection(leg)?.open(Direction::Bidirectional).ok()?;
        Some(StreamKey(id.to_wire() | (leg as u64) << STREAM_BITS))
    }

    fn write(&mut self, _now: Time, stream: StreamKey, data: &mut Bytes) {
        // A stream that the other end refuses shows as such when it is read.
        let Some(connection) = self.connection(leg_of(stream)) else { return };
        while !data.is_empty() && connection.write(id(stream), data).is_ok_and(|taken| taken > 0) {}
    }

    fn finish(&mut self, _now: Time, stream: StreamKey) {
        if let Some(connection) = self.connection(leg_of(stream)) {
            let _ = connection.finish(id(stream));
        }
    }

    fn read(&mut self, now: Time, stream: StreamKey, max: usize) -> Read {
        let Some(connection) = self.connection(leg_of(stream)) else { return Read::Reset };
        match connection.read(now, id(stream), max) {
            Ok(posthaste_transport::Read::Data(data)) => Read::Data(data),
            Ok(posthaste_transport::Read::Blocked) => Read::Blocked,
            Ok(posthaste_transport::Read::Finished) => Read::Finished,
            Err(_) => Read::Reset,
        }
    }

    fn close(&mut self, now: Time) {
        for leg in 0..self.legs.len() {
            if let Some(connection) = self.connection(leg) {
                connection.close(now, 0, Bytes::new());
            }
        }
    }

    /// Sums over the connections, with the first one's RTT. Nothing has changed since they settled: what changes them settles
    /// them again.
    fn snapshot(&self) -> Snapshot {
        self.legs.iter().filter_map(|leg| leg.snapshot).reduce(sum).unwrap_or_default()
    }

    fn counters(&self, now: Time) -> Counters {
        let mut all = self.legs.iter().map(|leg| counters_of(&self.endpoint, leg, now));
        let first = all.next().unwrap_or_default();
        let sum = all.fold(first, |sum, counters| sum.plus(&counters));
        // The account is the end's, not a connection's.
        Counters { granted_bytes: Some(self.granted.get()), ..sum }
    }

    fn credit_moves(&self) -> Option<CreditMoves> {
        self.credit_log.as_ref().map(CreditLog::moves)
    }
}

/// What one connection has counted.
fn counters_of(endpoint: &Endpoint, leg: &Leg, now: Time) -> Counters {
    let Some(connection) = endpoint.connection(leg.handle) else { return leg.last_counters };
    let stats = connection.stats();
    Counters {
        lost: Some(stats.packets_lost),
        spuriously_lost: Some(stats.packets_spuriously_lost),
        resent_bytes: Some(stats.streams.resent.get()),
        acks_sent: Some(stats.acks_sent),
        pure_acks_sent: Some(stats.packets_sent - stats.ack_eliciting_sent),
        ack_eliciting_sent: Some(stats.ack_eliciting_sent),
        probe_timeouts: Some(stats.probe_timeouts),
        congestion_events: Some(leg.watch.reductions),
        blocked_nanos: Some(leg.watch.blocked_until(now).as_nanos()),
        late_blocked_nanos: Some(leg.watch.late_blocked_until(now).as_nanos()),
        late_nanos: Some(leg.watch.late_since.map_or(0, |since| now.since(since).as_nanos())),
        slow_start_packets: leg.watch.slow_start_end.map(|(packets, _)| packets),
        slow_start_window: leg.watch.slow_start_end.map(|(_, window)| window.get()),
        granted_bytes: None,
    }
}

/// One connection's part of the snapshot.
fn snapshot_of(stats: &ConnectionStats) -> Snapshot {
    Snapshot {
        window: Some(stats.congestion.window),
        pacing: stats.pacing_rate,
        rtt: Some(stats.rtt.smoothed),
        in_flight: Some(stats.in_flight),
        credit: Some(stats.streams.credit),
        is_blocked: Some(is_blocked(stats)),
    }
}

/// Two parts together. What one of them does not know, both do not know.
fn sum(first: Snapshot, second: Snapshot) -> Snapshot {
    let add = |one: Option<ByteCount>, other: Option<ByteCount>| Some(one? + other?);
    let rates = first.pacing.zip(second.pacing);
    let rate =
        |(one, other): (Rate, Rate)| one.as_bytes_per_second().saturating_add(other.as_bytes_per_second());
    Snapshot {
        window: add(first.window, second.window),
        pacing: rates.map(rate).map(Rate::from_bytes_per_second),
        rtt: first.rtt,
        in_flight: add(first.in_flight, second.in_flight),
        credit: add(first.credit, second.credit),
        is_blocked: first.is_blocked.zip(second.is_blocked).map(|(one, other)| one || other),
    }
}

/// True if flow control alone keeps data back.
fn is_blocked(stats: &ConnectionStats) -> bool {
    let has_room = stats.in_flight < stats.congestion.window;
    has_room && (stats.streams.is_connection_blocked || stats.streams.blocked_streams > 0)
}

/// What follows from looking at the statistics each time that the connection has settled.
#[derive(Debug, Default)]
struct Watch {
    /// When it looked last.
    looked: Time,
    window: ByteCount,
    /// Times that the window has shrunk.
    reductions: u64,
    /// Packets sent, and the window, when slow start first ended.
    slow_start_end: Option<(u64, ByteCount)>,
    blocked_since: Option<Time>,
    blocked: Duration,
    /// From when on the start is over, and how long it had been blocked by then.
    late_since: Option<Time>,
    late_blocked: Duration,
}

/// Round trips after the first stream data in which a connection may be looking for its window.
const EARLY_ROUND_TRIPS: u64 = 4;

impl Watch {
    fn look(&mut self, now: Time, stats: &ConnectionStats) {
        let window = std::mem::replace(&mut self.window, stats.congestion.window);
        self.reductions += u64::from(self.window < window);
        if self.slow_start_end.is_none() && stats.congestion.slow_start_threshold.is_some() {
            // A loss has cut the window already.
            self.slow_start_end = Some((stats.packets_sent, window.max(self.window)));
        }
        self.looked = now;
        self.late_blocked = self.late_blocked_until(now);
        self.blocked = self.blocked_until(now);
        if self.late_since.is_none() && stats.rtt.is_measured && !stats.streams.sent.is_zero() {
            self.late_since = Some(now + stats.rtt.min * EARLY_ROUND_TRIPS);
        }
        self.blocked_since = is_blocked(stats).then_some(now);
    }

    /// Time blocked, an interval that is still open included.
    fn blocked_until(&self, now: Time) -> Duration {
        self.blocked + self.blocked_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Of that, what lies behind the start.
    fn late_blocked_until(&self, now: Time) -> Duration {
        let late = self.blocked_since.zip(self.late_since).map(|(since, late)| now.since(since.max(late)));
        self.late_blocked + late.unwrap_or(Duration::ZERO)
    }
}
