//! The wire's frames, transport parameters and error codes in qlog's words.

use bytes::Bytes;
use posthaste_wire::frame::{self, AckFrame, AckWindowFrame, CloseFrame, CloseKind};
use posthaste_wire::{ConnectionId, Direction, Frame, TransportParameters};
use qlog::events::quic::{
    AckRange, ErrorSpace, ParametersSet, QuicFrame, StreamType, TransportError, TransportInitiator,
};
use qlog::events::{ApplicationError, ConnectionClosedFrameError, RawInfo};
use qlog::{HexSlice, Token};

use crate::error::TransportErrorCode;
use crate::limits;

/// The frames of a packet's payload; what follows a malformed one is left out. `ack_delay_exponent` is that of the
/// packet's sender.
pub(super) fn frames(payload: Bytes, ack_delay_exponent: u8) -> Vec<QuicFrame> {
    let mut frames = Vec::new();
    let mut iter = frame::Iter::new(payload);
    while frames.len() < limits::TRACED_FRAMES {
        let before = iter.remaining();
        match iter.next() {
            None => break,
            Some(Ok(frame)) => {
                let len = before.saturating_sub(iter.remaining());
                if let Frame::AckWindow(frame) = &frame {
                    frames.extend(limits_of(frame));
                }
                frames.push(convert(frame, len, ack_delay_exponent));
            }
            Some(Err(error)) => {
                let frame_type_bytes = Some(error.frame_type);
                frames.push(QuicFrame::Unknown { frame_type_bytes, raw: None });
            }
        }
    }
    frames
}

/// `len` is the frame's length on the wire.
#[expect(clippy::too_many_lines, reason = "a flat table of frames")]
fn convert(frame: Frame, len: usize, ack_delay_exponent: u8) -> QuicFrame {
    let raw = None;
    let error = ApplicationError::Unknown;
    match frame {
        Frame::Padding => QuicFrame::Padding { raw: data_len(len) },
        Frame::Ping => QuicFrame::Ping { raw },
        Frame::Ack(ack) => convert_ack(&ack, ack_delay_exponent),
        Frame::AckWindow(frame) => convert_ack(&frame.ack, ack_delay_exponent),
        Frame::ResetStream(reset) => QuicFrame::ResetStream {
            stream_id: reset.id.to_wire(),
            error,
            error_code: Some(reset.error_code),
            final_size: reset.final_size,
            raw,
        },
        Frame::StopSending(stop) => QuicFrame::StopSending {
            stream_id: stop.id.to_wire(),
            error,
            error_code: Some(stop.error_code),
            raw,
        },
        Frame::Crypto(crypto) => {
            QuicFrame::Crypto { offset: crypto.offset, raw: data_len(crypto.data.len()) }
        }
        Frame::NewToken(token) => {
            // The token itself would let a reader of the trace pass as the client.
            let raw_token = data_len(token.len()).map(|raw| *raw);
            QuicFrame::NewToken { token: Token { ty: None, details: None, raw: raw_token }, raw }
        }
        Frame::Stream(stream) => QuicFrame::Stream {
            stream_id: stream.id.to_wire(),
            offset: Some(stream.offset),
            fin: stream.fin.then_some(true),
            raw: data_len(stream.data.len()),
        },
        Frame::MaxData(maximum) => QuicFrame::MaxData { maximum, raw },
        Frame::MaxStreamData { id, maximum } => {
            QuicFrame::MaxStreamData { stream_id: id.to_wire(), maximum, raw }
        }
        Frame::MaxStreams { direction, maximum } => {
            QuicFrame::MaxStreams { stream_type: stream_type(direction), maximum, raw }
        }
        Frame::DataBlocked(limit) => QuicFrame::DataBlocked { limit, raw },
        Frame::StreamDataBlocked { id, limit } => {
            QuicFrame::StreamDataBlocked { stream_id: id.to_wire(), limit, raw }
        }
        Frame::StreamsBlocked { direction, limit } => {
            QuicFrame::StreamsBlocked { stream_type: stream_type(direction), limit, raw }
        }
        Frame::NewConnectionId(new) => QuicFrame::NewConnectionId {
            sequence_number: new.sequence,
            retire_prior_to: new.retire_prior_to,
            connection_id_length: Some(new.id.len() as u8),
            connection_id: new.id.to_string(),
            // Who knows it can end the connection.
            stateless_reset_token: None,
            raw,
        },
        Frame::RetireConnectionId(sequence_number) => QuicFrame::RetireConnectionId { sequence_number, raw },
        Frame::PathChallenge(data) => {
            QuicFrame::PathChallenge { data: Some(HexSlice::new(&data).to_string()), raw }
        }
        Frame::PathResponse(data) => {
            QuicFrame::PathResponse { data: Some(HexSlice::new(&data).to_string()), raw }
        }
        Frame::Close(close) => convert_close(&close),
        Frame::Datagram(message) => QuicFrame::Datagram { raw: data_len(message.len()) },
        Frame::HandshakeDone => QuicFrame::HandshakeDone { raw },
        // The event types know no other frames of extensions.
        frame => QuicFrame::Unknown { frame_type_bytes: Some(frame.frame_type()), raw: data_len(len) },
    }
}

