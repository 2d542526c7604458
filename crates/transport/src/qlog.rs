//! The connection's trace: qlog's main schema and QUIC events (draft-ietf-quic-qlog-main-schema and -quic-events in
//! the versions that the qlog crate has), as a JSON text sequence (RFC 7464), one a connection.
//!
//! A connection without a trace pays for one comparison a hook. With one, packets are decoded a second time, so
//! that nothing needs to be kept for the trace; `connection/trace.rs` finds out what has changed. Times are those that the
//! caller passes in: equal runs leave equal traces.

mod seen;
mod vocabulary;
mod writer;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_policy::Notice;
use posthaste_units::{Duration, Time};
use posthaste_wire::frame::{CloseFrame, CloseKind};
use posthaste_wire::packet::{PacketType, version};
use posthaste_wire::{ConnectionId, Side, TransportParameters};
use qlog::events::quic::{
    CongestionStateUpdatedTrigger, ConnectionClosed, ConnectionClosedTrigger, ConnectionStarted,
    KeyDiscarded, KeyType, KeyUpdateOrRetiredTrigger, PacketBuffered, PacketBufferedTrigger, PacketDropped,
    PacketDroppedTrigger, PacketHeader, PacketLost, PacketLostTrigger, PacketNumberSpace, PacketReceived,
    PacketSent, PacketSentTrigger, QuicVersionInformation, RecoveryParametersSet, TimerEventType, TimerType,
    TimerUpdated, TransportInitiator,
};
use qlog::events::{ApplicationError, ConnectionClosedEventError, EventData, RawInfo, TupleEndpointInfo};
use qlog::{CommonFields, ReferenceTime, TimeFormat, TraceSeq, VantagePoint, VantagePointType};

use crate::config::{ACK_DELAY_EXPONENT, QlogSink};
use crate::control::outcome::{AckOutcome, LossReason};
use crate::control::rtt::GRANULARITY;
use crate::crypto::TAG_LEN;
use crate::error::TransportErrorCode;
use crate::events::CloseReason;
use crate::handshake::birth::Birth;
use crate::handshake::parameters;
use crate::packet::builder::{OpenPacket, Sealable};
use crate::packet::datagram::{Dropped, PacketContext};
use crate::packet::space::PacketSpace;
use crate::recovery::{DEFAULT_ACK_DELAY_EXPONENT, Expired};

use seen::Seen;
use vocabulary::{frames, parameters_set, text, transport_error};
use writer::Writer;

/// The name that the schema has for the event; the qlog crate has that of an older version.
const KEY_DISCARDED: &str = "quic:key_discarded";

/// A policy's words to whoever runs this end: no event of the schema's.
const NOTICE: &str = "posthaste:notice";

/// A connection's trace, or none. No hook can fail.
#[derive(Default)]
pub(crate) struct Log(pub(crate) Option<Box<Trace>>);

pub(crate) struct Trace {
    pub(crate) writer: Writer,
    /// Opens the sink, unless that has been done.
    opener: Option<Arc<dyn QlogSink>>,
    original_destination: ConnectionId,
    side: Side,
    pub(crate) seen: Seen,
    /// The peer's, for its ACK frames in 1-RTT packets.
    peer_ack_delay_exponent: u8,
    /// The next change of the key phase that `connection/trace.rs` finds is the peer's doing.
    pub(crate) is_key_update_by_peer: bool,
    /// What the next change of the controller's phase will be due to.
    pub(crate) congestion_trigger: Option<CongestionStateUpdatedTrigger>,
}

impl Log {
    /// The trace of a connection at its birth. A server opens the sink only with the first authentic packet:
    /// noise must not fill its disk.
    pub(crate) fn new(now: Time, birth: &Birth) -> Self {
        let Some(opener) = &birth.config.qlog else { return Self(None) };
        let mut trace = Trace {
            writer: Writer::new(now, description(birth)),
            opener: Some(Arc::clone(opener)),
            original_destination: birth.setup.original_destination,
            side: birth.side,
            seen: Seen::default(),
            peer_ack_delay_exponent: DEFAULT_ACK_DELAY_EXPONENT,
            is_key_update_by_peer: false,
            congestion_trigger: None,
        };
        if birth.side == Side::Client {
            trace.open_sink();
        }
        trace.birth(now, birth);
        Self(Some(Box::new(trace)))
    }

