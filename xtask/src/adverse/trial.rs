//! One case over real sockets, and its judge.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use posthaste_emulator::{Outage, RelayConfig, UdpRelay};

use super::case::{Case, Event};
use crate::Result;
use crate::process::Running;
use crate::site::{Programs, Site, Visits, content};

/// What `get` gives up after without progress, 30 s, at most twice (no response, then none of its bytes), on a busy machine.
const GET_ENDS: Duration = Duration::from_secs(90);
/// What visitors bound each visit by, twice one behind another.
const VISITS_END: Duration = Duration::from_secs(180);
/// Visitors, how many at once.
const VISITORS: [u64; 2] = [8, 4];
/// Clients one behind another, each of which goes on where the last one failed.
const ATTEMPTS: u32 = 4;

/// What clients say when nothing is heard from a server, and after how long.
const SILENCES: [(&str, Duration); 4] = [
    ("within 10 s", Duration::from_secs(10)),
    ("within 30 s", Duration::from_secs(30)),
    ("for 30 s", Duration::from_secs(30)),
    ("timed out", Duration::from_secs(30)),
];
/// Between two probes of an end that has heard the other one: the relay's record of an outage may be shorter by it.
const BETWEEN_PROBES: Duration = Duration::from_secs(2);
/// Datagrams of an outage in which ends did what they can. Where both wait for each other, fewer are sent.
const LOST_TO_OUTAGE: u64 = 8;

/// How a case ended well.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome {
    /// Clients that failed, with a reason, after a fault that permits it.
    pub(super) failed: u32,
    /// Clients that gave up because of an outage.
    pub(super) cut_off: u64,
    pub(super) visits: Visits,
    /// Until the file was whole.
    pub(super) took: Duration,
}

/// Plays a case; an error is a fault of ours.
pub(super) fn play(case: &Case, programs: &Programs) -> Result<Outcome> {
    let mut site = Site::start(programs, case.bytes)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let relay = runtime.block_on(UdpRelay::start(RelayConfig {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        upstream: site.address,
        down: case.path.down(),
        up: case.path.up(),
        seed: case.seed,
        max_clients: 1_000,
    }))?;
    let by = relay.local_addr();
    let began = Instant::now();
    let [count, at_once] = VISITORS;
    let mut visitors = site.visitors(by, "visitors", [count, at_once, case.seed])?;
    let mut failures = Vec::new();
    let failed = fetch(case, &mut site, by, &mut failures)?;
    let took = began.elapsed();
    if !visitors.wait(VISITS_END)?.success() {
        return Err("the visitors did not end well".into());
    }
    let (visits, of_visitors) = Visits::read(&visitors.output()?)?;
    failures.extend(of_visitors);
    let cut_off = judge(case.event, &failures, &relay.outages())?;
    site.end()?;
    Ok(Outcome { failed, cut_off, visits, took })
}

/// A file must come whole in the end; how many clients failed on the way, and in `failures` why.
fn fetch(case: &Case, site: &mut Site, by: SocketAddr, failures: &mut Vec<String>) -> Result<u32> {
    let mut is_due = case.event != Event::Nothing;
    for failed in 0..ATTEMPTS {
        let name = format!("get-{failed}");
        let mut get = Running::spawn(&mut site.get(by), &name, &site.path("logs"))?;
        let mut is_killed = false;
        if std::mem::take(&mut is_due) {
            std::thread::sleep(case.at);
            match case.event {
                Event::Restart => site.restart()?,
                Event::ClientKilled => {
                    is_killed = get.is_running()?;
                    get.kill()?;
                }
                Event::Nothing => {}
            }
        }
        let file = site.path("in/file");
        if get.wait(GET_ENDS)?.success() {
            return if is_whole(&file, case)? {
                Ok(failed)
            } else {
                Err("the file is not what was served".into())
            };
        }
        let said = fs::read_to_string(site.path(&format!("logs/{name}.stderr")))?;
        if !is_killed {
            failures.push(said);
        }
        if file.exists() {
            // A client can be killed between the end of its work and its own.
            let is_done = is_killed && is_whole(&file, case)?;
            return if is_done { Ok(failed) } else { Err("a file that is not whole has its name".into()) };
        }
        check_kept(&site.path("in"), &content(case.bytes))?;
    }
    Err(format!("{ATTEMPTS} clients one behind another did not fetch the file").into())
}