/// qlog knows no `ACK_WINDOW`: it is shown as the frames that it stands for.
fn limits_of(frame: &AckWindowFrame) -> impl Iterator<Item = QuicFrame> {
    let raw = None;
    let limits = frame.update.streams.iter();
    let streams =
        limits.map(|&(id, maximum)| QuicFrame::MaxStreamData { stream_id: id.to_wire(), maximum, raw: None });
    std::iter::once(QuicFrame::MaxData { maximum: frame.update.max_data, raw }).chain(streams)
}

fn convert_ack(ack: &AckFrame, ack_delay_exponent: u8) -> QuicFrame {
    let ranges = ack.ranges.iter().map(|range| AckRange::new(*range.start(), *range.end()));
    let factor = 1_u64.checked_shl(ack_delay_exponent.into()).unwrap_or(u64::MAX);
    let delay = ack.delay.saturating_mul(factor);
    QuicFrame::Ack {
        ack_delay: Some((delay as f64 / 1000.0) as f32),
        acked_ranges: Some(ranges.collect()),
        ect1: ack.ecn.map(|counts| counts.ect1),
        ect0: ack.ecn.map(|counts| counts.ect0),
        ce: ack.ecn.map(|counts| counts.ce),
        raw: None,
    }
}

fn convert_close(close: &CloseFrame) -> QuicFrame {
    let (space, error, trigger_frame_type) = match close.kind {
        CloseKind::Transport { frame_type } => {
            let error = transport_error(TransportErrorCode(close.error_code));
            (ErrorSpace::Transport, ConnectionClosedFrameError::TransportError(error), Some(frame_type))
        }
        CloseKind::Application => {
            let error = ConnectionClosedFrameError::ApplicationError(ApplicationError::Unknown);
            (ErrorSpace::Application, error, None)
        }
    };
    QuicFrame::ConnectionClose {
        error_space: Some(space),
        error: Some(error),
        error_code: Some(close.error_code),
        reason: Some(text(&close.reason)),
        reason_bytes: None,
        trigger_frame_type,
    }
}

