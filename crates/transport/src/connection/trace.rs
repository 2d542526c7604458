//! What a connection's state looks like to its trace: it is compared with what was seen last, and the difference
//! is written. So no part of the connection has to report its changes, and nothing is written twice.

use posthaste_units::{Duration, Time};
use posthaste_wire::StreamId;
use qlog::events::EventData;
use qlog::events::quic::{
    AlpnIdentifier, AlpnInformation, BlockedReason, BlockedState, CongestionStateUpdated,
    ConnectionDataBlockedUpdated, EcnStateUpdated, KeyUpdateOrRetiredTrigger, KeyUpdated, MigrationState,
    MigrationStateUpdated, MtuUpdated, RecoveryMetricsUpdated, StreamDataBlockedUpdated, TupleAssigned,
};

use crate::connection::Connection;
use crate::packet::ecn::EcnState;
use crate::packet::space::PacketSpace;
use crate::qlog::{Log, Trace, endpoint_info, key_types};

impl Connection {
    /// Writes what has changed since the last time. To be called once whatever has happened at `now` is done.
    pub(crate) fn trace_state(&mut self, now: Time) {
        let Self { log: Log(Some(trace)), streams, .. } = self else { return };
        if trace.writer.is_over() {
            streams.watch_blocked(false);
            self.log = Log::default();
            return;
        }
        let blocked = streams.take_blocked_changes();
        // Taken out for the time being, so that the whole connection can be looked at.
        let Some(mut trace) = self.log.0.take() else { return };
        trace.keys(now, self);
        trace.protocol(now, self);
        trace.path(now, self);
        trace.metrics(now, self);
        trace.states(now, self);
        trace.blocked(now, self.streams.stats().is_connection_blocked, &blocked);
        self.log.0 = Some(trace);
    }
}

/// The new value if it differs from the one seen last, and is one.
fn changed<T: PartialEq + Copy>(seen: &mut Option<T>, new: Option<T>) -> Option<T> {
    if *seen == new {
        return None;
    }
    *seen = new;
    new
}

fn milliseconds(duration: Duration) -> f32 {
    duration.as_millis_f64() as f32
}

impl Trace {
    /// Keys that have come: TLS's, and those of later phases.
    fn keys(&mut self, now: Time, connection: &Connection) {
        for (space, seen) in PacketSpace::ALL.into_iter().zip(0..) {
            let has_keys = connection.handshake.has_keys(space);
            let Some(seen) = self.seen.has_keys.get_mut(seen) else { continue };
            if has_keys && !*seen {
                let key_phase = (space == PacketSpace::Data).then_some(0);
                *seen = has_keys;
                self.keys_updated(now, space, key_phase, &KeyUpdateOrRetiredTrigger::Tls);
            }
        }
        let phase = connection.key_updates();
        if phase != self.seen.key_phase {
            self.seen.key_phase = phase;
            let by_peer = std::mem::take(&mut self.is_key_update_by_peer);
            let trigger = if by_peer {
                KeyUpdateOrRetiredTrigger::RemoteUpdate
            } else {
                KeyUpdateOrRetiredTrigger::LocalUpdate
            };
            self.keys_updated(now, PacketSpace::Data, Some(phase), &trigger);
        }
    }

    fn keys_updated(
        &mut self,
        now: Time,
        space: PacketSpace,
        key_phase: Option<u64>,
        trigger: &KeyUpdateOrRetiredTrigger,
    ) {
        for key_type in key_types(space) {
            let trigger = Some(trigger.clone());
            let event = KeyUpdated { key_type, old: None, new: None, key_phase, trigger };
            self.writer.event(now, EventData::QuicKeyUpdated(event));
        }
    }

    /// The application protocol, once.
    fn protocol(&mut self, now: Time, connection: &Connection) {
        let Some(protocol) = connection.alpn().filter(|_| !self.seen.has_protocol) else { return };
        self.seen.has_protocol = true;
        let identifier = AlpnIdentifier {
            byte_value: Some(qlog::HexSlice::new(protocol).to_string()),
            string_value: std::str::from_utf8(protocol).ok().map(str::to_owned),
        };
        let event = AlpnInformation { chosen_alpn: Some(identifier), ..AlpnInformation::default() };
        self.writer.event(now, EventData::QuicAlpnInformation(event));
    }

    /// The path in use, and how far the move to it has come.
    fn path(&mut self, now: Time, connection: &Connection) {
        let path = &connection.path;
        let is_settled = path.validation.is_valid() && !path.validation.is_running();
        let is_first = self.seen.path.is_none();
        if let Some(id) = changed(&mut self.seen.path, Some(path.control.id)) {
            let remote = endpoint_info(Some(path.remote), connection.remote_ids.current().to_string());
            let event =
                TupleAssigned { tuple_id: id.to_string(), tuple_remote: Some(remote), tuple_local: None };
            self.writer.event(now, EventData::QuicTupleAssigned(event));
            if !is_first {
                if self.seen.migration == Some(MigrationState::MigrationStarted) {
                    self.migration(now, id, MigrationState::MigrationAbandoned);
                }
                self.migration(now, id, MigrationState::MigrationStarted);
            }
        }
        if is_settled && self.seen.migration == Some(MigrationState::MigrationStarted) {
            self.migration(now, path.control.id, MigrationState::MigrationComplete);
        }
    }

