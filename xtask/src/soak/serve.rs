//! The soak of `posthaste serve`, over a lossy path and without one: clients read, read slowly, change their ports, give
//! responses up and end uploads early (`crates/http/examples/visitors.rs`).

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use posthaste_emulator::{RelayConfig, UdpRelay};
use posthaste_path::{PathSpec, QueueSize};
use posthaste_units::{Duration as Span, Rate};

use super::{Arguments, ROUND_ENDS, Record, Verdict};
use crate::Result;
use crate::interrupt;
use crate::site::{Programs, Site, Visits};

/// Bytes of the file that they fetch.
const FILE: u64 = 60_000;
/// Visitors of a round without a path between, and how many at once.
const DIRECT: [u64; 2] = [1_000, 100];
/// Visitors of a round over the path: each address takes two sockets of the relay's.
const OVER_PATH: [u64; 2] = [100, 50];
/// After the last client: connections that went without a word are over, and memory has come back.
const QUIET: Duration = Duration::from_secs(40);

/// Runs rounds until enough is enough.
pub(super) fn run(program: PathBuf, arguments: &Arguments) -> Result<Verdict> {
    let mut site = Site::start(&Programs::with(program)?, FILE)?;
    let mut record = Record::start(&site.server)?;
    let (mut visits, mut failures) = (Visits::default(), Vec::new());
    while arguments.goes_on(&record) {
        failures.extend(round(&site, &mut record, &mut visits)?);
    }
    interrupt::sleep(QUIET)?;
    let verdict = record.end(&site.server, 1.0)?;
    let rounds = record.rounds.len();
    let Visits { all, whole, moved, reset, uploads, failed } = visits;
    println!(
        "{all} connections in {rounds} rounds: whole {whole}, whole after another address {moved}, given up {reset}, \
         whole after an upload that ended early {uploads}, failed {failed}"
    );
    site.end()?;
    Ok(failures
        .first()
        .map_or(verdict, |failure| Err(format!("{} visitors failed; the first: {failure}", failures.len()))))
}

/// Visitors of both kinds, until the last has left. Why those failed that did.
fn round(site: &Site, record: &mut Record, visits: &mut Visits) -> Result<Vec<String>> {
    let seed = record.rounds.len() as u64 + 1;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let relay = runtime.block_on(UdpRelay::start(relay_to(site.address, seed)))?;
    let [direct, at_once] = DIRECT;
    let [over_path, of_those_at_once] = OVER_PATH;
    let mut visitors = [
        site.visitors(site.address, "direct", [direct, at_once, seed])?,
        site.visitors(relay.local_addr(), "over-path", [over_path, of_those_at_once, !seed])?,
    ];
    let is_under_way = || Ok(visitors[0].is_running()? || visitors[1].is_running()?);
    record.round(&site.server, direct + over_path, is_under_way)?;
    let mut failures = Vec::new();
    for visitors in &mut visitors {
        if !visitors.wait(ROUND_ENDS)?.success() {
            return Err("the visitors did not end well".into());
        }
        let (round, failed) = Visits::read(&visitors.output()?)?;
        visits.add(&round);
        failures.extend(failed);
    }
    Ok(failures)
}

/// A path that loses one of a hundred.
pub(super) fn relay_to(upstream: SocketAddr, seed: u64) -> RelayConfig {
    let path = PathSpec {
        rtt: Span::from_millis(20),
        rate: Some(Rate::from_bits_per_second(20_000_000).into()),
        queue: QueueSize::Bdp(2.0),
        loss: 0.01,
        ..PathSpec::default()
    };
    RelayConfig {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        upstream,
        down: path.down(),
        up: path.up(),
        seed,
        max_clients: 1_000,
    }
}
