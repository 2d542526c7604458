//! What one run consists of, as experiment files say it.

use posthaste_path::PathSpec;
use posthaste_units::{ByteCount, Duration, Rate};
use serde::Deserialize;

use crate::peers::Stack;

/// One run, its seed aside.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunSpec {
    /// Links and routes.
    pub network: NetworkSpec,
    /// Applications, each with stacks of its own; the first is the one that the experiment is about.
    pub flows: Vec<FlowSpec>,
    /// Virtual time after which the run ends, finished or not. Default 300 s.
    #[serde(default = "default_deadline")]
    pub deadline: Duration,
    /// Largest UDP payload (TCP is sized to the same IP packets). Default 1252 bytes.
    #[serde(default = "default_datagram")]
    pub datagram: u16,
    /// Interval of time series; none unless given.
    #[serde(default)]
    pub series: Option<Duration>,
}

impl RunSpec {
    /// One download over one link, with the defaults of experiment files.
    pub fn download(path: PathSpec, stack: Stack, object: ByteCount) -> Self {
        let flow = FlowSpec {
            name: String::new(),
            stack,
            workload: WorkloadSpec::Bulk { object, read_rate: None },
            start: Duration::ZERO,
            start_within: Duration::ZERO,
            background: false,
            count: 1,
            warm_up: None,
        };
        Self {
            network: NetworkSpec::Simple { path },
            flows: vec![flow],
            deadline: default_deadline(),
            datagram: default_datagram(),
            series: None,
        }
    }
}

fn default_deadline() -> Duration {
    Duration::from_secs(300)
}

fn default_datagram() -> u16 {
    1252
}

/// Links and routes.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case")]
pub enum NetworkSpec {
    /// One link; all flows share it.
    Simple {
        /// The link.
        path: PathSpec,
    },
    /// All flows share one bottleneck; each has an access link of its own on the client's side.
    Dumbbell {
        /// The bottleneck.
        path: PathSpec,
        /// The access links; a perfect wire unless given.
        access: Option<PathSpec>,
    },
    /// A radio link at the client, then a backhaul.
    RadioBackhaul {
        /// The link at the client.
        radio: PathSpec,
        /// The link at the server.
        backhaul: PathSpec,
    },
    /// Links in a row, the client's first; all flows share them.
    Chain {
        /// The links.
        links: Vec<PathSpec>,
    },
}

/// One application and its stack.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowSpec {
    /// Name in reports.
    #[serde(default)]
    pub name: String,
    /// The stack at both ends.
    pub stack: Stack,
    /// What the client does.
    pub workload: WorkloadSpec,
    /// When it begins.
    #[serde(default)]
    pub start: Duration,
    /// How much later than that it may begin: the seed draws it, evenly. Nothing unless given. The
    /// physical limit is that of a start without it, which is another where a link's rate changes.
    #[serde(default)]
    pub start_within: Duration,
    /// The run does not wait for it.
    #[serde(default)]
    pub background: bool,
    /// How many of it there are.
    #[serde(default = "one")]
    pub count: u32,
    /// Connections before the one that is measured, from which the server learns, for stacks that make something of
    /// that ([`Stack::history_rules`]); other stacks do without. None unless given.
    #[serde(default)]
    pub warm_up: Option<WarmUpSpec>,
}

/// Connections before the one that is measured, one after another, each with the flow's workload unless told otherwise.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WarmUpSpec {
    /// How many, 1 to 64.
    pub connections: u32,
    /// What they do instead of the flow's workload.
    #[serde(default)]
    pub workload: Option<WorkloadSpec>,
    /// The path that they take, all to themselves, instead of the flow's.
    #[serde(default)]
    pub path: Option<PathSpec>,
    /// When the first begins; the flow's `start` unless given. The measured one begins at the flow's `start`, or once
    /// the others are done, if that is later.
    #[serde(default)]
    pub start: Option<Duration>,
    /// Virtual time between the end of one and the beginning of the next. Default 1 s.
    #[serde(default = "default_pause")]
    pub pause: Duration,
    /// Whose they are.
    #[serde(default)]
    pub client: WarmUpClient,
    /// What the client keeps from each connection for the next. With more than nothing, every stack has the warm-up.
    #[serde(default)]
    pub session: WarmUpSession,
}

