//! Results set beside published figures, row by row.

use std::collections::BTreeSet;

use serde::Serialize;

use super::file::{Judge, Over};
use super::interval::{self, Sides};
use super::measure::slope;
use super::resolve::{Claim, Figure, Place, Task};
use super::verdict::{self, Range, Verdict};
use super::{Needed, Reproduction, RuleSet};
use crate::experiment_result::{CellResult, ExperimentResult};
use crate::statistics::{self, Interval};

/// All rows of all rule sets.
#[derive(Debug, Clone, Serialize)]
pub struct Judgement {
    /// The rule sets.
    pub rule_sets: Vec<JudgedRuleSet>,
}

/// All rows of a paper.
#[derive(Debug, Clone, Serialize)]
pub struct JudgedRuleSet {
    /// The scheme.
    pub scheme: String,
    /// The paper.
    pub source: String,
    /// The file of published figures.
    pub file: String,
    /// What readers must know of all of it.
    pub note: Option<String>,
    /// In the file's order.
    pub rows: Vec<JudgedRow>,
}

/// A row of published figures and what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct JudgedRow {
    /// Counted from 1, the heading left out.
    pub row: usize,
    /// The paper's experiment.
    pub published_as: String,
    /// What it is about: its other columns.
    pub setting: String,
    /// Where it is printed.
    pub place: String,
    /// The verdict.
    pub verdict: Verdict,
    /// True if an effect is judged (a reduction, a gain, a comparison in words), false for plain values.
    pub is_effect: bool,
    /// Its figures beside ours.
    pub figures: Vec<JudgedFigure>,
    /// What its rule says of it without any run.
    pub stated: Option<String>,
    /// How it was understood.
    pub reading: Option<String>,
    /// Why ours is not the published one; none where it is.
    pub varied: Option<String>,
    /// What would have to be known of the paper's setting to reproduce it; none where `varied` is none.
    pub to_be_known: Option<String>,
    /// What else there is to say.
    pub remarks: Vec<String>,
    /// Our experiment.
    pub experiment: Option<String>,
    /// Its cells, as `--cells` takes them.
    pub cells: String,
    /// Runs of each cell.
    pub seeds: u64,
}

/// A published figure beside ours.
#[derive(Debug, Clone, Serialize)]
pub struct JudgedFigure {
    /// What is judged.
    pub what: String,
    /// The published figure.
    pub published: String,
    /// Ours.
    pub ours: String,
    /// What ours is made of.
    pub detail: String,
    /// None for what is only shown.
    pub verdict: Option<Verdict>,
    /// The arithmetic, where it cannot hold.
    pub why: Option<String>,
}

impl Judgement {
    /// Rows with this verdict, all rule sets together.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rule_sets.iter().map(|rule_set| rule_set.count(verdict)).sum()
    }

    /// Rows with this verdict that judge effects (`true`) or plain values.
    pub fn count_of(&self, is_effect: bool, verdict: Verdict) -> usize {
        self.rule_sets.iter().map(|rule_set| rule_set.count_of(is_effect, verdict)).sum()
    }

    /// Rows of all rule sets.
    pub fn rows(&self) -> usize {
        self.rule_sets.iter().map(|rule_set| rule_set.rows.len()).sum()
    }

    /// Rows that are not reproduced and of which nothing is said.
    pub fn unexplained(&self) -> usize {
        let rows = self.rule_sets.iter().flat_map(|rule_set| &rule_set.rows);
        rows.filter(|row| {
            row.verdict == Verdict::NotReproduced && row.varied.is_none() && row.stated.is_none()
        })
        .count()
    }
}

impl JudgedRuleSet {
    /// Rows with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// Rows with this verdict that judge effects (`true`) or plain values.
    pub fn count_of(&self, is_effect: bool, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.is_effect == is_effect && row.verdict == verdict).count()
    }
}

