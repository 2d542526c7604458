//! The endpoint: owns connections, finds each datagram's connection, and says which to poll
//! (RFC 9000 sections 5.2 and 10.3, RFC 8999). Who is let in is decided in `router/admission.rs`.

mod admission;
mod early_arrivals;
mod groups;
mod ids;
mod keyed_map;
mod neighbours;
mod path_histories;
mod pending;
mod resets;
mod routes;
pub(crate) mod slots;
mod stateless;
pub(crate) mod stats;

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::BytesMut;
use posthaste_units::{Duration, Rng, Time};
use posthaste_wire::packet::{Invariants, PacketType, RawInvariants, version};
use posthaste_wire::{ConnectionId, Side, varint};
use rustls_pki_types::ServerName;

use crate::config::{ClientConfig, ServerConfig, TransportConfig};
use crate::connection::Connection;
use crate::connection::ids::{LOCAL_ID_LEN, RouteChange};
use crate::control::outcome::AckOutcome;
use crate::crypto::{InitialKeys, client_session};
use crate::events::Event;
use crate::flow::receive_budget::Account;
use crate::handshake::birth::Birth;
use crate::handshake::parameters::{self, Wishes};
use crate::handshake::sessions::EarlyDataContext;
use crate::handshake::setup::{HandshakeSetup, TokenKeeper};
use crate::limits;
use crate::packet::builder::MIN_INITIAL_DATAGRAM;
use crate::packet::datagram::{DatagramInfo, Transmit};
use crate::streams::{LocalLimits, Streams, StreamsConfig};
use crate::tokens::address::{Bearer, TokenSealer};
use crate::tokens::new_token::TokenOwner;
use crate::tokens::replay_guard::TokenGuard;
use crate::tokens::reset::ResetKey;
use early_arrivals::EarlyArrivals;
use groups::Groups;
use ids::random_id;
use neighbours::Neighbours;
use path_histories::PathHistories;
use pending::Pending;
use resets::Resets;
use routes::Routes;
use slots::{ConnectionHandle, Slots};
use stateless::Stateless;
use stats::EndpointStats;

/// A client's first Initial is sent to an unpredictable ID of at least this length (RFC 9000 section 7.2).
const MIN_INITIAL_ID_LEN: usize = 8;

/// Why a connection could not be begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The name is neither a DNS name nor an IP address.
    #[error("`{0}` is neither a host name nor an IP address")]
    InvalidServerName(String),
    /// The receive budget has no place left.
    #[error(
        "the receive budget has no place for another connection: give it more bytes, or close connections"
    )]
    NoBudget,
    /// The TLS configuration cannot be used with QUIC.
    #[error("the TLS configuration cannot be used: {0}")]
    Tls(String),
    /// A policy of the profile panicked as it was built.
    #[error("a policy of the profile `{0}` panicked as it was built")]
    Policy(String),
}

/// A datagram that another of the endpoints on the same port owns ([`ServerConfig::steering`]).
#[derive(Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Which endpoint owns it.
    pub owner: u16,
    /// The datagram as it came.
    pub data: BytesMut,
}

