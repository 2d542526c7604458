//! Profiles: a name or a TOML text turned into one policy for each seam.
//!
//! A profile's TOML has a `description` and a table for each seam, whose only key names the policy:
//!
//! ```toml
//! description = "what it is for"
//! [start.initial]
//! datagrams = 32
//! [slow_start.hystart_pp]
//! [congestion.cubic]
//! beta = 0.7
//! [silence.collapse]
//! [credit.stream.autotune]
//! initial = "1 MiB"
//! maximum = "16 MiB"
//! [credit.connection.autotune]
//! initial = "1536 KiB"
//! maximum = "24 MiB"
//! [ack.standard]
//! max_ack_delay = "25 ms"
//! [repair.none]
//! [group.plain]
//! ```
//!
//! A seam that is left out has the policy of the default profile.

mod bundle;
pub mod selection;
pub(crate) mod value;

use std::str::FromStr;
use std::sync::Arc;

use posthaste_units::{Duration, Rate};

use crate::congestion::PathLimits;
use crate::history::HistoryRules;
use crate::{AckPolicy, Congestion, Credit, Group, ProfileReport, Repair, Silence, Start};
use bundle::Bundle;

/// The default profile.
const DEFAULT: &str = "cubic";

/// The built-in profiles, the default first; the texts are the files in `profiles/`.
const BUILT_IN: [(&str, &str); 37] = [
    (DEFAULT, include_str!("../../../profiles/cubic.toml")),
    ("bbr", include_str!("../../../profiles/bbr.toml")),
    ("bbr-draft", include_str!("../../../profiles/bbr-draft.toml")),
    ("bbr1", include_str!("../../../profiles/bbr1.toml")),
    ("cubic-2flows", include_str!("../../../profiles/cubic-2flows.toml")),
    ("cubic-at-once", include_str!("../../../profiles/cubic-at-once.toml")),
    ("cubic-classic", include_str!("../../../profiles/cubic-classic.toml")),
    ("cubic-few-acks", include_str!("../../../profiles/cubic-few-acks.toml")),
    ("cubic-fixed", include_str!("../../../profiles/cubic-fixed.toml")),
    ("cubic-freeze", include_str!("../../../profiles/cubic-freeze.toml")),
    ("cubic-freeze-paper", include_str!("../../../profiles/cubic-freeze-paper.toml")),
    ("cubic-hybrid", include_str!("../../../profiles/cubic-hybrid.toml")),
    ("cubic-iw32", include_str!("../../../profiles/cubic-iw32.toml")),
    ("fast-autotune", include_str!("../../../profiles/fast-autotune.toml")),
    ("fast-autotune-paper", include_str!("../../../profiles/fast-autotune-paper.toml")),
    ("history", include_str!("../../../profiles/history.toml")),
    ("history-paper", include_str!("../../../profiles/history-paper.toml")),
    ("modquic-bbr", include_str!("../../../profiles/modquic-bbr.toml")),
    ("modquic-bbr-paper", include_str!("../../../profiles/modquic-bbr-paper.toml")),
    ("modquic-cubic", include_str!("../../../profiles/modquic-cubic.toml")),
    ("modquic-cubic-paper", include_str!("../../../profiles/modquic-cubic-paper.toml")),
    ("mquic-bbr", include_str!("../../../profiles/mquic-bbr.toml")),
    ("mquic-bbr-paper", include_str!("../../../profiles/mquic-bbr-paper.toml")),
    ("mquic-bbr-plain", include_str!("../../../profiles/mquic-bbr-plain.toml")),
    ("mquic-cubic", include_str!("../../../profiles/mquic-cubic.toml")),
    ("mquic-cubic-paper", include_str!("../../../profiles/mquic-cubic-paper.toml")),
    ("mquic-cubic-plain", include_str!("../../../profiles/mquic-cubic-plain.toml")),
    ("mquic-cubic-windows", include_str!("../../../profiles/mquic-cubic-windows.toml")),
    ("mquic-newreno", include_str!("../../../profiles/mquic-newreno.toml")),
    ("mquic-newreno-paper", include_str!("../../../profiles/mquic-newreno-paper.toml")),
    ("mquic-newreno-plain", include_str!("../../../profiles/mquic-newreno-plain.toml")),
    ("mquic-newreno-windows", include_str!("../../../profiles/mquic-newreno-windows.toml")),
    ("quicming", include_str!("../../../profiles/quicming.toml")),
    ("quicming-paper", include_str!("../../../profiles/quicming-paper.toml")),
    ("standard", include_str!("../../../profiles/standard.toml")),
    ("static", include_str!("../../../profiles/static.toml")),
    ("static-improved", include_str!("../../../profiles/static-improved.toml")),
];

