//! A server and a client of one peer, over loopback, and what the comparisons of peers have in common.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::files::on_core;
use super::quiet::{MAX_OTHERS, Means, Watch, quiet, turned};
use super::table::{Table, ratio};
use super::{PEERS, chosen, ready_address};
use crate::Result;
use crate::identity::Identity;
use crate::peers;
use crate::process::{Running, children_cpu};

/// Bound for a server's start.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Bound for a warm-up, and for all that is measured of one run.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);
/// What ratios relate to: quinn on the TLS library that the others have, and on its own default.
const BASES: [&str; 2] = ["quinn", "quinn-ring"];

/// Of each comparison of peers.
#[derive(Debug, Clone, Args)]
pub(super) struct Options {
    /// Rounds over all peers; each begins with another peer
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rounds: u32,
    /// Only these peers (repeatable)
    #[arg(long = "peer", value_name = "NAME", value_parser = PEERS)]
    peers: Vec<String>,
    #[command(flatten)]
    means: Means,
    /// Also write the tables here, as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Peers that do not take part.
    #[arg(skip)]
    left_out: Vec<&'static str>,
    /// Third parties that are not built, and why.
    #[arg(skip)]
    missing: Vec<(&'static str, String)>,
    /// Third parties that have failed in a run, and how: they are not measured.
    #[arg(skip)]
    failed: Vec<(String, String)>,
}

/// What was measured in one run.
#[derive(Debug, Serialize)]
pub(super) struct Sample<F> {
    pub(super) peer: String,
    pub(super) round: u32,
    #[serde(flatten)]
    pub(super) figures: F,
    /// Share of all processor time that other processes had, in percent.
    pub(super) others: f64,
}

/// What a column of a table shows of a run.
pub(super) type Value<F> = fn(&F) -> f64;

impl Options {
    /// Builds the peers, if it is asked for. What the runs need; nothing, if there are to be none.
    pub(super) fn scene(&mut self) -> Result<Option<Scene>> {
        let missing = ready(&self.peers()?, self.means.as_built)?;
        self.missing.extend(missing);
        if self.means.prepare {
            return Ok(None);
        }
        Ok(Some(Scene::new()?))
    }

    /// This peer cannot do what is measured.
    pub(super) fn leave_out(&mut self, peer: &'static str) {
        self.left_out.push(peer);
    }

    /// The chosen peers, or all, of those that are there and can do what is measured.
    pub(super) fn peers(&self) -> Result<Vec<&'static str>> {
        let mut peers = chosen(&self.peers)?;
        peers.retain(|peer| !self.left_out.contains(peer));
        peers.retain(|peer| self.missing.iter().all(|(name, _)| name != peer));
        if peers.is_empty() { Err("none of the chosen peers can do this".into()) } else { Ok(peers) }
    }

    /// Runs of all peers, in another order each round; a disturbed run is made again. A third party that fails is measured no
    /// further, and what it has done before does not count.
    ///
    /// # Errors
    /// Our own run fails.
    pub(super) fn runs<F>(
        &mut self,
        mut run: impl FnMut(&str, u32) -> Result<Sample<F>>,
    ) -> Result<Vec<Sample<F>>> {
        let mut samples: Vec<Sample<F>> = Vec::new();
        let mut failed: Vec<(String, String)> = Vec::new();
        for round in 0..self.rounds {
            for peer in turned(&self.peers()?, round as usize) {
                if failed.iter().any(|(name, _)| name == peer) {
                    continue;
                }
                match quiet(|| run(peer, round), |sample| sample.others) {
                    Ok(sample) => samples.push(sample),
                    Err(error) if *peer == "posthaste" => return Err(error),
                    Err(error) => {
                        eprintln!("round {round} {peer}: {error}");
                        failed.push(((*peer).to_owned(), format!("round {round}: {error}")));
                    }
                }
            }
        }
        samples.retain(|sample| failed.iter().all(|(name, _)| *name != sample.peer));
        self.failed.extend(failed);
        Ok(samples)
    }

    /// Prints the tables and writes the files. False if a run is void.
    pub(super) fn report<F: Serialize>(&self, samples: &[Sample<F>], tables: &[Table]) -> Result<bool> {
        for table in tables {
            print!("{}", table.plain());
        }
        let note = self.note();
        println!("\n{note}");
        if let Some(path) = &self.means.json {
            std::fs::write(path, serde_json::to_string_pretty(samples)?)?;
        }
        if let Some(path) = &self.markdown {
            let tables: String = tables.iter().map(Table::markdown).collect();
            std::fs::write(path, format!("{tables}{note}\n"))?;
        }
        Ok(samples.iter().all(|sample| sample.others <= MAX_OTHERS))
    }

