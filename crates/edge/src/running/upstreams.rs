//! Upstreams of a route.

use std::sync::Arc;

use http::Uri;
use http::uri::PathAndQuery;
use posthaste_proxy::{HealthCheck, Proxy, ProxyOptions, Upstream, UpstreamError};
use toml::Spanned;

use super::Builder;
use crate::config::{ConfigError, HealthConfig, Span, Timeouts};
use crate::tls;

/// How upstreams are treated.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) timeouts: &'a Timeouts,
    pub(super) health: Option<&'a Spanned<HealthConfig>>,
    /// Of files.
    pub(super) precompressed: bool,
}

impl Builder<'_> {
    /// # Errors
    /// The path is none.
    pub(super) fn health(
        &self,
        config: Option<&Spanned<HealthConfig>>,
    ) -> Result<Option<HealthCheck>, ConfigError> {
        let Some(config) = config else { return Ok(None) };
        let HealthConfig { path, every, timeout, failures } = config.get_ref();
        let fault = |reason: &str| self.config.fault("health", path, config.span(), reason);
        let path = path.parse::<PathAndQuery>().ok().filter(|path| path.as_str().starts_with('/'));
        let path = path.ok_or_else(|| fault("is not a path such as /healthz"))?;
        if *failures == 0 {
            return Err(fault("`failures` is at least 1"));
        }
        let (every, timeout) = (every.duration(), timeout.duration());
        Ok(Some(HealthCheck { path, every, timeout, failures: *failures }))
    }

    /// One for each worker.
    ///
    /// # Errors
    /// What is wrong with the URLs.
    pub(super) fn proxies(
        &self,
        key: &str,
        urls: &[String],
        timeouts: &Timeouts,
        health: Option<HealthCheck>,
    ) -> Result<Arc<[Proxy]>, String> {
        if urls.is_empty() {
            return Err("the list has no URL".to_owned());
        }
        let upstreams = urls.iter().map(|url| self.upstream(key, url));
        let upstreams = upstreams.collect::<Result<Vec<_>, _>>()?;
        let mut options = ProxyOptions { trusted: self.trusted.to_vec(), ..ProxyOptions::default() };
        options.health = health;
        let times = [
            (&mut options.connect_timeout, timeouts.connect),
            (&mut options.head_timeout, timeouts.head),
            (&mut options.idle_timeout, timeouts.idle),
            (&mut options.tunnel_timeout, timeouts.websocket),
        ];
        for (option, time) in times {
            *option = time.map_or(*option, Span::duration);
        }
        let first = Proxy::balanced(upstreams, options).map_err(|error| error.to_string())?;
        Ok((0..self.lasting.workers)
            .map(|worker| if worker == 0 { first.clone() } else { first.another() })
            .collect())
    }

    fn upstream(&self, key: &str, url: &str) -> Result<Upstream, String> {
        let example = if key == "beside" { "https://127.0.0.1" } else { "http://127.0.0.1:3000" };
        let uri = url.parse::<Uri>().ok();
        let tls = if uri.is_some_and(|uri| uri.scheme_str() == Some("https")) {
            let ca = self.site.ca.as_ref().map(|file| file.get_ref().as_path());
            let verifier = (self.trust)(ca)?;
            Some(tls::upstream(verifier).map_err(|error| error.to_string())?)
        } else {
            None
        };
        let upstream = Upstream::parse(url, tls)
            .map_err(|error: UpstreamError| format!("{error}, for example {example}"))?;
        let log = self.lasting.upstreams.log(&upstream.to_string());
        let upstream = upstream.observed(log);
        Ok(if key == "beside" { upstream.neighbour() } else { upstream })
    }
}