/// Their names, in the same order.
const NAMES: [&str; BUILT_IN.len()] = {
    let mut names = [""; BUILT_IN.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = BUILT_IN[index].0;
        index += 1;
    }
    names
};

/// A named bundle of policies, one for each seam. Cloning shares it.
///
/// ```
/// use posthaste_policy::Profile;
///
/// let profile = Profile::named("cubic-iw32")?;
/// assert_eq!(profile.start().initial_window(1200.into()), 38_400.into());
/// assert!(Profile::named("cubik").unwrap_err().to_string().contains("cubic-iw32"));
/// # Ok::<(), posthaste_policy::ProfileError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Profile {
    name: Arc<str>,
    bundle: Arc<Bundle>,
}

/// Why there is no such profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No built-in profile has the name.
    #[error("there is no profile `{name}`; there are: {}", .valid.join(", "))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        valid: &'static [&'static str],
    },
    /// The TOML text is not a profile.
    #[error("profile `{name}`{}: {message}", .line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Invalid {
        /// The profile's name.
        name: String,
        /// The line, counted from 1, where the fault is at one place.
        line: Option<usize>,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The profile's guaranteed rate is missing, or is none.
    #[error("profile `{name}`: {message}")]
    MinRate {
        /// The profile's name.
        name: String,
        /// What is wrong, and what would be right.
        message: String,
    },
}

impl Default for Profile {
    /// The profile `cubic`.
    fn default() -> Self {
        Self { name: DEFAULT.into(), bundle: Arc::new(Bundle::default()) }
    }
}

