//! The servers of all workers, HTTP/3 over UDP and the older versions over TCP, on the same terms.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::OptionFuture;
use posthaste_edge::{ACME_TLS, Config, Edge, Limits, Metrics, server_over_tcp};
use posthaste_endpoint::Endpoint;
use posthaste_http::{Ended, ServerOptions, serve};
use posthaste_tcp::{TcpOptions, plain, redirection};
use tokio::net::TcpListener;

use super::sockets::{HTTPS, Post, Sockets};
use super::{limits, no_tls, systemd};
use crate::command::running::{Terms, over_quic};
use crate::command::workers::{self, Worker};
use crate::exit::Failure;

/// How long browsers may remember that HTTP/3 is on the same port.
const ALT_SVC: Duration = Duration::from_secs(24 * 60 * 60);

/// All that listens, and what it needs for TLS over TCP.
pub(super) struct Front {
    pub(super) sockets: Sockets,
    tls: Arc<rustls::ServerConfig>,
}

/// What one worker has of its own.
struct Work {
    edge: Edge,
    endpoint: Endpoint,
    listener: Option<TcpListener>,
    /// For HTTP/3 and for the older versions.
    options: (ServerOptions, TcpOptions),
}

/// What all workers may hold together.
#[derive(Clone)]
struct Budgets {
    over_quic: posthaste_http::Budget,
    over_tcp: posthaste_tcp::Budget,
}

impl Front {
    pub(super) fn new(config: &Config, edge: &Edge, sockets: Sockets) -> Result<Self, Failure> {
        let mut protocols = posthaste_tcp::ALPN.to_vec();
        // Questions of an authority.
        protocols.extend(config.edge.acme.iter().map(|_| ACME_TLS));
        let tls = server_over_tcp(edge.resolver(), &protocols, config.edge.tls_min);
        Ok(Self { sockets, tls: tls.map_err(|error| no_tls(&error))? })
    }

    /// The workers' endpoints.
    pub(super) fn endpoints(&self) -> Vec<Endpoint> {
        self.sockets.posts.iter().map(|post| post.endpoint.clone()).collect()
    }

    /// Where all workers listen.
    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        let post = self.sockets.posts.first();
        post.ok_or_else(|| io::Error::other("there is no worker"))?.endpoint.local_addr()
    }

    /// HTTP/1.1 and HTTP/2 are served.
    pub(super) fn has_tcp(&self) -> bool {
        self.sockets.posts.iter().any(|post| post.listener.is_some())
    }

    /// Where requests without TLS are sent on to `https`.
    pub(super) fn redirect_address(&self) -> Option<SocketAddr> {
        self.sockets.redirect.as_ref()?.local_addr().ok()
    }

    /// Runs all servers on the same terms, until all have ended.
    pub(super) async fn run(
        mut self,
        edge: Edge,
        limits: Limits,
        mut terms: Terms,
        metrics: Option<Metrics>,
    ) -> Result<Ended, Failure> {
        if let Some(metrics) = &metrics {
            terms.access_log = Some(metrics.counting(terms.access_log));
        }
        let draining = metrics.clone();
        // Whoever asks is told before the servers stop: they may have nothing to wait for.
        let stopping = move |()| {
            systemd::stopping();
            draining.iter().for_each(Metrics::on_draining);
        };
        terms.stop = terms.stop.map(stopping).boxed().shared();
        let redirects = self.redirects(&edge);
        let mut redirects = pin!(OptionFuture::from(redirects));
        let mut ended =
            pin!(workers::run(terms, |terms| self.works(&edge, &limits, &terms, metrics.as_ref())));
        tokio::select! {
            ended = &mut ended => ended,
            // It never ends; there may be none.
            _ = &mut redirects => ended.await,
        }
    }

    /// Sends plain HTTP on to `https`, if it has a listener.
    fn redirects(&mut self, edge: &Edge) -> Option<impl Future<Output = ()> + Send + use<>> {
        let listener = self.sockets.redirect.take()?;
        let challenges = edge.resolver().challenges().clone();
        let port = self.sockets.posts.first().and_then(|post| post.endpoint.local_addr().ok());
        let port = port.map_or(HTTPS, |address| address.port());
        let answer =
            move |request: &_| challenges.answer(request).unwrap_or_else(|| redirection(request, port));
        Some(plain(listener, answer))
    }

    fn works(
        self,
        edge: &Edge,
        limits: &Limits,
        terms: &Terms,
        metrics: Option<&Metrics>,
    ) -> Vec<(Worker, Endpoint, impl Future<Output = Ended> + Send + use<>)> {
        let (quic, tcp) = (limits::over_quic(limits), limits::over_tcp(limits));
        let budgets = Budgets {
            over_quic: posthaste_http::Budget::new(&quic),
            over_tcp: posthaste_tcp::Budget::new(&tcp),
        };
        let work = |((index, post), edge): ((usize, Post), Edge)| {
            let Post { worker, endpoint, listener } = post;
            let connection_log = metrics.map(|metrics| metrics.connections(index));
            let quic = ServerOptions { connection_log, ..quic.clone() };
            let work = Work { edge, endpoint: endpoint.clone(), listener, options: (quic, tcp.clone()) };
            (worker, endpoint, work.run(Arc::clone(&self.tls), budgets.clone(), terms.clone()))
        };
        self.sockets.posts.into_iter().enumerate().zip(edge.workers()).map(work).collect()
    }
}

impl Work {
    /// Serves until both sides have ended.
    async fn run(self, tls: Arc<rustls::ServerConfig>, budgets: Budgets, terms: Terms) -> Ended {
        let Self { edge, endpoint, listener, options: (quic, tcp) } = self;
        let server = serve(endpoint, edge.clone()).within(budgets.over_quic);
        let over_quic = over_quic(server, quic, terms.clone()).run();
        let over_tcp = async {
            let Some(listener) = listener else { return Ended::default() };
            let Terms { grace, access_log, stop, cut } = terms;
            let options = TcpOptions { grace, access_log, alt_svc: Some(ALT_SVC), ..tcp };
            let server = posthaste_tcp::serve(listener, tls, edge).within(budgets.over_tcp);
            server.options(options).until(stop).cut(cut).run().await
        };
        let (over_tcp, over_quic) = tokio::join!(over_tcp, over_quic);
        over_tcp + over_quic
    }
}
