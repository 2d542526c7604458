//! Whatever happens in whatever order, a controller stays within its bounds.

use posthaste_policy::sample::{
    AckSample, PacketSample, PacketSpace, RateSample, RttView, SentSample, SpuriousSample,
};
use posthaste_policy::{Adjustment, Congestion, PathLimits};
use posthaste_units::{ByteCount, Duration, Rate, Time};
use proptest::prelude::*;

use crate::testing::{ack, loss, packet};

#[derive(Debug, Clone)]
pub(super) enum Event {
    Wait(u64),
    Sent { count: u64, idle: bool },
    Acked { count: usize, rtt: u64, app_limited: bool, new_round: bool },
    Lost(usize),
    Marked,
    Spurious { packets: u64, age: u64 },
    Persistent,
    DatagramSize(u64),
    Adjusted(Option<u64>, Option<u64>),
}

pub(super) fn event() -> impl Strategy<Value = Event> {
    let nanos = prop_oneof![4 => 0..500_000_000_u64, 1 => any::<u64>().prop_map(|value| value >> 8)];
    prop_oneof![
        4 => nanos.clone().prop_map(Event::Wait),
        8 => (1..100_u64, any::<bool>()).prop_map(|(count, idle)| Event::Sent { count, idle }),
        8 => (1..100_usize, nanos.clone(), any::<bool>(), any::<bool>()).prop_map(
            |(count, rtt, app_limited, new_round)| Event::Acked { count, rtt, app_limited, new_round }
        ),
        3 => (1..20_usize).prop_map(Event::Lost),
        1 => Just(Event::Marked),
        2 => (any::<u64>(), nanos).prop_map(|(packets, age)| Event::Spurious { packets, age }),
        1 => Just(Event::Persistent),
        1 => (1..65_536_u64).prop_map(Event::DatagramSize),
        1 => any::<(Option<u64>, Option<u64>)>().prop_map(|(window, threshold)| Event::Adjusted(window, threshold)),
    ]
}

/// A connection that lets anything happen to its controller.
pub(super) struct World {
    now: Time,
    round: u64,
    next: u64,
    pub(super) size: ByteCount,
    in_flight: Vec<posthaste_policy::sample::PacketSample>,
    pub(super) rtt: RttView,
    delivered: ByteCount,
}

impl World {
    pub(super) fn new(size: ByteCount) -> Self {
        let initial = Duration::from_millis(333);
        let rtt = RttView {
            latest: initial,
            smoothed: initial,
            variance: initial / 2,
            min: initial,
            is_measured: false,
        };
        Self {
            now: Time::ZERO,
            round: 0,
            next: 0,
            size,
            in_flight: Vec::new(),
            rtt,
            delivered: ByteCount::ZERO,
        }
    }

    pub(super) fn apply(&mut self, event: &Event, controller: &mut dyn Congestion) {
        match *event {
            Event::Wait(nanos) => self.now += Duration::from_nanos(nanos),
            Event::Sent { count, idle } => self.send(count, idle, controller),
            Event::Acked { count, rtt, app_limited, new_round } => {
                self.round += u64::from(new_round);
                let packets: Vec<_> = self.in_flight.drain(..count.min(self.in_flight.len())).collect();
                let latest = Duration::from_nanos(rtt);
                self.rtt = RttView {
                    latest,
                    smoothed: latest,
                    min: self.rtt.min.min(latest),
                    is_measured: true,
                    ..self.rtt
                };
                if !packets.is_empty() {
                    let sample = ack(self.now, &packets, self.rtt, self.round);
                    let rate = Rate::from_bytes_per_second(rtt);
                    let delivery_rate = app_limited.then_some(RateSample {
                        rate,
                        delivered: sample.acked,
                        interval: latest,
                        app_limited,
                    });
                    self.delivered += sample.acked;
                    let delivered = self.delivered;
                    controller.on_ack(&AckSample { delivered, delivery_rate, app_limited, ..sample });
                }
            }
            Event::Lost(count) => {
                let packets: Vec<_> = self.in_flight.drain(..count.min(self.in_flight.len())).collect();
                if !packets.is_empty() {
                    controller.on_loss(&loss(self.now, &packets, self.rtt));
                }
            }
            Event::Marked => {
                let in_flight = self.in_flight.iter().map(|packet| packet.bytes).sum();
                controller.on_congestion_experienced(self.now, self.now, in_flight);
            }
            Event::Spurious { packets, age } => {
                let sent_at = self.now - Duration::from_nanos(age);
                controller.on_spurious_loss(&SpuriousSample { now: self.now, packets, sent_at });
            }
            Event::Persistent => controller.on_persistent_congestion(self.now),
            Event::DatagramSize(size) => {
                self.size = ByteCount::new(size);
                controller.on_max_datagram_size(self.size);
            }
            Event::Adjusted(window, threshold) => controller.adjust(&Adjustment {
                window: window.map(ByteCount::new),
                slow_start_threshold: threshold.map(ByteCount::new),
                ..Adjustment::default()
            }),
        }
    }

