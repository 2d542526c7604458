//! A rule set's text made into one task a row: names into positions, printed figures into numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::file::{Budget, ClaimFile, FigureFile, Judge, Over, RemarkFile, RuleFile, RuleSetFile, quick};
use super::measure::Measure;
use super::verdict::Range;
use super::{Needed, RuleSet, Verdict};
use crate::experiment::error::Fault;
use crate::experiment::file::{Column, OneOrMany, from_toml};
use crate::experiment::rows::{Choice, Placement, Table};
use crate::experiment::{Experiment, MAX_SEEDS, grid, span};
use crate::metric::Unit;

/// What is to be done for one row.
#[derive(Debug)]
pub(super) struct Task {
    /// What its rule says instead of figures.
    pub(super) stated: Option<(Verdict, String)>,
    /// Ours, by name.
    pub(super) experiment: Option<String>,
    pub(super) figures: Vec<Figure>,
    pub(super) reading: Option<String>,
    pub(super) varied: Option<String>,
    pub(super) to_be_known: Option<String>,
    /// What was chosen so that ours comes out.
    pub(super) fitted: Option<String>,
    pub(super) remarks: Vec<String>,
}

/// A published figure and where ours is.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) name: Option<String>,
    /// As printed, with its unit.
    pub(super) printed: String,
    /// In the unit of what is judged; none where it is said in words.
    pub(super) published: Option<Range>,
    /// The published figure that it is compared with, in the same unit.
    pub(super) against: Option<f64>,
    pub(super) judge: Judge,
    pub(super) measure: Measure,
    pub(super) places: Vec<Place>,
    pub(super) over: Option<Over>,
    /// The number on the axis, for each place (slopes).
    pub(super) along: Vec<f64>,
    pub(super) flow: usize,
    /// What the measure is multiplied by.
    pub(super) scale: f64,
    /// What is added to the measure after that.
    pub(super) plus: f64,
    /// The unit of that.
    pub(super) unit: Unit,
    pub(super) claims: Vec<Claim>,
    /// Why no sender can do it.
    pub(super) impossible: Option<String>,
    /// Not judged, but shown below what is.
    pub(super) is_shown: bool,
}

/// Indices into the cells of an experiment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) cell: usize,
    pub(super) baseline: Option<usize>,
}

/// A comparison of two cells, for each of the figure's places.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) says: String,
    pub(super) measure: Measure,
    pub(super) pairs: Vec<(usize, usize)>,
    pub(super) from: f64,
    pub(super) to: f64,
}

type Experiments = BTreeMap<String, Needed>;

/// Reads a rule set and notes what it needs of which experiment.
pub(super) fn rule_set(text: &str, experiments: &mut Experiments) -> Result<RuleSet, Fault> {
    let file: RuleSetFile = from_toml(text)?;
    let table = Table::read(file.file.get_ref(), None)
        .map_err(|message| Fault::at(file.file.span(), format!("file: {message}")))?;
    for (name, budget) in &file.experiments {
        set_budget(name.get_ref(), *budget, experiments)
            .map_err(|message| Fault::at(name.span(), format!("experiments: {message}")))?;
    }
    let mut tasks: Vec<Option<Task>> = table.rows.iter().map(|_| None).collect();
    for rule in &file.rule {
        let fault = |message: String| {
            let message = format!("rule: {message}");
            Fault::at(span::pinpoint(text, rule.span(), &message), message)
        };
        add_rule(rule.get_ref(), &file, &table, experiments, &mut tasks).map_err(fault)?;
    }
    let left: Vec<String> = tasks
        .iter()
        .enumerate()
        .filter(|(_, task)| task.is_none())
        .map(|(row, _)| (row + 1).to_string())
        .collect();
    if !left.is_empty() {
        let message = format!("no rule chooses row {} of `{}`", left.join(", "), table.file);
        return Err(Fault::at(file.file.span(), message));
    }
    let mut tasks: Vec<Task> = tasks.into_iter().flatten().collect();
    for remark in &file.remark {
        add_remark(remark.get_ref(), &table, &mut tasks)
            .map_err(|message| Fault::at(remark.span(), format!("remark: {message}")))?;
    }
    Ok(RuleSet { scheme: file.scheme, source: file.source, note: file.note, table, tasks })
}

