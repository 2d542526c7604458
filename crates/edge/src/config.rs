//! The configuration: what a file or the command line says.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toml::Spanned;

mod error;
mod span;

pub use error::ConfigError;
pub use span::Span;

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
    /// Profile, the bundle of policies. Default `mobile`.
    pub profile: String,
    /// Time for requests in progress when the edge stops. Default 10 s.
    pub grace: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 443),
            redirect: None,
            profile: "mobile".to_owned(),
            grace: Span::from_secs(10),
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
    /// The certificate's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Spanned<CertificateFiles>>,
    /// The site also answers for names that no site has and its certificate covers. The only site does so, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub default: bool,
    /// URL of an application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Spanned<String>>,
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
    /// Time for which browsers use only https (`strict-transport-security`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hsts: Option<Span>,
    /// Response fields of all routes.
    #[serde(default, skip_serializing_if = "FieldRules::is_empty")]
    pub headers: FieldRules,
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
    /// As at a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Spanned<String>>,
    /// A directory; files are looked up without the route's path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Spanned<String>>,
    /// As at a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Spanned<String>>,
    /// As at a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Spanned<String>>,
    /// As at a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Spanned<String>>,
    /// Response fields, after those of the site.
    #[serde(default, skip_serializing_if = "FieldRules::is_empty")]
    pub headers: FieldRules,
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
                Ok(Self { source: Some(Arc::new(Source { file: file.to_owned(), text })), ..config })
            }
            Err(error) => Err(ConfigError::of_toml(file, &text, &error)),
        }
    }

    /// The file that says the same.
    pub fn to_toml(&self) -> String {
        // All keys are strings, and tables come last: it can be written.
        toml::to_string(self).unwrap_or_default()
    }

    /// Whether a site has a server of its own next to the edge, which then owns the TCP port.
    pub fn has_neighbour(&self) -> bool {
        let is_beside = |site: &SiteConfig| {
            site.beside.is_some() || site.routes.iter().any(|route| route.beside.is_some())
        };
        self.sites.values().any(is_beside)
    }

    /// The URLs of all servers behind the edge, each once.
    pub fn upstreams(&self) -> Vec<&str> {
        let sites = self.sites.values();
        let routes = sites.clone().flat_map(|site| &site.routes).flat_map(|route| [&route.to, &route.beside]);
        let all = sites.flat_map(|site| [&site.to, &site.beside]).chain(routes).flatten();
        let all: BTreeSet<_> = all.map(|url| url.get_ref().as_str()).collect();
        all.into_iter().collect()
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
