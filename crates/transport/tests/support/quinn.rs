//! One of our endpoints and one of quinn-proto's, joined by two simulated links, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use posthaste_transport::{
    ClientConfig, ConnectionHandle, DatagramInfo, EcnCodepoint, Endpoint, Event, RetryPolicy, ServerConfig,
};
use posthaste_units::{Duration, Rng, Time};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{DatagramEvent, EndpointConfig, TransportConfig};

use crate::support::resuming::Tokens;
use crate::support::{Link, tls};

/// Whose datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Ours,
    Quinns,
}

struct Flight {
    ecn: Option<EcnCodepoint>,
    data: Vec<u8>,
}

/// Quinn's end.
pub(crate) struct Quinn {
    pub(crate) endpoint: quinn_proto::Endpoint,
    pub(crate) connections: BTreeMap<usize, quinn_proto::Connection>,
    /// Stream events aside, what the connections have told.
    pub(crate) lost: Vec<quinn_proto::ConnectionError>,
    pub(crate) is_connected: bool,
    pub(crate) retries_sent: usize,
    asks_for_retry: bool,
    stateless: VecDeque<(quinn_proto::Transmit, Vec<u8>)>,
    address: SocketAddr,
}

pub(crate) struct Mixed {
    pub(crate) now: Time,
    pub(crate) ours: Endpoint,
    pub(crate) our_handle: Option<ConnectionHandle>,
    pub(crate) events: Vec<Event>,
    pub(crate) quinn: Quinn,
    /// From us to quinn.
    pub(crate) there: Link,
    /// From quinn to us.
    pub(crate) back: Link,
    /// Datagrams that left: whose, and with what mark.
    pub(crate) sent: Vec<(Who, Option<EcnCodepoint>)>,
    pub(crate) rng: Rng,
    /// The client's configuration, whichever it is, with what it keeps between connections.
    clients: (ClientConfig, quinn_proto::ClientConfig),
    base: Instant,
    our_address: SocketAddr,
    inbox: BTreeMap<(Time, u64), (Who, Flight)>,
    next_flight: u64,
}

/// The provider that programs use: with the post-quantum key share, whose `ClientHello` takes two datagrams.
fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn client_tls() -> rustls::ClientConfig {
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(tls::roots())
        .with_no_client_auth();
    config.alpn_protocols = vec![tls::ALPN.to_vec()];
    config.enable_early_data = true;
    config
}

fn server_tls() -> rustls::ServerConfig {
    let (certificate, key) = tls::certificate(0);
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a usable certificate");
    config.alpn_protocols = vec![tls::ALPN.to_vec()];
    config.max_early_data_size = u32::MAX;
    config
}

impl Mixed {
    /// Begins a connection from the client, which is quinn's end or ours, to the other.
    pub(crate) fn new(seed: u64, client: Who) -> Self {
        Self::with_retry(seed, client, false)
    }

    /// The same with a server that asks every client without a token for a proof of its address.
    pub(crate) fn with_retry(seed: u64, client: Who, has_retry: bool) -> Self {
        Self::configured(seed, client, has_retry, crate::support::defaults().into())
    }

    /// The same with these settings at our end.
    pub(crate) fn with_transport(seed: u64, client: Who, ours: posthaste_transport::TransportConfig) -> Self {
        Self::configured(seed, client, false, Arc::new(ours))
    }