    fn send(&mut self, count: u64, idle: bool, controller: &mut dyn Congestion) {
        for index in 0..count {
            let prior_in_flight = if idle && index == 0 { ByteCount::ZERO } else { self.size };
            controller.on_sent(&SentSample {
                now: self.now,
                space: PacketSpace::Data,
                number: self.next,
                bytes: self.size,
                prior_in_flight,
                app_limited: false,
            });
            let sent = packet(self.next, self.now);
            self.in_flight.push(PacketSample { delivered: self.delivered, ..sent });
            self.next += 1;
        }
    }
}

proptest! {
    #[test]
    fn windows_and_rates_stay_within_their_bounds(events in prop::collection::vec(event(), 1..300)) {
        let promised = ["quicming@min_rate=10kbit", "quicming@min_rate=100gbit", "quicming-paper@min_rate=1mbit", "quicming-paper@min_rate=100gbit"];
        for name in crate::selection::expand(&[crate::selection::ALL, "bbr1", "bbr-draft", "cubic-at-once"]).iter().map(String::as_str).chain(promised) {
            // At a guaranteed rate the window is what happens to be in flight: only the bounds hold.
            let has_floor = promised.contains(&name) || name.contains("min_rate");
            let size = ByteCount::new(1200);
            let profile = crate::named(name).unwrap();
            let mut controller = profile.congestion(PathLimits {
                max_datagram_size: size,
                initial_window: profile.start().initial_window(size),
                seed: 1,
            });
            // Those with a model of the path follow it both ways.
            let is_loss_based = !name.contains("bbr") && name != "mobile";
            let mut world = World::new(size);
            for event in &events {
                // While a flight is shrunk, the window follows it; what it is shrunk to is what may not grow.
                let before = controller.state().window;
                world.apply(event, &mut *controller);
                let least = controller.window();
                prop_assert!(least >= world.size * 2, "{name}: {least} after {event:?}");
                prop_assert!(least <= ByteCount::new(1 << 36), "{name}: {least} after {event:?}");
                let window = controller.state().window;
                prop_assert!(window <= ByteCount::new(1 << 36), "{name}: {window} after {event:?}");
                if let Some(pacing) = controller.pacing(&world.rtt) {
                    prop_assert!(pacing.burst >= world.size && pacing.rate.as_bytes_per_second() > 0);
                }
                if has_floor {
                    continue;
                }
                if let Event::Lost(_) | Event::Marked = event {
                    prop_assert!(window <= before, "{name}: a congestion event never adds");
                }
                if let Event::Acked { app_limited, .. } = event
                    && is_loss_based
                {
                    prop_assert!(window >= before, "{name}: an ack never takes away");
                    prop_assert!(!app_limited || window == before, "{name}: an unused window never grows");
                }
            }
        }
    }
}
