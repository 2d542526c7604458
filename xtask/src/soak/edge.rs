//! The soak of `posthaste edge` in front of two applications: clients over all versions of HTTP, reloads, and applications that
//! are killed (`crates/proxy/examples/edge_crowd`).

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use posthaste_emulator::UdpRelay;
use serde_json::Value;
use tempfile::TempDir;

use super::failures::{Outage, Tally};
use super::{Arguments, MORE_DESCRIPTORS, ROUND_ENDS, Record, Verdict};
use crate::Result;
use crate::identity::Identity;
use crate::interrupt;
use crate::process::Running;
use crate::site::{END, START, content, read_start};
use crate::workspace::{cargo, run as run_command, target};

/// Bytes of the file that the edge has itself; clients know it.
const FILE: u64 = 60_000;
/// Clients of a round, and how many at once: over TCP, over QUIC, and over QUIC on a path that loses packets.
const CROWDS: [(&str, [u64; 2]); 3] = [("tcp", [300, 40]), ("quic", [200, 30]), ("over-path", [60, 20])];
/// Of `--short`: a round has this part of the clients.
const SHORT_PART: u64 = 8;
/// For how long a killed application stays away: new connections to it fail, and so do health checks.
const AWAY: Duration = Duration::from_secs(1);
/// After the last client. Idle connections to applications are kept for 30 s, and their pool looks at them every 30 s.
const QUIET: Duration = Duration::from_secs(65);
/// Between two looks at an edge that comes to rest.
const LOOK: Duration = Duration::from_secs(1);
/// Descriptors of a round: how many clients and connections to applications meet at one moment is chance.
const NOISE: f64 = 1.2;
/// Faults that are printed.
const SHOWN: usize = 10;

/// The edge, the applications, and what happens to them.
struct Scene {
    folder: TempDir,
    crowd: PathBuf,
    identity: Identity,
    program: PathBuf,
    edge: Running,
    address: SocketAddr,
    admin: SocketAddr,
    applications: [Application; 2],
    outages: Vec<Outage>,
    reloads: Timer,
    restarts: Timer,
}

/// One of two servers that answer the same.
struct Application {
    running: Running,
    address: SocketAddr,
    /// When it was killed, if it is away.
    killed: Option<(Instant, u64)>,
}

/// Something that happens again and again.
struct Timer {
    every: Duration,
    last: Instant,
    count: usize,
}

impl Timer {
    fn new(seconds: u64) -> Self {
        Self { every: Duration::from_secs(seconds), last: Instant::now(), count: 0 }
    }

    /// Whether it is time; it is then counted.
    fn is_due(&mut self) -> bool {
        let is_due = self.last.elapsed() >= self.every;
        if is_due {
            self.last = Instant::now();
            self.count += 1;
        }
        is_due
    }
}

/// Runs rounds until enough is enough.
pub(super) fn run(program: &Path, arguments: &Arguments) -> Result<Verdict> {
    run_command(cargo().args(["build", "--quiet", "--workspace", "--example", "edge_crowd"]))?;
    let mut scene = Scene::start(program, arguments)?;
    let mut record = Record::start(&scene.edge)?;
    let mut tally = Tally::default();
    while arguments.goes_on(&record) {
        scene.round(&mut record, &mut tally, if arguments.short { SHORT_PART } else { 1 })?;
    }
    if arguments.short {
        scene.rest(&record)?;
    } else {
        interrupt::sleep(QUIET)?;
    }
    let verdict = record.end(&scene.edge, NOISE)?;
    let status = scene.status()?;
    scene.end()?;
    let explained = scene.explain(&record, &tally, &status);
    Ok(explained.and(verdict))
}

