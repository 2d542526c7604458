//! What no stack can beat: round trips and serialisation (SCHEMES, "The physical limit").

use std::fmt::Write as _;

use posthaste_path::{PathSpec, RateModel};
use posthaste_units::{Duration, Rate};

use crate::apps::RESPONSE_HEADER_LENGTH;
use crate::experiment_result::Limit;
use crate::packet::UDP_HEADERS;
use crate::spec::{NetworkSpec, RunSpec};

/// Bytes of a QUIC datagram that are not stream data, at the least: short header (1), connection ID (8), packet
/// number (1), AEAD tag (16), STREAM frame type (1), stream ID (1) and offset (4).
const QUIC_OVERHEAD: u64 = 1 + 8 + 1 + 16 + 1 + 1 + 4;

/// The limit of a run's first flow; `None` if it has none (it never ends, or every link is infinitely fast).
pub fn limit(run: &RunSpec) -> Option<Limit> {
    let flow = run.flows.first()?;
    let bytes = flow.workload.body_bytes()?;
    let links: Vec<&PathSpec> = run.network.links_of_a_flow().collect();
    let rtt = links.iter().fold(Duration::ZERO, |sum, link| sum + link.rtt);
    let arrives: f64 = links.iter().map(|link| 1.0 - link.down_loss()).product();
    let workload = &flow.workload;
    let handshakes = workload.handshake_rounds();
    let rounds = handshakes + workload.rounds_without_data();
    let requests = Requests { count: workload.exchanges()?, rounds };
    let slowest = run.network.down_rate();
    let mut limit = of(rtt, slowest, 1.0 - arrives, bytes, requests, run.datagram);
    let own = rtt * handshakes + workload.least_time(rtt);
    if own.as_secs_f64() > limit.seconds {
        let seconds = own.as_secs_f64();
        let terms = format!("{own}: what the application itself takes (the network alone: {})", limit.terms);
        limit = Limit { seconds, terms, rate: None };
    }
    let is_constant = |link: &&PathSpec| matches!(link.rate, None | Some(RateModel::Constant(_)));
    if links.iter().all(is_constant) {
        limit.rate = slowest.map(|rate| rate.as_bits_per_second() as f64);
    }
    Some(limit)
}

/// The limit of fetching `bytes` over a new connection on `path`, with UDP payloads of `datagram` bytes.
pub fn cold_fetch(path: &PathSpec, bytes: u64, datagram: u16) -> Limit {
    of(path.rtt, path.down_rate(), path.down_loss(), bytes, Requests { count: 1, rounds: 2 }, datagram)
}

/// What a workload asks for.
#[derive(Clone, Copy)]
struct Requests {
    /// All of them.
    count: u64,
    /// Round trips in which nothing else can be on its way: of the handshake, and of requests that follow each other.
    rounds: u64,
}

fn of(rtt: Duration, rate: Option<Rate>, loss: f64, body: u64, requests: Requests, datagram: u16) -> Limit {
    let rounds = requests.rounds;
    let bytes = body + RESPONSE_HEADER_LENGTH as u64 * requests.count;
    let on_wire = u64::from(datagram) + u64::from(UDP_HEADERS);
    let overhead = on_wire as f64 / (u64::from(datagram) - QUIC_OVERHEAD) as f64 - 1.0;
    let mut seconds = rtt.as_secs_f64() * rounds as f64;
    let mut terms = format!("{rounds} RTT x {rtt}");
    if let Some(rate) = rate {
        let bits = rate.as_bits_per_second() as f64;
        seconds += bytes as f64 * (1.0 + overhead) * 8.0 / (bits * (1.0 - loss));
        let percent = (overhead * 1000.0).round() / 10.0;
        // Writing to a text cannot fail.
        let _ =
            write!(terms, " + {bytes} B x (1 + {percent} % headers) x 8 / ({rate} x (1 - {loss:.4} loss))");
    }
    Limit { seconds, terms, rate: None }
}

/// Every network has at least one link.
impl NetworkSpec {
    /// Two-way propagation delay of one flow's route.
    pub fn rtt(&self) -> Duration {
        self.links_of_a_flow().fold(Duration::ZERO, |sum, link| sum + link.rtt)
    }
}
