//! Who is compared.

use std::path::{Path, PathBuf};

use posthaste_schemes::selection;
use serde::Deserialize;

use super::protocol::Protocol;
use super::site::{DOCUMENT, FIRST_PORT, HOST, port};
use crate::args::Page;
use crate::exit::Failure;
use crate::printer::shell_quote;
use crate::profile;

/// Contestants at most: all profiles that a server alone can use, and many rivals.
const MAX_CONTESTANTS: usize = 96;

/// A server that pages are loaded from.
#[derive(Debug, Clone)]
pub(super) struct Contestant {
    pub(super) name: String,
    pub(super) protocol: Protocol,
    pub(super) origin: Origin,
}

/// Where its pages come from.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// `posthaste serve` with this profile, started afresh for each run.
    Profile(String),
    /// A shell command, started afresh for each run.
    Command(String),
    /// A server that runs already.
    Url(String),
    /// What `posthaste edge prove` starts afresh for each run, in front of a site that runs already.
    Front(Front),
}

/// A far end that answers for a site of its own name.
#[derive(Debug, Clone)]
pub(super) struct Front {
    /// Where the browser begins.
    pub(super) url: String,
    /// Shell command that starts all of it.
    pub(super) command: String,
    /// TCP ports that it listens on, too, and that must be listened on before the visit.
    pub(super) relayed: Vec<u16>,
    /// The TCP port that stands for port 443 of all other hosts.
    pub(super) others: u16,
}

/// A file of rivals.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RivalsFile {
    #[serde(default)]
    rival: Vec<Rival>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rival {
    name: String,
    protocol: Protocol,
    command: String,
}

/// All contestants, in the order of tables.
pub(super) fn contestants(args: &Page) -> Result<Vec<Contestant>, Failure> {
    let mut all = Vec::new();
    for url in &args.urls {
        for &protocol in &args.protocols {
            let several = args.protocols.len() > 1;
            let name = if several { format!("{url} ({})", protocol.alpn()) } else { url.clone() };
            all.push(Contestant { name, protocol, origin: Origin::Url(checked_url(url)?) });
        }
    }
    if args.urls.is_empty() {
        for name in &selection::expand(&args.profiles) {
            // A name that is none, or lacks a rate, must not be found out by a server, later.
            profile::complete(name)?;
            let place = if profile::is_file(name) {
                absolute(Path::new(name))?.display().to_string()
            } else {
                name.clone()
            };
            let name = format!("posthaste {name}");
            all.push(Contestant { name, protocol: Protocol::H3, origin: Origin::Profile(place) });
        }
        if let Some(file) = &args.rivals {
            all.extend(rivals(file)?);
        }
    }
    if !args.only.is_empty() {
        let names: Vec<String> = all.iter().map(|contestant| contestant.name.clone()).collect();
        if let Some(unknown) = args.only.iter().find(|only| !names.contains(only)) {
            return Err(Failure::usage(format!(
                "--only: there is no `{unknown}`; there are: {}",
                names.join(", ")
            )));
        }
        all.retain(|contestant| args.only.contains(&contestant.name));
    }
    check(&all)?;
    Ok(all)
}

fn check(all: &[Contestant]) -> Result<(), Failure> {
    if all.is_empty() {
        return Err(Failure::usage("no server to load from: give a URL, --profiles or --rivals"));
    }
    if all.len() > MAX_CONTESTANTS {
        return Err(Failure::usage(format!("at most {MAX_CONTESTANTS} are compared, not {}", all.len())));
    }
    let twice =
        all.iter().enumerate().find(|(index, one)| all[..*index].iter().any(|other| other.name == one.name));
    match twice {
        Some((_, one)) => Err(Failure::usage(format!("`{}` is named twice", one.name))),
        None => Ok(()),
    }
}

