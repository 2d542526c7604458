//! The work on one object that comes over several connections: requests, responses, and who stands in for whom.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{AbortHandle, Abortable, BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use http::{Method, Uri};
use tokio::time::{Instant, sleep, timeout};

use super::super::connect::Live;
use super::super::{Client, ClientError, Response};
use super::auto::{Auto, Progress, Rates};
use super::binding::{Binding, Verdict};
use super::gains;
use super::lane::{self, Lane, State};
use super::plan::{PartId, Plan};
use super::{Piece, SplitReport};

/// What is read of a response before others have their turn.
const TURN: usize = 64 * 1024;

/// How often to look for connections that have fallen silent; what has moved since the last look moves.
const LOOK: Duration = Duration::from_millis(250);

/// What has come of the work.
pub(super) enum Outcome {
    Piece(Piece),
    Complete,
    Changed(Client),
}

/// How many connections to use.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lanes {
    Fixed(usize),
    /// As many as are worth it, up to this number: one at first, or what earlier downloads found.
    UpTo(usize),
}

/// The work on one object.
pub(super) struct Split {
    client: Client,
    uri: Uri,
    binding: Binding,
    plan: Plan,
    lanes: Vec<Lane>,
    /// The first connection, which others are made beside.
    first: Arc<Live>,
    /// How many are worth it, if that is to be found out, and since when.
    auto: Option<(Auto, Instant)>,
    is_grouped: bool,
    jobs: FuturesUnordered<BoxFuture<'static, Option<Done>>>,
    /// What ends the jobs of a part.
    aborts: BTreeMap<PartId, AbortHandle>,
    pieces: VecDeque<Piece>,
    lost: u64,
    /// When it was last looked for silent connections.
    looked: Instant,
    failure: Option<ClientError>,
}

/// What a job has come to.
enum Done {
    Connected(usize, Result<Arc<Live>, ClientError>),
    Begun(PartId, Range<u64>, Result<Response, ClientError>),
    Read(PartId, Response, Vec<Bytes>, End),
}

/// Where reading a response has stopped.
enum End {
    Open,
    Over,
    Failed(ClientError),
}

impl Split {
    pub(super) fn new(
        client: Client,
        response: Response,
        (reach, length): (u64, u64),
        lanes: Lanes,
        binding: Binding,
    ) -> Self {
        let now = Instant::now();
        let live = Arc::clone(response.live());
        let (lanes, auto) = match lanes {
            Lanes::Fixed(lanes) => (lanes, None),
            Lanes::UpTo(most) => {
                let round_trip = live.quic().stats().rtt.smoothed.into();
                let auto = Auto::new(most, &known(&client, &live), length, round_trip);
                (auto.connections(), Some((auto, now)))
            }
        };
        let (plan, first) = Plan::new(length, reach, lanes);
        let mut split = Self {
            uri: response.uri().clone(),
            binding,
            plan,
            lanes: vec![Lane::new(now)],
            is_grouped: live.quic().group_limit().is_some(),
            first: Arc::clone(&live),
            auto,
            jobs: FuturesUnordered::new(),
            aborts: BTreeMap::new(),
            pieces: VecDeque::new(),
            lost: 0,
            looked: now,
            failure: None,
            client,
        };
        split.lanes[0].begin(live);
        split.read_on(first, response);
        split.connect_up_to(lanes);
        split
    }

    /// Makes connections until there are so many.
    fn connect_up_to(&mut self, lanes: usize) {
        for lane in self.lanes.len()..lanes {
            self.lanes.push(Lane::new(Instant::now()));
            let (client, first) = (self.client.clone(), Arc::clone(&self.first));
            let connect =
                async move { Some(Done::Connected(lane, another(&client, &first, lane, lanes).await)) };
            self.jobs.push(connect.boxed());
        }
        self.plan.add_lanes(lanes);
    }

