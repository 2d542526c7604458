//! The configuration: what a file or the command line says.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posthaste_endpoint::ByteCount;
use serde::{Deserialize, Serialize};
use toml::Spanned;

mod acme;
mod early_data;
mod error;
mod limits;
mod request_id;
mod schema;
mod span;
mod tls_version;
mod upstreams;
mod workers;

pub use acme::AcmeConfig;
pub use early_data::EarlyDataUse;
pub use error::ConfigError;
pub use limits::Limits;
pub use request_id::RequestIdConfig;
pub use span::Span;
pub use tls_version::TlsVersion;
pub use upstreams::{HealthConfig, Targets};
pub use workers::Workers;

/// All of it. Unknown keys are errors.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// What is one for all sites.
    #[serde(default)]
    pub edge: Settings,
    /// The sites by their first names.
    #[serde(default, rename = "site")]
    pub sites: BTreeMap<String, SiteConfig>,
    /// Where it was read; `None` if the command line said it.
    #[serde(skip)]
    source: Option<Arc<Source>>,
}

/// A file that was read.
#[derive(Debug)]
struct Source {
    file: PathBuf,
    text: String,
}

/// `[edge]`: what is one for all sites, and takes effect when the edge starts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Settings {
    /// Address and port to listen on. Default `0.0.0.0:443`.
    pub listen: SocketAddr,
    /// Address and TCP port from which plain HTTP is redirected to https.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<SocketAddr>,
    /// Profile, the bundle of policies. Default `mobile@history=true`: clients that return within an hour begin near the rate
    /// that their path had.
    pub profile: Spanned<String>,
    /// Directory for what outlives the process: the secret of address tokens and stateless resets, TLS sessions for 0-RTT,
    /// path histories. Default none: clients then begin anew after a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Spanned<PathBuf>>,
    /// The oldest version of TLS over TCP. Default `1.2`.
    #[serde(skip_serializing_if = "TlsVersion::is_default")]
    pub tls_min: TlsVersion,
    /// Threads that serve. Default 1.
    #[serde(skip_serializing_if = "Workers::is_default")]
    pub workers: Workers,
    /// Time for requests in progress when the edge stops. Default 10 s.
    pub grace: Span,
    /// Address and TCP port of the listener for operators, which has no TLS and no password. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin: Option<Spanned<SocketAddr>>,
    /// [`Self::admin`] may be an address that other machines reach. Default no.
    #[serde(skip_serializing_if = "is_false")]
    pub admin_public: bool,
    /// Networks of clients that are proxies themselves: what they say in `X-Forwarded-*` and `Forwarded` counts, and their
    /// request ids if [`RequestIdConfig::accept`] is set. Default none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<Spanned<String>>,
    /// Whether lines for requests show the query. Default `whole`.
    #[serde(skip_serializing_if = "QueryInLog::is_default")]
    pub log_query: QueryInLog,
    /// Request ids for others than the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestIdConfig>,
    /// The authority that certifies sites without a [`SiteConfig::certificate`]. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acme: Option<Spanned<AcmeConfig>>,
    /// Bounds on what clients may ask for.
    #[serde(skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
}

/// The query of a request's target in the log; it may hold what is not for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueryInLog {
    /// As it came.
    #[default]
    Whole,
    /// `?redacted` in its place.
    Redacted,
}

impl QueryInLog {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 443),
            redirect: None,
            profile: Spanned::new(0..0, "mobile@history=true".to_owned()),
            state: None,
            tls_min: TlsVersion::default(),
            workers: Workers::default(),
            grace: Span::from_secs(10),
            admin: None,
            admin_public: false,
            trusted: Vec::new(),
            log_query: QueryInLog::default(),
            request_id: None,
            acme: None,
            limits: Limits::default(),
        }
    }
}

/// `[site."NAME"]`. One of `to`, `beside`, `files`, `redirect` and `reply` answers what no route does.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SiteConfig {
    /// Further names; `*.example.org` is every name with one more label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Spanned<String>>,
    /// The certificate's files. Default: one from the authority of [`Settings::acme`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Spanned<CertificateFiles>>,
    /// The site also answers for names that no site has and its certificate covers. The only site does so, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub default: bool,
    /// URL of an application, or several: `http`, `https`, `h2c` (HTTP/2 without TLS), or `unix:/PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Spanned<Targets>>,
    /// URL of a server of the same site, which is asked for the names that clients ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Spanned<String>>,
    /// A directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Spanned<String>>,
    /// URL to redirect to with status 308; `{path}` stands for the request's path and query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Spanned<String>>,
    /// A status, and a text behind a blank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Spanned<String>>,
    /// Certificates in PEM to trust in `https` upstreams, instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<Spanned<PathBuf>>,
    /// A request's body; a longer one gets 413. Default: as `[edge.limits]` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_body: Option<ByteCount>,
    /// `Link` fields of a 103 (RFC 8297) that browsers get over HTTP/3 while they wait for a page. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_hints: Option<Vec<Spanned<String>>>,
    /// Requests that came as early data. Default `safe`.
    #[serde(default, skip_serializing_if = "EarlyDataUse::is_default")]
    pub early_data: EarlyDataUse,
    /// Time for which browsers use only https (`strict-transport-security`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hsts: Option<Span>,
    /// Checks of upstreams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Spanned<HealthConfig>>,
    /// Response fields of all routes.
    #[serde(default, skip_serializing_if = "FieldRules::is_empty")]
    pub headers: FieldRules,
    /// Codings to compress responses by, the best first: `zstd`, `br`, `gzip`; none with `[]`. Default all three.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress: Option<Vec<Spanned<String>>>,
    /// `app.js.br`, `.zst` or `.gz` answers for `app.js` in `files`. Default no.
    #[serde(default, skip_serializing_if = "is_false")]
    pub precompressed: bool,
    /// How long upstreams may take.
    #[serde(default, skip_serializing_if = "Timeouts::is_default")]
    pub timeouts: Timeouts,
    /// Other answers below some paths.
    #[serde(default, rename = "route", skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteConfig>,
}