fn rivals(file: &Path) -> Result<Vec<Contestant>, Failure> {
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("cannot read the rivals from {shown}: {error}")))?;
    let read: RivalsFile = toml::from_str(&text).map_err(|error| {
        Failure::usage(format!("the rivals in {shown}: {error}"))
            .hint("each is a [[rival]] with name, protocol (h3, h2 or h1) and command")
    })?;
    let contestant = |rival: Rival| Contestant {
        name: rival.name,
        protocol: rival.protocol,
        origin: Origin::Command(rival.command),
    };
    Ok(read.rival.into_iter().map(contestant).collect())
}

fn checked_url(text: &str) -> Result<String, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("`{text}` is not a page URL: {why}"));
    let uri: http::Uri = text.parse().map_err(|error| wrong(&error))?;
    if uri.scheme_str() != Some("https") || uri.host().is_none() {
        return Err(wrong(&"it must begin with https:// and have a host"));
    }
    Ok(text.to_owned())
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// What servers that are started for a run are told.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    /// The folder of the page.
    pub(super) site: &'a Path,
    pub(super) certificate: &'a Path,
    pub(super) key: &'a Path,
    /// One for each host of the page.
    pub(super) ports: &'a [u16],
    /// Where the run may leave files.
    pub(super) scratch: &'a Path,
    /// Where `posthaste serve` leaves its traces.
    pub(super) qlog: Option<&'a Path>,
    /// This program.
    pub(super) posthaste: &'a Path,
}

impl Contestant {
    /// The shell command that starts its servers; none if they run already.
    pub(super) fn command(&self, around: &Surroundings<'_>) -> Option<String> {
        let quoted = |path: &Path| shell_quote(&path.to_string_lossy());
        let ports: Vec<String> = around.ports.iter().map(u16::to_string).collect();
        let serve = match &self.origin {
            Origin::Url(_) => return None,
            Origin::Command(command) | Origin::Front(Front { command, .. }) => command.clone(),
            Origin::Profile(profile) => {
                let qlog =
                    around.qlog.map(|folder| format!(" --qlog {}", quoted(folder))).unwrap_or_default();
                // Without --state and with a certificate of its own, a server remembers nothing of runs before.
                format!(
                    "for port in $POSTHASTE_PORTS; do {} serve \"$POSTHASTE_SITE\" --listen 0.0.0.0:$port \
                     --cert \"$POSTHASTE_CERT\" --key \"$POSTHASTE_KEY\" --profile {}{qlog} --json >/dev/null & done; wait",
                    quoted(around.posthaste),
                    shell_quote(profile),
                )
            }
        };
        Some(format!(
            "export POSTHASTE_SITE={} POSTHASTE_CERT={} POSTHASTE_KEY={} POSTHASTE_PORTS={} POSTHASTE_SCRATCH={}; {serve}",
            quoted(around.site),
            quoted(around.certificate),
            quoted(around.key),
            shell_quote(&ports.join(" ")),
            quoted(around.scratch),
        ))
    }

    /// Where the browser begins.
    pub(super) fn url(&self) -> String {
        match &self.origin {
            Origin::Url(url) | Origin::Front(Front { url, .. }) => url.clone(),
            _ => format!("https://{HOST}:{FIRST_PORT}/{DOCUMENT}"),
        }
    }

    /// The ports of its hosts, the document's first.
    pub(super) fn ports(&self, hosts: usize) -> Vec<u16> {
        match &self.origin {
            Origin::Url(_) | Origin::Front(_) => vec![self.host_and_port().1],
            Origin::Profile(_) | Origin::Command(_) => (0..hosts).map(port).collect(),
        }
    }

    /// What else is at the far end, if it is a front.
    pub(super) fn front(&self) -> Option<&Front> {
        match &self.origin {
            Origin::Front(front) => Some(front),
            _ => None,
        }
    }

    /// Host and port of [`Self::url`].
    pub(super) fn host_and_port(&self) -> (String, u16) {
        let uri: http::Uri = self.url().parse().unwrap_or_default();
        (uri.host().unwrap_or_default().to_owned(), uri.port_u16().unwrap_or(443))
    }
}

#[cfg(test)]
mod tests;
