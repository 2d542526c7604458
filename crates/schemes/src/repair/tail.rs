//! Repair `tail`: copies of the last packets of a transfer, and of the handshake's first flight.
//!
//! - Claims: over paths that lose packets at random, objects of 20 to 100 kB arrive a round trip sooner, and a lost
//!   handshake packet no longer costs a second.
//! - Source: redundant transmission of tails ("Reducing web latency: the virtue of gentle aggression", SIGCOMM 2013);
//!   picoquic's `preemptive_repeat`, but youngest first: the packet that left x before the end has its loss known a
//!   round trip less x after it, so a copy gains most for the youngest.
//! - Use when: the radio loses packets, and objects are small or somebody waits for their end.
//! - Breaks when: every byte is paid for: up to 1/16 more are sent, up to 14 % where a tenth is lost, and always the
//!   first 32 packets' worth.
//! - Experiment: `mo-tail`.
//!
//! Where both ends have `code = true`, recovery symbols over the ends of streams take the place of newest copies
//! (`docs/spec/tail-code.md`): any symbol makes up for any lost one, so a fifth of the bytes does more. A path that has shown
//! no loss gets none.
//!
//! Copies and symbols leave only inside window and pacer, while the flight is below what the controller's rate fills, and while no
//! queue stands; where there is a code, only until the transfer's own queue has drained. They are congestion-controlled like
//! all packets. On a path that has shown no loss in 200 packets only the last two packets of each tail are copied.

use posthaste_policy::repair::{CodeStep, CodeView, HandshakeAnswers, RepairStep, TailView};
use posthaste_policy::{Constant, Description, PolicyText, Repair, RepairFactory};
use posthaste_units::{ByteCount, Duration, Time};
use serde::Deserialize;

use crate::{Entry, value};

