//! The model of the path: its rate, its least round trip and jitter, the queue that stands, and how acks come in lumps.

use posthaste_policy::Constant;
use posthaste_units::{ByteCount, Duration, Time};

use super::steps::{self, Arrival, Steps};
use crate::congestion::model::{Rounds, Sample, Throttled, WindowedMax};

/// How many cycles of probing the rate is the greatest of.
const RATE_CYCLES: u64 = 2;
/// Rounds of which the greatest aggregation is kept.
const AGGREGATION_ROUNDS: u64 = 10;
/// How long a least RTT holds that has not been seen again.
const LEAST_RTT_LIFETIME: Duration = Duration::from_secs(10);
/// Acks whose least RTT tells the queue: single ones jitter.
const RECENT_ACKS: usize = 8;
/// Acks over which the rate of their arrival is measured.
const ARRIVALS: usize = 32;
/// The least queue that counts: below it is jitter (RFC 9406 section 4.3).
const LEAST_QUEUE: Duration = Duration::from_millis(4);
/// The queue that counts, as a part of the least RTT.
const QUEUE_PART: u64 = 8;
/// The queue that says that the rate has fallen.
const FALL_QUEUE: Duration = Duration::from_micros(12_500);
/// The same as a part of the least RTT.
const FALL_PART: u64 = 4;
/// Steps of the delay count up to this part of the least RTT, one in so many.
const MOST_STEP_PART: u64 = 2;
/// No path jitters by more.
const MOST_JITTER: Duration = Duration::from_millis(250);

/// The constants, for people.
pub(super) fn constants() -> [Constant; 4] {
    [
        Constant::new(
            "queue",
            format!("{LEAST_QUEUE}, 1/{QUEUE_PART} of the least RTT or two jitters, whichever is most"),
        ),
        Constant::new(
            "fallen rate",
            format!("a queue of {FALL_QUEUE}, 1/{FALL_PART} of the least RTT or two jitters in two rounds"),
        ),
        Constant::new(
            "steps of the delay",
            format!(
                "twice the greatest of {} rounds is no queue, at most 1/{MOST_STEP_PART} of the least RTT",
                steps::ROUNDS
            ),
        ),
        Constant::new("rate", format!("the greatest of {RATE_CYCLES} cycles of probing")),
    ]
}

/// The path as the controller sees it. Rates are bytes a second.
#[derive(Debug, Clone, Default)]
pub(super) struct Path {
    rates: WindowedMax,
    cycles: u64,
    /// Greatest rate of this round and of the two before.
    round_rates: [f64; 3],
    least_rtt: Option<Duration>,
    least_rtt_at: Time,
    /// The least RTT that queues were told by when it was last found wrong.
    told_by: Duration,
    /// The last ack has shown that what was taken for the least RTT had a queue in it.
    pub(super) had_hidden_queue: bool,
    /// A longer queue has been seen than the one that the least RTT may have in it.
    has_room: bool,
    /// Least RTT of the present round and of the two before.
    round_rtts: [Option<Duration>; 3],
    recent: [Duration; RECENT_ACKS],
    acks: usize,
    arrivals: [(Time, f64); ARRIVALS],
    /// Moving mean of what one round trip differs from the one before, beyond what two packets of a neighbour's make.
    jitter: Duration,
    last_rtt: Duration,
    steps: Steps,
    aggregation: Aggregation,
    /// What was sent slowly on purpose says nothing of the path's rate.
    pub(super) throttled: Throttled,
}

#[derive(Debug, Clone, Default)]
struct Aggregation {
    started: Time,
    delivered: f64,
    extra: WindowedMax,
}

impl Path {
    /// An ack arrives.
    pub(super) fn update(&mut self, sample: &Sample, rounds: &Rounds, lost: ByteCount, datagram: f64) {
        self.update_rtt(sample, datagram);
        let arrived = (sample.total_delivered + lost).as_f64();
        if let Some(arrival) = self.arrivals.get_mut(self.acks % ARRIVALS) {
            *arrival = (sample.now, arrived);
        }
        self.acks += 1;
        self.has_room |= self.common_queue() > self.eps();
        // A sample of a sender with little to send is a lower bound: it counts if it is above what is known.
        if sample.rate > 0.0 && (sample.rate >= self.bandwidth() || !sample.app_limited) {
            self.rates.update(self.cycles, RATE_CYCLES, sample.rate);
        }
        self.round_rates[0] = self.round_rates[0].max(sample.rate);
        if !sample.app_limited {
            self.update_aggregation(sample, rounds);
        }
    }

    /// The next ack takes the place of the last.
    pub(super) fn replace_last_ack(&mut self) {
        self.acks = self.acks.saturating_sub(1);
    }

