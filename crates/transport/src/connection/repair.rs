//! Data sent again before it is known to be lost: when the repair policy is asked, and what it has spent.

use std::fmt;

use posthaste_policy::Repair;
use posthaste_policy::repair::{CodeStep, CodeView, HandshakeAnswers, RepairStep, TailView};
use posthaste_units::{ByteCount, Duration, Time};
use posthaste_wire::{Side, StreamId};

use crate::connection::Connection;
use crate::connection::timers::Timer;
use crate::control::budget::{Budget, Limit};
use crate::packet::space::{PacketSpace, PerSpace};
use crate::recovery::Repeat;

/// Initial packets of one flight that are copied: large key shares take two.
const INITIAL_PACKETS: usize = 2;

/// Handshake packets that are copied: at a server the one that leaves with the `ServerHello`, at a client the only one.
const HANDSHAKE_PACKETS: usize = 1;

/// The repair policy of a connection, and its account.
pub(crate) struct Repairs {
    policy: Box<dyn Repair>,
    is_idle: bool,
    handshake_copy: Option<Duration>,
    /// Answers to probes that are left.
    answers: HandshakeAnswers,
    /// When a server's flight left, or was last sent as an answer.
    answered_at: Option<Time>,
    /// Flights of the handshake that have had their copy.
    is_flight_copied: PerSpace<bool>,
    /// What the next packet of a space is a copy of, while its frames wait.
    pending: PerSpace<Option<Repeat>>,
    last_new_at: Time,
    /// Bytes of copies of packets that were no retransmissions.
    copied: ByteCount,
    /// Bytes of copies of retransmissions.
    guarded: ByteCount,
    /// Bytes of packets with recovery symbols.
    coded: ByteCount,
    /// Nothing was found to copy: no need to look again before another packet has been sent.
    is_dry: bool,
}

impl Repairs {
    /// Nothing has been sent yet.
    pub(crate) fn new(policy: Box<dyn Repair>) -> Self {
        Self {
            is_idle: policy.is_idle(),
            handshake_copy: policy.handshake_copy(),
            answers: policy.handshake_answers(),
            answered_at: None,
            policy,
            is_flight_copied: PerSpace::default(),
            pending: PerSpace::default(),
            last_new_at: Time::ZERO,
            copied: ByteCount::ZERO,
            guarded: ByteCount::ZERO,
            coded: ByteCount::ZERO,
            is_dry: false,
        }
    }

    /// True if nothing is ever repaired.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// True if codes over the ends of streams are to be agreed on.
    pub(crate) fn codes(&self) -> bool {
        self.policy.codes()
    }

    /// The share of a stream's bytes that may leave twice because they were lost twice.
    pub(crate) fn lost_again(&self) -> Option<(u32, u32)> {
        self.policy.lost_again()
    }

    /// True while packets of the handshake's copy wait or leave.
    pub(crate) fn copies_handshake(&self) -> bool {
        self.pending[PacketSpace::Handshake].is_some()
    }

    /// The client begins again: its Initial is another.
    pub(crate) fn on_retry(&mut self) {
        self.is_flight_copied = PerSpace::default();
        self.pending = PerSpace::default();
    }
}

impl fmt::Debug for Repairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, copied, .. } = self;
        f.debug_struct("Repairs").field("policy", policy).field("copied", copied).finish_non_exhaustive()
    }
}

impl Connection {
    /// Nothing new waits: has the frames of one packet sent again if the policy wants it and `budget` has room for it,
    /// or sets the timer.
    pub(crate) fn repair(&mut self, now: Time, budget: Budget) {
        self.timers.set(Timer::Repair, None);
        if budget.bytes >= self.path.max_datagram_size().into() && self.repair_handshake(now, false) {
            return;
        }
        if self.repairs.is_dry || !self.streams.is_tail() {
            return;
        }
        let (step, coded) = self.repair_step(now);
        if step == RepairStep::NOTHING {
            return;
        }
        if budget.bytes < self.path.max_datagram_size().into() {
            if let Limit::Pacer { until } = budget.limited_by {
                self.repair_at(until);
            }
            return;
        }
        if let Some((id, packets)) = coded
            && self.streams.code_tail(id, self.path.max_datagram_size(), packets)
        {
            // What follows is no demand of the application's.
            self.path.control.on_app_limited(now);
            return;
        }
        let is_due = step.newest_from.is_some_and(|from| from <= now);
        let is_repaired = self.copy_youngest(now, |repeat, sent_at| {
            let is_early = sent_at < step.retransmitted_from;
            repeat.is_retransmission && !is_early && repeat.copy.saturating_add(1) < step.retransmissions
        }) || (is_due && self.copy_youngest(now, |repeat, _| repeat.copy == 0));
        if is_repaired {
            return;
        }
        match step.newest_from {
            Some(_) if is_due => self.repairs.is_dry = true,
            Some(from) => self.repair_at(from),
            // What is left to copy depends on what the policy is told next.
            None => {}
        }
    }

