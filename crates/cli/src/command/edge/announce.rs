//! What the edge says when it has started: what makes browsers come.

use std::net::SocketAddr;
use std::path::Path;

use http::Uri;
use posthaste_edge::{Config, Discovery, Edge, SiteConfig, TcpSide};
use serde::Serialize;

use crate::civil_date::year_month_day;
use crate::exit::Failure;
use crate::printer;

/// Where the edge listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) address: SocketAddr,
    /// Where requests over plain HTTP are sent on from.
    pub(super) redirect: Option<SocketAddr>,
    /// Where operators are answered.
    pub(super) admin: Option<SocketAddr>,
    /// It speaks HTTP/1.1 and 2, too.
    pub(super) has_tcp: bool,
}

/// How it is said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) json: bool,
    /// Requests are printed.
    pub(super) access_log: bool,
}

/// What a person or a program needs to know.
#[derive(Serialize)]
struct Start<'a> {
    event: &'static str,
    address: SocketAddr,
    /// Versions of HTTP; `h1` and `h2` over TCP, `h3` over UDP, on the same port.
    protocols: &'static [&'static str],
    redirect: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    profile: &'a str,
    sites: Vec<SiteStart<'a>>,
    /// Who certifies sites without files, and where its certificates are kept.
    #[serde(skip)]
    authority: Option<(&'a str, &'a Path)>,
    certificates: Vec<CertificateStart>,
}

#[derive(Serialize)]
struct SiteStart<'a> {
    domain: &'a str,
    /// What answers where no route does.
    answers: String,
    is_beside: bool,
    #[serde(skip)]
    has_tcp: bool,
    /// The field by which the site's server tells browsers of HTTP/3.
    alt_svc: String,
    /// The DNS record that does so before the first visit.
    https_record: String,
}

#[derive(Serialize)]
struct CertificateStart {
    file: String,
    names: Vec<String>,
    ends: String,
}

impl Start<'_> {
    /// The lines for people.
    fn text(&self, has_tcp: bool) -> String {
        let Self { address, profile, .. } = self;
        let (protocols, transports, ports) = if has_tcp {
            ("HTTP/1.1, 2 and 3", "tcp+udp", "TCP and UDP port")
        } else {
            ("HTTP/3", "udp", "UDP port")
        };
        let redirect = self.redirect.map(|address| format!("  redirect     {address}/tcp to https\n"));
        let redirect = redirect.unwrap_or_default();
        let admin = self.admin.map(|address| {
            format!("  operators    http://{address}/ (dashboard), /metrics, /status, /healthz, /readyz\n")
        });
        let admin = admin.unwrap_or_default();
        let certificate = |it: &CertificateStart| {
            format!("  certificate  {}, good until {}\n", it.names.join(", "), it.ends)
        };
        let certificates: String = self.certificates.iter().map(certificate).collect();
        let authority = self.authority.as_ref().map(|(directory, state)| {
            format!(
                "  authority    {directory}, whose terms of service you accept; kept in {}\n",
                state.display()
            )
        });
        let authority = authority.unwrap_or_default();
        let sites: String = self.sites.iter().map(|site| site.text() + "\n").collect();
        format!(
            "{protocols} on {address}/{transports}\n\x20 profile      {profile}\n{redirect}{admin}{authority}{certificates}\n{sites}\
             Firewalls must let {ports} {} in. Ctrl-C stops.",
            address.port()
        )
    }
}

impl<'a> SiteStart<'a> {
    fn new(domain: &'a str, site: &SiteConfig, place: Place) -> Self {
        let port = place.address.port();
        let own = if place.has_tcp { TcpSide::Edge } else { TcpSide::Nobody };
        let url = |value: &Option<toml::Spanned<String>>| {
            value.as_ref().map(|url| url.get_ref().trim_end_matches('/').to_owned())
        };
        let beside = url(&site.beside);
        let to = site.to.as_ref().map(|to| to.get_ref().to_string().trim_end_matches('/').to_owned());
        let all = [&site.beside, &site.files, &site.redirect, &site.reply];
        let neighbour = |url: &str| TcpSide::Neighbour { port: neighbour_port(url) };
        let tcp = beside.as_deref().map_or(own, neighbour);
        let discovery = Discovery { domain, port, tcp };
        Self {
            domain,
            answers: to.or_else(|| all.into_iter().find_map(url)).unwrap_or_else(|| "its routes".to_owned()),
            is_beside: beside.is_some(),
            has_tcp: place.has_tcp,
            alt_svc: discovery.alt_svc(),
            https_record: discovery.https_record(),
        }
    }

