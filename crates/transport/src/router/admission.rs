//! Who is let in: a client's first Initial is accepted, answered with a Retry, or refused (RFC 9000 sections 5.2.2
//! and 8.1).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::BytesMut;
use posthaste_policy::group::MAX_MEMBERS;
use posthaste_units::Time;
use posthaste_wire::frame::{CloseFrame, CloseKind};
use posthaste_wire::packet::{Invariants, number, split};
use posthaste_wire::varint::Reader;
use posthaste_wire::{ConnectionId, Frame, Side};

use super::pending::Room;
use super::{Endpoint, new_streams};
use crate::config::{RetryPolicy, ServerConfig};
use crate::connection::Connection;
use crate::connection::ids::LOCAL_ID_LEN;
use crate::crypto::{InitialKeys, open, remove_header_protection, seal, server_session};
use crate::error::TransportErrorCode;
use crate::events::{CloseReason, Event};
use crate::flow::receive_budget::Account;
use crate::handshake::birth::Birth;
use crate::handshake::parameters::{self, ServerPart, Wishes};
use crate::handshake::sessions::{self, EarlyDataContext};
use crate::handshake::setup::HandshakeSetup;
use crate::limits::{LEAST_GRANT, SCOPED_TLS};
use crate::packet::builder::{DatagramBuilder, HeaderFields, MIN_INITIAL_DATAGRAM};
use crate::packet::datagram::DatagramInfo;
use crate::packet::retry;
use crate::packet::space::PacketSpace;
use crate::streams::LocalLimits;
use crate::tokens::address::{Bearer, Verdict};

/// What the client's token, or lack of one, leads to.
enum Standing {
    /// It may come in, and its address is not validated.
    Unknown,
    /// It has answered a Retry.
    Retried {
        /// What its very first Initial was sent to.
        original: ConnectionId,
    },
    /// It was here before.
    Known { payload: Box<[u8]> },
    /// It must first show that it receives at its address.
    Doubted,
    /// It claims to have answered a Retry, and has not.
    Lying,
}

impl Endpoint {
    /// Binds the TLS sessions of a server to what its application has promised clients, beyond the transport's own
    /// parameters: HTTP/3's settings, say. Sessions issued under one promise resume under no other, so that early data
    /// which rely on it are rejected once it has changed; the client makes a full handshake (RFC 9114 section 7.2.4.2).
    /// Connections from now on are bound; call this before clients connect. Any number of bytes: a hash is kept. Empty,
    /// the default, binds to nothing.
    pub fn set_early_data_context(&mut self, promised: &[u8]) {
        self.early_data_context = EarlyDataContext::new(promised);
        self.scoped_tls.clear();
    }

    /// A client's first Initial.
    pub(super) fn accept(&mut self, now: Time, info: &DatagramInfo, invariants: &Invariants, data: BytesMut) {
        let Some(server) = self.server.clone() else { return };
        if !self.is_accepting {
            self.stats.refused += 1;
            return;
        }
        let (client, most) = (info.remote.ip(), server.max_pending_handshakes);
        let Some(account) = server.transport.receive_budget.open() else {
            self.stats.refused += 1;
            return;
        };
        let Some(setup) = self.admit(now, &server, info, invariants, &data) else { return };
        let is_validated = setup.is_validated;
        if self.pending.room(client, most) == Room::None {
            self.stats.refused += 1;
            return;
        }
        let local_id = self.fresh_id();
        let Some(mut connection) =
            self.begin_server(now, server, info, invariants, ((local_id, account), setup), &data)
        else {
            self.stats.refused += 1;
            return;
        };
        connection.on_datagram(now, info, data);
        if !connection.has_heard_peer() {
            self.stats.refused += 1; // Nothing in it was authentic: no state for noise.
            return;
        }
        for (info, early) in self.early_arrivals.take(now, &invariants.dcid) {
            connection.on_datagram(now, &info, early);
        }
        if let Room::InsteadOf(oldest) = self.pending.room(client, most) {
            self.evict(now, oldest);
        }
        self.stats.accepted += 1;
        self.stats.validated_by_token += u64::from(is_validated);
        // The client's own choice stays a name of the connection: a copy of its first Initial that the network
        // delivers late must not begin another.
        let handle = self.insert(connection, &[local_id, invariants.dcid]);
        if let Some(index) = self.slots.index(handle) {
            self.recall(now, index);
            self.coordinate(now, index);
            let ticket = self.pending.begin(client, index, is_validated);
            self.slots.set_pending(index, Some(ticket));
        }
        self.last_events.push_back((handle, Event::Incoming));
    }