    fn update_rtt(&mut self, sample: &Sample, datagram: f64) {
        let rtt = sample.rtt;
        if let Some(recent) = self.recent.get_mut(self.acks % RECENT_ACKS) {
            *recent = rtt;
        }
        let round = &mut self.round_rtts[0];
        *round = Some(round.map_or(rtt, |least| least.min(rtt)));
        let eps = self.eps();
        if self.least_rtt.is_none() {
            self.told_by = rtt;
        }
        // However many small steps it took.
        self.had_hidden_queue = self.told_by > rtt + eps;
        if self.had_hidden_queue {
            self.told_by = rtt;
        }
        let known = self.least_rtt.get_or_insert(rtt);
        *known = (*known).min(rtt);
        // As good as the least: what is known holds on.
        if rtt <= *known + *known / 32 {
            self.least_rtt_at = sample.now;
        }
        if self.acks > 0 {
            let packets = Duration::from_secs_f64(2.0 * datagram / self.bandwidth().max(1.0));
            let jump = rtt.abs_diff(self.last_rtt).saturating_sub(packets).min(MOST_JITTER);
            self.jitter = (self.jitter * 15 + jump * 2) / 16;
        }
        self.last_rtt = rtt;
    }

    /// What acks bring beyond what the rate explains, so that acks in lumps do not stall the sender.
    fn update_aggregation(&mut self, sample: &Sample, rounds: &Rounds) {
        let bandwidth = self.bandwidth();
        let of = &mut self.aggregation;
        let mut expected = bandwidth * sample.now.since(of.started).as_secs_f64();
        if of.delivered <= expected {
            of.delivered = 0.0;
            of.started = sample.now;
            expected = 0.0;
        }
        of.delivered += sample.newly_acked;
        of.extra.update(rounds.count, AGGREGATION_ROUNDS, of.delivered - expected);
    }

    /// A round trip has ended.
    pub(super) fn end_round(&mut self) {
        self.round_rtts.rotate_right(1);
        self.round_rates.rotate_right(1);
        self.round_rtts[0] = None;
        self.round_rates[0] = 0.0;
    }

    /// The least RTT of the round that has ended and of the one before.
    pub(super) fn ended_rtts(&self) -> [Option<Duration>; 2] {
        [self.round_rtts[1], self.round_rtts[2]]
    }

    /// The greatest rate of the last cycles.
    pub(super) fn bandwidth(&self) -> f64 {
        self.rates.get()
    }

    /// The least RTT, once there is one.
    pub(super) fn least_rtt(&self) -> Duration {
        self.least_rtt.unwrap_or(Duration::ZERO)
    }

    /// What fills the path without a queue, bytes.
    pub(super) fn bdp(&self) -> f64 {
        self.bandwidth() * self.least_rtt().as_secs_f64()
    }

    /// How much RTTs differ without a queue.
    pub(super) fn jitter(&self) -> Duration {
        self.jitter.max(self.step())
    }

    /// Bytes that one lump of acks covers beyond the rate.
    pub(super) fn extra(&self) -> f64 {
        self.aggregation.extra.get()
    }

    /// True if the least RTT has not been seen for long.
    pub(super) fn is_least_rtt_old(&self, now: Time) -> bool {
        now.since(self.least_rtt_at) > LEAST_RTT_LIFETIME
    }

    /// False if the least RTT may be that of a full queue, which drops packets without delaying their neighbours any
    /// more: no round trip has been longer than it by what counts as a queue.
    pub(super) fn has_room(&self) -> bool {
        self.has_room
    }

    /// The least RTT is what was seen since the last round ended, at `now`.
    pub(super) fn renew_least_rtt(&mut self, now: Time) {
        let seen = self.round_rtts[0].or(self.round_rtts[1]).or(self.least_rtt);
        // What the longest queue was above the old one says nothing of this one.
        self.has_room &= seen <= self.least_rtt.map(|known| known + self.eps());
        self.least_rtt = seen;
        self.told_by = self.least_rtt();
        self.least_rtt_at = now;
    }

    /// An ack with this round trip, less the receiver's delay, arrives: does the medium's delay change by itself? A train
    /// may have shown a `ceiling` above the known rate.
    pub(super) fn note_step(&mut self, sample: &Sample, rtt: Duration, rounds: &Rounds, ceiling: f64) {
        let fastest = self.bandwidth().max(ceiling).max(1.0);
        let service = Duration::from_secs_f64(sample.newly_acked / fastest);
        self.steps.update(rounds.count, Arrival { sent_at: sample.sent_at, rtt, service });
    }

    /// Steps are no longer the medium's.
    pub(super) fn forget_steps(&mut self) {
        self.steps = Steps::default();
    }

    /// How much the medium's delay has changed by itself.
    fn step(&self) -> Duration {
        self.steps.greatest().min(self.most_step())
    }

