//! The receiving half of a connection: what has arrived, what is told of it, and when.
//!
//! Owners: here the sequence numbers and SACK blocks (RFC 2018, D-SACK RFC 2883), [`acks`] when an acknowledgement
//! leaves, [`window`] how much may come.

mod acks;
mod window;

use posthaste_units::Time;

use crate::segment::{MAX_SACK_BLOCKS, SackBlocks, Segment};
use crate::spans::{Span, Spans};
use acks::{Acks, Arrival};
use window::Window;

/// The receiving half.
#[derive(Debug)]
pub(super) struct Receiver {
    /// All before this has arrived (RCV.NXT).
    next: u64,
    /// What has arrived beyond.
    early: Spans,
    /// The spans to report, the most recently changed first.
    reports: Vec<Span>,
    duplicate: Option<Span>,
    window: Window,
    acks: Acks,
    /// The timestamp to echo (RFC 7323's TS.Recent), and what was acknowledged when it was taken.
    echo: Time,
    last_acknowledged: u64,
}

impl Receiver {
    /// A receiver of segments of at most `mss` bytes, whose window grows to at most `window`.
    pub(super) fn new(mss: u64, window: u64) -> Self {
        Self {
            next: 0,
            early: Spans::default(),
            reports: Vec::new(),
            duplicate: None,
            window: Window::new(mss, window),
            acks: Acks::new(mss),
            echo: Time::ZERO,
            last_acknowledged: 0,
        }
    }

    /// All bytes before this have arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.next
    }

    /// The other end's SYN has arrived with this timestamp.
    pub(super) fn on_syn(&mut self, timestamp: Time) {
        self.echo = self.echo.max(timestamp);
    }

    /// The handshake is complete: `echo` is the timestamp of its last segment.
    pub(super) fn on_established(&mut self, now: Time, echo: Time) {
        self.echo = echo;
        self.window.begin(now);
    }

    /// Takes in a segment's payload.
    pub(super) fn on_segment(&mut self, now: Time, segment: &Segment) {
        if segment.sequence <= self.last_acknowledged {
            self.echo = self.echo.max(segment.sent_at);
        }
        let span = Span { start: segment.sequence, end: segment.sequence + segment.length };
        if segment.length == 0 {
            // A window probe asks with an old number.
            if segment.sequence < self.next {
                self.acks.require();
            }
            return;
        }
        self.window.on_echo(now, segment.echo, segment.length);
        let arrival = self.place(span);
        self.acks.on_data(now, arrival, self.next, self.window.rtt());
    }

    fn place(&mut self, span: Span) -> Arrival {
        if span.end <= self.next || self.early.contains(span) {
            self.duplicate = Some(span);
            return Arrival::Duplicate;
        }
        if span.end > self.window.edge() {
            return Arrival::Duplicate;
        }
        if span.start > self.next {
            let merged = self.early.insert(span);
            self.reports.retain(|report| !merged.contains(*report));
            self.reports.insert(0, merged);
            // One slot goes to a D-SACK or to the fourth when segments arrive in pairs.
            self.reports.truncate(MAX_SACK_BLOCKS + 1);
            return Arrival::Early;
        }
        self.next = span.end;
        let had_early = !self.early.is_empty();
        while let Some(first) = self.early.first().filter(|first| first.start <= self.next) {
            self.next = self.next.max(first.end);
            self.early.remove_before(self.next);
        }
        let next = self.next;
        self.reports.retain(|report| report.end > next);
        match (had_early, self.early.is_empty()) {
            (false, _) => Arrival::InOrder,
            (true, false) => Arrival::BeforeGap,
            (true, true) => Arrival::ClosedGap,
        }
    }

    /// The application has taken all bytes before `consumed`. An acknowledgement may be due because of the room.
    pub(super) fn on_consumed(&mut self, now: Time, consumed: u64) {
        self.window.on_consumed(now, consumed);
        if self.window.is_worth_telling(self.next) {
            self.acks.require();
        }
    }

    /// True if an acknowledgement must leave now.
    pub(super) fn is_ack_due(&self) -> bool {
        self.acks.is_due()
    }

    /// True if an acknowledgement is wanted, now or later.
    pub(super) fn wants_ack(&self) -> bool {
        self.acks.is_wanted()
    }

    /// An acknowledgement is wanted at once.
    pub(super) fn require_ack(&mut self) {
        self.acks.require();
    }

    /// True if the next acknowledgement must have blocks.
    pub(super) fn has_reports(&self) -> bool {
        self.duplicate.is_some() || !self.reports.is_empty()
    }

    /// Writes an acknowledgement into `segment`, which leaves now. Blocks only go where there is room for them.
    pub(super) fn acknowledge(&mut self, now: Time, segment: &mut Segment, has_room: bool) {
        segment.acknowledged = self.next;
        segment.window = self.window.advertise(self.next);
        segment.echo = self.echo;
        self.last_acknowledged = self.next;
        if has_room {
            segment.sack = self.take_blocks();
        }
        self.acks.on_sent(now, self.next, segment.length > 0);
    }

    fn take_blocks(&mut self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for block in self.duplicate.take().into_iter().chain(self.reports.iter().copied()) {
            blocks.push(block);
        }
        blocks
    }

    /// Lets delayed acknowledgements become due.
    pub(super) fn on_timeout(&mut self, now: Time) {
        self.acks.on_timeout(now);
    }

    /// When [`Self::on_timeout`] must be called.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.acks.next_timeout()
    }
}
