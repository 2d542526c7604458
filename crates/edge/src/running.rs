//! A configuration that was built: sites, routes, certificates.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use posthaste_content_coding::Compression;
use posthaste_endpoint::ByteCount;
use posthaste_http::StaticFiles;
use posthaste_proxy::ipnet::IpNet;
use posthaste_proxy::{Proxy, UpstreamState};
use posthaste_service::{Coding, UnknownCoding};
use rustls::client::danger::ServerCertVerifier;
use toml::Spanned;

use self::upstreams::Terms;
use crate::actions::Action;
use crate::certificates::{Certificates, Loaded};
use crate::config::{Config, ConfigError, EarlyDataUse, FieldRules, RouteConfig, SiteConfig, Targets};
use crate::hints;
use crate::hosts::{self, Hosts, normal};
use crate::metrics::Upstreams;
use crate::request_id::{RequestIds, Rules};
use crate::routes::{Fields, Route, Routes};

/// Whom an `https` upstream must be certified by: the certificates in a file, or the system's. The error is for people.
pub type Trust<'a> = &'a dyn Fn(Option<&Path>) -> Result<Arc<dyn ServerCertVerifier>, String>;

/// What the edge serves.
#[derive(Debug)]
pub(crate) struct Running {
    sites: Hosts<Arc<Site>>,
    /// Answers for names that no site has.
    default: Option<Arc<Site>>,
    pub(crate) request_ids: RequestIds,
}

/// One site.
#[derive(Debug)]
pub(crate) struct Site {
    /// As the configuration has it.
    pub(crate) name: Arc<str>,
    /// Bytes of a request's body.
    pub(crate) max_body: Option<u64>,
    pub(crate) early_data: EarlyDataUse,
    pub(crate) routes: Routes,
}

/// What outlives reloads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lasting<'a> {
    /// Whose encoders all sites share.
    pub(crate) compression: &'a Compression,
    pub(crate) workers: usize,
    pub(crate) upstreams: &'a Upstreams,
}

/// What a site or a route says of its answer.
#[derive(Clone, Copy)]
struct Answer<'a> {
    key: &'static str,
    /// One, unless they are URLs of upstreams.
    texts: &'a [String],
    /// Where it is written, from and to.
    place: (usize, usize),
}

/// The kinds of answers, as a site or a route has them.
type Answers<'a> = [Option<Answer<'a>>; 5];

impl Running {
    /// The site of a host in its normal form.
    pub(crate) fn site(&self, host: &str) -> Option<&Arc<Site>> {
        self.sites.get(host).or(self.default.as_ref())
    }

    /// How the upstreams of all routes are.
    pub(crate) fn upstreams(&self) -> Vec<UpstreamState> {
        let routes = self.sites.values().flat_map(|site| site.routes.all());
        // A site with several names comes as often.
        let routes: BTreeMap<_, _> = routes.map(|route| (Arc::as_ptr(route), route)).collect();
        let proxies = routes.values().filter_map(|route| match &route.action {
            // All workers know the same.
            Action::Proxy(proxies) => proxies.first(),
            _ => None,
        });
        proxies.flat_map(Proxy::upstreams).collect()
    }

