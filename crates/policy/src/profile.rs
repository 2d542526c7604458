//! A profile: one factory for each seam.

mod builder;

use std::fmt;
use std::sync::Arc;

use posthaste_units::{ByteCount, Duration, Rate};

use crate::history::HistoryRules;
use crate::slow_start::OWN;
use crate::{
    AckFactory, AckPolicy, Congestion, CongestionFactory, Credit, CreditFactory, Description, Group,
    GroupFactory, PathLimits, PolicyReport, ProfileReport, Repair, RepairFactory, Seam, Silence,
    SilenceFactory, SlowStartFactory, Start, StartFactory,
};

pub use builder::{BuildError, ProfileBuilder};

/// A named bundle of policies, one for each seam. Cloning shares it.
///
/// Built by [`Self::builder`] from factories, or by `posthaste-schemes` from a name or a TOML text.
#[derive(Clone)]
pub struct Profile {
    name: Arc<str>,
    description: Arc<str>,
    start: Arc<dyn StartFactory>,
    slow_start: Arc<dyn SlowStartFactory>,
    congestion: Arc<dyn CongestionFactory>,
    silence: Arc<dyn SilenceFactory>,
    stream_credit: Arc<dyn CreditFactory>,
    connection_credit: Arc<dyn CreditFactory>,
    ack: Arc<dyn AckFactory>,
    repair: Arc<dyn RepairFactory>,
    group: Arc<dyn GroupFactory>,
}

/// With all constants: what follows from a profile follows from this text (the lab's journal knows results by it).
impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Profile");
        shown.field("name", &self.name);
        for (seam, description) in self.descriptions() {
            match (description.text.name, description.constants) {
                (name, constants) if constants.is_empty() => shown.field(seam.name(), &name),
                policy => shown.field(seam.name(), &policy),
            };
        }
        shown.finish_non_exhaustive()
    }
}

impl Profile {
    /// A profile to be made of one factory for each seam; `name` is for reports.
    pub fn builder(name: &str) -> ProfileBuilder {
        ProfileBuilder::new(name)
    }

    /// A builder that begins with the policies of this profile: the same under another name, but for what is set.
    pub fn to_builder(&self, name: &str) -> ProfileBuilder {
        ProfileBuilder::from_profile(self, name)
    }

    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the profile is for, in a sentence; empty if nobody has said.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its policies, with their claims and constants.
    pub fn describe(&self) -> ProfileReport {
        let report = |(seam, description): (Seam, Description)| {
            let Description { text, constants, breaks } = description;
            PolicyReport { seam, text, constants, breaks }
        };
        ProfileReport {
            name: self.name.to_string(),
            description: self.description.to_string(),
            policies: self.descriptions().into_iter().map(report).collect(),
        }
    }

    /// What each policy says of itself, in the order of [`Seam`].
    fn descriptions(&self) -> [(Seam, Description); 9] {
        let slow_start =
            if self.congestion.has_own_startup() { Description::of(OWN) } else { self.slow_start.describe() };
        [
            (Seam::Start, self.start.describe()),
            (Seam::SlowStart, slow_start),
            (Seam::Congestion, self.congestion.describe()),
            (Seam::Silence, self.silence.describe()),
            (Seam::StreamCredit, self.stream_credit.describe()),
            (Seam::ConnectionCredit, self.connection_credit.describe()),
            (Seam::Ack, self.ack.describe()),
            (Seam::Repair, self.repair.describe()),
            (Seam::Group, self.group.describe()),
        ]
    }

    /// What a new path may send first.
    pub fn start(&self) -> Box<dyn Start> {
        self.start.build()
    }

    /// How what is learnt of paths is to be kept for this profile's start; `None` if it makes nothing of it.
    pub fn history_rules(&self) -> Option<HistoryRules> {
        self.start.history_rules()
    }

    /// Congestion control for a new path; its initial window is what [`Self::start`] answered.
    pub fn congestion(&self, limits: PathLimits) -> Box<dyn Congestion> {
        self.congestion.build(limits, self.slow_start.build(limits.max_datagram_size))
    }

    /// The rate on the wire that a client states to servers as guaranteed; `None` for no statement.
    pub fn stated_rate(&self) -> Option<Rate> {
        self.congestion.stated_rate()
    }

    /// True if the size of packets follows the state of the congestion window
    /// ([`CongestionFactory::sizes_packets_by_state`]).
    pub fn sizes_packets_by_state(&self) -> bool {
        self.congestion.sizes_packets_by_state()
    }

    /// The congestion window that a client asks servers to begin with; `None` for no wish.
    pub fn stated_window(&self) -> Option<ByteCount> {
        self.start.stated_window()
    }

    /// What a silent peer means.
    pub fn silence(&self) -> Box<dyn Silence> {
        self.silence.build()
    }

    /// The credit of one stream.
    pub fn stream_credit(&self) -> Box<dyn Credit> {
        self.stream_credit.build()
    }

    /// The credit of the connection.
    pub fn connection_credit(&self) -> Box<dyn Credit> {
        self.connection_credit.build()
    }

    /// What is sent again before it is known to be lost.
    pub fn repair(&self) -> Box<dyn Repair> {
        self.repair.build()
    }

    /// What several connections of one client have in common; `None` if nothing.
    pub fn group(&self) -> Option<Box<dyn Group>> {
        self.group.build(&*self.congestion)
    }

    /// When to acknowledge, given the `max_ack_delay` that was promised to the peer.
    pub fn ack_policy(&self, max_ack_delay: Duration) -> Box<dyn AckPolicy> {
        self.ack.build(max_ack_delay)
    }

    /// The `max_ack_delay` to promise (RFC 9000 section 18.2), in whole milliseconds.
    pub fn max_ack_delay(&self) -> Duration {
        self.ack.max_ack_delay()
    }
}

#[cfg(test)]
mod tests;
