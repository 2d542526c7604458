//! The paths that come with Posthaste.

use std::sync::Arc;

use posthaste_units::{Duration, Rate, Rng};

use crate::jitter::{DEFAULT_JITTER_INTERVAL, Distribution, Jitter};
use crate::rate::{DEFAULT_RATE_INTERVAL, NormalRate, RateModel};
use crate::spec::{PathSpec, QueueSize};
use crate::synthesis;

/// All names, in the order in which they are shown.
pub(crate) const NAMES: [&str; 7] = ["good", "average", "bad", "lte", "wifi", "lte-trace", "wifi-trace"];

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
}

/// Which synthetic trace takes the place of the rates.
#[derive(Debug, Clone, Copy)]
enum Synthetic {
    Cellular,
    Wifi,
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
            Some(Synthetic::Wifi) => (wifi(3, self.rate.0), None),
        };
        let queue = match self.trace {
            Some(Synthetic::Cellular) => QueueSize::Time(Duration::from_millis(500)),
            _ => PathSpec::default().queue,
        };
        PathSpec {
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

/// The trace of this number, with this mean in bits a second.
fn wifi(number: u64, mean: u64) -> RateModel {
    RateModel::Steps(Arc::new(synthesis::wifi(Rng::from_test_seed(number), mean as f64)))
}

/// What each direction needs for the round trip to have this deviation: the variances of independent parts add up.
pub(crate) fn per_direction(deviation: Duration) -> Duration {
    Duration::from_secs_f64(deviation.as_secs_f64() * std::f64::consts::FRAC_1_SQRT_2)
}

/// The round trip's deviation.
pub(crate) fn per_round_trip(deviation: Duration) -> Duration {
    Duration::from_secs_f64(deviation.as_secs_f64() * std::f64::consts::SQRT_2)
}