/// What a client keeps from one connection of a warm-up for the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUpSession {
    /// Nothing: each handshake is a full one.
    #[default]
    None,
    /// The TLS session and the server's address token.
    Resumed,
    /// The same, and the request leaves with the first flight (0-RTT).
    Early,
}

/// Whose a warm-up's connections are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUpClient {
    /// The flow's own client's.
    #[default]
    Same,
    /// Another's, with an address of the same network.
    Neighbour,
}

fn default_pause() -> Duration {
    Duration::from_secs(1)
}

fn one() -> u32 {
    1
}

/// How the ranges of a split object come to its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ranges {
    /// Four ranges for each connection; a connection takes the next when it has asked for less than two.
    #[default]
    AsFree,
    /// One range for each connection, all of the same length: the slowest connection decides when the object is there.
    Fixed,
}

/// What a client does. [`crate::apps::client`] makes an application of it; `crates/lab/src/apps/workload.rs` has
/// what is asked of it beforehand.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum WorkloadSpec {
    /// One object.
    Bulk {
        /// Its size.
        object: ByteCount,
        /// How fast the application reads; as fast as it can unless given.
        #[serde(default)]
        read_rate: Option<Rate>,
    },
    /// One object in byte ranges over all connections of the stack (`profile@3` has three), from connections that
    /// are there already: the clock starts with the request.
    Split {
        /// Its size.
        object: ByteCount,
        /// Which connection fetches what; `as-free` unless given.
        #[serde(default)]
        ranges: Ranges,
    },
    /// One object without end: its flow counts what has been read when the run ends.
    Endless {
        /// How fast the application reads; as fast as it can unless given.
        #[serde(default)]
        read_rate: Option<Rate>,
    },
    /// One object in equal parts on several streams of one connection at once.
    Parallel {
        /// Its size.
        object: ByteCount,
        /// Parts, 1 to 256.
        streams: u32,
    },
    /// A web page.
    Page {
        /// Its name; see [`crate::apps::Page::names`].
        page: String,
        /// Stacks that can (all but TCP) fetch everything over one connection, as from one server in front of the
        /// web hosts. Default true.
        #[serde(default = "yes")]
        coalesce: bool,
        /// Fetch the objects that the page names critical in byte ranges over all connections of the stack
        /// (`profile@3` has three); all else comes over the first. Default false.
        #[serde(default)]
        split_critical: bool,
        /// Length of the page's first request, 8 bytes to 64 KiB. 300 unless given.
        #[serde(default)]
        first_request: Option<ByteCount>,
        /// Length of each further request, as `first-request`: heads are shorter once QPACK's table has their fields.
        #[serde(default)]
        request: Option<ByteCount>,
    },
    /// Chunked video of one bit rate.
    Video {
        /// Media bits a second.
        rate: Rate,
        /// Play time of a chunk.
        chunk: Duration,
        /// Chunks, 1 to 10,000.
        chunks: u32,
        /// Play time that the player keeps in its buffer at most, a chunk at least.
        buffer: Duration,
    },
    /// One small exchange after another.
    RequestResponse {
        /// Response size.
        object: ByteCount,
        /// How many, 1 to 10,000.
        count: u32,
        /// Pause between the end of one and the next. Default none.
        #[serde(default)]
        think: Duration,
    },
    /// A transfer without an end, and small objects on the same connection, each asked for at its time, whether or not
    /// earlier ones have been answered. The flow's exchanges are those of the small objects.
    LoadedRequests {
        /// Size of a small object.
        object: ByteCount,
        /// How many, 1 to 10,000.
        count: u32,
        /// From the beginning of the transfer to the first request.
        after: Duration,
        /// From the beginning of one request to that of the next, above zero.
        interval: Duration,
    },
    /// Objects with pauses in between, for ever: load in the background.
    OnOff {
        /// Mean size of an object (exponentially distributed).
        object: ByteCount,
        /// Mean pause (exponentially distributed).
        pause: Duration,
    },
}

fn yes() -> bool {
    true
}
