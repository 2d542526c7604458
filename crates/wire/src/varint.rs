//! Variable-length integers (RFC 9000 section 16).

/// The largest integer that fits: 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;
