//! `posthaste edge`: an existing site over HTTP/3.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use http::uri::Scheme;
use posthaste_endpoint::{ServerConfig, SessionStore, tls};
use posthaste_http::{ALPN, serve};
use posthaste_proxy::{Proxy, ProxyOptions, Upstream, UpstreamError};
use serde::Serialize;

use super::running::{Running, cannot_listen, interrupts};
use crate::args::Edge;
use crate::exit::Failure;
use crate::identity::Identity;
use crate::log_queue::LogQueue;
use crate::{printer, profile, trust};

mod front;
mod sites;

use sites::Sites;

/// Serves until it is stopped. What goes to stderr meanwhile goes through `log`.
pub(crate) async fn run(args: Edge, log: &LogQueue) -> Result<ExitCode, Failure> {
    let profile = profile::complete(&args.profile)?;
    profile::warn(&profile);
    let transport = profile::transport(profile, None, None)?;
    let profile_name = transport.profile.name().to_owned();
    let identity = Identity::load(&args.cert, &args.key)?;
    let upstream = upstream(&args)?;
    let proxy = Proxy::new(upstream, ProxyOptions::default())
        .map_err(|error| Failure::runtime(format!("cannot start: {error}")))?;
    let sites = Sites::new(&identity.chain, proxy).map_err(|error| {
        Failure::usage(format!("cannot read the names in {}: {error}", args.cert.display()))
    })?;
    let tls = tls::server_config(identity.chain.clone(), identity.key.clone_key(), &[ALPN])
        .map_err(|error| no_tls(&error))?;
    let interrupts = interrupts()?;
    let tls = tls::server_with_early_data(&tls, Arc::new(SessionStore::new()));
    let (endpoint, front) = front::listen(&args, &identity, &ServerConfig::new(tls, transport)).await?;
    let address = endpoint.local_addr().map_err(|error| cannot_listen(args.listen, &error))?;
    let redirect = front.as_ref().and_then(front::Front::redirect_address);
    announce(&args, &Start::new(&args, address, redirect, &profile_name))?;
    let running = Running { json: args.json, access_log: !args.no_access_log, grace: args.grace };
    let quic = serve(endpoint, sites.clone());
    running.run_all(|terms| front::run(quic, front, sites, terms), interrupts, log).await
}

fn no_tls(error: &rustls::Error) -> Failure {
    Failure::usage(format!("certificate and key cannot be used together: {error}"))
        .hint("--key must be the private key of the first certificate in --cert")
}

/// The server that answers.
fn upstream(args: &Edge) -> Result<Upstream, Failure> {
    let (option, url) = match (&args.neighbour, &args.to) {
        (Some(url), _) => ("--beside", url),
        (None, Some(url)) => ("--to", url),
        (None, None) => return Err(Failure::usage("name the server that answers: --beside URL or --to URL")),
    };
    let tls = if url.scheme() == Some(&Scheme::HTTPS) {
        let verifier = trust::in_file_or_system(args.ca.as_deref())?;
        let config = tls::client_config_using(tls::crypto_provider(), verifier, &[b"http/1.1"]);
        Some(config.map_err(|error| trust::unusable(&error))?)
    } else {
        None
    };
    let upstream = Upstream::new(url, tls).map_err(|error| {
        let example = if args.neighbour.is_some() { "https://127.0.0.1" } else { "http://127.0.0.1:3000" };
        let failure = Failure::usage(format!("{option} {url}: {error}"));
        match error {
            UpstreamError::Path => failure.hint(format!("for example {option} {example}, without a path")),
            _ => failure.hint(format!("for example {option} {example}")),
        }
    })?;
    Ok(if args.neighbour.is_some() { upstream.neighbour() } else { upstream })
}

/// What a person or a program needs to know to have browsers come.
#[derive(Serialize)]
struct Start<'a> {
    event: &'static str,
    domain: &'a str,
    address: SocketAddr,
    upstream: String,
    is_beside: bool,
    /// Versions of HTTP; `h1` and `h2` over TCP, `h3` over UDP, on the same port.
    protocols: &'static [&'static str],
    /// Where requests over plain HTTP are sent on from.
    redirect: Option<SocketAddr>,
    profile: &'a str,
    /// The field by which the site's server tells browsers of HTTP/3.
    alt_svc: String,
    /// The DNS record that does so before the first visit.
    https_record: String,
}

