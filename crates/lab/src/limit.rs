//! What no stack can beat: round trips and serialisation (SCHEMES, "The physical limit").

use std::fmt::Write as _;

use posthaste_path::{PathSpec, RateModel};
use posthaste_units::{ByteCount, Duration, Rate, Time};

use crate::apps::RESPONSE_HEADER_LENGTH;
use crate::experiment_result::Limit;
use crate::packet::UDP_HEADERS;
use crate::spec::{NetworkSpec, RunSpec};

/// Bytes of a QUIC datagram that are not stream data, at the least: short header (1), connection ID (8), packet
/// number (1), AEAD tag (16), STREAM frame type (1), stream ID (1) and offset (4).
const QUIC_OVERHEAD: u64 = 1 + 8 + 1 + 16 + 1 + 1 + 4;

/// The limit of a run's first flow; `None` if it has none (it never ends, or every link is infinitely fast). Where
/// recordings begin at a seed's place, it is that of a run from their beginning: [`crate::run::run`] notes each run's own.
pub fn limit(run: &RunSpec) -> Option<Limit> {
    let flow = run.flows.first()?;
    let bytes = flow.workload.body_bytes()?;
    let route = Route { links: run.network.links_of_a_flow().collect(), start: Time::ZERO + flow.start };
    let rtt = route.rtt();
    let workload = &flow.workload;
    let handshakes = workload.handshake_rounds();
    let requests = Requests {
        count: workload.exchanges()?,
        before_data: handshakes + 1,
        rounds: handshakes + workload.rounds_without_data(),
    };
    let mut limit = route.limit(bytes, requests, run.datagram);
    let own = rtt * handshakes + workload.least_time(rtt);
    if own.as_secs_f64() > limit.seconds {
        let seconds = own.as_secs_f64();
        let terms = format!("{own}: what the application itself takes (the network alone: {})", limit.terms);
        limit = Limit { seconds, terms, rate: None };
    }
    let is_constant = |link: &&PathSpec| matches!(link.rate, None | Some(RateModel::Constant(_)));
    if route.links.iter().all(is_constant) {
        limit.rate = run.network.down_rate().map(|rate| rate.as_bits_per_second() as f64);
    }
    Some(limit)
}

/// The limit of fetching `bytes` over a new connection on `path`, with UDP payloads of `datagram` bytes.
pub fn cold_fetch(path: &PathSpec, bytes: u64, datagram: u16) -> Limit {
    let requests = Requests { count: 1, before_data: 2, rounds: 2 };
    Route { links: vec![path], start: Time::ZERO }.limit(bytes, requests, datagram)
}

/// The limit of one more request for `bytes` over a connection on `path` that has carried others: a round trip, and
/// what a rate that lasts takes if nothing is lost. Recorded rates count as infinite, since nobody knows what part of
/// them it meets.
pub fn warm_fetch(path: &PathSpec, bytes: u64, datagram: u16) -> Limit {
    let requests = Requests { count: 1, before_data: 1, rounds: 1 };
    let rate = path.rate.clone().filter(|rate| !rate.is_recorded());
    let path = PathSpec { rtt: path.rtt, rate, ..PathSpec::default() };
    Route { links: vec![&path], start: Time::ZERO }.limit(bytes, requests, datagram)
}

/// What a workload asks for.
#[derive(Clone, Copy)]
struct Requests {
    /// All of them.
    count: u64,
    /// Round trips until the first data can be there.
    before_data: u64,
    /// Round trips in which nothing else can be on its way: of the handshake, and of requests that follow each other.
    rounds: u64,
}

/// What a flow's data passes.
struct Route<'a> {
    /// At least one.
    links: Vec<&'a PathSpec>,
    /// When the flow begins.
    start: Time,
}

impl Route<'_> {
    fn rtt(&self) -> Duration {
        self.links.iter().fold(Duration::ZERO, |sum, link| sum + link.rtt)
    }

    fn limit(&self, body: u64, requests: Requests, datagram: u16) -> Limit {
        let Requests { count, rounds, .. } = requests;
        let rtt = self.rtt();
        let arrives: f64 = self.links.iter().map(|link| 1.0 - link.down_loss()).product();
        let bytes = body + RESPONSE_HEADER_LENGTH as u64 * count;
        let on_wire = u64::from(datagram) + u64::from(UDP_HEADERS);
        let overhead = on_wire as f64 / (u64::from(datagram) - QUIC_OVERHEAD) as f64 - 1.0;
        let percent = (overhead * 1000.0).round() / 10.0;
        let loss = 1.0 - arrives;
        let mut seconds = rtt.as_secs_f64() * rounds as f64;
        let mut terms = format!("{rounds} RTT x {rtt}");
        if let Some(rate) = self.steady_rate() {
            let bits = rate.as_bits_per_second() as f64;
            seconds += bytes as f64 * (1.0 + overhead) * 8.0 / (bits * (1.0 - loss));
            // Writing to a text cannot fail.
            let _ = write!(
                terms,
                " + {bytes} B x (1 + {percent} % headers) x 8 / ({rate} x (1 - {loss:.4} loss))"
            );
        }
        let carried = ByteCount::new((bytes as f64 * (1.0 + overhead) / (1.0 - loss)) as u64);
        if let Some(traced) = self.by_traces(requests.before_data, carried)
            && traced.as_secs_f64() > seconds
        {
            seconds = traced.as_secs_f64();
            terms = format!(
                "{traced}: what the recorded rate takes for {bytes} B x (1 + {percent} % headers) / (1 - {loss:.4} \
                 loss), which it can begin with half an RTT before the end of {} RTT x {rtt}",
                requests.before_data
            );
        }
        Limit { seconds, terms, rate: None }
    }

    /// The least rate of links that have a lasting one.
    fn steady_rate(&self) -> Option<Rate> {
        let rates = self.links.iter().filter_map(|link| link.rate.as_ref());
        rates.filter(|rate| !rate.is_recorded()).map(RateModel::mean).min()
    }

    /// The least time in which every recorded rate has carried `length`. A mean would not do: most of the data may come
    /// while the rate is above it.
    fn by_traces(&self, rounds_before_data: u64, length: ByteCount) -> Option<Duration> {
        let half = self.rtt() / 2;
        let first = self.start + (self.rtt() * rounds_before_data).saturating_sub(half);
        let rates = self.links.iter().filter_map(|link| Some((link.rate.as_ref()?, link.start())));
        rates
            .filter(|(rate, _)| rate.is_recorded())
            .map(|(rate, start)| rate.carried(first, length, start).since(self.start) + half)
            .max()
    }
}

/// Every network has at least one link.
impl NetworkSpec {
    /// Two-way propagation delay of one flow's route.
    pub fn rtt(&self) -> Duration {
        self.links_of_a_flow().fold(Duration::ZERO, |sum, link| sum + link.rtt)
    }
}
