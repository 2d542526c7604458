//! One cell: a client, a server, a case.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use posthaste_emulator::{RelayConfig, UdpRelay};
use posthaste_path::PathConfig;

use super::case::{Case, Proof};
use super::content::Content;
use super::datagrams;
use super::proof::{self, Evidence};
use super::recorder::{Plan, Recorder};
use super::side::Side;
use crate::Result;
use crate::identity::Identity;
use crate::process::Running;

/// Bound for a server's start.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(15);
/// The relay's clients: one connection, and room for a client that migrates or probes.
const RELAY_CLIENTS: usize = 8;
/// Of relay and recorder.
const SEED: u64 = 1;

/// What all cells share.
pub(crate) struct Bench {
    pub(crate) content: Content,
    pub(crate) identity: Identity,
    /// With a long certificate.
    pub(crate) large_identity: Identity,
    /// Logs of failing cells.
    pub(crate) artifacts: PathBuf,
    /// Drives the relay.
    pub(crate) runtime: tokio::runtime::Runtime,
}

impl Bench {
    /// Runs a cell; its logs stay below `artifacts` if it fails.
    pub(crate) fn run(&self, name: &str, client: &Side, server: &Side, case: &Case) -> Result<String> {
        let logs = self.artifacts.join(name);
        if logs.exists() {
            std::fs::remove_dir_all(&logs)?;
        }
        let output = logs.join("fetched");
        std::fs::create_dir_all(&output)?;
        let detail = if case.proof == Proof::Datagrams {
            datagrams::run(&self.identity, &logs, client, server, case)?
        } else {
            self.run_in(&logs, &output, client, server, case)?
        };
        std::fs::remove_dir_all(&logs)?;
        Ok(detail)
    }

    fn run_in(
        &self,
        logs: &Path,
        output: &Path,
        client: &Side,
        server: &Side,
        case: &Case,
    ) -> Result<String> {
        let identity = if case.large_certificate { &self.large_identity } else { &self.identity };
        let qlog = logs.join("qlog");
        std::fs::create_dir_all(&qlog)?;
        let ip: IpAddr = if case.ipv6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        let mut listen = free_port(ip)?;
        let mut command = server.server(case, &self.content.root, listen, identity, logs);
        let mut serving = Running::spawn(&mut command, "server", logs)?;
        serving.wait_for(START_TIMEOUT, |line| server.is_ready_line(line).then_some(()))?;

        let recorder =
            case.recorder_for(client.name()).map(|plan| self.start_recorder(listen, plan)).transpose()?;
        listen = recorder.as_ref().map_or(listen, Recorder::local_addr);
        let relay = case.path.map(|path| self.start_relay(listen, &path())).transpose()?;
        listen = relay.as_ref().map_or(listen, UdpRelay::local_addr);
        let files = case.files.names();
        let host = if case.ipv6 { "[::1]" } else { "localhost" };
        let urls: Vec<String> =
            files.iter().map(|file| format!("https://{host}:{}/{file}", listen.port())).collect();
        let mut command = client.client(case, &urls, output, identity, &qlog);
        let started = Instant::now();
        let mut fetching = Running::spawn(&mut command, "client", logs)?;
        let status = fetching.wait(case.timeout);
        let elapsed = started.elapsed();
        // What is written at a connection's end is written by then.
        if server.is_ours() {
            serving.end();
        }
        let relay = relay.map(|relay| self.runtime.block_on(relay.shutdown()));
        let recorder = recorder.map(|recorder| recorder.seen());
        std::fs::write(logs.join("relay"), format!("{relay:#?}\n{recorder:#?}\n"))?;
        let status = status?;
        if !status.success() {
            return Err(format!("the client ended with {status}").into());
        }
        let bytes = self.content.verify(output, &files)?;
        let report = fetching.output()?;
        client.check_report(case, &report, urls.len())?;
        let our_report = client.is_ours().then_some(report);
        let evidence =
            Evidence { relay, recorder, elapsed, qlog: &qlog, our_report, our_server: server.is_ours() };
        let proved = proof::check(case.proof, &evidence)?;
        Ok(format!("{} files, {bytes} bytes{proved}", files.len()))
    }

    fn start_relay(&self, upstream: SocketAddr, path: &PathConfig) -> Result<UdpRelay> {
        let config = RelayConfig {
            listen: (upstream.ip(), 0).into(),
            upstream,
            down: path.clone(),
            up: path.clone(),
            seed: SEED,
            max_clients: RELAY_CLIENTS,
        };
        Ok(self.runtime.block_on(UdpRelay::start(config))?)
    }

    fn start_recorder(&self, upstream: SocketAddr, plan: Plan) -> Result<Recorder> {
        Ok(self.runtime.block_on(Recorder::start(upstream.ip(), upstream, plan, SEED))?)
    }
}

/// A port of `ip` that nobody has at the moment, UDP and TCP. It is below those that kernels give to sockets of port 0,
/// which the next connection of any program may take.
pub(crate) fn free_port(ip: IpAddr) -> Result<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(12_000);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        if port >= 32_000 {
            return Err("no port is free from 12000 to 32000: end the programs that listen there".into());
        }
        if UdpSocket::bind((ip, port)).is_ok() && TcpListener::bind((ip, port)).is_ok() {
            return Ok((ip, port).into());
        }
    }
}
