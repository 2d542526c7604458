//! What the clients of a race ask for, from text: `requests@count=50,object=2kB`.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::str::FromStr;

use posthaste_lab::spec::WorkloadSpec;
use posthaste_units::ByteCount;

/// Largest object, which is kept in memory.
const MAX_OBJECT: u64 = 1_000_000_000;

/// A kind of workload.
struct Kind {
    name: &'static str,
    /// Its name in experiment files.
    lab: &'static str,
    /// Its settings and their defaults.
    settings: &'static [(&'static str, &'static str)],
}

const KINDS: [Kind; 3] = [
    Kind { name: "file", lab: "bulk", settings: &[("object", "1MB")] },
    Kind {
        name: "requests",
        lab: "request-response",
        settings: &[("count", "20"), ("object", "20kB"), ("think", "0s")],
    },
    Kind {
        name: "video",
        lab: "video",
        settings: &[("rate", "4mbit"), ("chunk", "2s"), ("chunks", "10"), ("buffer", "6s")],
    },
];

/// A workload, and how it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Workload {
    /// What the client of a run does.
    pub(crate) spec: WorkloadSpec,
    /// Its kind's place in [`KINDS`].
    kind: usize,
    /// The values of all keys, in the order of [`KINDS`].
    values: Vec<String>,
    is_object_given: bool,
}

impl Workload {
    /// Bytes of each answer; all are of one size.
    pub(crate) fn answer(&self) -> ByteCount {
        match &self.spec {
            WorkloadSpec::Video { rate, chunk, .. } => rate.bytes_in(*chunk),
            WorkloadSpec::Bulk { object, .. } | WorkloadSpec::RequestResponse { object, .. } => *object,
            _ => ByteCount::ZERO,
        }
    }

    /// `file`, `requests` or `video`.
    pub(crate) fn name(&self) -> &'static str {
        KINDS[self.kind].name
    }

    /// Body bytes of a run.
    pub(crate) fn bytes(&self) -> u64 {
        self.spec.body_bytes().unwrap_or(0)
    }

    /// Requests of a run.
    pub(crate) fn exchanges(&self) -> u64 {
        self.spec.exchanges().unwrap_or(1)
    }

    /// All settings by their keys, as they were written.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let keys = KINDS[self.kind].settings.iter().map(|(key, _)| (*key).to_owned());
        keys.zip(self.values.iter().cloned()).collect()
    }

    /// The same with the size of `--object`.
    ///
    /// # Errors
    /// If it has one already, or none.
    pub(crate) fn with_object(self, object: ByteCount) -> Result<Self, String> {
        if self.is_object_given {
            return Err("the size of the object is given twice: with --object and in --workload".to_owned());
        }
        if !KINDS[self.kind].settings.iter().any(|(key, _)| *key == "object") {
            return Err(format!(
                "--object does not go with the workload {name}: its chunks have the size rate x chunk",
                name = self.name()
            ));
        }
        let mut values = self.values;
        for ((key, _), value) in KINDS[self.kind].settings.iter().zip(&mut values) {
            if *key == "object" {
                *value = format!("{}B", object.get());
            }
        }
        Self::of(self.kind, values)
    }

    fn of(kind: usize, values: Vec<String>) -> Result<Self, String> {
        let Kind { name, settings: keys, .. } = KINDS[kind];
        let value = |wanted: &str| {
            let found = keys.iter().zip(&values).find(|((key, _), _)| *key == wanted);
            found.map_or((wanted.to_owned(), String::new()), |((key, _), value)| {
                ((*key).to_owned(), value.clone())
            })
        };
        let spec = match name {
            "requests" => WorkloadSpec::RequestResponse {
                object: parsed(value("object"))?,
                count: parsed(value("count"))?,
                think: parsed(value("think"))?,
            },
            "video" => WorkloadSpec::Video {
                rate: parsed(value("rate"))?,
                chunk: parsed(value("chunk"))?,
                chunks: parsed(value("chunks"))?,
                buffer: parsed(value("buffer"))?,
            },
            _ => WorkloadSpec::Bulk { object: parsed(value("object"))?, read_rate: None },
        };
        spec.validate().map_err(|error| error.to_string())?;
        let workload = Self { spec, kind, values, is_object_given: false };
        if (1..=MAX_OBJECT).contains(&workload.answer().get()) {
            Ok(workload)
        } else if name == "video" {
            Err("a chunk (rate x chunk) must be from 1B to 1GB".to_owned())
        } else {
            Err("`object` must be from 1B to 1GB".to_owned())
        }
    }
}

