//! Our transport as a peer: the real [`Endpoint`], nothing of it modelled.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use posthaste_policy::Profile;
use posthaste_transport::{
    ClientConfig, CloseReason, Connection, ConnectionHandle, ConnectionStats, DatagramInfo, Direction,
    Endpoint, Event, ServerConfig, StreamEvent, StreamId, TransportConfig,
};
use posthaste_units::{ByteCount, Duration, Rng, Time};

use super::Settings;
use crate::packet::{Body, Packet};
use crate::peer::{Counters, Peer, PeerEvent, Read, Snapshot, StreamKey};
use crate::tls;

/// Datagrams taken from the transport at once.
const MAX_SEGMENTS: usize = 64;

/// Streams that a client may open at once: pages of 100 objects must not wait for it.
const MAX_STREAMS: u64 = 256;

/// A client or server endpoint with one connection.
pub(super) struct Posthaste {
    endpoint: Endpoint,
    /// Who the datagrams come from; only ever one.
    remote: SocketAddr,
    /// Set on a client until it connects.
    client: Option<ClientConfig>,
    handle: Option<ConnectionHandle>,
    batch: Vec<u8>,
    leaving: VecDeque<Packet>,
    events: VecDeque<PeerEvent>,
    watch: Watch,
    /// The counters at the end, once the connection is gone.
    last_counters: Counters,
}

/// The end that begins the handshake.
pub(super) fn client(profile: &Profile, settings: &Settings, rng: &mut Rng) -> Box<dyn Peer> {
    let config = ClientConfig::new(tls::client()).with_transport(transport(profile, settings));
    Box::new(Posthaste::new(None, Some(config), rng))
}

/// The end that answers it.
pub(super) fn server(profile: &Profile, settings: &Settings, rng: &mut Rng) -> Box<dyn Peer> {
    let config = ServerConfig::new(tls::server()).with_transport(transport(profile, settings));
    Box::new(Posthaste::new(Some(config), None, rng))
}

fn transport(profile: &Profile, settings: &Settings) -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        profile: profile.clone(),
        max_idle_timeout: settings.idle_timeout,
        max_concurrent_bidi_streams: MAX_STREAMS,
        // One size from the first datagram to the last, as for the other stacks.
        max_datagram_size: usize::from(settings.max_datagram_size),
        mtu_discovery: false,
        qlog: settings.qlog.clone(),
        ..TransportConfig::default()
    })
}

impl Posthaste {
    fn new(server: Option<ServerConfig>, client: Option<ClientConfig>, rng: &mut Rng) -> Self {
        let mut seed = [0; 32];
        rng.fill(&mut seed);
        Self {
            endpoint: Endpoint::new(seed, server),
            remote: SocketAddr::from(([10, 0, 0, if client.is_some() { 1 } else { 2 }], 443)),
            client,
            handle: None,
            batch: Vec::new(),
            leaving: VecDeque::new(),
            events: VecDeque::new(),
            watch: Watch::default(),
            last_counters: Counters::default(),
        }
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        self.endpoint.connection_mut(self.handle?)
    }

    /// The connection has sent all that it may for now.
    fn look(&mut self, now: Time) {
        if let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection(handle)) {
            self.watch.look(now, &connection.stats());
        }
    }

    fn on_event(&mut self, event: Event) {
        if matches!(event, Event::Closed(_)) {
            self.last_counters = self.counters(self.watch.looked);
        }
        let event = match event {
            Event::Connected => PeerEvent::Connected,
            Event::Stream(StreamEvent::Readable(id)) => PeerEvent::Readable(key(id)),
            Event::Stream(StreamEvent::Writable(id)) => PeerEvent::Writable(key(id)),
            Event::Stream(StreamEvent::Available(_)) => PeerEvent::Available,
            Event::Stream(StreamEvent::Opened { direction }) => {
                while let Some(id) = self.connection().and_then(|connection| connection.accept(direction)) {
                    self.events.push_back(PeerEvent::Opened(key(id)));
                }
                return;
            }
            Event::Closed(CloseReason::Local { .. } | CloseReason::PeerApplication { error_code: 0, .. }) => {
                PeerEvent::Closed(None)
            }
            Event::Closed(reason) => PeerEvent::Closed(Some(reason.to_string())),
            Event::Incoming
            | Event::EarlyDataAccepted
            | Event::EarlyDataRejected
            | Event::Confirmed
            | Event::Grouped
            | Event::Drained
            | Event::Stream(StreamEvent::Stopped { .. } | StreamEvent::SendComplete(_)) => return,
        };
        self.events.push_back(event);
    }
}

