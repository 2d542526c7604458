//! The service: the site by the request's authority, the answer by its path.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use http::{StatusCode, header};
use posthaste_service::{Peer, Request, Response, text};
use tower_service::Service;

use crate::certificates::Resolver;
use crate::config::{Config, ConfigError};
use crate::hosts::normal;
use crate::routes::Route;
use crate::running::{Running, Trust};

/// A tower service that answers for all sites of a configuration. Clones share it.
#[derive(Debug, Clone)]
pub struct Edge {
    running: Arc<ArcSwap<Running>>,
    resolver: Resolver,
}

impl Edge {
    /// Builds what a configuration names, and reads its certificates.
    ///
    /// # Errors
    /// Something cannot be; where, and why.
    pub fn new(config: &Config, trust: Trust<'_>) -> Result<Self, ConfigError> {
        let (running, certificates) = Running::build(config, trust)?;
        Ok(Self { running: Arc::new(ArcSwap::from_pointee(running)), resolver: Resolver::new(certificates) })
    }

    /// Builds all of another configuration, and then uses it: requests in progress keep what they began with, the next
    /// one on the same connection has the new one. [`Config::edge`] is of no effect here.
    ///
    /// # Errors
    /// Something cannot be; where, and why. The running configuration stays.
    pub fn reload(&self, config: &Config, trust: Trust<'_>) -> Result<(), ConfigError> {
        let (running, certificates) = Running::build(config, trust)?;
        self.resolver.set(certificates);
        self.running.store(Arc::new(running));
        Ok(())
    }

    /// The certificates.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// The route of a request, or what is wrong with it.
    fn route(&self, request: &Request) -> Result<Arc<Route>, (StatusCode, &'static str)> {
        let host = host(request).ok_or((StatusCode::BAD_REQUEST, "the request does not name one host"))?;
        let server_name = request.extensions().get::<Peer>().and_then(|peer| peer.server_name.as_deref());
        if !self.resolver.covers(server_name, &host) {
            let detail = "this connection's certificate is not for that name";
            return Err((StatusCode::MISDIRECTED_REQUEST, detail));
        }
        let running = self.running.load();
        let site = running.site(&host).ok_or((StatusCode::NOT_FOUND, "there is no site of that name"))?;
        match site.routes.find(request.uri().path()) {
            Ok(Some(route)) => Ok(Arc::clone(route)),
            Ok(None) => Err((StatusCode::NOT_FOUND, "")),
            Err(_) => Err((StatusCode::BAD_REQUEST, "the path can be understood in two ways")),
        }
    }
}

impl Service<Request> for Edge {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let route = self.route(&request);
        Box::pin(async move {
            let route = match route {
                Ok(route) => route,
                Err((status, detail)) => return Ok(text(status, detail)),
            };
            let mut response = route.action.clone().answer(request).await;
            route.fields.apply(response.headers_mut());
            Ok(response)
        })
    }
}

/// The host that a request is for, in its normal form.
fn host(request: &Request) -> Option<String> {
    if let Some(authority) = request.uri().authority() {
        let is_plain = !authority.host().is_empty() && !authority.as_str().contains('@');
        return is_plain.then(|| normal(authority.host()));
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return None };
    let authority = http::uri::Authority::try_from(host.as_bytes()).ok()?;
    (!authority.host().is_empty() && !authority.as_str().contains('@')).then(|| normal(authority.host()))
}
