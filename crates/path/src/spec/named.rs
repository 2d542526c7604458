//! The paths that come with Posthaste.

use std::sync::Arc;

use posthaste_units::{Duration, Rate, Rng};

use crate::aggregation::Aggregation;
use crate::handover::Handover;
use crate::jitter::{DEFAULT_JITTER_INTERVAL, Distribution, Jitter};
use crate::radio_frames::RadioFrames;
use crate::rate::{DEFAULT_RATE_INTERVAL, NormalRate, RateModel};
use crate::spec::{PathSpec, QueueSize};
use crate::synthesis;
use crate::trace::RateTrace;

/// All names, in the order in which they are shown.
pub(crate) const NAMES: [&str; 13] = [
    "good",
    "average",
    "bad",
    "lte",
    "wifi",
    "lte-trace",
    "wifi-trace",
    "lte-tti",
    "wifi-aggregated",
    "wifi-jitter",
    "thin-uplink",
    "5g-trace",
    "starlink",
];

/// A path with a name.
pub(crate) struct Named {
    pub(crate) description: &'static str,
    rtt_micros: u64,
    rate: (u64, u64),
    up_rate: Option<u64>,
    /// Share lost in each of the path's parts.
    loss: [f64; 2],
    jitter: Option<(Distribution, u64)>,
    trace: Option<Synthetic>,
    /// What else sets the path apart.
    radio: Option<Radio>,
}

/// Which synthetic trace takes the place of the rates.
#[derive(Debug, Clone, Copy)]
enum Synthetic {
    Cellular,
    Wifi,
    FiveG,
    Starlink,
}

/// How a radio link treats time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Radio {
    Blocks,
    Aggregates,
    Handovers,
}

/// The path with this name.
pub(crate) fn find(name: &str) -> Option<Named> {
    Some(match name {
        "good" => {
            simple(38, 0.01, "100 Mbit/s, 38 ms, 1 % loss each way: the good path of history start's paper")
        }
        "average" => simple(50, 0.02, "100 Mbit/s, 50 ms, 2 % loss each way: the average path of that paper"),
        "bad" => simple(188, 0.08, "100 Mbit/s, 188 ms, 8 % loss each way: the bad path of that paper"),
        "lte" => LTE,
        "wifi" => WIFI,
        "lte-trace" => LTE_TRACE,
        "wifi-trace" => WIFI_TRACE,
        "lte-tti" => LTE_TTI,
        "wifi-aggregated" => WIFI_AGGREGATED,
        "wifi-jitter" => WIFI_JITTER,
        "thin-uplink" => THIN_UPLINK,
        "5g-trace" => FIVE_G_TRACE,
        "starlink" => STARLINK,
        _ => return None,
    })
}

const fn simple(rtt: u64, loss: f64, description: &'static str) -> Named {
    Named {
        description,
        rtt_micros: rtt * 1000,
        rate: (100_000_000, 0),
        up_rate: None,
        loss: [loss, 0.0],
        jitter: None,
        trace: None,
        radio: None,
    }
}

/// The uplink's rate is our choice, as the paper gives none: its band (41) is TDD, whose usual frame gives the
/// uplink a quarter of the downlink's time, and a phone sends on one antenna where the base station uses two.
const LTE: Named = Named {
    description: "LTE-A: 65.9 Mbit/s down (std 5.1), 10 Mbit/s up (our choice), RTT 21.2 ms of radio (std 3.46) and \
                  25 ms of backhaul, loss 0.09 % and 0.05 % each way: the group paper's table 1",
    rtt_micros: 46_200,
    rate: (65_900_000, 5_100_000),
    up_rate: Some(10_000_000),
    loss: [0.000_9, 0.000_5],
    jitter: Some((Distribution::Normal, 3_460)),
    trace: None,
    radio: None,
};

/// One channel serves both directions, so the uplink is as fast. Contention makes a long tail: a normal delay of
/// this deviation would be below what the air needs now and then, a Pareto one is never.
const WIFI: Named = Named {
    description: "802.11n: 190.2 Mbit/s each way, RTT 10.5 ms of radio (std 6.1, long-tailed) and 25 ms of backhaul, \
                  loss 0.13 % and 0.05 % each way: the group paper's table 10",
    rtt_micros: 35_500,
    rate: (190_200_000, 0),
    up_rate: None,
    loss: [0.001_3, 0.000_5],
    jitter: Some((Distribution::Pareto, 6_100)),
    trace: None,
    radio: None,
};

