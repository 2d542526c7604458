//! Several profiles at once: which end of a connection a profile is for, and the words that stand for many.

use posthaste_policy::{PolicyReport, Seam};

use crate::{Definition, ProfileError, built_in};

/// The word for every built-in profile.
pub const ALL: &str = "all";

/// The word for every built-in profile that a server alone can use ([`Definition::is_for_server_alone`]).
pub const ALL_SERVER: &str = "all-server";

/// The words that [`expand`] knows.
pub const WORDS: [&str; 2] = [ALL, ALL_SERVER];

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

impl Definition {
    /// True if a server gains all of the profile with clients that know nothing of it, such as browsers: wherever it
    /// differs from the default profile, the sender alone decides.
    ///
    /// ```
    /// use posthaste_schemes::Definition;
    ///
    /// assert!(Definition::named("history")?.is_for_server_alone());
    /// assert!(!Definition::named("fast-autotune")?.is_for_server_alone(), "the receiver's");
    /// # Ok::<(), posthaste_schemes::ProfileError>(())
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
        let default = crate::default_profile().describe().policies;
        let own = self.describe().policies;
        let differs = |(own, default): &(PolicyReport, PolicyReport)| {
            own.text.name != default.text.name || own.constants != default.constants
        };
        own.into_iter().zip(default).filter(differs).map(|(own, _)| runner(own.seam))
    }
}

/// `names` with the words among them ([`WORDS`]) replaced by what they stand for, in the order of
/// [`names`](crate::names); a profile that is named already is not added again.
///
/// Profiles that need a parameter come in with the registry's example of it: 1 Mbit/s for a guaranteed rate, which
/// every built-in path keeps, but for the outages of the traces. Whatever is no word stays as it is, a name or not.
///
/// ```
/// use posthaste_schemes::selection::expand;
///
/// let names = expand(&["standard", "all-server"]);
/// assert_eq!(names[..2], ["standard", "cubic"]);
/// assert!(names.iter().any(|name| name == "quicming@min_rate=1mbit"));
/// ```
pub fn expand(names: &[impl AsRef<str>]) -> Vec<String> {
    let names = whole(names);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let base = |name: &str| name.split('@').next().unwrap_or_default().to_owned();
    let mut known: Vec<String> =
        names.iter().filter(|name| !WORDS.contains(name)).map(|name| base(name)).collect();
    let mut expanded = Vec::new();
    for name in names {
        if !WORDS.contains(&name) {
            expanded.push(name.to_owned());
            continue;
        }
        for (built_in, profile) in
            built_in::names().iter().filter_map(|name| Some((*name, Definition::named(name).ok()?)))
        {
            let is_meant = name == ALL || profile.is_for_server_alone();
            if is_meant && !known.iter().any(|known| known == built_in) {
                known.push(built_in.to_owned());
                expanded.extend(profile.with_examples().map(|profile| profile.name()));
            }
        }
    }
    expanded
}

/// Every profile, built-in or for comparison, the default first and the others by name; those that need a parameter have
/// the registry's example of it.
///
/// # Errors
/// None, which a test sees to.
pub fn every() -> Result<Vec<Definition>, ProfileError> {
    let mut names = [built_in::names(), built_in::comparison_names()].concat();
    names.sort_unstable_by_key(|name| (*name != built_in::DEFAULT, *name));
    names.into_iter().map(|name| Definition::named(name)?.with_examples()).collect()
}

/// Names that a list was cut into at its commas, put together again where the comma stood between two parameters.
fn whole(parts: &[impl AsRef<str>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for part in parts {
        let part = part.as_ref().trim();
        match names.last_mut() {
            Some(name) if part.contains('=') && !part.contains('@') && name.contains('@') => {
                name.push(',');
                name.push_str(part);
            }
            _ => names.push(part.to_owned()),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_for_server_alone(name: &str) -> bool {
        Definition::named(name).unwrap().is_for_server_alone()
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
            "quicming@min_rate=1mbit",
            "mquic-cubic-plain",
        ] {
            assert!(is_for_server_alone(name), "{name}");
        }
        for name in [
            "cubic-few-acks",
            "cubic-fixed",
            "fast-autotune",
            // With the receive windows of Chromium's client of 2017.
            "history-paper",
            "quicming-paper",
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
        let is_for_receiver = |name: &str| Definition::named(name).unwrap().is_for_receiver_alone();
        assert!(["static", "fast-autotune-paper", "cubic-fixed"].into_iter().all(is_for_receiver));
        let mixed = ["cubic", "modquic-cubic", "mquic-cubic", "history", "cubic-few-acks"];
        assert!(
            !mixed.into_iter().any(is_for_receiver),
            "the default differs in nothing, the others in more"
        );
    }

    #[test]
    fn all_are_all_each_once_and_complete() {
        let names = expand(&[ALL]);
        assert_eq!(names.len(), built_in::names().len());
        assert_eq!(names[0], "cubic");
        for name in &names {
            crate::named(name).unwrap_or_else(|error| panic!("{error}"));
        }
        let bare: Vec<&str> = names.iter().map(|name| name.split('@').next().unwrap()).collect();
        assert_eq!(bare, built_in::names());
    }

    #[test]
    fn a_word_adds_what_is_not_named_already() {
        let names = expand(&["bbr", "quicming@min_rate=5mbit", ALL_SERVER, " mine.toml ", ALL]);
        assert_eq!(names[..3], ["bbr", "quicming@min_rate=5mbit", "cubic"]);
        assert_eq!(names.len(), built_in::names().len() + 1);
        for (once, name) in [(1, "bbr"), (1, "mine.toml"), (0, "quicming@min_rate=1mbit"), (1, "history")] {
            assert_eq!(names.iter().filter(|known| *known == name).count(), once, "{name}");
        }
        assert_eq!(expand(&["cubic", "cubic", "nonsense"]), ["cubic", "cubic", "nonsense"]);
        let server = expand(&[ALL_SERVER]);
        assert!(
            server.iter().all(|name| is_for_server_alone(name)) && server.len() < built_in::names().len()
        );
    }
}