    /// Makes more connections if they are worth it.
    fn grow(&mut self) {
        let Some((auto, since)) = &mut self.auto else { return };
        let (arrived, left) = self.plan.progress();
        let round_trip = self.first.quic().stats().rtt.smoothed.into();
        let progress = Progress { elapsed: since.elapsed(), arrived, left, round_trip };
        let lanes = auto.on_progress(&progress);
        if let Some(rates) = auto.take_news()
            && let Some(key) = gains::key(self.first.origin(), self.first.quic().remote_address())
        {
            self.client.inner.options.connection_gains.learn(&key, rates, gains::now());
        }
        if let Some(lanes) = lanes {
            tracing::debug!(lanes, "more connections are tried");
            self.connect_up_to(lanes);
        }
    }

    /// What happens next.
    pub(super) async fn next(&mut self) -> Result<Outcome, ClientError> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Ok(Outcome::Piece(piece));
            }
            if self.plan.is_complete() {
                return Ok(Outcome::Complete);
            }
            self.ask();
            if self.lanes.iter().all(|lane| matches!(lane.state, State::Retired)) || self.jobs.is_empty() {
                return Err(self.failure.take().unwrap_or(ClientError::IdleTimeout(lane::STALL)));
            }
            tokio::select! {
                Some(done) = self.jobs.next() => {
                    if let Some(done) = done && self.on_done(done) {
                        return Ok(Outcome::Changed(self.client.clone()));
                    }
                }
                () = sleep(LOOK) => {}
            }
            self.give_up_silent();
            self.grow();
        }
    }

    /// Sends the requests that are due.
    fn ask(&mut self) {
        let now = Instant::now();
        for lane in 0..self.lanes.len() {
            let Some(live) = self.lanes[lane].live().cloned() else { continue };
            let was_idle = !self.plan.is_at_work(lane);
            while let Some((part, range)) = self.plan.assign(lane) {
                tracing::debug!(lane, start = range.start, end = range.end, "asking for a part");
                if was_idle {
                    self.lanes[lane].on_asked(now);
                }
                let request =
                    super::super::ask(&Method::GET, &self.uri, &self.binding.request_fields(&range));
                let (live, client) = (Arc::clone(&live), self.client.clone());
                let job = async move {
                    let response = Response::receive(live, request, &client.inner.options, now).await;
                    Done::Begun(part, range, response)
                };
                self.start(part, job);
            }
        }
    }

    fn read_on(&mut self, part: PartId, response: Response) {
        self.start(part, read_some(part, response));
    }

    fn start(&mut self, part: PartId, job: impl Future<Output = Done> + Send + 'static) {
        let (handle, registration) = AbortHandle::new_pair();
        self.aborts.insert(part, handle);
        self.jobs.push(Abortable::new(job, registration).map(Result::ok).boxed());
    }

    /// True if the object is another than it was.
    fn on_done(&mut self, done: Done) -> bool {
        match done {
            Done::Connected(lane, Ok(live)) => self.lanes[lane].begin(live),
            Done::Connected(lane, Err(error)) => self.retire(lane, Some(error)),
            Done::Begun(part, asked, result) => {
                let Some(lane) = self.plan.lane(part) else { return false };
                match result {
                    Ok(response) => return self.on_begun(lane, part, &asked, response),
                    Err(error) => self.retire(lane, Some(error)),
                }
            }
            Done::Read(part, response, data, end) => self.on_read(part, response, data, end),
        }
        false
    }

    /// True if the object is another than it was.
    fn on_begun(&mut self, lane: usize, part: PartId, asked: &Range<u64>, response: Response) -> bool {
        match self.binding.judge(response.status(), response.headers(), asked) {
            Verdict::Part(reach) => {
                if reach < asked.end {
                    self.plan.set_reach(part, reach);
                }
                self.read_on(part, response);
                false
            }
            Verdict::Refused => {
                self.retire(lane, Some(ClientError::Part { status: response.status() }));
                false
            }
            Verdict::Changed => true,
        }
    }

    fn on_read(&mut self, part: PartId, response: Response, data: Vec<Bytes>, end: End) {
        let Some(lane) = self.plan.lane(part) else { return };
        let mut kept = 0;
        let mut is_over = false;
        for mut data in data {
            let arrived = self.plan.on_arrived(part, data.len() as u64);
            data.truncate(usize::try_from(arrived.kept).unwrap_or(usize::MAX));
            kept += arrived.kept;
            if !data.is_empty() {
                self.pieces.push_back(Piece::Data { offset: arrived.offset, data });
            }
            is_over = arrived.is_over;
        }
        let now = Instant::now();
        self.lanes[lane].bytes += kept;
        if let Some(bytes) = self.lanes[lane].on_arrived(now, kept) {
            self.plan.set_under_way(lane, bytes);
        }
        match end {
            _ if is_over => {
                // Dropping the response asks the server to stop what is left to others.
                self.aborts.remove(&part);
            }
            End::Open => self.read_on(part, response),
            // Shorter than its `content-range` said.
            End::Over => {
                let received = response.received();
                self.retire(lane, Some(ClientError::Length { expected: received + 1, received }));
            }
            End::Failed(error) => self.retire(lane, Some(error)),
        }
    }

    /// The others do the lane's work.
    fn retire(&mut self, lane: usize, error: Option<ClientError>) {
        tracing::debug!(lane, ?error, "a connection is given up");
        self.lanes[lane].state = State::Retired;
        self.lost += 1;
        self.failure = error.or(self.failure.take());
        for part in self.plan.retire(lane) {
            if let Some(job) = self.aborts.remove(&part) {
                job.abort();
            }
        }
    }

    /// A connection on which nothing moves will not come to life again, or too late, if another moves or has nothing to do.
    fn give_up_silent(&mut self) {
        let now = Instant::now();
        if now - self.looked < LOOK {
            return;
        }
        self.looked = now;
        let mut silences: Vec<(usize, Duration)> = Vec::new();
        let mut is_help = false;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if lane.live().is_some() {
                let silence = lane.silence(now);
                if self.plan.is_at_work(index) {
                    silences.push((index, silence));
                }
                is_help |= silence <= LOOK || !self.plan.is_at_work(index);
            }
        }
        for (lane, silence) in silences {
            if is_help && silence > self.lanes[lane].patience() {
                self.retire(lane, None);
            }
        }
    }

    pub(super) fn report_to(&self, report: &mut SplitReport) {
        let counts = self.plan.counts();
        let of_lane = |lane: &Lane| lane.index.map(|index| (index, lane.bytes));
        report.connections = self.lanes.iter().filter_map(of_lane).filter(|(_, bytes)| *bytes > 0).collect();
        report.is_grouped = self.is_grouped;
        report.ranges = counts.parts;
        report.steals = counts.steals;
        report.surplus = counts.surplus;
        report.lost = self.lost;
    }
}