/// Many connections on one socket, without the socket: datagrams and time in, datagrams and events out.
///
/// After each call that takes `&mut self`, call [`Self::poll_transmit`] until `None`, then [`Self::poll_event`]
/// until `None`, then wait for a datagram or for [`Self::next_timeout`]. The same seed and the same calls give
/// the same datagrams, bit for bit, if the TLS provider does.
pub struct Endpoint {
    server: Option<ServerConfig>,
    is_accepting: bool,
    slots: Slots,
    routes: Routes,
    /// Connections by their peers' reset tokens: stateless resets name no ID of ours.
    resets: Resets,
    timers: BTreeSet<(Time, u32)>,
    /// Live connections by the peer's host: some policies ask how many there are.
    neighbours: Neighbours,
    /// Connections to poll for datagrams.
    dirty: VecDeque<u32>,
    /// Connections that may have events.
    eventful: VecDeque<u32>,
    /// Events of connections that are gone.
    last_events: VecDeque<(ConnectionHandle, Event)>,
    stateless: Stateless,
    early_arrivals: EarlyArrivals,
    reset_key: ResetKey,
    early_data_context: EarlyDataContext,
    /// By version and limits, under the context above.
    scoped_tls: Vec<(u32, LocalLimits, Arc<rustls::ServerConfig>)>,
    tokens: TokenSealer,
    used_tokens: TokenGuard,
    groups: Groups,
    /// Histories of paths, where they are of use.
    path_histories: Option<PathHistories>,
    /// The time since the Unix epoch at [`Time::ZERO`].
    clock_offset: Duration,
    rng: Rng,
    pending: Pending,
    stats: EndpointStats,
    /// What recovery finds out in a call of a connection: room that all use in turn.
    outcome: Option<Box<AckOutcome>>,
}

impl Endpoint {
    /// An endpoint whose randomness comes from `seed`: 32 bytes from the operating system, or fixed ones where
    /// runs must repeat. Without a server configuration it accepts nothing.
    pub fn new(seed: [u8; 32], server: Option<ServerConfig>) -> Self {
        let mut rng = Rng::from_seed(seed);
        let (routes, resets) = (Routes::new(&mut rng), Resets::new(&mut rng));
        let mut secret = [0; 32];
        rng.fill(&mut secret);
        if let Some(kept) = server.as_ref().and_then(|server| server.secret) {
            secret = kept.0;
        }
        let times = server.as_ref().map_or_else(Default::default, |server| server.token_times);
        let clock_offset = server.as_ref().map_or(Duration::ZERO, |server| server.clock_offset.into());
        let path_histories = PathHistories::new(server.as_ref());
        Self {
            is_accepting: server.is_some(),
            server,
            slots: Slots::default(),
            routes,
            resets,
            neighbours: Neighbours::new(&mut rng),
            timers: BTreeSet::new(),
            dirty: VecDeque::new(),
            eventful: VecDeque::new(),
            last_events: VecDeque::new(),
            stateless: Stateless::default(),
            early_arrivals: EarlyArrivals::default(),
            reset_key: ResetKey::new(&secret),
            early_data_context: EarlyDataContext::default(),
            scoped_tls: Vec::new(),
            tokens: TokenSealer::new(&secret, times),
            used_tokens: TokenGuard::default(),
            groups: Groups::new(&mut rng),
            path_histories,
            clock_offset,
            rng,
            pending: Pending::default(),
            stats: EndpointStats::default(),
            outcome: None,
        }
    }

