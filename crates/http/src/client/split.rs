//! One object over several connections, by byte ranges.
//!
//! The first request asks for all of the object as a range (`bytes=0-`): its response says how long the object is and
//! what state of it this is, and goes on being read however the rest is fetched, so a server that does not know ranges, or
//! an object that is not worth it, costs nothing. Then further connections are made, in the group of the first if the
//! server coordinates (`docs/groups.md`), and [`plan`] says what each asks for. Ranges are asked for with `if-range`: of
//! an object that changes meanwhile all is fetched again, over one connection.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{AbortHandle, Abortable, BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use tokio::time::{Instant, sleep, timeout};

use super::{Client, ClientError, Live, Response};

mod binding;
mod lane;
mod plan;

use binding::{Binding, Verdict, content_range};
use lane::{Lane, State};
use plan::{LEAST_PART, PartId, Plan};

/// Most connections of one download. A group of ours has eight members at most; beyond, each costs a handshake and
/// memory at both ends, and brings nothing.
pub const MAX_CONNECTIONS: usize = 16;

/// What is read of a response before others have their turn.
const TURN: usize = 64 * 1024;

/// How often to look for connections that have fallen silent; what has moved since the last look moves.
const LOOK: Duration = Duration::from_millis(250);

/// How to fetch one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitOptions {
    /// Connections to use, 1 to [`MAX_CONNECTIONS`]; more are as many as that.
    pub connections: usize,
    /// Use them although the server does not coordinate them: each then takes a flow's share of the path.
    pub may_be_ungrouped: bool,
}

/// Why one connection had to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Single {
    /// No more were asked for.
    NotAsked,
    /// The object is smaller than two parts.
    Small,
    /// The server does not serve ranges of it.
    NoRanges,
    /// The response does not say of which state of the object it is, so parts might not fit together.
    NoValidator,
    /// The response is compressed or otherwise coded.
    Encoded,
    /// The server does not coordinate connections.
    NoGroup,
    /// The object changed while it was fetched in parts.
    Changed,
}

impl fmt::Display for Single {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAsked => "no more were asked for",
            Self::Small => "it is small",
            Self::NoRanges => "the server does not serve parts of it",
            Self::NoValidator => {
                "the server does not say which state of it is served, so parts might not fit together"
            }
            Self::Encoded => "the server sends it compressed or otherwise coded",
            Self::NoGroup => {
                "the server does not coordinate connections, so that several would take more than their share"
            }
            Self::Changed => "it changed while it was fetched in parts, and was fetched again",
        })
    }
}

/// How a download has gone so far.
#[derive(Debug, Clone, Default)]
pub struct SplitReport {
    /// Why one connection had to do, if so.
    pub single: Option<Single>,
    /// Connections of the client that brought something, by their place in [`Client::connections`], and how many bytes.
    pub connections: Vec<(usize, u64)>,
    /// The server treats the connections as one sender.
    pub is_grouped: bool,
    /// Requests, the first included.
    pub ranges: u64,
    /// How many of them took over what another connection had been asked for.
    pub steals: u64,
    /// Bytes that arrived though another connection had been asked for them: less than a round trip's for each steal.
    pub surplus: u64,
    /// Connections that were lost or fell silent; others took over.
    pub lost: u64,
}

/// What comes of an object next.
#[derive(Debug)]
pub enum Piece {
    /// Bytes, and where they belong. Nothing comes twice.
    Data {
        /// Of the first of them.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// The object has changed: all that came before is void, and it comes anew.
    Restart,
}

/// An object being fetched. Dropping it gives the rest up.
pub struct Download {
    mode: Mode,
    uri: Uri,
    status: StatusCode,
    length: Option<u64>,
    first_byte: Duration,
    connection: usize,
    report: SplitReport,
}

enum Mode {
    Single(Box<Response>),
    Split(Box<Split>),
    Over,
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("uri", &self.uri)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Fetches `uri` over several connections if that can be, else over one. A server that coordinates is to be asked
    /// for it with a [`group_size`](posthaste_endpoint::ClientConfig) of 1 in the client's options: the size of the
    /// object decides how many follow.
    ///
    /// # Errors
    /// If no response arrives. A response with an error status is a response.
    pub async fn download(&self, uri: &Uri, options: &SplitOptions) -> Result<Download, ClientError> {
        if options.connections <= 1 {
            return Ok(Download::single(self.get(uri).await?, Single::NotAsked));
        }
        let mut fields = HeaderMap::new();
        fields.insert(header::RANGE, HeaderValue::from_static("bytes=0-"));
        let response = self.request(&Method::GET, uri, &fields).await?;
        let whole = match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                content_range(response.headers()).filter(|(range, _)| range.start == 0)
            }
            StatusCode::RANGE_NOT_SATISFIABLE => None,
            _ => return Ok(Download::single(response, Single::NoRanges)),
        };
        let Some((range, length)) = whole else {
            // An empty object has no ranges, or the answer makes no sense: nothing has come so far.
            let is_empty =
                response.headers().get(header::CONTENT_RANGE).is_some_and(|field| field == "bytes */0");
            let reason = if is_empty { Single::Small } else { Single::NoRanges };
            return Ok(Download::single(self.get(uri).await?, reason));
        };
        match lanes(&response, length, options) {
            Ok((lanes, binding)) => Ok(Download::split(self, response, range.end, lanes, binding, length)),
            Err(reason) if range.end == length => Ok(Download::single(response, reason)),
            Err(reason) => Ok(Download::single(self.get(uri).await?, reason)),
        }
    }
}

