//! Which build of `posthaste` a run is of, and when it was made: a journal outlives builds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use posthaste_campaign::identity::Identity;
use posthaste_campaign::provenance;
use serde::{Deserialize, Serialize};

use super::cells::{Cell, Contender};
use super::journal::Entry;
use crate::Result;
use crate::emulated;

/// Bytes of a digest that are kept.
const BYTES: usize = 8;

/// Of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// Digest of the `posthaste` that ran.
    program: String,
    /// Digest of the profile's file; none for a built-in profile, which is part of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    /// Day in UTC, such as 2026-11-21.
    date: String,
}

/// What runs are made with now.
#[derive(Debug)]
pub(super) struct Build {
    program: String,
    /// Digests of the profiles that are files, by their names.
    profiles: BTreeMap<String, String>,
}

impl Build {
    /// Reads the program and all files of profiles.
    pub(super) fn of(program: &Path, cells: &[Cell]) -> Result<Self> {
        let mut profiles = BTreeMap::new();
        for cell in cells {
            if let Contender::Profile(name) = &cell.contender
                && emulated::is_file(name)
                && !profiles.contains_key(name)
            {
                profiles.insert(name.clone(), digest(Path::new(name))?);
            }
        }
        Ok(Self { program: digest(program)?, profiles })
    }

    fn profile(&self, contender: &Contender) -> Option<&String> {
        match contender {
            Contender::Profile(name) => self.profiles.get(name),
            Contender::Kernel(_) => None,
        }
    }

    /// What is noted of a run that is made today.
    pub(super) fn origin(&self, contender: &Contender) -> Result<Origin> {
        let date = String::from_utf8(Command::new("date").args(["-u", "+%F"]).output()?.stdout)?;
        let (program, profile) = (self.program.clone(), self.profile(contender).cloned());
        Ok(Origin { program, profile, date: date.trim().to_owned() })
    }

    /// What must be known of runs that are taken from the journal; none if all are of this build.
    pub(super) fn warning(&self, entries: &[&Entry]) -> Option<String> {
        let kinds = [
            "of another text of their profile's file",
            "of another build of posthaste",
            "of a build that was not noted",
        ];
        let kind = |entry: &&Entry| {
            let Some(origin) = &entry.origin else { return Some(kinds.len() - 1) };
            // What was changed on purpose comes first: a build changes with every line of the source.
            let profile = self.profile(&entry.cell.contender);
            let changed = [origin.profile.as_ref() != profile, origin.program != self.program];
            changed.into_iter().position(|is_changed| is_changed)
        };
        let counts = provenance::count_kinds(&kinds, entries.iter().map(kind))?;
        Some(format!(
            "warning: of {} runs that are in the journal and used again, {counts}; --fresh begins anew",
            entries.len()
        ))
    }
}