    fn configured(
        seed: u64,
        client: Who,
        has_retry: bool,
        ours: Arc<posthaste_transport::TransportConfig>,
    ) -> Self {
        let mut rng = Rng::from_test_seed(seed);
        let mut bytes = [0; 32];
        rng.fill(&mut bytes);
        let transport = Arc::new(TransportConfig::default());
        let retry = if has_retry { RetryPolicy::Always } else { RetryPolicy::default() };
        let our_server = (client == Who::Quinns)
            .then(|| ServerConfig { retry, ..ServerConfig::new(Arc::new(server_tls()), Arc::clone(&ours)) });
        let quinn_server = (client == Who::Ours).then(|| {
            let crypto = QuicServerConfig::try_from(server_tls()).expect("TLS 1.3");
            let mut config = quinn_proto::ServerConfig::with_crypto(Arc::new(crypto));
            config.transport_config(Arc::clone(&transport));
            Arc::new(config)
        });
        let quinn =
            quinn_proto::Endpoint::new(Arc::new(EndpointConfig::default()), quinn_server, true, Some(bytes));
        #[expect(
            clippy::disallowed_methods,
            reason = "quinn-proto counts in Instants: only a base is needed"
        )]
        let base = Instant::now();
        let our_client =
            ClientConfig::new(Arc::new(client_tls()), ours).with_tokens(Arc::new(Tokens::default()));
        let crypto = QuicClientConfig::try_from(client_tls()).expect("TLS 1.3");
        let mut quinn_client = quinn_proto::ClientConfig::new(Arc::new(crypto));
        quinn_client.transport_config(transport);
        let mut mixed = Self {
            now: Time::ZERO,
            ours: Endpoint::new(bytes, our_server),
            our_handle: None,
            events: Vec::new(),
            quinn: Quinn {
                endpoint: quinn,
                connections: BTreeMap::new(),
                lost: Vec::new(),
                is_connected: false,
                retries_sent: 0,
                asks_for_retry: has_retry,
                stateless: VecDeque::new(),
                address: "127.0.0.1:2000".parse().expect("an address"),
            },
            there: Link::CLEAN,
            back: Link::CLEAN,
            sent: Vec::new(),
            rng,
            clients: (our_client, quinn_client),
            base,
            our_address: "127.0.0.1:1000".parse().expect("an address"),
            inbox: BTreeMap::new(),
            next_flight: 0,
        };
        mixed.connect(client);
        mixed
    }

    /// Begins a connection.
    pub(crate) fn connect(&mut self, client: Who) {
        if client == Who::Ours {
            let handle = self.ours.connect(self.now, &self.clients.0, self.quinn.address, "localhost");
            self.our_handle = Some(handle.expect("a valid configuration"));
            return;
        }
        let now = self.instant();
        let config = self.clients.1.clone();
        let connected = self.quinn.endpoint.connect(now, config, self.our_address, "localhost");
        let (handle, connection) = connected.expect("a valid configuration");
        self.quinn.connections.insert(handle.0, connection);
    }

    /// The time as quinn counts it.
    pub(crate) fn instant(&self) -> Instant {
        self.base + std::time::Duration::from_nanos(self.now.as_nanos())
    }

    /// Our connection.
    pub(crate) fn ours(&mut self) -> &mut posthaste_transport::Connection {
        let handle = self.our_handle.expect("there is a connection");
        self.ours.connection_mut(handle).expect("the connection lives")
    }

    /// Quinn's connection.
    pub(crate) fn theirs(&mut self) -> &mut quinn_proto::Connection {
        self.quinn.connections.values_mut().next().expect("there is a connection")
    }

    /// True once the handshake is complete at both ends.
    pub(crate) fn is_connected(&self) -> bool {
        self.quinn.is_connected && self.events.contains(&Event::Confirmed)
    }

    fn launch(&mut self, from: Who, mut ecn: Option<EcnCodepoint>, mut data: Vec<u8>) {
        let link = if from == Who::Ours { self.there } else { self.back };
        self.sent.push((from, ecn));
        if self.rng.chance(link.loss) {
            return;
        }
        if ecn.is_some() && self.rng.chance(link.mark) {
            ecn = Some(EcnCodepoint::Ce);
        }
        if self.rng.chance(link.corrupt) {
            let at = self.rng.below(data.len() as u64) as usize;
            data[at] ^= 1 << self.rng.below(8);
        }
        for _ in 0..if self.rng.chance(link.duplicate) { 2 } else { 1 } {
            let factor = if self.rng.chance(link.reorder) { 3 } else { 1 };
            let key = (self.now + link.delay * factor, self.next_flight);
            self.next_flight += 1;
            self.inbox.insert(key, (from, Flight { ecn, data: data.clone() }));
        }
    }

    /// Everything that either end has to send at this time.
    fn transmit(&mut self) {
        let mut buffer = Vec::new();
        while let Some(transmit) = self.ours.poll_transmit(self.now, &mut buffer, 10) {
            let size = transmit.segment_size.unwrap_or(transmit.size);
            let datagrams: Vec<Vec<u8>> = buffer.chunks(size).map(<[u8]>::to_vec).collect();
            for data in datagrams {
                self.launch(Who::Ours, transmit.ecn, data);
            }
            buffer.clear();
        }
        while let Some(event) = self.ours.poll_event() {
            self.our_handle.get_or_insert(event.0);
            self.events.push(event.1);
        }
        let now = self.instant();
        let mut leaving: Vec<(quinn_proto::Transmit, Vec<u8>)> = self.quinn.stateless.drain(..).collect();
        self.quinn.settle();
        for connection in self.quinn.connections.values_mut() {
            while let Some(transmit) = connection.poll_transmit(now, 10, &mut buffer) {
                leaving.push((transmit, std::mem::take(&mut buffer)));
            }
        }
        self.quinn.settle();
        for (transmit, data) in leaving {
            let ecn = transmit.ecn.map(|ecn| match ecn {
                quinn_proto::EcnCodepoint::Ect0 => EcnCodepoint::Ect0,
                quinn_proto::EcnCodepoint::Ect1 => EcnCodepoint::Ect1,
                quinn_proto::EcnCodepoint::Ce => EcnCodepoint::Ce,
            });
            for data in data[..transmit.size].chunks(transmit.segment_size.unwrap_or(transmit.size)) {
                self.launch(Who::Quinns, ecn, data.to_vec());
            }
        }
    }

    /// Ends the connection from the client's end, and waits until both ends have forgotten it.
    pub(crate) fn part(&mut self, client: Who) {
        let now = self.now;
        if client == Who::Ours {
            self.ours().close(now, 0, bytes::Bytes::new());
        } else {
            let now = self.instant();
            self.theirs().close(now, quinn_proto::VarInt::from_u32(0), bytes::Bytes::new());
        }
        self.run_until(|mixed| mixed.ours.connections() == 0 && mixed.quinn.connections.is_empty());
        (self.our_handle, self.quinn.is_connected) = (None, false);
        self.events.clear();
        self.quinn.lost.clear();
        self.sent.clear();
    }

    /// Goes to the next moment at which something happens. False if nothing ever will.
    pub(crate) fn step(&mut self) -> bool {
        self.transmit();
        let Some(at) = self.next_time() else { return false };
        self.advance(at);
        true
    }

    /// Steps for a span of time.
    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.transmit();
        while let Some(at) = self.next_time().filter(|at| *at <= end) {
            self.advance(at);
        }
        self.now = end;
    }

    /// The next moment at which something happens.
    fn next_time(&mut self) -> Option<Time> {
        let base = self.base;
        let timeouts = self.quinn.connections.values_mut().filter_map(quinn_proto::Connection::poll_timeout);
        let theirs = timeouts.min().map(|at| {
            let nanos = at.saturating_duration_since(base).as_nanos();
            Time::ZERO + Duration::from_nanos(nanos as u64)
        });
        let arrival = self.inbox.keys().next().map(|(at, _)| *at);
        [theirs, arrival, self.ours.next_timeout()].into_iter().flatten().min()
    }

    fn advance(&mut self, at: Time) {
        self.now = self.now.max(at);
        let now = self.instant();
        while let Some(entry) = self.inbox.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (from, flight) = entry.remove();
            if from == Who::Ours {
                self.quinn.receive(now, self.our_address, &flight);
            } else {
                let info = DatagramInfo { remote: self.quinn.address, local_ip: None, ecn: flight.ecn };
                self.ours.on_datagram(self.now, &info, BytesMut::from(&flight.data[..]));
            }
        }
        self.ours.on_timeout(self.now);
        for connection in self.quinn.connections.values_mut() {
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now);
            }
        }
        self.transmit();
    }

    /// Steps until `done`; panics if that does not come about in ten virtual minutes.
    pub(crate) fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let deadline = self.now + Duration::from_secs(600);
        while !done(self) {
            assert!(self.step(), "nothing will happen any more at {:?}: {:?}", self.now, self.events);
            assert!(
                self.now < deadline,
                "not done after ten minutes: {:?} {:?}",
                self.events,
                self.quinn.lost
            );
        }
    }

    /// Runs until the handshake is complete at both ends.
    pub(crate) fn establish(&mut self) {
        self.run_until(|mixed| mixed.is_connected());
    }
}

