//! One cell: a client, a server, a case.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use posthaste_emulator::{RelayConfig, RelayStats, UdpRelay};

use super::case::{Case, lossy_path};
use super::content::Content;
use super::side::Side;
use crate::Result;
use crate::identity::Identity;
use crate::process::Running;

/// Bound for a server's start.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(15);
/// The relay's clients: one connection, and room for a client that migrates or probes.
const RELAY_CLIENTS: usize = 8;

/// What all cells share.
pub(crate) struct Bench {
    pub(crate) content: Content,
    pub(crate) identity: Identity,
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
        let detail = self.run_in(&logs, &output, client, server, case)?;
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
        let listen = free_port()?;
        let mut command = server.server(&self.content.root, listen, &self.identity, &logs.join("state"));
        let mut serving = Running::spawn(&mut command, "server", logs)?;
        serving.wait_for(START_TIMEOUT, |line| server.is_ready_line(line).then_some(()))?;

        let relay = case.lossy.then(|| self.start_relay(listen)).transpose()?;
        let port = relay.as_ref().map_or(listen, UdpRelay::local_addr).port();
        let files = Content::files(case);
        let urls: Vec<String> = files.iter().map(|file| format!("https://localhost:{port}/{file}")).collect();
        let mut command = client.client(case, &urls, output, &self.identity);
        let mut fetching = Running::spawn(&mut command, "client", logs)?;
        let status = fetching.wait(case.timeout);
        let impairment = relay.map(|relay| self.runtime.block_on(relay.shutdown()));
        if let Some(stats) = &impairment {
            std::fs::write(logs.join("relay"), format!("{stats:#?}\n"))?;
        }
        let status = status?;
        if !status.success() {
            return Err(format!("the client ended with {status}").into());
        }
        let bytes = self.content.verify(output, &files)?;
        client.check_report(&fetching.output()?, urls.len())?;
        let impairment = impairment.map_or_else(|| Ok(String::new()), |stats| impaired(&stats))?;
        Ok(format!("{} files, {bytes} bytes{impairment}", files.len()))
    }

    fn start_relay(&self, upstream: SocketAddr) -> Result<UdpRelay> {
        let config = RelayConfig {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            upstream,
            down: lossy_path(),
            up: lossy_path(),
            seed: 1,
            max_clients: RELAY_CLIENTS,
        };
        Ok(self.runtime.block_on(UdpRelay::start(config))?)
    }
}

/// Says what the relay did; a relay that harmed nothing has proved nothing.
fn impaired(stats: &RelayStats) -> Result<String> {
    if stats.down.lost == 0 || stats.down.reordered == 0 {
        return Err(format!("the relay lost or reordered nothing: {stats:?}").into());
    }
    Ok(format!(
        ", lost {} of {} packets down and {} of {} up",
        stats.down.lost, stats.down.offered, stats.up.lost, stats.up.offered
    ))
}

/// A UDP port that nobody had a moment ago.
pub(crate) fn free_port() -> Result<SocketAddr> {
    Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
