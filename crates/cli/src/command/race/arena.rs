//! Where runs happen: a server for each profile, and for each run a relay and a client of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{StatusCode, Uri};
use posthaste_emulator::{LatenessHistogram, RelayConfig, RelayStats, UdpRelay};
use posthaste_endpoint::{ClientConfig, Endpoint, MemoryStore, PathMemory, ServerConfig, TransportConfig};
use posthaste_http::{Client, ClientOptions, Request, Response, serve, service_fn, text};
use posthaste_units::Rng;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::plan::{Plan, Racer, Runner, Start};
use super::progress::Progress;
use super::tls::Keys;
use super::{bare, model};
use crate::exit::Failure;

/// The object's path on the servers.
const OBJECT: &str = "/object";

/// Clients of a relay: the one that it was made for.
const RELAY_CLIENTS: usize = 1;

/// How long the first download of each server, which goes without a relay, may take.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(30);

/// What a run has shown.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) start: Start,
    /// Times, or why it failed.
    pub(super) outcome: Result<Times, String>,
    /// Bytes of the body that arrived and were right.
    pub(super) bytes: u64,
    /// What the relay has done until the last byte was there.
    pub(super) relay: RelayStats,
    pub(super) lateness: LatenessHistogram,
}

/// From the client's first packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// To the end of its handshake.
    pub(super) connect: Duration,
    /// To the response's head.
    pub(super) first_byte: Duration,
    /// To the last byte of the body.
    pub(super) total: Duration,
}

/// Servers and what clients need.
pub(super) struct Arena {
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

impl Arena {
    /// Starts a server for each racer.
    pub(super) fn start(plan: &Arc<Plan>) -> Result<Self, Failure> {
        let keys = Keys::make()?;
        let mut content = vec![0; plan.object.get() as usize];
        // Any content will do that is nowhere like itself: what arrives in the wrong place must show.
        Rng::from_test_seed(0).fill(&mut content);
        let mut arena =
            Self { plan: Arc::clone(plan), keys, object: Bytes::from(content), servers: Vec::new() };
        arena.servers = plan.racers.iter().map(|racer| arena.serve(racer)).collect::<Result<_, _>>()?;
        Ok(arena)
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
            let client = self.client(transport)?;
            let fetched = self.fetch(&client, server.address, |_| {});
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
                progress.advance(start.racer, run.bytes);
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
        let client = self.client(transport)?;
        let mut bytes = 0;
        let attempt = self.fetch(&client, relay.local_addr(), |new| {
            bytes += new;
            progress.advance(start.racer, new);
        });
        let outcome = timeout(self.plan.timeout, attempt).await.unwrap_or_else(|_| {
            Err(format!("not complete after {} s", self.plan.timeout.as_secs_f64().round()))
        });
        let (stats, lateness) = (relay.stats(), relay.lateness());
        // The servers hear that the client is leaving, over the same path; the next run need not wait for that.
        let goodbye = self.plan.path.rtt.into();
        tokio::spawn(async move {
            client.close().await;
            tokio::time::sleep(goodbye).await;
            relay.shutdown().await;
        });
        Ok(Run { start, outcome, bytes, relay: stats, lateness })
    }

    /// Downloads the object and compares it; tells of every piece that is right.
    async fn fetch(
        &self,
        client: &Fetcher,
        server: SocketAddr,
        advance: impl FnMut(u64),
    ) -> Result<Times, String> {
        let mut arriving = Arriving { object: &self.object, length: 0, advance };
        let times = match client {
            Fetcher::Http(client) => fetch_http(client, server, &mut arriving).await,
            Fetcher::Bare(client) => client.fetch(server, &mut arriving).await,
        }?;
        match self.object.len() - arriving.length {
            0 => Ok(times),
            missing => Err(format!("{missing} bytes are missing at the end")),
        }
    }
}

/// One of the ways to download.
enum Fetcher {
    Http(Client),
    Bare(bare::Client),
}

impl Fetcher {
    async fn close(&self) {
        match self {
            Self::Http(client) => client.close().await,
            Self::Bare(client) => client.close().await,
        }
    }
}

/// A body that is compared while it arrives.
pub(super) struct Arriving<'a, F> {
    object: &'a [u8],
    /// Bytes that were right.
    length: usize,
    /// Told of every piece that is right.
    advance: F,
}

impl<F: FnMut(u64)> Arriving<'_, F> {
    /// The next piece of the body.
    pub(super) fn add(&mut self, chunk: &[u8]) -> Result<(), String> {
        if !self.object[self.length..].starts_with(chunk) {
            return Err(format!("what arrived after byte {} is not what was sent", self.length));
        }
        self.length += chunk.len();
        (self.advance)(chunk.len() as u64);
        Ok(())
    }
}

async fn fetch_http(
    client: &Client,
    server: SocketAddr,
    arriving: &mut Arriving<'_, impl FnMut(u64)>,
) -> Result<Times, String> {
    let uri: Uri = format!("https://{server}{OBJECT}").parse().map_err(|error| format!("{error}"))?;
    let started = Instant::now();
    let mut response = client.get(&uri).await.map_err(|error| error.to_string())?;
    let first_byte = started.elapsed();
    if !response.status().is_success() {
        return Err(format!("the server answers {}", response.status()));
    }
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        arriving.add(&chunk)?;
    }
    let total = started.elapsed();
    let connect = response.connection().handshake.unwrap_or(first_byte);
    Ok(Times { connect, first_byte, total })
}

#[cfg(test)]
mod tests;
