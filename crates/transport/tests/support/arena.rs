//! One endpoint under test against a [`Rogue`], without a link between them: datagrams arrive at once.

use std::net::SocketAddr;

use bytes::BytesMut;
use posthaste_transport::{
    CloseReason, Connection, ConnectionHandle, DatagramInfo, Endpoint, Event, ReceiveBudget, ServerConfig,
    TransportConfig,
};
use posthaste_units::{ByteCount, Duration, Time};
use posthaste_wire::Frame;
use posthaste_wire::packet::PacketType;

use super::rogue::{Oddity, Rogue, Shape, proper};
use super::tls;

/// Datagrams that may pass in one exchange before it counts as a loop.
const MAX_EXCHANGED: usize = 10_000;

pub struct Arena {
    pub now: Time,
    pub endpoint: Endpoint,
    pub rogue: Rogue,
    /// Where the rogue is.
    pub address: SocketAddr,
    pub events: Vec<(ConnectionHandle, Event)>,
    /// Every datagram that the endpoint has sent.
    pub sent: Vec<Vec<u8>>,
    /// Bytes that the endpoint was sent.
    pub injected: usize,
    /// Set by the first event or by `connect`.
    pub handle: Option<ConnectionHandle>,
    /// False to let the endpoint's datagrams vanish.
    pub is_listening: bool,
}

impl Arena {
    fn new(endpoint: Endpoint, rogue: Rogue) -> Self {
        Self {
            now: Time::ZERO + Duration::from_secs(1),
            endpoint,
            rogue,
            address: "127.0.0.1:666".parse().expect("an address"),
            events: Vec::new(),
            sent: Vec::new(),
            injected: 0,
            handle: None,
            is_listening: true,
        }
    }

    /// A server under test, and a rogue client with these parameters that has sent nothing yet.
    pub fn server_with(config: ServerConfig, shape: Shape) -> Self {
        Self::new(Endpoint::new([1; 32], Some(config)), Rogue::client(1, shape))
    }

    /// A server under test that is connected with a rogue client. It grants first what its profile wants.
    pub fn server() -> Self {
        let receive_budget = ReceiveBudget::new(ByteCount::new(1 << 40));
        Self::server_for(TransportConfig { receive_budget, ..crate::support::defaults() })
    }

    /// The same, with these settings.
    pub fn server_for(transport: TransportConfig) -> Self {
        let config = tls::server_config(1).with_transport(transport.into());
        let mut arena = Self::server_with(config, proper());
        arena.exchange();
        arena.assert_connected();
        arena
    }

    /// A client under test that has begun to connect to a rogue server with these parameters.
    pub fn client_with(shape: Shape) -> Self {
        let mut arena = Self::new(Endpoint::new([1; 32], None), Rogue::server(1, shape));
        let (now, address) = (arena.now, arena.address);
        let handle =
            arena.endpoint.connect(now, &tls::client_config(1), address, "localhost").expect("valid");
        arena.handle = Some(handle);
        arena
    }

    /// A client under test that is connected with a rogue server and knows the handshake to be confirmed.
    pub fn client() -> Self {
        let mut arena = Self::client_with(proper());
        arena.exchange();
        arena.send(PacketType::Short, &[Frame::HandshakeDone]);
        arena.assert_connected();
        arena
    }

    /// Against a server, or against a client.
    pub fn connected(is_server: bool) -> Self {
        if is_server { Self::server() } else { Self::client() }
    }

    fn assert_connected(&self) {
        assert!(self.rogue.is_connected(), "the rogue's handshake is complete");
        assert!(self.has(|event| *event == Event::Confirmed), "{:?}", self.events);
    }

    /// True if an event satisfies `test`.
    pub fn has(&self, test: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(|(_, event)| test(event))
    }

    /// Why the connection is over, if it is.
    pub fn closed(&self) -> Option<&CloseReason> {
        self.events.iter().find_map(|(_, event)| match event {
            Event::Closed(reason) => Some(reason),
            _ => None,
        })
    }

    pub fn connection(&mut self) -> &mut Connection {
        let handle = self.handle.expect("there is a connection");
        self.endpoint.connection_mut(handle).expect("the connection lives")
    }

    /// Hands the endpoint a datagram from the rogue's address.
    pub fn inject(&mut self, datagram: &[u8]) {
        let info = DatagramInfo { remote: self.address, local_ip: None, ecn: None };
        self.injected += datagram.len();
        self.endpoint.on_datagram(self.now, &info, BytesMut::from(datagram));
    }

    /// Collects what the endpoint has to say.
    pub fn drain(&mut self) {
        let mut buffer = Vec::new();
        for round in 0.. {
            assert!(round < MAX_EXCHANGED, "the endpoint does not fall silent");
            buffer.clear();
            let Some(transmit) = self.endpoint.poll_transmit(self.now, &mut buffer, 10) else { break };
            assert_eq!(transmit.size, buffer.len());
            for datagram in buffer.chunks(transmit.segment_size.unwrap_or(transmit.size)) {
                self.sent.push(datagram.to_vec());
                if self.is_listening {
                    self.rogue.receive(datagram);
                }
            }
        }
        while let Some((handle, event)) = self.endpoint.poll_event() {
            self.handle.get_or_insert(handle);
            self.events.push((handle, event));
        }
    }

    /// Lets both talk until neither has anything to say at this time.
    pub fn exchange(&mut self) {
        for round in 0.. {
            assert!(round < MAX_EXCHANGED, "the two do not fall silent");
            self.drain();
            let flight = self.rogue.flight();
            if flight.is_empty() {
                return;
            }
            for datagram in flight {
                self.inject(&datagram);
            }
        }
    }

    /// Lets time pass, timers fire and both talk.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.exchange();
        let mut standing = 0;
        while let Some(at) = self.endpoint.next_timeout().filter(|at| *at <= end) {
            standing = if at > self.now { 0 } else { standing + 1 };
            assert!(standing < 100, "the clock stands still at {:?}", self.now);
            self.now = self.now.max(at);
            self.endpoint.on_timeout(self.now);
            self.exchange();
        }
        self.now = end;
    }

    /// The rogue sends one packet with these frames; the endpoint's answers are collected.
    pub fn send(&mut self, kind: PacketType, frames: &[Frame]) {
        let datagram = self.rogue.datagram(kind, frames);
        self.inject(&datagram);
        self.drain();
    }

    /// The rogue sends a 1-RTT packet with this payload.
    pub fn send_raw(&mut self, payload: &[u8], oddity: Oddity) {
        let datagram = self.rogue.raw_packet(PacketType::Short, payload, oddity);
        self.inject(&datagram);
        self.drain();
    }

    /// The code and frame type of the close that the endpoint has sent, which must be a transport's.
    pub fn close_code(&self) -> Option<(u64, u64)> {
        self.rogue.close().map(|close| match close.kind {
            posthaste_wire::frame::CloseKind::Transport { frame_type } => (close.error_code, frame_type),
            posthaste_wire::frame::CloseKind::Application => panic!("an application's close: {close:?}"),
        })
    }
}
