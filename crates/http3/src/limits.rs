//! Bounds on everything that a peer can fill.

/// Largest payload of a HEADERS frame in bytes, which is buffered until it is complete. The announced size of field
/// sections bounds the decoded fields (RFC 9114 section 4.2.2); a reader that permits larger sections accepts equally
/// large frames.
pub const MAX_FRAME_PAYLOAD: u64 = 128 * 1024;

/// Largest payload of a frame on the control stream in bytes; settings and priority updates are small.
pub const MAX_CONTROL_FRAME: u64 = 4 * 1024;

/// Unidirectional streams of a peer that are read at the same time: three critical streams, and streams whose type has
/// not arrived. Streams of unknown types are stopped and do not count. As many as the transport permits by default: a
/// stream opens all with lower numbers (RFC 9000 section 2.1), whose first bytes may be late.
pub const MAX_UNIDIRECTIONAL_STREAMS: usize = 32;

/// Priority updates stored for requests that have not arrived (RFC 9218 section 7). Further updates are dropped, and
/// the header field of those requests applies.
pub const MAX_REMEMBERED_UPDATES: usize = 256;

/// Longest value of a Priority field that is parsed, in bytes; `u=7, i` needs six.
pub(crate) const MAX_PRIORITY_VALUE: usize = 1024;

/// Size of the dynamic table that this end's decoder keeps for the peer, in bytes (RFC 9204 section 3.2.3).
pub const DECODER_TABLE: u64 = 4096;

/// Streams of a peer that may wait for the dynamic table at the same time (RFC 9204 section 2.1.2). A stream that waits
/// keeps one field section, of at most [`MAX_FRAME_PAYLOAD`], and what has arrived behind it, of at most one read.
pub const MAX_BLOCKED_STREAMS: u64 = 100;

/// Largest table that this end's encoder uses, in bytes, however much the peer offers.
pub(crate) const MAX_ENCODER_TABLE: u64 = 4096;

/// Instructions of either QPACK stream that are kept, in bytes, for a peer that leaves no room on the stream. Beyond, the
/// encoder inserts nothing, and for the decoder the connection ends.
pub(crate) const MAX_UNSENT_INSTRUCTIONS: usize = 16 * 1024;

/// Sections whose acknowledgement the encoder waits for. Beyond, sections stand for themselves.
pub(crate) const MAX_UNACKNOWLEDGED_SECTIONS: usize = 256;
