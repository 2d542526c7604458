//! The adapter of quinn-proto and of noq-proto, a fork of it. Their types have nothing in common but their names, so
//! this file is compiled as a module of each; `super` has what differs.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use posthaste_transport::EcnCodepoint;
use posthaste_units::{Rng, Time};

use super::proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use super::proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use super::proto::{
    self, ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, ConnectionIdGenerator,
    DatagramEvent, Dir, Endpoint, EndpointConfig, Event, Incoming, ReadError, ServerConfig, StreamEvent,
    StreamId, Transmit, TransportConfig, VarInt,
};
use super::{Bbr, STREAM_WINDOW, counters, endpoint, handle, poll_transmit, set_ids, snapshot, write};
use crate::packet::{Body, Packet};
use crate::peer::{Counters, Peer, PeerEvent, Read, Snapshot, StreamKey};
use crate::peers::rival::{self, Clock, Outbox, Seeds};
use crate::peers::{Rival, RivalController, Settings};
use crate::tls;

/// A client or server endpoint with one connection.
struct Adapter {
    endpoint: Endpoint,
    remote: SocketAddr,
    clock: Clock,
    /// Set on a client until it connects.
    client: Option<ClientConfig>,
    /// In a cell because noq-proto gives its statistics to writers only.
    connection: Option<(ConnectionHandle, RefCell<Connection>)>,
    buffer: Vec<u8>,
    outbox: Outbox,
}

/// The end that begins the handshake.
pub(in crate::peers) fn client(rival: Rival, settings: &Settings, rng: &mut Rng) -> Box<dyn Peer> {
    let seeds = Seeds::new(rng);
    let first = ConnectionId::new(&seeds.first_destination);
    let crypto =
        QuicClientConfig::try_from(settings.tls.client.clone()).expect("the provider has AES-128-GCM");
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport(rival, settings));
    config.initial_dst_cid_provider(Arc::new(move || first));
    Box::new(Adapter::new(None, Some(config), settings, seeds))
}

/// The end that answers it.
pub(in crate::peers) fn server(rival: Rival, settings: &Settings, rng: &mut Rng) -> Box<dyn Peer> {
    let crypto =
        QuicServerConfig::try_from(settings.tls.server.clone()).expect("the provider has AES-128-GCM");
    // The random key in there seals Retry and NEW_TOKEN tokens; neither is sent without the crate's token log.
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport(rival, settings));
    Box::new(Adapter::new(Some(config), None, settings, Seeds::new(rng)))
}

fn transport(rival: Rival, settings: &Settings) -> Arc<TransportConfig> {
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match rival.controller {
        RivalController::NewReno => Arc::new(NewRenoConfig::default()),
        RivalController::Cubic => Arc::new(CubicConfig::default()),
        RivalController::Bbr => Arc::new(Bbr::default()),
    };
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(rival::MAX_STREAMS.into())
        .max_idle_timeout(Some(rival::idle_timeout(settings).try_into().expect("far below 2^62 ms")))
        .initial_mtu(rival::datagram_size(settings))
        .min_mtu(rival::datagram_size(settings))
        .mtu_discovery_config(None)
        .congestion_controller_factory(factory);
    if !rival.has_own_windows {
        let (stream_window, connection_window) = rival::receive_windows(settings, STREAM_WINDOW);
        config
            .stream_receive_window(stream_window.into())
            .receive_window(connection_window.into())
            .send_window(rival::SEND_WINDOW);
    }
    Arc::new(config)
}

/// Draws connection IDs from the run's seed.
struct SeededIds(Rng);

impl ConnectionIdGenerator for SeededIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; rival::ID_LENGTH];
        self.0.fill(&mut bytes);
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        rival::ID_LENGTH
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

impl Adapter {
    fn new(
        server: Option<ServerConfig>,
        client: Option<ClientConfig>,
        settings: &Settings,
        seeds: Seeds,
    ) -> Self {
        let mut config = EndpointConfig::new(Arc::new(seeds.reset_key));
        config.rng_seed(Some(seeds.endpoint));
        set_ids(&mut config, move || Box::new(SeededIds(seeds.ids.clone())));
        let largest = rival::datagram_size(settings).max(1472);
        config.max_udp_payload_size(largest).expect("at least 1,200 bytes");
        Self {
            endpoint: endpoint(Arc::new(config), server.map(Arc::new)),
            remote: rival::remote_of(client.is_some()),
            clock: Clock::new(),
            client,
            connection: None,
            buffer: Vec::new(),
            outbox: Outbox::default(),
        }
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection.get_mut())
    }

    fn accept(&mut self, now: Instant, incoming: Incoming) {
        if self.connection.is_some() {
            // A late copy of the first packet; a server's application would not want a second connection either.
            return self.endpoint.ignore(incoming);
        }
        self.buffer.clear();
        match self.endpoint.accept(incoming, now, &mut self.buffer, None) {
            Ok((handle, connection)) => self.connection = Some((handle, RefCell::new(connection))),
            // A first packet that noise has spoilt; the client sends another.
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.send(&transmit);
                }
            }
        }
    }

    /// Puts what is in the buffer out.
    fn send(&mut self, transmit: &Transmit) {
        let segment = transmit.segment_size.unwrap_or(transmit.size);
        let ecn = transmit.ecn.map(|ecn| match ecn {
            proto::EcnCodepoint::Ect0 => EcnCodepoint::Ect0,
            proto::EcnCodepoint::Ect1 => EcnCodepoint::Ect1,
            proto::EcnCodepoint::Ce => EcnCodepoint::Ce,
        });
        self.outbox.send(&self.buffer[..transmit.size], segment, ecn);
    }

    /// Passes events between endpoint and connection, and on to the application.
    fn settle(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        let connection = connection.get_mut();
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
        while let Some(event) = connection.poll() {
            on_event(event, connection, &mut self.outbox);
        }
    }
}

