//! A server and a client of one peer, over loopback, and what the comparisons of peers have in common.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::files::on_core;
use super::quiet::{MAX_OTHERS, Means, quiet, turned};
use super::table::{Table, ratio};
use super::{PEERS, chosen, ready_address};
use crate::Result;
use crate::identity::Identity;
use crate::peers;
use crate::process::Running;

/// Bound for a server's start.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(10);
/// What ratios relate to: quinn on the TLS library that the others have, and on its own default.
const BASES: [&str; 2] = ["quinn", "quinn-ring"];

/// Of each comparison of peers.
#[derive(Debug, Args)]
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
    pub(super) fn scene(&self) -> Result<Option<Scene>> {
        if !self.means.as_built {
            eprintln!("building the peers");
            peers::build_rust()?;
        }
        if self.means.prepare {
            return Ok(None);
        }
        Ok(Some(Scene::new()?))
    }

    /// The chosen peers, or all.
    pub(super) fn peers(&self) -> Result<Vec<&str>> {
        chosen(&self.peers)
    }

    /// Runs of all peers, in another order each round; a disturbed run is made again.
    pub(super) fn runs<F>(
        &self,
        mut run: impl FnMut(&str, u32) -> Result<Sample<F>>,
    ) -> Result<Vec<Sample<F>>> {
        let mut samples = Vec::new();
        for round in 0..self.rounds {
            for peer in turned(&self.peers()?, round as usize) {
                samples.push(quiet(|| run(peer, round), |sample| sample.others)?);
            }
        }
        Ok(samples)
    }

    /// Prints the tables and writes the files. False if a run is void.
    pub(super) fn report<F: Serialize>(&self, samples: &[Sample<F>], tables: &[Table]) -> Result<bool> {
        for table in tables {
            print!("{}", table.plain());
        }
        let note = format!(
            "Medians with the least and greatest of {} rounds; ratios of medians. A star: other processes had more than \
             {MAX_OTHERS} % of the processor time in a run.",
            self.rounds
        );
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

    /// A table with a row for each peer. Each column has its title, what it shows, and its decimals; `ratios` names the
    /// ones that have their ratios to quinn behind them.
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
        let mut command = on_core(0, &peers::rust_binary(peer));
        command.args([mode, "--listen", "127.0.0.1:0"]);
        command.arg("--cert").arg(&self.identity.cert).arg("--key").arg(&self.identity.key);
        let mut server = Running::spawn(&mut command, "server", self.folder.path())?;
        let address = server.wait_for(START_TIMEOUT, ready_address)?;
        Ok((server, address))
    }

    /// A peer's client in `mode`, on the second core.
    pub(super) fn client(&self, peer: &str, mode: &str, address: &str, options: &[&str]) -> Result<Running> {
        let command: &mut Command = &mut on_core(1, &peers::rust_binary(peer));
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
}
