//! A path with a bottleneck and a drop-tail buffer, and a sender that obeys a controller: enough to see a model-based
//! controller's whole course without a transport.

use std::collections::VecDeque;

use posthaste_policy::Congestion;
use posthaste_policy::sample::{
    AckSample, LossSample, PacketSample, PacketSpace, RateSample, RttView, SentSample,
};
use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};

use super::DATAGRAM;

/// Packets by which a later one must be ahead for an earlier to count as lost.
const PACKET_THRESHOLD: u64 = 3;

/// The path, which may change while a test runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) rate: Rate,
    /// The round trip without a queue.
    pub(crate) rtt: Duration,
    /// What the queue holds.
    pub(crate) buffer: ByteCount,
    /// Random loss.
    pub(crate) loss: f64,
}

impl Link {
    /// 10 Mbit/s and 40 ms: 50,000 bytes, or 41 datagrams, of BDP; a buffer of two BDP.
    pub(crate) const fn usual() -> Self {
        Self {
            rate: Rate::from_bits_per_second(10_000_000),
            rtt: Duration::from_millis(40),
            buffer: ByteCount::new(100_000),
            loss: 0.0,
        }
    }

    /// What fills the path and not its queue.
    pub(crate) const fn bdp(&self) -> ByteCount {
        self.rate.bytes_in(self.rtt)
    }
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    sample: PacketSample,
    delivered_at: Time,
    first_sent_at: Time,
}

/// The sender and its path.
#[derive(Debug)]
pub(crate) struct Bottleneck {
    pub(crate) link: Link,
    pub(crate) now: Time,
    /// Nothing is sent while this is set.
    pub(crate) idle: bool,
    /// Packets that leave are marked on their way from here on.
    pub(crate) marks: bool,
    /// Acks arrive at multiples of this, as from a radio that gathers them; zero: each for itself.
    pub(crate) lumps: Duration,
    /// What another sender keeps in flight over the same link, in datagrams.
    pub(crate) others: usize,
    /// When its acks arrive.
    others_acks: VecDeque<Time>,
    rng: Rng,
    outstanding: VecDeque<Sent>,
    /// Acks on their way: when they arrive, and for which packet.
    acks: VecDeque<(Time, u64, bool)>,
    link_free_at: Time,
    may_send_at: Time,
    next: u64,
    in_flight: ByteCount,
    pub(crate) delivered: ByteCount,
    pub(crate) lost: ByteCount,
    delivered_at: Time,
    first_sent_at: Time,
    app_limited_until: Option<ByteCount>,
    min_rtt: Duration,
    smoothed: Option<Duration>,
    round: u64,
}

impl Bottleneck {
    pub(crate) fn new(link: Link) -> Self {
        let now = Time::ZERO + Duration::from_secs(1);
        Self {
            link,
            now,
            idle: false,
            marks: false,
            lumps: Duration::ZERO,
            others: 0,
            others_acks: VecDeque::new(),
            rng: Rng::from_test_seed(7),
            outstanding: VecDeque::new(),
            acks: VecDeque::new(),
            link_free_at: now,
            may_send_at: now,
            next: 0,
            in_flight: ByteCount::ZERO,
            delivered: ByteCount::ZERO,
            lost: ByteCount::ZERO,
            delivered_at: now,
            first_sent_at: now,
            app_limited_until: None,
            min_rtt: Duration::MAX,
            smoothed: None,
            round: 0,
        }
    }

    pub(crate) fn in_flight(&self) -> ByteCount {
        self.in_flight
    }

    /// Bytes in the queue now.
    pub(crate) fn queue(&self) -> ByteCount {
        self.link.rate.bytes_in(self.link_free_at.since(self.now))
    }

    /// Runs for `time`, calling `watch` after each event.
    pub(crate) fn run(
        &mut self,
        controller: &mut dyn Congestion,
        time: Duration,
        mut watch: impl FnMut(&Self, &dyn Congestion),
    ) {
        let end = self.now + time;
        loop {
            let has_room = self.in_flight + DATAGRAM <= controller.window();
            let send_at = (has_room && !self.idle).then(|| self.may_send_at.max(self.now));
            let ack_at = self.acks.front().map(|(at, ..)| *at);
            // With everything lost, nothing but a timer helps.
            let stuck = self.acks.is_empty() && !self.outstanding.is_empty();
            let timer_at = stuck.then(|| self.now + Duration::from_millis(500)).filter(|_| send_at.is_none());
            let others_at = if self.others_acks.len() < self.others {
                Some(self.now)
            } else {
                self.others_acks.front().copied()
            };
            let events = [send_at, ack_at, timer_at, others_at];
            let Some(at) = events.into_iter().flatten().min().filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = at;
            if others_at == Some(at) {
                self.step_others();
            } else if ack_at == Some(at) {
                self.acknowledge(controller);
            } else if send_at == Some(at) {
                self.send(controller);
            } else {
                let next = self.next;
                self.detect_lost(controller, next + PACKET_THRESHOLD);
            }
            watch(self, controller);
        }
    }

    /// The other sender sends, or hears of a packet: what the queue has no room for it tries again a round trip later.
    fn step_others(&mut self) {
        if self.others_acks.len() >= self.others {
            self.others_acks.pop_front();
        }
        if self.others_acks.len() < self.others {
            let is_dropped = self.queue() + DATAGRAM > self.link.buffer;
            let left_at = self.link_free_at.max(self.now);
            if !is_dropped {
                self.link_free_at = left_at + self.link.rate.time_for(DATAGRAM);
            }
            self.others_acks.push_back(self.link_free_at.max(self.now) + self.link.rtt);
        }
    }