/// The transport parameters of one end.
pub(super) fn parameters_set(
    parameters: &TransportParameters,
    initiator: TransportInitiator,
) -> ParametersSet {
    let id = |id: Option<ConnectionId>| id.map(|id| id.to_string());
    let datagrams = Some(parameters.max_datagram_frame_size).filter(|size| *size > 0);
    ParametersSet {
        initiator: Some(initiator),
        original_destination_connection_id: id(parameters.original_destination_connection_id),
        initial_source_connection_id: id(parameters.initial_source_connection_id),
        retry_source_connection_id: id(parameters.retry_source_connection_id),
        // Who knows it can end the connection.
        stateless_reset_token: None,
        disable_active_migration: Some(parameters.disable_active_migration),
        max_idle_timeout: Some(parameters.max_idle_timeout),
        max_udp_payload_size: Some(parameters.max_udp_payload_size),
        ack_delay_exponent: Some(parameters.ack_delay_exponent),
        max_ack_delay: Some(parameters.max_ack_delay),
        active_connection_id_limit: Some(parameters.active_connection_id_limit),
        initial_max_data: Some(parameters.initial_max_data),
        initial_max_stream_data_bidi_local: Some(parameters.initial_max_stream_data_bidi_local),
        initial_max_stream_data_bidi_remote: Some(parameters.initial_max_stream_data_bidi_remote),
        initial_max_stream_data_uni: Some(parameters.initial_max_stream_data_uni),
        initial_max_streams_bidi: Some(parameters.initial_max_streams_bidi),
        initial_max_streams_uni: Some(parameters.initial_max_streams_uni),
        max_datagram_frame_size: datagrams,
        ..ParametersSet::default()
    }
}

/// The length of what a frame carries. The schema calls the length field of STREAM and CRYPTO frames `length`; tools
/// that were made for its older versions look for `payload_length`.
#[expect(clippy::unnecessary_wraps, reason = "what the frames' `raw` fields are")]
fn data_len(len: usize) -> Option<Box<RawInfo>> {
    let len = Some(len as u64);
    Some(Box::new(RawInfo { length: len, payload_length: len, data: None }))
}

const fn stream_type(direction: Direction) -> StreamType {
    match direction {
        Direction::Bidirectional => StreamType::Bidirectional,
        Direction::Unidirectional => StreamType::Unidirectional,
    }
}

/// A reason phrase, which its sender need not have made valid text.
pub(super) fn text(reason: &[u8]) -> String {
    String::from_utf8_lossy(reason).into_owned()
}

/// qlog's word for a code. It has none for those of TLS: `unknown` then, beside the code itself.
pub(super) fn transport_error(code: TransportErrorCode) -> TransportError {
    match code {
        TransportErrorCode::NO_ERROR => TransportError::NoError,
        TransportErrorCode::INTERNAL_ERROR => TransportError::InternalError,
        TransportErrorCode::CONNECTION_REFUSED => TransportError::ConnectionRefused,
        TransportErrorCode::FLOW_CONTROL_ERROR => TransportError::FlowControlError,
        TransportErrorCode::STREAM_LIMIT_ERROR => TransportError::StreamLimitError,
        TransportErrorCode::STREAM_STATE_ERROR => TransportError::StreamStateError,
        TransportErrorCode::FINAL_SIZE_ERROR => TransportError::FinalSizeError,
        TransportErrorCode::FRAME_ENCODING_ERROR => TransportError::FrameEncodingError,
        TransportErrorCode::TRANSPORT_PARAMETER_ERROR => TransportError::TransportParameterError,
        TransportErrorCode::CONNECTION_ID_LIMIT_ERROR => TransportError::ConnectionIdLimitError,
        TransportErrorCode::PROTOCOL_VIOLATION => TransportError::ProtocolViolation,
        TransportErrorCode::INVALID_TOKEN => TransportError::InvalidToken,
        TransportErrorCode::APPLICATION_ERROR => TransportError::ApplicationError,
        TransportErrorCode::CRYPTO_BUFFER_EXCEEDED => TransportError::CryptoBufferExceeded,
        TransportErrorCode::KEY_UPDATE_ERROR => TransportError::KeyUpdateError,
        TransportErrorCode::AEAD_LIMIT_REACHED => TransportError::AeadLimitReached,
        TransportErrorCode::NO_VIABLE_PATH => TransportError::NoViablePath,
        _ => TransportError::Unknown,
    }
}

#[cfg(test)]
mod tests;
