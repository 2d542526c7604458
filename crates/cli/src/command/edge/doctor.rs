//! `posthaste edge doctor`: a site as its visitors meet it, over TCP and over QUIC.

use std::fmt::Write as _;
use std::net::{Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use http::Uri;
use posthaste_http::parse_url;
use serde::Serialize;
use tokio::time::timeout;

use crate::args::EdgeDoctor;
use crate::exit::{FAILED, Failure};
use crate::printer;

mod addresses;
mod alternative;
mod certificate;
mod finding;
mod over_quic;
mod over_tcp;
mod versions;

use alternative::Told;
use certificate::Observer;
use finding::{Finding, State};
use over_quic::Quic;

/// What is examined, and how long each step may take.
pub(super) struct Subject {
    /// Name or address, without brackets.
    host: String,
    port: u16,
    path: String,
    timeout: Duration,
}

/// All that `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    host: &'a str,
    port: u16,
    /// No check failed.
    ok: bool,
    checks: &'a [Finding],
}

pub(super) async fn run(args: &EdgeDoctor) -> Result<ExitCode, Failure> {
    let subject = Subject::new(args)?;
    let findings = examine(&subject, args).await?;
    let ok = !findings.iter().any(|it| it.state == State::Failed);
    let printed = if args.json {
        printer::json(&Report { host: &subject.host, port: subject.port, ok, checks: &findings })
    } else {
        printer::line(text(&findings).trim_end())
    };
    printer::unless_reader_left(printed)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))?;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// All checks, in the order in which a visitor meets what they are about.
async fn examine(subject: &Subject, args: &EdgeDoctor) -> Result<Vec<Finding>, Failure> {
    let (resolved, dns) = resolve(subject).await;
    let mut findings = vec![dns, https_record(subject)];
    if resolved.is_empty() {
        return Ok(findings);
    }
    let (over_tcp, over_quic) = (Observer::new(args.ca.as_deref())?, Observer::new(args.ca.as_deref())?);
    let quic = Quic::new(subject, &over_quic)?;
    let now = SystemTime::now();

    let reached = addresses::over_tcp(&resolved, subject.timeout).await;
    findings.push(over_tcp::reachable(subject, &reached));
    let mut answer = None;
    let mut told = Told::Nothing;
    if reached.iter().any(|it| it.outcome.is_ok()) {
        let visit = over_tcp::visit(subject, &over_tcp).await;
        findings.push(over_tcp.finding("certificate", subject, now));
        findings.extend(over_tcp::findings(&visit));
        told = visit.as_ref().map_or(Told::Nothing, |visit| alternative::told(&visit.fields));
        answer = visit.ok();
    }

    let handshakes = quic.handshakes(&resolved).await;
    let is_on_port = handshakes.iter().any(|it| it.outcome.is_ok());
    if let Some(answer) = &answer {
        findings.push(alternative::finding(subject, &told, answer, &resolved, is_on_port).await);
    }
    findings.push(over_quic::reachable(subject, &handshakes, &resolved).await);
    findings.push(versions::finding(subject, &handshakes).await);
    if is_on_port {
        findings.push(certificate::same(
            &over_tcp,
            over_quic.finding("quic-certificate", subject, now),
            &over_quic,
        ));
        findings.extend(quic.visits(subject, answer.as_ref()).await);
    }
    findings.push(addresses::compared(&reached, &handshakes));
    Ok(findings)
}

impl Subject {
    fn new(args: &EdgeDoctor) -> Result<Self, Failure> {
        let host = args.host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let path = if args.path.starts_with('/') { args.path.clone() } else { format!("/{}", args.path) };
        let subject = Self { host, port: args.port, path, timeout: args.timeout };
        let wrong = || {
            Failure::usage(format!("`{}` is not the name or address of a host", args.host))
                .hint("for example `posthaste edge doctor example.org --port 443 --path /index.html`")
        };
        // `example.org:443` is no name, and a path is not silently left out.
        let is_host = !subject.host.contains(':') || subject.host.parse::<Ipv6Addr>().is_ok();
        if !is_host || args.host.contains('/') || subject.uri().is_none() {
            return Err(wrong());
        }
        Ok(subject)
    }

    /// What is asked for; `None` if the host or the path is not valid.
    fn uri(&self) -> Option<Uri> {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let port = if self.port == 443 { String::new() } else { format!(":{}", self.port) };
        parse_url(&format!("https://{host}{port}{}", self.path)).ok()
    }
}

/// The addresses of the host.
async fn resolve(subject: &Subject) -> (Vec<SocketAddr>, Finding) {
    const NEXT: &str = "publish A and AAAA records with the addresses of this server";
    let lookup =
        timeout(subject.timeout, tokio::net::lookup_host((subject.host.as_str(), subject.port))).await;
    let found = match lookup {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            return (
                Vec::new(),
                Finding::failed("dns", format!("{} has no address: {error}", subject.host), NEXT),
            );
        }
        Err(_) => {
            let detail = format!("the resolver did not answer within {} s", subject.timeout.as_secs_f64());
            return (Vec::new(), Finding::failed("dns", detail, "check this machine's resolver"));
        }
    };
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) && addresses.len() < addresses::MOST {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return (addresses, Finding::failed("dns", format!("{} has no address", subject.host), NEXT));
    }
    let list: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
    (addresses, Finding::ok("dns", list.join(", ")))
}

/// The record that leads browsers to HTTP/3 on their first visit (RFC 9460). The resolver's interface of the system gives
/// addresses only.
fn https_record(subject: &Subject) -> Finding {
    let name = if subject.port == 443 {
        subject.host.clone()
    } else {
        // RFC 9460 section 9.1.
        format!("_{}._https.{}", subject.port, subject.host)
    };
    let detail =
        format!("not checked: the system's resolver gives addresses only; `dig +short HTTPS {name}` should");
    Finding::skipped("https-record", format!("{detail} name alpn=\"h3\""))
}

/// One line per check, and one with what to do where something is wrong.
fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let detail = printer::printable(&finding.detail);
        // Writing into a string does not fail.
        let _ = writeln!(text, "{}  {:<19} {detail}", finding.state.label(), finding.check);
        if let Some(next) = &finding.next {
            let _ = writeln!(text, "{:28} -> {}", "", printer::printable(next));
        }
    }
    let count = |state| findings.iter().filter(|it| it.state == state).count();
    let (failed, warnings) = (count(State::Failed), count(State::Warning));
    let _ = writeln!(text, "{} checks: {failed} failed, {warnings} warnings", findings.len());
    text
}
