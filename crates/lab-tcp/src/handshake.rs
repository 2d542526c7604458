//! What TLS 1.3 and HTTP add to the bytes of the streams: the constants of the model.
//!
//! The flights are those of the certificates and settings in the lab's TLS, which the QUIC stacks really
//! exchange: X25519, an Ed25519 certificate, no session tickets. A test performs that handshake over a byte stream
//! and counts. HTTP's own sizes are its RFC's frame layouts with the settings that browsers and servers send.

/// The client's first flight: a record with `ClientHello`.
pub const CLIENT_HELLO: u64 = 240;

/// The server's flight: `ServerHello` to `Finished`.
pub const SERVER_FLIGHT: u64 = 592;

/// The client's second flight: `ChangeCipherSpec` for middleboxes and `Finished`.
pub const CLIENT_FINISHED: u64 = 80;

/// What a TLS record adds: header, content type and tag (RFC 8446 5.2).
pub const RECORD_OVERHEAD: u64 = 5 + 1 + 16;

/// Most bytes in a record (RFC 8446 5.1).
pub const MAX_RECORD: u64 = 1 << 14;

/// What an HTTP/2 frame adds (RFC 9113 4.1).
pub const FRAME_OVERHEAD: u64 = 9;

/// The last chunk of HTTP/1.1's chunked coding (RFC 9112 7.1), where an end comes after its data has left.
pub const LAST_CHUNK: u64 = 5;

/// The client's preface, SETTINGS of four values and `WINDOW_UPDATE`, in one record.
pub const CLIENT_SETTINGS: u64 = 24 + (FRAME_OVERHEAD + 4 * 6) + (FRAME_OVERHEAD + 4) + RECORD_OVERHEAD;

/// The server's SETTINGS of three values and its acknowledgement of the client's.
pub const SERVER_SETTINGS: u64 = (FRAME_OVERHEAD + 3 * 6) + FRAME_OVERHEAD + RECORD_OVERHEAD;

/// The client's acknowledgement of the server's settings.
pub const SETTINGS_ACK: u64 = FRAME_OVERHEAD + RECORD_OVERHEAD;