/// The policy's description.
pub const TEXT: PolicyText = PolicyText {
    name: "tail",
    claims: "over paths that lose at random the end of a transfer, and a handshake, need no second try",
    source: "gentle aggression (SIGCOMM 2013) for the tail alone, youngest packets first; the ServerHello twice",
    use_when: "packets are lost at random and somebody waits for the end of small objects",
    breaks_when: "every byte is paid for: up to 1/16 more, up to 14 % where a tenth is lost, and the first 32 packets",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::repair::<Parameters>(TEXT);

/// The wait before the copy of a handshake flight: losses come in bursts.
const HANDSHAKE_DELAY: Duration = Duration::from_millis(5);
/// The wait before a server answers a client's probe: longer than the copies of a client's first flight take to arrive, and
/// not longer than the round trip that browsers guess at first (Chromium: 100 ms).
const ANSWER_WAIT: Duration = Duration::from_millis(100);
/// The greatest queueing delay at which copies are sent, unless a part of the RTT is more.
const QUEUE: Duration = Duration::from_millis(4);
/// That part: one in this many.
const QUEUE_PART: u64 = 16;
/// Packets of which a path without loss has shown that it loses few.
const CLEAN_PACKETS: u64 = 200;
/// Losses in as many packets, at the most, for a path to count as one without: one in 200 (0.5 %).
const CLEAN_LOSS: f64 = 0.005;
/// What is copied of a tail on a path without loss, in packets.
const CLEAN_COPIES: u64 = 2;
/// Copies of retransmissions that are free: one for this many of the floor's packets.
const GUARD_FLOOR: u64 = 2;
/// The greatest share of all stream bytes that copies of both kinds may take together, in hundredths.
const GREATEST_SHARE: u64 = 14;
/// The part of the budget that is kept for retransmissions that are lost again: one in so many.
const RESERVE_PART: u64 = 8;
/// Losses among the packets that no copy reaches, from which on copies of others gain nothing.
const CERTAIN_LOSSES: f64 = 25.0;
/// Packets at the end of a tail that are copied even so. Nothing that leaves behind the last ones tells that they are lost:
/// without their copies a probe timeout does, half a round trip or more later than a retransmission would be under way.
const LAST_COPIES: u64 = 3;
/// The chance that a tail may keep of having a retransmission lost again.
const FAILURE: f64 = 0.02;
/// From this share of lost packets on a retransmission is worth more than two transmissions.
const MUCH_LOSS: f64 = 0.05;
/// The last packets of a tail, as a part of those in flight, and the part of a round trip in which they leave: one in so
/// many.
const EARLY_PART: u64 = 8;
/// Packets that what is known of the path from before counts as, at most.
const KNOWN_PACKETS: u64 = 200;
/// Packets that earlier connections must have seen to say that the path loses.
const LEAST_KNOWN: u64 = 100;
/// The floor of copies where the path is known to lose [`CLEAN_LOSS`] or more, as a part of the floor: 96 packets with
/// `mobile`.
const LOSSY_FLOOR: (u64, u64) = (8, 7);

/// Packets that a path which has told nothing yet is taken to have settled, and how many of them to have lost.
const PRIOR_PACKETS: f64 = 20.0;
const PRIOR_LOST: f64 = 2.0;
/// Standard deviations of the number of lost packets that a code makes up for.
const CODE_MARGIN: f64 = 2.0;

/// Parameters of [`Tail`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Copies the first flight of the handshake. Default true.
    pub handshake: bool,
    /// Probes of a client that lacks the server's flight which are answered with that flight, 0 to 4. Default 2.
    #[serde(deserialize_with = "value::handshake_answers")]
    pub answers: u8,
    /// Transmissions that a retransmission in the tail may have in all, 1 (no copies) to 4. Default 2, which is also the
    /// most below 5 % of loss.
    #[serde(deserialize_with = "value::transmissions")]
    pub guard: u8,
    /// Copies of the newest packets: their share of the stream bytes sent. Default 1/16. With 0 only the floor holds.
    #[serde(deserialize_with = "value::share")]
    pub newest: (u32, u32),
    /// What of a stream is lost for the second time leaves twice, in a tail or before it: the share of its bytes that may.
    /// Default 1/64; with 0 nothing does.
    #[serde(deserialize_with = "value::share")]
    pub again: (u32, u32),
    /// Packets that may be copied on a connection whatever it has sent, 0 to 256. Default 32.
    #[serde(deserialize_with = "value::copied_packets")]
    pub floor: u64,
    /// Time between the last new packet and the first copy, in whole milliseconds up to a second. Default 3 ms.
    #[serde(deserialize_with = "value::ack_delay")]
    pub gap: Duration,
    /// Where both ends say so: recovery symbols over the ends of streams (docs/spec/tail-code.md) instead of copies of the
    /// newest packets. Default false.
    pub code: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            handshake: true,
            answers: 2,
            guard: 2,
            newest: (1, 16),
            again: (1, 64),
            floor: 32,
            gap: Duration::from_millis(3),
            code: false,
        }
    }
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let (numerator, denominator) = self.newest;
        let (again, of) = self.again;
        vec![
            Constant::new("handshake", self.handshake),
            Constant::new("answers", self.answers),
            Constant::new("guard", self.guard),
            Constant::new("newest", format!("{numerator}/{denominator}")),
            Constant::new("again", format!("{again}/{of}")),
            Constant::new("floor", format!("{} packets", self.floor)),
            Constant::new("gap", format!("{} ms", self.gap.as_millis())),
            Constant::new("code", self.code),
            Constant::new(
                "floor, path known to lose",
                format!("{} packets", self.floor * LOSSY_FLOOR.0 / LOSSY_FLOOR.1),
            ),
            Constant::new("known packets", KNOWN_PACKETS),
            Constant::new("answer wait", format!("{} ms", ANSWER_WAIT.as_millis())),
            Constant::new("greatest share", format!("{GREATEST_SHARE} %")),
            Constant::new("queue", format!("max({} ms, T/{QUEUE_PART})", QUEUE.as_millis())),
        ]
    }
}

impl RepairFactory for Parameters {
    fn build(&self) -> Box<dyn Repair> {
        Box::new(Tail::new(*self))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// Copies the tail; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Tail {
    parameters: Parameters,
    current: Option<Current>,
}

/// The present tail.
#[derive(Debug, Clone, Copy)]
struct Current {
    /// When its last new packet left, which tells it from others.
    last_new_at: Time,
    /// In flight when it began.
    in_flight: ByteCount,
    /// Copied on the connection until then.
    copied: ByteCount,
}

impl Tail {
    /// The policy with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self { parameters, current: None }
    }

    /// Packets that may be copied whatever has been sent: more where the path is known to lose.
    fn floor(&self, tail: &TailView) -> ByteCount {
        let floor = tail.max_datagram_size * self.parameters.floor;
        let (numerator, denominator) = LOSSY_FLOOR;
        if is_known_to_lose(tail) { floor.mul_ratio(numerator, denominator) } else { floor }
    }

    /// What copies of new packets may take on the connection.
    fn newest_budget(&self, tail: &TailView) -> ByteCount {
        let (numerator, denominator) = self.parameters.newest;
        let share = tail.sent.mul_ratio(numerator.into(), denominator.into());
        share.max(self.floor(tail))
    }

    /// What copies of retransmissions may take: for each further transmission as much as is lost, and what is free.
    fn guard_budget(&self, tail: &TailView) -> ByteCount {
        let (settled, lost) = counted(tail);
        let lost = tail.sent.mul_ratio(lost.get(), settled.get().max(1));
        lost * u64::from(self.parameters.guard.saturating_sub(1)) + self.free_guard(tail)
    }

