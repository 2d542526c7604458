//! What the tests of several policies share: samples, and a path whose acks keep time.

mod bottleneck;

use posthaste_units::{ByteCount, Duration, Time};

pub(crate) use bottleneck::{Bottleneck, Link};

use posthaste_policy::Congestion;
use posthaste_policy::sample::{
    AckSample, LossSample, PacketSample, PacketSpace, RttView, SentSample, SpuriousSample,
};

/// The datagram size of all tests.
pub(crate) const DATAGRAM: ByteCount = ByteCount::new(1200);

pub(crate) const fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// An estimate that has only ever seen `value`.
pub(crate) const fn steady_rtt(value: Duration) -> RttView {
    RttView { latest: value, smoothed: value, variance: Duration::ZERO, min: value, is_measured: true }
}

pub(crate) fn packet(number: u64, sent_at: Time) -> PacketSample {
    PacketSample {
        number,
        sent_at,
        bytes: DATAGRAM,
        in_flight: DATAGRAM,
        delivered: ByteCount::ZERO,
        lost: ByteCount::ZERO,
        app_limited: false,
    }
}

/// An ack of `packets` with an RTT sample of what `rtt` says is the latest.
pub(crate) fn ack(now: Time, packets: &[PacketSample], rtt: RttView, round: u64) -> AckSample<'_> {
    let acked = packets.iter().map(|packet| packet.bytes).sum();
    AckSample {
        now,
        space: PacketSpace::Data,
        packets,
        acked,
        ack_delay: Duration::ZERO,
        rtt_sample: Some(rtt.latest),
        rtt,
        prior_in_flight: acked,
        in_flight: ByteCount::ZERO,
        delivered: acked,
        lost: ByteCount::ZERO,
        delivery_rate: None,
        round,
        round_started: false,
        app_limited: false,
        newly_marked: 0,
        largest_sent: packets.last().map_or(0, |packet| packet.number),
    }
}

/// A loss of `packets`.
pub(crate) fn loss(now: Time, packets: &[PacketSample], rtt: RttView) -> LossSample<'_> {
    let bytes = packets.iter().map(|packet| packet.bytes).sum();
    LossSample {
        now,
        space: PacketSpace::Data,
        packets,
        bytes,
        prior_in_flight: bytes,
        in_flight: ByteCount::ZERO,
        rtt,
        delivered: ByteCount::ZERO,
        lost: bytes,
    }
}

/// A path with a constant RTT and no bottleneck: each flight is acknowledged one RTT after it was sent, every
/// second packet.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) now: Time,
    pub(crate) rtt: Duration,
    /// What is in flight besides the flights sent here: above zero, the sender never counts as idle.
    pub(crate) others_in_flight: ByteCount,
    next_number: u64,
    round: u64,
}

impl Path {
    pub(crate) fn new(rtt: Duration) -> Self {
        Self {
            now: Time::ZERO + Duration::from_secs(1),
            rtt,
            others_in_flight: ByteCount::ZERO,
            next_number: 0,
            round: 0,
        }
    }

    /// Sends `count` packets now.
    pub(crate) fn send(&mut self, controller: &mut dyn Congestion, count: u64) -> Vec<PacketSample> {
        (0..count)
            .map(|index| {
                let number = self.next_number;
                self.next_number += 1;
                controller.on_sent(&SentSample {
                    now: self.now,
                    space: PacketSpace::Data,
                    number,
                    bytes: DATAGRAM,
                    prior_in_flight: self.others_in_flight + DATAGRAM * index,
                    app_limited: false,
                });
                packet(number, self.now)
            })
            .collect()
    }

    /// Acknowledges `flight` now.
    pub(crate) fn acknowledge(
        &mut self,
        controller: &mut dyn Congestion,
        flight: &[PacketSample],
        app_limited: bool,
    ) {
        self.round += 1;
        for pair in flight.chunks(2) {
            let sample = ack(self.now, pair, steady_rtt(self.rtt), self.round);
            controller.on_ack(&AckSample { app_limited, ..sample });
        }
    }

    /// One round trip in which the window is full.
    pub(crate) fn round_trip(&mut self, controller: &mut dyn Congestion) {
        let count = controller.window() / DATAGRAM.get();
        let flight = self.send(controller, count.get());
        self.now += self.rtt;
        self.acknowledge(controller, &flight, false);
    }

    /// One round trip in which the application has but one packet to send.
    pub(crate) fn limited_round_trip(&mut self, controller: &mut dyn Congestion) {
        let flight = self.send(controller, 1);
        self.now += self.rtt;
        self.acknowledge(controller, &flight, true);
    }

    /// Sends `count` packets and declares them lost a round trip later.
    pub(crate) fn lose(&mut self, controller: &mut dyn Congestion, count: u64) -> Vec<PacketSample> {
        let flight = self.send(controller, count);
        self.now += self.rtt;
        controller.on_loss(&loss(self.now, &flight, steady_rtt(self.rtt)));
        // What is sent from here on left after the reduction.
        self.now += Duration::from_nanos(1);
        flight
    }

    /// Some of `lost` turn out to have arrived.
    pub(crate) fn refute(&self, controller: &mut dyn Congestion, lost: &[PacketSample]) {
        let sent_at = lost.first().expect("packets to refute").sent_at;
        controller.on_spurious_loss(&SpuriousSample { now: self.now, packets: lost.len() as u64, sent_at });
    }
}

/// A window in datagrams.
pub(crate) fn datagrams(window: ByteCount) -> f64 {
    window.as_f64() / DATAGRAM.as_f64()
}
