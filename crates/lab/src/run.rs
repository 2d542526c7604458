//! One run from its description: builds the world, runs it, and collects what it has shown.

use std::sync::Arc;

use posthaste_path::ConfigError;
use posthaste_transport::{MemoryStore, PathMemory};
use posthaste_units::{Duration, Time};

use crate::apps::{self, Responder, Stage, Warmed};
use crate::measure::Arrivals;
use crate::network::{Network, Route};
use crate::peers::{Settings, Tokens, Traces};
use crate::result::{DirectionResult, FlowResult, LinkResult, Outcome, RunResult, Series};
use crate::spec::{FlowSpec, RunSpec, WarmUpClient, WarmUpSession, WarmUpSpec, WorkloadSpec};
use crate::tls::{self, Returning};
use crate::world::{End, World};

/// Why a run could not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A link cannot be as described.
    #[error("a link of the network: {0}")]
    Link(#[from] ConfigError),
    /// A workload cannot be as described.
    #[error("flow `{flow}`: {error}")]
    Workload {
        /// The flow's name.
        flow: String,
        /// What is wrong.
        error: apps::WorkloadError,
    },
    /// A run without flows shows nothing.
    #[error("`flows` is empty: a run needs at least one flow")]
    NoFlows,
}

/// A flow as it was built: the indices of its parts.
struct Flow<'a> {
    spec: &'a FlowSpec,
    name: String,
    app: usize,
    clients: Vec<usize>,
    servers: Vec<usize>,
}

/// Runs `spec` with `seed`. The same arguments give the same result, bit for bit, on every machine, if every stack
/// in it does ([`crate::peers::Stack`]).
///
/// # Errors
/// If the run cannot be built; a run that does not finish is a result, see [`Outcome`].
pub fn run(spec: &RunSpec, seed: u64, qlog: Option<Traces>) -> Result<RunResult, RunError> {
    if spec.flows.is_empty() {
        return Err(RunError::NoFlows);
    }
    let mut world = World::new(seed);
    let settings = Settings { max_datagram_size: spec.datagram, qlog, ..Settings::default() };
    let started = RunSpec { network: spec.network.started(seed), ..spec.clone() };
    let network = Network::build(&started.network, &mut world)?;
    let mut flows = Vec::new();
    for flow in &spec.flows {
        for copy in 0..flow.count {
            flows.push(build(flow, copy, (flows.len(), seed), &network, &settings, &mut world)?);
        }
    }
    if let Some(interval) = spec.series {
        world.sample_every(interval);
    }
    let end = world.run(Time::ZERO + spec.deadline);
    let mut result = collect(seed, end, &flows, world);
    if spec.network.begins_anywhere() {
        result.limit = crate::limit::limit(&started).map(|limit| limit.seconds);
    }
    Ok(result)
}

fn build<'a>(
    spec: &'a FlowSpec,
    copy: u32,
    (index, seed): (usize, u64),
    network: &Network,
    settings: &Settings,
    world: &mut World,
) -> Result<Flow<'a>, RunError> {
    let route = network.route(index, world)?;
    let base = if spec.name.is_empty() { spec.stack.to_string() } else { spec.name.clone() };
    let name = if spec.count == 1 { base } else { format!("{base} {}", copy + 1) };
    let wrong = |error| RunError::Workload { flow: name.clone(), error };
    let start = Time::ZERO + spec.start + drawn_within(spec.start_within, world);
    let (app, clients, servers) = if let Some((warm_up, settings)) = returning(spec, settings) {
        let (mut stages, all) = warm_ups(spec, warm_up, &route, (&settings, seed), world)?;
        let (clients, servers) = connect(spec, &spec.workload, &route, &settings, world);
        let rng = world.rng().fork();
        stages.push(Stage { workload: spec.workload.clone(), clients: clients.clone(), rng });
        let first = warm_up.start.map_or(start, |first| Time::ZERO + first);
        let app = Warmed::new(stages, first, start, warm_up.pause).map_err(wrong)?;
        let app = world.add_app(Box::new(app), &[&all[..], &clients].concat());
        (app, clients, servers)
    } else {
        let (clients, servers) = connect(spec, &spec.workload, &route, settings, world);
        let rng = world.rng().fork();
        let app = apps::client(&spec.workload, &clients, start, rng).map_err(wrong)?;
        (world.add_app(app, &clients), clients, servers)
    };
    world.set_background(app, spec.background);
    world.add_app(Box::new(Responder::default()), &servers);
    Ok(Flow { spec, name, app, clients, servers })
}

/// A time from nothing to `most`. Nothing is drawn where there is nothing to draw: other runs stay as they are.
fn drawn_within(most: Duration, world: &mut World) -> Duration {
    if most.is_zero() { Duration::ZERO } else { Duration::from_nanos(world.rng().below(most.as_nanos())) }
}

/// The warm-up of a flow whose stack makes something of it, and what all its connections share.
fn returning<'a>(spec: &'a FlowSpec, settings: &Settings) -> Option<(&'a WarmUpSpec, Settings)> {
    let warm_up = spec.warm_up.as_ref()?;
    let mut settings = settings.clone();
    let rules = spec.stack.history_rules();
    let session = match warm_up.session {
        WarmUpSession::None => None,
        WarmUpSession::Resumed => Some(Returning::Resuming),
        WarmUpSession::Early => Some(Returning::Early),
    };
    if rules.is_none() && session.is_none() {
        return None;
    }
    if let Some(rules) = rules {
        settings.path_memory = PathMemory::Store(Arc::new(MemoryStore::new(rules)));
    }
    if let Some(returning) = session {
        settings.tls = tls::ticketing(returning, Arc::default());
        settings.tokens = Some(Arc::new(Tokens::default()));
    }
    Some((warm_up, settings))
}

