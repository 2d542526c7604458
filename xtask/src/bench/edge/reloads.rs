//! Reloads under a steady load, of the edge and of other servers, counted the same way.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use super::rivals::Rivals;
use super::{Live, Place, START_TIMEOUT, wait_until};
use crate::Result;
use crate::bench::files::{listening, on_core};
use crate::bench::table::Table;
use crate::identity::Identity;
use crate::interop::cell::free_port;
use crate::process::Running;
use crate::workspace::{build_posthaste, cargo, program, run as run_command, target};

/// Length of the responses' bodies.
const BYTES: u64 = 1024;
/// Connections that the client keeps.
const CONNECTIONS: u64 = 30;
/// For the last responses, and the connections before the first request.
const SLACK: Duration = Duration::from_secs(30);
/// A reload that a program makes, such as `caddy reload`.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(20);
/// Of `--short`.
const SHORT: (u32, u64, u64) = (10, 250, 8);

/// Of `cargo xtask bench reloads`.
#[derive(Debug, Args)]
#[command(
    after_help = "Requests leave at a steady rate, each when it is due, whatever becomes of those before it. One in 20 comes on a
connection of its own, the others on 30 connections that are kept. One that replaces another comes from a UDP port of its
own, as browsers' do. Responses are 1 KiB of an application over HTTP/1.1.
Server on core 0, client and application on core 1. Each reload changes a field of the responses.

  answered  whole responses of the right length with status 200
  failed    all others: an error, another status, or 10 s without a whole response
  repeated  requests that the server had not processed and that the client has sent again, once, as browsers do
  replaced  kept connections that the server ended, or that were lost
  seen      generations of the configuration that answered, of all that there were
  times     from when a request was due to its end, in milliseconds

edge and nginx reload on SIGHUP, HAProxy (master and worker) on SIGUSR2, Caddy by `caddy reload`. Fails if a request to the
edge fails, if one of its kept connections is replaced, or if its last configuration never answers. nginx and HAProxy
are Debian's (apt-get, x86-64), Caddy is built by go; all are kept in target/rivals."
)]
pub(crate) struct Arguments {
    /// Servers
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "edge,nginx,caddy,haproxy")]
    servers: Vec<String>,
    /// Versions of HTTP
    #[arg(long, value_name = "VERSION,...", value_delimiter = ',', default_value = "h3,h2", value_parser = ["h2", "h3"])]
    over: Vec<String>,
    /// Reloads of each run, spread evenly
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    reloads: u32,
    /// Requests per second
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rate: u64,
    /// Seconds of each run
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Only the edge, with 10 reloads in 8 s at 250 requests per second
    #[arg(long, conflicts_with_all = ["servers", "reloads", "rate", "seconds"])]
    short: bool,
    /// Another binary than the one that is built
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Also write every run here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What became of the requests of one run.
#[derive(Debug, Default, Serialize)]
struct Counts {
    server: String,
    over: String,
    reloads: u32,
    sent: u64,
    /// Requests per second that left.
    rate: f64,
    answered: u64,
    failed: u64,
    repeated: u64,
    replaced: u64,
    generations: u64,
    last: u64,
    p50: u64,
    p99: u64,
    most: u64,
    /// How many failed in each way.
    ways: Vec<(u64, String)>,
}

/// Makes all runs and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let mut servers = arguments.servers.clone();
    let (mut reloads, mut rate, mut seconds) = (arguments.reloads, arguments.rate, arguments.seconds);
    if arguments.short {
        servers.truncate(1);
        (reloads, rate, seconds) = SHORT;
    }
    let program = program(arguments.program.as_deref(), build_posthaste)?;
    let scene = Scene::new(&servers, program)?;
    let mut all = Vec::new();
    for server in &servers {
        for over in &arguments.over {
            let counts = scene.measure(server, over, reloads, rate, seconds)?;
            for (count, way) in &counts.ways {
                println!("{server} {over}: {count} failed: {way}");
            }
            all.push(counts);
        }
    }
    println!("{}", table(&all, reloads, rate, seconds).plain());
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&all)?)?;
    }
    let is_well = |counts: &Counts| {
        counts.failed == 0 && counts.replaced == 0 && counts.last == u64::from(counts.reloads)
    };
    Ok(all.iter().filter(|counts| counts.server == "edge").all(is_well))
}

/// What all runs need.
struct Scene {
    rivals: Option<Rivals>,
    folder: tempfile::TempDir,
    identity: Identity,
    program: PathBuf,
    crowd: PathBuf,
    upstream: u16,
    _application: Running,
}