    /// Asks the policy about each stream's end that may have a code, until it wants to send or to wait, and names the one
    /// that is to have a packet, and the number of packets that it is worth.
    fn repair_step(&mut self, now: Time) -> (RepairStep, Option<(StreamId, u32)>) {
        for tail in self.streams.codable_tails(self.path.max_datagram_size()) {
            let view = CodeView { missing: ByteCount::new(tail.missing), coded: ByteCount::new(tail.coded) };
            let step = self.ask_repair(now, Some(view));
            match step.code {
                CodeStep::Enough => {}
                CodeStep::Wait => return (step, None),
                CodeStep::Packet { of } => return (step, Some((tail.id, of))),
            }
        }
        (self.ask_repair(now, None), None)
    }

    /// Asks the policy.
    fn ask_repair(&mut self, now: Time, code: Option<CodeView>) -> RepairStep {
        let is_coded = self.streams.is_tail_coded(self.path.max_datagram_size());
        let control = &self.path.control;
        let (sent, _) = self.streams.sent_and_resent();
        let tail = TailView {
            now,
            last_new_at: self.repairs.last_new_at,
            is_tail: true,
            in_flight: control.bytes_in_flight(),
            max_datagram_size: self.path.max_datagram_size().into(),
            rate: control.pacing().map(|pacing| pacing.rate),
            rtt: control.rtt(),
            sent: ByteCount::new(sent),
            copied: self.repairs.copied,
            guarded: self.repairs.guarded,
            coded: self.repairs.coded,
            is_coded,
            code,
            delivered: control.delivered(),
            lost: control.lost_bytes(),
            known: control.known_loss(),
        };
        self.repairs.policy.next(&tail)
    }

    /// Has the frames of the youngest outstanding packet of ended streams sent again that `is_wanted` accepts. False if
    /// there is none.
    fn copy_youngest(&mut self, now: Time, is_wanted: impl Fn(Repeat, Time) -> bool) -> bool {
        let Self { recovery, streams, path, outcome, .. } = self;
        let is_wanted = |repeat, sent_at, frames: &[crate::packet::sent_frame::SentFrame]| {
            is_wanted(repeat, sent_at) && streams.has_ending(frames)
        };
        let outcome = outcome.get_or_insert_default();
        let repeat = recovery.frames_to_repair(PacketSpace::Data, path.control.id, is_wanted, outcome);
        self.repairs.pending[PacketSpace::Data] = repeat;
        if repeat.is_some() {
            // What follows is no demand of the application's.
            self.path.control.on_app_limited(now);
            // A copy is no loss.
            let share = self.streams.send_lost_again_twice(None);
            self.settle_outcome(now);
            self.streams.send_lost_again_twice(share);
        }
        repeat.is_some()
    }

    /// True on a server whose handshake has left, and what waits is the answer to a request that came early. It must not keep
    /// the handshake's copy back: without the handshake it cannot be read.
    pub(crate) fn answers_early(&mut self) -> bool {
        self.side() == Side::Server
            && !self.handshake.is_confirmed()
            && !self.has_frames(PacketSpace::Initial)
            && !self.has_frames(PacketSpace::Handshake)
    }

