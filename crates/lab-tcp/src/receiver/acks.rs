//! When an acknowledgement leaves, as Linux decides: at once for the first segments and for what is out of order,
//! else for every second segment or after 40 ms, or with data.

use posthaste_units::{Duration, Time};

/// Acknowledgements sent at once after the start and after signs of loss.
const QUICK: u8 = 16;

/// How long an acknowledgement waits for company. (Linux moves it between 40 and 200 ms with the gaps between
/// segments; here it stays.)
const DELAY: Duration = Duration::from_millis(40);

/// Duplicate acknowledgements before several go into one, and at most how many.
const UNCOMPRESSED: u8 = 3;
const MAX_COMPRESSED: u32 = 44;

/// Several SACKs go into one for this long, or for a twentieth of the RTT if that is shorter.
const COMPRESSION: Duration = Duration::from_millis(1);

/// Where a segment's bytes belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Next in order, nothing is missing.
    InOrder,
    /// Next in order, other gaps remain.
    BeforeGap,
    /// Next in order, and the last gap is closed.
    ClosedGap,
    /// Beyond a gap.
    Early,
    /// Not new, or beyond the window.
    Duplicate,
}

/// Whether an acknowledgement is owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Debt {
    None,
    /// It may wait.
    Wanted,
    /// It must leave now.
    Due,
}

/// What is owed to the other end.
#[derive(Debug)]
pub(super) struct Acks {
    mss: u64,
    /// Segments that will be acknowledged at once.
    quick: u8,
    /// Data goes out soon after data comes in: acknowledgements ride on it.
    is_interactive: bool,
    has_seen_data: bool,
    debt: Debt,
    deadline: Option<Time>,
    /// Bytes that were in order when the last acknowledgement left.
    acknowledged: u64,
    last_data: Time,
    /// Duplicate acknowledgements of the same number so far, and the number.
    duplicates: (u8, u64),
    compressed: u32,
    compressed_until: Option<Time>,
}

impl Acks {
    pub(super) fn new(mss: u64) -> Self {
        Self {
            mss,
            quick: 0,
            is_interactive: false,
            has_seen_data: false,
            debt: Debt::None,
            deadline: None,
            acknowledged: 0,
            last_data: Time::ZERO,
            duplicates: (0, 0),
            compressed: 0,
            compressed_until: None,
        }
    }

    /// An acknowledgement must leave now.
    pub(super) fn require(&mut self) {
        self.debt = Debt::Due;
    }

    pub(super) fn is_due(&self) -> bool {
        self.debt == Debt::Due
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.debt != Debt::None
    }

    /// A segment with data has arrived; `next` is what is now in order, `rtt` the receiver's estimate.
    pub(super) fn on_data(&mut self, now: Time, arrival: Arrival, next: u64, rtt: Option<Duration>) {
        if !self.has_seen_data {
            self.has_seen_data = true;
            self.quick = QUICK;
        }
        self.last_data = now;
        if self.debt == Debt::None {
            self.debt = Debt::Wanted;
        }
        match arrival {
            Arrival::Duplicate => {
                self.quick = QUICK;
                self.is_interactive = false;
                self.debt = Debt::Due;
            }
            Arrival::ClosedGap => self.debt = Debt::Due,
            Arrival::Early | Arrival::BeforeGap | Arrival::InOrder => self.decide(now, arrival, next, rtt),
        }
    }

    fn decide(&mut self, now: Time, arrival: Arrival, next: u64, rtt: Option<Duration>) {
        let is_second = next - self.acknowledged > self.mss;
        if is_second || self.quick > 0 && !self.is_interactive {
            self.debt = Debt::Due;
        } else if arrival == Arrival::InOrder {
            self.deadline.get_or_insert(now + DELAY);
        } else {
            self.compress(now, next, rtt);
        }
    }

    /// RFC 2018 wants an acknowledgement for each segment beyond a gap; after a few, Linux joins them.
    fn compress(&mut self, now: Time, next: u64, rtt: Option<Duration>) {
        if self.duplicates.1 != next {
            self.duplicates = (0, next);
        }
        if self.compressed >= MAX_COMPRESSED {
            self.debt = Debt::Due;
        } else if self.duplicates.0 < UNCOMPRESSED {
            self.duplicates.0 += 1;
            self.debt = Debt::Due;
        } else {
            self.compressed += 1;
            let wait = rtt.map_or(COMPRESSION, |rtt| (rtt / 20).min(COMPRESSION));
            self.compressed_until.get_or_insert(now + wait);
        }
    }

    /// A segment leaves that acknowledges all before `next`.
    pub(super) fn on_sent(&mut self, now: Time, next: u64, has_data: bool) {
        if has_data && self.has_seen_data && now.since(self.last_data) < DELAY {
            self.is_interactive = true;
        }
        if self.is_wanted() {
            self.quick = self.quick.saturating_sub(1);
        }
        self.acknowledged = next;
        self.debt = Debt::None;
        self.deadline = None;
        self.compressed = 0;
        self.compressed_until = None;
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        let is_over = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= now);
        if is_over(self.deadline) {
            // The answer that the acknowledgement waited for did not come.
            self.is_interactive = false;
            self.debt = Debt::Due;
        }
        if is_over(self.compressed_until) {
            self.debt = Debt::Due;
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        if self.is_due() {
            return None;
        }
        self.deadline.into_iter().chain(self.compressed_until).min()
    }
}
