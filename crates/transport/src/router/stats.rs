//! Counters of an endpoint.

/// An endpoint's counters: what was dropped before it reached a connection, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointStats {
    /// Connections accepted in all.
    pub accepted: u64,
    /// Datagrams whose header could not be parsed.
    pub malformed: u64,
    /// Datagrams for no connection, and not worth an answer.
    pub unroutable: u64,
    /// Datagrams given back because another endpoint on the same port owns them.
    pub misplaced: u64,
    /// Datagrams of 0-RTT packets that were kept because they came before the Initial that begins their connection.
    pub early_kept: u64,
    /// Initials dropped: too small, or too many handshakes in progress, or not accepting.
    pub refused: u64,
    /// Handshakes in progress given up for newer ones: nobody had answered them for the longest time.
    pub evicted: u64,
    /// Retry packets sent.
    pub retries_sent: u64,
    /// Initials answered with `INVALID_TOKEN`.
    pub invalid_tokens: u64,
    /// Connections accepted from clients that showed a good token.
    pub validated_by_token: u64,
    /// Stateless resets sent.
    pub resets_sent: u64,
    /// Version negotiation packets sent.
    pub version_negotiations_sent: u64,
}
