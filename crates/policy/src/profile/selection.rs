//! Several profiles at once: which end of a connection a profile is for, and the words that stand for many.

use posthaste_units::Rate;

use super::Profile;
use crate::{PolicyReport, Seam};

/// The word for every built-in profile.
pub const ALL: &str = "all";

/// The word for every built-in profile that a server alone can use ([`Profile::is_for_server_alone`]).
pub const ALL_SERVER: &str = "all-server";

/// The words that [`expand`] knows.
pub const WORDS: [&str; 2] = [ALL, ALL_SERVER];

/// What is promised to profiles with a guaranteed part where nothing else is said: 1 Mbit/s, which every built-in path
/// keeps, but for the outages of the traces.
pub const DEFAULT_MIN_RATE: Rate = Rate::from_bits_per_second(1_000_000);

/// Who has to run a policy of a seam for a download to be another than without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runner {
    /// The end that sends the data: it is enough that the server does.
    Sender,
    /// The end that receives them: browsers know nothing of it.
    Receiver,
    /// The sender, with a receiver that plays its part in it.
    Both,
}

const fn runner(seam: Seam) -> Runner {
    match seam {
        // Windows, rates and what a silence means are the sender's own business.
        Seam::Start | Seam::SlowStart | Seam::Congestion | Seam::Silence | Seam::Repair => Runner::Sender,
        // Credit is what a receiver grants.
        Seam::StreamCredit | Seam::ConnectionCredit => Runner::Receiver,
        // The receiver acknowledges; a sender may ask for less of it, if the receiver has said that it can be asked
        // (draft-ietf-quic-ack-frequency), which browsers do not say. And a server knows the members of a group by the
        // token that their client brings.
        Seam::Ack | Seam::Group => Runner::Both,
    }
}

impl Profile {
    /// True if a server gains all of the profile with clients that know nothing of it, such as browsers: wherever it
    /// differs from the default profile, the sender alone decides.
    ///
    /// ```
    /// use posthaste_policy::Profile;
    ///
    /// assert!(Profile::named("history")?.is_for_server_alone());
    /// assert!(!Profile::named("fast-autotune")?.is_for_server_alone(), "the receiver's");
    /// # Ok::<(), posthaste_policy::ProfileError>(())
    /// ```
    pub fn is_for_server_alone(&self) -> bool {
        self.runners().all(|runner| runner == Runner::Sender)
    }

    /// True if the profile changes a download only by what the receiver does: a server gains nothing of it.
    pub fn is_for_receiver_alone(&self) -> bool {
        let mut runners = self.runners().peekable();
        runners.peek().is_some() && runners.all(|runner| runner == Runner::Receiver)
    }

    /// Who runs what the profile does otherwise than the default one.
    fn runners(&self) -> impl Iterator<Item = Runner> {
        let (own, default) = (self.describe().policies, Self::default().describe().policies);
        let differs = |(own, default): &(PolicyReport, PolicyReport)| {
            own.text.name != default.text.name || own.constants != default.constants
        };
        own.into_iter().zip(default).filter(differs).map(|(own, _)| runner(own.seam))
    }
}

/// `names` with the words among them ([`WORDS`]) replaced by what they stand for, in the order of
/// [`Profile::names`]; a profile that is named already is not added again.
///
/// Profiles that want a guaranteed rate come in as `NAME@RATE` with `min_rate`, or bare if there is none. Whatever is no
/// word stays as it is, a name or not.
///
/// ```
/// use posthaste_policy::profile::selection::{DEFAULT_MIN_RATE, expand};
///
/// let names = expand(&["standard", "all-server"], Some(DEFAULT_MIN_RATE));
/// assert_eq!(names[..2], ["standard", "cubic"]);
/// assert!(names.iter().any(|name| name == "quicming@1mbit"));
/// ```
pub fn expand(names: &[impl AsRef<str>], min_rate: Option<Rate>) -> Vec<String> {
    let names: Vec<&str> = names.iter().map(|name| name.as_ref().trim()).collect();
    let base = |name: &str| name.split('@').next().unwrap_or_default().to_owned();
    let mut known: Vec<String> =
        names.iter().filter(|name| !WORDS.contains(name)).map(|name| base(name)).collect();
    let mut expanded = Vec::new();
    for name in names {
        if !WORDS.contains(&name) {
            expanded.push(name.to_owned());
            continue;
        }
        for profile in Profile::names().iter().filter_map(|name| Profile::named(name).ok()) {
            let is_meant = name == ALL || profile.is_for_server_alone();
            if is_meant && !known.iter().any(|known| known == profile.name()) {
                known.push(profile.name().to_owned());
                expanded.push(with_rate(&profile, min_rate));
            }
        }
    }
    expanded
}