impl Scene {
    fn new(servers: &[String], program: PathBuf) -> Result<Self> {
        run_command(cargo().args(["build", "--quiet", "--workspace", "--example", "edge_crowd"]))?;
        let has_rivals = servers.iter().any(|name| name != "edge");
        let rivals = has_rivals.then(|| Rivals::get(servers)).transpose()?;
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("www"))?;
        let identity = Identity::create(folder.path())?;
        let crowd = target().join("debug/examples/edge_crowd");
        let mut command = on_core(1, &crowd);
        let mut application =
            Running::spawn(command.args(["upstream", "127.0.0.1:0"]), "application", folder.path())?;
        let upstream = application.wait_for(START_TIMEOUT, |line| line.rsplit(':').next()?.parse().ok())?;
        Ok(Self { rivals, folder, identity, program, crowd, upstream, _application: application })
    }

    /// One run.
    fn measure(&self, name: &str, over: &str, reloads: u32, rate: u64, seconds: u64) -> Result<Counts> {
        let server = Server::start(self, name)?;
        let mut client = on_core(1, &self.crowd);
        client.arg("rate").arg(&self.identity.ca).arg(format!("127.0.0.1:{}", server.port)).arg(over);
        client.arg(format!("/bytes/{BYTES}"));
        client.args([BYTES, CONNECTIONS, rate, seconds].map(|number| number.to_string()));
        let mut client = Running::spawn(&mut client, "client", self.folder.path())?;
        let began = client.wait_for(SLACK, |line| (line == "began").then(Instant::now));
        let began = began.map_err(|error| format!("{name}: {error}: {}", self.said("client")))?;
        let whole = Duration::from_secs(seconds);
        for reload in 1..=reloads {
            let due = began + whole * (2 * reload - 1) / (2 * reloads);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            server.reload(reload)?;
        }
        if !client.wait(whole + SLACK)?.success() {
            return Err(format!("{name}: {}", self.said("client")).into());
        }
        let mut counts = Counts::read(&client.output()?)?;
        (counts.server, counts.over, counts.reloads) = (name.to_owned(), over.to_owned(), reloads);
        Ok(counts)
    }

    fn said(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{name}.stderr"))).unwrap_or_default()
    }

    fn place<'a>(&'a self, port: u16, www: &'a Path, generation: u32) -> Place<'a> {
        Place {
            port,
            upstream: self.upstream,
            cert: &self.identity.cert,
            key: &self.identity.key,
            www,
            folder: self.folder.path(),
            live: Some(Live { generation, prefix: "/bytes/" }),
        }
    }
}

/// A server that runs.
struct Server<'a> {
    scene: &'a Scene,
    name: &'a str,
    port: u16,
    running: Running,
}

impl<'a> Server<'a> {
    fn start(scene: &'a Scene, name: &'a str) -> Result<Self> {
        let folder = scene.folder.path();
        if name == "edge" {
            write_config(scene, 0)?;
            let mut edge = on_core(0, &scene.program);
            edge.env_remove("RUST_LOG").current_dir(folder);
            edge.args(["edge", "--json", "--no-access-log", "--config", "edge.toml"]);
            let mut running = Running::spawn(&mut edge, name, folder)?;
            let address = running.wait_for(START_TIMEOUT, listening);
            let address = address.map_err(|error| format!("{error}: {}", scene.said(name)))?;
            let port = address.rsplit(':').next().unwrap_or_default().parse()?;
            return Ok(Self { scene, name, port, running });
        }
        let port = free_port(std::net::Ipv4Addr::LOCALHOST.into())?.port();
        let words = rivals(scene)?.command(name, &scene.place(port, &folder.join("www"), 0))?;
        let mut command = on_core(0, &words[0]);
        command.args(&words[1..]).env("GOMAXPROCS", "1").env("HOME", folder);
        let mut running = Running::spawn(&mut command, name, folder)?;
        wait_until(&mut running, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())
            .map_err(|error| format!("{name}: {error}: {}", scene.said(name)))?;
        Ok(Self { scene, name, port, running })
    }

