//! One connection: a thin conductor over the parts that own its state.
//!
//! All lists of the parts are in this file: who sends frames, who receives which, who has events. In `connection/`,
//! `receive.rs` and `dispatch.rs` handle what comes in, `transmit.rs` what goes out, `api.rs` has the methods for users, and
//! the rest connects one part each. No other room but `router` knows this one.

mod api;
mod chance;
mod datagrams;
mod dispatch;
mod early_data;
mod eliciting;
mod ends;
mod group;
mod idle;
pub(crate) mod ids;
mod lifecycle;
mod link;
mod migration;
mod path_history;
mod path_probing;
mod receive;
mod repair;
mod rest;
mod retry;
mod roaming;
mod settle;
mod stats;
mod timers;
mod tokens;
#[cfg(feature = "qlog")]
mod trace;
mod transmit;
mod waiting;

pub use datagrams::{DatagramOrder, DatagramStats, SendDatagramError, WhenFull};
pub use roaming::Move;
pub use stats::{ConnectionStats, Traffic};
pub use waiting::Waited;

use std::sync::Arc;

use bytes::Bytes;
use posthaste_units::{ByteCount, Duration, Rate, Time};
use posthaste_wire::frame::{CloseFrame, CloseKind};
use posthaste_wire::{Frame, Side, TransportParameters};

use crate::acks::Acks;
use crate::config::TransportConfig;
use crate::control::outcome::AckOutcome;
use crate::crypto::OneRttKeys;
use crate::error::{Fault, PeerError, TransportErrorCode};
use crate::events::{CloseReason, Event, EventQueue};
use crate::group::Grouping;
use crate::handshake::birth::Birth;
use crate::handshake::setup::HandshakeSetup;
use crate::handshake::{Handshake, Progress};
use crate::packet::datagram::PacketContext;
use crate::packet::frame_owner::FrameOwner;
use crate::packet::space::PacketSpace;
use crate::path::Path;
use crate::path::history::ConnectionHistory;
use crate::path::mtu::Mtu;
use crate::qlog::Log;
use crate::recovery::{Expired, HandshakeView, Recovery};
use crate::streams::Streams;
use crate::tokens::new_token::NewTokens;

use chance::Chance;
use datagrams::Datagrams;
use eliciting::Eliciting;
use idle::IdleClock;
use ids::{LocalIds, RemoteIds};
use lifecycle::Lifecycle;
use link::Link;
use repair::Repairs;
use roaming::{Roaming, fresh_control};
use stats::Counters;
use timers::{Timer, Timers};
use waiting::Waiting;

/// Probe timeouts for which a closed connection lingers (RFC 9000 section 10.2).
const CLOSE_PROBE_TIMEOUTS: u64 = 3;

/// A QUIC connection. It is owned by an [`Endpoint`](crate::Endpoint), which feeds it datagrams and time.
pub struct Connection {
    pub(crate) config: Arc<TransportConfig>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) handshake: Handshake,
    pub(crate) acks: Acks,
    pub(crate) recovery: Recovery,
    pub(crate) streams: Streams,
    pub(crate) datagrams: Datagrams,
    pub(crate) path: Path,
    pub(crate) roaming: Roaming,
    pub(crate) local_ids: LocalIds,
    pub(crate) remote_ids: RemoteIds,
    pub(crate) setup: HandshakeSetup,
    /// On a server: the tokens for the client's next connections.
    pub(crate) new_tokens: NewTokens,
    /// On a server: what is known of the path, and who is told of it.
    pub(crate) history: ConnectionHistory,
    pub(crate) timers: Timers,
    pub(crate) eliciting: Eliciting,
    /// What recovery has found out and nobody has been told yet. The router lends it for most calls; what others make is
    /// kept for its memory until the connection rests.
    pub(crate) outcome: Option<Box<AckOutcome>>,
    pub(crate) counters: Counters,
    waiting: Waiting,
    pub(crate) log: Log,
    pub(crate) grouping: Grouping,
    pub(crate) repairs: Repairs,
    pub(crate) chance: Chance,
    events: EventQueue,
    pub(crate) idle: IdleClock,
    /// What the application knows of the link that data arrive by.
    link: Option<Link>,
}