impl Reproduction {
    /// Judges every row. `results` are those of what [`Self::plan`] names; what is not among them cannot be judged and
    /// is said to be not measured.
    pub fn judge(&self, results: &[ExperimentResult]) -> Judgement {
        let rule_set = |rule_set: &RuleSet| JudgedRuleSet {
            scheme: rule_set.scheme.clone(),
            source: rule_set.source.clone(),
            file: rule_set.table.file.clone(),
            note: rule_set.note.clone(),
            rows: rule_set
                .tasks
                .iter()
                .enumerate()
                .map(|(row, task)| self.row(rule_set, row, task, results))
                .collect(),
        };
        Judgement { rule_sets: self.rule_sets.iter().map(rule_set).collect() }
    }

    fn row(&self, rule_set: &RuleSet, row: usize, task: &Task, results: &[ExperimentResult]) -> JudgedRow {
        let needed = task.experiment.as_ref().and_then(|name| self.experiments.get(name));
        let found =
            task.experiment.as_ref().and_then(|name| results.iter().find(|result| result.name == *name));
        let figures: Vec<JudgedFigure> = task
            .figures
            .iter()
            .map(|figure| match (needed, found) {
                (Some(needed), Some(result)) => {
                    Bench { needed, result }.figure(figure, task.stated.is_some())
                }
                _ => unmeasured(figure, "its experiment was not run"),
            })
            .collect();
        let worst = figures.iter().filter_map(|figure| figure.verdict).max();
        let verdict =
            task.stated.as_ref().map(|(verdict, _)| *verdict).or(worst).unwrap_or(Verdict::NotMeasured);
        let is_fitted = task.fitted.is_some() && verdict == Verdict::Reproduced;
        let verdict = if is_fitted { Verdict::Fitted } else { verdict };
        let fitted = task.fitted.iter().map(|what| format!("Fitted: {what}"));
        let columns = rule_set.table.columns_of(&rule_set.table.rows[row]);
        let column = |heading: &str| {
            columns
                .iter()
                .find(|(known, _)| known == heading)
                .map(|(_, text)| text.clone())
                .unwrap_or_default()
        };
        let told = ["experiment", "value", "unit", "kind", "where", "x_name"];
        let setting = columns.iter().filter(|(heading, _)| !told.contains(&heading.as_str()));
        let setting: Vec<String> = setting.map(|(heading, text)| named(heading, text)).collect();
        let falls_short =
            matches!(verdict, Verdict::SameDirection | Verdict::NoEffect | Verdict::NotReproduced);
        JudgedRow {
            row: row + 1,
            published_as: column("experiment"),
            setting: setting.join(", "),
            place: column("where"),
            verdict,
            is_effect: task.figures.iter().any(|figure| !figure.is_shown && is_effect(figure.judge)),
            figures,
            stated: task.stated.as_ref().map(|(_, why)| why.clone()),
            reading: task.reading.clone(),
            varied: task.varied.clone().filter(|_| falls_short),
            to_be_known: task.to_be_known.clone().filter(|_| falls_short),
            remarks: fitted.chain(task.remarks.iter().cloned()).collect(),
            experiment: task.experiment.clone(),
            cells: needed.map(|needed| cells_of(task, needed)).unwrap_or_default(),
            seeds: found.map_or(0, |result| result.seeds),
        }
    }
}

/// A column's text; numbers need their heading.
fn named(heading: &str, text: &str) -> String {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit());
    if is_number { format!("{} {text}", heading.replace('_', " ")) } else { text.to_owned() }
}

/// The cells that a row takes, as `--cells` does.
fn cells_of(task: &Task, needed: &Needed) -> String {
    let mut cells: BTreeSet<usize> = BTreeSet::new();
    for figure in &task.figures {
        cells.extend(figure.places.iter().flat_map(|place| [Some(place.cell), place.baseline]).flatten());
        cells.extend(
            figure.claims.iter().flat_map(|claim| &claim.pairs).flat_map(|(here, than)| [*here, *than]),
        );
    }
    let mut terms = Vec::new();
    for (position, axis) in needed.experiment.axes.iter().enumerate() {
        let is_used = |label: &&String| {
            cells.iter().any(|cell| needed.experiment.cells[*cell].coordinates[position] == **label)
        };
        let labels: Vec<&String> = axis.values.iter().filter(is_used).collect();
        if labels.len() < axis.values.len() {
            terms.extend(labels.iter().map(|label| format!("{}={label}", axis.name)));
        }
    }
    terms.join(",")
}

