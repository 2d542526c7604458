//! Every published figure beside ours, and what became of it.
//!
//! One *rule set* a paper (`experiments/reproduction/NAME.toml`) says for each row of its file of published
//! figures where ours is found and how the two are compared. Every row is chosen by exactly one rule; a rule set in which
//! one is not, or twice, is refused, as is a rule that names a column, axis, label, experiment or metric that there
//! is none of. Nothing here runs anything: [`Reproduction::plan`] says what must be run, [`Reproduction::judge`] takes
//! the results.
//!
//! ```toml
//! scheme = "Coordinated group"                 # heading
//! source = "mQUIC"                             # the paper
//! file = "coordinated_group.csv"               # in reference/; all of its rows must be chosen
//! note = "..."                                 # what readers must know of all of it (optional)
//!
//! [axes]                                       # which column says where on an axis a row stands, for all rules
//! location = "location"                        # whose experiment has such an axis and that do not say otherwise
//! object = { column = "object_kb", labels = { 500 = "500kB", 2400 = "2400kB" } }
//!
//! [experiments]                                # runs of each cell; `quick` (1 unless given) in the short form
//! cg-gain = { seeds = 60, quick = 2 }
//!
//! [[rule]]
//! choose = { experiment = "cg-gain", vs = "1c" }       # columns' texts, a list: any of them; none: all rows
//! experiment = "cg-gain"                               # ours
//! at = { stack = "mquic-newreno-paper@3" }             # where on axes that no column tells
//! axes = { radio = "location" }                        # as `[axes]`, for this rule
//! baseline = { stack = "mquic-newreno-plain" }         # the cell compared with: these coordinates replaced
//! figure = [{ judge = "reduction", measure = "completion.p50" }]
//! reading = "..."                                      # how the row was understood (optional)
//! varied = "..."                                       # why ours is not the published one: what was varied, what
//!                                                      # the traces show; printed unless it is reproduced
//! to-be-known = "..."                                  # what of the paper's setting would have to be known; goes
//!                                                      # with `varied`
//!
//! [[rule]]
//! choose = { metric = "window_path" }
//! cannot-hold = "..."                                  # instead of figures: why it cannot, with the arithmetic;
//!                                                      # or `not-measured` or `not-reproduced`, with the reason;
//!                                                      # or `repeats`, with the row that has the same figure
//! fitted = "..."                                       # what was chosen so that ours comes out (optional): such a
//!                                                      # row is never reproduced
//!
//! [[remark]]                                           # printed with these rows, whatever their rule
//! choose = { location = "domestic-high" }
//! text = "..."
//! ```
//!
//! A figure's keys (only `judge` and `measure` are a must):
//! - `measure`: `completion.p95`, a metric and a statistic of it over the runs (as in experiments), `completion.least`,
//!   or `correlation(completion, loss)`;
//! - `judge`: what is judged, m being the measure at the row's cell and b at its baseline:
//!   `value` (m itself), `effect` (m itself, its sign matters), `reduction` (1 - m/b), `gain` (m/b - 1), `speedup` (the
//!   same, published as a ratio), `ratio` (an absolute figure: m/b - 1 beside the same ratio of two published figures,
//!   for which `against-row = { series = "QUIC" }` replaces columns of the row, or `against-column` names another
//!   column), `slope` (of m along the axis `along`), `r-squared` (of m against b over all cells), `claims`, or `shown` (not judged);
//! - `column` (`value` unless given), `part` (of `0.62/0.61` or `21.6;1.5`, counted from 1), `unit` (the column `unit`
//!   unless given), `at-least` (the published figure is a lower bound); a figure may be a range, `18..24`;
//! - `is-shown`: another reading, which stands below the one that is judged;
//! - `at`, `baseline`: beside or instead of the rule's; `name`: what it is called where there are several;
//! - `over`: where a row stands at several cells: the `mean`, the `least` or the `greatest` of what they show;
//! - `flow`: which flow of the run (0, the first, unless given); `share-of`: a rate that m is a part of; `times-rtt`: m is
//!   a rate, and its bytes in a round trip of the path are meant; `over-rtt`: m is bytes, and the rate is meant that has
//!   them in a round trip of the path; `divide-by`: a number that m is divided by; `plus`: what is added to m, in its own
//!   unit, after that (a constant that the paper's figures have and our runs have not);
//! - `floor`, `ceiling`: `{ value = 10, because = "..." }` in the printed unit: a published figure beyond *cannot hold*. A
//!   `value` or `ratio` above the link's rate or faster than the physical limit of its cell is found without being told;
//! - `claims`: `[{ says = "...", here = { flows = "8" }, than = { flows = "1" }, from = 0.8, to = 1.2 }]`: m at `here` over
//!   m at `than` lies between. All of them hold: *reproduced*; more than half: *same direction*.
//!
//! A row with several figures has the worst of their verdicts.