/// True if the file is what was served.
fn is_whole(file: &Path, case: &Case) -> Result<bool> {
    Ok(fs::read(file)? == content(case.bytes))
}

/// What a client keeps for the next one is the file's beginning.
fn check_kept(folder: &Path, content: &[u8]) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Beside it lies a note about it.
        if path.extension().is_none_or(|extension| extension != "json")
            && !content.starts_with(&fs::read(&path)?)
        {
            return Err("what was kept of a transfer is not the file's beginning".into());
        }
    }
    Ok(())
}

/// Clients may fail, with a reason, when their server has been killed, or when the relay has recorded an outage of one of them
/// for as long as it was patient; how many of the latter. Never with wrong bytes, or by hanging.
fn judge(event: Event, failures: &[String], outages: &[Outage]) -> Result<u64> {
    let mut outages: Vec<_> = outages.iter().collect();
    outages.sort_by_key(|outage| outage.length);
    let mut cut_off = 0;
    for failure in failures {
        let is_ours = ["WRONG", "HANGS", "panicked"].iter().any(|word| failure.contains(word));
        let silence = SILENCES.iter().find(|(text, _)| failure.contains(text)).map(|(_, patience)| *patience);
        // The shortest outage that explains it: each explains one client's end.
        let is_long = |outage: &&Outage, patience| {
            outage.lost >= LOST_TO_OUTAGE && Duration::from(outage.length) + BETWEEN_PROBES >= patience
        };
        let cut = silence.and_then(|patience| outages.iter().position(|outage| is_long(outage, patience)));
        match cut {
            _ if is_ours || failure.trim().is_empty() => {}
            Some(index) => {
                outages.remove(index);
                cut_off += 1;
                continue;
            }
            None if event == Event::Restart => continue,
            None => {}
        }
        let unused = outages
            .iter()
            .map(|outage| format!("{:.1} s, {} lost", outage.length.as_secs_f64(), outage.lost));
        let unused = unused.collect::<Vec<_>>().join("; ");
        return Err(format!("a client: {}\n       outages of paths: {unused}", failure.trim()).into());
    }
    Ok(cut_off)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(seconds: u64, lost: u64) -> Outage {
        let length = posthaste_units::Duration::from_secs(seconds);
        Outage { client: (Ipv4Addr::LOCALHOST, 1).into(), length, lost }
    }

    fn judged(event: Event, failures: &[&str], outages: &[Outage]) -> Option<u64> {
        let failures: Vec<_> = failures.iter().map(|text| (*text).to_owned()).collect();
        judge(event, &failures, outages).ok()
    }

    #[test]
    fn only_an_outage_as_long_as_a_clients_patience_explains_its_failure() {
        let (short, long) = ("nothing answered within 10 s", "no response within 30 s");
        assert_eq!(judged(Event::Nothing, &[], &[]), Some(0));
        assert_eq!(judged(Event::Nothing, &[long], &[outage(29, 20)]), Some(1));
        assert_eq!(judged(Event::Nothing, &[long], &[outage(20, 20)]), None, "too short");
        assert_eq!(judged(Event::Nothing, &[long], &[outage(29, 4)]), None, "the ends have waited");
        assert_eq!(judged(Event::Nothing, &[long, long], &[outage(29, 20)]), None, "two clients, one path");
        assert_eq!(judged(Event::Nothing, &[short, long], &[outage(29, 20), outage(10, 20)]), Some(2));
        assert_eq!(judged(Event::Nothing, &["the stream was reset"], &[outage(29, 20)]), None);
    }

    #[test]
    fn a_killed_server_explains_failures_but_no_wrong_byte_and_no_hanging() {
        assert_eq!(judged(Event::Restart, &["the stream was reset"], &[]), Some(0));
        for fault in ["WRONG byte at 1", "HANGS", "panicked", " "] {
            assert_eq!(judged(Event::Restart, &[fault], &[outage(60, 60)]), None, "{fault}");
        }
    }
}