    /// What copies of both kinds may take together.
    fn whole_budget(&self, tail: &TailView) -> ByteCount {
        let least = self.floor(tail) + self.free_guard(tail);
        self.newest_budget(tail).max(tail.sent.mul_ratio(GREATEST_SHARE, 100)).max(least)
    }

    /// Copies of retransmissions that are free whatever has been sent.
    fn free_guard(&self, tail: &TailView) -> ByteCount {
        tail.max_datagram_size * (self.parameters.floor / GUARD_FLOOR)
    }

    /// What becomes of the code over `code`: symbols for the packets that are likely to be lost, and a margin.
    fn code(&self, tail: &TailView, code: &CodeView) -> CodeStep {
        let datagram = tail.max_datagram_size;
        let per_packet = datagram.as_f64().max(1.0);
        let (settled, lost) = counted(tail);
        let p = (lost.as_f64() / per_packet + PRIOR_LOST) / (settled.as_f64() / per_packet + PRIOR_PACKETS);
        let lost = p.min(1.0) * libm::ceil(code.missing.as_f64() / per_packet);
        let wanted = libm::ceil(lost + CODE_MARGIN * libm::sqrt(lost + 0.25) + 1.0);
        if code.coded.as_f64() >= wanted * per_packet {
            return CodeStep::Enough;
        }
        let spent = tail.coded + tail.copied + tail.guarded + datagram;
        // A number of packets in flight, so the cast is exact.
        let of = wanted as u32;
        if spent <= self.whole_budget(tail) { CodeStep::Packet { of } } else { CodeStep::Wait }
    }

    /// What is kept for retransmissions that are lost again: each costs another round trip, and they are few.
    fn reserve(&self, tail: &TailView, in_flight: ByteCount) -> ByteCount {
        if tail.in_flight * 4 > in_flight {
            self.whole_budget(tail).mul_ratio(1, RESERVE_PART)
        } else {
            ByteCount::ZERO
        }
    }

    /// True if copies of the newest packets cannot save a round trip: of those of `in_flight` that the budget does not
    /// reach, some are lost for certain. What they would cost is the guard's then.
    fn is_hopeless(&self, tail: &TailView, in_flight: ByteCount) -> bool {
        let left = (in_flight - self.newest_budget(tail)).as_f64() / tail.max_datagram_size.as_f64().max(1.0);
        loss(tail) * left > CERTAIN_LOSSES
    }

    /// Transmissions that a retransmission is worth in all: with `k` of them, and one loss in `1/p`, the `n p` packets
    /// lost of `n` in flight fail with a chance of `n p^k` at most.
    fn transmissions(&self, tail: &TailView, in_flight: ByteCount) -> u8 {
        let p = loss(tail);
        if p <= 0.0 || p >= 1.0 {
            return 1;
        }
        let packets = in_flight.as_f64() / tail.max_datagram_size.as_f64().max(1.0);
        let enough = libm::ceil(libm::log(FAILURE / (p * packets).max(1.0)) / libm::log(p));
        let most = if p < MUCH_LOSS { 2 } else { u8::MAX };
        // At most four, and never below one: the cast is exact.
        (enough.clamp(1.0, 4.0) as u8).min(most).min(self.parameters.guard)
    }

    /// True if the path has shown that it loses next to nothing.
    fn is_clean(tail: &TailView) -> bool {
        let datagram = tail.max_datagram_size;
        settled(tail) >= datagram * CLEAN_PACKETS
            && tail.lost < datagram * 2
            && tail.lost.as_f64() < CLEAN_LOSS * settled(tail).as_f64()
    }

    /// The present tail, which begins with the first call after its last new packet.
    fn current(&mut self, tail: &TailView) -> Current {
        let fresh = Current { last_new_at: tail.last_new_at, in_flight: tail.in_flight, copied: tail.copied };
        let current = self.current.filter(|current| current.last_new_at == tail.last_new_at).unwrap_or(fresh);
        self.current = Some(current);
        current
    }
}

impl Repair for Tail {
    fn handshake_copy(&self) -> Option<Duration> {
        self.parameters.handshake.then_some(HANDSHAKE_DELAY)
    }

    fn handshake_answers(&self) -> HandshakeAnswers {
        HandshakeAnswers { most: self.parameters.answers, wait: ANSWER_WAIT }
    }

    fn codes(&self) -> bool {
        self.parameters.code
    }

    fn lost_again(&self) -> Option<(u32, u32)> {
        Some(self.parameters.again).filter(|(share, _)| *share > 0)
    }

