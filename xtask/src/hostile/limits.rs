//! Servers near their limits, and sockets and paths that fail them.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Figure;
use super::cases::{megabytes, received, seconds};
use super::crowds::{Crowd, Wish};
use super::path::{Path, Trick};
use super::scene::{PATIENCE, Reader, Scene, Served, wait_for};
use crate::Result;

/// Connections that the receive budget of [`near_limits`] has places for, of 32 KiB each.
const PLACES: usize = 128;
/// Of them, those that are left.
const LEFT: usize = 4;
/// Times that a file is fetched over new connections, the first without a session.
const ROUNDS: usize = 5;

/// Fetches a small file so many times over new connections; how many of them resumed with early data that were accepted.
fn fetch_again(scene: &Scene, get: &mut Command) -> Result<usize> {
    let target = scene.path("in").join("copy");
    let output = get.args(["--json", "--repeat", &ROUNDS.to_string(), "-o"]).arg(target).output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    if !output.status.success() {
        return Err(format!("a client failed: {report}").into());
    }
    let connections = report["connections"].as_array().ok_or("no connections in the report")?;
    Ok(connections.iter().filter(|connection| connection["early_data"] == "accepted").count())
}

/// Early data were accepted on so many connections at least.
fn expect_early_data(accepted: usize, least: usize) -> Result<()> {
    if accepted < least {
        return Err(format!("{accepted} of {} returning connections had 0-RTT", ROUNDS - 1).into());
    }
    Ok(())
}

pub(super) fn near_limits(scene: &Scene, _: bool) -> Result<Vec<Figure>> {
    let budget = PLACES * 32 * 1024;
    let served = scene.serve(&["--receive-budget", &budget.to_string()])?;
    let before = served.running.resident_bytes()?;
    let wish = Wish { connections: PLACES - LEFT, requests: 1, path: "/medium", answers: 1 };
    let crowd = Crowd::gather(scene, &served, &wish)?;
    let accepted = fetch_again(scene, &mut scene.get(&served, "small"))?;
    let resident = served.running.resident_bytes()?;
    crowd.disperse()?;
    expect_early_data(accepted, ROUNDS - 1)?;
    Ok(vec![
        ("places", PLACES as f64, ""),
        ("taken", (PLACES - LEFT) as f64, ""),
        ("connections with 0-RTT", accepted as f64, ""),
        ("memory before", megabytes(before), "MB"),
        ("memory", megabytes(resident), "MB"),
    ])
}

/// A NAT that gives the client another port behind each first flight, with 0-RTT in all but one.
pub(super) fn moved_flights(scene: &Scene, _: bool) -> Result<Vec<Figure>> {
    let served = scene.serve(&[])?;
    let path = Path::with(Trick::Moves, served.address)?;
    let began = Instant::now();
    let accepted = fetch_again(scene, scene.get_at(&served, path.address, "small").args(["--timeout", "8"]))?;
    // A ticket that was on its way to the old port, or comes behind the file, is too late for the next connection.
    expect_early_data(accepted, ROUNDS / 2)?;
    if path.flights() != ROUNDS as u64 {
        return Err(format!("{} first flights of {ROUNDS} connections", path.flights()).into());
    }
    Ok(vec![
        ("connections that moved", ROUNDS as f64, ""),
        ("with 0-RTT", accepted as f64, ""),
        ("all of them", seconds(began.elapsed()), "s"),
    ])
}

/// Every call by which the server sends fails while this lives; none if that is not permitted here.
fn refuse_sends(served: &Served) -> Result<Option<Reader>> {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-q", "-e", "trace=sendmsg,sendmmsg,sendto", "-o", "/dev/null"]);
    strace.args(["-e", "inject=sendmsg,sendmmsg,sendto:error=EPERM", "-p", &served.running.id().to_string()]);
    let Ok(child) = strace.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else { return Ok(None) };
    let mut tracer = Reader(child);
    std::thread::sleep(Duration::from_millis(500));
    Ok(tracer.0.try_wait()?.is_none().then_some(tracer))
}

pub(super) fn refused_sends(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let mut served = scene.serve(&["--idle-timeout", "60"])?;
    let path = Path::to(served.address)?;
    let mut get = scene.get_at(&served, path.address, "big");
    get.arg("-o").arg(scene.path("in").join("copy")).args(["--timeout", "120"]).stdout(Stdio::null());
    let mut get = Reader(get.spawn()?);
    wait_for("the download", || Ok((received(scene)? > 1_000_000).then_some(())))?;
    let Some(tracer) = refuse_sends(&served)? else {
        return Ok(vec![("refused (0: strace is missing, or not permitted)", 0.0, "s")]);
    };
    // Longer than a socket is kept that does nothing but fail.
    let refused = Duration::from_secs(if is_short { 3 } else { 13 });
    std::thread::sleep(refused);
    let before = received(scene)?;
    drop(tracer);
    let ended = Instant::now();
    wait_for("further data", || Ok((received(scene)? > before).then_some(())))?;
    let resumed = ended.elapsed();
    if !wait_for("the end of the download", || Ok(get.0.try_wait()?))?.success() {
        return Err("the download failed".into());
    }
    served.running.terminate();
    served.running.wait(PATIENCE)?;
    let said = std::fs::read_to_string(scene.path("logs/server.stderr"))?;
    let lines = said.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).count();
    if !(1..=4).contains(&lines) {
        return Err(format!("the server says of it: {said}").into());
    }
    Ok(vec![
        ("refused", seconds(refused), "s"),
        ("data after", seconds(resumed), "s"),
        ("lines about it", lines as f64, ""),
    ])
}