    /// Begins a connection. [`Event::Connected`] or [`Event::Closed`] tells what came of it.
    ///
    /// # Errors
    /// If the name, the TLS configuration or the profile cannot be used.
    pub fn connect(
        &mut self,
        now: Time,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<ConnectionHandle, ConnectError> {
        // A policy that cannot be built ends this connection, not the others. Nothing of it is kept.
        let connection = catch_unwind(AssertUnwindSafe(|| self.begin(now, config, remote, server_name)));
        let panicked = |_| ConnectError::Policy(config.transport.profile.name().to_owned());
        let (connection, local_id) = connection.map_err(panicked)??;
        Ok(self.insert(connection, &[local_id]))
    }

    /// A client's connection at its start, and its name.
    fn begin(
        &mut self,
        now: Time,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<(Connection, ConnectionId), ConnectError> {
        let invalid_name = || ConnectError::InvalidServerName(server_name.to_owned());
        let name = ServerName::try_from(server_name).map_err(|_| invalid_name())?.to_owned();
        let no_suite =
            || ConnectError::Tls("the provider has no AES-128-GCM with SHA-256 for QUIC".to_owned());
        let initial = InitialKeys::from_provider(config.tls.crypto_provider()).ok_or_else(no_suite)?;
        let version = config.version.number();
        let local_id = self.fresh_id();
        // spec: rfc9000 7.2 first-id-long-enough, 7.2 first-id-kept
        let remote_id = random_id(&mut self.rng);
        let account = config.transport.receive_budget.open().ok_or(ConnectError::NoBudget)?;
        let streams = new_streams(Side::Client, &config.transport, account);
        let granted = streams.local_limits();
        let stated = config.guaranteed_rate.or(config.transport.profile.stated_rate());
        let wishes = Wishes {
            group_size: (config.group_size > 0).then_some(config.group_size as u64),
            guaranteed_rate: stated.map(|rate| rate.as_bytes_per_second().clamp(1, varint::MAX)),
            initial_window: config
                .transport
                .profile
                .stated_window()
                .map(|window| window.get().clamp(1, varint::MAX)),
        };
        let encoded =
            parameters::encode(&config.transport, &granted, local_id, version, None, wishes, &mut self.rng);
        let session = client_session(Arc::clone(&config.tls), version, name, encoded)
            .map_err(|error| ConnectError::Tls(error.to_string()))?;
        let owner = TokenOwner { server_name, port: remote.port(), version };
        // spec: rfc9369 5 clients-tokens
        let token = config.tokens.as_ref().and_then(|store| store.take(&owner));
        // A token that leaves no room for the handshake is of no use.
        let token = token.filter(|token| token.len() <= limits::NEW_TOKEN).unwrap_or_default();
        let keeper = config.tokens.as_ref().map(|store| {
            let store = Arc::clone(store);
            TokenKeeper { store, server_name: server_name.into() }
        });
        let birth = Birth {
            side: Side::Client,
            config: Arc::clone(&config.transport),
            session,
            initial_keys: initial.derive(version, &remote_id, Side::Client),
            remote,
            local_id,
            remote_id,
            setup: HandshakeSetup::of_client(version, remote_id, initial, token, keeper),
            streams,
            rng: self.rng.fork(),
            offers_group: wishes.group_size.is_some(),
        };
        let mut connection = Connection::new(now, birth);
        connection.history.is_clients = self.keeps_histories_as_client(config);
        Ok((connection, local_id))
    }

    /// Takes in one UDP payload. `data` is opened in place and handed through: stream data that the application
    /// reads is a slice of it.
    ///
    /// Never fails: what is wrong with a datagram is counted, or closes its connection. Where several endpoints share a
    /// port ([`ServerConfig::steering`]), what is another's is given back.
    pub fn on_datagram(&mut self, now: Time, info: &DatagramInfo, data: BytesMut) -> Option<Misplaced> {
        let invariants = Invariants::parse(&data, LOCAL_ID_LEN).ok();
        let named = invariants.and_then(|invariants| self.routes.find(&invariants.dcid));
        // Any header will do for a reset: another version's peer may use a long one.
        // spec: rfc9000 10.3 reset-of-any-form, 10.3.1 token-compared
        if let Some(index) = named.or_else(|| self.resets.find(info.remote, &data)) {
            let Self { slots, outcome, .. } = self;
            let take_in = |connection: &mut Connection| connection.on_datagram(now, info, data);
            if slots.get_mut(index).is_some_and(|connection| connection.with_outcome(outcome, take_in)) {
                self.after_call(now, index);
            }
            return None;
        }
        let Some(invariants) = invariants else {
            self.on_unreadable(now, info, &data);
            return None;
        };
        match self.misplaced(&invariants.dcid, data) {
            Err(misplaced) => return Some(misplaced),
            Ok(data) if invariants.is_long => self.on_unknown_long(now, info, &invariants, data),
            Ok(data) => self.on_unknown_short(now, info, &invariants, data.len()),
        }
        None
    }

    /// A datagram with no header of ours. IDs of another version may be longer than those of version 1: that is no
    /// reason to leave its sender without an answer (RFC 9000 section 17.2).
    fn on_unreadable(&mut self, now: Time, info: &DatagramInfo, data: &[u8]) {
        match RawInvariants::parse(data) {
            // spec: rfc9000 17.2.1 foreign-id-rules
            Some(raw) if raw.version != version::NEGOTIATION && !version::is_supported(raw.version) => {
                self.on_other_version(now, info, &raw, data.len());
            }
            _ => self.stats.malformed += 1,
        }
    }

    /// A version that this end does not speak. RFC 9000 section 5.2.2: only what could begin a connection is
    /// answered.
    fn on_other_version(&mut self, now: Time, info: &DatagramInfo, raw: &RawInvariants<'_>, len: usize) {
        let random = self.rng.next_u64() as u32;
        // spec: rfc9000 5.2.2 small-unknown-dropped
        if len < MIN_INITIAL_DATAGRAM || self.server.is_none() {
            self.stats.unroutable += 1;
        } else if self.stateless.negotiate_version(now, info, raw, random) {
            self.stats.version_negotiations_sent += 1;
        }
    }

    fn on_unknown_long(&mut self, now: Time, info: &DatagramInfo, invariants: &Invariants, data: BytesMut) {
        let is_full = data.len() >= MIN_INITIAL_DATAGRAM;
        let kind = data.first().map(|first| version::long_type(invariants.version, *first));
        let is_supported = version::is_supported(invariants.version);
        let may_begin = is_supported && invariants.dcid.len() >= MIN_INITIAL_ID_LEN;
        if may_begin && kind == Some(PacketType::ZeroRtt) && self.takes_early_data() {
            let is_kept = self.early_arrivals.keep(now, info, invariants.dcid, &data);
            self.stats.early_kept += u64::from(is_kept);
            self.stats.unroutable += u64::from(!is_kept);
            return;
        }
        // spec: rfc9368 2.1 clients-send-none, 2.1 servers-ignore-them
        // spec: rfc9000 6.1 negotiation-not-answered, 5.2.2 everything-else-dropped
        if invariants.version == version::NEGOTIATION || !is_full || self.server.is_none() {
            self.stats.unroutable += 1;
        } else if !is_supported {
            let (dcid, scid) = (invariants.dcid.as_slice(), invariants.scid.as_slice());
            let raw = RawInvariants { version: invariants.version, dcid, scid };
            self.on_other_version(now, info, &raw, data.len());
        } else if may_begin && kind == Some(PacketType::Initial) {
            self.accept(now, info, invariants, data);
        } else {
            self.stats.unroutable += 1;
        }
    }

    fn takes_early_data(&self) -> bool {
        self.is_accepting && self.server.as_ref().is_some_and(|server| server.tls.max_early_data_size > 0)
    }

    /// A short header with an unknown ID: a packet of a connection that is gone.
    fn on_unknown_short(&mut self, now: Time, info: &DatagramInfo, invariants: &Invariants, len: usize) {
        self.stats.unroutable += 1;
        // spec: rfc9000 11 no-reset-with-state, 21.11 none-while-active
        let token = || self.reset_key.token(&invariants.dcid);
        if self.stateless.reset(now, info, len, token, &mut self.rng) {
            self.stats.resets_sent += 1;
        }
    }

    /// Lets every connection act whose time has come.
    pub fn on_timeout(&mut self, now: Time) {
        while let Some(&(at, index)) = self.timers.first() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            self.slots.set_deadline(index, None);
            if let Some(connection) = self.slots.get_mut(index) {
                connection.with_outcome(&mut self.outcome, |connection| connection.on_timeout(now));
            }
            self.after_call(now, index);
        }
    }

    /// When [`Self::on_timeout`] must be called, if nothing happens before. Right once [`Self::poll_transmit`] has returned
    /// `None`: it sets the timers that datagrams have made stale.
    pub fn next_timeout(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Appends to `buffer`, which must be empty, at most `max_segments` datagrams for one peer, all of one size but
    /// the last, and together at most 65,507 bytes, or a single larger one where
    /// [`TransportConfig::max_datagram_size`] permits that. Connections take turns.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
        max_segments: usize,
    ) -> Option<Transmit> {
        if let Some(transmit) = self.stateless.poll(buffer) {
            return Some(transmit);
        }
        while let Some(index) = self.dirty.pop_front() {
            // Before anything else is sent: a client that moves at once needs a spare name with the first 1-RTT packet.
            self.issue_ids(index);
            let transmit = self
                .slots
                .get_mut(index)
                .and_then(|connection| connection.poll_transmit(now, buffer, max_segments));
            if transmit.is_some() {
                self.dirty.push_back(index);
                return transmit;
            }
            self.slots.set_dirty(index, false);
            self.settle(now, index);
        }
        None
    }

    /// The next event, with the connection that it is of.
    pub fn poll_event(&mut self) -> Option<(ConnectionHandle, Event)> {
        if let Some(event) = self.last_events.pop_front() {
            return Some(event);
        }
        while let Some(&index) = self.eventful.front() {
            let handle = self.slots.handle(index);
            let event = self.slots.get_mut(index).and_then(Connection::poll_event);
            if let (Some(handle), Some(event)) = (handle, event) {
                return Some((handle, event));
            }
            self.eventful.pop_front();
            self.slots.set_eventful(index, false);
        }
        None
    }

    /// The connection, unless it has been drained.
    pub fn connection(&self, handle: ConnectionHandle) -> Option<&Connection> {
        self.slots.get(self.slots.index(handle)?)
    }

    /// The connection, to use it; [`Self::poll_transmit`] will then see what came of that.
    pub fn connection_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        let touched = self.slots.touch(handle)?;
        if !touched.was_dirty {
            self.dirty.push_back(touched.index);
        }
        if !touched.was_eventful {
            self.eventful.push_back(touched.index);
        }
        Some(touched.connection)
    }

