//! The case `datagrams`: messages in DATAGRAM frames (RFC 9221), sent back by the server. No HTTP is spoken, so our side is
//! `peer-posthaste` and not the `posthaste` command.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::case::Case;
use super::cell::{START_TIMEOUT, free_port};
use super::proof;
use super::side::Side;
use crate::Result;
use crate::identity::Identity;
use crate::peers::rust_binary;
use crate::process::Running;

/// Messages that a client sends.
const MESSAGES: u64 = 210;
/// Their bytes: thirty of each length of `interop/peers/src/datagrams.rs`.
const BYTES: u64 = 30 * (8 + 9 + 63 + 64 + 300 + 1_000 + 1_100);

/// The client's line.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Report {
    messages: u64,
    bytes: u64,
}

/// Runs the cell, with what both sides say in `logs`.
pub(super) fn run(
    identity: &Identity,
    logs: &Path,
    client: &Side,
    server: &Side,
    case: &Case,
) -> Result<String> {
    let qlog = logs.join("qlog");
    std::fs::create_dir_all(&qlog)?;
    let listen = free_port(Ipv4Addr::LOCALHOST.into())?;
    let mut command = part(server, "datagram-server", &qlog);
    command.arg("--listen").arg(listen.to_string());
    command.arg("--cert").arg(&identity.cert).arg("--key").arg(&identity.key);
    let mut serving = Running::spawn(&mut command, "server", logs)?;
    serving.wait_for(START_TIMEOUT, |line| line.starts_with("READY ").then_some(()))?;
    let mut fetching = Running::spawn(&mut of_client(client, listen, identity, &qlog), "client", logs)?;
    let status = fetching.wait(case.timeout)?;
    serving.end();
    if !status.success() {
        return Err(format!("the client ended with {status}").into());
    }
    let report: Report = serde_json::from_str(&fetching.output()?)?;
    if report != (Report { messages: MESSAGES, bytes: BYTES }) {
        return Err(format!("{report:?}, not {MESSAGES} messages and {BYTES} bytes").into());
    }
    let whole = format!("{MESSAGES} messages, {BYTES} bytes there and back");
    if !client.is_ours() && !server.is_ours() {
        return Ok(whole);
    }
    let traces = proof::traces(&qlog)?;
    for event in ["quic:packet_sent", "quic:packet_received"] {
        if !proof::has(&traces, &[event, r#""frame_type":"datagram""#]) {
            return Err(format!("no DATAGRAM frame in a {event} of our trace").into());
        }
    }
    Ok(format!("{whole}, DATAGRAM frames in our trace"))
}

fn of_client(client: &Side, server: SocketAddr, identity: &Identity, qlog: &Path) -> Command {
    let mut command = part(client, "datagram-client", qlog);
    command.arg("--connect").arg(server.to_string()).arg("--ca").arg(&identity.ca);
    command.arg("--messages").arg(MESSAGES.to_string());
    command
}

/// The program of a side in this mode.
fn part(side: &Side, mode: &str, qlog: &Path) -> Command {
    match side {
        Side::Posthaste { profile, .. } => {
            let mut command = Command::new(rust_binary("posthaste"));
            command.arg(mode).arg("--qlog").arg(qlog);
            command.args(profile.iter().flat_map(|profile| ["--profile", profile]));
            command
        }
        Side::Peer(peer) => {
            let mut command = peer.command();
            command.arg(mode);
            command
        }
    }
}
