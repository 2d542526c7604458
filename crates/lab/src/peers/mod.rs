//! The stacks that the lab drives: ours, rivals, a model of TCP.

mod buffers;
mod credit_log;
#[cfg(feature = "experiments")]
mod noq;
pub mod posthaste;
#[cfg(feature = "experiments")]
mod quinn;
#[cfg(feature = "experiments")]
mod rival;
mod tokens;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub use posthaste_lab_peer::peer::Pair;
pub use posthaste_lab_tcp::{HttpVersion, TcpController};
use posthaste_policy::Profile;
use posthaste_policy::group::MAX_MEMBERS;
use posthaste_policy::history::HistoryRules;
use posthaste_schemes::{ProfileError, comparison_names, names};
use posthaste_transport::{PathMemory, TokenStore};
use posthaste_units::{ByteCount, Duration, Rng};

#[cfg(feature = "experiments")]
pub use rival::{Rival, RivalController};

pub use tokens::Tokens;

use crate::tls;

/// A stack and its controller, by the name that experiments use.
///
/// | name | stack |
/// |---|---|
/// | `cubic`, `standard`, `quicming@min_rate=1mbit`, ... (any profile, or the path of a profile's file; with parameters) | Posthaste |
/// | `mquic-cubic@3`, ... | the same with three connections of a client to a server (2 to 8), in one group if the profile forms groups |
/// | `noq:newreno`, `noq:cubic`, `noq:bbr3` | noq-proto |
/// | `quinn:newreno`, `quinn:cubic`, `quinn:bbr` | quinn-proto |
/// | `quinn:bbr/default`, `noq:cubic/default`, ... | the same with the stack's own receive and send windows (1.25 MB a stream) instead of the lab's larger ones |
/// | `tcp:newreno`, `tcp:cubic`, `tcp:bbr` | the TCP model: TLS 1.3, HTTP/2 semantics |
/// | `tcp:cubic/h1`, ... | the same with HTTP/1.1: six connections a host, one exchange at a time on each |
///
/// In an experiment's file a stack may also be a profile of its own, written where its name would stand: a table with
/// the profile's `name` and whatever a profile's file may have (what is left out is as in `cubic`):
///
/// ```toml
/// stack = { name = "tiny", credit = { stream = { fixed = { window = "4 KiB" } } } }
/// ```
///
/// `noq:bbr3` does not repeat bit for bit, see [`Self::is_repeatable`]. The stacks of noq and quinn are part of the
/// feature `experiments`.
#[derive(Debug, Clone)]
pub enum Stack {
    /// Our transport with a profile, and connections of a client to a server.
    Posthaste(Profile, usize),
    /// noq-proto.
    #[cfg(feature = "experiments")]
    Noq(Rival),
    /// quinn-proto.
    #[cfg(feature = "experiments")]
    Quinn(Rival),
    /// The TCP model.
    Tcp(TcpController, HttpVersion),
}

/// No stack has the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownStack {
    /// Nothing is called that.
    #[error("there is no stack `{name}`; there are {}, and the profiles {}, for comparison {}; each profile also with @key=value, and with @2 to @8 for so many connections", RIVAL_NAMES.join(", "), names().join(", "), comparison_names().join(", "))]
    Name {
        /// The name.
        name: String,
    },
    /// This build is without the stack.
    #[error(
        "the stack `{name}` is not in this build: posthaste-lab was compiled without the feature `experiments`"
    )]
    NotBuilt {
        /// The name.
        name: String,
    },
    /// There is the profile, but not as it is named or written.
    #[error("{0}")]
    Profile(#[from] ProfileError),
}

/// The names of stacks that are not ours.
pub const RIVAL_NAMES: [&str; 18] = [
    "noq:newreno",
    "noq:cubic",
    "noq:bbr3",
    "noq:newreno/default",
    "noq:cubic/default",
    "noq:bbr3/default",
    "quinn:newreno",
    "quinn:cubic",
    "quinn:bbr",
    "quinn:newreno/default",
    "quinn:cubic/default",
    "quinn:bbr/default",
    "tcp:newreno",
    "tcp:cubic",
    "tcp:bbr",
    "tcp:newreno/h1",
    "tcp:cubic/h1",
    "tcp:bbr/h1",
];

impl FromStr for Stack {
    type Err = UnknownStack;

