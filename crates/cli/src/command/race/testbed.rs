//! Where runs happen: a server for each profile, and for each run a relay and a client of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use posthaste_emulator::{LatenessHistogram, RelayConfig, RelayStats, UdpRelay};
use posthaste_endpoint::{ClientConfig, Endpoint, MemoryStore, PathMemory, ServerConfig, TransportConfig};
use posthaste_http::{Client, ClientOptions, Request, Response, serve, service_fn, text};
use posthaste_lab::spec::WorkloadSpec;
use posthaste_report::result::FlowResult;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::client::{Fetcher, Player, content};
use super::plan::{Plan, Racer, Runner, Start};
use super::progress::Progress;
use super::tls::Keys;
use super::{bare, model};
use crate::exit::Failure;

/// The object's path on the servers.
pub(super) const OBJECT: &str = "/object";

/// Clients of a relay: the one that it was made for.
const RELAY_CLIENTS: usize = 1;

/// How long the first download of each server, which goes without a relay, may take.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(30);

/// What a run has shown.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) start: Start,
    /// Why it failed, if it did.
    pub(super) outcome: Result<(), String>,
    /// What its user has seen, counted from the client's first packet; the bytes of it were right. What the network has
    /// carried is not in it.
    pub(super) flow: FlowResult,
    /// What the relay has done until the last byte was there.
    pub(super) relay: RelayStats,
    pub(super) lateness: LatenessHistogram,
}

/// Servers and what clients need.
pub(super) struct Testbed {
    plan: Arc<Plan>,
    keys: Keys,
    object: Bytes,
    /// Of each racer that is not a model.
    servers: Vec<Option<Server>>,
}

struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers every request with the object.
fn answer(request: &Request, object: &Bytes) -> Response {
    match request.uri().path() {
        OBJECT => Response::new(object.clone().into()),
        _ => text(StatusCode::NOT_FOUND, ""),
    }
}

impl Testbed {
    /// Starts a server for each racer.
    pub(super) fn start(plan: &Arc<Plan>) -> Result<Self, Failure> {
        let keys = Keys::make()?;
        let object = content(plan.workload.answer().get());
        let mut testbed = Self { plan: Arc::clone(plan), keys, object, servers: Vec::new() };
        testbed.servers = plan.racers.iter().map(|racer| testbed.serve(racer)).collect::<Result<_, _>>()?;
        Ok(testbed)
    }

    /// A server that has met nobody yet. With a profile that makes use of it, it remembers its clients' paths.
    fn serve(&self, racer: &Racer) -> Result<Option<Server>, Failure> {
        let Some(transport) = racer.transport() else { return Ok(None) };
        let mut config = ServerConfig::new(self.keys.server()?, Arc::clone(transport));
        if let Some(rules) = transport.profile.history_rules() {
            config.path_memory = PathMemory::Store(Arc::new(MemoryStore::new(rules)));
        }
        let fail = |error| Failure::runtime(format!("cannot start a server on 127.0.0.1: {error}"));
        let endpoint = Endpoint::server((Ipv4Addr::LOCALHOST, 0).into(), config).map_err(fail)?;
        let address = endpoint.local_addr().map_err(fail)?;
        let object = self.object.clone();
        let task = if self.plan.is_bare {
            tokio::spawn(bare::serve(endpoint, object))
        } else {
            let service = service_fn(move |request: Request| std::future::ready(answer(&request, &object)));
            tokio::spawn(async move {
                serve(endpoint, service).await;
            })
        };
        Ok(Some(Server { address, task }))
    }

    /// One download from each server without a relay: what is slow only the first time is not measured then, and
    /// what does not work at all shows at once.
    /// Servers that would remember it are replaced: loopback is not the path that is raced over.
    pub(super) async fn warm_up(&mut self) -> Result<(), Failure> {
        let plan = Arc::clone(&self.plan);
        for (index, racer) in plan.racers.iter().enumerate() {
            let (Some(transport), Some(server)) = (racer.transport(), &self.servers[index]) else { continue };
            let mut client = self.client(transport)?;
            let object = WorkloadSpec::Bulk { object: plan.workload.answer(), read_rate: None };
            let mut player = Player::new(&object)?;
            let fetched = player.play(&mut client, server.address, &self.object, |_| {});
            let fetched = timeout(WARM_UP_TIMEOUT, fetched)
                .await
                .unwrap_or_else(|_| Err("it takes too long".to_owned()));
            client.close().await;
            fetched.map_err(|error| {
                Failure::runtime(format!("{}: a download without a relay fails: {error}", racer.name))
            })?;
            if transport.profile.history_rules().is_some() {
                self.servers[index] = self.serve(racer)?;
            }
        }
        Ok(())
    }

    /// A new client, with a socket, a session store and a transport of its own.
    fn client(&self, transport: &Arc<TransportConfig>) -> Result<Fetcher, Failure> {
        let quic = ClientConfig::new(self.keys.client()?, Arc::clone(transport));
        if self.plan.is_bare {
            return Ok(Fetcher::Bare(bare::Client::new(quic)?));
        }
        let mut options = ClientOptions::new(quic);
        options.max_redirects = 0;
        // The whole download has a deadline; no part of it has one of its own.
        options.connect_timeout = self.plan.timeout;
        options.first_byte_timeout = self.plan.timeout;
        options.idle_timeout = self.plan.timeout;
        Ok(Fetcher::Http(Client::new(options)))
    }

    /// Makes one run. Dropping the future ends it at once.
    pub(super) async fn run(&self, start: Start, progress: &Progress) -> Result<Run, Failure> {
        match (&self.plan.racers[start.racer].runner, &self.servers[start.racer]) {
            (Runner::Real(transport), Some(server)) => {
                self.download(start, transport, server, progress).await
            }
            (Runner::Model(stack), _) => {
                let run = model::run(&self.plan, stack, start).await?;
                progress.advance(start.racer, run.flow.bytes);
                Ok(run)
            }
            (Runner::Real(_), None) => Err(Failure::runtime("a profile has no server")),
        }
    }

    async fn download(
        &self,
        start: Start,
        transport: &Arc<TransportConfig>,
        server: &Server,
        progress: &Progress,
    ) -> Result<Run, Failure> {
        let config = RelayConfig {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            upstream: server.address,
            down: self.plan.path.down(),
            up: self.plan.path.up(),
            seed: start.seed,
            max_clients: RELAY_CLIENTS,
        };
        let relay = UdpRelay::start(config)
            .await
            .map_err(|error| Failure::runtime(format!("cannot start the relay: {error}")))?;
        let mut client = self.client(transport)?;
        let mut player = Player::new(&self.plan.workload.spec)?;
        let attempt = player.play(&mut client, relay.local_addr(), &self.object, |new| {
            progress.advance(start.racer, new);
        });
        let outcome = timeout(self.plan.timeout, attempt).await.unwrap_or_else(|_| {
            Err(format!("not complete after {} s", self.plan.timeout.as_secs_f64().round()))
        });
        let (stats, lateness, flow) = (relay.stats(), relay.lateness(), player.seen());
        // The servers hear that the client is leaving, over the same path; the next run need not wait for that.
        let goodbye = self.plan.path.rtt.into();
        tokio::spawn(async move {
            client.close().await;
            tokio::time::sleep(goodbye).await;
            relay.shutdown().await;
        });
        Ok(Run { start, outcome, flow, relay: stats, lateness })
    }
}

#[cfg(test)]
mod tests;
