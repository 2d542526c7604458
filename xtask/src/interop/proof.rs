//! Proves that what a case names has happened; a transfer that merely worked proves nothing of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use posthaste_emulator::RelayStats;
use posthaste_wire::packet::{PacketType, version};
use rustls::CipherSuite;
use serde::Deserialize;

use super::case::Proof;
use super::hello::Hello;
use super::recorder::{Flow, Seen};
use crate::Result;

/// What a cell leaves behind.
pub(crate) struct Evidence<'a> {
    pub(crate) relay: Option<RelayStats>,
    pub(crate) recorder: Option<Seen>,
    /// From the client's start to its end.
    pub(crate) elapsed: Duration,
    /// The folder with our side's traces.
    pub(crate) qlog: &'a Path,
    /// What our client printed, if it was ours.
    pub(crate) our_report: Option<String>,
    /// The server was ours.
    pub(crate) our_server: bool,
}

/// The part of our client's report that proves something.
#[derive(Debug, Deserialize)]
struct Report {
    connections: Vec<Connection>,
}

#[derive(Debug, Deserialize)]
struct Connection {
    resumed: bool,
    early_data: Option<String>,
}

/// Says in a few words what was seen, or fails with what was not.
pub(crate) fn check(proof: Proof, evidence: &Evidence<'_>) -> Result<String> {
    match proof {
        // The messages of a case without files have been checked by `datagrams.rs`.
        Proof::Files | Proof::Datagrams => Ok(String::new()),
        Proof::LossAndReordering => loss_and_reordering(evidence),
        Proof::RoundTrips(rtt) => round_trips(evidence, rtt),
        Proof::HandshakeLoss => harmed(evidence, "handshake datagrams lost", |flow| flow.handshake_lost),
        Proof::TransferLoss => harmed(evidence, "datagrams lost", |flow| flow.transfer_lost),
        Proof::Corruption => {
            let handshake =
                harmed(evidence, "handshake datagrams corrupted", |flow| flow.handshake_corrupted)?;
            let transfer = harmed(evidence, "later ones", |flow| flow.transfer_corrupted)?;
            Ok(format!("{handshake}{transfer}"))
        }
        Proof::Silence => harmed(evidence, "datagrams swallowed in silence", |flow| flow.silenced),
        Proof::Rebinding => rebinding(evidence),
        Proof::Retry => retry(recorder(evidence)?),
        Proof::Amplification => amplification(recorder(evidence)?, evidence.our_server),
        Proof::Ecn => trace_with(evidence, r#""new":"capable""#, "ECN validated"),
        Proof::Resumption => resumption(evidence),
        Proof::ZeroRtt => zero_rtt(evidence),
        Proof::KeyUpdate => trace_with(evidence, r#""trigger":"remote_update""#, "keys updated by the peer"),
        Proof::KeyUpdateByUs => our_key_updates(evidence),
        Proof::Version2 => version_2(recorder(evidence)?),
        Proof::ChaCha20 => chacha20(recorder(evidence)?),
        Proof::Migration => migration(evidence),
    }
}

fn recorder<'a>(evidence: &'a Evidence<'_>) -> Result<&'a Seen> {
    evidence.recorder.as_ref().ok_or_else(|| "the case has no recorder".into())
}

/// A relay that harmed nothing has proved nothing.
fn loss_and_reordering(evidence: &Evidence<'_>) -> Result<String> {
    let stats = evidence.relay.as_ref().ok_or("the case has no relay")?;
    if stats.down.lost == 0 || stats.down.reordered == 0 {
        return Err(format!("the relay lost or reordered nothing: {stats:?}").into());
    }
    Ok(format!(
        ", lost {} of {} packets down and {} of {} up",
        stats.down.lost, stats.down.offered, stats.up.lost, stats.up.offered
    ))
}

/// One for the handshake, one for the request: nobody has a ticket.
fn round_trips(evidence: &Evidence<'_>, rtt: Duration) -> Result<String> {
    if evidence.elapsed < rtt * 2 {
        return Err(format!("{:?} are less than two round trips", evidence.elapsed).into());
    }
    Ok(format!(", {:.1} round trips", evidence.elapsed.as_secs_f64() / rtt.as_secs_f64()))
}

fn harmed(evidence: &Evidence<'_>, what: &str, count: impl Fn(&Flow) -> u64) -> Result<String> {
    let seen = recorder(evidence)?;
    let (down, up) = (count(&seen.down), count(&seen.up));
    if down + up == 0 {
        return Err(format!("no {what}: {seen:?}").into());
    }
    Ok(format!(", {what}: {down} down, {up} up"))
}

fn rebinding(evidence: &Evidence<'_>) -> Result<String> {
    let seen = recorder(evidence)?;
    if seen.rebindings != 1 {
        return Err(format!("the client's side did not change: {seen:?}").into());
    }
    // The change comes early: most of the transfer has to follow it, and the server must have moved, too.
    if seen.down.after_rebinding * 2 < seen.down.datagrams {
        return Err(format!("the transfer did not go on over the new side: {seen:?}").into());
    }
    let after =
        format!(", {} of {} datagrams down after the change", seen.down.after_rebinding, seen.down.datagrams);
    if !evidence.our_server {
        return Ok(after);
    }
    let traces = traces(evidence.qlog)?;
    if !is_answered(&traces) {
        return Err("our server did not validate the new path".into());
    }
    Ok(format!("{after}, validated"))
}

/// Our side has had an answer to a challenge of its own.
fn is_answered(traces: &str) -> bool {
    has(traces, &["quic:packet_sent", "path_challenge"])
        && has(traces, &["quic:packet_received", "path_response"])
}

/// One line with all of that.
pub(super) fn has(traces: &str, texts: &[&str]) -> bool {
    traces.lines().any(|line| texts.iter().all(|text| line.contains(text)))
}

fn retry(seen: &Seen) -> Result<String> {
    if seen.of_server(PacketType::Retry) == 0 || seen.tokens == 0 {
        return Err(format!("no Retry, or no token after it: {seen:?}").into());
    }
    Ok(", a Retry and its token".to_owned())
}

/// To keep to the limit is the server's part; a client's is to go on although the server waits (RFC 9000 section 8.1,
/// RFC 9002 section 6.2.2.1).
fn amplification(seen: &Seen, our_server: bool) -> Result<String> {
    if our_server && seen.amplification > 3.0 {
        return Err(format!("the server sent {:.2} times what it had received", seen.amplification).into());
    }
    if seen.up.silenced == 0 || seen.amplification < 1.5 {
        return Err(format!("the limit was not tried: {seen:?}").into());
    }
    let judgement = if seen.amplification > 3.0 { ", more than that server may send" } else { "" };
    Ok(format!(", at most {:.2} times what was received{judgement}", seen.amplification))
}

/// Both ends agree about it: the server says so in the clear, our client in its report.
fn resumption(evidence: &Evidence<'_>) -> Result<String> {
    let hellos = recorder(evidence)?.hellos.all();
    let is_resumed: Vec<bool> = hellos.iter().map(|hello| hello.is_resumed).collect();
    if is_resumed != [false, true] {
        return Err(format!("one server's hello new and one resumed were expected: {hellos:?}").into());
    }
    if evidence.our_report.is_some() {
        second_connection(evidence, |connection| connection.resumed, "resumed")?;
    }
    Ok(", resumed".to_owned())
}

fn zero_rtt(evidence: &Evidence<'_>) -> Result<String> {
    let packets = recorder(evidence)?.of_client(PacketType::ZeroRtt);
    if packets == 0 {
        return Err("the client sent no 0-RTT packets".into());
    }
    let resumed = resumption(evidence)?;
    let accepted = if evidence.our_server {
        // What is not accepted is not opened, and so not received.
        let received = ["quic:packet_received", r#""packet_type":"0RTT""#, r#""frame_type":"stream""#];
        if !has(&traces(evidence.qlog)?, &received) {
            return Err("our server received no stream's data in 0-RTT packets".into());
        }
        ", early data received"
    } else {
        let is_accepted = |connection: &Connection| connection.early_data.as_deref() == Some("accepted");
        second_connection(evidence, is_accepted, "early data accepted")?;
        ", early data accepted"
    };
    Ok(format!("{resumed}{accepted}, 0-RTT packets: {packets}"))
}

/// Who has updated its keys may not do so again before the peer has used the new ones (RFC 9001 section 6.1): from
/// the second on, each update shows that the peer has followed the one before.
fn our_key_updates(evidence: &Evidence<'_>) -> Result<String> {
    let traces = traces(evidence.qlog)?;
    let ours = traces.lines().filter(|line| line.contains(r#""trigger":"local_update""#));
    // A line for each direction's keys.
    let phases: BTreeSet<u64> = ours.filter_map(key_phase).collect();
    if phases.len() < 2 {
        return Err(format!("the peer did not follow our updates: phases {phases:?}").into());
    }
    Ok(format!(", {} updates of the keys", phases.len()))
}

fn key_phase(line: &str) -> Option<u64> {
    let (_, value) = line.split_once(r#""key_phase":"#)?;
    value.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

fn version_2(seen: &Seen) -> Result<String> {
    let both = [&seen.sent_by_client, &seen.sent_by_server];
    let is_complete = both.iter().all(|packets| packets.contains_key(&(version::V2, PacketType::Handshake)));
    let is_pure = both.iter().all(|packets| packets.keys().all(|(number, _)| *number == version::V2));
    if is_complete && is_pure {
        Ok(", all long headers of version 2".to_owned())
    } else {
        Err(format!("not of version 2 alone: {both:?}").into())
    }
}

fn chacha20(seen: &Seen) -> Result<String> {
    let hellos = seen.hellos.all();
    let is_wanted = |hello: &Hello| hello.cipher == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
    if hellos.is_empty() || !hellos.iter().all(is_wanted) {
        return Err(format!("the server chose another cipher: {hellos:?}").into());
    }
    Ok(", chosen in the server's hello".to_owned())
}

fn migration(evidence: &Evidence<'_>) -> Result<String> {
    let sockets = &recorder(evidence)?.moves.sockets;
    let [old, new] = sockets.as_slice() else {
        return Err(format!("the client used {} sockets, not two", sockets.len()).into());
    };
    // A client that kept an ID would tell who watches that the two addresses are one client's.
    if new.ids.is_empty() || !new.ids.is_disjoint(&old.ids) {
        return Err(format!("the client kept a connection ID: {:x?} and {:x?}", old.ids, new.ids).into());
    }
    if new.down < old.down {
        return Err(format!("{} datagrams to the new address, {} to the old", new.down, old.down).into());
    }
    let traces = traces(evidence.qlog)?;
    if !is_answered(&traces) {
        return Err("our side did not validate the new path".into());
    }
    let answers = has(&traces, &["quic:packet_received", "path_challenge"]);
    let by = if answers { "both sides" } else { "our side" };
    let place = if old.address.ip() == new.address.ip() { "port" } else { "address" };
    Ok(format!(", {} of {} datagrams to the new {place}, validated by {by}", new.down, old.down + new.down))
}

fn second_connection(
    evidence: &Evidence<'_>,
    is_proved: impl Fn(&Connection) -> bool,
    what: &str,
) -> Result<String> {
    let report = evidence.our_report.as_deref().ok_or("only our client's report says so")?;
    let report: Report = serde_json::from_str(report)?;
    match report.connections.get(1) {
        Some(connection) if is_proved(connection) => Ok(format!(", {what}")),
        _ => Err(format!("not {what}: {:?}", report.connections).into()),
    }
}

fn trace_with(evidence: &Evidence<'_>, text: &str, what: &str) -> Result<String> {
    if traces(evidence.qlog)?.contains(text) {
        Ok(format!(", {what}"))
    } else {
        Err(format!("not {what}: no {text} in our trace").into())
    }
}

/// All traces of our side.
pub(super) fn traces(folder: &Path) -> Result<String> {
    let mut all = String::new();
    for file in std::fs::read_dir(folder)? {
        all.push_str(&String::from_utf8_lossy(&std::fs::read(file?.path())?));
    }
    Ok(all)
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
