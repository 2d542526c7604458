//! What a policy says of itself: `posthaste profiles` prints it, people choose by it.

use serde::Serialize;

/// A seam: the kind of decision that a policy makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seam {
    /// What a new path may send first ([`crate::Start`]).
    Start,
    /// How the window grows until the capacity is found ([`crate::SlowStart`]).
    SlowStart,
    /// How much may be in flight, and how fast it leaves ([`crate::Congestion`]).
    Congestion,
    /// What a silent peer means ([`crate::Silence`]).
    Silence,
    /// How much a peer may send on one stream ([`crate::Credit`]).
    #[serde(rename = "credit.stream")]
    StreamCredit,
    /// How much a peer may send on the connection ([`crate::Credit`]).
    #[serde(rename = "credit.connection")]
    ConnectionCredit,
    /// When to acknowledge ([`crate::AckPolicy`]).
    Ack,
    /// What is sent again before it is known to be lost ([`crate::Repair`]).
    Repair,
    /// What several connections of one client have in common ([`crate::Group`]).
    Group,
}

impl Seam {
    /// The seam's name, as in a profile's TOML (credit's two parts with a dot).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::SlowStart => "slow_start",
            Self::Congestion => "congestion",
            Self::Silence => "silence",
            Self::StreamCredit => "credit.stream",
            Self::ConnectionCredit => "credit.connection",
            Self::Ack => "ack",
            Self::Repair => "repair",
            Self::Group => "group",
        }
    }
}

/// What a policy claims; one constant in each policy's file, beside the code that it speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PolicyText {
    /// The policy's name, as in a profile's TOML.
    pub name: &'static str,
    /// What it does for whom.
    pub claims: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The conditions that it is for.
    pub use_when: &'static str,
    /// The conditions in which it does harm or no good.
    pub breaks_when: &'static str,
}

/// One constant of a policy as a profile sets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Constant {
    /// Its name; the TOML key where it can be set.
    pub name: &'static str,
    /// Its value with its unit.
    pub value: String,
}

impl Constant {
    /// The constant `name` with `value`.
    pub fn new(name: &'static str, value: impl std::fmt::Display) -> Self {
        Self { name, value: value.to_string() }
    }
}

/// What one policy says of itself, with its constants: what a seam's factory answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// What it claims.
    pub text: PolicyText,
    /// Its constants.
    pub constants: Vec<Constant>,
    /// The MUSTs that it breaks.
    pub breaks: Vec<&'static str>,
}

impl Description {
    /// A policy without constants that breaks no MUST.
    pub const fn of(text: PolicyText) -> Self {
        Self { text, constants: Vec::new(), breaks: Vec::new() }
    }

    /// The same with these constants.
    pub fn with_constants(mut self, constants: impl IntoIterator<Item = Constant>) -> Self {
        self.constants = constants.into_iter().collect();
        self
    }

    /// The same with the MUSTs that it breaks.
    pub fn with_breaks(mut self, breaks: Vec<&'static str>) -> Self {
        self.breaks = breaks;
        self
    }
}

impl Default for Description {
    /// What is said of a policy that says nothing of itself.
    fn default() -> Self {
        Self::of(PolicyText {
            name: "custom",
            claims: "not described",
            source: "the program that built the profile",
            use_when: "not described",
            breaks_when: "not described",
        })
    }
}

/// One policy of a profile, with its constants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyReport {
    /// The decision that it makes.
    pub seam: Seam,
    /// What it claims.
    #[serde(flatten)]
    pub text: PolicyText,
    /// Its constants in this profile.
    pub constants: Vec<Constant>,
    /// The MUSTs that it breaks: such a policy is never on unless somebody chooses it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breaks: Vec<&'static str>,
}

/// A whole profile for people (or, serialised, for programs).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileReport {
    /// The profile's name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its policies, in the order of [`Seam`].
    pub policies: Vec<PolicyReport>,
}
