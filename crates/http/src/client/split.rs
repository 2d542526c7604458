//! One object over several connections, by byte ranges.
//!
//! The first request asks for all of the object as a range (`bytes=0-`): its response says how long the object is and
//! what state of it this is, and goes on being read however the rest is fetched, so a server that does not know ranges, or
//! an object that is not worth it, costs nothing. Then further connections are made, in the group of the first if the
//! server coordinates (`docs/spec/groups.md`), and [`plan`] says what each asks for. Ranges are asked for with `if-range`: of
//! an object that changes meanwhile all is fetched again, over one connection.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use super::{Client, ClientError, Response};

mod auto;
mod binding;
mod gains;
mod lane;
mod plan;
mod work;

use binding::{Binding, content_range};
pub use gains::ConnectionGains;
use plan::LEAST_PART;
use work::{Lanes, Outcome, Split};

/// Most connections of one download. A group of ours has eight members at most; beyond, each costs a handshake and
/// memory at both ends, and brings nothing.
pub const MAX_CONNECTIONS: usize = 16;

/// How to fetch one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitOptions {
    /// Connections to use, 1 to [`MAX_CONNECTIONS`]; more are as many as that.
    pub connections: usize,
    /// Begin with one and find out how many are worth it: [`Self::connections`] is then the most, and 8 at most.
    /// Twice as many are tried after four round trips and 100 ms that count, while what is left is worth it and the last
    /// doubling has raised the rate by 30 %. What [`ClientOptions::connection_gains`](super::ClientOptions) knows of the
    /// server from earlier downloads is not tried again.
    pub is_adaptive: bool,
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
    /// Connections of the client that brought something, by their [`ConnectionReport::index`](crate::ConnectionReport::index), and how many bytes.
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
            Ok((lanes, binding)) => {
                let lanes = if options.is_adaptive { Lanes::UpTo(lanes) } else { Lanes::Fixed(lanes) };
                Ok(Download::split(self, response, range.end, lanes, binding, length))
            }
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
        lanes: Lanes,
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

    /// The first connection's [`ConnectionReport::index`](crate::ConnectionReport::index).
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
