//! What became of every published figure: a table for the terminal, Markdown, one HTML page, JSON. All say the same
//! and depend on nothing but the judgement.

mod html;
mod markdown;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

pub use html::page;
pub use markdown::markdown;

use crate::experiment_result::ExperimentResult;
use crate::reproduction::{JudgedFigure, JudgedRow, JudgedRuleSet, Judgement, Verdict};

/// How the runs were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The command that repeats all of it.
    pub command: String,
    /// Runs, all experiments together.
    pub runs: usize,
    /// True for the short form, whose few runs judge nothing.
    pub is_quick: bool,
}

/// The order of verdicts in tables.
const COLUMNS: [Verdict; 8] = Verdict::ALL;

/// Effects and plain values are counted apart: that a link is full shows little of a scheme.
const KINDS: [(&str, bool); 2] = [("effects", true), ("plain values", false)];

/// What a stranger must know first.
const INTRODUCTION: &str = "Posthaste implements schemes from five papers. Their published figures, row by row, stand here next to ours: runs of the real \
    transport over emulated paths in virtual time, in the setting that the paper prints as far as it prints one.";

/// Why a short form is none.
const QUICK: &str = "These are the few runs of the short form, which shows that everything works: verdicts from it mean little.";

/// Counts by scheme, for a terminal.
pub fn table(judgement: &Judgement) -> String {
    let width = judgement.rule_sets.iter().map(|rule_set| rule_set.scheme.len()).max().unwrap_or(0).max(12);
    let mut out = format!("\x1b[1m{:width$}\x1b[0m  {:>6}", "scheme", "rows");
    for verdict in COLUMNS {
        // Writing to a text cannot fail.
        let _ = write!(out, "  {}", verdict.label());
    }
    out.push('\n');
    let mut line = |name: &str, rows: usize, count: &dyn Fn(Verdict) -> usize| {
        let _ = write!(out, "{name:width$}  {rows:>6}");
        for verdict in COLUMNS {
            let _ = write!(out, "  {:>1$}", count(verdict), verdict.label().len());
        }
        out.push('\n');
    };
    for rule_set in &judgement.rule_sets {
        line(&rule_set.scheme, rule_set.rows.len(), &|verdict| rule_set.count(verdict));
    }
    line("all", judgement.rows(), &|verdict| judgement.count(verdict));
    for (name, is_effect) in KINDS {
        let count = |verdict| judgement.count_of(is_effect, verdict);
        line(name, COLUMNS.map(count).iter().sum(), &count);
    }
    out
}

/// The judgement and the runs that it is about, for programs: what [`posthaste_report::json`] writes, with a field
/// `reproduction` more.
pub fn json(judgement: &Judgement, results: &[ExperimentResult]) -> String {
    let experiments = posthaste_report::json::to_string(results);
    // Plain structures with text keys, into memory: nothing that can fail.
    let judged = serde_json::to_string_pretty(judgement).unwrap_or_default();
    let rest = experiments.strip_prefix('{').unwrap_or_default();
    format!("{{\n\"reproduction\": {judged},{rest}")
}

/// What would have to be known of the papers' settings, and how many rows are not reproduced for it, by scheme; those that
/// most rows want first.
fn causes(judgement: &Judgement) -> Vec<(&str, &str, usize)> {
    let mut causes: Vec<(&str, &str, usize)> = Vec::new();
    for rule_set in &judgement.rule_sets {
        let rows = rule_set.rows.iter().filter(|row| row.verdict == Verdict::NotReproduced);
        for cause in rows.map(|row| row.to_be_known.as_deref().unwrap_or("Its note says.")) {
            match causes.iter_mut().find(|(scheme, known, _)| (*scheme, *known) == (&*rule_set.scheme, cause))
            {
                Some((_, _, count)) => *count += 1,
                None => causes.push((&rule_set.scheme, cause, 1)),
            }
        }
    }
    causes.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
    causes
}

/// Notes of a rule set, each once, numbered in the order in which rows first have them.
struct Notes(Vec<String>);

impl Notes {
    fn of(rule_set: &JudgedRuleSet) -> Self {
        let mut notes = Self(Vec::new());
        for text in rule_set.rows.iter().flat_map(texts_of) {
            if !notes.0.contains(&text) {
                notes.0.push(text);
            }
        }
        notes
    }

    /// The numbers of a row's notes, counted from 1.
    fn numbers(&self, row: &JudgedRow) -> Vec<usize> {
        let place = |text: String| self.0.iter().position(|known| *known == text);
        texts_of(row).filter_map(place).map(|index| index + 1).collect()
    }
}

/// What is said of a row beside its figures.
fn texts_of(row: &JudgedRow) -> impl Iterator<Item = String> {
    let stated = row.stated.clone().into_iter();
    let reading = row.reading.as_ref().map(|text| format!("Reading: {text}")).into_iter();
    let unknown = row.to_be_known.as_ref().map(|text| format!(" To be known: {text}")).unwrap_or_default();
    let varied = row.varied.as_ref().map(|text| format!("Varied: {text}{unknown}")).into_iter();
    stated.chain(reading).chain(varied).chain(row.remarks.clone())
}

/// The arithmetic of figures that cannot hold, or why there is none of ours: it differs from row to row.
fn reasons(row: &JudgedRow) -> Vec<&str> {
    let mut reasons: Vec<&str> = row.figures.iter().filter_map(|figure| figure.why.as_deref()).collect();
    reasons.dedup();
    reasons
}

/// Ours, and what it is made of.
fn ours(figure: &JudgedFigure) -> String {
    if figure.detail.is_empty() {
        figure.ours.clone()
    } else {
        format!("{} ({})", figure.ours, figure.detail)
    }
}

/// The row's verdict and, where several figures have different ones, theirs.
fn verdicts_differ(row: &JudgedRow) -> bool {
    let mut verdicts = row.figures.iter().filter_map(|figure| figure.verdict);
    let first = verdicts.next();
    verdicts.any(|verdict| Some(verdict) != first)
}

/// The command that repeats a row; none where nothing was run for it.
fn command(row: &JudgedRow) -> Option<String> {
    let name = row.experiment.as_ref()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    let cells = match row.cells.as_str() {
        "" => String::new(),
        plain if plain.bytes().all(is_plain) => format!(" --cells {plain}"),
        other => format!(" --cells '{}'", other.replace('\'', r"'\''")),
    };
    Some(format!("posthaste lab run {name}{cells} --seeds {}", row.seeds.max(1)))
}
