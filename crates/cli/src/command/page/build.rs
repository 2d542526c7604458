//! What runs were made with: a journal outlives builds, and files that it was begun with.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use posthaste_campaign::identity::Identity;
use posthaste_campaign::provenance;

use super::plan::PathPlan;
use super::record::{Build, Key, Record};
use super::target::{Contestant, Front, Origin};
use crate::exit::Failure;
use crate::profile;

/// What is said of runs in journals of before builds were noted.
const UNNOTED: &str = "of a build that was not noted";

/// Digests of what runs are made with now.
#[derive(Debug, Default)]
pub(super) struct Builds {
    program: String,
    /// By the names of the plan.
    paths: BTreeMap<String, String>,
    servers: BTreeMap<String, String>,
}

impl Builds {
    /// Reads this program and the files of profiles.
    pub(super) fn of(paths: &[PathPlan], contestants: &[Contestant]) -> Result<Self, Failure> {
        let program = Identity::of_this_program()
            .map_err(|error| Failure::runtime(format!("cannot read this program: {error}")))?;
        let server = |contestant: &Contestant| {
            let text = match &contestant.origin {
                Origin::Command(text) | Origin::Url(text) | Origin::Front(Front { command: text, .. }) => {
                    text.clone()
                }
                Origin::Profile(place) if profile::is_file(place) => {
                    std::fs::read_to_string(Path::new(place)).map_err(|error| {
                        Failure::usage(format!("cannot read the profile {place}: {error}"))
                    })?
                }
                // What the name stands for is part of the program.
                Origin::Profile(name) => name.clone(),
            };
            Ok::<_, Failure>((contestant.name.clone(), of_text(&text)))
        };
        Ok(Self {
            program: program.short(),
            paths: paths.iter().map(|path| (path.name.clone(), of_text(&path.text))).collect(),
            servers: contestants.iter().map(server).collect::<Result<_, Failure>>()?,
        })
    }

    /// What is noted of a run.
    pub(super) fn of_run(&self, key: &Key) -> Build {
        let of = |all: &BTreeMap<String, String>, name: &str| all.get(name).cloned().unwrap_or_default();
        Build {
            program: self.program.clone(),
            path: of(&self.paths, &key.path),
            server: of(&self.servers, &key.contestant),
        }
    }

    /// What must be known of runs that are taken from a journal; none if all are of this build.
    pub(super) fn warning(&self, kept: &[Record], journal: &Path) -> Option<String> {
        let kinds = [
            "over a path that is described otherwise now",
            "from a server whose profile or command is another now",
            "of another build of posthaste",
            UNNOTED,
        ];
        let kind = |record: &Record| {
            let Some(build) = &record.build else { return Some(kinds.len() - 1) };
            let now = self.of_run(&record.key);
            // What was changed on purpose comes first: a build changes with every line of the source.
            let changed = [build.path != now.path, build.server != now.server, build.program != now.program];
            changed.into_iter().position(|is_changed| is_changed)
        };
        let counts = provenance::count_kinds(&kinds, kept.iter().map(kind))?;
        Some(format!(
            "warning: of the {} runs that {} has and that count here, {counts}; to start over, remove it or name another file with --journal",
            kept.len(),
            journal.display(),
        ))
    }
}

/// The builds of `posthaste` that runs are of, each once.
pub(super) fn programs(records: &[Record]) -> Vec<&str> {
    let programs: BTreeSet<&str> =
        records.iter().filter_map(|record| Some(record.build.as_ref()?.program.as_str())).collect();
    programs.into_iter().collect()
}