impl Scene {
    fn start(program: &Path, arguments: &Arguments) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["www", "logs"] {
            fs::create_dir(folder.path().join(name))?;
        }
        fs::write(folder.path().join("www/file"), content(FILE))?;
        let identity = Identity::create(folder.path())?;
        let crowd = target().join("debug/examples/edge_crowd");
        let application = |name: &str| Application::start(&crowd, "127.0.0.1:0", name, folder.path());
        let applications = [application("application-0")?, application("application-1")?];
        write_config(folder.path(), &identity, &applications, 0)?;
        let mut edge = Command::new(program);
        edge.env_remove("RUST_LOG").args(["edge", "--json", "--no-access-log", "--config", "edge.toml"]);
        let mut edge = Running::spawn(edge.current_dir(folder.path()), "edge", &folder.path().join("logs"))?;
        let (start, address) = read_start(&mut edge, folder.path(), "edge")?;
        let admin = start["admin"].as_str().ok_or("the edge does not say where operators ask")?.parse()?;
        let (outages, program) = (Vec::new(), program.to_owned());
        let (reloads, restarts) = (Timer::new(arguments.reload_every), Timer::new(arguments.restart_every));
        Ok(Self {
            folder,
            crowd,
            identity,
            program,
            edge,
            address,
            admin,
            applications,
            outages,
            reloads,
            restarts,
        })
    }

    /// Clients of all kinds, one of `part` of each crowd, until the last has left; meanwhile the edge reloads, and applications
    /// come and go.
    fn round(&mut self, record: &mut Record, tally: &mut Tally, part: u64) -> Result<()> {
        let seed = record.rounds.len() as u64 + 1;
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let relay = runtime.block_on(UdpRelay::start(super::serve::relay_to(self.address, seed)))?;
        let mut crowds = Vec::new();
        for (name, [connections, at_once]) in CROWDS {
            let address = if name == "over-path" { relay.local_addr() } else { self.address };
            crowds.push(self.clients(name, address, [connections / part, at_once, seed << 16])?);
        }
        // The edge is looked at by what the closure does not have.
        let Self { folder, crowd, identity, edge, applications, outages, reloads, restarts, .. } = self;
        let step = || {
            for (index, application) in applications.iter_mut().enumerate() {
                let name = format!("application-{index}");
                outages.extend(application.come_back(crowd, &name, folder.path())?);
            }
            if restarts.is_due() {
                applications[restarts.count % 2].kill()?;
            }
            if reloads.is_due() {
                write_config(folder.path(), identity, applications, reloads.count)?;
                edge.hang_up();
            }
            let mut is_under_way = false;
            for crowd in &mut crowds {
                is_under_way |= crowd.is_running()?;
            }
            Ok(is_under_way)
        };
        record.round(edge, CROWDS.iter().map(|(_, [connections, _])| connections / part).sum(), step)?;
        for crowd in &mut crowds {
            if !crowd.wait(ROUND_ENDS)?.success() {
                return Err("the clients did not end well".into());
            }
            tally.read(&crowd.output()?)?;
        }
        Ok(())
    }

    fn clients(&self, name: &str, address: SocketAddr, numbers: [u64; 3]) -> Result<Running> {
        let way = if name == "tcp" { "tcp" } else { "quic" };
        let mut clients = Command::new(&self.crowd);
        clients.arg("clients").arg(&self.identity.ca).args([&address.to_string(), way]);
        clients.args(numbers.map(|number| number.to_string()));
        Running::spawn(&mut clients, name, &self.folder.path().join("logs"))
    }

    /// Ends the applications, so that their idle connections do not have to time out, and waits until nothing of the clients is
    /// left; if that does not come, a fault is found later.
    fn rest(&mut self, record: &Record) -> Result<()> {
        for application in self.applications.iter_mut().filter(|application| application.killed.is_none()) {
            application.running.kill()?;
            application.running.wait(END)?;
        }
        let since = Instant::now();
        let mut is_calm = false;
        while !is_calm && since.elapsed() < QUIET {
            interrupt::sleep(LOOK)?;
            is_calm = self.edge.descriptors()? <= record.before.descriptors + MORE_DESCRIPTORS
                && self.status()?["http3"]["open"].as_u64() == Some(0);
        }
        Ok(())
    }

    /// What the edge says of itself.
    fn status(&self) -> Result<Value> {
        let mut command = Command::new(&self.program);
        let output =
            command.args(["edge", "status", "--json", "--admin", &self.admin.to_string()]).output()?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Ends the edge.
    ///
    /// # Errors
    /// It does not end, or not well, or it has panicked.
    fn end(&mut self) -> Result<()> {
        self.edge.terminate();
        let status = self.edge.wait(END)?;
        let said = fs::read_to_string(self.folder.path().join("logs/edge.stderr"))?;
        if !status.success() || said.contains("panicked") {
            return Err(format!("the edge ended with {status}: {said}").into());
        }
        Ok(())
    }

    /// Prints what happened, and decides whether all of it has a reason.
    fn explain(&self, record: &Record, tally: &Tally, status: &Value) -> Verdict {
        let away = self.applications.iter().filter_map(|application| application.killed);
        let outages: Vec<Outage> =
            self.outages.iter().copied().chain(away.map(|(_, killed)| [killed, u64::MAX])).collect();
        let judged = tally.judge(&outages);
        let all = |counts: &BTreeMap<String, u64>| {
            let each = counts.iter().map(|(name, count)| format!("{name} {count}"));
            each.collect::<Vec<_>>().join(", ")
        };
        let (loaded, refused) = (&status["reload"]["loaded"], &status["reload"]["refused"]);
        let excused: u64 = judged.excused.values().sum();
        println!(
            "{} connections in {} rounds, {} requests; clients that got what they came for: {}",
            record.connections,
            record.rounds.len(),
            tally.requests,
            all(&tally.did)
        );
        println!(
            "reloads {loaded}, refused {refused}; applications killed {} times; failed meanwhile {excused} ({}); failed \
             otherwise {}",
            outages.len(),
            all(&judged.excused),
            judged.faults.len()
        );
        for fault in judged.faults.iter().take(SHOWN) {
            println!("  {fault}");
        }
        let open = &status["http3"]["open"];
        if let Some(first) = judged.faults.first() {
            return Err(format!("{} clients failed for no reason; the first: {first}", judged.faults.len()));
        }
        if loaded.as_u64() != Some(self.reloads.count as u64) || refused.as_u64() != Some(0) {
            return Err(format!(
                "of {} reloads {loaded} succeeded, {refused} were refused",
                self.reloads.count
            ));
        }
        if open.as_u64() != Some(0) {
            return Err(format!("{open} HTTP/3 connections are open when all clients have left"));
        }
        Ok(())
    }
}