    /// What is behind the tables.
    fn note(&self) -> String {
        let mut note = format!(
            "Medians with the least and greatest of {} rounds; ratios of medians. A star: other processes had more than \
             {MAX_OTHERS} % of the processor time in a run.",
            self.rounds
        );
        for (peer, reason) in &self.missing {
            let _ = write!(note, " {peer} is not measured: {reason}.");
        }
        for (peer, error) in &self.failed {
            let _ = write!(note, " {peer} is not measured, because it failed: {error}.");
        }
        note
    }

    /// A table with a row for each peer that was measured. Each column has its title, what it shows, and its decimals;
    /// `ratios` names the ones that have their ratios to quinn behind them.
    pub(super) fn table<F>(
        &self,
        heading: String,
        samples: &[&Sample<F>],
        columns: &[(&str, Value<F>, usize)],
        ratios: &[&str],
    ) -> Result<Table> {
        let values = |peer: &str, value: Value<F>| -> Vec<f64> {
            samples.iter().filter(|sample| sample.peer == peer).map(|sample| value(&sample.figures)).collect()
        };
        let mut titles = vec![String::new()];
        for (title, _, _) in columns {
            titles.push((*title).to_owned());
            if ratios.contains(title) {
                titles.extend(BASES.map(|base| format!("x {base}")));
            }
        }
        let mut rows = Vec::new();
        for peer in self.peers()? {
            if samples.iter().all(|sample| sample.peer != peer) {
                continue;
            }
            let is_void = samples.iter().any(|sample| sample.peer == peer && sample.others > MAX_OTHERS);
            let mut row = vec![format!("{peer}{}", if is_void { "*" } else { "" })];
            for &(title, value, decimals) in columns {
                let own = values(peer, value);
                row.push(super::table::spread(&own, decimals));
                if ratios.contains(&title) {
                    row.extend(BASES.map(|base| ratio(&own, &values(base, value))));
                }
            }
            rows.push(row);
        }
        Ok(Table { heading, titles, rows })
    }
}

/// Builds the peers unless they are as built before. Returns those of `peers` that are not there, each with the reason.
pub(super) fn ready(peers: &[&'static str], as_built: bool) -> Result<Vec<(&'static str, String)>> {
    let mut missing = if as_built {
        // Ours is needed, and its first run says that it is missing.
        let third_parties =
            peers.iter().filter(|peer| **peer != "posthaste" && !peers::bench_binary(peer).exists());
        third_parties.map(|&peer| (peer, "it is not built, see --prepare".to_owned())).collect()
    } else {
        eprintln!("building the peers");
        peers::build_for_benches()?
    };
    missing.retain(|(peer, _)| peers.contains(peer));
    for (peer, reason) in &missing {
        eprintln!("{peer} is not measured: {reason}");
    }
    Ok(missing)
}

/// What all runs need.
#[derive(Debug)]
pub(super) struct Scene {
    folder: tempfile::TempDir,
    identity: Identity,
}

impl Scene {
    pub(super) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let identity = Identity::create(folder.path())?;
        Ok(Self { folder, identity })
    }

    /// What the client has complained about.
    pub(super) fn complaint(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.folder.path().join("client.stderr"))?.trim().to_owned())
    }

    /// A peer's server in `mode`, on the first core, and its address.
    pub(super) fn server(&self, peer: &str, mode: &str) -> Result<(Running, String)> {
        self.server_with(peer, mode, &[])
    }

    /// The same with further options.
    pub(super) fn server_with(
        &self,
        peer: &str,
        mode: &str,
        options: &[String],
    ) -> Result<(Running, String)> {
        let mut command = on_core(0, &peers::bench_binary(peer));
        command.args([mode, "--listen", "127.0.0.1:0"]).args(options);
        command.arg("--cert").arg(&self.identity.cert).arg("--key").arg(&self.identity.key);
        let mut server = Running::spawn(&mut command, "server", self.folder.path())?;
        let address = server.wait_for(START_TIMEOUT, ready_address)?;
        Ok((server, address))
    }

    /// A peer's client in `mode`, on the second core.
    pub(super) fn client(&self, peer: &str, mode: &str, address: &str, options: &[&str]) -> Result<Running> {
        let command: &mut Command = &mut on_core(1, &peers::bench_binary(peer));
        command.args([mode, "--connect", address]).arg("--ca").arg(&self.identity.ca).args(options);
        Running::spawn(command, "client", self.folder.path())
    }

    /// Waits for the client's end and reads the line of JSON that is its last.
    pub(super) fn finished<T: DeserializeOwned>(&self, client: &mut Running, within: Duration) -> Result<T> {
        let status = client.wait(within)?;
        if !status.success() {
            return Err(format!("the client ended with {status}: {}", self.complaint()?).into());
        }
        Ok(serde_json::from_str(client.output()?.lines().last().unwrap_or_default())?)
    }

    /// A run between two lines: the client has warmed up and printed `READY`, and what is measured begins with the word of
    /// the harness, so that the start of both ends is not in it.
    pub(super) fn between_lines(
        &self,
        peer: &str,
        [server_mode, client_mode]: [&str; 2],
        server_options: &[String],
        client_options: &[&str],
        count: u64,
    ) -> Result<Between> {
        let (server, address) = self.server_with(peer, server_mode, server_options)?;
        let ended_before = children_cpu()?;
        let mut client = self.client(peer, client_mode, &address, client_options)?;
        client
            .wait_for(START_TIMEOUT + RUN_TIMEOUT, |line| (line == "READY").then_some(()))
            .map_err(|error| format!("{error}: {}", self.complaint().unwrap_or_default()))?;
        // What the client has had until now is in its sum at its end.
        let (server_before, client_before) = (server.cpu_time()?, client.cpu_time()?);
        let watch = Watch::start()?;
        client.write_line("go")?;
        let report: Lines = self.finished(&mut client, RUN_TIMEOUT)?;
        if report.requests != count {
            return Err(format!("{} of {count} were made", report.requests).into());
        }
        let server_time = server.cpu_time()?.saturating_sub(server_before);
        let client_time = children_cpu()?.saturating_sub(ended_before + client_before);
        let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
        Ok(Between {
            server_cpu_micros: each(server_time),
            client_cpu_micros: each(client_time),
            each_second: count as f64 / report.seconds,
            others: watch.others(server_time + client_time)?,
        })
    }
}