    /// True if there is a trace.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A packet has been opened and is about to be processed.
    pub(crate) fn packet_received(&mut self, context: &PacketContext, number: u64, payload: &Bytes) {
        let Some(trace) = &mut self.0 else { return };
        trace.open_sink();
        let exponent = match context.space {
            PacketSpace::Data => trace.peer_ack_delay_exponent,
            PacketSpace::Initial | PacketSpace::Handshake => DEFAULT_ACK_DELAY_EXPONENT,
        };
        let event = PacketReceived {
            header: header(packet_type(context.packet_type), Some(number)),
            raw: Some(raw(context.size, Some(payload.len()))),
            frames: Some(frames(payload.clone(), exponent)),
            ..PacketReceived::default()
        };
        trace.writer.event(context.now, EventData::QuicPacketReceived(event));
    }

    /// A packet is dropped; its type is known unless its header is malformed.
    pub(crate) fn packet_dropped(&mut self, now: Time, of: Option<PacketType>, why: Dropped) {
        let Some(trace) = &mut self.0 else { return };
        let trigger = match why {
            Dropped::Invalid => PacketDroppedTrigger::Invalid,
            Dropped::Undecryptable => PacketDroppedTrigger::DecryptionFailure,
            // The schema has words of their own for these two, which the qlog crate lacks.
            Dropped::NoKeys => PacketDroppedTrigger::General,
            Dropped::Duplicate => PacketDroppedTrigger::Rejected,
        };
        let header = of.map(|of| header(packet_type(of), None));
        let event = PacketDropped { header, trigger: Some(trigger), ..PacketDropped::default() };
        trace.writer.event(now, EventData::QuicPacketDropped(event));
    }

    /// A Retry has been accepted.
    pub(crate) fn retry_received(&mut self, now: Time, size: usize) {
        let Some(trace) = &mut self.0 else { return };
        let event = PacketReceived {
            header: header(packet_type(PacketType::Retry), None),
            raw: Some(raw(size, None)),
            ..PacketReceived::default()
        };
        trace.writer.event(now, EventData::QuicPacketReceived(event));
    }

    /// A packet is kept until its keys come.
    pub(crate) fn packet_kept(&mut self, now: Time, of: PacketType, size: usize) {
        let Some(trace) = &mut self.0 else { return };
        let event = PacketBuffered {
            header: Some(header(packet_type(of), None)),
            raw: Some(raw(size, None)),
            trigger: Some(PacketBufferedTrigger::KeysUnavailable),
            ..PacketBuffered::default()
        };
        trace.writer.event(now, EventData::QuicPacketBuffered(event));
    }

    /// A packet is about to be sealed and to leave. (Should sealing fail, the connection ends without it.)
    pub(crate) fn packet_sent(
        &mut self,
        now: Time,
        packet: &OpenPacket,
        sealable: &Sealable<'_>,
        is_probe: bool,
    ) {
        let Some(trace) = &mut self.0 else { return };
        let end = sealable.bytes.len().saturating_sub(TAG_LEN);
        let payload = sealable.bytes.get(sealable.header_len..end).unwrap_or_default();
        let event = PacketSent {
            header: header(sent_type(packet), Some(packet.number)),
            raw: Some(raw(sealable.bytes.len(), Some(payload.len()))),
            trigger: is_probe.then_some(PacketSentTrigger::PtoProbe),
            frames: Some(frames(Bytes::copy_from_slice(payload), ACK_DELAY_EXPONENT)),
            ..PacketSent::default()
        };
        trace.writer.event(now, EventData::QuicPacketSent(event));
    }

