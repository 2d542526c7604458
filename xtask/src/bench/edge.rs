//! The edge next to other servers with HTTP/3, in one run, interleaved.

pub(super) mod reloads;
mod rivals;

use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;

use self::rivals::Rivals;
use super::files::{build, edge_command, listening, on_core};
use super::quiet::{MAX_OTHERS, Means, Watch, quiet, turned};
use crate::Result;
use crate::identity::Identity;
use crate::interop::cell::free_port;
use crate::median;
use crate::process::{Running, children_cpu};
use crate::workspace::target;

/// Length of the file that is asked for.
const BYTES: usize = 1024;
/// Bounds for a server's start and for all requests of one run.
const START_TIMEOUT: Duration = Duration::from_secs(20);
const RUN_TIMEOUT: Duration = Duration::from_secs(120);
/// Handshake state is freed by and by.
const SETTLE: Duration = Duration::from_secs(3);

/// Of `cargo xtask bench edge`.
#[derive(Debug, Args)]
#[command(
    after_help = "Servers take turns within a round; server on core 0, client and upstream on core 1. The client is our own, over
HTTP/3 on loopback; all have the same ECDSA certificate, TLS 1.3 and no access log, and no compression.

  static    CPU microseconds per request of the server for a file of 1 KiB, 10 connections with 10 requests each. HAProxy
            has no files and answers from its memory
  proxied   the same, the file from an upstream (nginx over HTTP/1.1 on the client's core)
  p50, p99  response time at a low load: 8 connections, each with a pause of 2 ms between requests; `added` is what the
            upstream adds to a file: the difference of the two columns before
  idle      growth of the server's resident memory per idle HTTP/3 connection that has made one request

CPU times are those of the server's threads between the client's start and its end, so handshakes are in them.
A run is void and made again if other processes had more than 10 % of the processor time meanwhile. Medians over the
rounds with the least and greatest. nginx and HAProxy are Debian's (apt-get, x86-64), Caddy is built by go; all are kept
in target/rivals. h2load with ngtcp2 is not here to check the client."
)]
pub(crate) struct Arguments {
    /// Servers
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "edge,nginx,caddy,haproxy")]
    servers: Vec<String>,
    /// What is measured: CPU time per request, response times, memory of idle connections
    #[arg(long, value_name = "ROW,...", value_delimiter = ',', default_value = "cpu,times,idle")]
    rows: Vec<Rows>,
    /// Rounds over all servers
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Requests of each CPU measurement; a tenth of them for response times
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1000..))]
    requests: u64,
    /// Idle connections
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    idle: u64,
    #[command(flatten)]
    means: Means,
}

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rows {
    Cpu,
    Times,
    Idle,
}

impl Arguments {
    fn has(&self, rows: Rows) -> bool {
        self.rows.contains(&rows)
    }

    /// Memory is measured without the upstream.
    fn are_proxied(&self) -> bool {
        self.has(Rows::Cpu) || self.has(Rows::Times)
    }
}

/// What a configuration is made of.
struct Place<'a> {
    port: u16,
    upstream: u16,
    cert: &'a Path,
    key: &'a Path,
    www: &'a Path,
    folder: &'a Path,
    /// If the server is to be reloaded.
    live: Option<Live>,
}

/// A configuration that follows another one.
struct Live {
    /// Its number, which responses carry as `x-generation`.
    generation: u32,
    /// The paths that go to the upstream.
    prefix: &'static str,
}

/// A figure and what speaks against it.
#[derive(Debug, Clone, Copy, Serialize)]
struct Measured {
    what: What,
    /// Microseconds, or kilobytes for `Idle`.
    value: f64,
    /// Share of the client's core that the client needed, in percent.
    client: f64,
    /// Share of all processor time that other processes had, in percent.
    others: f64,
}

/// What was measured of one server in one round.
#[derive(Debug, Serialize)]
struct Sample {
    server: String,
    round: u32,
    #[serde(flatten)]
    measured: Measured,
    void: bool,
}

