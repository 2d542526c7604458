//! Start `history`: the average of past congestion windows as the first window, at once and unproved.
//!
//! - Claims: a new connection need not find out what the last ones have found out already; 22 to 38 % less time for
//!   1 MB where the average is above the default window.
//! - Source: the light-weight latency reduction scheme for QUIC (Electronics 8(10) 1204, 2019), Algorithm 1.
//! - Use when: all clients of a server share one stable path that belongs to it.
//! - Breaks when: the path has become worse, or the client's is another: the whole average leaves at once into it. RFC
//!   9959 section 4.3 forbids that on the open internet; [`super::careful`] is the safe form.
//! - Experiments: `hs-simple`, `hs-calibrated`, `hs-dumbbell`, `hs-flows`; `hs-stale` and `hs-poisoned` show the harm.

use posthaste_policy::history::{Average, HistoryRules, Scope};
use posthaste_policy::sample::{PathHistory, PathLoss, PathSummary};
use posthaste_policy::{Constant, Description, PolicyText, Seam, Start, StartFactory};
use posthaste_units::{ByteCount, Duration, Time};
use serde::Deserialize;

use super::initial::{self, Initial};
use crate::{Entry, Need, Property, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "history",
    claims: "a new connection begins with the average window of those before it",
    source: "light-weight latency reduction for QUIC (Electronics 8(10) 1204, 2019), Algorithm 1",
    use_when: "all clients share one stable path that is the server's own; not on the internet",
    breaks_when: "the path has become worse or is another: the whole average leaves at once (RFC 9959 section 4.3)",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::start::<Parameters>(TEXT).needing(&[Need {
    seam: Seam::Congestion,
    property: Property::TakesFirstWindow,
    reason: "its whole effect is the first window, and this controller begins with the rate that it is promised: take \
             [start.initial] with it",
}]);

/// The least window that a connection which is resumed goes on from, in datagrams (RFC 9002 section 7.2).
const LEAST_DATAGRAMS: u64 = 2;

/// Parameters of [`History`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// The default window in datagrams; see [`initial::Parameters::datagrams`].
    #[serde(deserialize_with = "value::initial_datagrams")]
    pub datagrams: Option<u64>,
    /// How windows are averaged.
    pub average: PaperAverage,
    /// Whose windows are averaged.
    pub scope: PaperScope,
    /// Bits of an IPv4 address that clients of one average share, with the scope `prefix`.
    #[serde(deserialize_with = "value::ipv4_prefix")]
    pub ipv4_prefix: u8,
    /// The same of IPv6.
    #[serde(deserialize_with = "value::ipv6_prefix")]
    pub ipv6_prefix: u8,
    /// The greatest first window, whatever the average. The paper knows no bound, but what a store or a token says is
    /// not proved by anything: as much as a receiver of ours grants a stream at the most is ours.
    #[serde(deserialize_with = "value::window")]
    pub max_window: ByteCount,
    /// How long an average is good for after its last sample. The paper knows no end; a day is ours.
    #[serde(deserialize_with = "value::lifetime")]
    pub lifetime: Duration,
}

/// The paper offers two averages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaperAverage {
    /// A moving average with the weight 1/8.
    #[default]
    Moving,
    /// The arithmetic mean of all.
    Mean,
}

/// The paper does not say whose windows it averages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaperScope {
    /// Those of all clients: the reading nearest to the paper's words.
    #[default]
    Server,
    /// Those of the client's network, and where nothing is known of that, of all.
    Prefix,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            datagrams: None,
            average: PaperAverage::Moving,
            scope: PaperScope::Server,
            ipv4_prefix: 24,
            ipv6_prefix: 48,
            max_window: ByteCount::new(16 << 20),
            lifetime: Duration::from_secs(24 * 3600),
        }
    }
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let mut constants = initial::Parameters::of_datagrams(self.datagrams).constants();
        let average = match self.average {
            PaperAverage::Moving => "moving, weight 1/8",
            PaperAverage::Mean => "arithmetic mean",
        };
        let scope = match self.scope {
            PaperScope::Server => "one for the server".to_owned(),
            PaperScope::Prefix => {
                format!("one for each /{} and /{}, else the server's", self.ipv4_prefix, self.ipv6_prefix)
            }
        };
        constants.extend([
            Constant::new("average", average),
            Constant::new("scope", scope),
            Constant::new("lifetime", format!("{} min", self.lifetime.as_millis() / 60_000)),
            Constant::new("max_window", value::show_bytes(self.max_window)),
            Constant::new("first window", "max(default, average), at most max_window"),
        ]);
        constants
    }

    /// How histories of this policy are kept.
    pub fn rules(&self) -> HistoryRules {
        let average = match self.average {
            PaperAverage::Moving => Average::Moving,
            PaperAverage::Mean => Average::Mean,
        };
        let (scope, has_fallback) = match self.scope {
            PaperScope::Server => (Scope::Everyone, false),
            PaperScope::Prefix => (Scope::Prefix { ipv4: self.ipv4_prefix, ipv6: self.ipv6_prefix }, true),
        };
        HistoryRules { scope, has_fallback, average, lifetime: self.lifetime, is_exclusive: false }
    }
}

impl StartFactory for Parameters {
    fn build(&self) -> Box<dyn Start> {
        Box::new(History::new(*self))
    }

    fn history_rules(&self) -> Option<HistoryRules> {
        Some(self.rules())
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// The average as the first window; see the module.
#[derive(Debug)]
pub struct History {
    initial: Initial,
    max_window: ByteCount,
    known: Option<PathHistory>,
}

impl History {
    /// The policy with `parameters`, on a path that nothing is known of yet.
    pub fn new(parameters: Parameters) -> Self {
        let initial = Initial::new(initial::Parameters::of_datagrams(parameters.datagrams));
        Self { initial, max_window: parameters.max_window, known: None }
    }
}

impl Start for History {
    fn initial_window(&self, max_datagram_size: ByteCount) -> ByteCount {
        let default = self.initial.initial_window(max_datagram_size);
        match self.known {
            // A 0-RTT handshake: the connection goes on from where the client's last one stood.
            Some(known) if known.continues => {
                known.window.min(self.max_window).max(max_datagram_size * LEAST_DATAGRAMS)
            }
            Some(known) => known.window.min(self.max_window).max(default),
            None => default,
        }
    }

    fn recall(&mut self, known: &PathHistory, _now: Time) {
        self.known = Some(*known);
    }

    fn remember(&self, summary: &PathSummary) -> Option<PathHistory> {
        // A connection that has not even filled the first window has measured nothing: no transfer, no sample.
        let is_transfer = summary.delivered >= self.initial.initial_window(summary.max_datagram_size);
        is_transfer.then_some(PathHistory {
            window: summary.congestion.window,
            min_rtt: summary.rtt.min,
            age: Duration::ZERO,
            continues: false,
            loss: PathLoss::UNKNOWN,
        })
    }
}

#[cfg(test)]
mod tests;