/// The profile's name, with the rate if it wants one.
fn with_rate(profile: &Profile, min_rate: Option<Rate>) -> String {
    let promised = min_rate.filter(|_| profile.lacks_min_rate());
    let promised = promised.and_then(|rate| profile.with_min_rate(rate).ok());
    promised.as_ref().unwrap_or(profile).name().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_for_server_alone(name: &str) -> bool {
        Profile::named(name).unwrap().is_for_server_alone()
    }

    #[test]
    fn what_only_a_sender_decides_is_for_a_server_alone() {
        for name in [
            "cubic",
            "standard",
            "bbr",
            "cubic-2flows",
            "cubic-at-once",
            "cubic-freeze",
            "cubic-iw32",
            "history",
            "history-paper",
            "quicming@1mbit",
            "quicming-paper",
            "mquic-cubic-plain",
        ] {
            assert!(is_for_server_alone(name), "{name}");
        }
        for name in [
            "cubic-few-acks",
            "cubic-fixed",
            "fast-autotune",
            "modquic-cubic",
            "modquic-bbr-paper",
            "mquic-cubic",
            "mquic-newreno-windows",
            "static",
        ] {
            assert!(!is_for_server_alone(name), "{name}");
        }
    }

    #[test]
    fn what_only_a_receiver_decides_is_no_use_to_a_server() {
        let is_for_receiver = |name: &str| Profile::named(name).unwrap().is_for_receiver_alone();
        assert!(["static", "fast-autotune-paper", "cubic-fixed"].into_iter().all(is_for_receiver));
        let mixed = ["cubic", "modquic-cubic", "mquic-cubic", "history", "cubic-few-acks"];
        assert!(
            !mixed.into_iter().any(is_for_receiver),
            "the default differs in nothing, the others in more"
        );
    }

    #[test]
    fn all_are_all_each_once_and_complete() {
        let names = expand(&[ALL], Some(DEFAULT_MIN_RATE));
        assert_eq!(names.len(), Profile::names().len());
        assert_eq!(names[0], "cubic");
        for name in &names {
            assert!(Profile::named(name).is_ok_and(|profile| profile.check_complete().is_ok()), "{name}");
        }
        let bare: Vec<&str> = names.iter().map(|name| name.split('@').next().unwrap()).collect();
        assert_eq!(bare, Profile::names());
        assert_eq!(expand(&[ALL], None), Profile::names());
    }

    #[test]
    fn a_word_adds_what_is_not_named_already() {
        let names =
            expand(&["bbr", "quicming@5mbit", ALL_SERVER, " mine.toml ", ALL], Some(DEFAULT_MIN_RATE));
        assert_eq!(names[..3], ["bbr", "quicming@5mbit", "cubic"]);
        assert_eq!(names.len(), Profile::names().len() + 1);
        for (once, name) in [(1, "bbr"), (1, "mine.toml"), (0, "quicming@1mbit"), (1, "quicming-paper@1mbit")]
        {
            assert_eq!(names.iter().filter(|known| *known == name).count(), once, "{name}");
        }
        assert_eq!(expand(&["cubic", "cubic", "nonsense"], None), ["cubic", "cubic", "nonsense"]);
        let server = expand(&[ALL_SERVER], None);
        assert!(server.iter().all(|name| is_for_server_alone(name)) && server.len() < Profile::names().len());
    }
}