/// In the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum What {
    Static,
    Proxied,
    StaticP50,
    StaticP99,
    ProxiedP50,
    ProxiedP99,
    AddedP50,
    AddedP99,
    Idle,
}

const TABLE: [(What, &str); 9] = [
    (What::Static, "static us"),
    (What::Proxied, "proxied us"),
    (What::StaticP50, "static p50 us"),
    (What::StaticP99, "static p99 us"),
    (What::ProxiedP50, "proxied p50 us"),
    (What::ProxiedP99, "proxied p99 us"),
    (What::AddedP50, "added p50 us"),
    (What::AddedP99, "added p99 us"),
    (What::Idle, "idle kB"),
];

/// Measures all and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    if let Some(unknown) =
        arguments.servers.iter().find(|name| !["edge", "nginx", "caddy", "haproxy"].contains(&name.as_str()))
    {
        return Err(format!("--servers: no {unknown:?}; there are edge, nginx, caddy, haproxy").into());
    }
    let needs_rivals = arguments.are_proxied() || arguments.servers.iter().any(|name| name != "edge");
    let rivals = needs_rivals.then(|| Rivals::get(&arguments.servers)).transpose()?;
    let mut scene = Scene::new(rivals, arguments.means.as_built)?;
    if arguments.means.prepare {
        return Ok(true);
    }
    if arguments.are_proxied() {
        scene.application = Some(scene.upstream()?);
    }
    let mut samples = Vec::new();
    for round in 0..arguments.rounds {
        for name in turned(&arguments.servers, round as usize) {
            for measured in scene.all_of(name, arguments)? {
                let Measured { what, value, client, others } = measured;
                eprintln!(
                    "round {round} {name} {what:?}: {value:.1}, client {client:.0} %, others {others:.0} %"
                );
                let void = others > MAX_OTHERS;
                samples.push(Sample { server: name.clone(), round, measured, void });
            }
        }
    }
    print_table(&arguments.servers, &samples);
    if let Some(path) = &arguments.means.json {
        std::fs::write(path, serde_json::to_string_pretty(&samples)?)?;
    }
    Ok(samples.iter().all(|sample| !sample.void))
}

/// What the client has said and what it took.
struct Load {
    server_micros: f64,
    p50: f64,
    p99: f64,
    client: f64,
    others: f64,
}

/// What all runs need.
struct Scene {
    /// The edge alone may need none.
    rivals: Option<Rivals>,
    folder: tempfile::TempDir,
    identity: Identity,
    own: PathBuf,
    load: PathBuf,
    upstream: u16,
    /// The upstream, when it runs.
    application: Option<Running>,
}

impl Scene {
    fn new(rivals: Option<Rivals>, as_built: bool) -> Result<Self> {
        if !as_built {
            build()?;
        }
        let folder = tempfile::tempdir()?;
        let identity = Identity::create(folder.path())?;
        let app = folder.path().join("www/app");
        std::fs::create_dir_all(&app)?;
        for place in [app, folder.path().join("www")] {
            std::fs::write(place.join(BYTES.to_string()), vec![b'x'; BYTES])?;
        }
        let (own, load) = (target().join("release/posthaste"), target().join("release/examples/load"));
        Ok(Self {
            rivals,
            folder,
            identity,
            own,
            load,
            upstream: free_port(Ipv4Addr::LOCALHOST.into())?.port(),
            application: None,
        })
    }

    fn rivals(&self) -> Result<&Rivals> {
        self.rivals.as_ref().ok_or_else(|| "no rivals were asked for".into())
    }

    fn place<'a>(&'a self, port: u16, www: &'a Path) -> Place<'a> {
        let (cert, key) = (self.identity.cert.as_path(), self.identity.key.as_path());
        Place { port, upstream: self.upstream, cert, key, www, folder: self.folder.path(), live: None }
    }

