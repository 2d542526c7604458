//! `posthaste edge check`: faults of a configuration, and of what is around it.

use std::fmt::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::process::ExitCode;
use std::time::SystemTime;

use posthaste_edge::{Config, Edge};
use serde::Serialize;

use super::{named_profile, refused, trusted};
use crate::args::EdgeCheck;
use crate::exit::{FAILED, Failure};
use crate::printer;

mod upstreams;

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
    named_profile(&config)?;
    let edge = Edge::new(&config, &trusted).map_err(|error| refused(&error))?;
    let states = edge.resolver().states();
    let mut warnings: Vec<String> = states.iter().filter_map(|it| it.warning(SystemTime::now())).collect();
    warnings.extend(unbound(&config));
    for url in config.upstreams() {
        warnings.extend(upstreams::unreachable(url).await);
    }
    warnings.extend(upstreams::unproved(&config).await);
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

/// Ports that cannot be had.
fn unbound(config: &Config) -> Vec<String> {
    let listen = config.edge.listen;
    let over_udp = [(listen, "udp", UdpSocket::bind(listen).map(drop))];
    // A neighbour has the TCP port.
    let over_tcp = (!config.has_neighbour()).then_some(listen).into_iter().chain(config.edge.redirect);
    let over_tcp = over_tcp.map(|address| (address, "tcp", TcpListener::bind(address).map(drop)));
    let all = over_udp.into_iter().chain(over_tcp);
    all.filter_map(|(address, transport, bound)| {
        bound.err().map(|error| format!("cannot listen on {address}/{transport}: {error}"))
    })
    .collect()
}
