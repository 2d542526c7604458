//! Crowds: many connections from one address that take what they can, held by `crates/http/examples/crowd.rs`.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Figure;
use super::cases::megabytes;
use super::scene::{PATIENCE, Scene, Served};
use crate::Result;
use crate::process::Running;

/// For a crowd to gather.
const GATHERING: Duration = Duration::from_secs(300);
/// In this time memory has to come back.
const RETURN: Duration = Duration::from_secs(30);
/// Bytes of a session store that is full, meant to stay: 16,384 sessions of 140 bytes, and their lists.
const SESSIONS: u64 = 3_400_000;
/// Connections that fill caches and pools before memory is measured.
const FIRST: usize = 50;

/// Connections of one process, open until this is dropped.
pub(super) struct Crowd {
    running: Running,
    /// Requests that were sent.
    pub(super) requests: f64,
    took: f64,
}

/// Says how many connections, with how many requests each, for what, and how many answers each waits for.
pub(super) struct Wish<'a> {
    pub(super) connections: usize,
    pub(super) requests: usize,
    pub(super) path: &'a str,
    pub(super) answers: usize,
}

impl Crowd {
    pub(super) fn gather(scene: &Scene, served: &Served, wish: &Wish<'_>) -> Result<Self> {
        let mut command = Command::new(scene.clients.join("crowd"));
        command.args(["--ca", &served.certificate, "--connect", &served.address.to_string()]);
        let numbers =
            [("--connections", wish.connections), ("--requests", wish.requests), ("--answers", wish.answers)];
        for (name, number) in numbers {
            command.args([name, &number.to_string()]);
        }
        command.args(["--path", wish.path]);
        let mut running = Running::spawn(&mut command, "crowd", &scene.path("logs"))?;
        let [held, requests, took] = running.wait_for(GATHERING, |line| figures(line, "ready"))?;
        if held < wish.connections as f64 {
            return Err(format!("{held} of {} connections came about", wish.connections).into());
        }
        Ok(Self { running, requests, took })
    }

    /// Lets it go in order.
    pub(super) fn disperse(mut self) -> Result<()> {
        self.running.close_stdin();
        self.running.wait(PATIENCE)?;
        Ok(())
    }
}

/// Numbers behind a word.
fn figures<const COUNT: usize>(line: &str, word: &str) -> Option<[f64; COUNT]> {
    let rest = line.strip_prefix(word)?.split_whitespace().map(str::parse);
    rest.collect::<std::result::Result<Vec<f64>, _>>().ok()?.try_into().ok()
}

pub(super) fn memory(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let served = scene.serve(&[])?;
    let (connections, rounds) = (9_900, if is_short { 1 } else { 2 });
    let wish = |connections| Wish { connections, requests: 1, path: "/medium", answers: 1 };
    Crowd::gather(scene, &served, &wish(FIRST))?.disperse()?;
    let before = served.running.resident_bytes()?;
    // After the second crowd, too: what one leaves must not add up.
    let limit = before * 6 / 5 + SESSIONS;
    let mut measured = vec![("connections", connections as f64, ""), ("before", megabytes(before), "MB")];
    for _ in 0..rounds {
        let crowd = Crowd::gather(scene, &served, &wish(connections))?;
        measured.push(("in", crowd.took, "s"));
        measured.push(("with them", megabytes(served.running.resident_bytes()?), "MB"));
        let ((), live) = scene.live_during(&served, || {
            crowd.disperse()?;
            let began = Instant::now();
            while began.elapsed() < RETURN && served.running.resident_bytes()? > limit {
                sleep(Duration::from_millis(500));
            }
            measured.push(("back after", began.elapsed().as_secs_f64(), "s"));
            Ok(())
        })?;
        let left = served.running.resident_bytes()?;
        measured.push(("left", megabytes(left), "MB"));
        measured.extend(live.figures());
        if left > limit {
            let (left, before, limit) = (megabytes(left), megabytes(before), megabytes(limit));
            return Err(format!("{left:.1} MB are left, {before:.1} before, {limit:.1} permitted").into());
        }
    }
    Ok(measured)
}

pub(super) fn request_slots(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let served = scene.serve(&[])?;
    let before = served.running.resident_bytes()?;
    let seconds = if is_short { 5 } else { 30 };
    let work = || {
        let wish = Wish { connections: 20, requests: 256, path: "/big", answers: 1 };
        let crowd = Crowd::gather(scene, &served, &wish)?;
        sleep(Duration::from_secs(seconds));
        let resident = served.running.resident_bytes()?;
        let requests = crowd.requests;
        crowd.disperse()?;
        Ok((requests, resident))
    };
    let ((requests, resident), live) = scene.live_during(&served, work)?;
    let mut measured = vec![
        ("requests", requests, ""),
        ("memory before", megabytes(before), "MB"),
        ("memory", megabytes(resident), "MB"),
    ];
    measured.extend(live.figures());
    Ok(measured)
}

pub(super) fn migration(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let served = scene.serve(&[])?;
    let connections = if is_short { 100 } else { 1_000 };
    let mut crowd =
        Crowd::gather(scene, &served, &Wish { connections, requests: 1, path: "/small", answers: 1 })?;
    let mut measured = vec![("connections", connections as f64, "")];
    for moves in 1..=3 {
        crowd.running.write_line("move")?;
        let word = format!("moved-{moves}");
        let [answered, took] = crowd.running.wait_for(PATIENCE, |line| figures(line, &word))?;
        if answered < connections as f64 {
            return Err(format!("{answered} of {connections} connections survive move {moves}").into());
        }
        measured.push(("a move", took, "s"));
    }
    crowd.disperse()?;
    Ok(measured)
}