fn parsed<T: FromStr<Err: Display>>((key, value): (String, String)) -> Result<T, String> {
    value.parse().map_err(|error| format!("`{key}`: {error}"))
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, settings) = text.split_once('@').unwrap_or((text, ""));
        let kind = KINDS.iter().position(|kind| name == kind.name || name == kind.lab);
        let kind = kind.ok_or_else(|| {
            let names = KINDS.map(|kind| kind.name).join(", ");
            format!("there is no workload `{name}`; there are {names}")
        })?;
        let Kind { name, settings: keys, .. } = KINDS[kind];
        let mut values: Vec<String> = keys.iter().map(|(_, default)| (*default).to_owned()).collect();
        let mut given: Vec<&str> = Vec::new();
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            let (key, value) = (key.trim(), value.trim());
            let Some(place) = keys.iter().position(|(known, _)| *known == key) else {
                let known: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
                return Err(format!(
                    "the workload {name} has no setting `{key}`; it has {}",
                    known.join(", ")
                ));
            };
            if value.is_empty() {
                return Err(format!("`{key}` has no value: write {key}={}", keys[place].1));
            }
            if given.contains(&key) {
                return Err(format!("`{key}` is given twice"));
            }
            given.push(key);
            value.clone_into(&mut values[place]);
        }
        let is_object_given = given.contains(&"object");
        Ok(Self { is_object_given, ..Self::of(kind, values)? })
    }
}

/// As it can be given again, with all settings.
impl Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        for (place, ((key, _), value)) in KINDS[self.kind].settings.iter().zip(&self.values).enumerate() {
            write!(f, "{}{key}={value}", if place == 0 { '@' } else { ',' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use posthaste_units::{Duration, Rate};

    use super::*;

    #[test]
    fn settings_change_defaults_and_can_be_given_again() {
        let workload: Workload = "requests@count=50, object=2kB".parse().expect("a workload");
        let object = ByteCount::new(2_000);
        assert_eq!(workload.spec, WorkloadSpec::RequestResponse { object, count: 50, think: Duration::ZERO });
        assert_eq!(workload.to_string(), "requests@count=50,object=2kB,think=0s");
        assert_eq!(workload.to_string().parse(), Ok(workload));
        let video: Workload = "video@rate=1mbit".parse().expect("a workload");
        assert_eq!(
            (video.answer(), video.bytes(), video.exchanges()),
            (ByteCount::new(250_000), 2_500_000, 10)
        );
        let WorkloadSpec::Video { rate, .. } = video.spec else { unreachable!("a video") };
        assert_eq!(rate, Rate::from_bits_per_second(1_000_000));
        assert_eq!("bulk".parse::<Workload>(), "file".parse(), "as experiment files have it");
    }

    #[test]
    fn what_is_wrong_is_named_with_the_choices() {
        for (text, expected) in [
            ("videos", "there is no workload `videos`; there are file, requests, video"),
            ("", "there are file, requests, video"),
            ("video@bitrate=1mbit", "has no setting `bitrate`; it has rate, chunk, chunks, buffer"),
            ("requests@count", "`count` has no value: write count=20"),
            ("requests@count=1,count=2", "`count` is given twice"),
            ("requests@count=0", "`count` must be 1 to 10000"),
            ("requests@count=many", "`count`: invalid digit"),
            ("requests@object=0B", "`object` must be from 1B to 1GB"),
            ("file@object=2GB", "`object` must be from 1B to 1GB"),
            ("video@buffer=1s", "`buffer` must be at least a chunk"),
            ("video@chunk=60min,buffer=60min,rate=1gbit", "a chunk (rate x chunk) must be from 1B to 1GB"),
        ] {
            let error = text.parse::<Workload>().expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn an_object_is_given_once_and_only_where_there_is_one() {
        let object = ByteCount::new(70_000);
        let with = |text: &str| text.parse::<Workload>().expect("a workload").with_object(object);
        assert_eq!(with("file").expect("a file").to_string(), "file@object=70000B");
        assert_eq!(with("requests@count=3").expect("requests").answer(), object);
        assert!(with("requests@object=1kB").is_err_and(|error| error.contains("given twice")));
        assert!(with("video").is_err_and(|error| error.contains("rate x chunk")));
    }
}
