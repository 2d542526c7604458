//! Either end of a cell: our program or a third party, each with its command line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::case::Case;
use crate::Result;
use crate::identity::Identity;
use crate::peers::Peer;

/// Who plays.
#[derive(Debug)]
pub(crate) enum Side {
    /// Our binary.
    Posthaste(PathBuf),
    /// A third party.
    Peer(&'static Peer),
}

/// The part of a client's line that the harness checks; content is checked by the files themselves.
#[derive(Debug, Deserialize)]
struct Line {
    protocol: String,
    connection: String,
}

impl Side {
    /// For tables.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Posthaste(_) => "posthaste",
            Self::Peer(peer) => peer.name,
        }
    }

    /// The command that serves `root` on `listen`. `state` is a folder for what the program keeps.
    pub(crate) fn server(
        &self,
        root: &Path,
        listen: SocketAddr,
        identity: &Identity,
        state: &Path,
    ) -> Command {
        let mut command = match self {
            Self::Posthaste(program) => {
                let mut command = Command::new(program);
                command.arg("serve").arg(root).arg("--state").arg(state);
                command
            }
            Self::Peer(peer) => {
                let mut command = peer.command();
                command.arg("server").arg("--root").arg(root);
                command
            }
        };
        command.arg("--listen").arg(listen.to_string());
        command.arg("--cert").arg(&identity.cert).arg("--key").arg(&identity.key);
        command
    }

    /// True for the line of a server's output that says that it takes connections.
    pub(crate) fn is_ready_line(&self, line: &str) -> bool {
        match self {
            Self::Posthaste(_) => line.contains("https://"),
            Self::Peer(_) => line.starts_with("READY "),
        }
    }

    /// The command that fetches `urls` into `output`.
    pub(crate) fn client(&self, case: &Case, urls: &[String], output: &Path, identity: &Identity) -> Command {
        let mut command = match self {
            Self::Posthaste(program) => {
                let mut command = Command::new(program);
                command.arg("get").arg("-O").arg(output).arg("--json");
                command
            }
            Self::Peer(peer) => {
                let mut command = peer.command();
                command.arg("client").arg("--output-dir").arg(output);
                command.arg("--parallel").arg(case.parallel.to_string());
                if peer.name == "chromium" {
                    command.arg("--spki").arg(&identity.spki);
                }
                command
            }
        };
        command.arg("--ca").arg(&identity.ca).args(urls);
        command
    }

    /// Checks what a third-party client says about its transfers: HTTP/3, all over one connection.
    pub(crate) fn check_report(&self, output: &str, urls: usize) -> Result<()> {
        if matches!(self, Self::Posthaste(_)) {
            // Ours speaks HTTP/3 only; its report has a form of its own, checked by its own tests.
            return Ok(());
        }
        let lines =
            output.lines().map(serde_json::from_str::<Line>).collect::<std::result::Result<Vec<_>, _>>()?;
        if lines.len() != urls {
            return Err(format!("{} lines for {urls} URLs", lines.len()).into());
        }
        if let Some(line) = lines.iter().find(|line| line.protocol != "h3") {
            return Err(format!("the protocol was {:?}, not h3", line.protocol).into());
        }
        let mut connections: Vec<&str> = lines.iter().map(|line| line.connection.as_str()).collect();
        connections.sort_unstable();
        connections.dedup();
        if connections.len() == 1 { Ok(()) } else { Err(format!("{} connections", connections.len()).into()) }
    }
}
