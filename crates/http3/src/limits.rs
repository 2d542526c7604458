//! Every bound on what a peer can fill, in one place.

/// Most bytes of a HEADERS frame's payload, which is kept until it is whole. What it decodes to is bounded by the
/// announced size of field sections (RFC 9114 section 4.2.2); a reader that permits larger ones accepts frames as
/// large.
pub const MAX_FRAME_PAYLOAD: u64 = 128 * 1024;

/// Most bytes of a frame's payload on the control stream: settings and priority updates are small.
pub const MAX_CONTROL_FRAME: u64 = 4 * 1024;

/// Most unidirectional streams of a peer's that are read at once: three are critical, the others are those whose type
/// has not arrived yet. Streams of types that nobody wants are stopped and do not count.
pub const MAX_UNIDIRECTIONAL_STREAMS: usize = 16;

/// Most priority updates that are remembered for requests that have not arrived yet (RFC 9218 section 7); further
/// ones are forgotten, and those requests go by their header field.
pub const MAX_REMEMBERED_UPDATES: usize = 256;

/// Longest value of a Priority field that is parsed, in bytes; `u=7, i` needs six.
pub(crate) const MAX_PRIORITY_VALUE: usize = 1024;