    /// The lines for people.
    fn text(&self) -> String {
        let Self { domain, answers, alt_svc, https_record, .. } = self;
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
        } else if !self.has_tcp {
            format!("Browsers come when the DNS tells them:\n\x20 {https_record}")
        } else {
            format!(
                "Browsers come over TCP and learn of HTTP/3 there (Alt-Svc); with this record in the DNS they use it from \
                 the first visit on:\n\x20 {https_record}"
            )
        };
        format!("{domain}: answers come from \x1b[1m{answers}\x1b[0m\n{come}\n")
    }
}

/// The port in the URLs of a site with this server, which is at that port itself if it speaks https.
fn neighbour_port(url: &str) -> u16 {
    let uri: Option<Uri> = url.parse().ok();
    let https = uri.filter(|uri| uri.scheme_str() == Some("https"));
    https.and_then(|uri| uri.port_u16()).unwrap_or(443)
}

pub(super) fn announce(
    config: &Config,
    edge: &Edge,
    place: Place,
    profile: &str,
    form: Form,
) -> Result<(), Failure> {
    let Place { address, redirect, admin, has_tcp } = place;
    let states = edge.resolver().states().into_iter().map(|state| {
        let (year, month, day) = year_month_day(state.ends);
        let ends = format!("{year}-{month:02}-{day:02}");
        CertificateStart { file: state.chain.display().to_string(), names: state.names, ends }
    });
    let start = Start {
        event: "listening",
        address,
        protocols: if has_tcp { &["h1", "h2", "h3"] } else { &["h3"] },
        redirect,
        admin,
        profile,
        sites: config.sites.iter().map(|(domain, site)| SiteStart::new(domain, site, place)).collect(),
        authority: config.edge.acme.as_ref().map(|acme| {
            let acme = acme.get_ref();
            (acme.directory.as_str(), acme.state.as_path())
        }),
        certificates: states.collect(),
    };
    let follows = if form.access_log { " One line per request follows." } else { "" };
    let text = || printer::line(format_args!("{}{follows}", start.text(has_tcp)));
    let printed = if form.json { printer::json_line(&start) } else { text() };
    printer::unless_reader_left(printed)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::from_args;
    use super::*;
    use crate::args::{Args, Command};

    fn start(more: &[&str], port: u16) -> (String, String) {
        let usual = ["posthaste", "edge", "--cert", "c", "--key", "k", "--domain", "a.test"];
        let config = match Args::try_parse_from(usual.iter().chain(more)).unwrap().command {
            Command::Edge(args) => from_args::config(&args),
            _ => panic!("another command"),
        };
        let address = SocketAddr::from(([0, 0, 0, 0], port));
        let place = Place { address, redirect: None, admin: None, has_tcp: !config.has_neighbour() };
        let start = SiteStart::new("a.test", &config.sites["a.test"], place);
        (start.text(), start.https_record)
    }

    #[test]
    fn it_says_how_browsers_come() {
        let (text, record) = start(&["--beside", "https://127.0.0.1"], 443);
        assert_eq!(record, "a.test. 300 IN HTTPS 1 . alpn=\"h3,h2\"");
        assert!(text.contains("add_header Alt-Svc 'h3=\":443\"; ma=86400' always;"), "{text}");
        assert!(text.contains("Header always set Alt-Svc \"h3=\\\":443\\\"; ma=86400\""), "{text}");
        // The neighbour has the site's port, and HTTP/3 is elsewhere.
        let (_, record) = start(&["--beside", "https://127.0.0.1"], 8443);
        assert_eq!(record, "a.test. 300 IN HTTPS 1 . alpn=\"h3\" no-default-alpn port=8443");
        let (text, record) = start(&["--to", "http://127.0.0.1:3000/"], 443);
        assert_eq!(record, "a.test. 300 IN HTTPS 1 . alpn=\"h3,h2\"");
        assert!(text.contains("http://127.0.0.1:3000\x1b"), "{text}");
    }
}