/// The experiment, read when it is first named.
fn needed<'a>(name: &str, experiments: &'a mut Experiments) -> Result<&'a mut Needed, String> {
    if !experiments.contains_key(name) {
        let experiment = Experiment::built_in(name).map_err(|error| error.to_string())?;
        let needed = Needed { seeds: experiment.seeds, quick: quick(), experiment, cells: BTreeSet::new() };
        experiments.insert(name.to_owned(), needed);
    }
    experiments.get_mut(name).ok_or_else(String::new)
}

/// Several rule sets may want the same experiment: the most runs are made.
fn set_budget(name: &str, budget: Budget, experiments: &mut Experiments) -> Result<(), String> {
    for count in [budget.seeds, budget.quick] {
        if !(1..=MAX_SEEDS).contains(&count) {
            return Err(format!("`{name}`: from 1 to {MAX_SEEDS} seeds are possible, not {count}"));
        }
    }
    let needed = needed(name, experiments)?;
    let is_first = needed.cells.is_empty();
    needed.seeds = if is_first { budget.seeds } else { needed.seeds.max(budget.seeds) };
    needed.quick = if is_first { budget.quick } else { needed.quick.max(budget.quick) };
    Ok(())
}

fn chosen(choose: &BTreeMap<String, OneOrMany>, table: &Table) -> Result<Vec<usize>, String> {
    let choice = Choice::new(choose, table)?;
    if let Some((column, text)) = choice.stray(table) {
        let texts: BTreeSet<&str> = table.rows.iter().map(|row| row[column].as_str()).collect();
        let (heading, texts) = (&table.headings[column], texts.into_iter().collect::<Vec<_>>().join(", "));
        return Err(format!("choose: no row has `{text}` in the column {heading}; there are {texts}"));
    }
    let rows = table.rows.iter().enumerate().filter(|(_, row)| choice.chooses(row));
    let rows: Vec<usize> = rows.map(|(index, _)| index).collect();
    if rows.is_empty() { Err("choose: no row has all of it".to_owned()) } else { Ok(rows) }
}

fn add_remark(remark: &RemarkFile, table: &Table, tasks: &mut [Task]) -> Result<(), String> {
    for row in chosen(&remark.choose, table)? {
        tasks[row].remarks.push(remark.text.clone());
    }
    Ok(())
}

fn add_rule(
    rule: &RuleFile,
    file: &RuleSetFile,
    table: &Table,
    experiments: &mut Experiments,
    tasks: &mut [Option<Task>],
) -> Result<(), String> {
    let mut stated = [
        (Verdict::CannotHold, &rule.cannot_hold),
        (Verdict::NotMeasured, &rule.not_measured),
        (Verdict::NotReproduced, &rule.not_reproduced),
        (Verdict::Repeated, &rule.repeats),
    ]
    .into_iter()
    .filter_map(|(verdict, why)| Some((verdict, why.clone()?)));
    let (stated, more) = (stated.next(), stated.next());
    if more.is_some() {
        return Err(
            "of `cannot-hold`, `not-measured`, `not-reproduced` and `repeats` one is possible".to_owned()
        );
    }
    if rule.varied.is_some() != rule.to_be_known.is_some() {
        return Err("`varied` and `to-be-known` need each other".to_owned());
    }
    let mut needed = match &rule.experiment {
        Some(name) => Some(needed(name, experiments)?),
        None if rule.figure.is_empty() && stated.is_some() => None,
        None => {
            return Err("it needs `experiment` and `figure`, or `cannot-hold`, or `not-measured`".to_owned());
        }
    };
    if needed.is_some() && rule.figure.is_empty() {
        return Err("it has an `experiment` but no `figure`".to_owned());
    }
    for row in chosen(&rule.choose, table)? {
        if tasks[row].is_some() {
            return Err(format!("row {} of {} is chosen by a rule above, too", row + 1, table.file));
        }
        let mut figures = Vec::new();
        for figure in &rule.figure {
            let Some(needed) = needed.as_deref_mut() else { continue };
            let site = Site { rule, file, table, row, experiment: &needed.experiment };
            let figure = site.figure(figure).map_err(|message| format!("row {}: {message}", row + 1))?;
            needed
                .cells
                .extend(figure.places.iter().flat_map(|place| [Some(place.cell), place.baseline]).flatten());
            let pairs = figure.claims.iter().flat_map(|claim| &claim.pairs);
            needed.cells.extend(pairs.flat_map(|(here, than)| [*here, *than]));
            figures.push(figure);
        }
        tasks[row] = Some(Task {
            stated: stated.clone(),
            experiment: rule.experiment.clone(),
            figures,
            reading: rule.reading.clone(),
            varied: rule.varied.clone(),
            to_be_known: rule.to_be_known.clone(),
            fitted: rule.fitted.clone(),
            remarks: Vec::new(),
        });
    }
    Ok(())
}

