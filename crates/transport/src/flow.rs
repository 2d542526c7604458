//! Flow control (RFC 9000 section 4): one window of credit that this end grants, one that the peer grants.
//!
//! Streams and the connection use the same two types; for the connection "received" and "used" are sums over
//! its streams.

pub(crate) mod receive_budget;
pub(crate) mod send_budget;
pub(crate) mod shared_memory;

use posthaste_policy::Credit;
use posthaste_policy::sample::{ArrivalView, CreditMoment, WindowView};
use posthaste_units::{ByteCount, Duration, Time};
use posthaste_wire::frame::ack_window;
use posthaste_wire::{Side, varint};

use receive_budget::Account;

/// What a credit policy is told beside the window itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CreditContext {
    /// The time.
    pub(crate) now: Time,
    /// The smoothed RTT, once there is one.
    pub(crate) rtt: Option<Duration>,
    /// Largest datagram that the path carries.
    pub(crate) max_datagram_size: ByteCount,
    /// How packets have been arriving.
    pub(crate) arrivals: ArrivalView,
    /// The least window, of a path whose rate is known to the application; zero where it is not.
    pub(crate) floor: ByteCount,
}

#[cfg(test)]
impl CreditContext {
    /// Of tests: the beginning, when nothing has been measured.
    pub(crate) fn unmeasured() -> Self {
        Self {
            now: Time::ZERO,
            rtt: None,
            max_datagram_size: ByteCount::new(1252),
            arrivals: ArrivalView::default(),
            floor: ByteCount::ZERO,
        }
    }
}

/// What a credit policy is told of a stream's window beside that: of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Surroundings {
    /// How far the connection's limit may be ahead of what has been read.
    pub(crate) allowance: Option<u64>,
    /// Data have arrived in the window since the last ACK frame.
    pub(crate) is_ack_due: bool,
    /// Updates that the policy grants with an ACK travel in it, and need no frames.
    pub(crate) rides: bool,
}

/// The credit that this end has granted, and the policy that decides about more.
#[derive(Debug, Default)]
pub(crate) struct ReceiveWindow {
    /// `None` until a stream's policy is first asked.
    credit: Option<Box<dyn Credit>>,
    /// What the connection holds of the budget; streams have none of their own.
    account: Option<Account>,
    advertised: u64,
    received: u64,
    /// Bytes that have arrived, and all before them in their stream, or that will never be read.
    ordered: u64,
    consumed: u64,
    is_update_pending: bool,
    /// The limit has grown, and the ACK frame that leaves now is to tell.
    is_ride_pending: bool,
}

impl ReceiveWindow {
    /// A window of which `initial` bytes have been granted in the transport parameters.
    pub(crate) fn new(credit: Box<dyn Credit>, initial: u64) -> Self {
        Self { credit: Some(credit), ..Self::of_stream(initial) }
    }

    /// A stream's window, to be asked by [`Self::ask_or_make`]: its policy is made when it is first asked, which it never is
    /// where all of a stream comes at once.
    pub(crate) fn of_stream(initial: u64) -> Self {
        Self {
            credit: None,
            account: None,
            advertised: initial.min(varint::MAX),
            received: 0,
            ordered: 0,
            consumed: 0,
            is_update_pending: false,
            is_ride_pending: false,
        }
    }

    /// The window of a connection of this side: it grants in the transport parameters what its policy wants, or what
    /// `account` has for it, and later never more than that holds.
    pub(crate) fn rationed(side: Side, credit: Box<dyn Credit>, mut account: Account) -> Self {
        let initial = account.grant_first(side, credit.initial_window().get());
        Self { account: Some(account), ..Self::new(credit, initial) }
    }