    /// Recovery has found out what became of packets.
    pub(crate) fn packets_lost(&mut self, now: Time, outcome: &AckOutcome) {
        let Some(trace) = &mut self.0 else { return };
        for packet in &outcome.lost_packets {
            let trigger = match packet.reason {
                LossReason::PacketThreshold => PacketLostTrigger::ReorderingThreshold,
                LossReason::TimeThreshold => PacketLostTrigger::TimeThreshold,
            };
            let event = PacketLost {
                header: Some(header(space_type(packet.space), Some(packet.number))),
                trigger: Some(trigger),
                ..PacketLost::default()
            };
            trace.writer.event(now, EventData::QuicPacketLost(event));
        }
        if outcome.persistent_congestion {
            trace.congestion_trigger = Some(CongestionStateUpdatedTrigger::PersistentCongestion);
        } else if outcome.newly_marked > 0 {
            trace.congestion_trigger = Some(CongestionStateUpdatedTrigger::Ecn);
        }
    }

    /// The loss detection timer has expired (RFC 9002 appendix A.9).
    pub(crate) fn recovery_timer_expired(&mut self, now: Time, expired: Expired) {
        let Some(trace) = &mut self.0 else { return };
        let (timer_type, space) = match expired {
            Expired::Nothing => return,
            // The schema's word for the time threshold.
            Expired::LossDetected => (TimerType::Ack, None),
            Expired::Probe { space, .. } => (TimerType::Pto, Some(space)),
        };
        let event = TimerUpdated {
            timer_type: Some(timer_type),
            timer_id: None,
            packet_number_space: space.map(number_space),
            event_type: TimerEventType::Expired,
            delta: None,
        };
        trace.writer.event(now, EventData::QuicTimerUpdated(event));
    }

    /// A policy has something to say.
    pub(crate) fn notice(&mut self, now: Time, notice: &Notice) {
        let Some(trace) = &mut self.0 else { return };
        let data = serde_json::json!({ "policy": notice.policy, "text": notice.text });
        trace.writer.named_event(now, NOTICE, data);
    }

    /// The peer's transport parameters have come.
    pub(crate) fn peer_parameters(&mut self, now: Time, parameters: &TransportParameters) {
        let Some(trace) = &mut self.0 else { return };
        trace.peer_ack_delay_exponent = u8::try_from(parameters.ack_delay_exponent).unwrap_or(u8::MAX);
        trace.parameters(now, parameters, TransportInitiator::Remote);
    }

    /// The next key phase is one that the peer began.
    pub(crate) fn keys_updated_by_peer(&mut self) {
        if let Some(trace) = &mut self.0 {
            trace.is_key_update_by_peer = true;
        }
    }

    /// A space's keys are gone; for 1-RTT keys, those of this phase.
    pub(crate) fn keys_discarded(&mut self, now: Time, space: PacketSpace, key_phase: Option<u64>) {
        let Some(trace) = &mut self.0 else { return };
        let trigger = key_phase.is_none().then_some(KeyUpdateOrRetiredTrigger::Tls);
        for key_type in key_types(space) {
            let event = KeyDiscarded { key_type, key: None, key_phase, trigger: trigger.clone() };
            let data = serde_json::to_value(event).unwrap_or_default();
            trace.writer.named_event(now, KEY_DISCARDED, data);
        }
    }

    /// The connection is over, with this close if this end sends one.
    pub(crate) fn closed(&mut self, now: Time, reason: &CloseReason, close: Option<&CloseFrame>) {
        let Some(trace) = &mut self.0 else { return };
        trace.writer.event(now, EventData::QuicConnectionClosed(closed_event(reason, close)));
        trace.writer.flush();
    }
}

impl Trace {
    fn open_sink(&mut self) {
        if let Some(opener) = self.opener.take() {
            self.writer.set_sink(opener.open(&self.original_destination, self.side));
        }
    }