/// A row under a rule.
struct Site<'a> {
    rule: &'a RuleFile,
    file: &'a RuleSetFile,
    table: &'a Table,
    row: usize,
    experiment: &'a Experiment,
}

impl Site<'_> {
    fn figure(&self, figure: &FigureFile) -> Result<Figure, String> {
        let measure = Measure::parse(&figure.measure)?;
        let places = self.places(figure)?;
        let text = self.text(&self.table.rows[self.row], &figure.column, figure.part)?;
        let unit = match (&figure.unit, self.table.column("unit")) {
            (Some(unit), _) => unit.clone(),
            (None, Ok(column)) => self.table.rows[self.row][column].clone(),
            (None, Err(_)) => String::new(),
        };
        let is_worded =
            figure.judge == Judge::Claims || (figure.judge == Judge::Shown && Range::parse(text).is_none());
        let kind = unit_of(figure, measure);
        let published = if is_worded { None } else { Some(read(text, &unit, kind, figure)?) };
        let mut resolved = Figure {
            name: figure.name.clone(),
            printed: format!("{text} {unit}").trim().to_owned(),
            published,
            against: self.against(figure, &unit, kind)?,
            judge: figure.judge,
            measure,
            over: figure.over,
            along: self.along(figure, &places)?,
            flow: figure.flow,
            scale: self.scale(figure, measure, &places)?,
            plus: figure.plus,
            unit: scaled_unit(figure, measure),
            claims: figure
                .claims
                .iter()
                .map(|claim| self.claim(claim, measure, &places))
                .collect::<Result<_, _>>()?,
            impossible: None,
            is_shown: figure.is_shown || figure.judge == Judge::Shown,
            places,
        };
        check(figure, &resolved)?;
        resolved.impossible = stated_bound(figure, text, &unit).or_else(|| self.computed_bound(&resolved));
        Ok(resolved)
    }

    /// A row's text in a column, or the part of it that is meant.
    fn text<'a>(&self, row: &'a [String], column: &str, part: Option<usize>) -> Result<&'a str, String> {
        let text = row[self.table.column(column)?].as_str();
        let Some(part) = part else { return Ok(text) };
        let parts: Vec<&str> = text.split(['/', ';']).collect();
        part.checked_sub(1)
            .and_then(|index| parts.get(index))
            .copied()
            .ok_or_else(|| format!("`{text}` has {} parts, counted from 1, and no part {part}", parts.len()))
    }

    fn places(&self, figure: &FigureFile) -> Result<Vec<Place>, String> {
        let axes = &self.experiment.axes;
        let mut at = self.rule.at.clone();
        at.extend(figure.at.clone());
        let mut columns = self.rule.axes.clone();
        columns.retain(|axis, _| !figure.at.contains_key(axis));
        for (axis, how) in &self.file.axes {
            let Some(known) = axes.iter().find(|known| known.name == *axis) else { continue };
            if !columns.contains_key(axis) && !at.contains_key(axis) {
                columns.insert(axis.clone(), only_known(how, &known.values));
            }
        }
        let row = &self.table.rows[self.row];
        let placement = Placement::new(&columns, &at, self.table, axes)?;
        let cells = self.experiment.cells.iter().enumerate();
        let cells: Vec<usize> = cells
            .filter(|(_, cell)| placement.is_at(row, &cell.coordinates))
            .map(|(index, _)| index)
            .collect();
        let name = &self.experiment.name;
        if cells.is_empty() {
            return Err(format!(
                "it stands at no cell of {name}: no column and no `at` gives a label of each axis"
            ));
        }
        let takes_many =
            matches!(figure.judge, Judge::Slope | Judge::RSquared | Judge::Claims) || figure.over.is_some();
        if cells.len() > 1 && !takes_many {
            let free = axes.iter().map(|axis| axis.name.as_str());
            let free: Vec<&str> =
                free.filter(|axis| !columns.contains_key(*axis) && !at.contains_key(*axis)).collect();
            return Err(format!(
                "it stands at {} cells of {name}: say `over`, or where on {}",
                cells.len(),
                if free.is_empty() { "its axes".to_owned() } else { free.join(", ") }
            ));
        }
        let baseline = figure.baseline.as_ref().unwrap_or(&self.rule.baseline);
        let place = |cell: usize| {
            let baseline = if baseline.is_empty() { None } else { Some(self.moved(cell, baseline)?) };
            Ok(Place { cell, baseline })
        };
        cells.into_iter().map(place).collect()
    }

    /// The cell with some coordinates replaced.
    fn moved(&self, cell: usize, labels: &BTreeMap<String, String>) -> Result<usize, String> {
        let mut coordinates = self.experiment.cells[cell].coordinates.clone();
        for (axis, label) in labels {
            let position = grid::find(self.experiment.axes.iter().cloned(), axis, label)
                .map_err(|error| error.to_string())?;
            coordinates[position].clone_from(label);
        }
        self.experiment
            .cells
            .iter()
            .position(|cell| cell.coordinates == coordinates)
            .ok_or_else(|| format!("{} skips the cell {}", self.experiment.name, coordinates.join(", ")))
    }

    fn claim(&self, claim: &ClaimFile, measure: Measure, places: &[Place]) -> Result<Claim, String> {
        let measure = claim.measure.as_deref().map_or(Ok(measure), Measure::parse)?;
        if claim.from.is_none() && claim.to.is_none() {
            return Err(format!("the claim `{}` needs `from` or `to`", claim.says));
        }
        let mut pairs = Vec::new();
        for place in places {
            let pair = (self.moved(place.cell, &claim.here)?, self.moved(place.cell, &claim.than)?);
            // Several places may come to the same pair.
            if pair.0 != pair.1 && !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        if pairs.is_empty() {
            return Err(format!("the claim `{}` compares cells with themselves", claim.says));
        }
        let (from, to) = (claim.from.unwrap_or(0.0), claim.to.unwrap_or(f64::INFINITY));
        Ok(Claim { says: claim.says.clone(), measure, pairs, from, to })
    }

    /// The published figure that this one is compared with.
    fn against(&self, figure: &FigureFile, unit: &str, kind: Unit) -> Result<Option<f64>, String> {
        let row = &self.table.rows[self.row];
        let text = match (&figure.against_row, &figure.against_column) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return Err("`against-row` and `against-column` are one too many".to_owned());
            }
            (None, Some(column)) => self.text(row, column, figure.part)?,
            (Some(texts), None) => {
                let mut wanted = row.clone();
                for (heading, text) in texts {
                    wanted[self.table.column(heading)?].clone_from(text);
                }
                // What is measured, and where it is printed, is no part of what is compared.
                let ignored: Vec<usize> = [figure.column.as_str(), "kind", "where"]
                    .iter()
                    .filter(|heading| !texts.contains_key(**heading))
                    .filter_map(|heading| self.table.column(heading).ok())
                    .collect();
                let is_it = |other: &&Vec<String>| {
                    (0..wanted.len())
                        .all(|column| ignored.contains(&column) || other[column] == wanted[column])
                };
                let other = self.table.rows.iter().find(is_it);
                let other = other
                    .ok_or_else(|| format!("no row of `{}` is the one compared with", self.table.file))?;
                self.text(other, &figure.column, figure.part)?
            }
        };
        let against = read(text, unit, kind, figure)?;
        if against.low < against.high || against.low == 0.0 {
            return Err(format!("`{text}`, which it is compared with, is no number that can be divided by"));
        }
        Ok(Some(against.low))
    }

    /// What the measure is multiplied by.
    fn scale(&self, figure: &FigureFile, measure: Measure, places: &[Place]) -> Result<f64, String> {
        let divisor = figure.divide_by.unwrap_or(1.0);
        let is_rate = measure.unit() == Unit::BitsPerSecond;
        if (figure.share_of.is_some() || figure.times_rtt) && !is_rate {
            return Err("`share-of` and `times-rtt` need a measure that is a rate".to_owned());
        }
        if !divisor.is_finite() || divisor <= 0.0 {
            return Err("`divide-by` must be above 0".to_owned());
        }
        if figure.over_rtt && measure.unit() != Unit::Bytes {
            return Err("`over-rtt` needs a measure that is bytes".to_owned());
        }
        match (figure.share_of, figure.times_rtt, figure.over_rtt) {
            (Some(rate), false, _) => Ok(1.0 / (rate.as_bits_per_second() as f64 * divisor)),
            (Some(_), true, _) => Err("`share-of` and `times-rtt` are one too many".to_owned()),
            (None, false, false) => Ok(1.0 / divisor),
            (None, true, _) => Ok(self.rtt(places)? / 8.0 / divisor),
            (None, false, true) => Ok(8.0 / self.rtt(places)? / divisor),
        }
    }

    /// The round-trip time of all these cells in seconds.
    fn rtt(&self, places: &[Place]) -> Result<f64, String> {
        let rtt = |place: &Place| self.experiment.cells[place.cell].spec.network.rtt();
        let mut all: Vec<_> = places.iter().map(rtt).collect();
        all.dedup();
        match all.as_slice() {
            [rtt] => Ok(rtt.as_secs_f64()),
            _ => Err("`times-rtt` and `over-rtt` need cells of one round-trip time".to_owned()),
        }
    }

    /// The numbers of an axis, for slopes.
    fn along(&self, figure: &FigureFile, places: &[Place]) -> Result<Vec<f64>, String> {
        let Some(axis) = &figure.along else { return Ok(Vec::new()) };
        let names: Vec<&str> = self.experiment.axes.iter().map(|axis| axis.name.as_str()).collect();
        let position = names
            .iter()
            .position(|name| name == axis)
            .ok_or_else(|| format!("along: there is no axis `{axis}`; there are {}", names.join(", ")))?;
        let number = |place: &Place| {
            let label = &self.experiment.cells[place.cell].coordinates[position];
            let digits = label.trim_end_matches(|character: char| !character.is_ascii_digit());
            digits.parse().map_err(|_| format!("along: the label `{label}` is no number"))
        };
        places.iter().map(number).collect()
    }

    /// Above the link's rate, or faster than the limit of its cells.
    fn computed_bound(&self, figure: &Figure) -> Option<String> {
        let published = figure.published.filter(|_| figure.unit == figure.measure.unit())?;
        if !matches!(figure.judge, Judge::Value | Judge::Ratio) {
            return None;
        }
        let metric = figure.measure.size_of()?;
        let specs = || figure.places.iter().map(|place| &self.experiment.cells[place.cell].spec);
        match metric.name {
            "completion" => {
                let limits = specs().map(crate::limit::limit).collect::<Option<Vec<_>>>()?;
                let least = limits.into_iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
                let (ours, theirs) = (Unit::Seconds.text(least.seconds), &figure.printed);
                (published.high < least.seconds).then(|| {
                    format!("{theirs} is less than the {ours} that nothing can beat there: {}", least.terms)
                })
            }
            "goodput" | "throughput" => {
                let rates = specs().map(|spec| spec.network.down_rate()).collect::<Option<Vec<_>>>()?;
                let rate = rates.into_iter().max()?;
                (published.low > rate.as_bits_per_second() as f64).then(|| {
                    let times = published.low / rate.as_bits_per_second() as f64;
                    format!("{} is {times:.2} times the link's rate of {rate}", figure.printed)
                })
            }
            _ => None,
        }
    }
}