impl Connection {
    /// A connection at its start; a client's first flight is then ready to be sent.
    pub(crate) fn new(now: Time, birth: Birth) -> Self {
        let log = Log::new(now, &birth);
        let Birth { side, config, remote, mut rng, .. } = birth;
        let profile = &config.profile;
        let mtu = Mtu::new(config.max_datagram_size, config.mtu_discovery);
        let control = fresh_control(&config, mtu.current(), &mut rng);
        let mut connection = Self {
            lifecycle: Lifecycle::Open,
            handshake: Handshake::new(side, birth.session, birth.initial_keys, config.key_limits),
            acks: Acks::new(profile.ack_policy(profile.max_ack_delay())),
            recovery: Recovery::new(),
            streams: birth.streams,
            datagrams: Datagrams::new(config.max_datagram_frame_size),
            path: Path::new(remote, control, mtu, birth.setup.is_validated),
            roaming: Roaming::default(),
            local_ids: LocalIds::new(birth.local_id),
            remote_ids: RemoteIds::new(birth.remote_id),
            setup: birth.setup,
            new_tokens: NewTokens::default(),
            history: ConnectionHistory::default(),
            timers: Timers::default(),
            eliciting: Eliciting::new(side),
            outcome: None,
            counters: Counters::default(),
            waiting: Waiting::default(),
            log,
            grouping: Grouping::new(birth.offers_group),
            repairs: Repairs::new(config.profile.repair()),
            chance: Chance::new(&rng),
            events: EventQueue::default(),
            idle: IdleClock::new(config.max_idle_timeout.into(), now),
            link: None,
            config,
        };
        connection.recovery.plan_skip(connection.chance.rng());
        if connection.repairs.codes() {
            let kept = connection.config.receive_budget.open_kept();
            connection.streams.offer_tail_code(kept);
        }
        connection.streams.send_lost_again_twice(connection.repairs.lost_again());
        connection.streams.watch_blocked(connection.log.is_on());
        if let Err(fault) = connection.advance_handshake(now) {
            connection.fail(now, fault);
        }
        connection.update_timers(now);
        connection
    }

    /// The parts that send frames among the application's data, in the order in which their frames stand in a packet.
    /// Data come last: messages and streams.
    pub(crate) fn frame_owners(&mut self) -> [&mut dyn FrameOwner; 8] {
        let yields = self.datagrams.yields();
        let (datagrams, streams): (&mut dyn FrameOwner, &mut dyn FrameOwner) =
            (&mut self.datagrams, &mut self.streams);
        let (first, last) = if yields { (streams, datagrams) } else { (datagrams, streams) };
        [
            &mut self.local_ids,
            &mut self.remote_ids,
            &mut self.acks.requests,
            &mut self.grouping,
            &mut self.new_tokens,
            &mut self.eliciting,
            first,
            last,
        ]
    }

    /// Hands a frame to its owner.
    pub(crate) fn dispatch(&mut self, context: &PacketContext, frame: Frame) -> Result<(), Fault> {
        let frame_type = frame.frame_type();
        self.dispatch_untyped(context, frame).map_err(|fault| match fault {
            Fault::Peer(error) => Fault::Peer(error.in_frame(frame_type)),
            tls @ Fault::Tls(_) => tls,
        })
    }

    fn dispatch_untyped(&mut self, context: &PacketContext, frame: Frame) -> Result<(), Fault> {
        let credit = self.credit_context(context.now);
        match frame {
            Frame::Padding | Frame::Ping => {}
            Frame::PathResponse(data) => self.on_path_response(context.now, data),
            Frame::Ack(ack) => self.on_ack(context, &ack)?,
            Frame::Crypto(crypto) => self.handshake.on_crypto(context.space, crypto)?,
            Frame::Stream(stream) => self.streams.on_stream(stream, &credit)?,
            Frame::Datagram(message) => self.datagrams.on_frame(&message)?,
            Frame::ResetStream(reset) => self.streams.on_reset_stream(&reset, &credit)?,
            Frame::StopSending(stop) => self.streams.on_stop_sending(&stop)?,
            Frame::MaxData(maximum) => self.streams.on_max_data(maximum),
            Frame::MaxStreamData { id, maximum } => self.streams.on_max_stream_data(id, maximum)?,
            Frame::MaxStreams { direction, maximum } => self.streams.on_max_streams(direction, maximum)?,
            Frame::DataBlocked(limit) => {
                self.streams.on_data_blocked(limit, &credit);
                self.answer_blocked_peer(context.now);
            }
            Frame::StreamDataBlocked { id, limit } => {
                self.streams.on_stream_data_blocked(id, limit, &credit)?;
                self.answer_blocked_peer(context.now);
            }
            Frame::StreamsBlocked { direction, limit } => {
                self.streams.on_streams_blocked(direction, limit)?;
            }
            Frame::NewConnectionId(new) => self.remote_ids.on_new(context.now, &new)?,
            Frame::RetireConnectionId(sequence) => {
                self.local_ids.retire(context.now, sequence, &context.destination)?;
            }
            Frame::PathChallenge(data) => self.on_path_challenge(context, data),
            Frame::NewToken(token) => self.on_new_token(&token)?,
            Frame::HandshakeDone => self.on_handshake_done(context.now)?,
            Frame::AckFrequency(frame) => self.acks.on_frequency(&frame)?,
            Frame::GroupToken(token) => self.on_group_token(token)?,
            Frame::AckWindow(frame) => self.on_ack_window(context, &frame)?,
            Frame::TailCode(frame) => self.streams.on_tail_code(&frame, &credit)?,
            Frame::ImmediateAck => self.acks.on_immediate(context.now),
            Frame::Close(close) => self.on_close(context.now, close),
        }
        Ok(())
    }