    /// Gives a handshake up that nobody has answered. Its client, if it is one, begins anew.
    fn evict(&mut self, now: Time, index: u32) {
        if let Some(connection) = self.slots.get_mut(index) {
            connection.vanish(CloseReason::Local { error_code: TransportErrorCode::CONNECTION_REFUSED.0 });
            self.stats.evicted += 1;
            self.settle(now, index);
        }
    }

    /// What the handshake of a client that is let in begins with. The others are answered here, if at all.
    fn admit(
        &mut self,
        now: Time,
        server: &ServerConfig,
        info: &DatagramInfo,
        invariants: &Invariants,
        data: &BytesMut,
    ) -> Option<HandshakeSetup> {
        let bearer = Bearer {
            at: self.clock_offset + now.since(Time::ZERO),
            remote: info.remote,
            version: invariants.version,
        };
        let is_crowded = self.pending.room(info.remote.ip(), server.max_pending_handshakes) != Room::Free;
        let may_ask = matches!(server.retry, RetryPolicy::UnderLoad { .. });
        let (original, is_validated, payload) = match self.standing(server, invariants, &bearer, data) {
            // Somebody else may have written the address of those that are in progress.
            Standing::Unknown if is_crowded && may_ask => {
                self.send_retry(info, invariants, &bearer);
                return None;
            }
            Standing::Doubted => {
                self.send_retry(info, invariants, &bearer);
                return None;
            }
            Standing::Lying => {
                let code = TransportErrorCode::INVALID_TOKEN;
                let is_answered = self.refuse(info, invariants, server, data.clone(), code);
                self.stats.invalid_tokens += u64::from(is_answered);
                return None;
            }
            Standing::Unknown => (invariants.dcid, false, None),
            Standing::Retried { original } => (original, true, None),
            Standing::Known { payload } => (invariants.dcid, true, Some(payload)),
        };
        Some(HandshakeSetup::of_server(invariants.version, original, invariants.dcid, is_validated, payload))
    }

    /// The server's end of a connection at its start; `None` if the TLS configuration or a policy of the profile cannot
    /// be used. What is wrong with a policy ends this connection, not the others, and nothing of it is kept.
    fn begin_server(
        &mut self,
        now: Time,
        server: ServerConfig,
        info: &DatagramInfo,
        invariants: &Invariants,
        (names, setup): ((ConnectionId, Account), HandshakeSetup),
        data: &BytesMut,
    ) -> Option<Connection> {
        let config = server.clone();
        let made = catch_unwind(AssertUnwindSafe(|| {
            Some(Connection::new(now, self.birth(server, info, invariants, names, setup)?))
        }));
        match &made {
            Ok(Some(_)) => {}
            Ok(None) => tracing::error!(
                "the TLS configuration cannot be used with QUIC: it needs TLS 1.3, AES-128-GCM, and early data \
                 of 0 or 2^32-1 bytes"
            ),
            Err(_) => {
                let profile = config.transport.profile.name();
                tracing::error!("a policy of the profile {profile} panicked as it was built");
                let code = TransportErrorCode::INTERNAL_ERROR;
                self.refuse(info, invariants, &config, data.clone(), code);
            }
        }
        made.ok().flatten()
    }

