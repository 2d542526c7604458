//! One case over real sockets, and its judge.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use posthaste_emulator::{RelayConfig, UdpRelay};

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

/// How a case ended well.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome {
    /// Clients that failed, with a reason, after a fault that permits it.
    pub(super) failed: u32,
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
    let failed = fetch(case, &mut site, by)?;
    let took = began.elapsed();
    if !visitors.wait(VISITS_END)?.success() {
        return Err("the visitors did not end well".into());
    }
    let (visits, failures) = Visits::read(&visitors.output()?)?;
    judge(case, &failures)?;
    site.end()?;
    Ok(Outcome { failed, visits, took })
}

/// A file must come whole in the end; how many clients failed on the way.
fn fetch(case: &Case, site: &mut Site, by: SocketAddr) -> Result<u32> {
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
        if get.wait(GET_ENDS)?.success() {
            let whole = fs::read(site.path("in/file"))? == content(case.bytes);
            return if whole { Ok(failed) } else { Err("the file is not what was served".into()) };
        }
        let said = fs::read_to_string(site.path(&format!("logs/{name}.stderr")))?;
        if !is_killed {
            judge(case, &[said])?;
        }
        if site.path("in/file").exists() {
            return Err("a file that is not whole has its name".into());
        }
        check_kept(&site.path("in"), &content(case.bytes))?;
    }
    Err(format!("{ATTEMPTS} clients one behind another did not fetch the file").into())
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

/// Clients may fail, with a reason, when their server has been killed, and never with wrong bytes, or by hanging.
fn judge(case: &Case, failures: &[String]) -> Result<()> {
    for failure in failures {
        let is_ours = ["WRONG", "HANGS", "panicked"].iter().any(|word| failure.contains(word));
        if is_ours || failure.trim().is_empty() || case.event != Event::Restart {
            return Err(format!("a client: {}", failure.trim()).into());
        }
    }
    Ok(())
}
