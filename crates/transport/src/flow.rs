//! Flow control (RFC 9000 section 4): one window of credit that this end grants, one that the peer grants.
//!
//! Streams and the connection use the same two types; for the connection "received" and "used" are sums over
//! its streams.

use posthaste_policy::Credit;
use posthaste_policy::sample::{CreditMoment, WindowView};
use posthaste_units::{ByteCount, Duration, Time};
use posthaste_wire::varint;

/// What a credit policy is told beside the window itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CreditContext {
    /// The time.
    pub(crate) now: Time,
    /// The smoothed RTT, once there is one.
    pub(crate) rtt: Option<Duration>,
    /// Largest datagram that the path carries.
    pub(crate) max_datagram_size: ByteCount,
}

/// The credit that this end has granted, and the policy that decides about more.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    credit: Box<dyn Credit>,
    advertised: u64,
    received: u64,
    consumed: u64,
    is_update_pending: bool,
}

impl ReceiveWindow {
    /// A window of which `initial` bytes have been granted in the transport parameters.
    pub(crate) fn new(credit: Box<dyn Credit>, initial: u64) -> Self {
        let advertised = initial.min(varint::MAX);
        Self { credit, advertised, received: 0, consumed: 0, is_update_pending: false }
    }

    /// The limit that the peer has been told, or will be with the next update.
    pub(crate) fn advertised(&self) -> u64 {
        self.advertised
    }

    /// Bytes received: the highest offset, or the sum of them.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that the application has read or will never read.
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Whether `bytes` more stay within the limit.
    pub(crate) fn permits(&self, bytes: u64) -> bool {
        self.received.saturating_add(bytes) <= self.advertised
    }

    /// Counts bytes received for the first time; the caller has asked [`Self::permits`].
    pub(crate) fn receive(&mut self, bytes: u64) {
        self.received = self.received.saturating_add(bytes);
    }

    /// Counts bytes as read, or as never to be read, without asking the policy.
    pub(crate) fn consume(&mut self, bytes: u64) {
        self.consumed = self.consumed.saturating_add(bytes);
    }

    /// Asks the policy whether to grant more. True if an update is now to be sent.
    pub(crate) fn ask(&mut self, moment: CreditMoment, context: &CreditContext) -> bool {
        let view = WindowView {
            now: context.now,
            advertised: ByteCount::new(self.advertised),
            received: ByteCount::new(self.received),
            consumed: ByteCount::new(self.consumed),
            rtt: context.rtt,
            max_datagram_size: context.max_datagram_size,
        };
        // spec: rfc9000 4.2 credit-without-being-asked
        if let Some(advance) = self.credit.grant(moment, &view) {
            // A limit is a varint; it can only grow (RFC 9000 section 4.1).
            let advertised = self.advertised.saturating_add(advance.get()).min(varint::MAX);
            self.is_update_pending |= advertised > self.advertised;
            self.advertised = advertised;
        }
        self.is_update_pending
    }

    /// True if a `MAX_DATA` or `MAX_STREAM_DATA` frame is to be sent.
    pub(crate) fn is_update_pending(&self) -> bool {
        self.is_update_pending
    }

    /// The update has been written.
    pub(crate) fn update_sent(&mut self) {
        self.is_update_pending = false;
    }

    /// An update was lost: the newest limit goes out again (RFC 9000 section 13.3).
    pub(crate) fn update_lost(&mut self) {
        self.is_update_pending = true;
    }
}

/// The credit that the peer has granted: bytes, or streams.
#[derive(Debug, Default)]
pub(crate) struct SendWindow {
    limit: u64,
    used: u64,
    /// The limit that a BLOCKED frame has been queued for: each limit is reported once.
    reported: Option<u64>,
    is_report_pending: bool,
}

impl SendWindow {
    /// A window with this limit, of which nothing is used.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The peer's limit.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// What has been used of it.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// What is left of it.
    pub(crate) fn available(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Uses a part of it.
    pub(crate) fn take(&mut self, amount: u64) {
        self.used = self.used.saturating_add(amount);
    }

    /// The peer names a limit; a lower one than before is void (RFC 9000 section 4.1). True if it grew.
    pub(crate) fn raise(&mut self, limit: u64) -> bool {
        // spec: rfc9000 4.1 lower-limit-is-void, 4.6 lower-count-is-void, 19.11 lower-count-ignored
        // spec: rfc9000 13.3 outdated-frames-taken
        if limit <= self.limit {
            return false;
        }
        self.limit = limit;
        self.is_report_pending = false;
        true
    }

    /// The limit is unknown again; what has been used stays so.
    pub(crate) fn start_over(&mut self) {
        *self = Self { used: self.used, ..Self::default() };
    }

    /// There is something to send that the limit does not permit: a BLOCKED frame is due once a limit.
    pub(crate) fn mark_blocked(&mut self) {
        if self.available() == 0 && self.reported != Some(self.limit) {
            self.reported = Some(self.limit);
            self.is_report_pending = true;
        }
    }

    /// The limit that a BLOCKED frame is to report.
    pub(crate) fn pending_report(&self) -> Option<u64> {
        self.is_report_pending.then_some(self.limit)
    }

    /// The report has been written.
    pub(crate) fn report_sent(&mut self) {
        self.is_report_pending = false;
    }

    /// A report was lost: it is repeated if the same limit still blocks.
    pub(crate) fn report_lost(&mut self) {
        self.is_report_pending = self.is_blocked();
    }

    /// True if the present limit has been found to block.
    pub(crate) fn is_blocked(&self) -> bool {
        self.available() == 0 && self.reported == Some(self.limit)
    }
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
