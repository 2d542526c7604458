//! Bounds on what an upstream and a client can fill.

/// Largest head of an upstream's response, and what of a message waits in memory for the other side, in bytes.
pub(crate) const RESPONSE_HEAD: usize = 64 * 1024;

/// Fields of a response's head.
pub(crate) const RESPONSE_FIELDS: usize = 256;

/// Names in a request's `trailer` field that are told to the upstream; trailers of other names are dropped.
pub(crate) const TRAILER_NAMES: usize = 32;
