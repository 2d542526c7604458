//! A configuration that was built: sites, routes, certificates.

use std::path::Path;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use posthaste_endpoint::tls;
use posthaste_http::StaticFiles;
use posthaste_proxy::{Proxy, ProxyOptions, Upstream, UpstreamError};
use rustls::client::danger::ServerCertVerifier;
use toml::Spanned;

use crate::actions::Action;
use crate::certificates::{Certificates, Loaded};
use crate::config::{Config, ConfigError, FieldRules, RouteConfig, SiteConfig, Span, Timeouts};
use crate::hosts::{self, Hosts, normal};
use crate::routes::{Fields, Route, Routes};

/// Whom an `https` upstream must be certified by: the certificates in a file, or the system's. The error is for people.
pub type Trust<'a> = &'a dyn Fn(Option<&Path>) -> Result<Arc<dyn ServerCertVerifier>, String>;

/// What the edge serves.
#[derive(Debug)]
pub(crate) struct Running {
    sites: Hosts<Arc<Site>>,
    /// Answers for names that no site has.
    default: Option<Arc<Site>>,
}

/// One site.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) routes: Routes,
}

/// The kinds of answers, as a site or a route has them.
type Answers<'a> = [(&'static str, Option<&'a Spanned<String>>); 5];

impl Running {
    /// The site of a host in its normal form.
    pub(crate) fn site(&self, host: &str) -> Option<&Arc<Site>> {
        self.sites.get(host).or(self.default.as_ref())
    }

    /// Builds all that a configuration names, and reads its certificates.
    ///
    /// # Errors
    /// Something cannot be; where, and why.
    pub(crate) fn build(config: &Config, trust: Trust<'_>) -> Result<(Self, Certificates), ConfigError> {
        if config.sites.is_empty() {
            let hint = "[site.\"example.org\"]\n  to = \"http://127.0.0.1:3000\"";
            return Err(config.missing("there is no site").hint(hint));
        }
        let mut running = Self { sites: Hosts::default(), default: None };
        let mut certificates = Certificates::default();
        // The default site first: its certificate is for clients that give no name.
        let mut sites: Vec<_> = config.sites.iter().collect();
        sites.sort_by_key(|(_, site)| !site.default);
        for (name, site) in &sites {
            let builder = Builder { config, name, site, trust };
            let names = builder.names()?;
            certificates.add(Arc::new(builder.certificate()?), &names);
            let built = Arc::new(Site { routes: Routes::new(builder.routes()?) });
            if site.default || sites.len() == 1 {
                if running.default.is_some() {
                    return Err(config.missing("two sites have `default = true`"));
                }
                running.default = Some(Arc::clone(&built));
            }
            for name in names {
                if !running.sites.add(&name, Arc::clone(&built)) {
                    return Err(config.missing(format!("two sites have the name {name}")));
                }
            }
        }
        Ok((running, certificates))
    }
}

/// Builds one site.
struct Builder<'a> {
    config: &'a Config,
    name: &'a str,
    site: &'a SiteConfig,
    trust: Trust<'a>,
}