impl Application {
    fn start(crowd: &Path, address: &str, name: &str, folder: &Path) -> Result<Self> {
        let mut command = Command::new(crowd);
        let mut running = Running::spawn(command.args(["upstream", address]), name, &folder.join("logs"))?;
        let address = running.wait_for(START, |line| line.strip_prefix("listening ")?.parse().ok())?;
        Ok(Self { running, address, killed: None })
    }

    /// Ends it, as a crash would.
    fn kill(&mut self) -> Result<()> {
        if self.killed.is_none() {
            self.killed = Some((Instant::now(), now()));
            self.running.kill()?;
            self.running.wait(END)?;
        }
        Ok(())
    }

    /// Starts it again if it has been away long enough; when it was away.
    fn come_back(&mut self, crowd: &Path, name: &str, folder: &Path) -> Result<Option<Outage>> {
        let Some((_, killed)) = self.killed.filter(|(since, _)| since.elapsed() >= AWAY) else {
            return Ok(None);
        };
        *self = Self::start(crowd, &self.address.to_string(), name, folder)?;
        Ok(Some([killed, now()]))
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// The edge's file; each one is another, so that a reload has something to do.
fn write_config(
    folder: &Path,
    identity: &Identity,
    applications: &[Application; 2],
    generation: usize,
) -> Result<()> {
    let [one, other] = applications.each_ref().map(|application| application.address);
    let (cert, key) = (identity.cert.display(), identity.key.display());
    let text = format!(
        "[edge]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nstate = \"state\"\n\n[site.\"127.0.0.1\"]\n\
         certificate = {{ chain = \"{cert}\", key = \"{key}\" }}\nto = [\"http://{one}\", \"http://{other}\"]\n\
         health = {{ path = \"/bytes/1\", every = \"1s\", timeout = \"10s\", failures = 2 }}\n\
         headers = {{ set = {{ x-generation = \"{generation}\" }} }}\n\n\
         [[site.\"127.0.0.1\".route]]\npath = \"/static\"\nfiles = \"www\"\n"
    );
    // As an editor does: the edge never reads half of a file.
    let (new, file) = (folder.join("edge.toml.new"), folder.join("edge.toml"));
    fs::write(&new, text)?;
    Ok(fs::rename(new, file)?)
}