fn digest(file: &Path) -> Result<String> {
    let identity = Identity::of_file(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(identity.hexadecimal(BYTES))
}

/// For readers of figures: when the runs behind them were made, and of how many builds they are.
pub(super) fn describe(entries: &[&Entry]) -> String {
    if entries.is_empty() {
        return "Nothing is measured.".to_owned();
    }
    let origins = || entries.iter().filter_map(|entry| entry.origin.as_ref());
    let dates: BTreeSet<&str> = origins().map(|origin| origin.date.as_str()).collect();
    let mut text = match (dates.first(), dates.last()) {
        (Some(first), Some(last)) if first == last => format!("Measured {first}"),
        (Some(first), Some(last)) => format!("Measured {first} to {last}"),
        _ => "Measured on days that were not noted".to_owned(),
    };
    let builds: BTreeSet<&str> = origins().map(|origin| origin.program.as_str()).collect();
    let unnoted = entries.len() - origins().count();
    if builds.len() > 1 {
        let _ = write!(text, ", with {} builds of `posthaste`", builds.len());
    }
    if unnoted > 0 && !builds.is_empty() {
        let _ = write!(text, "; of {unnoted} of {} runs neither day nor build was noted", entries.len());
    }
    let files = entries.iter().filter_map(|entry| {
        let digest = entry.origin.as_ref()?.profile.as_deref()?;
        Some((entry.cell.contender.to_string(), digest))
    });
    for (name, texts) in provenance::changed(files) {
        let _ = write!(text, "; {name} was changed meanwhile ({texts} texts)");
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::super::cells::Rival;
    use super::super::ends::Shares;
    use super::super::run::Conditions;
    use super::*;

    fn entry(profile: &str, origin: Option<(&str, Option<&str>, &str)>) -> Entry {
        let contender = Contender::Profile(profile.to_owned());
        Entry {
            cell: Cell { contender, rival: Rival::Cubic, flows: 1, megabits: 10.0, buffer: 1.0 },
            conditions: Conditions { rtt: 40.0, warm_up: 5.0, seconds: 20.0 },
            seed: 1,
            shares: Shares { contender: 1e6, kernel: vec![1e6] },
            lateness: 1e-4,
            origin: origin.map(|(program, profile, date)| Origin {
                program: program.to_owned(),
                profile: profile.map(str::to_owned),
                date: date.to_owned(),
            }),
        }
    }

    #[test]
    fn a_build_knows_its_own_runs_and_counts_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let (program, file) = (folder.path().join("posthaste"), folder.path().join("mine.toml"));
        std::fs::write(&program, "one").unwrap();
        std::fs::write(&file, "base = \"cubic\"").unwrap();
        let name = file.to_str().unwrap();
        let mine = entry(name, None);
        let build = || Build::of(&program, &[mine.cell.baseline(), mine.cell.clone()]).unwrap();
        let made = Entry { origin: Some(build().origin(&mine.cell.contender).unwrap()), ..mine.clone() };
        let date = made.origin.as_ref().unwrap().date.clone();
        assert!(date.len() == 10 && date.starts_with("20"), "{date}");
        assert_eq!(build().warning(&[&made]), None);
        std::fs::write(&file, "base = \"standard\"").unwrap();
        let warning = build().warning(&[&made]).unwrap();
        assert!(warning.contains("of 1 runs") && warning.contains("1 of another text"), "{warning}");
        std::fs::write(&file, "base = \"cubic\"").unwrap();
        std::fs::write(&program, "two").unwrap();
        let warning = build().warning(&[&made, &made, &mine]).unwrap();
        assert!(
            warning.contains("2 of another build of posthaste, 1 of a build that was not noted"),
            "{warning}"
        );
        assert!(warning.ends_with("--fresh begins anew"));
        std::fs::remove_file(&file).unwrap();
        assert!(Build::of(&program, &[mine.cell]).unwrap_err().to_string().contains("mine.toml"));
    }

    #[test]
    fn a_page_says_when_and_of_how_many_builds() {
        let first = entry("cubic", Some(("a", None, "2026-11-20")));
        let second = entry("cubic", Some(("a", None, "2026-11-22")));
        let other = entry("cubic", Some(("b", None, "2026-11-21")));
        let old = entry("cubic", None);
        assert_eq!(describe(&[]), "Nothing is measured.");
        assert_eq!(describe(&[&first]), "Measured 2026-11-20.");
        assert_eq!(describe(&[&second, &first]), "Measured 2026-11-20 to 2026-11-22.");
        assert_eq!(
            describe(&[&first, &second, &other, &old]),
            "Measured 2026-11-20 to 2026-11-22, with 2 builds of `posthaste`; of 1 of 4 runs neither day nor build was noted."
        );
        assert_eq!(describe(&[&old]), "Measured on days that were not noted.");
        let texts = ["x", "y"].map(|text| entry("./m.toml", Some(("a", Some(text), "2026-11-20"))));
        let described = describe(&[&texts[0], &texts[1]]);
        assert!(described.ends_with("./m.toml was changed meanwhile (2 texts)."), "{described}");
    }
}