impl Builder<'_> {
    fn missing(&self, reason: &str) -> ConfigError {
        self.config.missing(format!("site \"{}\": {reason}", self.name))
    }

    fn fault(&self, key: &str, value: &Spanned<String>, reason: impl std::fmt::Display) -> ConfigError {
        self.config.fault(key, value.get_ref(), value.span(), reason)
    }

    fn names(&self) -> Result<Vec<String>, ConfigError> {
        if !hosts::is_valid(self.name) {
            return Err(self.missing("is not a name such as example.org or *.example.org"));
        }
        let mut names = vec![normal(self.name)];
        for name in &self.site.names {
            if !hosts::is_valid(name.get_ref()) {
                return Err(self.fault("names", name, "is not a name such as www.example.org"));
            }
            names.push(normal(name.get_ref()));
        }
        Ok(names)
    }

    fn certificate(&self) -> Result<Loaded, ConfigError> {
        let Some(files) = &self.site.certificate else {
            let hint = "certificate = { chain = \"fullchain.pem\", key = \"privkey.pem\" }";
            return Err(self.missing("no certificate is named").hint(hint));
        };
        let chain = files.get_ref().chain.display().to_string();
        Loaded::read(files.get_ref())
            .map_err(|reason| self.config.fault("certificate", &chain, files.span(), reason))
    }

    fn routes(&self) -> Result<Vec<Arc<Route>>, ConfigError> {
        let site = self.site;
        let mut routes = Vec::new();
        let fields = self.fields(Fields::default(), &site.headers)?;
        let hsts = site.hsts.map(|time| format!("max-age={}", time.duration().as_secs()));
        let fields = Fields { hsts: hsts.and_then(|value| HeaderValue::try_from(value).ok()), ..fields };
        let whole = [&site.to, &site.beside, &site.files, &site.redirect, &site.reply];
        if let Some(action) = self.action(answers(whole), "/", &site.timeouts)? {
            routes.push(Arc::new(Route { path: "/".to_owned(), action, fields: fields.clone() }));
        }
        for route in &site.routes {
            let built = self.route(route, fields.clone())?;
            if routes.iter().any(|other| other.path == built.path) {
                return Err(self.fault("path", &route.path, "two answers have this path"));
            }
            routes.push(Arc::new(built));
        }
        if routes.is_empty() {
            return Err(self
                .missing("nothing answers")
                .hint("to = \"http://127.0.0.1:3000\", or beside, files, redirect or reply"));
        }
        Ok(routes)
    }

    fn route(&self, route: &RouteConfig, fields: Fields) -> Result<Route, ConfigError> {
        let path = route.path.get_ref();
        if !path.starts_with('/')
            || path.contains(['?', '#', '%'])
            || path.contains("//")
            || path.contains("/.")
        {
            return Err(self.fault("path", &route.path, "is not a path such as /assets/"));
        }
        let timeouts = route.timeouts.as_ref().unwrap_or(&self.site.timeouts);
        let all = [&route.to, &route.beside, &route.files, &route.redirect, &route.reply];
        let action = self.action(answers(all), path, timeouts)?;
        let action = action.ok_or_else(|| {
            self.fault(
                "path",
                &route.path,
                "nothing answers: to, beside, files, redirect or reply is missing",
            )
        })?;
        Ok(Route { path: path.clone(), action, fields: self.fields(fields, &route.headers)? })
    }

    fn action(
        &self,
        answers: Answers<'_>,
        path: &str,
        timeouts: &Timeouts,
    ) -> Result<Option<Action>, ConfigError> {
        let mut given = answers.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let Some((key, value)) = given.next() else { return Ok(None) };
        if let Some((other, second)) = given.next() {
            return Err(self.fault(other, second, format!("`{key}` answers here already")));
        }
        let text = value.get_ref();
        let built = match key {
            "files" => {
                let prefix = path.trim_end_matches('/').into();
                let files = StaticFiles::new(Path::new(text), false);
                files.map(|files| Action::Files { files, prefix }).map_err(|error| error.to_string())
            }
            "redirect" => Action::redirect(text),
            "reply" => Action::reply(text),
            _ => self.proxy(key, text, timeouts).map(Action::Proxy),
        };
        built.map(Some).map_err(|reason| self.fault(key, value, reason))
    }

    fn proxy(&self, key: &str, url: &str, timeouts: &Timeouts) -> Result<Proxy, String> {
        let example = if key == "beside" { "https://127.0.0.1" } else { "http://127.0.0.1:3000" };
        let example = |reason: String| format!("{reason}, for example {example}");
        let uri = url.parse::<http::Uri>().map_err(|error| example(error.to_string()))?;
        let tls = if uri.scheme_str() == Some("https") {
            let ca = self.site.ca.as_ref().map(|file| file.get_ref().as_path());
            let verifier = (self.trust)(ca)?;
            let config = tls::client_config_using(tls::crypto_provider(), verifier, &[b"http/1.1"]);
            Some(config.map_err(|error| error.to_string())?)
        } else {
            None
        };
        let upstream = Upstream::new(&uri, tls).map_err(|error: UpstreamError| example(error.to_string()))?;
        let upstream = if key == "beside" { upstream.neighbour() } else { upstream };
        let mut options = ProxyOptions::default();
        let times = [
            (&mut options.connect_timeout, timeouts.connect),
            (&mut options.head_timeout, timeouts.head),
            (&mut options.idle_timeout, timeouts.idle),
        ];
        for (option, time) in times {
            *option = time.map_or(*option, Span::duration);
        }
        Proxy::new(upstream, options).map_err(|error| error.to_string())
    }

    fn fields(&self, mut fields: Fields, rules: &FieldRules) -> Result<Fields, ConfigError> {
        let name = |name: &Spanned<String>| {
            name.get_ref()
                .parse::<HeaderName>()
                .map_err(|_| self.fault("headers", name, "is not a field's name"))
        };
        for (field, value) in &rules.set {
            let invalid = |_| self.fault("headers", value, "is not a field's value");
            let value = HeaderValue::from_str(value.get_ref()).map_err(invalid)?;
            fields.set.push((name(field)?, value));
        }
        for field in &rules.remove {
            fields.remove.push(name(field)?);
        }
        Ok(fields)
    }
}

fn answers(values: [&Option<Spanned<String>>; 5]) -> Answers<'_> {
    let [to, beside, files, redirect, reply] = values.map(Option::as_ref);
    [("to", to), ("beside", beside), ("files", files), ("redirect", redirect), ("reply", reply)]
}

#[cfg(test)]
mod tests;