    /// How far the limit may be ahead of what has been read, where that is rationed.
    pub(crate) fn allowance(&self) -> Option<u64> {
        self.account.as_ref().map(Account::allowance)
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

    /// Bytes received that have nothing missing before them.
    pub(crate) fn ordered(&self) -> u64 {
        self.ordered
    }

    /// Counts bytes as received without a gap before them.
    pub(crate) fn order(&mut self, bytes: u64) {
        self.ordered = self.ordered.saturating_add(bytes);
    }

    /// Counts bytes as read, or as never to be read, without asking the policy.
    pub(crate) fn consume(&mut self, bytes: u64) {
        self.consumed = self.consumed.saturating_add(bytes);
        if let Some(account) = &mut self.account {
            account.hold(self.advertised.saturating_sub(self.consumed));
        }
    }

    /// [`Self::ask`] of a stream: makes the policy if it has not been asked before.
    pub(crate) fn ask_or_make(
        &mut self,
        moment: CreditMoment,
        context: &CreditContext,
        around: &Surroundings,
        make: impl FnOnce() -> Box<dyn Credit>,
    ) -> bool {
        self.credit.get_or_insert_with(make);
        self.ask(moment, context, around)
    }

    /// Asks the policy whether to grant more. True if an update is now to be sent.
    pub(crate) fn ask(
        &mut self,
        moment: CreditMoment,
        context: &CreditContext,
        around: &Surroundings,
    ) -> bool {
        let view = WindowView {
            now: context.now,
            advertised: ByteCount::new(self.advertised),
            received: ByteCount::new(self.received),
            consumed: ByteCount::new(self.consumed),
            readable: ByteCount::new(self.ordered.saturating_sub(self.consumed)),
            rtt: context.rtt,
            max_datagram_size: context.max_datagram_size,
            allowance: self.allowance().or(around.allowance).map(ByteCount::new),
            arrivals: context.arrivals,
            is_ack_due: around.is_ack_due,
        };
        let is_asked = self.account.as_ref().is_none_or(|account| account.is_more_of_use(self.received));
        // spec: rfc9000 4.2 credit-without-being-asked
        let credit = self.credit.as_mut().filter(|_| is_asked);
        if let Some(advance) = credit.and_then(|credit| credit.grant(moment, &view)) {
            self.advance(advance.get(), moment, around);
        }
        self.keep_floor(context.floor.get(), moment, around);
        self.is_update_pending || self.is_ride_pending
    }

    /// Whatever the policy says: a window of `floor` bytes, renewed at half of it, as far as memory is granted.
    fn keep_floor(&mut self, floor: u64, moment: CreditMoment, around: &Surroundings) {
        let floor = floor.min(self.allowance().or(around.allowance).unwrap_or(u64::MAX));
        let ahead = self.advertised.saturating_sub(self.consumed);
        if ahead < floor.div_ceil(2) {
            self.advance(floor - ahead, moment, around);
        }
    }

    fn advance(&mut self, advance: u64, moment: CreditMoment, around: &Surroundings) {
        // A limit is a varint; it can only grow (RFC 9000 section 4.1).
        let mut advertised = self.advertised.saturating_add(advance).min(varint::MAX);
        // What is granted with no acknowledgement to tell of it must arrive by itself.
        let rides = around.rides && moment != CreditMoment::Consumed;
        if rides {
            advertised = (advertised - advertised % ack_window::UNIT).max(self.advertised);
        }
        if let Some(account) = &mut self.account {
            // Whatever the policy says: the budget holds.
            let held = account.hold(advertised.saturating_sub(self.consumed));
            advertised = advertised.min(self.consumed.saturating_add(held)).max(self.advertised);
        }
        if advertised > self.advertised {
            self.advertised = advertised;
            self.is_ride_pending |= rides;
            self.is_update_pending |= !rides;
        }
    }

    /// True if the ACK frame that leaves now is to tell the limit.
    pub(crate) fn is_ride_pending(&self) -> bool {
        self.is_ride_pending
    }

    /// An ACK frame has told the limit; what of it must arrive by itself still must.
    pub(crate) fn rode(&mut self) {
        self.is_ride_pending = false;
    }

    /// No ACK frame has told the limit: a frame of its own must.
    pub(crate) fn missed_ride(&mut self) {
        self.is_update_pending |= std::mem::take(&mut self.is_ride_pending);
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
mod tests;