/// A column with those labels only that the axis has: a rule set's translations are for several experiments.
fn only_known(how: &Column, values: &[String]) -> Column {
    let Column::Labelled { column, labels } = how else { return how.clone() };
    let known = |labels: &OneOrMany| {
        let labels: Vec<String> =
            labels.all().iter().filter(|label| values.contains(label)).cloned().collect();
        (!labels.is_empty()).then_some(OneOrMany::Many(labels))
    };
    let labels = labels.iter().filter_map(|(text, labels)| Some((text.clone(), known(labels)?))).collect();
    Column::Labelled { column: column.clone(), labels }
}

/// The unit in which ours and the published figure are set beside each other.
fn unit_of(figure: &FigureFile, measure: Measure) -> Unit {
    match figure.judge {
        Judge::Reduction | Judge::Gain | Judge::RSquared => Unit::Share,
        Judge::Speedup => Unit::Times,
        _ => scaled_unit(figure, measure),
    }
}

/// The unit of a measure that may be a part of a rate, or bytes in a round trip.
fn scaled_unit(figure: &FigureFile, measure: Measure) -> Unit {
    if figure.share_of.is_some() {
        Unit::Share
    } else if figure.over_rtt {
        Unit::BitsPerSecond
    } else if figure.times_rtt {
        Unit::Bytes
    } else {
        measure.unit()
    }
}

