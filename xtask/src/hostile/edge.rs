//! `posthaste edge` in front of an application (`crates/proxy/examples/edge_crowd`): slow clients, clients that give up, and what
//! lasts.

use std::process::Command;
use std::time::Duration;

use super::Figure;
use super::scene::{PATIENCE, Scene};
use crate::Result;
use crate::identity::Identity;
use crate::process::Running;
use crate::site::read_start;

/// An application learns within this time that its client has given up, where nothing else takes time.
const GIVEN_UP: u64 = 100;
/// Of each kind: HTTP/1.1, 2 and 3, and uploads over HTTP/3, 20 each.
const GIVE_UPS: usize = 80;
/// Streams of slow heads, and of slow bodies.
const STREAMS: &str = "256";

/// An edge and the application behind it, and what clients trust.
struct Front {
    edge: Running,
    application: Running,
    address: String,
    identity: Identity,
}

impl Front {
    fn start(scene: &Scene) -> Result<Self> {
        let (folder, logs) = (scene.path(""), scene.path("logs"));
        let identity = Identity::create(&folder)?;
        let mut application = Command::new(scene.clients.join("edge_crowd"));
        let mut application =
            Running::spawn(application.args(["upstream", "127.0.0.1:0"]), "application", &logs)?;
        let to = application.wait_for(PATIENCE, |line| line.strip_prefix("listening ").map(str::to_owned))?;
        let mut edge = Command::new(&scene.program);
        edge.env_remove("RUST_LOG").args(["edge", "--json", "--no-access-log", "--listen", "127.0.0.1:0"]);
        edge.args(["--to", &format!("http://{to}"), "--state"]).arg(scene.path("state"));
        edge.arg("--cert").arg(&identity.cert).arg("--key").arg(&identity.key);
        let mut edge = Running::spawn(&mut edge, "edge", &logs)?;
        let (_, address) = read_start(&mut edge, &folder, "edge")?;
        Ok(Self { edge, application, address: address.to_string(), identity })
    }

    /// What clients of this kind print. They must end well within `limit`.
    fn clients(&self, scene: &Scene, kind: &str, number: u64, limit: Duration) -> Result<String> {
        let mut clients = Command::new(scene.clients.join("edge_crowd"));
        clients.arg(kind).arg(&self.identity.ca).args([&self.address, &number.to_string()]);
        let mut clients = Running::spawn(&mut clients, kind, &scene.path("logs"))?;
        if !clients.wait(limit)?.success() {
            let said = std::fs::read_to_string(scene.path(&format!("logs/{kind}.stderr")))?;
            return Err(format!("{}{said}", clients.output()?).into());
        }
        clients.output()
    }

    /// # Errors
    /// The edge does not end well.
    fn end(mut self) -> Result<()> {
        self.edge.terminate();
        let status = self.edge.wait(PATIENCE)?;
        if status.success() { Ok(()) } else { Err(format!("the edge ended with {status}").into()) }
    }
}

pub(super) fn slow_streams(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let front = Front::start(scene)?;
    let before = front.edge.resident_bytes()?;
    // Heads have 10 s; a stall of a body is one of 60 s.
    let seconds = if is_short { 15 } else { 75 };
    let said = front.clients(scene, "slow", seconds, Duration::from_secs(seconds) + 2 * PATIENCE)?;
    let resident = front.edge.resident_bytes()?;
    let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split(' ').collect()).collect();
    let is_so = |line: &[&str]| matches!(line, ["heads", "408", STREAMS] | ["bodies", "200", STREAMS]);
    if lines.iter().filter(|line| is_so(line)).count() != 2 || lines.len() != 3 {
        return Err(format!("not 408 for each head and 200 for each body: {said}").into());
    }
    let [_, requests, longest] = lines[0][..] else { return Err(format!("the clients said {said}").into()) };
    front.end()?;
    Ok(vec![
        ("seconds", seconds as f64, ""),
        ("requests of others", requests.parse()?, ""),
        ("the slowest", longest.parse::<f64>()? / 1e3, "s"),
        ("memory before", before as f64 / 1e6, "MB"),
        ("memory", resident as f64 / 1e6, "MB"),
    ])
}

pub(super) fn given_up(scene: &Scene, _: bool) -> Result<Vec<Figure>> {
    let front = Front::start(scene)?;
    let said = front.clients(scene, "give-up", 0, 3 * PATIENCE)?;
    let times = |text: &str, word: &str| -> Vec<(String, u64)> {
        let line = |line: &str| {
            let (key, time) = line.strip_prefix(word)?.trim().split_once(' ')?;
            Some((key.to_owned(), time.parse().ok()?))
        };
        text.lines().filter_map(line).collect()
    };
    let gave_up = times(&said, "gave-up");
    let mut took = Vec::new();
    for (key, at) in &gave_up {
        let dropped = super::scene::wait_for(&format!("the application's end of {key}"), || {
            let dropped = times(&front.application.output()?, "dropped");
            Ok(dropped.into_iter().find(|(other, _)| other == key))
        })?;
        took.push(dropped.1.saturating_sub(*at));
    }
    front.end()?;
    if took.len() != GIVE_UPS {
        return Err(format!("{} of {GIVE_UPS} were given up", took.len()).into());
    }
    let mut figures = Vec::new();
    let names = [
        ("HTTP/1.1, median", "most"),
        ("HTTP/2, median", "most"),
        ("HTTP/3, median", "most"),
        ("uploads over HTTP/3, median", "most"),
    ];
    for (took, (median, most)) in took.chunks_mut(GIVE_UPS / names.len()).zip(names) {
        took.sort_unstable();
        let half = took[took.len() / 2];
        // A busy machine is late now and then.
        if half > GIVEN_UP {
            return Err(format!("{median}: {half} ms until the application knows").into());
        }
        figures.push((median, half as f64, "ms"));
        figures.push((most, took[took.len() - 1] as f64, "ms"));
    }
    Ok(figures)
}

pub(super) fn websocket(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let front = Front::start(scene)?;
    let before = front.edge.resident_bytes()?;
    let bytes: u64 = if is_short { 16 << 20 } else { 1 << 30 };
    let said = front.clients(scene, "talk", bytes, Duration::from_secs(if is_short { 120 } else { 1800 }))?;
    let resident = front.edge.resident_bytes()?;
    front.end()?;
    let seconds = |version: &str| -> Result<f64> {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("talked {version} ")));
        Ok(line.ok_or_else(|| format!("nothing of {version}: {said}"))?.parse()?)
    };
    Ok(vec![
        ("bytes each way", bytes as f64, ""),
        ("HTTP/1.1", seconds("h1")?, "s"),
        ("HTTP/2", seconds("h2")?, "s"),
        ("HTTP/3", seconds("h3")?, "s"),
        ("memory before", before as f64 / 1e6, "MB"),
        ("memory", resident as f64 / 1e6, "MB"),
    ])
}

pub(super) fn silent_events(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let front = Front::start(scene)?;
    // QUIC's idle timeout is 30 s.
    let seconds = if is_short { 35 } else { 600 };
    let said = front.clients(scene, "listen", seconds, Duration::from_secs(seconds) + 2 * PATIENCE)?;
    front.end()?;
    let heard = said.lines().filter(|line| line.starts_with("silent ")).count();
    if heard != 3 {
        return Err(format!("not over all three versions: {said}").into());
    }
    Ok(vec![("seconds of silence", seconds as f64, ""), ("versions of HTTP", 3.0, "")])
}