/// What a figure's judgement is about.
fn what(figure: &Figure) -> String {
    if let Some(name) = &figure.name {
        return name.clone();
    }
    let measure = figure.measure.label();
    match figure.judge {
        Judge::Value | Judge::Effect | Judge::Shown => measure,
        Judge::Reduction => format!("reduction of {measure}"),
        Judge::Gain | Judge::Speedup => format!("gain in {measure}"),
        Judge::Ratio => format!("{measure} against its baseline"),
        Judge::Slope => format!("slope of {measure}"),
        Judge::RSquared => format!("R\u{b2} of {measure}"),
        Judge::Claims => format!("comparisons of {measure}"),
    }
}

fn unmeasured(figure: &Figure, why: &str) -> JudgedFigure {
    JudgedFigure {
        what: what(figure),
        published: figure.printed.clone(),
        ours: "\u{2013}".to_owned(),
        detail: String::new(),
        verdict: Some(Verdict::NotMeasured),
        why: Some(why.to_owned()),
    }
}

/// Percent, with a sign where it says something.
fn percent(value: f64, is_signed: bool) -> String {
    let percent = value * 100.0;
    let digits = usize::from(percent.abs() < 9.95);
    if is_signed { format!("{percent:+.digits$} %") } else { format!("{percent:.digits$} %") }
}

/// The published figure for people.
fn published_text(figure: &Figure) -> String {
    let is_signed = matches!(figure.judge, Judge::Gain | Judge::Speedup);
    match (figure.judge, figure.published) {
        (Judge::Ratio, Some(published)) => {
            let effect = figure.against.map(|against| published.low / against - 1.0);
            let effect = effect.map(|effect| format!(" ({})", percent(effect, true))).unwrap_or_default();
            format!("{}{effect}", figure.printed)
        }
        (Judge::Reduction | Judge::Gain | Judge::Speedup | Judge::RSquared, Some(Range { low, high })) => {
            if high.is_infinite() {
                format!("at least {}", percent(low, is_signed))
            } else if low < high {
                format!("{} to {}", percent(low, is_signed), percent(high, is_signed))
            } else {
                percent(low, is_signed)
            }
        }
        _ => figure.printed.replace("pct", "%"),
    }
}

/// An experiment and its results.
struct Bench<'a> {
    needed: &'a Needed,
    result: &'a ExperimentResult,
}

/// What one place shows.
struct Shown {
    effect: f64,
    ours: f64,
    baseline: Option<f64>,
}