    /// Builds all that a configuration names, and reads its certificates.
    ///
    /// # Errors
    /// Something cannot be; where, and why.
    pub(crate) fn build(
        config: &Config,
        trust: Trust<'_>,
        lasting: Lasting<'_>,
    ) -> Result<(Self, Certificates), ConfigError> {
        if config.sites.is_empty() {
            let hint = "[site.\"example.org\"]\n  to = \"http://127.0.0.1:3000\"";
            return Err(config.missing("there is no site").hint(hint));
        }
        config.check_admin()?;
        let trusted = trusted(config)?;
        let request_ids = RequestIds::new(id_rules(config, &trusted)?);
        let mut running = Self { sites: Hosts::default(), default: None, request_ids };
        let mut certificates = Certificates::default();
        // The default site first: its certificate is for clients that give no name.
        let mut sites: Vec<_> = config.sites.iter().collect();
        sites.sort_by_key(|(_, site)| !site.default);
        for (name, site) in &sites {
            let builder = Builder { config, name, site, trust, trusted: &trusted, lasting };
            let names = builder.names()?;
            if let Some(loaded) = builder.certificate(&names)? {
                certificates.add(Arc::new(loaded), &names);
            }
            let max_body = site.max_body.or(config.edge.limits.body.as_ref().map(|size| *size.get_ref()));
            let built = Arc::new(Site {
                name: name.as_str().into(),
                max_body: max_body.map(ByteCount::get),
                early_data: site.early_data,
                routes: Routes::new(builder.routes()?),
            });
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

/// Networks of clients that are proxies themselves.
fn trusted(config: &Config) -> Result<Vec<IpNet>, ConfigError> {
    let network = |value: &Spanned<String>| {
        let text = value.get_ref();
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map_err(|_| {
            let reason = "is not a network such as 10.0.0.0/8 or 2001:db8::1";
            config.fault("trusted", text, value.span(), reason)
        })
    };
    config.edge.trusted.iter().map(network).collect()
}

fn id_rules(config: &Config, trusted: &[IpNet]) -> Result<Option<Rules>, ConfigError> {
    let Some(ids) = &config.edge.request_id else { return Ok(None) };
    let name = ids.header.get_ref();
    let invalid = |reason: &str| config.fault("header", name, ids.header.span(), reason);
    let header: HeaderName = name.parse().map_err(|_| invalid("is not a field's name"))?;
    if !header.as_str().ends_with("-id") {
        return Err(invalid("is not the name of an id, such as x-request-id or x-correlation-id"));
    }
    if ids.accept && trusted.is_empty() {
        return Err(invalid("`accept = true` needs `trusted`, the networks whose ids are taken over"));
    }
    let accept_from = if ids.accept { trusted.to_vec() } else { Vec::new() };
    Ok(Some(Rules { header, accept_from, upstream: ids.upstream, response: ids.response }))
}

/// Builds one site.
struct Builder<'a> {
    config: &'a Config,
    name: &'a str,
    site: &'a SiteConfig,
    trust: Trust<'a>,
    trusted: &'a [IpNet],
    lasting: Lasting<'a>,
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
        let mut names = vec![normal(self.name).into_owned()];
        for name in &self.site.names {
            if !hosts::is_valid(name.get_ref()) {
                return Err(self.fault("names", name, "is not a name such as www.example.org"));
            }
            names.push(normal(name.get_ref()).into_owned());
        }
        Ok(names)
    }

    /// `None` where the authority has not given one yet.
    fn certificate(&self, names: &[String]) -> Result<Option<Loaded>, ConfigError> {
        let Some(files) = &self.site.certificate else { return self.certified(names) };
        let chain = files.get_ref().chain.display().to_string();
        Loaded::read(files.get_ref())
            .map(Some)
            .map_err(|reason| self.config.fault("certificate", &chain, files.span(), reason))
    }

    /// The certificate that an authority has given.
    fn certified(&self, names: &[String]) -> Result<Option<Loaded>, ConfigError> {
        let Some(acme) = &self.config.edge.acme else {
            let hint = "certificate = { chain = \"fullchain.pem\", key = \"privkey.pem\" }, or [edge.acme]";
            return Err(self.missing("no certificate is named").hint(hint));
        };
        if let Some(name) = names.iter().find(|name| name.starts_with('*') || name.parse::<IpAddr>().is_ok())
        {
            let reason = format!("{name} cannot be certified by [edge.acme]: it certifies single host names");
            return Err(self.missing(&reason).hint("name the files of its certificate"));
        }
        if let Some(name) = names.iter().find(|name| acme.get_ref().is_public() && !name.contains('.')) {
            let reason = format!("no public authority certifies {name}");
            return Err(self
                .missing(&reason)
                .hint("name the files of its certificate: --cert and --key, or `certificate`"));
        }
        if self.config.has_neighbour() {
            let reason = "with `beside`, the authority's questions go to the server on the TCP port";
            return Err(self.missing(reason).hint("name the files of that server's certificate"));
        }
        let directory = &acme.get_ref().directory;
        if !directory.starts_with("https://") {
            return Err(self.missing(&format!("the authority's directory {directory} is no https URL")));
        }
        let files = acme.get_ref().files(self.name);
        if !files.chain.exists() {
            return Ok(None);
        }
        // What cannot be read is asked for again.
        let kept = |reason: &String| tracing::warn!(reason, "a certificate that was kept cannot be used");
        Ok(Loaded::read(&files).inspect_err(kept).ok())
    }

    fn routes(&self) -> Result<Vec<Arc<Route>>, ConfigError> {
        let site = self.site;
        let mut routes = Vec::new();
        let fields = self.fields(Fields::default(), &site.headers)?;
        let hsts = site.hsts.map(|time| format!("max-age={}", time.duration().as_secs()));
        let fields = Fields { hsts: hsts.and_then(|value| HeaderValue::try_from(value).ok()), ..fields };
        let whole = answers(site.to.as_ref(), [&site.beside, &site.files, &site.redirect, &site.reply]);
        let terms = Terms {
            timeouts: &site.timeouts,
            health: site.health.as_ref(),
            precompressed: site.precompressed,
        };
        if let Some(action) = self.action(whole, "/", terms)? {
            let compression = self.compression(site.compress.as_deref())?;
            let hints = self.hints(site.early_hints.as_deref())?;
            let route = Route { path: "/".to_owned(), action, fields: fields.clone(), compression, hints };
            routes.push(Arc::new(route));
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
        let terms = Terms {
            timeouts,
            health: route.health.as_ref().or(self.site.health.as_ref()),
            precompressed: route.precompressed.unwrap_or(self.site.precompressed),
        };
        let all = answers(route.to.as_ref(), [&route.beside, &route.files, &route.redirect, &route.reply]);
        let action = self.action(all, path, terms)?;
        let action = action.ok_or_else(|| {
            self.fault(
                "path",
                &route.path,
                "nothing answers: to, beside, files, redirect or reply is missing",
            )
        })?;
        let fields = self.fields(fields, &route.headers)?;
        let compression = self.compression(route.compress.as_deref().or(self.site.compress.as_deref()))?;
        let hints = self.hints(route.early_hints.as_deref().or(self.site.early_hints.as_deref()))?;
        Ok(Route { path: path.clone(), action, fields, compression, hints })
    }

    /// The fields of these links.
    fn hints(&self, links: Option<&[Spanned<String>]>) -> Result<Option<HeaderMap>, ConfigError> {
        let links = links.unwrap_or_default();
        hints::links(links.iter().map(|link| link.get_ref().as_str())).map_err(|at| {
            let reason = "is not a link such as \"</style.css>; rel=preload; as=style\"";
            self.fault("early-hints", &links[at], reason)
        })
    }

    /// By the codings of these names; by all if nothing is said.
    fn compression(&self, names: Option<&[Spanned<String>]>) -> Result<Compression, ConfigError> {
        let compression = self.lasting.compression;
        let Some(names) = names else { return Ok(compression.with_codings(&Coding::ALL)) };
        let coding = |name: &Spanned<String>| {
            name.get_ref().parse().map_err(|unknown: UnknownCoding| self.fault("compress", name, unknown))
        };
        let codings = names.iter().map(coding).collect::<Result<Vec<_>, _>>()?;
        Ok(compression.with_codings(&codings))
    }

    fn action(
        &self,
        answers: Answers<'_>,
        path: &str,
        terms: Terms<'_>,
    ) -> Result<Option<Action>, ConfigError> {
        let mut given = answers.into_iter().flatten();
        let Some(answer) = given.next() else { return Ok(None) };
        let fault = |answer: Answer<'_>, reason: String| {
            let place = answer.place.0..answer.place.1;
            self.config.fault(answer.key, &answer.texts.join(", "), place, reason)
        };
        if let Some(second) = given.next() {
            return Err(fault(second, format!("`{}` answers here already", answer.key)));
        }
        let text = answer.texts.first().map_or("", String::as_str);
        let built = match answer.key {
            "files" => {
                let prefix = path.trim_end_matches('/').into();
                let files = StaticFiles::new(Path::new(text), false).map_err(|error| error.to_string());
                let files = files.map(|it| if terms.precompressed { it.with_precompressed() } else { it });
                files.map(|files| Action::Files { files, prefix })
            }
            "redirect" => Action::redirect(text),
            "reply" => Action::reply(text),
            key => {
                let health = self.health(terms.health)?;
                self.proxies(key, answer.texts, terms.timeouts, health).map(Action::Proxy)
            }
        };
        built.map(Some).map_err(|reason| fault(answer, reason))
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

fn answers<'a>(to: Option<&'a Spanned<Targets>>, others: [&'a Option<Spanned<String>>; 4]) -> Answers<'a> {
    let place = |span: Range<usize>| (span.start, span.end);
    let to = to.map(|to| Answer { key: "to", texts: to.get_ref().urls(), place: place(to.span()) });
    let [beside, files, redirect, reply] = others.map(Option::as_ref);
    let text = |key, value: Option<&'a Spanned<String>>| {
        let texts = |value: &'a Spanned<String>| std::slice::from_ref(value.get_ref());
        value.map(|value| Answer { key, texts: texts(value), place: place(value.span()) })
    };
    [to, text("beside", beside), text("files", files), text("redirect", redirect), text("reply", reply)]
}

mod upstreams;

#[cfg(test)]
mod tests;