    fn migration(&mut self, now: Time, path: u32, new: MigrationState) {
        let old = self.seen.migration.replace(new.clone());
        let tuple_id = Some(path.to_string());
        let event = MigrationStateUpdated { old, new, tuple_id, ..MigrationStateUpdated::default() };
        self.writer.event(now, EventData::QuicMigrationStateUpdated(event));
    }

    fn metrics(&mut self, now: Time, connection: &Connection) {
        let control = &connection.path.control;
        let rtt = control.rtt();
        let measured = |value| rtt.is_measured.then_some(value);
        let state = control.state();
        let pto_count = u16::try_from(connection.recovery.pto_count()).unwrap_or(u16::MAX);
        let pacing_rate = control.pacing().map(|pacing| pacing.rate.as_bits_per_second());
        let seen = &mut self.seen;
        let event = RecoveryMetricsUpdated {
            min_rtt: changed(&mut seen.min_rtt, measured(rtt.min)).map(milliseconds),
            smoothed_rtt: changed(&mut seen.smoothed_rtt, measured(rtt.smoothed)).map(milliseconds),
            latest_rtt: changed(&mut seen.latest_rtt, measured(rtt.latest)).map(milliseconds),
            rtt_variance: changed(&mut seen.rtt_variance, measured(rtt.variance)).map(milliseconds),
            pto_count: changed(&mut seen.pto_count, Some(pto_count)),
            congestion_window: changed(&mut seen.congestion_window, Some(state.window.get())),
            bytes_in_flight: changed(&mut seen.bytes_in_flight, Some(control.bytes_in_flight().get())),
            ssthresh: changed(
                &mut seen.slow_start_threshold,
                state.slow_start_threshold.map(posthaste_units::ByteCount::get),
            ),
            pacing_rate: changed(&mut seen.pacing_rate, pacing_rate),
            ..RecoveryMetricsUpdated::default()
        };
        if event != RecoveryMetricsUpdated::default() {
            self.writer.event(now, EventData::QuicMetricsUpdated(event));
        }
    }

    /// The controller's phase, ECN validation and the datagram size.
    fn states(&mut self, now: Time, connection: &Connection) {
        let control = &connection.path.control;
        let old = self.seen.phase;
        let trigger = self.congestion_trigger.take();
        if let Some(phase) = changed(&mut self.seen.phase, Some(control.state().phase)) {
            let old = old.map(|phase| phase.name().to_owned());
            let event = CongestionStateUpdated { old, new: phase.name().to_owned(), trigger };
            self.writer.event(now, EventData::QuicCongestionStateUpdated(event));
        }
        let old = self.seen.ecn.map(ecn_state);
        if let Some(state) = changed(&mut self.seen.ecn, Some(control.ecn.state())) {
            let event = EcnStateUpdated { old, new: ecn_state(state) };
            self.writer.event(now, EventData::QuicEcnStateUpdated(event));
        }
        let old = self.seen.max_datagram_size;
        let size = u32::try_from(connection.path.max_datagram_size()).unwrap_or(u32::MAX);
        if let Some(new) = changed(&mut self.seen.max_datagram_size, Some(size)) {
            self.writer.event(now, EventData::QuicMtuUpdated(MtuUpdated { old, new, done: None }));
        }
    }

    /// Flow control: the peer's limits that keep data back, or no longer do.
    fn blocked(&mut self, now: Time, is_blocked: bool, streams: &[(StreamId, bool)]) {
        for (id, is_blocked) in streams {
            let (old, new) = blocked_states(*is_blocked);
            let reason = Some(BlockedReason::StreamFlowControl);
            let event = StreamDataBlockedUpdated { old, new, stream_id: id.to_wire(), reason };
            self.writer.event(now, EventData::QuicStreamDataBlockedUpdated(event));
        }
        if is_blocked != self.seen.is_blocked {
            self.seen.is_blocked = is_blocked;
            let (old, new) = blocked_states(is_blocked);
            let reason = Some(BlockedReason::ConnectionFlowControl);
            let event = ConnectionDataBlockedUpdated { old, new, reason };
            self.writer.event(now, EventData::QuicConnectionDataBlockedUpdated(event));
        }
    }
}

/// The state before and the state now.
fn blocked_states(is_blocked: bool) -> (Option<BlockedState>, BlockedState) {
    if is_blocked {
        (Some(BlockedState::Unblocked), BlockedState::Blocked)
    } else {
        (Some(BlockedState::Blocked), BlockedState::Unblocked)
    }
}

const fn ecn_state(state: EcnState) -> qlog::events::quic::EcnState {
    match state {
        EcnState::Testing => qlog::events::quic::EcnState::Testing,
        EcnState::Unknown => qlog::events::quic::EcnState::Unknown,
        EcnState::Capable => qlog::events::quic::EcnState::Capable,
        EcnState::Failed => qlog::events::quic::EcnState::Failed,
    }
}