/// The recordings behind the model are of links that are slower than [`LTE`], in motion, with deep queues.
const LTE_TRACE: Named = Named {
    description: "a cellular link in motion: a synthetic trace of up to 12 Mbit/s with outages, each way, as Sprout \
                  (NSDI 2013) models LTE and 3G; RTT 46.2 ms and losses of `lte`; a queue of 500 ms (our choice)",
    jitter: None,
    trace: Some(Synthetic::Cellular),
    ..LTE
};

const WIFI_TRACE: Named = Named {
    description: "802.11n in motion: a synthetic trace of 190.2 Mbit/s on average, each way, with shadowing as 3GPP \
                  TR 38.901 has it and gaps while roaming; RTT 35.5 ms and losses of `wifi`",
    jitter: None,
    trace: Some(Synthetic::Wifi),
    ..WIFI
};

const LTE_TTI: Named = Named {
    description: "`lte` (65.9 Mbit/s down) in blocks: a transmission time interval of 1 ms, of which 10 % come again 8 ms \
                  later (3GPP TS 36.213, 36.321)",
    radio: Some(Radio::Blocks),
    ..LTE
};

const WIFI_AGGREGATED: Named = Named {
    description: "`wifi` (190.2 Mbit/s) with aggregation: up to 64 packets, or 4 ms of them, arrive at once (A-MPDU, \
                  802.11n)",
    radio: Some(Radio::Aggregates),
    ..WIFI
};

/// Our choices: rate, round trip. The deviation is that of the model's own draws, both ways.
const WIFI_JITTER: Named = Named {
    description: "contended Wi-Fi: 10 Mbit/s each way, RTT 40 ms (std 32.9) with retries of 1 ms and, one time in 14, \
                  suspensions in steps of 7.5 ms, as C4's simulator has them for a mean of 7 ms; loss 0.1 %",
    rtt_micros: 40_000,
    rate: (10_000_000, 0),
    up_rate: None,
    loss: [0.001, 0.0],
    jitter: Some((Distribution::Wifi, 32_945)),
    trace: None,
    radio: None,
};

/// Our choices. At 50 Mbit/s down, acknowledging every second packet would take 1.2 Mbit/s.
const THIN_UPLINK: Named = Named {
    description: "50 Mbit/s down, 1 Mbit/s up, 50 ms, loss 0.1 % each way: acknowledgements compete for the uplink",
    rtt_micros: 50_000,
    rate: (50_000_000, 0),
    up_rate: Some(1_000_000),
    loss: [0.001, 0.0],
    jitter: None,
    trace: None,
    radio: None,
};

/// Our choices: means, round trip, jitter and loss.
const FIVE_G_TRACE: Named = Named {
    description: "a 5G cell from a car: a synthetic trace of 150 Mbit/s on average down, 20 up, with shadowing as 3GPP TR \
                  38.901 has it and handover gaps; RTT 30 ms (std 3), loss 0.1 %; a queue of 200 ms",
    rtt_micros: 30_000,
    rate: (150_000_000, 0),
    up_rate: Some(20_000_000),
    loss: [0.001, 0.0],
    jitter: Some((Distribution::Normal, 3_000)),
    trace: Some(Synthetic::FiveG),
    radio: None,
};

/// Rates and delays are of the size that Michel et al. (IMC 2022) and Huston (APNIC 2021 to 2024) report; the rest is our
/// choice.
const STARLINK: Named = Named {
    description: "a low satellite: a synthetic trace of 150 Mbit/s on average down, 15 up, another route each 15 s (35 to \
                  85 ms, a gap of 60 ms), jitter of 6.7 ms, losses of 0.5 % in bursts of 10 ms; a queue of 100 ms",
    rtt_micros: 35_000,
    rate: (150_000_000, 0),
    up_rate: Some(15_000_000),
    loss: [0.005, 0.0],
    jitter: Some((Distribution::Normal, 6_700)),
    trace: Some(Synthetic::Starlink),
    radio: Some(Radio::Handovers),
};