    /// Sends the first flight of the handshake a second time, once it is due: at once where it `is_urgent`, because data
    /// that wait would fill the window. True if frames wait now.
    pub(crate) fn repair_handshake(&mut self, now: Time, is_urgent: bool) -> bool {
        let Some(delay) = self.repairs.handshake_copy.filter(|_| !self.handshake.is_confirmed()) else {
            return false;
        };
        let delay = match self.side() {
            // Three datagrams at most leave before the client answers: nothing is to be waited for.
            Side::Server if is_urgent || !self.path.validation.is_valid() => Duration::ZERO,
            _ => delay,
        };
        let mut is_waiting = false;
        for space in [PacketSpace::Initial, PacketSpace::Handshake] {
            if self.is_flight_over(space) || !self.recovery.has_ack_eliciting_in_flight(space) {
                continue;
            }
            let due = self.recovery.last_elicited_at(space) + delay;
            if due > now {
                self.repair_at(due);
                continue;
            }
            self.repairs.is_flight_copied[space] = true;
            let packets = if space == PacketSpace::Initial { INITIAL_PACKETS } else { HANDSHAKE_PACKETS };
            if self.recovery.frames_of_flight(space, packets, self.outcome.get_or_insert_default()) {
                self.repairs.pending[space] = Some(Repeat { is_retransmission: false, copy: 1 });
                is_waiting = true;
            }
        }
        if is_waiting {
            self.path.control.on_app_limited(now);
            self.settle_outcome(now);
        }
        is_waiting
    }

    /// A handshake packet that calls for an acknowledgement has brought nothing new: a client's probe. A server that has sent
    /// its flight sends what of it is not acknowledged, if the policy has an answer left.
    pub(crate) fn answer_probe(&mut self, now: Time) {
        let Repairs { answers: HandshakeAnswers { most, wait }, answered_at: Some(answered_at), .. } =
            &mut self.repairs
        else {
            return;
        };
        if *most == 0 || now < *answered_at + *wait || self.handshake.is_confirmed() {
            return;
        }
        *most -= 1;
        *answered_at = now;
        // RFC 9002 section 6.2.3 permits this, and a probe timeout would send no more: beside 1-RTT data, both of the
        // handshake's spaces.
        self.probe_handshake_beside(PacketSpace::Data);
        self.settle_outcome(now);
    }

    /// True if the flight of the handshake has had its copy, or an acknowledgement.
    fn is_flight_over(&self, space: PacketSpace) -> bool {
        // A server's flight is in both spaces, a client has one in each.
        let is_acked = match self.side() {
            Side::Server => {
                [PacketSpace::Initial, PacketSpace::Handshake].map(|space| self.recovery.largest_acked(space))
                    != [None; 2]
            }
            Side::Client => self.recovery.largest_acked(space).is_some(),
        };
        is_acked || self.repairs.is_flight_copied[space]
    }

    /// Has the policy asked at this time, if not earlier.
    fn repair_at(&mut self, at: Time) {
        let at = self.timers.get(Timer::Repair).map_or(at, |other| other.min(at));
        self.timers.set(Timer::Repair, Some(at));
    }

    /// What a packet of `size` bytes that is about to leave repeats. `before` are the stream bytes sent and resent
    /// before its datagram was written.
    pub(crate) fn repetition(
        &mut self,
        now: Time,
        space: PacketSpace,
        size: usize,
        before: (u64, u64),
    ) -> Repeat {
        let (sent, resent) = self.streams.sent_and_resent();
        if space == PacketSpace::Handshake && self.side() == Side::Server {
            self.repairs.answered_at.get_or_insert(now);
        }
        let is_data = space == PacketSpace::Data;
        let has_new = is_data && sent > before.0;
        if has_new {
            self.repairs.last_new_at = now;
        }
        let is_coded = is_data && self.streams.code_sent(size as u64);
        if is_coded && !has_new && resent == before.1 {
            let bytes = ByteCount::from(size);
            self.counters.packets_coded += 1;
            self.counters.bytes_coded += bytes;
            self.repairs.coded += bytes;
            return Repeat::default();
        }
        let pending = self.repairs.pending[space];
        if !self.has_frames(space) {
            self.repairs.pending[space] = None;
        }
        let Some(repeat) = pending.filter(|_| !has_new) else {
            self.repairs.is_dry &= !is_data;
            return Repeat { is_retransmission: is_data && !has_new && resent > before.1, copy: 0 };
        };
        let bytes = ByteCount::from(size);
        self.counters.packets_copied += 1;
        self.counters.bytes_copied += bytes;
        if repeat.is_retransmission {
            self.repairs.guarded += bytes;
        } else if is_data {
            self.repairs.copied += bytes;
        }
        repeat
    }
}