    /// On a server: connections that are coordinated with this one, itself included; 1 outside groups.
    pub fn group_members(&self, handle: ConnectionHandle) -> usize {
        self.slots.index(handle).map_or(1, |index| self.groups.members(index))
    }

    /// Whether new connections are accepted; a server starts accepting.
    pub fn set_accepting(&mut self, accepting: bool) {
        self.is_accepting = accepting && self.server.is_some();
    }

    /// Connections that are not drained yet.
    pub fn connections(&self) -> usize {
        self.slots.len()
    }

    /// What was dropped before it reached a connection.
    pub fn stats(&self) -> EndpointStats {
        self.stats
    }

    fn insert(&mut self, connection: Connection, ids: &[ConnectionId]) -> ConnectionHandle {
        let handle = self.slots.insert(connection);
        if let Some(index) = self.slots.index(handle) {
            for id in ids {
                self.routes.insert(*id, index);
            }
            self.touch(index);
        }
        handle
    }

    /// A connection has been called: it asks what is known of its path, its group hears of it, and all that have changed
    /// are to be polled.
    fn after_call(&mut self, now: Time, index: u32) {
        self.recall(now, index);
        self.coordinate(now, index);
        self.touch(index);
    }

    fn coordinate(&mut self, now: Time, index: u32) {
        let Self { groups, slots, rng, .. } = self;
        groups.coordinate(now, index, slots, rng);
        for changed in self.groups.take_changed() {
            self.touch(changed);
        }
    }