/// How many connections are worth it, and what their parts are bound to.
fn lanes(response: &Response, length: u64, options: &SplitOptions) -> Result<(usize, Binding), Single> {
    let binding = Binding::to(response.headers(), length)?;
    let parts = usize::try_from(length / LEAST_PART).unwrap_or(usize::MAX);
    let most = options.connections.min(MAX_CONNECTIONS).min(parts);
    if most < 2 {
        return Err(Single::Small);
    }
    let limit =
        response.live().quic().group_limit().map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    match limit {
        Some(limit) if limit >= 2 => Ok((most.min(limit), binding)),
        _ if options.may_be_ungrouped => Ok((most, binding)),
        _ => Err(Single::NoGroup),
    }
}

impl Download {
    fn single(response: Response, reason: Single) -> Self {
        let report = SplitReport { single: Some(reason), ranges: 1, ..SplitReport::default() };
        let length = response.content_length();
        Self::begin(&response, length, report).with(Mode::Single(Box::new(response)))
    }

    fn split(
        client: &Client,
        response: Response,
        reach: u64,
        lanes: usize,
        binding: Binding,
        length: u64,
    ) -> Self {
        let download = Self::begin(&response, Some(length), SplitReport::default());
        let split = Split::new(client.clone(), response, (reach, length), lanes, binding);
        download.with(Mode::Split(Box::new(split)))
    }

    fn begin(response: &Response, length: Option<u64>, report: SplitReport) -> Self {
        Self {
            mode: Mode::Over,
            uri: response.uri().clone(),
            status: response.status(),
            length,
            first_byte: response.first_byte(),
            connection: response.live().index,
            report,
        }
    }

    fn with(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The URI that answered: the requested one, or where redirects led.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The status of the first response: 206 if the server serves ranges.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Bytes of the object, if that is known.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Time from the call of [`Client::download`] to the first response's headers.
    pub fn first_byte(&self) -> Duration {
        self.first_byte
    }

    /// The first connection's place in [`Client::connections`].
    pub fn connection(&self) -> usize {
        self.connection
    }

    /// How it has gone so far.
    pub fn report(&self) -> SplitReport {
        let mut report = self.report.clone();
        if let Mode::Split(split) = &self.mode {
            split.report_to(&mut report);
        }
        report
    }

    /// What comes next, in no order, or `None` when all of the object is here.
    ///
    /// # Errors
    /// If the object does not arrive whole: the last connection is lost or stands still, or it changed and cannot be
    /// had any more.
    pub async fn next(&mut self) -> Result<Option<Piece>, ClientError> {
        let outcome = match &mut self.mode {
            Mode::Over => return Ok(None),
            Mode::Single(response) => {
                let offset = response.received();
                if let Some(data) = response.chunk().await? {
                    return Ok(Some(Piece::Data { offset, data }));
                }
                self.report.connections = vec![(self.connection, offset)];
                Outcome::Complete
            }
            Mode::Split(split) => split.next().await?,
        };
        match outcome {
            Outcome::Piece(piece) => Ok(Some(piece)),
            Outcome::Complete => {
                self.report = self.report();
                self.mode = Mode::Over;
                Ok(None)
            }
            Outcome::Changed(client) => {
                self.report = self.report();
                self.mode = Mode::Over;
                let response = client.get(&self.uri).await?;
                if !response.status().is_success() {
                    return Err(ClientError::Changed {
                        uri: self.uri.to_string(),
                        status: response.status(),
                    });
                }
                self.report.single = Some(Single::Changed);
                self.report.ranges += 1;
                self.length = response.content_length();
                self.connection = response.live().index;
                self.mode = Mode::Single(Box::new(response));
                Ok(Some(Piece::Restart))
            }
        }
    }
}

enum Outcome {
    Piece(Piece),
    Complete,
    Changed(Client),
}

/// The work on one object.
struct Split {
    client: Client,
    uri: Uri,
    binding: Binding,
    plan: Plan,
    lanes: Vec<Lane>,
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
    fn new(
        client: Client,
        response: Response,
        (reach, length): (u64, u64),
        lanes: usize,
        binding: Binding,
    ) -> Self {
        let now = Instant::now();
        let (plan, first) = Plan::new(length, reach, lanes);
        let live = Arc::clone(response.live());
        let mut split = Self {
            uri: response.uri().clone(),
            binding,
            plan,
            lanes: (0..lanes).map(|_| Lane::new(now)).collect(),
            is_grouped: live.quic().group_limit().is_some(),
            jobs: FuturesUnordered::new(),
            aborts: BTreeMap::new(),
            pieces: VecDeque::new(),
            lost: 0,
            looked: now,
            failure: None,
            client,
        };
        split.lanes[0].begin(Arc::clone(&live));
        split.read_on(first, response);
        for lane in 1..lanes {
            let (client, first) = (split.client.clone(), Arc::clone(&live));
            let connect =
                async move { Some(Done::Connected(lane, another(&client, &first, lane, lanes).await)) };
            split.jobs.push(connect.boxed());
        }
        split
    }

    async fn next(&mut self) -> Result<Outcome, ClientError> {
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
                let request = super::ask(&Method::GET, &self.uri, &self.binding.request_fields(&range));
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

    fn report_to(&self, report: &mut SplitReport) {
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