    fn upstream(&self) -> Result<Running> {
        let www = self.folder.path().join("www");
        let words = self.rivals()?.upstream(&self.place(0, &www))?;
        let mut running =
            Running::spawn(on_core(1, &words[0]).args(&words[1..]), "upstream", self.folder.path())?;
        wait_until(&mut running, || std::net::TcpStream::connect(("127.0.0.1", self.upstream)).is_ok())?;
        Ok(running)
    }

    /// What is asked for of one server in one round.
    fn all_of(&self, name: &str, arguments: &Arguments) -> Result<Vec<Measured>> {
        let (mut figures, mut times) = (Vec::new(), Vec::new());
        for is_proxied in [false, true] {
            if is_proxied && !arguments.are_proxied() {
                break;
            }
            let (server, port) = self.start(name, is_proxied)?;
            let url = format!("https://127.0.0.1:{port}/{}{BYTES}", if is_proxied { "app/" } else { "" });
            // What is made at the first request is not measured.
            self.load(&server, &url, &["--connections", "1", "--streams", "1", "--requests", "100"])?;
            if arguments.has(Rows::Cpu) {
                let requests = arguments.requests.to_string();
                let fast = ["--connections", "10", "--streams", "10", "--requests", &requests];
                let load = self.quiet_load(&server, &url, &fast)?;
                let what = if is_proxied { What::Proxied } else { What::Static };
                let value = load.server_micros / arguments.requests as f64;
                figures.push(Measured { what, value, client: load.client, others: load.others });
            }
            if arguments.has(Rows::Times) {
                let few = (arguments.requests / 10).to_string();
                let slow =
                    ["--connections", "8", "--streams", "1", "--pause-millis", "2", "--requests", &few];
                times.push(self.quiet_load(&server, &url, &slow)?);
            }
            if arguments.has(Rows::Idle) && !is_proxied {
                figures.push(self.idle(&server, &url, arguments.idle)?);
            }
        }
        if let [files, app] = &times[..] {
            figures.extend(response_times(files, app));
        }
        Ok(figures)
    }

    /// A server that listens, and its port.
    fn start(&self, name: &str, is_proxied: bool) -> Result<(Running, u16)> {
        let (folder, www) = (self.folder.path(), self.folder.path().join("www"));
        if name == "edge" {
            let mut command = edge_command(&self.own);
            command.arg("--cert").arg(&self.identity.cert).arg("--key").arg(&self.identity.key);
            if is_proxied {
                command.args(["--to", &format!("http://127.0.0.1:{}", self.upstream)]);
            } else {
                command.arg("--files").arg(&www);
            }
            let mut server = Running::spawn(&mut command, name, folder)?;
            let address = server.wait_for(START_TIMEOUT, listening)?;
            let port = address.rsplit(':').next().unwrap_or_default().parse()?;
            return Ok((server, port));
        }
        let port = free_port(Ipv4Addr::LOCALHOST.into())?.port();
        let words = self.rivals()?.command(name, &self.place(port, &www))?;
        let mut command = on_core(0, &words[0]);
        command.args(&words[1..]).env("GOMAXPROCS", "1").env("HOME", folder);
        let mut server = Running::spawn(&mut command, name, folder)?;
        wait_until(&mut server, || UdpSocket::bind(("127.0.0.1", port)).is_err()).map_err(|error| {
            format!(
                "{error}: {}",
                std::fs::read_to_string(folder.join(format!("{name}.stderr"))).unwrap_or_default()
            )
        })?;
        Ok((server, port))
    }

    /// One run, again if others disturbed it.
    fn quiet_load(&self, server: &Running, url: &str, options: &[&str]) -> Result<Load> {
        quiet(|| self.load(server, url, options), |load| load.others)
    }

    fn client(&self, url: &str, options: &[&str]) -> Result<Running> {
        let mut command = on_core(1, &self.load);
        command.arg("client").arg("--ca").arg(&self.identity.ca);
        command.args(["--url", url, "--bytes", &BYTES.to_string()]).args(options);
        Running::spawn(&mut command, "client", self.folder.path())
    }