/// The client's line of such a run.
#[derive(Debug, Deserialize)]
struct Lines {
    requests: u64,
    seconds: f64,
}

/// What such a run has cost, for each of what was counted.
#[derive(Debug)]
pub(super) struct Between {
    /// User and system time, in microseconds.
    pub(super) server_cpu_micros: f64,
    pub(super) client_cpu_micros: f64,
    /// By the clock.
    pub(super) each_second: f64,
    /// Share of all processor time that other processes had, in percent.
    pub(super) others: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        let means = Means { prepare: false, as_built: true, json: None };
        Options {
            rounds: 2,
            peers: Vec::new(),
            means,
            markdown: None,
            left_out: Vec::new(),
            missing: Vec::new(),
            failed: Vec::new(),
        }
    }

    fn run(failing: &str, peer: &str, round: u32) -> Result<Sample<()>> {
        if peer == failing && round == 1 {
            return Err("it broke".into());
        }
        Ok(Sample { peer: peer.to_owned(), round, figures: (), others: 0.0 })
    }

    #[test]
    fn a_third_party_that_fails_is_left_out_and_told() {
        let mut options = options();
        let samples = options.runs(|peer, round| run("noq", peer, round)).unwrap();
        assert_eq!(samples.len(), 2 * (PEERS.len() - 1));
        assert!(samples.iter().all(|sample| sample.peer != "noq"));
        assert_eq!(options.failed, [("noq".to_owned(), "round 1: it broke".to_owned())]);
        assert!(options.note().ends_with(" noq is not measured, because it failed: round 1: it broke."));
        let all: Vec<_> = samples.iter().collect();
        let table = options.table(String::new(), &all, &[("one", |()| 1.0, 0)], &[]).unwrap();
        let rows: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(rows, ["quinn", "quinn-ring", "posthaste", "quiche", "s2n", "quic-go"]);
    }

    #[test]
    fn a_third_party_that_is_not_built_is_not_run_and_told() {
        let mut options = options();
        options.missing.push(("quic-go", "it does not build: no tool".to_owned()));
        let samples = options.runs(|peer, round| run("quic-go", peer, round)).unwrap();
        assert_eq!(samples.len(), 2 * (PEERS.len() - 1));
        assert!(options.failed.is_empty(), "it was not even tried");
        assert!(options.note().ends_with(" quic-go is not measured: it does not build: no tool."));
        options.peers.push("quic-go".to_owned());
        assert!(options.peers().is_err(), "nothing is left of what was chosen");
    }

    #[test]
    fn our_own_failure_ends_it() {
        assert!(options().runs(|peer, round| run("posthaste", peer, round)).is_err());
    }
}
