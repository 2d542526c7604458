//! What has been sent and not cumulatively acknowledged, segment by segment (RFC 6675's scoreboard, with the
//! sending times that RACK needs). Counts are in segments, as Linux counts.

use std::collections::{BTreeSet, VecDeque};

use posthaste_units::Time;

use super::delivery::Departure;
use crate::spans::{Span, Spans};

/// What is known of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing since it was sent.
    InFlight,
    /// The receiver holds it.
    Sacked,
    /// It is deemed lost; it may have been sent again.
    Lost,
}

/// A segment that is not cumulatively acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) span: Span,
    /// When it was last sent.
    pub(super) sent_at: Time,
    pub(super) mark: Mark,
    /// A retransmission of it is under way.
    pub(super) is_again_in_flight: bool,
    /// It has been sent more than once.
    pub(super) was_retransmitted: bool,
    /// What had been delivered when it was last sent.
    pub(super) departure: Departure,
}

/// A segment that has just been found to have arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivered {
    /// Its state before.
    pub(super) sent: Sent,
    /// By SACK, not cumulatively.
    pub(super) is_sacked: bool,
}

/// The segments in order of sequence, with their counts.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Starts in the order of (latest) transmission. Entries whose segment is gone, known to have arrived, lost or
    /// sent again later are stale and skipped.
    by_time: VecDeque<(u64, Time)>,
    /// What of `una..` is sacked.
    sacked: Spans,
    /// Starts of lost segments that wait to be sent again.
    waiting: BTreeSet<u64>,
    una: u64,
    next: u64,
    /// Start of the highest sacked segment; `una` or below if there is none.
    highest_sacked: u64,
    sacked_count: u32,
    lost_count: u32,
    again_count: u32,
    gaps: Vec<Span>,
    /// Losses declared since the start.
    pub(super) total_lost: u64,
    /// Segments sent again since the start.
    pub(super) total_resent: u64,
    /// Bytes sent again since the start.
    pub(super) total_resent_bytes: u64,
}