impl<'a> Bench<'a> {
    fn cell(&self, index: usize) -> Option<&'a CellResult> {
        let coordinates = &self.needed.experiment.cells[index].coordinates;
        self.result.cells.iter().find(|cell| cell.coordinates == *coordinates)
    }

    /// The measure in the figure's unit.
    fn measured(&self, figure: &Figure, cell: usize) -> Option<f64> {
        let value = figure.measure.value(self.result, self.cell(cell)?, figure.flow)?;
        Some(value * figure.scale + figure.plus)
    }

    fn figure(&self, figure: &Figure, is_stated: bool) -> JudgedFigure {
        let mut judged = match figure.judge {
            Judge::Claims => self.claims(figure),
            Judge::RSquared => self.r_squared(figure),
            Judge::Slope => self.slope(figure),
            _ => self.effects(figure),
        };
        if let Some(why) = &figure.impossible {
            // Two values that cannot be may still stand in a ratio that can.
            if figure.judge != Judge::Ratio {
                judged.verdict = Some(Verdict::CannotHold);
            }
            judged.why = Some(why.clone());
        }
        if is_stated || figure.is_shown {
            judged.verdict = None;
        }
        judged
    }

    fn shown(&self, figure: &Figure, place: Place) -> Option<Shown> {
        let ours = self.measured(figure, place.cell)?;
        let baseline = match place.baseline {
            Some(cell) => Some(self.measured(figure, cell)?),
            None => None,
        };
        Some(Shown { effect: effect_of(figure.judge, ours, baseline), ours, baseline })
    }

    fn effects(&self, figure: &Figure) -> JudgedFigure {
        let shown: Option<Vec<Shown>> =
            figure.places.iter().map(|place| self.shown(figure, *place)).collect();
        let Some(shown) = shown else { return unmeasured(figure, "our runs say nothing of it") };
        let unit = figure.unit;
        let effects: Vec<f64> = shown.iter().map(|one| one.effect).collect();
        let effect = together(&effects, figure.over);
        let is_relative = shown.iter().all(|one| one.baseline.is_some()) && is_relative(figure.judge);
        let is_signed = figure.judge != Judge::Reduction;
        let ours = if effect.is_nan() {
            "beyond the deadline".to_owned()
        } else if is_relative {
            percent(effect, is_signed)
        } else {
            unit.text(effect)
        };
        let mut detail = match shown.as_slice() {
            [one] => one
                .baseline
                .filter(|_| is_relative)
                .map(|baseline| format!("{} against {}", unit.text(one.ours), unit.text(baseline)))
                .unwrap_or_default(),
            several if is_relative => format!(
                "{} cells: {}",
                several.len(),
                several.iter().map(|one| percent(one.effect, is_signed)).collect::<Vec<_>>().join(", ")
            ),
            several => format!("{} cells", several.len()),
        };
        let interval = self.interval(figure);
        if let Some(Interval { low, high }) = interval {
            let text = |value: f64| if is_relative { percent(value, false) } else { unit.text(value) };
            let text = format!("95 %: {} to {}", text(low), text(high));
            detail = if detail.is_empty() { text } else { format!("{detail}; {text}") };
        }
        let verdict = figure.published.map(|published| {
            let verdict = verdict_of(figure, effect, published);
            match (interval, effect_published(figure, published)) {
                (Some(Interval { low, high }), Some(published)) => {
                    verdict::of_sure_effect(verdict, low, high, published)
                }
                _ => verdict,
            }
        });
        JudgedFigure {
            what: what(figure),
            published: published_text(figure),
            ours,
            detail,
            verdict,
            why: None,
        }
    }

    /// How sure one can be of ours, where it comes from one cell, or one and its baseline.
    fn interval(&self, figure: &Figure) -> Option<Interval> {
        let [place] = figure.places.as_slice() else { return None };
        let sample = |cell: usize| figure.measure.sample(self.result, self.cell(cell)?, figure.flow);
        let sides = Sides { ours: sample(place.cell)?, baseline: place.baseline.and_then(sample) };
        let statistic = figure.measure.statistic()?;
        interval::of(&sides, statistic, |ours, baseline| {
            let scaled = |value: f64| value * figure.scale + figure.plus;
            effect_of(figure.judge, scaled(ours), baseline.map(scaled))
        })
    }

    fn r_squared(&self, figure: &Figure) -> JudgedFigure {
        let shown: Option<Vec<Shown>> =
            figure.places.iter().map(|place| self.shown(figure, *place)).collect();
        let pairs = shown.unwrap_or_default();
        let (ours, theirs): (Vec<f64>, Vec<f64>) =
            pairs.iter().filter_map(|one| Some((one.ours, one.baseline?))).unzip();
        let (Some(value), Some(published)) = (statistics::r_squared(&ours, &theirs), figure.published) else {
            return unmeasured(figure, "one of the two series does not vary, or is not known");
        };
        JudgedFigure {
            what: what(figure),
            published: published_text(figure),
            ours: percent(value, false),
            detail: format!("over {} cells", pairs.len()),
            verdict: Some(verdict::of_value(value, published)),
            why: None,
        }
    }

    fn slope(&self, figure: &Figure) -> JudgedFigure {
        let values: Option<Vec<f64>> =
            figure.places.iter().map(|place| self.measured(figure, place.cell)).collect();
        let points: Vec<(f64, f64)> =
            std::iter::zip(figure.along.iter().copied(), values.unwrap_or_default()).collect();
        let (Some(slope), Some(published)) = (slope(&points), figure.published) else {
            return unmeasured(figure, "our runs say nothing of it");
        };
        JudgedFigure {
            what: what(figure),
            published: published_text(figure),
            ours: figure.measure.unit().text(slope),
            detail: format!("over {} cells", points.len()),
            verdict: Some(verdict::of_effect(slope, published)),
            why: None,
        }
    }

    fn claims(&self, figure: &Figure) -> JudgedFigure {
        let (mut held, mut total, mut is_known) = (0, 0, false);
        let mut texts = Vec::new();
        for claim in &figure.claims {
            let ratios: Vec<f64> = claim.pairs.iter().map(|pair| self.ratio(figure, claim, *pair)).collect();
            let holds = ratios.iter().filter(|ratio| (claim.from..=claim.to).contains(*ratio)).count();
            held += holds;
            is_known |= ratios.iter().any(|ratio| !ratio.is_nan());
            total += ratios.len();
            let text = |ratio: &f64| if ratio.is_nan() { "?".to_owned() } else { format!("{ratio:.2}") };
            let shown: Vec<String> = ratios.iter().map(text).collect();
            let answer = if holds == ratios.len() { "yes" } else { "no" };
            texts.push(format!("{}: {answer} ({})", claim.says, shown.join(", ")));
        }
        if !is_known {
            return unmeasured(figure, "our runs say nothing of it");
        }
        JudgedFigure {
            what: what(figure),
            published: published_text(figure),
            ours: format!("{held} of {total} hold"),
            detail: texts.join("; "),
            verdict: Some(verdict::of_claims(held, total)),
            why: None,
        }
    }

    /// NaN where the runs say nothing.
    fn ratio(&self, figure: &Figure, claim: &Claim, (here, than): (usize, usize)) -> f64 {
        let value = |cell: usize| claim.measure.value(self.result, self.cell(cell)?, figure.flow);
        value(here).zip(value(than)).map_or(f64::NAN, |(here, than)| here / than)
    }
}

