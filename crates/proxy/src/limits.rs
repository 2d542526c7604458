//! Bounds on what an upstream and a client can fill.

/// Largest head of an upstream's response, and what of a message waits in memory for the other side, in bytes.
pub(crate) const RESPONSE_HEAD: usize = 64 * 1024;

/// Fields of a response's head.
pub(crate) const RESPONSE_FIELDS: usize = 256;

/// Names in a request's `trailer` field that are told to the upstream; trailers of other names are dropped.
pub(crate) const TRAILER_NAMES: usize = 32;

/// Bytes of responses that an upstream over HTTP/2 may send before clients take them: of one response, and of all on a
/// connection. Responses that wait for their clients do not keep the others waiting until there are 256 of them.
pub(crate) const STREAM_WINDOW: u32 = 64 * 1024;
pub(crate) const CONNECTION_WINDOW: u32 = 256 * STREAM_WINDOW;

/// Bytes of links in a 103; what has more is not passed on.
pub(crate) const HINT: usize = 16 * 1024;