/// What readers of figures must know of the builds behind them; none if all runs are of one build.
pub(super) fn describe(records: &[Record]) -> Option<String> {
    let programs = programs(records).len();
    let unnoted = records.iter().filter(|record| record.build.is_none()).count();
    let mut text = match programs {
        0 => return None,
        1 => String::new(),
        count => format!("runs of {count} builds of posthaste"),
    };
    if unnoted > 0 {
        let _ = write!(text, "{}{unnoted} of {} runs {UNNOTED}", separator(&text), records.len());
    }
    let digests = |of: for<'a> fn(&'a Record, &'a Build) -> (&'a str, &'a str)| {
        let noted = records.iter().filter_map(move |record| Some(of(record, record.build.as_ref()?)));
        provenance::changed(noted)
    };
    for (what, changed) in [
        ("path", digests(|record, build| (record.key.path.as_str(), build.path.as_str()))),
        ("server", digests(|record, build| (record.key.contestant.as_str(), build.server.as_str()))),
    ] {
        for (name, _) in changed {
            let _ = write!(text, "{}the {what} {name} was changed meanwhile", separator(&text));
        }
    }
    (!text.is_empty()).then_some(text)
}

fn separator(text: &str) -> &'static str {
    if text.is_empty() { "" } else { "; " }
}

/// Enough of a digest to tell texts apart, in hexadecimal.
fn of_text(text: &str) -> String {
    Identity::of_text(text).short()
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Protocol;
    use super::super::tally::tests::record;
    use super::*;

    fn builds(path: &str, command: &str) -> Builds {
        let path = PathPlan {
            name: "q".to_owned(),
            description: String::new(),
            text: path.to_owned(),
            argument: None,
        };
        let contestant = Contestant {
            name: "a".to_owned(),
            protocol: Protocol::H2,
            origin: Origin::Command(command.to_owned()),
        };
        Builds::of(&[path], &[contestant]).unwrap()
    }

    fn made_by(builds: &Builds, round: u64) -> Record {
        let record = record("a", round, 1.0);
        Record { build: Some(builds.of_run(&record.key)), ..record }
    }

    #[test]
    fn runs_of_this_build_need_no_word_and_others_are_counted_by_what_differs() {
        let now = builds("rate 1", "nginx");
        let journal = Path::new("j");
        let ours = [made_by(&now, 1), made_by(&now, 2)];
        assert_eq!(now.warning(&ours, journal), None);
        assert_eq!((describe(&ours), programs(&ours).len()), (None, 1));

        let mut other_program = made_by(&now, 3);
        other_program.build.as_mut().unwrap().program = "x".to_owned();
        let others = [
            made_by(&now, 1),
            other_program,
            made_by(&builds("rate 2", "nginx"), 4),
            made_by(&builds("rate 1", "nginx -g"), 5),
            record("a", 6, 1.0),
        ];
        let warning = now.warning(&others, journal).unwrap();
        for expected in [
            "of the 5 runs that j has",
            "1 over a path that is described otherwise now",
            "1 from a server whose profile or command is another now",
            "1 of another build of posthaste",
            "1 of a build that was not noted",
            "to start over",
        ] {
            assert!(warning.contains(expected), "{expected}: {warning}");
        }
        assert!(!warning.contains('\n'), "one line");
        assert_eq!(
            describe(&others).unwrap(),
            "runs of 2 builds of posthaste; 1 of 5 runs of a build that was not noted; the path q was changed meanwhile; \
             the server a was changed meanwhile"
        );
        assert_eq!(
            describe(&[record("a", 1, 1.0)]),
            None,
            "an old journal alone has nothing to be told apart"
        );
    }

    #[test]
    fn a_profile_of_ones_own_is_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        let contestant = Contestant {
            name: "a".to_owned(),
            protocol: Protocol::H3,
            origin: Origin::Profile(file.display().to_string()),
        };
        let server = |text: &str| {
            std::fs::write(&file, text).unwrap();
            Builds::of(&[], std::slice::from_ref(&contestant))
                .unwrap()
                .of_run(&record("a", 1, 1.0).key)
                .server
        };
        let (one, two) = (server("[a]"), server("[b]"));
        assert_ne!(one, two);
        assert_eq!(server("[a]"), one);
    }
}