impl Named {
    /// In full.
    pub(crate) fn spec(self) -> PathSpec {
        let rate = |(mean, deviation): (u64, u64)| match Rate::from_bits_per_second(deviation) {
            Rate::ZERO => RateModel::Constant(Rate::from_bits_per_second(mean)),
            deviation => RateModel::Normal(NormalRate {
                mean: Rate::from_bits_per_second(mean),
                deviation,
                interval: DEFAULT_RATE_INTERVAL,
            }),
        };
        let (mean, deviation) = self.rate;
        // The uplink varies by the same share as the downlink.
        let up_rate = self.up_rate.map(|up| rate((up, deviation * up / mean)));
        let jitter = self.jitter.map(|(distribution, micros)| Jitter {
            distribution,
            deviation: per_direction(Duration::from_micros(micros)),
            interval: DEFAULT_JITTER_INTERVAL,
            may_reorder: false,
        });
        let [first, second] = self.loss;
        let (rate, up_rate) = match self.trace {
            None => (rate(self.rate), up_rate),
            Some(Synthetic::Cellular) => (cellular(1), Some(cellular(2))),
            // One channel serves both directions.
            Some(Synthetic::Wifi) => (steps(synthesis::wifi, 3, mean), None),
            Some(Synthetic::FiveG) => {
                (steps(synthesis::five_g, 4, mean), self.up_rate.map(|up| steps(synthesis::five_g, 4, up)))
            }
            Some(Synthetic::Starlink) => (
                steps(synthesis::starlink, 5, mean),
                self.up_rate.map(|up| steps(synthesis::starlink, 6, up)),
            ),
        };
        let queue = match self.trace {
            Some(Synthetic::Cellular) => QueueSize::Time(Duration::from_millis(500)),
            Some(Synthetic::FiveG) => QueueSize::Time(Duration::from_millis(200)),
            Some(Synthetic::Starlink) => QueueSize::Time(Duration::from_millis(100)),
            _ => PathSpec::default().queue,
        };
        let is = |radio| self.radio == Some(radio);
        PathSpec {
            aggregation: is(Radio::Aggregates).then(Aggregation::default),
            frames: is(Radio::Blocks).then_some(LTE_BLOCKS),
            handover: is(Radio::Handovers).then_some(SATELLITES),
            burst_time: is(Radio::Handovers).then_some(Duration::from_millis(10)),
            queue,
            rtt: Duration::from_micros(self.rtt_micros),
            rate: Some(rate),
            up_rate,
            loss: if second > 0.0 { 1.0 - (1.0 - first) * (1.0 - second) } else { first },
            jitter,
            ..PathSpec::default()
        }
    }
}

/// A draw with a usual mean, each `number` another one. All runs see the same: seeds are for what differs from run to
/// run. Some draws spend most of their two minutes in outages; means of 4 to 8 Mbit/s are our choice.
fn cellular(number: u64) -> RateModel {
    let usual = Rate::from_bits_per_second(4_000_000)..=Rate::from_bits_per_second(8_000_000);
    let mut draws = Rng::from_test_seed(number);
    let mut trace = synthesis::cellular(draws.fork());
    for _ in 0..100 {
        if usual.contains(&trace.mean_rate()) {
            break;
        }
        trace = synthesis::cellular(draws.fork());
    }
    RateModel::Opportunities(Arc::new(trace))
}

/// 3GPP TS 36.211, 36.213 (a block error rate of 10 %) and 36.321 (eight HARQ processes).
const LTE_BLOCKS: RadioFrames =
    RadioFrames { interval: Duration::from_millis(1), failure: 0.1, repeat: Duration::from_millis(8) };

/// Half of the delay that a route adds, each way.
const SATELLITES: Handover = Handover {
    interval: Duration::from_secs(15),
    delay: Duration::from_millis(25),
    gap: Duration::from_millis(60),
};

/// The trace of this number that `make` makes, with this mean in bits a second.
fn steps(make: fn(Rng, f64) -> RateTrace, number: u64, mean: u64) -> RateModel {
    RateModel::Steps(Arc::new(make(Rng::from_test_seed(number), mean as f64)))
}

/// What each direction needs for the round trip to have this deviation: the variances of independent parts add up.
pub(crate) fn per_direction(deviation: Duration) -> Duration {
    Duration::from_secs_f64(deviation.as_secs_f64() * std::f64::consts::FRAC_1_SQRT_2)
}

/// The round trip's deviation.
pub(crate) fn per_round_trip(deviation: Duration) -> Duration {
    Duration::from_secs_f64(deviation.as_secs_f64() * std::f64::consts::SQRT_2)
}
