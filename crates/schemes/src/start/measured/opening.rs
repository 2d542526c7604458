//! What the handshake's own flight shows of the path: how far apart its datagrams arrived.

use posthaste_policy::sample::{AckSample, SentSample};
use posthaste_units::{ByteCount, Duration, Rate, Time};

/// A path that delivers the handshake's datagrams at this rate or more is fast. A client that computes
/// between its acknowledgements and does not say so makes the path look slower; one that lies about it gets no more than
/// this path's first flight.
pub(super) const FAST: Rate = Rate::from_bits_per_second(12_000_000);

/// From this rate on a whole first flight takes no more than 4 ms of the bottleneck.
pub(super) const VERY_FAST: Rate = Rate::from_bits_per_second(200_000_000);

/// How much larger a client's first datagram is than its second: an Initial is padded to 1,200 bytes (RFC 9000 section
/// 14.1), what follows it is not. A link that is as fast in both directions brings the acknowledgements closer together by
/// that much.
const CLIENT_PADDING: ByteCount = ByteCount::new(800);

/// More than one datagram has been acknowledged: each is 1,200 bytes at the least.
const TWO_DATAGRAMS: ByteCount = ByteCount::new(2_400);

/// What a slow path's flight is paced at, as a part of what its datagrams have shown. That leaves [`CLIENT_PADDING`] out, and
/// where the client's second datagram has a request in it the padding hides less: on links that are as fast in both
/// directions 0.72 of the rate is shown, and less where they are not.
pub(super) const SLOW_PACE: (u64, u64) = (5, 4);

/// What the handshake has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Showing {
    /// Its datagrams came apart, and at [`VERY_FAST`] or more.
    VeryFast,
    /// Its datagrams came apart, and at [`FAST`] or more.
    Fast,
    /// Only one of them was acknowledged, or the second is too small to tell anything.
    Nothing,
    /// More than one, but at the same instant: no slow link has kept them apart, and the radio or the client has
    /// gathered them.
    Together,
    /// They came at this rate, or the packets that end its datagrams prove it: it is what the first flight is paced at.
    Slow(Rate),
    /// The same, but whole milliseconds apart: a radio's schedule has kept them apart, and the path may be as fast as any.
    Scheduled(Rate),
}

/// A pause between two 1-RTT packets after which those that follow are not of one train.
const PAUSE: Duration = Duration::from_micros(250);

/// Packets that left together, and how they were acknowledged.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// When what was acknowledged first and last arrived, plus the way back.
    first_acked: Option<Time>,
    last_acked: Option<Time>,
    /// Bytes acknowledged at the time of the first acknowledgement, and after it.
    with_first: ByteCount,
    behind_first: ByteCount,
}

/// When what `ack` acknowledges arrived, plus the way back; it left at `sent_at`. A browser verifies a certificate for tens of
/// milliseconds before it acknowledges what came with it, and says so.
fn arrival(ack: &AckSample<'_>, sent_at: Time) -> Time {
    sent_at + ack.now.since(sent_at).saturating_sub(ack.ack_delay)
}

impl Group {
    /// True if what `ack` acknowledges, of packets that left at `sent_at`, arrived with the first of the group.
    fn is_with_first(&self, ack: &AckSample<'_>, sent_at: Time) -> bool {
        self.first_acked.is_some_and(|first| arrival(ack, sent_at) <= first)
    }

    /// `bytes` of packets that left at `sent_at` or later are acknowledged.
    fn on_ack(&mut self, ack: &AckSample<'_>, sent_at: Time, bytes: ByteCount) {
        let arrived = arrival(ack, sent_at);
        if self.first_acked.is_some_and(|first| first < arrived) {
            self.behind_first += bytes;
            self.last_acked = self.last_acked.max(Some(arrived));
        } else {
            self.with_first += bytes;
        }
        self.first_acked.get_or_insert(arrived);
    }

    /// The rate at which it arrived, if it was acknowledged at two times, and more than the padding of a client's Initial
    /// at the second: up to there the time between the two is of something else.
    fn rate(&self) -> Option<Rate> {
        let (first, last) = (self.first_acked?, self.last_acked?);
        let behind = self.behind_first - CLIENT_PADDING;
        (!behind.is_zero()).then(|| Rate::from_transfer(behind, last.since(first)))
    }
}

/// Trains of 1-RTT packets that are looked at before the handshake is acknowledged: a client that is not known by its address
/// lets few leave at a time.
const EARLY_TRAINS: usize = 4;

/// 1-RTT packets that left together before anything was acknowledged: the answer to a request that came early. They are a
/// train as good as the handshake's own flight, which is short where a session is resumed: it has no certificate.
#[derive(Debug, Clone)]
struct EarlyTrain {
    first: u64,
    last: u64,
    began: Time,
    ended: Time,
    unacked: ByteCount,
    group: Group,
}