    /// A neighbour's burst is a step too: more than this is never excused.
    fn most_step(&self) -> Duration {
        self.least_rtt() / MOST_STEP_PART
    }

    /// The delay from which on a queue stands. Of a delay that has stepped by as much, twice that is seen.
    pub(super) fn eps(&self) -> Duration {
        self.strict_eps().max((self.step() * 2).min(self.most_step()))
    }

    /// The same where a neighbour is looked for, whose bursts would be steps.
    pub(super) fn strict_eps(&self) -> Duration {
        (self.least_rtt() / QUEUE_PART).max(LEAST_QUEUE).max(self.jitter * 2)
    }

    /// The queue that even the quickest of the last acks have met.
    pub(super) fn queue(&self) -> Duration {
        let count = self.acks.min(RECENT_ACKS);
        let least = self.recent.iter().take(count).min().copied().unwrap_or(Duration::ZERO);
        least.saturating_sub(self.least_rtt())
    }

    /// The queue that a packet with this round trip has met.
    pub(super) fn delay_of(&self, rtt: Duration) -> Duration {
        rtt.saturating_sub(self.least_rtt())
    }

    /// The longest queue that the last acks have met.
    pub(super) fn peak_queue(&self) -> Duration {
        let count = self.acks.min(RECENT_ACKS);
        self.delay_of(self.recent.iter().take(count).max().copied().unwrap_or(Duration::ZERO))
    }

    /// The same, one ack passed over: a receiver may have delayed it (RFC 9000 section 13.2.1), as it does the last of
    /// each flight.
    pub(super) fn common_queue(&self) -> Duration {
        self.delay_of(second_greatest(self.recent.iter().take(self.acks)))
    }

    /// True if [`Self::queue`] is told by the last `acks` acks alone.
    pub(super) const fn is_queue_known(acks: usize) -> bool {
        acks >= RECENT_ACKS
    }

    /// True if in both of the last rounds a queue stood that this sender's rate does not explain.
    pub(super) fn has_standing_queue(&self) -> bool {
        let limit = FALL_QUEUE.max(self.least_rtt() / FALL_PART).max(self.jitter * 2).max(self.step());
        let stands =
            |rtt: &Option<Duration>| rtt.is_some_and(|least| least.saturating_sub(self.least_rtt()) > limit);
        self.round_rtts.iter().skip(1).all(stands)
    }

    /// The rate is what the last two rounds have shown.
    pub(super) fn fall_back(&mut self) {
        let rate = self.round_rates[1].max(self.round_rates[2]);
        if rate > 0.0 && rate < self.bandwidth() {
            self.set_bandwidth(rate);
        }
    }

    /// The rate at which the last acks came, at most `acks` of them, lost packets counted: while a queue stands it is the
    /// bottleneck's.
    pub(super) fn arrival_rate(&self, acks: usize) -> f64 {
        let newest = self.acks.wrapping_sub(1) % ARRIVALS;
        let oldest = self.acks.saturating_sub(acks.min(ARRIVALS)) % ARRIVALS;
        let (Some(new), Some(old)) = (self.arrivals.get(newest), self.arrivals.get(oldest)) else {
            return 0.0;
        };
        let seconds = new.0.since(old.0).as_secs_f64();
        if seconds < 0.001 { 0.0 } else { (new.1 - old.1) / seconds }
    }

    /// A cycle of probing has ended.
    pub(super) fn end_cycle(&mut self) {
        self.cycles += 1;
    }

    /// The rate is at least this.
    pub(super) fn raise_bandwidth(&mut self, rate: f64) {
        if rate > self.bandwidth() {
            self.rates.update(self.cycles, RATE_CYCLES, rate);
        }
    }

    /// The rate is this.
    pub(super) fn set_bandwidth(&mut self, rate: f64) {
        self.rates.clear();
        self.rates.update(self.cycles, RATE_CYCLES, rate);
    }

    /// Everything about the rate is unknown again.
    pub(super) fn forget_rate(&mut self) {
        self.rates.clear();
    }

    /// The rate has been found: what acks brought beyond a rate that was still rising is no lump.
    pub(super) fn forget_aggregation(&mut self, now: Time) {
        self.aggregation.extra.clear();
        self.restart_aggregation(now);
    }

    /// The pause before `now` is no part of a lump.
    pub(super) fn restart_aggregation(&mut self, now: Time) {
        self.aggregation.started = now;
        self.aggregation.delivered = 0.0;
    }
}

/// The second greatest of some durations, zero if there are fewer than two.
pub(super) fn second_greatest<'a>(all: impl Iterator<Item = &'a Duration>) -> Duration {
    let [_, second] = all.fold([Duration::ZERO; 2], |[first, second], &duration| {
        [first.max(duration), second.max(duration.min(first))]
    });
    second
}