    fn next(&mut self, tail: &TailView) -> RepairStep {
        if !tail.is_tail {
            return RepairStep::NOTHING;
        }
        let current = self.current(tail);
        if fills_path(tail) || has_queue(tail) && !has_drained(tail) {
            return RepairStep::NOTHING;
        }
        let code = tail.code.filter(|_| !Self::is_clean(tail));
        let code = code.map_or(CodeStep::Wait, |code| self.code(tail, &code));
        if code != CodeStep::Wait {
            return RepairStep { code, ..RepairStep::NOTHING };
        }
        self.copies(tail, current)
    }
}

impl Tail {
    /// What is copied, if anything.
    fn copies(&self, tail: &TailView, current: Current) -> RepairStep {
        let datagram = tail.max_datagram_size;
        let copied = tail.copied + datagram;
        let whole = self.whole_budget(tail) - self.reserve(tail, current.in_flight);
        if tail.guarded + tail.coded + copied > whole {
            return RepairStep::NOTHING;
        }
        let is_enough = Self::is_clean(tail) && copied - current.copied > datagram * CLEAN_COPIES;
        // Codes are for paths that lose, or may.
        let has_code = tail.is_coded && !Self::is_clean(tail);
        let may_copy = !has_code
            && !is_enough
            && copied <= self.newest_budget(tail)
            && (copied - current.copied <= datagram * LAST_COPIES
                || !self.is_hopeless(tail, current.in_flight));
        let may_guard = tail.guarded + datagram <= self.guard_budget(tail);
        let transmissions = if may_guard { self.transmissions(tail, current.in_flight) } else { 1 };
        // A second copy only if the first copies of those that are still to be lost can be paid.
        let expected = tail.in_flight.as_f64().min(current.in_flight.as_f64()) * loss(tail);
        let spent = (tail.guarded + tail.coded + copied).as_f64();
        let may_thrice = spent + expected <= whole.as_f64();
        let transmissions = if may_thrice { transmissions } else { transmissions.min(2) };
        if !may_copy && transmissions < 2 {
            return RepairStep::NOTHING;
        }
        RepairStep {
            retransmissions: transmissions,
            retransmitted_from: if has_code { Time::ZERO } else { guarded_from(tail, current.in_flight) },
            newest_from: may_copy.then_some(tail.last_new_at + self.parameters.gap),
            code: CodeStep::Wait,
        }
    }
}

/// When the first retransmission left that is worth a copy. What is lost of the last packets is known a round trip after
/// them, and so is the loss of a retransmission that left with them: a copy of it saves nothing if some of them are lost for
/// certain, and have no code.
fn guarded_from(tail: &TailView, in_flight: ByteCount) -> Time {
    let last = in_flight.as_f64() / EARLY_PART as f64 / tail.max_datagram_size.as_f64().max(1.0);
    if loss(tail) * last < 1.0 {
        return Time::ZERO;
    }
    tail.last_new_at + tail.rtt.min.mul_ratio(1, EARLY_PART)
}

/// Bytes of which it is known whether they arrived.
fn settled(tail: &TailView) -> ByteCount {
    tail.delivered + tail.lost
}

/// The same and those lost, with what is known of the path from before: it counts as if it had been seen here, but as no more
/// than [`KNOWN_PACKETS`].
fn counted(tail: &TailView) -> (ByteCount, ByteCount) {
    let known = u64::from(tail.known.settled());
    let weight = known.min(KNOWN_PACKETS);
    let all = tail.max_datagram_size * weight;
    let lost = all.mul_ratio(tail.known.lost().into(), known.max(1));
    (settled(tail) + all, tail.lost + lost)
}

/// True if earlier connections have seen enough of the path to say that it loses.
fn is_known_to_lose(tail: &TailView) -> bool {
    u64::from(tail.known.settled()) >= LEAST_KNOWN && tail.known.share() >= CLEAN_LOSS
}

/// The share of packets that is lost.
fn loss(tail: &TailView) -> f64 {
    let (settled, lost) = counted(tail);
    lost.as_f64() / settled.as_f64().max(1.0)
}

/// True if packets wait in a queue.
fn has_queue(tail: &TailView) -> bool {
    tail.queue() > QUEUE.max(tail.rtt.min.mul_ratio(1, QUEUE_PART))
}

/// True if the tail has a code, and the queue that was seen last has drained, unless others fill it. Acknowledgements show a
/// queue a round trip late, and symbols that waited for them would be no earlier than retransmissions.
fn has_drained(tail: &TailView) -> bool {
    tail.is_coded && tail.now.since(tail.last_new_at) >= tail.queue()
}

/// True if another packet would be more than the rate delivers in a round trip.
fn fills_path(tail: &TailView) -> bool {
    tail.rtt.is_measured
        && tail.rate.is_some_and(|rate| tail.in_flight + tail.max_datagram_size > rate.bytes_in(tail.rtt.min))
}

#[cfg(test)]
mod tests;