    fn upstream_time(&self) -> Result<Duration> {
        self.application.as_ref().map_or(Ok(Duration::ZERO), Running::cpu_time)
    }

    fn load(&self, server: &Running, url: &str, options: &[&str]) -> Result<Load> {
        let (before, own_before, upstream_before) =
            (server.cpu_time()?, children_cpu()?, self.upstream_time()?);
        let watch = Watch::start()?;
        let mut client = self.client(url, options)?;
        let status = client.wait(RUN_TIMEOUT)?;
        let wall = watch.wall();
        let server_time = server.cpu_time()?.saturating_sub(before);
        let client_time = children_cpu()?.saturating_sub(own_before);
        let upstream_time = self.upstream_time()?.saturating_sub(upstream_before);
        let others = watch.others(server_time + client_time + upstream_time)?;
        if !status.success() {
            let complaint = std::fs::read_to_string(self.folder.path().join("client.stderr"))?;
            return Err(format!("{url}: the client ended with {status}: {complaint}").into());
        }
        let said = client.output()?;
        let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [_, p50, p99] = numbers[..] else { return Err(format!("the client said {said:?}").into()) };
        Ok(Load {
            server_micros: server_time.as_secs_f64() * 1e6,
            p50,
            p99,
            client: client_time.as_secs_f64() / wall * 100.0,
            others,
        })
    }

    /// Resident kB per connection that has made one request.
    fn idle(&self, server: &Running, url: &str, count: u64) -> Result<Measured> {
        std::thread::sleep(SETTLE);
        let before = server.resident_bytes()?;
        let mut holder = self.client(url, &["--connections", &count.to_string(), "--hold", "true"])?;
        holder.wait_for(RUN_TIMEOUT, |line| (line == "READY").then_some(()))?;
        std::thread::sleep(SETTLE);
        let grown = server.resident_bytes()?.saturating_sub(before);
        holder.close_stdin();
        holder.wait(START_TIMEOUT)?;
        Ok(Measured {
            what: What::Idle,
            value: grown as f64 / count as f64 / 1000.0,
            client: 0.0,
            others: 0.0,
        })
    }
}

/// Of files, through the proxy, and what the upstream adds.
fn response_times(files: &Load, app: &Load) -> [Measured; 6] {
    let others = files.others.max(app.others);
    let time = |what, value: f64| Measured { what, value: value * 1e6, client: app.client, others };
    [
        time(What::StaticP50, files.p50),
        time(What::StaticP99, files.p99),
        time(What::ProxiedP50, app.p50),
        time(What::ProxiedP99, app.p99),
        time(What::AddedP50, app.p50 - files.p50),
        time(What::AddedP99, app.p99 - files.p99),
    ]
}

fn wait_until(server: &mut Running, is_ready: impl Fn() -> bool) -> Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    while !is_ready() {
        if !server.is_running()? || Instant::now() > deadline {
            return Err("it does not start".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(200));
    Ok(())
}

fn print_table(servers: &[String], samples: &[Sample]) {
    println!(
        "\nmedians, and in brackets the least and greatest; * = others had more than {MAX_OTHERS} % in a run of these"
    );
    print!("{:<16}", "");
    for server in servers {
        print!("{server:>26}");
    }
    println!();
    let is_measured = |row: &&(What, &str)| samples.iter().any(|sample| sample.measured.what == row.0);
    for (what, label) in TABLE.iter().filter(is_measured) {
        print!("{label:<16}");
        for server in servers {
            let own =
                || samples.iter().filter(|sample| sample.server == *server && sample.measured.what == *what);
            let values = || own().map(|sample| sample.measured.value);
            let (least, greatest) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
            let mark = if own().any(|sample| sample.void) { "*" } else { "" };
            print!("{:>26}", format!("{:.1} [{least:.1}-{greatest:.1}]{mark}", median(values())));
        }
        println!();
    }
}
