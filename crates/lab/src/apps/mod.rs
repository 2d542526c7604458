//! Applications: what the ends of a connection do with its streams.
//!
//! All speak one small protocol. A client opens a stream, writes a [`Request`] of [`REQUEST_LENGTH`] bytes and
//! finishes; the server answers with [`RESPONSE_HEADER_LENGTH`] bytes of header and the body that was asked for,
//! and finishes. The body's bytes are [`content`], and clients check them.

mod bulk;
mod download;
#[cfg(test)]
mod fake;
mod loaded;
mod on_off;
mod page;
mod read_budget;
mod request_response;
mod responder;
mod sequence;
mod split;
#[cfg(test)]
mod tests;
mod video;
mod warmed;
mod workload;

use bytes::Bytes;
use posthaste_units::Time;

pub use bulk::{Bulk, BulkPlan};
pub use loaded::{Loaded, LoadedPlan};
pub use on_off::{OnOff, OnOffPlan};
pub use page::{Page, PageError, PageLoad, PageObject};
pub use read_budget::READ_STEP;
pub use request_response::{RequestResponse, RequestResponsePlan};
pub use responder::Responder;
pub use sequence::{MAX_EXCHANGES, Next, Plan, Sequence};
pub use split::Split;
pub use video::{Video, VideoPlan, VideoSpec};
pub use warmed::{Stage, Warmed};
pub use workload::{WorkloadError, client, plan};

use crate::peer::{Peer, PeerEvent};
use crate::result::{ExchangeResult, FlowResult};

/// Bytes of a request, its body aside: what HPACK or QPACK leave of a browser's.
pub const REQUEST_LENGTH: usize = 300;

/// Bytes of a response's header.
pub const RESPONSE_HEADER_LENGTH: usize = 200;

/// The peers of a run, by host index.
pub trait Hosts {
    /// The stack at a host, to use it; the world will see what came of that.
    fn peer(&mut self, host: usize) -> &mut dyn Peer;
}

/// What runs on one or more hosts.
pub trait App {
    /// Begins; called once, before anything else, at virtual time zero.
    fn start(&mut self, now: Time, hosts: &mut dyn Hosts);

    /// A stack has told something.
    fn on_event(&mut self, now: Time, host: usize, event: PeerEvent, hosts: &mut dyn Hosts);

    /// Lets the application act once [`Self::next_timeout`] has come.
    fn on_timeout(&mut self, now: Time, hosts: &mut dyn Hosts);

    /// When [`Self::on_timeout`] must be called, if nothing happens before.
    fn next_timeout(&self) -> Option<Time>;

    /// Where it stands. The run ends once no application is [`Progress::Working`].
    fn progress(&self) -> Progress;

    /// What its user has seen so far.
    fn report(&self) -> AppReport;
}

/// Where an application stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The run waits for it.
    Working,
    /// It has what it wanted, or never ends and nobody waits for it (background, servers).
    Idle,
    /// It can never get what it wanted: a connection is over.
    Failed,
}

/// Why an application fails whose connection has closed before it had what it wanted.
fn closed(reason: Option<String>) -> String {
    reason.unwrap_or_else(|| "the connection was closed before the end".to_owned())
}

/// What a user of the application has seen. Times are since the run began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AppReport {
    /// When the application began to connect.
    pub started: Option<Time>,
    /// When the first connection's handshake was complete.
    pub connected: Option<Time>,
    /// When all that was wanted had been read.
    pub finished: Option<Time>,
    /// Body bytes read.
    pub bytes: u64,
    /// Each exchange that has ended, in the order of ending; at most the first [`MAX_EXCHANGES`].
    pub exchanges: Vec<Exchange>,
    /// Why it failed.
    pub failure: Option<String>,
    /// Seconds that playback stood still, a stall that goes on aside; see [`Self::stalled_until`] (video only).
    pub stalled_seconds: Option<f64>,
    /// How often it stood still, a stall that goes on aside (video only).
    pub stalls: Option<u32>,
    /// When playback comes or came to a standstill unless another chunk is complete before; `None` before playback
    /// and once all chunks are there (video only).
    pub runs_dry: Option<Time>,
    /// Seconds from [`Self::started`] to the beginning of playback (video only).
    pub startup_seconds: Option<f64>,
}