/// Adds the connections that a client with this workload needs: its hosts and the servers'.
fn connect(
    spec: &FlowSpec,
    workload: &WorkloadSpec,
    route: &Route,
    settings: &Settings,
    world: &mut World,
) -> (Vec<usize>, Vec<usize>) {
    let count = workload.connections(&spec.stack);
    let add = |_| {
        let pair = spec.stack.pair(settings, world.rng());
        world.add_connection(pair, &route.up, &route.down)
    };
    (0..count).map(add).unzip()
}

/// Adds the connections before the one that is measured: a stage each, and all their clients' hosts.
fn warm_ups(
    spec: &FlowSpec,
    warm_up: &WarmUpSpec,
    route: &Route,
    (settings, seed): (&Settings, u64),
    world: &mut World,
) -> Result<(Vec<Stage>, Vec<usize>), RunError> {
    let own =
        warm_up.path.as_ref().map(|path| Route::alone("warm-up", &path.started(seed), world)).transpose()?;
    let route = own.as_ref().unwrap_or(route);
    let client_number = match warm_up.client {
        WarmUpClient::Same => settings.client_number,
        WarmUpClient::Neighbour => settings.client_number + 1,
    };
    let settings = Settings { client_number, ..settings.clone() };
    let workload = warm_up.workload.as_ref().unwrap_or(&spec.workload);
    let (mut stages, mut all) = (Vec::new(), Vec::new());
    for _ in 0..warm_up.connections {
        let (clients, servers) = connect(spec, workload, route, &settings, world);
        world.add_app(Box::new(Responder::default()), &servers);
        all.extend(&clients);
        let rng = world.rng().fork();
        stages.push(Stage { workload: workload.clone(), clients, rng });
    }
    Ok((stages, all))
}

fn collect(seed: u64, end: End, flows: &[Flow<'_>], mut world: World) -> RunResult {
    let now = world.now();
    let outcome = match end {
        End::Completed => Outcome::Completed,
        End::Deadline => Outcome::Deadline,
        End::Stuck(reason) => Outcome::Failed(reason),
        End::Failed(app) => {
            let flow = flows.iter().find(|flow| flow.app == app).map_or("a server", |flow| &flow.name);
            let reason = world.app(app).report().failure.unwrap_or_default();
            Outcome::Failed(format!("{flow}: {reason}"))
        }
    };
    let series = series(flows, &mut world);
    RunResult {
        seed,
        outcome,
        virtual_seconds: now.as_secs_f64(),
        limit: None,
        trace_hash: world.trace_hash(),
        packets: world.packets(),
        flows: flows.iter().map(|flow| flow_result(flow, &world)).collect(),
        links: world.links.iter().map(link_result).collect(),
        series,
    }
}

fn series(flows: &[Flow<'_>], world: &mut World) -> Option<Series> {
    let sampler = world.sampler.take()?;
    let mut names = vec![None; world.hosts.len()];
    // A connection's sender of interest is its server; several connections are numbered.
    for flow in flows {
        for (index, &server) in flow.servers.iter().enumerate() {
            let suffix = if flow.servers.len() > 1 { format!(" #{}", index + 1) } else { String::new() };
            names[server] = Some(format!("{}{suffix}", flow.name));
        }
    }
    let links: Vec<String> = world.links.iter().map(|link| link.name.clone()).collect();
    Some(sampler.into_series(&names, &links))
}

fn flow_result(flow: &Flow<'_>, world: &World) -> FlowResult {
    FlowResult {
        name: flow.name.clone(),
        stack: flow.spec.stack.to_string(),
        is_background: flow.spec.background,
        down: direction(&flow.servers, world),
        up: direction(&flow.clients, world),
        ..world.app(flow.app).report().flow(world.now())
    }
}

/// What the hosts have sent, all together.
fn direction(senders: &[usize], world: &World) -> DirectionResult {
    let hosts = || senders.iter().map(|&index| &world.hosts[index]);
    let mut result = Arrivals::summarise(hosts().map(|host| &host.arrivals));
    let under_way: u64 = senders.iter().map(|&index| world.under_way_from(index)).sum();
    result.packets_lost = result.packets_sent.saturating_sub(result.originals_received + under_way);
    result.counters = hosts()
        .map(|host| host.peer.counters(world.now()))
        .fold(None, |sum, more| Some(sum.map_or(more, |sum: crate::peer::Counters| sum.plus(&more))))
        .unwrap_or_default();
    if let [one] = senders
        && let Some(moves) = world.hosts[*one].peer.credit_moves()
    {
        result.credit_updates = moves.updates;
        result.window_reached = Some(moves.reached);
    }
    result.blocked_seconds = result.counters.blocked_nanos.map(|nanos| nanos as f64 / 1e9);
    result
}

fn link_result(link: &crate::world::Link) -> LinkResult {
    LinkResult::of(link.name.clone(), &link.path.stats())
}
