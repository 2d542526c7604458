//! One network path: its addresses, whether the peer's is validated, and its control state.
//!
//! Migration and MTU discovery (`validate.rs`, `mtu.rs`, `migrate.rs`) come with a later issue; a connection
//! has one path until then.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use crate::control::PathControl;
use crate::datagram_builder::MIN_INITIAL_DATAGRAM;
use crate::limits;

/// The path that a connection uses.
pub(crate) struct Path {
    /// The peer's address.
    pub(crate) remote: SocketAddr,
    /// The local address that the peer reached, to answer from.
    pub(crate) local_ip: Option<IpAddr>,
    /// How fast.
    pub(crate) control: PathControl,
    /// Size of the datagrams sent.
    pub(crate) max_datagram_size: usize,
    is_validated: bool,
    received: u64,
    sent: u64,
    responses: VecDeque<[u8; 8]>,
}

impl Path {
    /// A path to `remote`. A client's path needs no validation: the client chose it.
    pub(crate) fn new(
        remote: SocketAddr,
        control: PathControl,
        max_datagram_size: usize,
        is_validated: bool,
    ) -> Self {
        Self {
            remote,
            local_ip: None,
            control,
            max_datagram_size,
            is_validated,
            received: 0,
            sent: 0,
            responses: VecDeque::new(),
        }
    }

    /// Counts bytes received on the path.
    pub(crate) fn on_received(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// Counts bytes sent on the path.
    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }

    /// The peer has shown that it receives at its address (RFC 9000 section 8.1).
    pub(crate) fn validate(&mut self) {
        self.is_validated = true;
    }

    /// True if a datagram from `remote` may be taken in: until its address is validated, a path must not let
    /// others raise what may be sent to that address.
    pub(crate) fn accepts(&self, remote: SocketAddr) -> bool {
        self.is_validated || remote == self.remote
    }

    /// Bytes that may still be sent under the anti-amplification limit (RFC 9000 section 8.1).
    pub(crate) fn amplification_budget(&self) -> usize {
        if self.is_validated {
            return usize::MAX;
        }
        let limit = self.received.saturating_mul(limits::AMPLIFICATION_FACTOR);
        usize::try_from(limit.saturating_sub(self.sent)).unwrap_or(usize::MAX)
    }

    /// True if the limit leaves no room for another datagram.
    pub(crate) fn is_amplification_blocked(&self) -> bool {
        self.amplification_budget() < self.datagram_limit()
    }

    /// Size of the next datagram at most. Before the address is validated it is the least that a handshake may
    /// use: three such datagrams are just what one full Initial permits.
    pub(crate) fn datagram_limit(&self) -> usize {
        if self.is_validated {
            self.max_datagram_size
        } else {
            MIN_INITIAL_DATAGRAM.min(self.max_datagram_size)
        }
    }

    /// Owes the peer an answer to its `PATH_CHALLENGE`; a flood makes the oldest be forgotten.
    pub(crate) fn challenge_received(&mut self, data: [u8; 8]) {
        if self.responses.len() >= limits::PENDING_PATH_RESPONSES {
            self.responses.pop_front();
        }
        self.responses.push_back(data);
    }

    /// True if a `PATH_RESPONSE` is owed.
    pub(crate) fn owes_response(&self) -> bool {
        !self.responses.is_empty()
    }

    /// The oldest `PATH_RESPONSE` owed.
    pub(crate) fn next_response(&self) -> Option<[u8; 8]> {
        self.responses.front().copied()
    }

    /// The oldest response has been sent. It is not repeated when lost (RFC 9000 section 13.3).
    pub(crate) fn response_sent(&mut self) {
        self.responses.pop_front();
    }
}