fn on_event(event: Event, connection: &mut Connection, outbox: &mut Outbox) {
    let event = match event {
        Event::Connected => PeerEvent::Connected,
        Event::Stream(StreamEvent::Readable { id }) => PeerEvent::Readable(key(id)),
        Event::Stream(StreamEvent::Writable { id }) => PeerEvent::Writable(key(id)),
        Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => PeerEvent::Available,
        Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
            while let Some(id) = connection.streams().accept(Dir::Bi) {
                outbox.events.push_back(PeerEvent::Opened(key(id)));
            }
            return;
        }
        Event::ConnectionLost { reason } => {
            let is_wish = match &reason {
                ConnectionError::LocallyClosed => true,
                ConnectionError::ApplicationClosed(close) => close.error_code == VarInt::from_u32(0),
                _ => false,
            };
            outbox.close((!is_wish).then(|| reason.to_string()));
            return;
        }
        _ => return,
    };
    outbox.events.push_back(event);
}

fn key(id: StreamId) -> StreamKey {
    StreamKey(id.into())
}

fn id(key: StreamKey) -> StreamId {
    VarInt::from_u64(key.0).unwrap_or(VarInt::MAX).into()
}

impl Peer for Adapter {
    fn connect(&mut self, now: Time) {
        let Some(config) = self.client.take() else { return };
        match self.endpoint.connect(self.clock.instant(now), config, self.remote, tls::SERVER_NAME) {
            Ok((handle, connection)) => self.connection = Some((handle, RefCell::new(connection))),
            Err(error) => self.outbox.close(Some(error.to_string())),
        }
    }

    fn on_packet(&mut self, now: Time, packet: Packet) {
        let Body::Udp(data) = packet.body else { return };
        let ecn = packet.ecn.map(|ecn| match ecn {
            EcnCodepoint::Ect0 => proto::EcnCodepoint::Ect0,
            EcnCodepoint::Ect1 => proto::EcnCodepoint::Ect1,
            EcnCodepoint::Ce => proto::EcnCodepoint::Ce,
        });
        let now = self.clock.instant(now);
        self.buffer.clear();
        match handle(&mut self.endpoint, now, self.remote, ecn, data, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some(connection) = self.connection() {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(transmit)) => self.send(&transmit),
            None => {}
        }
    }

    fn on_timeout(&mut self, now: Time) {
        let now = self.clock.instant(now);
        if let Some(connection) = self.connection() {
            connection.handle_timeout(now);
        }
    }

    fn next_timeout(&mut self) -> Option<Time> {
        let clock = self.clock;
        self.connection()?.poll_timeout().map(|at| clock.time(at))
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.outbox.packets.is_empty() {
            self.settle();
            let now = self.clock.instant(now);
            self.buffer.clear();
            let (_, connection) = self.connection.as_mut()?;
            let transmit = poll_transmit(connection.get_mut(), now, &mut self.buffer)?;
            self.send(&transmit);
        }
        self.outbox.packets.pop_front()
    }

    fn poll_event(&mut self) -> Option<PeerEvent> {
        if self.outbox.events.is_empty() {
            self.settle();
        }
        self.outbox.events.pop_front()
    }

    fn open(&mut self, _now: Time) -> Option<StreamKey> {
        self.connection()?.streams().open(Dir::Bi).map(key)
    }

    fn write(&mut self, _now: Time, stream: StreamKey, data: &mut Bytes) {
        let Some(connection) = self.connection() else { return };
        // Until an error, among them that of a full stream: only then an event follows.
        while !data.is_empty() && write(connection, id(stream), data) {}
    }

    fn finish(&mut self, _now: Time, stream: StreamKey) {
        if let Some(connection) = self.connection() {
            let _ = connection.send_stream(id(stream)).finish();
        }
    }

    fn read(&mut self, _now: Time, stream: StreamKey, max: usize) -> Read {
        let Some(connection) = self.connection() else { return Read::Reset };
        let mut stream = connection.recv_stream(id(stream));
        let Ok(mut chunks) = stream.read(true) else { return Read::Reset };
        let found = match chunks.next(max) {
            Ok(Some(chunk)) => Read::Data(chunk.bytes),
            Ok(None) => Read::Finished,
            Err(ReadError::Blocked) => Read::Blocked,
            Err(ReadError::Reset(_)) => Read::Reset,
        };
        // New credit leaves with the next poll, which follows in any case.
        let _ = chunks.finalize();
        found
    }

    fn close(&mut self, now: Time) {
        let now = self.clock.instant(now);
        if let Some(connection) = self.connection() {
            connection.close(now, VarInt::from_u32(0), Bytes::new());
            self.outbox.close(None);
        }
    }

    fn snapshot(&self) -> Snapshot {
        self.connection
            .as_ref()
            .map_or_else(Snapshot::default, |(_, connection)| snapshot(&connection.borrow()))
    }

    fn counters(&self, _now: Time) -> Counters {
        let connection = self.connection.as_ref();
        connection.map_or_else(Counters::default, |(_, connection)| counters(&mut connection.borrow_mut()))
    }
}