    fn rtt(&self) -> RttView {
        let smoothed = self.smoothed.unwrap_or(Duration::from_millis(333));
        RttView {
            latest: smoothed,
            smoothed,
            variance: Duration::ZERO,
            min: self.min_rtt.min(smoothed),
            is_measured: self.smoothed.is_some(),
        }
    }

    fn send(&mut self, controller: &mut dyn Congestion) {
        let prior_in_flight = self.in_flight;
        if prior_in_flight.is_zero() {
            self.first_sent_at = self.now;
            self.delivered_at = self.now;
        }
        self.in_flight += DATAGRAM;
        let (now, number, app_limited) = (self.now, self.next, self.app_limited_until.is_some());
        let sample = PacketSample {
            number,
            sent_at: now,
            bytes: DATAGRAM,
            in_flight: self.in_flight,
            delivered: self.delivered,
            lost: self.lost,
            app_limited,
        };
        let sent = Sent { sample, delivered_at: self.delivered_at, first_sent_at: self.first_sent_at };
        self.outstanding.push_back(sent);
        controller.on_sent(&SentSample {
            now,
            space: PacketSpace::Data,
            number,
            bytes: DATAGRAM,
            prior_in_flight,
            app_limited,
        });
        self.next += 1;
        if let Some(pacing) = controller.pacing(&self.rtt()) {
            self.may_send_at = now.max(self.may_send_at) + pacing.rate.time_for(DATAGRAM);
        }
        let is_dropped = self.rng.chance(self.link.loss) || self.queue() + DATAGRAM > self.link.buffer;
        if !is_dropped {
            self.link_free_at = self.link_free_at.max(now) + self.link.rate.time_for(DATAGRAM);
            // Where the delay falls, acks do not overtake those before them.
            let last = self.acks.back().map_or(now, |(at, ..)| *at);
            let at = self.gathered(self.link_free_at + self.link.rtt).max(last);
            self.acks.push_back((at, number, self.marks));
        }
    }

    /// When what arrives `at` is told.
    fn gathered(&self, at: Time) -> Time {
        let lump = self.lumps.as_nanos().max(1);
        Time::ZERO + Duration::from_nanos(at.as_nanos().next_multiple_of(lump))
    }

    fn acknowledge(&mut self, controller: &mut dyn Congestion) {
        let Some((_, number, marked)) = self.acks.pop_front() else { return };
        let Some(index) = self.outstanding.iter().position(|sent| sent.sample.number == number) else {
            return;
        };
        let Some(sent) = self.outstanding.remove(index) else { return };
        let latest = self.now.since(sent.sample.sent_at);
        self.min_rtt = self.min_rtt.min(latest);
        self.smoothed = Some(self.smoothed.map_or(latest, |old| (old * 7 + latest) / 8));
        let prior_in_flight = self.in_flight;
        self.in_flight -= DATAGRAM;
        self.delivered += DATAGRAM;
        self.delivered_at = self.now;
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        self.first_sent_at = sent.sample.sent_at;
        let send_elapsed = sent.sample.sent_at.since(sent.first_sent_at);
        let interval = send_elapsed.max(self.now.since(sent.delivered_at));
        let delivered = self.delivered - sent.sample.delivered;
        let delivery_rate = (interval >= self.min_rtt).then(|| RateSample {
            rate: Rate::from_transfer(delivered, interval),
            delivered,
            interval,
            app_limited: sent.sample.app_limited,
        });
        controller.on_ack(&AckSample {
            now: self.now,
            space: PacketSpace::Data,
            packets: &[sent.sample],
            acked: DATAGRAM,
            ack_delay: Duration::ZERO,
            rtt_sample: Some(latest),
            rtt: self.rtt(),
            prior_in_flight,
            in_flight: self.in_flight,
            delivered: self.delivered,
            lost: self.lost,
            delivery_rate,
            round: self.round,
            round_started: false,
            app_limited: false,
            newly_marked: u64::from(marked),
            largest_sent: self.next - 1,
        });
        if marked {
            controller.on_congestion_experienced(self.now, sent.sample.sent_at, self.in_flight);
        }
        self.detect_lost(controller, number);
    }

    /// Declares lost what is well below `number`.
    fn detect_lost(&mut self, controller: &mut dyn Congestion, number: u64) {
        let is_lost = |sent: &&Sent| sent.sample.number + PACKET_THRESHOLD <= number;
        let packets: Vec<PacketSample> =
            self.outstanding.iter().take_while(is_lost).map(|sent| sent.sample).collect();
        if packets.is_empty() {
            return;
        }
        self.outstanding.drain(..packets.len());
        let bytes = DATAGRAM * packets.len() as u64;
        let prior_in_flight = self.in_flight;
        self.in_flight -= bytes;
        self.lost += bytes;
        controller.on_loss(&LossSample {
            now: self.now,
            space: PacketSpace::Data,
            packets: &packets,
            bytes,
            prior_in_flight,
            in_flight: self.in_flight,
            rtt: self.rtt(),
            delivered: self.delivered,
            lost: self.lost,
        });
    }

    /// The sender has run out of data, until it is told otherwise.
    pub(crate) fn run_dry(&mut self) {
        self.idle = true;
        self.app_limited_until = Some(self.delivered + self.in_flight);
    }
}