    fn from_str(name: &str) -> Result<Self, UnknownStack> {
        use HttpVersion::{Http2, Http11};
        Ok(match name {
            "tcp:newreno" => Self::Tcp(TcpController::NewReno, Http2),
            "tcp:cubic" => Self::Tcp(TcpController::Cubic, Http2),
            "tcp:bbr" => Self::Tcp(TcpController::Bbr, Http2),
            "tcp:bbr/h1" => Self::Tcp(TcpController::Bbr, Http11),
            "tcp:newreno/h1" => Self::Tcp(TcpController::NewReno, Http11),
            "tcp:cubic/h1" => Self::Tcp(TcpController::Cubic, Http11),
            rival if rival.starts_with("noq:") || rival.starts_with("quinn:") => parse_rival(rival)?,
            unknown if unknown.ends_with(OWN_WINDOWS) => {
                return Err(UnknownStack::Name { name: unknown.to_owned() });
            }
            ours => parse_ours(ours)?,
        })
    }
}

#[cfg(feature = "experiments")]
fn parse_rival(name: &str) -> Result<Stack, UnknownStack> {
    rival::parse(name).ok_or_else(|| UnknownStack::Name { name: name.to_owned() })
}

#[cfg(not(feature = "experiments"))]
fn parse_rival(name: &str) -> Result<Stack, UnknownStack> {
    let name = name.to_owned();
    let is_known = RIVAL_NAMES.contains(&name.as_str());
    Err(if is_known { UnknownStack::NotBuilt { name } } else { UnknownStack::Name { name } })
}

/// A profile's name or the path of its file, with parameters if it has some; then perhaps `@` and a number of
/// connections.
fn parse_ours(name: &str) -> Result<Stack, UnknownStack> {
    let unknown = || UnknownStack::Name { name: name.to_owned() };
    let count = name.rsplit_once('@').and_then(|(profile, count)| Some((profile, count.parse().ok()?)));
    let (profile, connections) = match count {
        Some((profile, count)) if (2..=MAX_MEMBERS).contains(&count) => (profile, count),
        Some(_) => return Err(unknown()),
        None => (name, 1),
    };
    let profile = posthaste_schemes::find(profile).map_err(|error| match error {
        ProfileError::Unknown { .. } => unknown(),
        error => UnknownStack::Profile(error),
    })?;
    Ok(Stack::Posthaste(profile, connections))
}

/// A stack as a file says it.
#[derive(serde::Deserialize)]
#[serde(untagged, expecting = "expected a stack's name, or a profile: { name = \"...\", ... }")]
enum StackFile {
    Name(String),
    Profile {
        name: String,
        /// As in `profile@3`.
        #[serde(default = "one")]
        connections: usize,
        #[serde(flatten)]
        text: toml::Table,
    },
}

fn one() -> usize {
    1
}

impl<'de> serde::Deserialize<'de> for Stack {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match StackFile::deserialize(deserializer)? {
            StackFile::Name(name) => name.parse().map_err(serde::de::Error::custom),
            StackFile::Profile { connections, .. } if !(1..=MAX_MEMBERS).contains(&connections) => {
                Err(serde::de::Error::custom(format_args!(
                    "`connections` is out of range: from 1 to {MAX_MEMBERS}"
                )))
            }
            StackFile::Profile { name, connections, text } => {
                let text = toml::to_string(&text).map_err(serde::de::Error::custom)?;
                posthaste_schemes::from_toml(&name, &text)
                    .map(|profile| Self::Posthaste(profile, connections))
                    .map_err(|error| {
                        match error {
                            // Its lines are not those of the file.
                            ProfileError::Invalid { name, message, .. } => {
                                serde::de::Error::custom(format_args!("profile `{name}`: {message}"))
                            }
                            other => serde::de::Error::custom(other),
                        }
                    })
            }
        }
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Posthaste(profile, 1) => f.write_str(profile.name()),
            Self::Posthaste(profile, connections) => write!(f, "{}@{connections}", profile.name()),
            #[cfg(feature = "experiments")]
            Self::Noq(rival) => write!(f, "noq:{}", rival.name("bbr3")),
            #[cfg(feature = "experiments")]
            Self::Quinn(rival) => write!(f, "quinn:{}", rival.name("bbr")),
            Self::Tcp(controller, version) => {
                let controller = match controller {
                    TcpController::NewReno => "newreno",
                    TcpController::Cubic => "cubic",
                    TcpController::Bbr => "bbr",
                };
                let suffix = if *version == HttpVersion::Http11 { "/h1" } else { "" };
                write!(f, "tcp:{controller}{suffix}")
            }
        }
    }
}