/// What earlier downloads from this server have found out about numbers of connections.
fn known(client: &Client, first: &Live) -> Rates {
    let key = gains::key(first.origin(), first.quic().remote_address());
    key.map(|key| client.inner.options.connection_gains.of(&key, gains::now())).unwrap_or_default()
}

/// Makes another connection beside the first, in its group if the server has put it into one.
async fn another(
    client: &Client,
    first: &Arc<Live>,
    leg: usize,
    size: usize,
) -> Result<Arc<Live>, ClientError> {
    let limit = client.inner.options.connect_timeout;
    // A server that coordinates tells the name with its first packets: without it, the connection would be one too many.
    let silent = || ClientError::FirstByteTimeout(limit);
    let token = timeout(limit, first.quic().group_token()).await.map_err(|_| silent())?;
    let token =
        token.map_err(|error| ClientError::connect(first.origin(), first.quic().remote_address(), error))?;
    client.beside(first, leg, token.map(|token| (size, token))).await
}

/// Reads what has come of a response, at least something.
async fn read_some(part: PartId, mut response: Response) -> Done {
    let mut data = Vec::new();
    let mut bytes = 0;
    let end = loop {
        let next = if data.is_empty() {
            response.chunk().await
        } else {
            match response.chunk().now_or_never() {
                Some(next) => next,
                None => break End::Open,
            }
        };
        match next {
            Ok(Some(chunk)) => {
                bytes += chunk.len();
                data.push(chunk);
                if bytes >= TURN {
                    break End::Open;
                }
            }
            Ok(None) => break End::Over,
            Err(error) => break End::Failed(error),
        }
    };
    Done::Read(part, response, data, end)
}
