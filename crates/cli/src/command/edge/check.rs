//! `posthaste edge check`: faults of a configuration, and of what is around it.

use std::fmt::Write as _;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use http::Uri;
use posthaste_edge::{Config, Edge};
use serde::Serialize;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{refused, trusted};
use crate::args::EdgeCheck;
use crate::exit::{FAILED, Failure};
use crate::{printer, profile};

/// Time for an upstream to accept a connection.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was found.
#[derive(Serialize)]
struct Findings {
    file: String,
    sites: Vec<String>,
    upstreams: Vec<String>,
    certificates: Vec<String>,
    /// What is not as it should be around the file.
    warnings: Vec<String>,
}

pub(super) async fn run(args: &EdgeCheck) -> Result<ExitCode, Failure> {
    let config = Config::read(&args.file).map_err(|error| refused(&error))?;
    profile::complete(&config.edge.profile)?;
    let edge = Edge::new(&config, &trusted).map_err(|error| refused(&error))?;
    let states = edge.resolver().states();
    let mut warnings: Vec<String> = states.iter().filter_map(|it| it.warning(SystemTime::now())).collect();
    warnings.extend(unbound(&config));
    for url in config.upstreams() {
        warnings.extend(unreachable(url).await);
    }
    let findings = Findings {
        file: args.file.display().to_string(),
        sites: config.sites.keys().cloned().collect(),
        upstreams: config.upstreams().into_iter().map(str::to_owned).collect(),
        certificates: states.iter().map(|it| it.chain.display().to_string()).collect(),
        warnings,
    };
    let printed = if args.json { printer::json(&findings) } else { printer::line(text(&findings)) };
    printer::unless_reader_left(printed)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))?;
    Ok(if findings.warnings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn text(findings: &Findings) -> String {
    let Findings { file, sites, upstreams, certificates, warnings } = findings;
    let (sites, upstreams, certificates) = (sites.len(), upstreams.len(), certificates.len());
    let mut text = format!("{file}: sites {sites}, upstreams {upstreams}, certificates {certificates}\n");
    for warning in warnings {
        let _ = writeln!(text, "\x1b[33mwarning\x1b[0m: {warning}");
    }
    text.push_str(if warnings.is_empty() { "no faults" } else { "the file itself has no faults" });
    text
}

fn unbound(config: &Config) -> Option<String> {
    let address = config.edge.listen;
    UdpSocket::bind(address).err().map(|error| format!("cannot listen on {address}/udp: {error}"))
}

async fn unreachable(url: &str) -> Option<String> {
    #[cfg(unix)]
    if let Some(path) = url.strip_prefix("unix:") {
        let connected = UnixStream::connect(path).await;
        return connected.err().map(|error| format!("{url} cannot be reached: {error}"));
    }
    let uri: Uri = url.parse().ok()?;
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    match timeout(PATIENCE, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(format!("{url} cannot be reached: {error}")),
        Err(_) => Some(format!("{url} did not accept a connection within {} s", PATIENCE.as_secs())),
    }
}
