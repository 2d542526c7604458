//! The service: the site by the request's authority, the answer by its path.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use http::StatusCode;
use posthaste_content_coding::Compression;
use posthaste_proxy::UpstreamState;
use posthaste_service::{Coding, Peer, Remarks, Request, Response, text};
use tower_service::Service;

use crate::body_limit::{bound, too_long};
use crate::certificates::Resolver;
use crate::config::{Config, ConfigError};
use crate::early_data;
use crate::hints;
use crate::hosts::normal;
use crate::metrics::Upstreams;
use crate::request_id::{RequestIds, Told};
use crate::routes::Route;
use crate::running::{Lasting, Running, Site, Trust};

/// A tower service that answers for all sites of a configuration. Clones share it.
#[derive(Debug, Clone)]
pub struct Edge {
    running: Arc<ArcSwap<Running>>,
    resolver: Resolver,
    compression: Compression,
    upstreams: Upstreams,
    /// How many there are.
    workers: usize,
    /// Which of them this clone works for.
    worker: usize,
}

impl Edge {
    /// Builds what a configuration names, and reads its certificates.
    ///
    /// # Errors
    /// Something cannot be; where, and why.
    pub fn new(config: &Config, trust: Trust<'_>) -> Result<Self, ConfigError> {
        let compression = Compression::new(&Coding::ALL);
        let workers = usize::from(config.edge.workers.count().get());
        let upstreams = Upstreams::default();
        let lasting = Lasting { compression: &compression, workers, upstreams: &upstreams };
        let (running, certificates) = Running::build(config, trust, lasting)?;
        let running = Arc::new(ArcSwap::from_pointee(running));
        let resolver = Resolver::new(certificates);
        Ok(Self { running, resolver, compression, upstreams, workers, worker: 0 })
    }

    /// The edge for each of its [workers](Config::edge): one configuration, and connections to upstreams that belong to the
    /// worker's runtime.
    pub fn workers(&self) -> impl Iterator<Item = Self> + use<> {
        let edge = self.clone();
        (0..edge.workers).map(move |worker| Self { worker, ..edge.clone() })
    }

    /// Builds all of another configuration, and then uses it: requests in progress keep what they began with, the next
    /// one on the same connection has the new one. Of [`Config::edge`], only what concerns single requests counts here.
    ///
    /// # Errors
    /// Something cannot be; where, and why. The running configuration stays.
    pub fn reload(&self, config: &Config, trust: Trust<'_>) -> Result<(), ConfigError> {
        let (workers, upstreams) = (self.workers, &self.upstreams);
        let lasting = Lasting { compression: &self.compression, workers, upstreams };
        let (running, certificates) = Running::build(config, trust, lasting)?;
        let states = running.upstreams();
        self.resolver.set(certificates);
        self.running.store(Arc::new(running));
        self.upstreams.retain(|url| states.iter().any(|state| state.url == url));
        Ok(())
    }

    /// The certificates.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// How the upstreams of all routes are.
    pub(crate) fn upstream_states(&self) -> Vec<UpstreamState> {
        self.running.load().upstreams()
    }

    /// What upstreams were asked and how they have answered.
    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// The site of a request, or what is wrong with it.
    fn site(&self, running: &Running, request: &Request) -> Result<Arc<Site>, (StatusCode, &'static str)> {
        // Servers have checked it, and taken it from `Host` where a request has it there.
        let host = request.uri().host().map(normal);
        let host = host.ok_or((StatusCode::BAD_REQUEST, "the request does not name a host"))?;
        let server_name = request.extensions().get::<Peer>().and_then(|peer| peer.server_name.as_deref());
        if !self.resolver.covers(server_name, &host) {
            let detail = "this connection's certificate is not for that name";
            return Err((StatusCode::MISDIRECTED_REQUEST, detail));
        }
        let site = running.site(&host).ok_or((StatusCode::NOT_FOUND, "there is no site of that name"))?;
        if let Some(remarks) = request.extensions().get::<Remarks>() {
            remarks.set_site(Arc::clone(&site.name));
        }
        Ok(Arc::clone(site))
    }
}

impl Service<Request> for Edge {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let running = self.running.load_full();
        let told = identify(&running.request_ids, &mut request);
        let site = self.site(&running, &request);
        let worker = self.worker;
        Box::pin(async move {
            let mut response = match site {
                Ok(site) => answer(&site, worker, request).await,
                Err((status, detail)) => text(status, detail),
            };
            if let Some(told) = told {
                told.apply(&mut response);
            }
            Ok(response)
        })
    }
}

/// Gives the request an id, if anybody is to know of it; and the response what is returned.
fn identify(ids: &RequestIds, request: &mut Request) -> Option<Told> {
    let remarks = request.extensions().get::<Remarks>().cloned();
    if remarks.is_none() && !ids.are_told() {
        return None;
    }
    let id = ids.of(request);
    let told = ids.tell(request, &id);
    if let Some(remarks) = remarks {
        remarks.set_request_id(id);
    }
    told
}

/// What a site answers.
async fn answer(site: &Site, worker: usize, request: Request) -> Response {
    let route = match route(site, &request) {
        Ok(route) => route,
        Err((status, detail)) => return text(status, detail),
    };
    let action = route.action.clone();
    let request = match early_data::admit(site.early_data, &action, request).await {
        Ok(request) => request,
        Err((status, detail)) => return text(status, detail),
    };
    hints::send(&request, route.hints.as_ref());
    let negotiated = route.compression.negotiate(&request);
    let mut response = match site.max_body {
        None => action.answer(worker, request).await,
        Some(most) => {
            let Some((request, exceeded)) = bound(request, most) else { return too_long() };
            exceeded.instead_of(action.answer(worker, request).await)
        }
    };
    route.fields.apply(response.headers_mut());
    negotiated.apply(&mut response);
    response
}

fn route(site: &Site, request: &Request) -> Result<Arc<Route>, (StatusCode, &'static str)> {
    match site.routes.find(request.uri().path()) {
        Ok(Some(route)) => Ok(Arc::clone(route)),
        Ok(None) => Err((StatusCode::NOT_FOUND, "")),
        Err(_) => Err((StatusCode::BAD_REQUEST, "the path can be understood in two ways")),
    }
}
