//! Received packet numbers of one space and their acknowledgement (RFC 9000 section 13.2).

use std::collections::VecDeque;

use posthaste_policy::AckPolicy;
use posthaste_policy::sample::{AckRequest, AckView, ReceivedSample};
use posthaste_units::Time;
use posthaste_wire::frame::{self, EcnCounts, WindowUpdate};

use crate::limits::ACK_RANGES;
use crate::packet::early_spaces::Blank;
use crate::packet::ecn::EcnCodepoint;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;

/// Packet numbers as disjoint, not adjacent ranges in ascending order, at most [`ACK_RANGES`] of them.
#[derive(Debug, Default)]
struct NumberRanges(VecDeque<(u64, u64)>);

impl NumberRanges {
    /// Adds a number; false if it was in. A range too many drops the lowest, whose end is returned.
    fn insert(&mut self, number: u64) -> (bool, Option<u64>) {
        let ranges = &mut self.0;
        // The usual packet is the one after the last.
        if let Some((_, end)) = ranges.back_mut()
            && end.checked_add(1) == Some(number)
        {
            *end = number;
            return (true, None);
        }
        // The first range that ends at or above `number - 1` is the one that could contain or touch it.
        let index = ranges.partition_point(|&(_, end)| end.saturating_add(1) < number);
        match ranges.get_mut(index) {
            Some((start, end)) if (*start..=*end).contains(&number) => return (false, None),
            Some((_, end)) if end.saturating_add(1) == number => {
                *end = number;
                let next = ranges.get(index + 1).copied();
                if let Some((start, next_end)) = next
                    && start == number.saturating_add(1)
                {
                    ranges.remove(index + 1);
                    if let Some((_, end)) = ranges.get_mut(index) {
                        *end = next_end;
                    }
                }
            }
            Some((start, _)) if *start == number.saturating_add(1) => *start = number,
            _ => ranges.insert(index, (number, number)),
        }
        // spec: rfc9000 13.2.3 largest-kept
        let dropped = if ranges.len() > ACK_RANGES { ranges.pop_front() } else { None };
        (true, dropped.map(|(_, end)| end))
    }

    /// Removes all numbers up to and including `last`.
    fn remove_up_to(&mut self, last: u64) {
        while self.0.front().is_some_and(|&(_, end)| end <= last) {
            self.0.pop_front();
        }
        if let Some((start, _)) = self.0.front_mut() {
            *start = (*start).max(last.saturating_add(1));
        }
    }

    fn largest(&self) -> Option<u64> {
        self.0.back().map(|&(_, end)| end)
    }
}

/// What a packet number says of the packet that carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It has not been seen.
    New {
        /// It is below the largest received, or leaves a gap behind that (section 13.2.1).
        out_of_order: bool,
    },
    /// It has been seen, or is so old that this is no longer known: the packet must be dropped (section 12.3).
    Duplicate,
}

/// What acknowledges the space's packets in a packet that has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// There was nothing to acknowledge, or no room for it.
    Nothing,
    /// ACK.
    Ack,
    /// `ACK_WINDOW`.
    AckWindow,
}

/// When the space's packets are acknowledged.
#[derive(Debug)]
enum Promptness {
    /// At once (Initial and Handshake, section 13.2.1): since when an ACK is owed.
    Immediate(Option<Time>),
    /// As the policy says.
    Policy(Box<dyn AckPolicy>),
}

/// The packets received in one space.
#[derive(Debug)]
pub(crate) struct ReceivedPackets {
    /// Numbers received, for telling duplicates.
    seen: NumberRanges,
    /// Numbers below this are taken for duplicates: their ranges have been forgotten.
    forgotten_below: u64,
    /// Numbers still reported to the peer.
    reported: NumberRanges,
    /// Whether the number last passed to [`Self::on_packet`] was out of order.
    out_of_order: bool,
    /// When the largest number arrived.
    largest_at: Time,
    /// The lowest number recorded since the last ACK frame.
    news_from: Option<u64>,
    promptness: Promptness,
    /// The peer has asked for an ack at once.
    asked_at: Option<Time>,
    /// Packet numbers by which one must be missing before that calls for an ack at once; 0 for never.
    reordering_threshold: u64,
    /// The largest number that an ACK frame has carried.
    largest_reported: Option<u64>,
    ecn: EcnCounts,
}