fn key(id: StreamId) -> StreamKey {
    StreamKey(id.to_wire())
}

fn id(key: StreamKey) -> StreamId {
    StreamId::from_wire(key.0)
}

impl Peer for Posthaste {
    fn connect(&mut self, now: Time) {
        let Some(config) = self.client.take() else { return };
        match self.endpoint.connect(now, &config, self.remote, tls::SERVER_NAME) {
            Ok(handle) => self.handle = Some(handle),
            Err(error) => self.events.push_back(PeerEvent::Closed(Some(error.to_string()))),
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
        self.leaving.extend(
            self.batch.chunks(size).map(|datagram| Packet::udp(BytesMut::from(datagram), transmit.ecn)),
        );
        self.leaving.pop_front()
    }

    fn poll_event(&mut self) -> Option<PeerEvent> {
        while self.events.is_empty() {
            let (handle, event) = self.endpoint.poll_event()?;
            if *self.handle.get_or_insert(handle) == handle {
                self.on_event(event);
            }
        }
        self.events.pop_front()
    }

    fn open(&mut self, _now: Time) -> Option<StreamKey> {
        self.connection()?.open(Direction::Bidirectional).ok().map(key)
    }

    fn write(&mut self, _now: Time, stream: StreamKey, data: &mut Bytes) {
        // A stream that the other end refuses shows as such when it is read.
        let Some(connection) = self.connection() else { return };
        while !data.is_empty() && connection.write(id(stream), data).is_ok_and(|taken| taken > 0) {}
    }

    fn finish(&mut self, _now: Time, stream: StreamKey) {
        if let Some(connection) = self.connection() {
            let _ = connection.finish(id(stream));
        }
    }

    fn read(&mut self, now: Time, stream: StreamKey, max: usize) -> Read {
        let Some(connection) = self.connection() else { return Read::Reset };
        match connection.read(now, id(stream), max) {
            Ok(posthaste_transport::Read::Data(data)) => Read::Data(data),
            Ok(posthaste_transport::Read::Blocked) => Read::Blocked,
            Ok(posthaste_transport::Read::Finished) => Read::Finished,
            Err(_) => Read::Reset,
        }
    }

    fn close(&mut self, now: Time) {
        if let Some(connection) = self.connection() {
            connection.close(now, 0, Bytes::new());
        }
    }

    fn snapshot(&self) -> Snapshot {
        let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection(handle)) else {
            return Snapshot::default();
        };
        let stats = connection.stats();
        Snapshot {
            window: Some(stats.congestion.window),
            pacing: stats.pacing_rate,
            rtt: Some(stats.rtt.smoothed),
            in_flight: Some(stats.in_flight),
            credit: Some(stats.streams.credit),
            is_blocked: Some(is_blocked(&stats)),
        }
    }

    fn counters(&self, now: Time) -> Counters {
        let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection(handle)) else {
            return self.last_counters;
        };
        let stats = connection.stats();
        Counters {
            lost: Some(stats.packets_lost),
            spuriously_lost: Some(stats.packets_spuriously_lost),
            resent_bytes: Some(stats.streams.resent.get()),
            acks_sent: Some(stats.acks_sent),
            pure_acks_sent: Some(stats.packets_sent - stats.ack_eliciting_sent),
            ack_eliciting_sent: Some(stats.ack_eliciting_sent),
            probe_timeouts: Some(stats.probe_timeouts),
            congestion_events: Some(self.watch.reductions),
            blocked_nanos: Some(self.watch.blocked_until(now).as_nanos()),
        }
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
    blocked_since: Option<Time>,
    blocked: Duration,
}

impl Watch {
    fn look(&mut self, now: Time, stats: &ConnectionStats) {
        let window = std::mem::replace(&mut self.window, stats.congestion.window);
        self.reductions += u64::from(self.window < window);
        self.looked = now;
        self.blocked = self.blocked_until(now);
        self.blocked_since = is_blocked(stats).then_some(now);
    }

    /// Time blocked, an interval that is still open included.
    fn blocked_until(&self, now: Time) -> Duration {
        self.blocked + self.blocked_since.map_or(Duration::ZERO, |since| now.since(since))
    }
}
