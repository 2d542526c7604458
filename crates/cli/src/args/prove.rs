//! `posthaste edge prove`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::report_output::ReportOutput;
use super::seconds;

/// Load a page of your own site in Chromium over emulated mobile paths, as it is and through the edge, and show what was saved.
///
/// Each run starts an emulated path in network namespaces of its own, with the site at the far end and a new browser at the near
/// end: a cold visit, then a warm one (new connections, empty cache). In each round both sides get a path with the same seed,
/// and they take turns in going first. The edge is started afresh for each run, with a certificate made for this command; the
/// site itself is only visited.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste edge prove http://127.0.0.1:3000/          an application on this machine, 7 runs over three paths (about 10 minutes)
  posthaste edge prove https://example.org/ --resolve example.org=127.0.0.1     on the site's own server
  posthaste edge prove https://localhost:8443/ --ca ca.pem --path lte-trace --runs 11
  posthaste edge prove http://127.0.0.1:3000/shop --json --no-html > proof.json

What is compared. The only difference is how the browser reaches the site:
  https://...   As it is: the site's own TLS and HTTP/2 (or HTTP/1.1). The emulated path ends on this machine, whose kernel's TCP
                carries it (with CUBIC, or --tcp), and the bytes are passed on to the site unchanged.
                Through the edge: HTTP/3 from `posthaste edge --beside`, which asks the same site.
  http://...    Browsers use HTTP/2 over TLS only, and no visitor should meet a site without TLS. As it is: HTTP/2 over the
                kernel's TCP from `posthaste edge --to`, which stands for any TLS server in front of the application. Through
                the edge: HTTP/3 from the same command. So certificate, compression and proxying are equal on both sides.
The site's answers take as long on both sides; where it is far from this machine, both pay for that, and a remark says so:
the figures are best where `prove` runs on the site's own server. HTTP/3 that the site has itself is not used.
HTTP/3 is used from the first request on, as by browsers that have read the HTTPS record of a site.
Hosts other than the site's are loaded as they are on both sides, over TCP and over the same emulated path (port 443 only).

Times are medians with their range. A difference counts as decided if its 95 % interval over pairs of runs with equal seeds
excludes zero, which takes 6 runs or more; everything else is marked `may be chance`.
Needs Linux, Chromium, and root or permitted user namespaces. Ctrl-C ends it and shows the results so far.
Exit code: 0 if every run loaded the page, 1 if some did not, 2 for a usage error, 130 after Ctrl-C.")]
pub(crate) struct EdgeProve {
    /// A page of the site: https://HOST/ or https://HOST:PORT/..., with http:// for an application without TLS
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// Paths, separated by commas: names or TOML files, as for `posthaste page`
    #[arg(
        long,
        value_name = "NAME|FILE,...",
        value_delimiter = ',',
        default_value = "lte-trace,wifi-trace,average"
    )]
    pub(crate) path: Vec<String>,

    /// Runs per path, as it is and through the edge
    #[arg(long, value_name = "COUNT", default_value = "7", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) runs: u64,

    /// Profile of the edge: a name from `posthaste profiles`, or a TOML file; the default is that of `edge`
    #[arg(long, value_name = "NAME|FILE", default_value = "mobile@history=true")]
    pub(crate) profile: String,

    /// Reach a host at this address (port 443, or the URL's, unless it has one); may be repeated
    #[arg(long, value_name = "NAME=ADDRESS[:PORT]")]
    pub(crate) resolve: Vec<Pin>,

    /// Congestion control of the kernel's TCP; Linux servers have `cubic` unless somebody has changed it
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) tcp: String,

    /// Trust the certificates in this PEM file in an https site, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// Skip the warm visits
    #[arg(long)]
    pub(crate) cold_only: bool,

    /// Seed of the paths in the first round; each later round uses the next
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Browser: `chromium`, or the file of a program like it
    #[arg(long, value_name = "NAME|FILE", default_value = "chromium")]
    pub(crate) browser: String,

    /// Seconds until a visit counts as failed
    #[arg(long, value_name = "SECONDS", default_value = "90", value_parser = seconds)]
    pub(crate) timeout: Duration,

    /// File for the HTML report
    #[arg(long, value_name = "FILE", default_value = "prove.html")]
    pub(crate) html: PathBuf,

    #[command(flatten)]
    pub(crate) output: ReportOutput,
}

/// A host that is reached at a fixed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) host: String,
    pub(crate) address: IpAddr,
    pub(crate) port: Option<u16>,
}

impl FromStr for Pin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` is not NAME=ADDRESS, such as example.org=127.0.0.1 or example.org=[::1]:8443")
        };
        let (host, place) = text.split_once('=').filter(|(host, _)| !host.is_empty()).ok_or_else(wrong)?;
        let host = host.to_ascii_lowercase();
        if let Ok(address) = place.trim_start_matches('[').trim_end_matches(']').parse() {
            return Ok(Self { host, address, port: None });
        }
        let place: SocketAddr = place.parse().map_err(|_| wrong())?;
        Ok(Self { host, address: place.ip(), port: Some(place.port()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_has_an_address_and_perhaps_a_port() {
        let pin = |text: &str| text.parse::<Pin>().map(|pin| (pin.host, pin.address.to_string(), pin.port));
        assert_eq!(pin("A.test=127.0.0.1"), Ok(("a.test".into(), "127.0.0.1".into(), None)));
        assert_eq!(pin("a.test=127.0.0.1:81"), Ok(("a.test".into(), "127.0.0.1".into(), Some(81))));
        assert_eq!(pin("a.test=::1"), Ok(("a.test".into(), "::1".into(), None)));
        assert_eq!(pin("a.test=[::1]:81"), Ok(("a.test".into(), "::1".into(), Some(81))));
        for wrong in ["a.test", "=127.0.0.1", "a.test=b.test", "a.test=127.0.0.1:99999"] {
            assert!(pin(wrong).unwrap_err().contains("NAME=ADDRESS"), "{wrong}");
        }
    }
}
