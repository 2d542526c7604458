//! Parts of a sweep for several machines.

use std::fmt;
use std::str::FromStr;

use posthaste_campaign::identity::Identity;
use posthaste_units::Duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Selection, items, seeds_of};
use crate::experiment::Experiment;

/// One of several parts of a sweep: the runs whose index, in the order in which one machine makes them, leaves `index`
/// when divided by `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

/// Bound on the number of shards.
const MAX_COUNT: usize = 1_000_000;

impl Shard {
    /// All runs.
    pub const ALL: Self = Self { index: 0, count: 1 };

    /// Its share of a list.
    pub(super) fn part_of<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.index).step_by(self.count).collect()
    }

    /// True if it makes the run with this index.
    pub fn has(self, index: usize) -> bool {
        index % self.count == self.index
    }

    /// The one of as many shards that makes the run with this index.
    pub(super) fn of_run(self, index: usize) -> Self {
        Self { index: index % self.count, ..self }
    }
}

/// A text is no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a shard: write I/N, with I from 0 to N - 1 and N from 1 to 1000000, such as 0/4")]
pub struct ParseShardError(String);

impl FromStr for Shard {
    type Err = ParseShardError;

    fn from_str(text: &str) -> Result<Self, ParseShardError> {
        let parse = || {
            let (index, count) = text.split_once('/')?;
            let shard = Self { index: index.trim().parse().ok()?, count: count.trim().parse().ok()? };
            (shard.count <= MAX_COUNT && shard.index < shard.count).then_some(shard)
        };
        parse().ok_or_else(|| ParseShardError(text.to_owned()))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Serialize for Shard {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Shard {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The first line of a shard's journal: all that its runs follow from, so that what does not belong together is not
/// merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardHeader {
    /// Digest of the program.
    pub program: String,
    /// The experiment's name, or its file, as it was given.
    pub experiment: String,
    /// The choice of cells, as it was given; empty for all.
    pub cells: Vec<String>,
    /// The first seed, and the one after the last.
    pub seeds: (u64, u64),
    /// Interval of time series, if one was given.
    pub series: Option<Duration>,
    /// Digest of all runs of all shards.
    pub runs: String,
    /// Which part this is.
    pub shard: Shard,
}

impl ShardHeader {
    /// Of a selection of the experiment that was given as `name`, with cells chosen by `cells`.
    pub fn new(
        name: &str,
        cells: Vec<String>,
        experiment: &Experiment,
        selection: &Selection<'_>,
        program: &Identity,
        shard: Shard,
    ) -> Self {
        let items = items(experiment, selection, Some(program));
        let seeds = seeds_of(selection);
        Self {
            program: program.hexadecimal(32),
            experiment: name.to_owned(),
            cells,
            seeds: (seeds.start, seeds.end),
            series: selection.series,
            runs: Identity::of_parts(items.iter().map(|item| item.key.as_str().as_bytes())).hexadecimal(16),
            shard,
        }
    }

    /// Where the sweep of a file differs from the one that was `expected`, for people.
    pub fn difference(&self, expected: &Self) -> String {
        let of = |header: &Self| {
            let (cells, (first, end)) = (header.cells.join(","), header.seeds);
            let cells = if cells.is_empty() { cells } else { format!(" --cells {cells}") };
            format!("{}{cells} --seeds {first}..{end}", header.experiment)
        };
        if self.program != expected.program {
            let (theirs, ours) = (short(&self.program), short(&expected.program));
            format!("they are of another build of posthaste ({theirs}, this is {ours})")
        } else if of(self) != of(expected) {
            format!("they are of `{}`, not of `{}`", of(self), of(expected))
        } else if self.shard != expected.shard {
            format!("they are of shard {}, not of {}", self.shard, expected.shard)
        } else if self.series != expected.series {
            "they have another interval of time series".to_owned()
        } else {
            format!("{} has changed since", expected.experiment)
        }
    }

    /// The first digits of the program's digest; a file's may have none.
    pub fn short_program(&self) -> String {
        short(&self.program)
    }

    /// True if both are parts of the same sweep.
    pub fn is_of_same_sweep(&self, other: &Self) -> bool {
        Self { shard: other.shard, ..self.clone() } == *other
    }
}

/// The first digits of a digest.
fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_read_as_it_is_written() {
        for text in ["0/1", "3/4", "999999/1000000"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for text in ["", "1", "4/4", "0/0", "-1/2", "1/2/3", "0/1000001", "a/b"] {
            assert!(text.parse::<Shard>().unwrap_err().to_string().contains("0/4"), "{text}");
        }
        assert_eq!(serde_json::from_str::<Shard>("\"1/3\"").unwrap(), Shard { index: 1, count: 3 });
        serde_json::from_str::<Shard>("\"3/3\"").unwrap_err();
    }

    #[test]
    fn each_run_is_in_one_shard() {
        let all: Vec<usize> = (0..11).collect();
        for count in [1, 2, 4, 11, 20] {
            let mut seen = Vec::new();
            for index in 0..count {
                let shard = Shard { index, count };
                let part = shard.part_of(all.clone());
                assert!(
                    part.iter().all(|&run| shard.has(run) && Shard { index: 0, count }.of_run(run) == shard)
                );
                seen.extend(part);
            }
            seen.sort_unstable();
            assert_eq!(seen, all, "{count}");
        }
    }
}