mod built_in;
mod file;
mod interval;
mod judge;
mod measure;
pub mod report;
mod resolve;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

pub use judge::{JudgedFigure, JudgedRow, JudgedRuleSet, Judgement};
pub use verdict::{NO_EFFECT, Range, TOLERANCE, Verdict, of_claims, of_effect, of_sure_effect, of_value};

use crate::experiment::Experiment;
use crate::experiment::rows::Table;
use resolve::Task;

/// Why there is no rule set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rules {name}{}: {message}", .line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct RuleError {
    /// The rule set.
    pub name: String,
    /// The line, counted from 1, where the fault is at one place.
    pub line: Option<usize>,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// All rule sets, checked.
#[derive(Debug)]
pub struct Reproduction {
    rule_sets: Vec<RuleSet>,
    experiments: BTreeMap<String, Needed>,
}

/// One paper.
#[derive(Debug)]
pub(crate) struct RuleSet {
    scheme: String,
    source: String,
    note: Option<String>,
    table: Table,
    /// One for each row, in the file's order.
    tasks: Vec<Task>,
}

/// What of an experiment is needed.
#[derive(Debug)]
struct Needed {
    experiment: Experiment,
    cells: BTreeSet<usize>,
    seeds: u64,
    quick: u64,
}

/// What must be run of an experiment.
#[derive(Debug)]
pub struct Planned<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Indices into its cells, ascending.
    pub cells: Vec<usize>,
    /// Runs of each.
    pub seeds: u64,
    /// Runs of each in the short form.
    pub quick: u64,
}

impl Reproduction {
    /// The rule sets that come with Posthaste.
    ///
    /// # Errors
    /// If one is not valid.
    pub fn built_in() -> Result<Self, RuleError> {
        let mut all = Self { rule_sets: Vec::new(), experiments: BTreeMap::new() };
        for (name, text) in built_in::RULE_SETS {
            all.add(name, text)?;
        }
        Ok(all)
    }

    /// A rule set alone, from its text; `name` is for messages.
    ///
    /// # Errors
    /// For whatever is wrong with it, with the line and the valid choices.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, RuleError> {
        let mut all = Self { rule_sets: Vec::new(), experiments: BTreeMap::new() };
        all.add(name, text)?;
        Ok(all)
    }

    fn add(&mut self, name: &str, text: &str) -> Result<(), RuleError> {
        let rule_set = resolve::rule_set(text, &mut self.experiments).map_err(|fault| RuleError {
            name: name.to_owned(),
            line: fault.line(text),
            message: fault.message.trim().to_owned(),
        })?;
        self.rule_sets.push(rule_set);
        Ok(())
    }

    /// Rows of all rule sets.
    pub fn rows(&self) -> usize {
        self.rule_sets.iter().map(|rule_set| rule_set.tasks.len()).sum()
    }

    /// Scheme, source and number of rows of each rule set.
    pub fn rule_sets(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.rule_sets
            .iter()
            .map(|rule_set| (rule_set.scheme.as_str(), rule_set.source.as_str(), rule_set.tasks.len()))
    }

    /// What must be run before it can be judged, in the order in which experiments are listed.
    pub fn plan(&self) -> Vec<Planned<'_>> {
        let names = Experiment::names();
        let needed = names.iter().filter_map(|name| self.experiments.get(*name));
        needed
            .filter(|needed| !needed.cells.is_empty())
            .map(|needed| Planned {
                experiment: &needed.experiment,
                cells: needed.cells.iter().copied().collect(),
                seeds: needed.seeds,
                quick: needed.quick,
            })
            .collect()
    }
}