impl Scoreboard {
    /// The first byte that is not cumulatively acknowledged (SND.UNA).
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// The first byte that has never been sent (SND.NXT).
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Segments that are not cumulatively acknowledged.
    pub(super) fn outstanding(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Sacked segments.
    pub(super) fn sacked(&self) -> u32 {
        self.sacked_count
    }

    /// True if some segments are sacked or deemed lost.
    pub(super) fn has_left(&self) -> bool {
        self.sacked_count + self.lost_count > 0
    }

    /// Segments deemed lost, sent again or not.
    pub(super) fn lost(&self) -> u32 {
        self.lost_count
    }

    /// Retransmissions under way.
    pub(super) fn again(&self) -> u32 {
        self.again_count
    }

    /// Segments that are believed to be in the network (RFC 6675's pipe).
    pub(super) fn in_flight(&self) -> u32 {
        (self.outstanding() + self.again_count).saturating_sub(self.sacked_count + self.lost_count)
    }

    /// The oldest segment.
    pub(super) fn head(&self) -> Option<&Sent> {
        self.segments.front()
    }

    /// The newest segment.
    pub(super) fn tail(&self) -> Option<&Sent> {
        self.segments.back()
    }

    /// Start of the highest sacked segment, or the first byte outstanding.
    pub(super) fn highest_sacked(&self) -> u64 {
        self.highest_sacked.max(self.una)
    }

    /// A segment of new data leaves.
    pub(super) fn on_sent(&mut self, now: Time, length: u64, departure: Departure) -> Span {
        let span = Span { start: self.next, end: self.next + length };
        self.next = span.end;
        self.segments.push_back(Sent {
            span,
            sent_at: now,
            mark: Mark::InFlight,
            is_again_in_flight: false,
            was_retransmitted: false,
            departure,
        });
        self.by_time.push_back((span.start, now));
        span
    }

    /// The lost segment to be sent again next.
    pub(super) fn next_lost(&self) -> Option<u64> {
        self.waiting.first().copied()
    }

    /// The segment that begins at `start` leaves again.
    pub(super) fn on_sent_again(&mut self, now: Time, start: u64, departure: Departure) -> Option<Span> {
        let index = self.index_of(start)?;
        let sent = &mut self.segments[index];
        self.waiting.remove(&start);
        self.again_count += u32::from(!sent.is_again_in_flight);
        sent.is_again_in_flight = true;
        sent.was_retransmitted = true;
        sent.sent_at = now;
        sent.departure = departure;
        self.by_time.push_back((start, now));
        self.total_resent += 1;
        self.total_resent_bytes += sent.span.length();
        Some(sent.span)
    }

    fn index_of(&self, start: u64) -> Option<usize> {
        let index = self.segments.partition_point(|sent| sent.span.start < start);
        (self.segments.get(index)?.span.start == start).then_some(index)
    }

    /// Marks what lies in `block` as received; appends what is new to `delivered`.
    pub(super) fn sack(&mut self, block: Span, delivered: &mut Vec<Delivered>) {
        let block = Span { start: block.start.max(self.una), end: block.end.min(self.next) };
        if block.start >= block.end {
            return;
        }
        let mut gaps = std::mem::take(&mut self.gaps);
        self.sacked.gaps_in(block, &mut gaps);
        for gap in gaps.drain(..) {
            let mut index = self.segments.partition_point(|sent| sent.span.start < gap.start);
            while let Some(sent) = self.segments.get(index).filter(|sent| gap.contains(sent.span)) {
                delivered.push(Delivered { sent: *sent, is_sacked: true });
                self.sacked.insert(sent.span);
                self.mark_sacked(index);
                index += 1;
            }
        }
        self.gaps = gaps;
    }

    fn mark_sacked(&mut self, index: usize) {
        let sent = &mut self.segments[index];
        if sent.mark == Mark::Lost {
            self.lost_count -= 1;
            self.waiting.remove(&sent.span.start);
            // Of a segment that was not lost, a probe is still under way.
            self.again_count -= u32::from(sent.is_again_in_flight);
            sent.is_again_in_flight = false;
        }
        sent.mark = Mark::Sacked;
        self.sacked_count += 1;
        self.highest_sacked = self.highest_sacked.max(sent.span.start);
    }

    /// Removes everything before `bound`; appends what was not yet known to have arrived to `delivered`. How many
    /// segments went.
    pub(super) fn acknowledge(&mut self, bound: u64, delivered: &mut Vec<Delivered>) -> u32 {
        let mut removed = 0;
        while let Some(sent) = self.segments.front().copied().filter(|sent| sent.span.end <= bound) {
            self.segments.pop_front();
            removed += 1;
            self.again_count -= u32::from(sent.is_again_in_flight);
            match sent.mark {
                Mark::Sacked => self.sacked_count -= 1,
                Mark::Lost => {
                    self.lost_count -= 1;
                    self.waiting.remove(&sent.span.start);
                    delivered.push(Delivered { sent, is_sacked: false });
                }
                Mark::InFlight => delivered.push(Delivered { sent, is_sacked: false }),
            }
        }
        self.una = self.una.max(bound.min(self.next));
        self.sacked.remove_before(self.una);
        while self.by_time.front().is_some_and(|(start, _)| *start < self.una) {
            self.by_time.pop_front();
        }
        removed
    }

    /// Declares the segment at `index` lost, or its retransmission.
    fn mark_lost(&mut self, index: usize) {
        let sent = &mut self.segments[index];
        match sent.mark {
            Mark::Sacked => return,
            Mark::Lost if !sent.is_again_in_flight => return,
            Mark::Lost => {}
            Mark::InFlight => {
                sent.mark = Mark::Lost;
                self.lost_count += 1;
            }
        }
        self.again_count -= u32::from(sent.is_again_in_flight);
        sent.is_again_in_flight = false;
        self.waiting.insert(sent.span.start);
        self.total_lost += 1;
    }

    /// Goes through the segments under way in the order of transmission. `judge` sees each: its answer is whether
    /// it is lost, or `None` to end.
    pub(super) fn detect(&mut self, mut judge: impl FnMut(&Sent) -> Option<bool>) {
        let mut position = 0;
        while let Some(&(start, at)) = self.by_time.get(position) {
            let index = self.index_of(start).filter(|&index| {
                let sent = &self.segments[index];
                sent.sent_at == at
                    && (sent.mark == Mark::InFlight || sent.mark == Mark::Lost && sent.is_again_in_flight)
            });
            let verdict = match index {
                Some(index) => judge(&self.segments[index]),
                None => Some(true),
            };
            match verdict {
                None => return,
                Some(false) => position += 1,
                Some(true) => {
                    if let Some(index) = index {
                        self.mark_lost(index);
                    }
                    if position == 0 {
                        self.by_time.pop_front();
                    } else {
                        // Rare: the list is ordered by time, and so is what is found lost.
                        self.by_time.remove(position);
                    }
                }
            }
        }
    }

    /// A retransmission timeout: everything that `is_lost` says is lost, and the head in any case. The model's
    /// receiver never drops what it has sacked, so sacks stay valid.
    pub(super) fn mark_timed_out(&mut self, mut is_lost: impl FnMut(&Sent) -> bool) {
        for index in 0..self.segments.len() {
            if index == 0 || is_lost(&self.segments[index]) {
                self.mark_lost(index);
            }
        }
    }

    /// The losses were none: nothing is to be sent again. How many segments that had not been.
    pub(super) fn unmark_losses(&mut self) -> u64 {
        let unmarked = self.waiting.len() as u64;
        for sent in &mut self.segments {
            if sent.mark == Mark::Lost {
                sent.mark = Mark::InFlight;
                if !sent.is_again_in_flight {
                    self.by_time.push_back((sent.span.start, sent.sent_at));
                }
            }
        }
        self.lost_count = 0;
        self.waiting.clear();
        self.by_time.make_contiguous().sort_by_key(|&(start, at)| (at, start));
        unmarked
    }
}