impl Quinn {
    fn receive(&mut self, now: Instant, from: SocketAddr, flight: &Flight) {
        let mut buffer = Vec::new();
        let ecn = flight.ecn.map(|ecn| match ecn {
            EcnCodepoint::Ect0 => quinn_proto::EcnCodepoint::Ect0,
            EcnCodepoint::Ect1 => quinn_proto::EcnCodepoint::Ect1,
            EcnCodepoint::Ce => quinn_proto::EcnCodepoint::Ce,
        });
        let data = BytesMut::from(&flight.data[..]);
        match self.endpoint.handle(now, from, None, ecn, data, &mut buffer) {
            None => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = self.connections.get_mut(&handle.0) {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming))
                if self.asks_for_retry && !incoming.remote_address_validated() =>
            {
                let transmit = self.endpoint.retry(incoming, &mut buffer).expect("the first answer");
                self.retries_sent += 1;
                self.stateless.push_back((transmit, buffer));
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut buffer, None) {
                    Ok((handle, connection)) => {
                        self.connections.insert(handle.0, connection);
                    }
                    Err(error) => self.lost.push(error.cause),
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.stateless.push_back((transmit, buffer)),
        }
    }

    /// Passes events between quinn's endpoint and its connections, and notes what these tell.
    fn settle(&mut self) {
        let handles: Vec<usize> = self.connections.keys().copied().collect();
        for handle in handles {
            let Some(connection) = self.connections.get_mut(&handle) else { continue };
            let mut is_drained = false;
            while let Some(event) = connection.poll_endpoint_events() {
                is_drained |= event.is_drained();
                let answer = self.endpoint.handle_event(quinn_proto::ConnectionHandle(handle), event);
                if let Some(answer) = answer {
                    connection.handle_event(answer);
                }
            }
            while let Some(event) = connection.poll() {
                match event {
                    quinn_proto::Event::Connected => self.is_connected = true,
                    quinn_proto::Event::ConnectionLost { reason } => self.lost.push(reason),
                    _ => {}
                }
            }
            if is_drained {
                self.connections.remove(&handle);
            }
        }
    }
}