/// A space whose packets are acknowledged at once: Initial or Handshake.
impl Default for ReceivedPackets {
    fn default() -> Self {
        Self::IMMEDIATE
    }
}

impl Blank for ReceivedPackets {
    const BLANK: &'static Self = &Self::IMMEDIATE;
}

impl ReceivedPackets {
    const IMMEDIATE: Self = Self::new(Promptness::Immediate(None));

    /// The 1-RTT space, acknowledged as `policy` says.
    pub(crate) fn with_policy(policy: Box<dyn AckPolicy>) -> Self {
        Self::new(Promptness::Policy(policy))
    }

    const fn new(promptness: Promptness) -> Self {
        Self {
            seen: NumberRanges(VecDeque::new()),
            forgotten_below: 0,
            reported: NumberRanges(VecDeque::new()),
            out_of_order: false,
            largest_at: Time::ZERO,
            news_from: None,
            promptness,
            asked_at: None,
            reordering_threshold: 1,
            largest_reported: None,
            ecn: EcnCounts { ect0: 0, ect1: 0, ce: 0 },
        }
    }

    /// A packet has been authenticated: notes its number. [`Self::record`] follows once its frames are known.
    pub(crate) fn on_packet(&mut self, number: u64) -> Arrival {
        // spec: rfc9000 13.2.3 range-kept
        if number < self.forgotten_below {
            return Arrival::Duplicate;
        }
        let largest = self.seen.largest();
        let (is_new, dropped) = self.seen.insert(number);
        if let Some(end) = dropped {
            self.forgotten_below = end.saturating_add(1);
        }
        if !is_new {
            return Arrival::Duplicate;
        }
        self.reported.insert(number);
        self.out_of_order = match self.reordering_threshold {
            0 => false,
            1 => largest.is_some_and(|largest| number != largest.saturating_add(1)),
            threshold => self.is_missing_by(threshold),
        };
        Arrival::New { out_of_order: self.out_of_order }
    }

    /// The new packet `number` has been processed.
    pub(crate) fn record(&mut self, now: Time, number: u64, ack_eliciting: bool, ecn: Option<EcnCodepoint>) {
        if self.seen.largest() == Some(number) {
            self.largest_at = now;
        }
        // spec: rfc9000 13.4.1 marks-reported
        match ecn {
            Some(EcnCodepoint::Ect0) => self.ecn.ect0 += 1,
            Some(EcnCodepoint::Ect1) => self.ecn.ect1 += 1,
            Some(EcnCodepoint::Ce) => self.ecn.ce += 1,
            None => {}
        }
        self.news_from = Some(self.news_from.map_or(number, |lowest| lowest.min(number)));
        let marked = ecn == Some(EcnCodepoint::Ce);
        match &mut self.promptness {
            // spec: rfc9000 13.2.1 handshake-acked-at-once, 13.2.1 no-ack-for-acks
            Promptness::Immediate(owed) if ack_eliciting => *owed = owed.or(Some(now)),
            Promptness::Immediate(_) => {}
            Promptness::Policy(policy) => {
                let out_of_order = self.out_of_order;
                policy.on_packet(&ReceivedSample { now, ack_eliciting, out_of_order, marked });
            }
        }
    }

    /// True if a number that the peer has not been told of is missing, `threshold` or more below the largest
    /// (draft-ietf-quic-ack-frequency section 6.2).
    fn is_missing_by(&self, threshold: u64) -> bool {
        let Some(largest) = self.seen.largest() else { return false };
        // What is below has been reported as missing by an earlier ACK frame.
        let from = self.largest_reported.map_or(0, |reported| (reported + 1).saturating_sub(threshold) + 1);
        let index = self.seen.0.partition_point(|&(_, end)| end < from);
        let missing = match self.seen.0.get(index) {
            Some(&(start, end)) if start <= from => end.saturating_add(1),
            _ => from,
        };
        missing < largest && largest - missing >= threshold
    }

