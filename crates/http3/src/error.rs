//! Errors of the peer, with the codes that it receives.

use std::fmt;

/// An error code of HTTP/3 (RFC 9114 section 8.1) or QPACK (RFC 9204 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub u64);

impl Code {
    /// No error: the connection or stream is no longer needed.
    pub const H3_NO_ERROR: Self = Self(0x100);
    /// Protocol violation without a more specific code.
    pub const H3_GENERAL_PROTOCOL_ERROR: Self = Self(0x101);
    /// Internal error of this end.
    pub const H3_INTERNAL_ERROR: Self = Self(0x102);
    /// The peer created a stream that is not accepted.
    pub const H3_STREAM_CREATION_ERROR: Self = Self(0x103);
    /// A critical stream was closed.
    pub const H3_CLOSED_CRITICAL_STREAM: Self = Self(0x104);
    /// A frame is not permitted in this state or on this stream.
    pub const H3_FRAME_UNEXPECTED: Self = Self(0x105);
    /// A frame is badly formed or of the wrong size.
    pub const H3_FRAME_ERROR: Self = Self(0x106);
    /// The peer causes excessive load.
    pub const H3_EXCESSIVE_LOAD: Self = Self(0x107);
    /// Invalid identifier: beyond a limit, decreasing, or used twice.
    pub const H3_ID_ERROR: Self = Self(0x108);
    /// Invalid payload of a SETTINGS frame.
    pub const H3_SETTINGS_ERROR: Self = Self(0x109);
    /// The control stream does not begin with SETTINGS.
    pub const H3_MISSING_SETTINGS: Self = Self(0x10a);
    /// The server has not processed the request.
    pub const H3_REQUEST_REJECTED: Self = Self(0x10b);
    /// The request or its response is no longer wanted.
    pub const H3_REQUEST_CANCELLED: Self = Self(0x10c);
    /// The stream ended before the request was complete.
    pub const H3_REQUEST_INCOMPLETE: Self = Self(0x10d);
    /// A message is malformed.
    pub const H3_MESSAGE_ERROR: Self = Self(0x10e);
    /// The connection behind a CONNECT request broke.
    pub const H3_CONNECT_ERROR: Self = Self(0x10f);
    /// The operation must be done over another version of HTTP.
    pub const H3_VERSION_FALLBACK: Self = Self(0x110);
    /// A field section cannot be decoded.
    pub const QPACK_DECOMPRESSION_FAILED: Self = Self(0x200);
    /// Invalid instruction on the encoder stream.
    pub const QPACK_ENCODER_STREAM_ERROR: Self = Self(0x201);
    /// Invalid instruction on the decoder stream.
    pub const QPACK_DECODER_STREAM_ERROR: Self = Self(0x202);

    /// The number on the wire.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The registered name, if it has one.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::H3_NO_ERROR => "H3_NO_ERROR",
            Self::H3_GENERAL_PROTOCOL_ERROR => "H3_GENERAL_PROTOCOL_ERROR",
            Self::H3_INTERNAL_ERROR => "H3_INTERNAL_ERROR",
            Self::H3_STREAM_CREATION_ERROR => "H3_STREAM_CREATION_ERROR",
            Self::H3_CLOSED_CRITICAL_STREAM => "H3_CLOSED_CRITICAL_STREAM",
            Self::H3_FRAME_UNEXPECTED => "H3_FRAME_UNEXPECTED",
            Self::H3_FRAME_ERROR => "H3_FRAME_ERROR",
            Self::H3_EXCESSIVE_LOAD => "H3_EXCESSIVE_LOAD",
            Self::H3_ID_ERROR => "H3_ID_ERROR",
            Self::H3_SETTINGS_ERROR => "H3_SETTINGS_ERROR",
            Self::H3_MISSING_SETTINGS => "H3_MISSING_SETTINGS",
            Self::H3_REQUEST_REJECTED => "H3_REQUEST_REJECTED",
            Self::H3_REQUEST_CANCELLED => "H3_REQUEST_CANCELLED",
            Self::H3_REQUEST_INCOMPLETE => "H3_REQUEST_INCOMPLETE",
            Self::H3_MESSAGE_ERROR => "H3_MESSAGE_ERROR",
            Self::H3_CONNECT_ERROR => "H3_CONNECT_ERROR",
            Self::H3_VERSION_FALLBACK => "H3_VERSION_FALLBACK",
            Self::QPACK_DECOMPRESSION_FAILED => "QPACK_DECOMPRESSION_FAILED",
            Self::QPACK_ENCODER_STREAM_ERROR => "QPACK_ENCODER_STREAM_ERROR",
            Self::QPACK_DECODER_STREAM_ERROR => "QPACK_DECODER_STREAM_ERROR",
            _ => return None,
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

/// A violation that ends the connection. Callers must close it with `code` (RFC 9114 section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} ({code})")]
pub struct Error {
    /// Error code required by the RFC.
    pub code: Code,
    /// Description for logs and for the reason of the close.
    pub reason: &'static str,
}

impl Error {
    pub(crate) const fn new(code: Code, reason: &'static str) -> Self {
        Self { code, reason }
    }

    pub(crate) const fn frame(reason: &'static str) -> Self {
        Self::new(Code::H3_FRAME_ERROR, reason)
    }

    pub(crate) const fn unexpected(reason: &'static str) -> Self {
        Self::new(Code::H3_FRAME_UNEXPECTED, reason)
    }
}

/// Error while reading a message. All but [`Self::Connection`] affect only its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A violation that ends the connection.
    #[error(transparent)]
    Connection(#[from] Error),
    /// The message is malformed (RFC 9114 section 4.1.2); why.
    #[error("malformed message: {0}")]
    Malformed(&'static str),
    /// The length of the content differs from `content-length` (RFC 9114 section 4.1.2).
    #[error("the message has {received} bytes of content and not the {announced} that it announced")]
    Length {
        /// The value of `content-length`.
        announced: u64,
        /// Bytes received; if more than announced, the bytes so far.
        received: u64,
    },
    /// The field section is larger than the announced maximum (RFC 9114 section 4.2.2).
    #[error("the field section is larger than {limit} bytes")]
    TooLarge {
        /// The announced maximum, in bytes.
        limit: u64,
    },
    /// The stream ended before the message was complete (RFC 9114 section 4.1).
    #[error("the stream ended before the message was whole")]
    Incomplete,
}

impl MessageError {
    /// The code for the connection's close, or for the stream's reset.
    pub const fn code(&self) -> Code {
        match self {
            Self::Connection(error) => error.code,
            Self::Malformed(_) | Self::Length { .. } => Code::H3_MESSAGE_ERROR,
            Self::TooLarge { .. } => Code::H3_EXCESSIVE_LOAD,
            Self::Incomplete => Code::H3_REQUEST_INCOMPLETE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_show_their_names_and_unknown_ones_their_numbers() {
        assert_eq!(Code::H3_MESSAGE_ERROR.to_string(), "H3_MESSAGE_ERROR");
        assert_eq!(Code(0x21).to_string(), "0x21");
        let error = Error::frame("a frame ends within a field");
        assert_eq!(error.to_string(), "a frame ends within a field (H3_FRAME_ERROR)");
    }

    #[test]
    fn every_registered_code_has_a_name() {
        for value in (0x100..=0x110).chain(0x200..=0x202) {
            assert!(Code(value).name().is_some(), "{value:#x}");
        }
        assert_eq!(Code(0x111).name(), None);
    }
}