    /// Has it read another configuration.
    fn reload(&self, generation: u32) -> Result<()> {
        let scene = self.scene;
        if self.name == "edge" {
            write_config(scene, generation)?;
            return self.running.hang_up_alone();
        }
        let www = scene.folder.path().join("www");
        let file = Rivals::configure(self.name, &scene.place(self.port, &www, generation))?;
        match self.name {
            "nginx" => self.running.hang_up_alone(),
            "haproxy" => self.running.reload_by_usr2(),
            _ => {
                let mut command: Command = on_core(1, &rivals(scene)?.caddy());
                command.args(["reload", "--adapter", "caddyfile", "--config"]).arg(file);
                command.env("HOME", scene.folder.path());
                let status =
                    Running::spawn(&mut command, "reload", scene.folder.path())?.wait(RELOAD_TIMEOUT)?;
                if status.success() { Ok(()) } else { Err(scene.said("reload").into()) }
            }
        }
    }
}

fn rivals(scene: &Scene) -> Result<&Rivals> {
    scene.rivals.as_ref().ok_or_else(|| "no rivals were asked for".into())
}

/// The edge's file, replaced as an editor does it.
fn write_config(scene: &Scene, generation: u32) -> Result<()> {
    let (cert, key) = (scene.identity.cert.display(), scene.identity.key.display());
    let text = format!(
        "[edge]\nlisten = \"127.0.0.1:0\"\nstate = \"state\"\n\n[site.\"127.0.0.1\"]\n\
         certificate = {{ chain = \"{cert}\", key = \"{key}\" }}\nto = \"http://127.0.0.1:{}\"\n\
         headers = {{ set = {{ x-generation = \"{generation}\" }} }}\n",
        scene.upstream
    );
    let folder = scene.folder.path();
    std::fs::write(folder.join("edge.toml.new"), text)?;
    Ok(std::fs::rename(folder.join("edge.toml.new"), folder.join("edge.toml"))?)
}

impl Counts {
    /// From the client's output.
    fn read(output: &str) -> Result<Self> {
        let mut counts = Self::default();
        for line in output.lines() {
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            let number = || rest.parse::<u64>();
            match name {
                "sent" => counts.sent = number()?,
                "rate" => counts.rate = rest.parse()?,
                "answered" => counts.answered = number()?,
                "repeated" => counts.repeated = number()?,
                "replaced" => counts.replaced = number()?,
                "generations" => counts.generations = number()?,
                "last" => counts.last = number()?,
                "p50" => counts.p50 = number()?,
                "p99" => counts.p99 = number()?,
                "most" => counts.most = number()?,
                "failed" => {
                    let (count, why) = rest.split_once(' ').ok_or("a failure without a reason")?;
                    counts.ways.push((count.parse()?, why.to_owned()));
                }
                _ => {}
            }
        }
        counts.failed = counts.ways.iter().map(|way| way.0).sum();
        if counts.sent == 0 || counts.answered + counts.failed != counts.sent {
            return Err(format!("the client does not account for all requests: {output}").into());
        }
        Ok(counts)
    }
}

fn table(all: &[Counts], reloads: u32, rate: u64, seconds: u64) -> Table {
    let titles =
        ["", "over", "answered", "failed", "repeated", "replaced", "seen", "p50 ms", "p99 ms", "most ms"];
    let millis = |micros: u64| format!("{:.1}", micros as f64 / 1e3);
    let row = |counts: &Counts| {
        let numbers = [counts.answered, counts.failed, counts.repeated, counts.replaced]
            .map(|number| number.to_string());
        let seen = format!("{} of {}", counts.generations, counts.reloads + 1);
        let times = [counts.p50, counts.p99, counts.most].map(millis);
        let names = [counts.server.clone(), counts.over.clone()];
        [&names[..], &numbers, &[seen], &times].concat()
    };
    Table {
        heading: format!("{reloads} reloads in {seconds} s at {rate} requests per second"),
        titles: titles.map(str::to_owned).to_vec(),
        rows: all.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    const OUTPUT: &str = "began\nsent 10\nrate 99.5\nreplaced 1\nanswered 7\nrepeated 1\np50 900\np99 2000\nmost 3000\n\
                          generations 3\nlast 2\nfailed 2 the connection was lost\nfailed 1 no response in time\n";

    #[test]
    fn every_request_is_accounted_for() {
        let counts = Counts::read(OUTPUT).unwrap();
        assert_eq!((counts.sent, counts.answered, counts.failed), (10, 7, 3));
        assert_eq!(counts.ways[1], (1, "no response in time".to_owned()));
        assert_eq!((counts.generations, counts.last, counts.p99), (3, 2, 2000));
        assert!(Counts::read(&OUTPUT.replace("answered 7", "answered 6")).is_err());
        assert!(Counts::read("began\n").is_err(), "a client that ended early");
    }
}