    /// The peer asks for other acks.
    pub(crate) fn on_request(&mut self, request: &AckRequest) {
        self.reordering_threshold = request.reordering_threshold;
        if let Promptness::Policy(policy) = &mut self.promptness {
            policy.on_request(request);
        }
    }

    /// The peer asks for an ack at once.
    pub(crate) fn on_immediate(&mut self, now: Time) {
        self.asked_at.get_or_insert(now);
    }

    /// What the policy wants to ask of the peer's acks.
    pub(crate) fn ask(&mut self, view: &AckView) -> Option<AckRequest> {
        match &mut self.promptness {
            Promptness::Immediate(_) => None,
            Promptness::Policy(policy) => policy.ask(view),
        }
    }

    /// When an ACK frame must leave: at once if the time has passed, not at all if `None`.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let deadline = match &self.promptness {
            Promptness::Immediate(owed) => *owed,
            Promptness::Policy(policy) => policy.deadline(),
        };
        deadline.into_iter().chain(self.asked_at).min()
    }

    /// True if packets have arrived since the last ACK frame: one may ride along in a packet that leaves anyway.
    pub(crate) fn has_news(&self) -> bool {
        self.news_from.is_some()
    }

    /// Writes an ACK frame with as many ranges as fit, newest first; with `limits` (and their edition) an `ACK_WINDOW`
    /// frame if that fits.
    pub(crate) fn write_ack(
        &mut self,
        now: Time,
        writer: &mut FrameWriter<'_>,
        ack_delay_exponent: u8,
        limits: Option<(&WindowUpdate, u64)>,
    ) -> Written {
        let Some(largest) = self.reported.largest() else { return Written::Nothing };
        // spec: rfc9000 13.2.5 own-delay-only
        let waited = now.since(self.largest_at).as_micros();
        let delay = waited.checked_shr(u32::from(ack_delay_exponent)).unwrap_or(0);
        let ecn = (self.ecn != EcnCounts::default()).then_some(self.ecn);
        let room = writer.remaining();
        let ranges = self.reported.0.iter().rev().map(|&(start, end)| start..=end);
        let (update, edition) = limits.unzip();
        let written = match update {
            Some(update)
                if frame::ack_window::write(writer.buffer(), update, delay, ranges.clone(), ecn, room)
                    > 0 =>
            {
                Written::AckWindow
            }
            _ if frame::ack::write(writer.buffer(), delay, ranges, ecn, room) > 0 => Written::Ack,
            _ => return Written::Nothing,
        };
        writer.record(match edition.filter(|_| written == Written::AckWindow) {
            Some(edition) => SentFrame::AckWindow { largest, edition },
            None => SentFrame::Ack { largest },
        });
        self.news_from = None;
        self.asked_at = None;
        self.largest_reported = Some(largest);
        // spec: rfc9000 13.2.1 one-bare-ack
        match &mut self.promptness {
            Promptness::Immediate(owed) => *owed = None,
            Promptness::Policy(policy) => policy.on_ack_sent(),
        }
        written
    }

    /// The peer has acknowledged an ACK frame up to `largest`: older ranges need not be repeated (section 13.2.4),
    /// except what has come in since the last one was written.
    pub(crate) fn on_ack_acked(&mut self, largest: u64) {
        // The largest number stays: it is what a delay and ECN counts refer to, however late a gap is filled.
        let keep = self.reported.largest().map(|newest| newest.min(self.news_from.unwrap_or(newest)));
        if let Some(last) = keep.and_then(|keep| keep.checked_sub(1)) {
            self.reported.remove_up_to(largest.min(last));
        }
    }

    /// Gives back room that is not in use.
    pub(crate) fn shrink(&mut self) {
        self.seen.0.shrink_to_fit();
        self.reported.0.shrink_to_fit();
    }

    /// The largest packet number received.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.seen.largest()
    }

    /// Ranges that the next ACK frame would carry. A receiver that sends only ACK frames learns of none that
    /// arrived; a PING now and then, when this grows, lets it forget (section 13.2.4).
    pub(crate) fn range_count(&self) -> usize {
        self.reported.0.len()
    }
}

#[cfg(test)]
mod tests;