/// True if what is judged compares a cell with its baseline.
fn is_relative(judge: Judge) -> bool {
    matches!(judge, Judge::Reduction | Judge::Gain | Judge::Speedup | Judge::Ratio)
}

/// NaN where it is not known.
fn effect_of(judge: Judge, ours: f64, baseline: Option<f64>) -> f64 {
    let ratio = baseline.map_or(f64::NAN, |baseline| ours / baseline);
    let effect = match judge {
        Judge::Reduction => 1.0 - ratio,
        Judge::Gain | Judge::Speedup | Judge::Ratio => ratio - 1.0,
        _ => ours,
    };
    if effect.is_finite() { effect } else { f64::NAN }
}

/// One number of several cells'; NaN if one is not known.
fn together(effects: &[f64], over: Option<Over>) -> f64 {
    if effects.iter().any(|effect| effect.is_nan()) {
        return f64::NAN;
    }
    match over {
        Some(Over::Least) => effects.iter().copied().fold(f64::INFINITY, f64::min),
        Some(Over::Greatest) => effects.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Some(Over::Mean) | None => effects.iter().sum::<f64>() / effects.len() as f64,
    }
}

/// True if what is judged has a direction, or is a comparison.
fn is_effect(judge: Judge) -> bool {
    !matches!(judge, Judge::Value | Judge::RSquared | Judge::Shown)
}

/// The published effect, where one is published.
fn effect_published(figure: &Figure, published: Range) -> Option<Range> {
    match (figure.judge, figure.against) {
        (Judge::Ratio, Some(against)) => Some(published.map(|value| value / against - 1.0)),
        (judge, _) => is_effect(judge).then_some(published),
    }
}

fn verdict_of(figure: &Figure, effect: f64, published: Range) -> Verdict {
    if effect.is_nan() {
        return Verdict::NotReproduced;
    }
    match effect_published(figure, published) {
        None => verdict::of_value(effect, published),
        Some(published) => verdict::of_effect(effect, published),
    }
}