    /// The connection has changed: it is to be polled for datagrams and events.
    fn touch(&mut self, index: u32) {
        if self.slots.set_dirty(index, true) == Some(false) {
            self.dirty.push_back(index);
        }
        if self.slots.set_eventful(index, true) == Some(false) {
            self.eventful.push_back(index);
        }
    }

    /// A connection has nothing more to send: brings routes and timers up to date, or forgets it.
    fn settle(&mut self, now: Time, index: u32) {
        self.keep_history(now, index);
        let Some(connection) = self.slots.get_mut(index) else { return };
        let settled = connection.settle();
        if let Some(tokens) = &settled.reset_tokens {
            self.resets.list(index, connection.remote(), tokens.iter().copied());
        }
        if settled.has_moved {
            self.groups.on_moved(now, index, &mut self.slots);
        }
        self.count_neighbour(index);
        for change in settled.route_changes {
            match change {
                RouteChange::Add(id) => self.routes.insert(id, index),
                RouteChange::Remove(id) => self.routes.remove(&id),
            }
        }
        let has_begun = settled.is_drained || !settled.is_handshaking;
        if has_begun && let Some(ticket) = self.slots.set_pending(index, None) {
            self.pending.end(ticket);
            self.offer_tokens(index);
        }
        if settled.is_closed {
            self.groups.leave(now, index, &mut self.slots);
        }
        if settled.is_drained {
            self.forget(index);
            return;
        }
        self.coordinate(now, index);
        if settled.is_newly_valid {
            // The tokens that it has are of no use where it is now.
            self.offer_tokens(index);
        }
        self.set_timer(index, settled.deadline);
        self.make_tokens(now, index);
        if self.slots.set_eventful(index, true) == Some(false) {
            self.eventful.push_back(index);
        }
    }

