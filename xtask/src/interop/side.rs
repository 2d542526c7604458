//! Either end of a cell: our program or a third party, each with its command line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::application::{self, Application};
use super::case::{Case, MOVE_AFTER, MOVE_TO, Proof};
use crate::Result;
use crate::identity::Identity;
use crate::peers::Peer;

/// Who plays.
#[derive(Debug)]
pub(crate) enum Side {
    /// Our binary.
    Posthaste {
        program: PathBuf,
        /// What decides about speed, as `--profile` takes it; the default without.
        profile: Option<String>,
        /// As a server it is `edge` in front of this, or `serve`.
        application: Option<Application>,
    },
    /// A third party.
    Peer(&'static Peer),
}

/// The part of a client's line that the harness checks; content is checked by the files themselves.
#[derive(Debug, Deserialize)]
struct Line {
    protocol: String,
    connection: String,
}

/// The part of our client's report that the harness checks.
#[derive(Debug, Deserialize)]
struct Report {
    connections: Vec<serde::de::IgnoredAny>,
}

impl Side {
    /// Our binary with the default profile.
    pub(crate) fn posthaste(program: PathBuf) -> Self {
        Self::Posthaste { program, profile: None, application: None }
    }

    /// Our binary as `edge`, in front of an application.
    pub(crate) fn edge(program: PathBuf, application: Application) -> Self {
        Self::Posthaste { program, profile: None, application: Some(application) }
    }

    /// For tables.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Posthaste { application: Some(_), .. } => "posthaste edge",
            Self::Posthaste { .. } => "posthaste",
            Self::Peer(peer) => peer.name,
        }
    }

    /// True for our program.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Posthaste { .. })
    }

    /// The command that serves `root` on `listen`. What our program keeps comes into `folder`, its traces into
    /// `qlog` there.
    pub(crate) fn server(
        &self,
        case: &Case,
        root: &Path,
        listen: SocketAddr,
        identity: &Identity,
        folder: &Path,
    ) -> Command {
        let mut command = match self {
            Self::Posthaste { program, application: Some(application), .. } => {
                let mut command = application.front(program);
                command.arg("--state").arg(folder.join("state"));
                command
            }
            Self::Posthaste { program, profile, .. } => {
                let mut command = Command::new(program);
                command.arg("serve").arg(root).arg("--state").arg(folder.join("state"));
                command.args(profile.iter().flat_map(|profile| ["--profile", profile]));
                if case.proof == Proof::Retry {
                    command.args(["--retry", "always"]);
                }
                if case.qlog {
                    command.arg("--qlog").arg(folder.join("qlog"));
                }
                match case.proof {
                    Proof::ChaCha20 => drop(command.args(CHACHA20)),
                    // Of some 7,000.
                    Proof::KeyUpdateByUs => drop(command.args(["--key-limit", "3000"])),
                    _ => {}
                }
                command
            }
            Self::Peer(peer) => {
                let mut command = peer.command();
                command.arg("server").arg("--root").arg(root);
                match case.proof {
                    Proof::Retry => drop(command.arg("--retry")),
                    Proof::KeyUpdate => drop(command.arg("--update-keys")),
                    _ => {}
                }
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
            Self::Posthaste { application: Some(_), .. } => application::port(line).is_some(),
            Self::Posthaste { .. } => line.contains("https://"),
            Self::Peer(_) => line.starts_with("READY "),
        }
    }

    /// The command that fetches `urls` into `output`.
    /// Our program's traces come into `qlog`.
    pub(crate) fn client(
        &self,
        case: &Case,
        urls: &[String],
        output: &Path,
        identity: &Identity,
        qlog: &Path,
    ) -> Command {
        let mut command = match self {
            Self::Posthaste { program, profile, .. } => {
                let mut command = Command::new(program);
                command.arg("get").arg("-O").arg(output).arg("--json");
                command.args(profile.iter().flat_map(|profile| ["--profile", profile]));
                command.arg("--repeat").arg(case.proof.connections().to_string());
                if case.qlog {
                    command.arg("--qlog").arg(qlog);
                }
                match case.proof {
                    Proof::Version2 => drop(command.args(["--quic-version", "2"])),
                    Proof::Migration => {
                        command.args(["--move-after", MOVE_AFTER, "--move-to", MOVE_TO]);
                    }
                    Proof::ChaCha20 => drop(command.args(CHACHA20)),
                    // A client of a download sends little but acknowledgements: some 3,500.
                    Proof::KeyUpdateByUs => drop(command.args(["--key-limit", "1300"])),
                    _ => {}
                }
                command
            }
            Self::Peer(peer) => {
                let mut command = peer.command();
                command.arg("client").arg("--output-dir").arg(output);
                command.arg("--parallel").arg(case.parallel.to_string());
                if peer.name == "chromium" {
                    command.arg("--spki").arg(&identity.spki);
                }
                command.args(their_switches(case.proof));
                command
            }
        };
        command.arg("--ca").arg(&identity.ca).args(urls);
        command
    }

    /// Checks what a third-party client says about its transfers: HTTP/3, all over one connection, or
    /// over as many as the case wants.
    pub(crate) fn check_report(&self, case: &Case, output: &str, urls: usize) -> Result<()> {
        let wanted = case.proof.connections();
        if self.is_ours() {
            // Ours speaks HTTP/3 only; its report has a form of its own, checked by its own tests.
            let report: Report = serde_json::from_str(output)?;
            let count = report.connections.len();
            return if count == wanted { Ok(()) } else { Err(format!("{count} connections").into()) };
        }
        let urls = urls * wanted;
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
        let count = connections.len();
        if count == wanted { Ok(()) } else { Err(format!("{count} connections").into()) }
    }
}

/// The only cipher that our program agrees to, at either end.
const CHACHA20: [&str; 2] = ["--cipher", "chacha20"];

/// What a third-party client is told.
fn their_switches(proof: Proof) -> &'static [&'static str] {
    match proof {
        Proof::Resumption => &["--again", "resumed"],
        Proof::ZeroRtt => &["--again", "early"],
        Proof::KeyUpdate => &["--update-keys"],
        Proof::Version2 => &["--quic-version", "2"],
        Proof::Migration => &["--move-after", MOVE_AFTER, "--move-to", MOVE_TO],
        _ => &[],
    }
}