    /// True if an owner has a frame to send. Streams are asked first: they mostly have.
    pub(crate) fn has_owned_frames(&mut self) -> bool {
        self.fit_datagrams();
        self.frame_owners().into_iter().rev().any(|owner| owner.has_unsent())
    }

    /// Lets TLS go on, and follows each of its steps.
    pub(crate) fn advance_handshake(&mut self, now: Time) -> Result<(), Fault> {
        for step in self.handshake.advance()? {
            if !self.lifecycle.is_open() {
                break; // A packet that was kept has ended the connection.
            }
            match step {
                Progress::Parameters { parameters, is_early_accepted } => {
                    self.log.peer_parameters(now, &parameters);
                    self.on_early_verdict(now, is_early_accepted, &parameters)?;
                    self.on_peer_parameters(&parameters)?;
                }
                Progress::EarlyKeys(remembered) => {
                    self.on_early_keys(remembered.as_deref());
                    self.open_kept_packets(now);
                }
                Progress::Keys => {
                    self.trace_state(now);
                    self.open_kept_packets(now);
                }
                Progress::Complete => self.on_handshake_complete(now),
            }
        }
        Ok(())
    }

    fn on_peer_parameters(&mut self, parameters: &TransportParameters) -> Result<(), PeerError> {
        self.setup.authenticate(self.side(), self.remote_ids.current(), parameters)?;
        if self.side() == Side::Client
            && let Some(token) = parameters.stateless_reset_token
        {
            self.remote_ids.set_handshake_token(token);
        }
        self.streams.set_peer_limits(parameters);
        self.datagrams.set_peer_limit(parameters.max_datagram_frame_size);
        self.streams.set_ack_window(parameters.ack_window && self.config.ack_window);
        self.streams.set_tail_code(if self.repairs.codes() { parameters.tail_code } else { 0 });
        // spec: rfc9287 3.1 servers-wait, 3.1 servers-forget, 3.1 never-unknown
        self.chance.free_fixed_bit(parameters.grease_quic_bit && self.config.grease);
        let max_ack_delay = Duration::from_millis(parameters.max_ack_delay);
        self.recovery.set_peer_ack_parameters(max_ack_delay, parameters.ack_delay_exponent as u8);
        self.acks.requests.set_peer_least_delay(parameters.min_ack_delay);
        if let Some(window) = parameters.initial_window {
            self.path.control.on_stated_window(ByteCount::new(window));
        }
        self.on_group_size(parameters);
        if let Some(rate) = parameters.guaranteed_rate {
            self.path.control.on_stated_rate(Rate::from_bytes_per_second(rate));
        }
        self.local_ids.set_peer_limit(parameters.active_connection_id_limit);
        self.idle.set_peer_timeout(Duration::from_millis(parameters.max_idle_timeout));
        let largest = usize::try_from(parameters.max_udp_payload_size).unwrap_or(usize::MAX);
        let before = self.path.max_datagram_size();
        self.path.mtu.limit(largest);
        if self.path.max_datagram_size() != before {
            self.path.on_mtu_change();
        }
        self.roaming.is_forbidden = parameters.disable_active_migration;
        Ok(())
    }