    /// What is known from the start.
    fn birth(&mut self, now: Time, birth: &Birth) {
        let versions = Some(version::SUPPORTED.map(version_text).to_vec());
        let (client_versions, server_versions) = match birth.side {
            Side::Client => (versions, None),
            Side::Server => (None, versions),
        };
        let chosen_version = Some(version_text(birth.setup.version));
        let event = QuicVersionInformation { server_versions, client_versions, chosen_version };
        self.writer.event(now, EventData::QuicVersionInformation(event));
        let event = ConnectionStarted {
            local: endpoint_info(None, birth.local_id.to_string()),
            remote: endpoint_info(Some(birth.remote), birth.remote_id.to_string()),
        };
        self.writer.event(now, EventData::QuicConnectionStarted(event));
        let limits = birth.streams.local_limits();
        let mut parameters = parameters::common(&birth.config, &limits, birth.local_id);
        if birth.side == Side::Server {
            parameters.original_destination_connection_id = Some(birth.setup.original_destination);
        }
        self.parameters(now, &parameters, TransportInitiator::Local);
        let datagram_size = birth.config.max_datagram_size;
        let window = birth.config.profile.start().initial_window(datagram_size.into());
        let event = RecoveryParametersSet {
            timer_granularity: Some(GRANULARITY.as_millis() as u16),
            initial_rtt: Some(Duration::from(birth.config.initial_rtt).as_millis_f64() as f32),
            max_datagram_size: Some(u32::try_from(datagram_size).unwrap_or(u32::MAX)),
            initial_congestion_window: Some(window.get()),
            ..RecoveryParametersSet::default()
        };
        self.writer.event(now, EventData::QuicRecoveryParametersSet(event));
    }

    fn parameters(&mut self, now: Time, parameters: &TransportParameters, initiator: TransportInitiator) {
        self.writer.event(now, EventData::QuicParametersSet(Box::new(parameters_set(parameters, initiator))));
    }
}

/// What the trace says of itself.
fn description(birth: &Birth) -> TraceSeq {
    let ty = match birth.side {
        Side::Client => VantagePointType::Client,
        Side::Server => VantagePointType::Server,
    };
    TraceSeq {
        title: None,
        description: None,
        common_fields: Some(CommonFields {
            tuple: None,
            group_id: Some(birth.setup.original_destination.to_string()),
            protocol_types: Some(vec!["QUIC".to_owned()]),
            reference_time: ReferenceTime::new_monotonic(None),
            time_format: Some(TimeFormat::RelativeToEpoch),
        }),
        vantage_point: Some(VantagePoint { name: None, ty, flow: None }),
        event_schemas: vec![qlog::events::QUIC_URI.to_owned()],
    }
}

fn closed_event(reason: &CloseReason, close: Option<&CloseFrame>) -> ConnectionClosed {
    use ConnectionClosedTrigger as Trigger;
    let (initiator, trigger) = match reason {
        CloseReason::Local { .. } | CloseReason::Violation(_) | CloseReason::Tls { .. } => {
            let is_application = close.is_some_and(|close| close.kind == CloseKind::Application);
            (TransportInitiator::Local, if is_application { Trigger::Application } else { Trigger::Error })
        }
        CloseReason::PeerApplication { .. } => (TransportInitiator::Remote, Trigger::Application),
        CloseReason::PeerTransport { .. } => (TransportInitiator::Remote, Trigger::Error),
        CloseReason::IdleTimeout => (TransportInitiator::Local, Trigger::IdleTimeout),
        CloseReason::StatelessReset => (TransportInitiator::Remote, Trigger::StatelessReset),
        CloseReason::VersionMismatch(_) => (TransportInitiator::Local, Trigger::VersionMismatch),
    };
    let transport = |code| {
        let error = transport_error(code);
        let code = (error == qlog::events::quic::TransportError::Unknown).then_some(code.0);
        (Some(ConnectionClosedEventError::TransportError(error)), None, code)
    };
    let application = |code| (None, Some(ApplicationError::Unknown), Some(code));
    let (connection_error, application_error, error_code) = match (reason, close) {
        (CloseReason::PeerApplication { error_code, .. }, _) => application(*error_code),
        (CloseReason::PeerTransport { code, .. }, _) => transport(*code),
        (_, Some(close)) if close.kind == CloseKind::Application => application(close.error_code),
        (_, Some(close)) => transport(TransportErrorCode(close.error_code)),
        (_, None) => (None, None, None),
    };
    let reason = match (reason, close) {
        (CloseReason::PeerApplication { reason, .. } | CloseReason::PeerTransport { reason, .. }, _) => {
            text(reason)
        }
        (CloseReason::Local { .. }, Some(close)) => text(&close.reason),
        (reason, _) => reason.to_string(),
    };
    ConnectionClosed {
        initiator: Some(initiator),
        connection_error,
        application_error,
        error_code,
        internal_code: None,
        reason: Some(reason),
        trigger: Some(trigger),
    }
}

