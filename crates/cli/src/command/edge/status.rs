//! `posthaste edge status`: how a running edge is, or its open connections.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use posthaste_edge::{ConnectionStatus, LiveConnections, RequestsStatus, Status};

use crate::args::EdgeStatus;
use crate::civil_date::year_month_day;
use crate::exit::Failure;
use crate::printer;

/// Time for each step of asking.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an answer.
const MAX_ANSWER: u64 = 16 << 20;

pub(super) fn run(args: &EdgeStatus) -> Result<ExitCode, Failure> {
    let path = if args.connections { "/connections" } else { "/status" };
    let body = ask(args.admin, path).map_err(|error| {
        Failure::runtime(format!("no status from {}: {error}", args.admin))
            .hint("the edge must run with --admin ADDRESS:PORT, or `admin` in [edge] of its file")
    })?;
    let unexpected = |error| Failure::runtime(format!("{} answers something else: {error}", args.admin));
    let printed = if args.json {
        // Also what a newer edge says.
        printer::json(&serde_json::from_str::<serde_json::Value>(&body).map_err(unexpected)?)
    } else if args.connections {
        printer::line(list(&serde_json::from_str(&body).map_err(unexpected)?).trim_end())
    } else {
        printer::line(text(&serde_json::from_str(&body).map_err(unexpected)?).trim_end())
    };
    printer::unless_reader_left(printed)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// The body of the answer to a GET of `path`.
fn ask(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER).read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| io::Error::other("no HTTP"))?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other(head.lines().next().unwrap_or_default().to_owned()));
    }
    Ok(body.to_owned())
}

fn text(status: &Status) -> String {
    let Status { version, profile, requests, http3, reload, .. } = status;
    let state = if status.draining { "stopping" } else { "running" };
    let uptime = span(status.uptime);
    let mut text = format!("posthaste {version}, profile {profile}: {state} for {uptime}\n");
    let share = requests.http3_share.map_or_else(|| "-".to_owned(), percent);
    let RequestsStatus { all, incomplete, response_bytes, by_status, .. } = requests;
    let errors = by_status.get("5xx").copied().unwrap_or(0);
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "  requests     {all}, HTTP/3 {share}, 5xx {errors}, incomplete {incomplete}, {response_bytes} B of bodies"
    );
    for (name, site) in &status.sites {
        let share = percent(site.http3 as f64 / site.requests.max(1) as f64);
        let (requests, errors) = (site.requests, site.server_errors);
        let _ = writeln!(text, "    {}: {requests}, HTTP/3 {share}, 5xx {errors}", printer::printable(name));
    }
    let _ = writeln!(
        text,
        "  HTTP/3       {} connections, {} open, {} resumed",
        http3.connections, http3.open, http3.resumed
    );
    let lost = percent(http3.packets_lost as f64 / http3.packets_sent.max(1) as f64);
    let (median, p95) = (time(http3.rtt_median), time(http3.rtt_p95));
    let _ = writeln!(text, "  paths        RTT {median}, 95th percentile {p95}; {lost} of packets lost");
    let _ = writeln!(text, "  reloads      {}, refused {}", reload.loaded, reload.refused);
    if let Some(error) = &reload.error {
        let _ = writeln!(text, "    the last one: {}", printer::printable(error));
    }
    for it in &status.certificates {
        let (year, month, day) = year_month_day(UNIX_EPOCH + Duration::from_secs_f64(it.ends.max(0.0)));
        let names = printer::printable(&it.names.join(", "));
        let _ = writeln!(text, "  certificate  {names}, good until {year}-{month:02}-{day:02}");
        if let Some(warning) = &it.warning {
            let _ = writeln!(text, "    \x1b[33mwarning\x1b[0m: {}", printer::printable(warning));
        }
    }
    text
}

fn list(connections: &LiveConnections) -> String {
    let LiveConnections { open, slowest } = connections;
    let mut text = format!("{open} HTTP/3 connections open");
    if slowest.len() < *open {
        // Writing into a string does not fail.
        let _ = write!(text, ", the slowest {}", slowest.len());
    }
    let _ = writeln!(
        text,
        "\n  {:<47} {:>9} {:>7} {:>12} {:>8} {:>9} {:>8}",
        "address", "RTT", "lost", "rate", "datagram", "age", "requests"
    );
    for it in slowest {
        let ConnectionStatus { address, rtt, loss, rate, datagram_size, age, requests, .. } = it;
        let rate = rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.1} Mbit/s", rate as f64 / 1e6));
        let (rtt, lost, age) = (time(*rtt), percent(*loss), span(*age));
        let address = address.to_string();
        let _ = writeln!(
            text,
            "  {address:<47} {rtt:>9} {lost:>7} {rate:>12} {datagram_size:>8} {age:>9} {requests:>8}"
        );
    }
    text
}

fn time(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| printer::duration(Duration::from_secs_f64(seconds)))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// In the two greatest units.
fn span(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_two_units() {
        for (seconds, expected) in
            [(5.9, "5 s"), (65.0, "1 min 5 s"), (7300.0, "2 h 1 min"), (90_000.0, "1 d 1 h")]
        {
            assert_eq!(span(seconds), expected);
        }
    }
}