    fn on_handshake_complete(&mut self, now: Time) {
        self.counters.connected_at = Some(now);
        self.emit(Event::Connected);
        if self.side() == Side::Server {
            // spec: rfc9001 4.1.2 done-at-once, rfc9000 19.20 done-not-early
            self.handshake.confirm_as_server();
            self.limit_early_keys(now);
            self.on_confirmed(now);
        }
        self.open_kept_packets(now);
    }

    /// The handshake is confirmed: Handshake keys go (RFC 9001 section 4.9.2).
    pub(crate) fn on_confirmed(&mut self, now: Time) {
        // spec: rfc9001 4.9.2 handshake-keys-dropped
        self.setup.peer_validated_address = true;
        self.discard_space(now, PacketSpace::Initial);
        self.discard_space(now, PacketSpace::Handshake);
        self.emit(Event::Confirmed);
    }

    /// Drops a space's keys and all that was under way in it.
    pub(crate) fn discard_space(&mut self, now: Time, space: PacketSpace) {
        if self.handshake.discard(space) {
            let forgotten = self.recovery.discard_space(space);
            self.path.control.on_forgotten(now, forgotten);
            self.path.control.ecn.on_space_discarded(space);
            self.acks.discard_space(space);
            self.eliciting.discard_space(space);
            self.log.keys_discarded(now, space, None);
        }
    }

    /// What recovery must know of the handshake.
    pub(crate) fn handshake_view(&self) -> HandshakeView {
        let is_client = self.side() == Side::Client;
        let has_handshake_keys = self.handshake.has_keys(PacketSpace::Handshake);
        HandshakeView {
            is_client,
            has_handshake_keys,
            is_confirmed: self.handshake.is_confirmed(),
            peer_address_validated: self.setup.peer_validated_address,
            amplification_blocked: self.path.is_amplification_blocked(),
            is_peer_present: if is_client { has_handshake_keys } else { self.path.validation.is_valid() },
        }
    }

    /// The probe timeout of the 1-RTT space, without back-off (RFC 9002 section 6.2.1).
    pub(crate) fn probe_timeout(&self) -> Duration {
        self.recovery.pto_interval(&self.path.control.rtt)
    }