pub(crate) fn endpoint_info(address: Option<SocketAddr>, id: String) -> TupleEndpointInfo {
    let (v4, v6) = match address {
        Some(SocketAddr::V4(address)) => (Some(address), None),
        Some(SocketAddr::V6(address)) => (None, Some(address)),
        None => (None, None),
    };
    TupleEndpointInfo {
        ip_v4: v4.map(|address| address.ip().to_string()),
        port_v4: v4.map(|address| address.port()),
        ip_v6: v6.map(|address| address.ip().to_string()),
        port_v6: v6.map(|address| address.port()),
        connection_ids: Some(vec![id]),
    }
}

fn version_text(version: u32) -> String {
    format!("{version:08x}")
}

fn header(packet_type: qlog::events::quic::PacketType, number: Option<u64>) -> PacketHeader {
    PacketHeader { packet_type, packet_number: number, ..PacketHeader::default() }
}

fn raw(len: usize, payload_len: Option<usize>) -> RawInfo {
    RawInfo { length: Some(len as u64), payload_length: payload_len.map(|len| len as u64), data: None }
}

const fn packet_type(packet_type: PacketType) -> qlog::events::quic::PacketType {
    match packet_type {
        PacketType::Initial => qlog::events::quic::PacketType::Initial,
        PacketType::ZeroRtt => qlog::events::quic::PacketType::ZeroRtt,
        PacketType::Handshake => qlog::events::quic::PacketType::Handshake,
        PacketType::Retry => qlog::events::quic::PacketType::Retry,
        PacketType::VersionNegotiation => qlog::events::quic::PacketType::VersionNegotiation,
        PacketType::Short => qlog::events::quic::PacketType::OneRtt,
    }
}

fn sent_type(packet: &OpenPacket) -> qlog::events::quic::PacketType {
    if packet.is_early { qlog::events::quic::PacketType::ZeroRtt } else { space_type(packet.space) }
}

/// The type of the packets that this end sends in a space.
const fn space_type(space: PacketSpace) -> qlog::events::quic::PacketType {
    match space {
        PacketSpace::Initial => qlog::events::quic::PacketType::Initial,
        PacketSpace::Handshake => qlog::events::quic::PacketType::Handshake,
        PacketSpace::Data => qlog::events::quic::PacketType::OneRtt,
    }
}

const fn number_space(space: PacketSpace) -> PacketNumberSpace {
    match space {
        PacketSpace::Initial => PacketNumberSpace::Initial,
        PacketSpace::Handshake => PacketNumberSpace::Handshake,
        PacketSpace::Data => PacketNumberSpace::ApplicationData,
    }
}

/// The client's and the server's secret of a space.
pub(crate) const fn key_types(space: PacketSpace) -> [KeyType; 2] {
    match space {
        PacketSpace::Initial => [KeyType::ClientInitialSecret, KeyType::ServerInitialSecret],
        PacketSpace::Handshake => [KeyType::ClientHandshakeSecret, KeyType::ServerHandshakeSecret],
        PacketSpace::Data => [KeyType::Client1RttSecret, KeyType::Server1RttSecret],
    }
}