    /// A server's client has finished its handshake, or moved: it gets tokens for its next connections.
    fn offer_tokens(&mut self, index: u32) {
        let count = self.server.as_ref().map_or(0, |server| server.new_tokens);
        let payload = self.first_payload(index);
        if let Some(connection) = self.slots.get_mut(index) {
            for _ in 0..count {
                let _ = connection.offer_token(&payload);
            }
        }
    }

    /// Makes the tokens that a connection wants for its client.
    fn make_tokens(&mut self, now: Time, index: u32) {
        while let Some(connection) = self.slots.get_mut(index)
            && let Some(payload) = connection.take_wanted_token()
        {
            let bearer = Bearer {
                at: self.clock_offset + now.since(Time::ZERO),
                remote: connection.remote(),
                version: connection.version(),
            };
            if let Some(token) = self.tokens.for_next_time(&bearer, &payload, &mut self.rng) {
                connection.send_token(token);
            }
            self.touch(index);
        }
    }

    fn set_timer(&mut self, index: u32, deadline: Option<Time>) {
        let before = self.slots.set_deadline(index, deadline);
        if before != deadline {
            if let Some(before) = before {
                self.timers.remove(&(before, index));
            }
            if let Some(deadline) = deadline {
                self.timers.insert((deadline, index));
            }
        }
    }

    fn forget(&mut self, index: u32) {
        self.set_timer(index, None);
        let Some((handle, mut tenant)) = self.slots.remove(index) else { return };
        let connection = &mut tenant.connection;
        while let Some(event) = connection.poll_event() {
            self.last_events.push_back((handle, event));
        }
        self.last_events.push_back((handle, Event::Drained));
        for id in connection.names() {
            self.routes.remove_of(&id, index);
        }
        self.resets.forget(index);
    }
}

fn new_streams(side: Side, config: &Arc<TransportConfig>, account: Account) -> Streams {
    let shared = Arc::clone(config);
    Streams::new(StreamsConfig {
        side,
        max_streams_bidi: config.max_concurrent_bidi_streams,
        max_streams_uni: config.max_concurrent_uni_streams,
        send_share: config.send_budget.open(),
        send_buffer: config.send_buffer,
        unsent_limit: config.unsent_limit,
        connection_credit: config.profile.connection_credit(),
        stream_credit: Box::new(move || shared.profile.stream_credit()),
        account,
    })
}