impl AppReport {
    /// Where an application with this report stands; `is_over` if it does nothing more.
    fn progress(&self, is_over: bool) -> Progress {
        match (&self.failure, is_over) {
            (Some(_), _) => Progress::Failed,
            (None, true) => Progress::Idle,
            (None, false) => Progress::Working,
        }
    }

    /// Seconds that playback has stood still by the time `end` of the report, a stall that goes on included (video
    /// only).
    pub fn stalled_until(&self, end: Time) -> Option<f64> {
        let going_on = self.runs_dry.map_or(0.0, |since| end.since(since).as_secs_f64());
        self.stalled_seconds.map(|ended| ended + going_on)
    }

    /// The same as reports know it, `now` being the end of the run: names, stacks and what the network has carried are
    /// for others to fill in.
    pub fn flow(&self, now: Time) -> FlowResult {
        let started = self.started.unwrap_or(Time::ZERO);
        let seconds = |at: Time| at.since(started).as_secs_f64();
        let exchange = |exchange: &Exchange| ExchangeResult {
            object: exchange.object,
            requested: seconds(exchange.requested),
            first_byte: seconds(exchange.first_byte),
            finished: seconds(exchange.finished),
            bytes: exchange.bytes,
        };
        let active = seconds(self.finished.unwrap_or(now));
        FlowResult {
            completion: self.finished.map(seconds),
            connect: self.connected.map(seconds),
            first_byte: self.exchanges.iter().map(|exchange| exchange.first_byte).min().map(seconds),
            bytes: self.bytes,
            goodput: if active > 0.0 { self.bytes as f64 * 8.0 / active } else { 0.0 },
            exchanges: self.exchanges.iter().map(exchange).collect(),
            stalled_seconds: self.stalled_until(now),
            failure: self.failure.clone(),
            ..FlowResult::default()
        }
    }
}

/// One request and its response.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Index of the object in its workload.
    pub object: usize,
    /// When the application wanted it.
    pub requested: Time,
    /// When the first byte of the response was read.
    pub first_byte: Time,
    /// When the last byte was read.
    pub finished: Time,
    /// Body bytes.
    pub bytes: u64,
}

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Body bytes wanted.
    pub body: u64,
}

impl Request {
    /// The request as sent.
    pub fn encode(self) -> Bytes {
        self.encode_in(REQUEST_LENGTH)
    }

    /// The request in so many bytes, 8 at the least.
    pub fn encode_in(self, length: usize) -> Bytes {
        let mut bytes = vec![0; length.max(8)];
        bytes[..8].copy_from_slice(&self.body.to_be_bytes());
        bytes.into()
    }

    /// A request from its bytes; `None` if they are too few.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let body = bytes.get(..8)?.try_into().ok()?;
        Some(Self { body: u64::from_be_bytes(body) })
    }
}

/// Length of the block that [`content`] repeats: prime, so that it never falls in step with a packet size.
const BLOCK: usize = 65_521;

/// Bytes of every response (header and body) from `offset` on, at least one and at most `max`: the same on every
/// stream, never repeating in step with packets.
pub fn content(offset: u64, max: u64) -> Bytes {
    static CONTENT: std::sync::OnceLock<Bytes> = std::sync::OnceLock::new();
    let block = CONTENT.get_or_init(|| {
        let mut bytes = vec![0; BLOCK];
        posthaste_units::Rng::from_test_seed(0xC0).fill(&mut bytes);
        bytes.into()
    });
    let start = (offset % BLOCK as u64) as usize;
    let length = max.min((BLOCK - start) as u64) as usize;
    block.slice(start..start + length)
}

/// True if `data` is what [`content`] has at `offset`.
pub fn is_content(mut offset: u64, mut data: &[u8]) -> bool {
    while !data.is_empty() {
        let expected = content(offset, data.len() as u64);
        let (head, rest) = data.split_at(expected.len());
        if *head != expected[..] {
            return false;
        }
        offset += head.len() as u64;
        data = rest;
    }
    true
}