    /// Acts on the timers that have expired.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        if self.timers.take_stale() {
            self.update_timers(now);
        }
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                Timer::Recovery => self.on_recovery_timeout(now),
                // What was held back is sent by the `poll_transmit` that follows.
                Timer::Ack | Timer::Pacing | Timer::Repair => {}
                Timer::Idle => {
                    self.log.closed(now, &CloseReason::IdleTimeout, None);
                    self.vanish(CloseReason::IdleTimeout);
                }
                Timer::KeepAlive => self.eliciting.ping(),
                Timer::Rest => self.rest(),
                Timer::Close => self.lifecycle = Lifecycle::Drained,
                Timer::Path => self.on_path_timeout(now),
                Timer::OldKeys => {
                    if let Some(keys) = self.handshake.one_rtt_mut() {
                        keys.on_time(now);
                        let old_phase = keys.updates().saturating_sub(1);
                        self.log.keys_discarded(now, PacketSpace::Data, Some(old_phase));
                    }
                }
            }
        }
        self.update_timers(now);
    }

    fn on_recovery_timeout(&mut self, now: Time) {
        let view = self.handshake_view();
        let expired =
            self.recovery.on_timeout(now, view, &self.path.control, self.outcome.get_or_insert_default());
        self.log.recovery_timer_expired(now, expired);
        match expired {
            Expired::Nothing | Expired::LossDetected => {}
            Expired::Probe { space, packets } => {
                if space == PacketSpace::Data {
                    self.path.control.on_probe_timeout(now, self.recovery.pto_count());
                }
                self.counters.probe_timeouts += 1;
                self.eliciting.owe_probes(space, packets);
                self.look_for_lost_server();
                self.look_for_black_hole_in_silence(now);
                // Probes carry what is outstanding rather than a bare PING (RFC 9002 section 6.2.4).
                self.recovery.frames_to_probe(space, self.outcome.get_or_insert_default());
                self.probe_handshake_beside(space);
            }
        }
        self.settle_outcome(now);
    }

    /// A probe of one space takes along what the handshake's other spaces have outstanding or lost, window or not
    /// (RFC 9002 section 6.2.4): the peer may lack the keys for the space that is probed, and then only the others
    /// lead on.
    pub(crate) fn probe_handshake_beside(&mut self, probed: PacketSpace) {
        for space in [PacketSpace::Initial, PacketSpace::Handshake] {
            if space == probed || !self.handshake.has_keys(space) {
                continue;
            }
            if self.handshake.has_frames(space) || self.recovery.has_ack_eliciting_in_flight(space) {
                self.eliciting.owe_probe(space);
                self.recovery.frames_to_probe(space, self.outcome.get_or_insert_default());
            }
        }
    }

    /// Sets the timers from the state that they depend on.
    pub(crate) fn update_timers(&mut self, now: Time) {
        if !self.lifecycle.is_open() {
            return;
        }
        self.timers.take_stale();
        self.expire_early_keys(now);
        let view = self.handshake_view();
        self.timers.set(Timer::Recovery, self.recovery.timeout(view, &self.path.control));
        let acks = PacketSpace::ALL.into_iter().filter(|space| self.handshake.has_keys(*space));
        let ack = acks.filter_map(|space| self.acks.received[space].deadline()).min();
        // A server that may not send must not be woken for it; the client's next datagram will.
        self.timers.set(Timer::Ack, ack.filter(|at| *at > now));
        let idle = self.idle.deadline(self.is_handshaking(), self.probe_timeout());
        self.timers.set(Timer::Idle, idle);
        // While something unacknowledged is under way, probes do what the PING is for.
        let is_quiet = !self.idle.is_waiting() && !self.eliciting.is_ping_due();
        let keep_alive = self.config.keep_alive.filter(|_| self.handshake.is_complete() && is_quiet);
        let ping = keep_alive.map(|interval| self.idle.keep_alive_at(interval.into()));
        self.timers.set(Timer::KeepAlive, ping);
        self.timers.set(Timer::OldKeys, self.handshake.one_rtt().and_then(OneRttKeys::old_key_expires));
        self.timers.set(Timer::Path, self.path_deadline(now));
        self.timers.set(Timer::Rest, self.rest_at());
        self.trace_state(now);
    }

    /// The connection failed: tells the peer why.
    pub(crate) fn fail(&mut self, now: Time, fault: Fault) {
        // spec: rfc9000 11.1 errors-are-told, 10.3 close-rather-than-reset, 5.2 unprotected-error-is-whole
        let (code, frame_type, text, reason) = match fault {
            Fault::Peer(error) => {
                let text = Bytes::from_static(error.reason.as_bytes());
                (error.code, error.frame_type, text, CloseReason::Violation(error))
            }
            Fault::Tls(failure) => {
                // The peer is told the alert only: the words may hold local detail.
                let reason = CloseReason::Tls { alert: failure.alert, reason: failure.reason };
                (TransportErrorCode::crypto(failure.alert), 0, Bytes::new(), reason)
            }
        };
        let frame =
            CloseFrame { error_code: code.0, kind: CloseKind::Transport { frame_type }, reason: text };
        self.close_with(now, frame, reason);
    }

    /// Enters the closing state.
    pub(crate) fn close_with(&mut self, now: Time, frame: CloseFrame, reason: CloseReason) {
        if self.lifecycle.is_open() {
            self.log.closed(now, &reason, Some(&frame));
            self.lifecycle.close(frame);
            self.linger(now, reason);
        }
    }

    /// Enters the draining state: the peer has closed.
    pub(crate) fn drain(&mut self, now: Time, reason: CloseReason) {
        if self.lifecycle.is_open() {
            self.lifecycle = Lifecycle::Draining;
            self.log.closed(now, &reason, None);
            self.linger(now, reason);
        }
    }

    fn linger(&mut self, now: Time, reason: CloseReason) {
        self.timers.clear();
        self.timers.set(Timer::Close, Some(now + self.probe_timeout() * CLOSE_PROBE_TIMEOUTS));
        self.setup.kept_packets = Vec::new();
        self.emit(Event::Closed(reason));
    }

    /// Ends without a word: there is nobody to tell.
    pub(crate) fn vanish(&mut self, reason: CloseReason) {
        self.timers.clear();
        self.lifecycle = Lifecycle::Drained;
        self.emit(Event::Closed(reason));
    }

    pub(crate) fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    /// The next event.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        let Self { events, streams, datagrams, .. } = self;
        events.next(|| streams.poll_event().map(Event::Stream).or_else(|| datagrams.poll_event()))
    }
}