/// Where traces of our connections go.
#[cfg(feature = "experiments")]
pub type Traces = Arc<dyn posthaste_transport::QlogSink>;

/// Without the feature `experiments` traces do not exist.
#[cfg(not(feature = "experiments"))]
pub type Traces = std::convert::Infallible;

/// Behind a rival's name: with its own windows.
const OWN_WINDOWS: &str = "/default";

/// What both ends of a connection are built with, whatever the stack.
#[derive(Clone)]
pub struct Settings {
    /// Largest UDP payload sent, in bytes; TCP segments are sized to the same IP packets. Default 1252.
    pub max_datagram_size: u16,
    /// Receive window of a stream, for stacks whose windows are settings (ours come from the profile). noq-proto
    /// takes at most 1.6 MB of it, quinn-proto 3 MB: with more, they close connections that see a burst of loss.
    pub stream_window: ByteCount,
    /// Receive window of the connection, for the same stacks.
    pub connection_window: ByteCount,
    /// Silence after which a QUIC connection ends. Default an hour: the run's deadline ends what cannot finish.
    pub idle_timeout: Duration,
    /// Where our servers keep what they learn of paths.
    pub path_memory: PathMemory,
    /// The last byte of the address by which a server of ours knows its client. Default 2.
    pub client_number: u8,
    /// Where traces of our connections go.
    pub qlog: Option<Traces>,
    /// TLS of the QUIC stacks. Default: full handshakes, without tickets.
    pub tls: tls::Pair,
    /// Where our clients keep address tokens, which all our servers then know. Default nowhere.
    pub tokens: Option<Arc<dyn TokenStore>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_datagram_size: 1252,
            stream_window: ByteCount::new(16 << 20),
            connection_window: ByteCount::new(24 << 20),
            idle_timeout: Duration::from_secs(3600),
            path_memory: PathMemory::Nowhere,
            client_number: 2,
            qlog: None,
            tls: tls::Pair::default(),
            tokens: None,
        }
    }
}

impl Stack {
    /// Our transport with a profile, which may be built in code, and so many connections of a client to a server, 1 to
    /// [`MAX_MEMBERS`].
    pub const fn profile(profile: Profile, connections: usize) -> Self {
        Self::Posthaste(profile, connections)
    }

    /// Both ends of a connection; everything random in them comes from `rng`.
    pub fn pair(&self, settings: &Settings, rng: &mut Rng) -> Pair {
        match self {
            Self::Posthaste(profile, connections) => Pair {
                client: posthaste::client(profile, *connections, settings, rng),
                server: posthaste::server(profile, *connections, settings, rng),
            },
            #[cfg(feature = "experiments")]
            Self::Noq(rival) => Pair {
                client: noq::client(*rival, settings, rng),
                server: noq::server(*rival, settings, rng),
            },
            #[cfg(feature = "experiments")]
            Self::Quinn(rival) => Pair {
                client: quinn::client(*rival, settings, rng),
                server: quinn::server(*rival, settings, rng),
            },
            Self::Tcp(controller, version) => {
                let Settings { max_datagram_size, connection_window, .. } = *settings;
                posthaste_lab_tcp::pair(*controller, *version, max_datagram_size, connection_window, rng)
            }
        }
    }

    /// Ends of two QUIC stacks: a [`StreamKey`] is a QUIC stream ID in all of them. `None` if either is the TCP
    /// model, whose two ends know of each other what their segments do not carry.
    ///
    /// [`StreamKey`]: crate::peer::StreamKey
    pub fn mixed_pair(client: &Self, server: &Self, settings: &Settings, rng: &mut Rng) -> Option<Pair> {
        if matches!(client, Self::Tcp(..)) || matches!(server, Self::Tcp(..)) {
            return None;
        }
        Some(Pair { client: client.pair(settings, rng).client, server: server.pair(settings, rng).server })
    }

    /// How the stack's servers keep what they learn of paths; `None` if they make nothing of it.
    pub fn history_rules(&self) -> Option<HistoryRules> {
        match self {
            Self::Posthaste(profile, _) => profile.history_rules(),
            _ => None,
        }
    }

    /// True if the same seed gives the same run, bit for bit. noq-proto's BBR draws the times of its probes from a
    /// generator that it seeds from the operating system and that cannot be set from outside; all else repeats.
    pub fn is_repeatable(&self) -> bool {
        #[cfg(feature = "experiments")]
        if let Self::Noq(rival) = self {
            return rival.controller != RivalController::Bbr;
        }
        true
    }
}