impl EarlyTrain {
    /// Packets are acknowledged; true if some are of this train. An acknowledgement that is shared with later packets came
    /// with those, and tells nothing of when these arrived.
    fn on_ack(&mut self, ack: &AckSample<'_>) -> bool {
        let of_train = ack.packets.iter().filter(|packet| (self.first..=self.last).contains(&packet.number));
        let bytes: ByteCount = of_train.map(|packet| packet.bytes).sum();
        self.unacked -= bytes;
        let is_shared = ack.packets.last().is_some_and(|newest| newest.number > self.last);
        if !bytes.is_zero() && !is_shared {
            self.group.on_ack(ack, self.began, bytes);
        }
        !bytes.is_zero()
    }
}

/// What a client's Initial of 1,200 bytes has more than the acknowledgement of an end, over what that and the client's
/// second datagram (its Finished and a request) have: a thin uplink takes this much longer, as parts of the time between the
/// first acknowledgement and the last, to bring the first than the client's datagrams came behind each other. In hundredths.
const UPLINK_PART: u64 = 166;

/// The same over what the acknowledgement of an end has (113 bytes with the headers), whatever the client sends with the
/// second.
const UPLINK_ACKS: u64 = 10;

/// A path whose ends prove this rate is fast, too. At [`FAST`], as links of 14 Mbit/s with 10 up prove, up to half of a flight
/// would be lost. A link that is as fast in both directions looks fast from 17 Mbit/s on: what proves more risks no more.
pub(super) const PROVEN_FAST: Rate = Rate::from_bits_per_second(20_000_000);

/// What LTE schedules by (3GPP TS 36.211: a subframe). Where all that is acknowledged comes whole ones apart, up to the
/// greatest gap here, that is a schedule's work. By chance a gap is as near to a whole one once in ten times, and both of a
/// handshake once in a hundred.
const SUBFRAME: Duration = Duration::from_millis(1);
const SUBFRAME_TOLERANCE: Duration = Duration::from_micros(50);
const MOST_SCHEDULED: Duration = Duration::from_millis(10);

/// The 1-RTT packets at the ends of the second and the third datagram of the flight, and when they arrived, plus the way
/// back.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    numbers: [Option<u64>; 2],
    arrived: [Option<Time>; 2],
}

impl Ends {
    fn contains(&self, number: u64) -> bool {
        self.numbers.contains(&Some(number))
    }

    /// Packets are acknowledged: only of the newest is known when it arrived.
    fn on_ack(&mut self, ack: &AckSample<'_>) {
        let Some(newest) = ack.packets.last() else { return };
        for (number, arrived) in self.numbers.iter().zip(&mut self.arrived) {
            if *number == Some(newest.number) {
                arrived.get_or_insert(arrival(ack, newest.sent_at));
            }
        }
    }

    /// The least rate at which the datagrams that they end can have come, `first` being when the one before them was
    /// acknowledged. An uplink that is thinner than the way here brings acknowledgements as fast as it can send them, and
    /// the third a moment behind the second. Then the datagrams came closer together than it took the client's first
    /// packet to leave, and how long that was follows from the others.
    fn rate(&self, first: Time) -> Option<Rate> {
        let [Some(second), Some(third)] = self.arrived else { return None };
        if second <= first || third <= second {
            return None;
        }
        let spread = third.since(first);
        let uplink = (spread * UPLINK_PART / 100).max(third.since(second) * UPLINK_ACKS);
        Some(Rate::from_transfer(TWO_DATAGRAMS, spread + uplink))
    }
}

/// True if `gap` is one or more whole subframes.
fn is_whole(gap: Duration) -> bool {
    let beyond = (gap + SUBFRAME_TOLERANCE).as_nanos() % SUBFRAME.as_nanos();
    gap > SUBFRAME_TOLERANCE && beyond <= (SUBFRAME_TOLERANCE * 2).as_nanos()
}

/// The handshake's first flight, and how it was acknowledged.
#[derive(Debug, Clone, Default)]
pub(super) struct Opening {
    /// When the flight left: later packets are repairs.
    sent_at: Option<Time>,
    flight: Group,
    early: Vec<EarlyTrain>,
    ends: Ends,
    is_marked: bool,
}

impl Opening {
    /// An Initial or Handshake packet leaves.
    pub(super) fn on_sent(&mut self, sent: &SentSample) {
        self.sent_at.get_or_insert(sent.now);
    }

    /// The 1-RTT packet `number`, which leaves next, ends a datagram of the flight.
    pub(super) fn on_datagram_end(&mut self, number: u64) {
        if let Some(free) = self.ends.numbers.iter_mut().find(|number| number.is_none()) {
            *free = Some(number);
        }
    }

    /// True if the 1-RTT packet `number` ends a datagram of the flight, and carries no data.
    pub(super) fn ends_datagram(&self, number: u64) -> bool {
        self.ends.contains(number)
    }