impl Profile {
    /// The built-in profile with this name, or with a name such as `quicming@1mbit`: the profile `quicming` with a
    /// guaranteed rate ([`Self::with_min_rate`]).
    ///
    /// # Errors
    /// [`ProfileError::Unknown`] with the names that there are; [`ProfileError::MinRate`] for a rate that is none, or
    /// that the profile has no use for.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        if let Some((base, rate)) = name.split_once('@') {
            let profile = Self::named(base)?;
            let rate = Rate::from_str(rate).map_err(|error| profile.rate_error(&error.to_string()))?;
            return Ok(Self { name: name.into(), ..profile.with_min_rate(rate)? });
        }
        let (name, text) = BUILT_IN
            .into_iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| ProfileError::Unknown { name: name.to_owned(), valid: &NAMES })?;
        Self::from_toml(name, text)
    }

    /// A profile from its TOML text (see the module); `name` is for reports.
    ///
    /// # Errors
    /// [`ProfileError::Invalid`] for a text that is not TOML, for keys and policies that are unknown, and for values
    /// out of range; the message lists what is valid.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, ProfileError> {
        let invalid = |line, message: &str| ProfileError::Invalid {
            name: name.to_owned(),
            line,
            message: message.trim().to_owned(),
        };
        let bundle: Bundle = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .and_then(|span| text.get(..span.start))
                .map(|before| before.matches('\n').count() + 1);
            invalid(line, error.message())
        })?;
        bundle.check().map_err(|message| invalid(None, &message))?;
        Ok(Self { name: name.into(), bundle: Arc::new(bundle) })
    }

    /// The profile with a guaranteed rate of `rate` on the wire, from 10 kbit/s to 100 Gbit/s. Its name says so:
    /// `quicming@1mbit`.
    ///
    /// # Errors
    /// [`ProfileError::MinRate`] for a rate out of range, or if no policy of the profile wants one.
    pub fn with_min_rate(&self, rate: Rate) -> Result<Self, ProfileError> {
        if self.bundle.guaranteed().is_none() {
            return Err(self.rate_error(
                "has no guaranteed part, so no guaranteed rate can be set; `quicming` has, and \
                 [congestion.guaranteed] in a profile of your own",
            ));
        }
        let (least, greatest) = (value::LEAST_MIN_RATE, value::GREATEST_MIN_RATE);
        if rate < least || rate > greatest {
            return Err(self.rate_error(&format!(
                "a guaranteed rate of {rate} is out of range: from {least} to {greatest}, such as 1mbit"
            )));
        }
        let mut bundle = Bundle::clone(&self.bundle);
        bundle.set_min_rate(rate);
        let base = self.name.split('@').next().unwrap_or_default();
        Ok(Self { name: format!("{base}@{}", value::show_rate(rate)).into(), bundle: Arc::new(bundle) })
    }

    /// True if a policy of the profile wants a guaranteed rate and has none: it promises nothing then.
    pub fn lacks_min_rate(&self) -> bool {
        self.bundle.guaranteed().is_some_and(|parameters| parameters.min_rate.is_none())
    }

    /// Refuses a profile that is not complete.
    ///
    /// # Errors
    /// [`ProfileError::MinRate`] if [`Self::lacks_min_rate`].
    pub fn check_complete(&self) -> Result<(), ProfileError> {
        if self.lacks_min_rate() {
            return Err(self.rate_error(&format!(
                "needs the rate that the network guarantees: --min-rate 1mbit, or `{}@1mbit` as its name",
                self.name
            )));
        }
        Ok(())
    }

    fn rate_error(&self, message: &str) -> ProfileError {
        ProfileError::MinRate { name: self.name.to_string(), message: message.to_owned() }
    }

    /// The names of the built-in profiles, the default first.
    pub const fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the profile is for, in a sentence.
    pub fn description(&self) -> &str {
        &self.bundle.description
    }

    /// Its policies, with their claims and constants.
    pub fn describe(&self) -> ProfileReport {
        ProfileReport {
            name: self.name.to_string(),
            description: self.bundle.description.clone(),
            policies: self.bundle.reports(),
        }
    }

    /// What a new path may send first.
    pub fn start(&self) -> Box<dyn Start> {
        self.bundle.start.build()
    }

    /// How what is learnt of paths is to be kept for this profile's start; `None` if it makes nothing of it.
    pub fn history_rules(&self) -> Option<HistoryRules> {
        self.bundle.start.history_rules()
    }

    /// Congestion control for a new path; its initial window is what [`Self::start`] answered.
    pub fn congestion(&self, limits: PathLimits) -> Box<dyn Congestion> {
        let slow_start = self.bundle.slow_start.build(limits.max_datagram_size);
        self.bundle.congestion.build(slow_start, limits)
    }

    /// What a silent peer means.
    pub fn silence(&self) -> Box<dyn Silence> {
        self.bundle.silence.build()
    }

    /// The credit of one stream.
    pub fn stream_credit(&self) -> Box<dyn Credit> {
        self.bundle.credit.stream.build()
    }

    /// The credit of the connection.
    pub fn connection_credit(&self) -> Box<dyn Credit> {
        self.bundle.credit.connection.build()
    }

    /// What is sent again before it is known to be lost.
    pub fn repair(&self) -> Box<dyn Repair> {
        self.bundle.repair.build()
    }

    /// What several connections of one client have in common; `None` if nothing.
    pub fn group(&self) -> Option<Box<dyn Group>> {
        self.bundle.group.build(&self.bundle.congestion)
    }

    /// When to acknowledge, given the `max_ack_delay` that was promised to the peer.
    pub fn ack_policy(&self, max_ack_delay: Duration) -> Box<dyn AckPolicy> {
        self.bundle.ack.build(max_ack_delay)
    }

    /// The `max_ack_delay` to promise (RFC 9000 section 18.2), in whole milliseconds.
    pub fn max_ack_delay(&self) -> Duration {
        self.bundle.ack.max_ack_delay()
    }
}

#[cfg(test)]
mod tests;