/// A printed figure in the unit `kind`.
fn read(text: &str, unit: &str, kind: Unit, figure: &FigureFile) -> Result<Range, String> {
    let range = Range::parse(text)
        .ok_or_else(|| format!("`{text}` is neither a number nor a range such as 18..24"))?;
    if kind.from_printed(1.0, unit).is_none() {
        return Err(format!("`{unit}` is no unit of what is measured (give `unit`)"));
    }
    let range = range.map(|value| kind.from_printed(value, unit).unwrap_or(f64::NAN));
    let range = if figure.judge == Judge::Speedup { range.map(|ratio| ratio - 1.0) } else { range };
    Ok(if figure.at_least { Range { high: f64::INFINITY, ..range } } else { range })
}

/// What `floor` and `ceiling` say of it.
fn stated_bound(figure: &FigureFile, text: &str, unit: &str) -> Option<String> {
    let published = Range::parse(text)?;
    let below = figure.floor.as_ref().filter(|floor| published.high < floor.value);
    let above = figure.ceiling.as_ref().filter(|ceiling| published.low > ceiling.value);
    let sentence = |word: &str, bound: &super::file::Bound| {
        format!("{text} {unit} is {word} {} {unit}: {}", bound.value, bound.because)
    };
    below.map(|floor| sentence("below", floor)).or_else(|| above.map(|ceiling| sentence("above", ceiling)))
}

/// What a figure must have for its kind of judgement.
fn check(file: &FigureFile, figure: &Figure) -> Result<(), String> {
    let has_baseline = figure.places.iter().all(|place| place.baseline.is_some());
    let missing = match file.judge {
        Judge::Reduction | Judge::Gain | Judge::Speedup | Judge::RSquared if !has_baseline => "`baseline`",
        Judge::Ratio if !has_baseline || figure.against.is_none() => {
            "`baseline`, and `against-row` or `against-column`"
        }
        Judge::Slope if figure.along.is_empty() => "`along`",
        Judge::Claims if figure.claims.is_empty() => "`claims`",
        _ => return Ok(()),
    };
    Err(format!("this kind of judgement needs {missing}"))
}
