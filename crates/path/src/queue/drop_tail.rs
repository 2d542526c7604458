//! Drop-tail: newcomers are dropped where they find no room.

use posthaste_units::ByteCount;

/// A plain queue, which can mark before it drops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropTail {
    /// An ECN-capable packet that makes the waiting bytes exceed this is marked as it enters (RFC 3168 6.1.3: the
    /// step marking of data centres' switches). Default none: nothing is marked.
    pub mark_above: Option<ByteCount>,
}