    /// The TLS configuration for connections of a version; made once, for a configuration is large.
    fn scoped_tls(
        &mut self,
        server: &ServerConfig,
        version: u32,
        granted: &LocalLimits,
    ) -> Arc<rustls::ServerConfig> {
        if let Some((_, _, tls)) =
            self.scoped_tls.iter().find(|(of, limits, _)| *of == version && limits == granted)
        {
            return Arc::clone(tls);
        }
        // What is granted near a full budget: such sessions are good for connections that are granted more, too.
        let least = LocalLimits { max_data: granted.max_data.min(LEAST_GRANT), ..*granted };
        let [parameters, least] =
            [granted, &least].map(|limits| parameters::granted(&server.transport, limits));
        let tls = sessions::scoped(&server.tls, version, (&parameters, &least), &self.early_data_context);
        // A profile may grant ever other limits: only the latest are kept.
        if self.scoped_tls.len() >= SCOPED_TLS {
            self.scoped_tls.remove(0);
        }
        self.scoped_tls.push((version, *granted, Arc::clone(&tls)));
        tls
    }

    /// What the server's end of a connection is made of; `None` if the TLS configuration cannot be used.
    fn birth(
        &mut self,
        server: ServerConfig,
        info: &DatagramInfo,
        invariants: &Invariants,
        (local_id, account): (ConnectionId, Account),
        setup: HandshakeSetup,
    ) -> Option<Birth> {
        let original_destination = setup.original_destination;
        let is_retried = original_destination != invariants.dcid;
        let part = ServerPart {
            original_destination,
            retry_source: is_retried.then_some(invariants.dcid),
            reset_token: self.reset_key.token(&local_id),
        };
        let streams = new_streams(Side::Server, &server.transport, account);
        let limits = streams.local_limits();
        let version = invariants.version;
        let group_size = server.transport.profile.group().map(|_| MAX_MEMBERS as u64);
        let encoded = parameters::encode(
            &server.transport,
            &limits,
            local_id,
            version,
            Some(&part),
            Wishes { group_size, ..Wishes::default() },
            &mut self.rng,
        );
        let initial = InitialKeys::from_provider(server.tls.crypto_provider())?;
        let tls = self.scoped_tls(&server, version, &limits);
        Some(Birth {
            side: Side::Server,
            config: server.transport,
            session: server_session(tls, version, encoded).ok()?,
            initial_keys: initial.derive(version, &invariants.dcid, Side::Server),
            remote: info.remote,
            local_id,
            // spec: rfc9000 7.2 server-takes-first-id
            remote_id: invariants.scid,
            setup,
            streams,
            rng: self.rng.fork(),
            offers_group: group_size.is_some(),
        })
    }

    /// What is to be made of the client, by its token and the policy.
    fn standing(
        &mut self,
        server: &ServerConfig,
        invariants: &Invariants,
        bearer: &Bearer,
        data: &[u8],
    ) -> Standing {
        // spec: rfc9000 8.1.3 token-checked
        let token = initial_token(invariants, data).unwrap_or_default();
        let verdict = match token {
            [] => Verdict::Void,
            token => self.tokens.open(token, bearer, &invariants.dcid),
        };
        match verdict {
            Verdict::Retry { original } => return Standing::Retried { original },
            Verdict::BadRetry => return Standing::Lying,
            Verdict::Known { id, made_at, payload } if self.used_tokens.use_up(made_at, id) => {
                return Standing::Known { payload: payload.into() };
            }
            Verdict::Known { .. } | Verdict::Void => {}
        }
        let is_doubted = match server.retry {
            RetryPolicy::Always => true,
            RetryPolicy::UnderLoad { handshakes } => self.pending.total() >= handshakes,
            RetryPolicy::Never => false,
        };
        if is_doubted { Standing::Doubted } else { Standing::Unknown }
    }

