//! What `posthaste edge` forwards to: the files over HTTP/1.1 or 2 and TLS, served by another edge.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::case::{Case, Proof};
use super::cell::START_TIMEOUT;
use crate::Result;
use crate::identity::Identity;
use crate::process::Running;

/// Runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Application {
    _running: Running,
    url: String,
    ca: PathBuf,
}

impl Application {
    /// Serves the files below `root`; its output comes into `logs`.
    pub(crate) fn start(program: &Path, root: &Path, identity: &Identity, logs: &Path) -> Result<Self> {
        let mut command = edge(program);
        command.arg("--files").arg(root).args(["--listen", "127.0.0.1:0"]);
        command.arg("--cert").arg(&identity.cert).arg("--key").arg(&identity.key);
        std::fs::create_dir_all(logs)?;
        let mut running = Running::spawn(&mut command, "application", logs)?;
        let port = running.wait_for(START_TIMEOUT, port)?;
        Ok(Self { _running: running, url: format!("https://127.0.0.1:{port}"), ca: identity.ca.clone() })
    }

    /// The edge in front of it; where it listens, and its certificate, are to be added.
    pub(crate) fn front(&self, program: &Path) -> Command {
        let mut command = edge(program);
        command.arg("--to").arg(&self.url).arg("--ca").arg(&self.ca);
        command
    }
}

fn edge(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["edge", "--json", "--no-access-log", "--domain", "localhost"]);
    command
}

/// The port in what the edge says when it listens.
pub(crate) fn port(line: &str) -> Option<u16> {
    let start: serde_json::Value = serde_json::from_str(line).ok()?;
    start["address"].as_str()?.rsplit(':').next()?.parse().ok()
}

/// Why a case cannot be shown of the edge; `None` if it can.
pub(crate) fn missing(case: &Case) -> Option<&'static str> {
    match case.proof {
        Proof::Retry | Proof::ChaCha20 => Some("edge has no switch for it"),
        Proof::Datagrams => Some("it is not HTTP/3"),
        _ if case.qlog => Some("edge writes no traces, which the proof needs"),
        _ if case.ipv6 => Some("the site is localhost, not an address"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::CASES;
    use super::*;

    #[test]
    fn a_port_is_read_from_the_line_of_the_start() {
        assert_eq!(port(r#"{"address":"127.0.0.1:4433"}"#), Some(4433));
        assert_eq!(port(r#"{"address":"[::1]:8"}"#), Some(8));
        assert_eq!(port("HTTP/3 on 127.0.0.1:4433"), None);
    }

    #[test]
    fn most_cases_of_ci_without_a_trace_can_be_shown_of_the_edge() {
        let shown: Vec<&str> =
            CASES.iter().filter(|case| case.quick && missing(case).is_none()).map(|case| case.name).collect();
        let wanted = [
            "handshake",
            "transfer",
            "parallel",
            "lossy",
            "longrtt",
            "handshakeloss",
            "transferloss",
            "corruption",
            "amplification",
            "resumption",
            "v2",
        ];
        assert_eq!(shown, wanted);
    }
}