    /// 1-RTT packets are acknowledged that end datagrams of the flight. What ends the second came with it, and is a part of
    /// its 1,200 bytes; so is what ends the third, if all of them came at one instant.
    pub(super) fn on_datagram_end_ack(&mut self, ack: &AckSample<'_>) {
        self.ends.on_ack(ack);
        let (Some(sent_at), Some(newest)) = (self.sent_at, ack.packets.last()) else { return };
        let is_second = self.ends.numbers[0] == Some(newest.number);
        if is_second || self.flight.is_with_first(ack, sent_at) {
            let ends = ack.packets.iter().filter(|packet| self.ends.contains(packet.number));
            self.flight.on_ack(ack, sent_at, ends.map(|packet| packet.bytes).sum());
        }
    }

    /// A 1-RTT packet leaves before anything was acknowledged.
    pub(super) fn on_early_sent(&mut self, sent: &SentSample) {
        let SentSample { now, number, bytes, .. } = *sent;
        if let Some(train) = self.early.last_mut().filter(|train| now.since(train.ended) <= PAUSE) {
            train.last = number;
            train.ended = now;
            train.unacked += bytes;
        } else if self.early.len() < EARLY_TRAINS {
            let group = Group::default();
            let (first, last) = (number, number);
            self.early.push(EarlyTrain { first, last, began: now, ended: now, unacked: bytes, group });
        }
    }

    /// Initial or Handshake packets are acknowledged.
    pub(super) fn on_ack(&mut self, ack: &AckSample<'_>) {
        let of_flight = ack.packets.iter().filter(|packet| self.sent_at == Some(packet.sent_at));
        let bytes: ByteCount = of_flight.map(|packet| packet.bytes).sum();
        let (Some(sent_at), false) = (self.sent_at, bytes.is_zero()) else { return };
        self.flight.on_ack(ack, sent_at, bytes);
    }

    /// 1-RTT packets are acknowledged; true if they are some of those that left early.
    pub(super) fn on_early_ack(&mut self, ack: &AckSample<'_>) -> bool {
        let mut is_early = false;
        for train in &mut self.early {
            is_early |= train.on_ack(ack);
        }
        is_early
    }

    /// True while nothing tells the path's rate, and packets are under way that will: a train of two at the least.
    pub(super) fn is_open(&self) -> bool {
        let is_under_way = |train: &EarlyTrain| train.last > train.first && !train.unacked.is_zero();
        self.early.iter().any(is_under_way) && self.rate().is_none()
    }

    /// A packet was marked CE: a queue stands already.
    pub(super) fn on_mark(&mut self) {
        self.is_marked = true;
    }

    /// What a client does between two acknowledgements makes a path look slower, so the faster of the two is nearer to it.
    fn shown(&self) -> Option<Rate> {
        let early = self.early.iter().filter_map(|train| train.group.rate()).max();
        self.flight.rate().max(early)
    }

    /// The same, or what the ends prove if that is more.
    fn rate(&self) -> Option<Rate> {
        let ends = self.flight.first_acked.and_then(|first| self.ends.rate(first));
        self.shown().max(ends)
    }

    /// True if a schedule of whole milliseconds has kept the datagrams apart. The third must tell, too: one gap alone is too
    /// often a whole one by chance.
    fn is_scheduled(&self) -> bool {
        let (Some(first), Some(last)) = (self.flight.first_acked, self.flight.last_acked) else {
            return false;
        };
        let [second, Some(third)] = self.ends.arrived else { return false };
        let all = [Some(last), second, Some(third)];
        last.since(first) <= MOST_SCHEDULED && all.iter().flatten().all(|at| is_whole(at.since(first)))
    }

    /// What the first flight is paced at of a slow path that this `rate` was shown of. What the ends prove counts as it is:
    /// links of 14 Mbit/s with 10 up and a short queue lose a twelfth of a flight at five quarters of it. So do trains of 1-RTT
    /// packets, of which the padding hides less.
    pub(super) fn slow_pace(&self, rate: Rate) -> Rate {
        let shown = self.flight.rate().filter(|_| !self.is_marked).map_or(0, Rate::as_bits_per_second);
        rate.max(Rate::from_bits_per_second(shown.saturating_mul(SLOW_PACE.0) / SLOW_PACE.1))
    }

    /// What has been shown so far.
    pub(super) fn showing(&self) -> Showing {
        let Some(rate) = self.rate() else {
            let is_together = self.flight.last_acked.is_none()
                && self.flight.with_first >= TWO_DATAGRAMS
                && !self.is_marked;
            return if is_together { Showing::Together } else { Showing::Nothing };
        };
        match self.shown() {
            _ if self.is_marked => Showing::Slow(rate.min(FAST)),
            Some(shown) if shown >= VERY_FAST => Showing::VeryFast,
            Some(shown) if shown >= FAST => Showing::Fast,
            _ if rate >= PROVEN_FAST => Showing::Fast,
            _ if self.is_scheduled() => Showing::Scheduled(rate),
            _ => Showing::Slow(rate),
        }
    }
}