    /// Asks the client to come again with a token, and keeps nothing of it.
    fn send_retry(&mut self, info: &DatagramInfo, invariants: &Invariants, bearer: &Bearer) {
        // spec: rfc9000 17.2.5.1 retry-new-id, 17.2.5.1 one-retry-a-datagram
        let source = self.fresh_id();
        let token = self.tokens.for_retry(bearer, &invariants.dcid, &source, &mut self.rng);
        let random = self.rng.next_u64() as u8;
        // spec: rfc9369 4.1 retry-in-original
        let packet = token.and_then(|token| {
            retry::packet(bearer.version, &invariants.scid, &source, &invariants.dcid, &token, random)
        });
        if packet.is_some_and(|packet| self.stateless.answer(info, packet)) {
            self.stats.retries_sent += 1;
        }
    }

    /// Closes what has not begun with `code`: a client with an invalid token will not get another Retry, so it had better
    /// know (section 8.1.2). True if the answer is on its way.
    fn refuse(
        &mut self,
        info: &DatagramInfo,
        invariants: &Invariants,
        server: &ServerConfig,
        data: BytesMut,
        code: TransportErrorCode,
    ) -> bool {
        let source = self.fresh_id();
        let packet = InitialKeys::from_provider(server.tls.crypto_provider())
            // What the network has damaged must not end what the next copy can begin.
            .filter(|suite| is_authentic(suite, invariants, data))
            .and_then(|suite| close_packet(&suite, invariants, &source, code));
        packet.is_some_and(|packet| self.stateless.answer(info, packet))
    }
}

/// True if the client's Initial has come as it was sent.
fn is_authentic(suite: &InitialKeys, invariants: &Invariants, data: BytesMut) -> bool {
    let keys = suite.derive(invariants.version, &invariants.dcid, Side::Server).remote;
    let Some(Ok(mut packet)) = split(data, LOCAL_ID_LEN).next() else { return false };
    let number_at = packet.number_at;
    let unmasked = remove_header_protection(&mut packet.bytes, number_at, &*keys.header);
    unmasked.is_some_and(|unmasked| {
        let number = number::decode(None, unmasked.truncated, unmasked.number_len);
        open(packet.bytes, number_at, unmasked, number, &*keys.packet).is_some()
    })
}

/// An Initial packet that closes what the client's Initial would have begun.
fn close_packet(
    suite: &InitialKeys,
    invariants: &Invariants,
    source: &ConnectionId,
    code: TransportErrorCode,
) -> Option<Vec<u8>> {
    let keys = suite.derive(invariants.version, &invariants.dcid, Side::Server);
    let mut buffer = Vec::new();
    let mut datagram = DatagramBuilder::new(&mut buffer, MIN_INITIAL_DATAGRAM);
    let fields = HeaderFields {
        version: invariants.version,
        space: PacketSpace::Initial,
        is_early: false,
        number: 0,
        truncated: number::encode(0, None),
        destination: &invariants.scid,
        source,
        token: &[],
        fixed_bit: true,
        key_phase: false,
    };
    let close = CloseFrame {
        error_code: code.0,
        kind: CloseKind::Transport { frame_type: 0 },
        reason: bytes::Bytes::new(),
    };
    datagram.packet(&fields, |writer| {
        writer.push(&Frame::Close(close), None);
    });
    let sealed = datagram.finish(|packet, sealable| {
        let (at, header_len) = (sealable.number_at, sealable.header_len);
        seal(sealable.bytes, at, header_len, packet.number, &*keys.local.header, &*keys.local.packet)
    });
    sealed.is_ok().then_some(buffer)
}

/// The token of the Initial at the start of a datagram.
fn initial_token<'a>(invariants: &Invariants, data: &'a [u8]) -> Option<&'a [u8]> {
    // First byte, version, and the IDs with their lengths.
    let token_at = 1 + 4 + 1 + invariants.dcid.len() + 1 + invariants.scid.len();
    Reader::new(data.get(token_at..)?).prefixed().ok()
}