/// `[[site."NAME".route]]`: the answer below a path. The longest path that fits is used.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouteConfig {
    /// `/api` is `/api` and all below it; `/api/` is all below it.
    pub path: Spanned<String>,
    /// As at a site; the site's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_hints: Option<Vec<Spanned<String>>>,
    /// As at a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Spanned<String>>,
    /// A directory; files are looked up without the route's path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Spanned<String>>,
    /// As at a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Spanned<Targets>>,
    /// As at a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Spanned<String>>,
    /// As at a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Spanned<String>>,
    /// Checks of the upstreams; the site's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Spanned<HealthConfig>>,
    /// Response fields, after those of the site.
    #[serde(default, skip_serializing_if = "FieldRules::is_empty")]
    pub headers: FieldRules,
    /// As at a site; the site's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress: Option<Vec<Spanned<String>>>,
    /// As at a site; the site's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precompressed: Option<bool>,
    /// How long the upstream may take; the site's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
}

/// PEM files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateFiles {
    /// The chain, the site's own certificate first.
    pub chain: PathBuf,
    /// The private key of the first.
    pub key: PathBuf,
}

/// Fields to set in responses and to remove from them.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FieldRules {
    /// Values by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<Spanned<String>>,
}

impl FieldRules {
    fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }
}

/// How long an upstream may take.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    /// For a connection, TLS included. Default 2 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<Span>,
    /// Longest silence before a response. Default 60 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<Span>,
    /// Longest silence within a response. Default 60 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
    /// Longest silence of both ends of a WebSocket. Default 10 min.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub websocket: Option<Span>,
}

impl Timeouts {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, or says something that is not known.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|error| ConfigError::unreadable(file, &error))?;
        Self::parse(file, text)
    }

    /// Understands the text of a file.
    ///
    /// # Errors
    /// It is no TOML, or says something that is not known.
    pub fn parse(file: &Path, text: String) -> Result<Self, ConfigError> {
        let parsed: Result<Self, _> = toml::from_str(&text);
        match parsed {
            Ok(config) => {
                let source = Some(Arc::new(Source { file: file.to_owned(), text }));
                let config = Self { source, ..config };
                config.edge.limits.check(&config)?;
                Ok(config)
            }
            Err(error) => Err(ConfigError::of_toml(file, &text, &error)),
        }
    }

    /// The file that says the same.
    pub fn to_toml(&self) -> String {
        // All keys are strings, and tables come last: it can be written.
        toml::to_string(self).unwrap_or_default()
    }

    /// True if a site has a server of its own next to the edge, which then owns the TCP port.
    pub fn has_neighbour(&self) -> bool {
        let is_beside = |site: &SiteConfig| {
            site.beside.is_some() || site.routes.iter().any(|route| route.beside.is_some())
        };
        self.sites.values().any(is_beside)
    }

    /// The URLs of all servers behind the edge, each once.
    pub fn upstreams(&self) -> Vec<&str> {
        let routes = self.sites.values().flat_map(|site| &site.routes);
        let answers = routes.map(|route| (&route.to, &route.beside));
        let answers = answers.chain(self.sites.values().map(|site| (&site.to, &site.beside)));
        let mut all = BTreeSet::new();
        for (to, beside) in answers {
            all.extend(to.iter().flat_map(|to| to.get_ref().urls()).map(String::as_str));
            all.extend(beside.iter().map(|url| url.get_ref().as_str()));
        }
        all.into_iter().collect()
    }

    /// # Errors
    /// The listener for operators would be reachable for others, and nobody has said that it may be.
    pub(crate) fn check_admin(&self) -> Result<(), ConfigError> {
        let Some(admin) = self.edge.admin.as_ref().filter(|_| !self.edge.admin_public) else { return Ok(()) };
        let address = admin.get_ref();
        if address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        let reason = "other machines could read the figures, which need no password";
        let fault = self.fault("admin", &address.to_string(), admin.span(), reason);
        Err(fault.hint("use 127.0.0.1, or say that it may be public: `admin-public = true`, --admin-public"))
    }

    /// A value that says something that cannot be.
    pub(crate) fn fault(
        &self,
        key: &str,
        value: &str,
        span: Range<usize>,
        reason: impl std::fmt::Display,
    ) -> ConfigError {
        match &self.source {
            Some(source) => {
                ConfigError::at(&source.file, &source.text, span, &format!("{key} \"{value}\": {reason}"))
            }
            // The options have the names of the keys, but for one.
            None if key == "certificate" => ConfigError::new(format!("--cert {value}: {reason}")),
            None => ConfigError::new(format!("--{key} {value}: {reason}")),
        }
    }

    /// File, line and column of a value; `None` if the command line said it.
    pub fn place(&self, span: Range<usize>) -> Option<String> {
        self.source.as_ref().map(|source| error::place(&source.file, &source.text, span))
    }

    /// Something that is missing.
    pub(crate) fn missing(&self, reason: impl std::fmt::Display) -> ConfigError {
        match &self.source {
            Some(source) => ConfigError::new(format!("{}: {reason}", source.file.display())),
            None => ConfigError::new(reason.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
