//! A run's client: what its workload asks for, when it does, and what its user sees of that. What it asks for is the
//! lab's plan of the workload, so that real and virtual players are one.

use std::net::SocketAddr;

use bytes::Bytes;
use http::Uri;
use posthaste_http::Client;
use posthaste_lab::apps::{self, AppReport, Exchange, Next};
use posthaste_lab::spec::WorkloadSpec;
use posthaste_report::result::FlowResult;
use posthaste_units::Time;
use tokio::time::{Instant, sleep_until};

use super::bare;
use super::testbed::OBJECT;
use crate::exit::Failure;

/// One of the ways to download.
pub(super) enum Fetcher {
    Http(Client),
    Bare(bare::Client),
}

/// When an exchange came to what, counted from the run's beginning.
pub(super) struct Answered {
    /// The end of the handshake; of later exchanges, too.
    pub(super) connected: Time,
    pub(super) first_byte: Time,
}

impl Fetcher {
    pub(super) async fn close(&self) {
        match self {
            Self::Http(client) => client.close().await,
            Self::Bare(client) => client.close().await,
        }
    }

    async fn exchange(
        &mut self,
        server: SocketAddr,
        clock: Clock,
        arriving: &mut Arriving<'_, impl FnMut(u64)>,
    ) -> Result<Answered, String> {
        match self {
            Self::Http(client) => fetch_http(client, server, clock, arriving).await,
            Self::Bare(client) => client.fetch(server, clock, arriving).await,
        }
    }
}

/// Real time as the lab counts it, from the beginning of a run.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    began: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { began: Instant::now() }
    }

    pub(super) fn now(self) -> Time {
        Time::ZERO + self.began.elapsed().into()
    }

    async fn wait_until(self, at: Time) {
        if at > self.now() {
            sleep_until(self.began + at.since(Time::ZERO).into()).await;
        }
    }
}

/// What a client does and has seen; it outlives a run that is given up.
pub(super) struct Player {
    plan: Box<dyn apps::Plan + Send>,
    report: AppReport,
    clock: Clock,
}

impl Player {
    /// Its time begins now.
    ///
    /// # Errors
    /// If there is no such client; the command line has no such workloads.
    pub(super) fn new(workload: &WorkloadSpec) -> Result<Self, Failure> {
        let plan = apps::plan(workload).map_err(Failure::usage)?;
        let plan = plan.ok_or_else(|| Failure::runtime("the workload is for the lab only"))?;
        let report = AppReport { started: Some(Time::ZERO), ..AppReport::default() };
        Ok(Self { plan, report, clock: Clock::start() })
    }

    /// Asks `server` for one thing after another, each a beginning of `object` that is compared with it. `advance` is
    /// told of every piece that is right.
    ///
    /// # Errors
    /// What went wrong, for people.
    pub(super) async fn play(
        &mut self,
        client: &mut Fetcher,
        server: SocketAddr,
        object: &[u8],
        mut advance: impl FnMut(u64),
    ) -> Result<(), String> {
        let (clock, report) = (self.clock, &mut self.report);
        let mut next = self.plan.next(clock.now(), None);
        while let Some(Next { at, bytes }) = next {
            clock.wait_until(at).await;
            // A timer may be late; that is not the network's.
            let asked = clock.now();
            let expected = usize::try_from(bytes).ok().and_then(|length| object.get(..length));
            let expected = expected.ok_or_else(|| format!("the server has no {bytes} bytes"))?;
            let mut arriving = Arriving::new(expected, |new| {
                report.bytes += new;
                advance(new);
            });
            let answered = client.exchange(server, clock, &mut arriving).await?;
            arriving.finish()?;
            let finished = clock.now();
            let connected = *report.connected.get_or_insert(answered.connected);
            let exchange = Exchange {
                object: report.exchanges.len(),
                requested: asked.max(connected),
                first_byte: answered.first_byte,
                finished,
                bytes,
            };
            next = self.plan.next(finished, Some(&exchange));
            report.exchanges.push(exchange);
            if next.is_none() {
                report.finished = Some(finished);
            }
        }
        Ok(())
    }

    /// What its user has seen so far.
    pub(super) fn seen(&self) -> FlowResult {
        let mut report = self.report.clone();
        self.plan.add_to(&mut report);
        report.flow(self.clock.now())
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

impl<'a, F: FnMut(u64)> Arriving<'a, F> {
    fn new(object: &'a [u8], advance: F) -> Self {
        Self { object, length: 0, advance }
    }

    /// The next piece of the body.
    pub(super) fn add(&mut self, chunk: &[u8]) -> Result<(), String> {
        if !self.object[self.length..].starts_with(chunk) {
            return Err(format!("what arrived after byte {} is not what was sent", self.length));
        }
        self.length += chunk.len();
        (self.advance)(chunk.len() as u64);
        Ok(())
    }

    fn finish(&self) -> Result<(), String> {
        match self.object.len() - self.length {
            0 => Ok(()),
            missing => Err(format!("{missing} bytes are missing at the end")),
        }
    }
}

async fn fetch_http(
    client: &Client,
    server: SocketAddr,
    clock: Clock,
    arriving: &mut Arriving<'_, impl FnMut(u64)>,
) -> Result<Answered, String> {
    let uri: Uri = format!("https://{server}{OBJECT}").parse().map_err(|error| format!("{error}"))?;
    let asked = clock.now();
    let mut response = client.get(&uri).await.map_err(|error| error.to_string())?;
    let first_byte = clock.now();
    if !response.status().is_success() {
        return Err(format!("the server answers {}", response.status()));
    }
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        arriving.add(&chunk)?;
    }
    let connection = response.connection();
    if connection.index > 0 {
        return Err("the connection was lost, and the client made another".to_owned());
    }
    let connected = connection.handshake.map_or(first_byte, |handshake| asked + handshake.into());
    Ok(Answered { connected, first_byte })
}

/// Content that is nowhere like itself: what arrives in the wrong place must show.
pub(super) fn content(length: u64) -> Bytes {
    let mut content = vec![0; length as usize];
    posthaste_units::Rng::from_test_seed(0).fill(&mut content);
    content.into()
}