impl<'a> Start<'a> {
    fn new(args: &'a Edge, address: SocketAddr, redirect: Option<SocketAddr>, profile: &'a str) -> Self {
        let (domain, port) = (args.domain.as_str(), address.port());
        let upstream =
            args.neighbour.as_ref().or(args.to.as_ref()).map(ToString::to_string).unwrap_or_default();
        // An origin at another port has its own record (RFC 9460 section 9.1).
        let (prefix, target) =
            if port == 443 { (String::new(), ".") } else { (format!("_{port}._https."), domain) };
        let dot = if target == "." { "" } else { "." };
        Self {
            event: "listening",
            domain,
            address,
            upstream: upstream.trim_end_matches('/').to_owned(),
            is_beside: args.neighbour.is_some(),
            protocols: if args.neighbour.is_some() { &["h3"] } else { &["h1", "h2", "h3"] },
            redirect,
            profile,
            alt_svc: format!("h3=\":{port}\"; ma=86400"),
            https_record: format!("{prefix}{domain}. 300 IN HTTPS 1 {target}{dot} alpn=\"h3,h2\""),
        }
    }

    /// The lines for people.
    fn text(&self) -> String {
        let Self { domain, address, upstream, profile, alt_svc, https_record, .. } = self;
        let come = if self.is_beside {
            let escaped = alt_svc.replace('"', "\\\"");
            format!(
                "Browsers come when the site tells them. One line in its server's configuration:\n\
                 \x20 nginx    add_header Alt-Svc '{alt_svc}' always;\n\
                 \x20 Apache   Header always set Alt-Svc \"{escaped}\"\n\
                 or, without a change there and from the first visit on, one record in its DNS:\n\
                 \x20 {https_record}\n\n\
                 Client addresses come to that server in X-Forwarded-For:\n\
                 \x20 nginx    set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;\n\
                 \x20 Apache   RemoteIPHeader X-Forwarded-For, RemoteIPInternalProxy 127.0.0.1 (mod_remoteip)"
            )
        } else {
            format!(
                "Browsers come over TCP and learn of HTTP/3 there (Alt-Svc); with this record in the DNS they use it from \
                 the first visit on:\n\x20 {https_record}"
            )
        };
        let (protocols, transports) =
            if self.is_beside { ("HTTP/3", "udp") } else { ("HTTP/1.1, 2 and 3", "tcp+udp") };
        let redirect = self.redirect.map(|address| format!("\n\x20 redirect {address}/tcp to https"));
        let redirect = redirect.unwrap_or_default();
        let ports = if self.is_beside { "UDP port" } else { "TCP and UDP port" };
        format!(
            "{protocols} for {domain} on {address}/{transports}, answers come from \x1b[1m{upstream}\x1b[0m\n\
             \x20 profile  {profile}{redirect}\n\n{come}\n\n\
             Firewalls must let {ports} {} in. Ctrl-C stops.",
            address.port()
        )
    }
}

fn announce(args: &Edge, start: &Start<'_>) -> Result<(), Failure> {
    let follows = if args.no_access_log { "" } else { " One line per request follows." };
    let text = || printer::line(format_args!("{}{follows}", start.text()));
    let printed = if args.json { printer::json_line(start) } else { text() };
    printer::unless_reader_left(printed)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    fn args(more: &[&str]) -> Edge {
        let usual = ["posthaste", "edge", "--cert", "c", "--key", "k"];
        match Args::try_parse_from(usual.iter().chain(more)).unwrap().command {
            Command::Edge(args) => args,
            _ => panic!("another command"),
        }
    }

    #[test]
    fn it_says_how_browsers_come() {
        let args = args(&["--beside", "https://127.0.0.1", "--domain", "a.test"]);
        let start = Start::new(&args, "0.0.0.0:443".parse().unwrap(), None, "mobile");
        assert_eq!(start.https_record, "a.test. 300 IN HTTPS 1 . alpn=\"h3,h2\"");
        let text = start.text();
        assert!(text.contains("add_header Alt-Svc 'h3=\":443\"; ma=86400' always;"), "{text}");
        assert!(text.contains("Header always set Alt-Svc \"h3=\\\":443\\\"; ma=86400\""), "{text}");
        let start = Start::new(&args, "0.0.0.0:8443".parse().unwrap(), None, "mobile");
        assert_eq!(start.https_record, "_8443._https.a.test. 300 IN HTTPS 1 a.test. alpn=\"h3,h2\"");
    }

    #[test]
    fn an_upstream_is_named_as_its_option_wants_it() {
        for (option, url) in [("--to", "http://a/b"), ("--to", "ftp://a"), ("--beside", "a.test")] {
            let failure = upstream(&args(&[option, url])).unwrap_err().to_string();
            assert!(failure.contains(option), "{failure}");
        }
        assert!(upstream(&args(&["--to", "http://127.0.0.1:3000/"])).is_ok());
    }
}
