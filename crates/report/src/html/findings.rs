//! What the figures say, in sentences: computed, not written.

use super::svg::escape;
use super::table::is_measured;
use crate::layout::{Group, Incomplete, Layout, Member};
use crate::metric::{Better, Unit};
use crate::statistics::Paired;

/// Groups that get a sentence each; of more than these, the most telling do.
const MAX_SENTENCES: usize = 6;

/// The list of findings, as HTML.
pub(super) fn list(layout: &Layout<'_>) -> String {
    let rankings: Vec<Ranking<'_>> =
        layout.groups.iter().filter_map(|group| Ranking::new(layout, group)).collect();
    let mut items: Vec<String> = Vec::new();
    if let Some(text) = lead(layout, &rankings) {
        items.push(format!(r#"<li class="lead">{text}</li>"#));
    }
    if let Some(text) = like(layout) {
        items.push(format!(r#"<li class="lead">{text}</li>"#));
    }
    items.extend(telling(&rankings).map(|group| format!("<li>{}</li>", sentence(layout, group))));
    if let Some(text) = incomplete(layout) {
        items.push(format!(r#"<li class="bad">{text}</li>"#));
    }
    if items.is_empty() {
        String::new()
    } else {
        format!("<ul class=\"findings\">\n{}\n</ul>\n", items.join("\n"))
    }
}

/// A group's members with their medians, the best first.
struct Ranking<'a> {
    group: &'a Group<'a>,
    order: Vec<(&'a Member<'a>, f64)>,
}

impl<'a> Ranking<'a> {
    fn new(layout: &Layout<'_>, group: &'a Group<'a>) -> Option<Self> {
        let medians = group.members.iter().filter_map(|member| {
            let summary = layout.sample(member.cell).summary()?;
            Some((member, summary.p50))
        });
        let mut order: Vec<(&Member<'_>, f64)> = medians.collect();
        order.sort_by(|a, b| match layout.headline.metric.better {
            Better::Higher => b.1.total_cmp(&a.1),
            Better::Lower | Better::Neither => a.1.total_cmp(&b.1),
        });
        (!order.is_empty()).then_some(Self { group, order })
    }

    fn best(&self) -> (&'a Member<'a>, f64) {
        self.order[0]
    }

    fn worst(&self) -> (&'a Member<'a>, f64) {
        self.order[self.order.len() - 1]
    }

    /// How far the members lie apart, as a factor.
    fn spread(&self) -> f64 {
        let factor = (self.worst().1 / self.best().1).abs();
        let factor = factor.max(1.0 / factor);
        if factor.is_nan() { 1.0 } else { factor }
    }
}

/// The groups in which stacks differ most, in their order.
fn telling<'a, 'b>(rankings: &'b [Ranking<'a>]) -> impl Iterator<Item = &'b Ranking<'a>> {
    let mut spreads: Vec<f64> = rankings.iter().map(Ranking::spread).collect();
    spreads.sort_by(|a, b| b.total_cmp(a));
    let least = spreads.get(MAX_SENTENCES - 1).copied().unwrap_or(0.0);
    rankings.iter().filter(move |group| group.spread() >= least).take(MAX_SENTENCES)
}

/// Who is best in how many groups, where there are several of both.
fn lead(layout: &Layout<'_>, rankings: &[Ranking<'_>]) -> Option<String> {
    if rankings.len() < 2 || layout.series.len() < 2 || layout.headline.metric.better == Better::Neither {
        return None;
    }
    let mut wins: Vec<(usize, usize)> = Vec::new();
    for series in 0..layout.series.len() {
        let is_won = |group: &&Ranking<'_>| group.best().0.series == series && group.best().1.is_finite();
        wins.push((rankings.iter().filter(is_won).count(), series));
    }
    // A stable sort: of equal ones the first on the axis stands first.
    wins.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let parts: Vec<String> = wins
        .iter()
        .filter(|(count, _)| *count > 0)
        .take(4)
        .map(|(count, series)| format!("<b>{}</b> in {count}", escape(layout.series[*series])))
        .collect();
    let adjective = if layout.is_completion() { "Fastest" } else { "Best" };
    let count = rankings.len();
    match wins.first() {
        Some((most, series)) if *most == count => Some(format!(
            "<b>{}</b> is {} in all {count} conditions.",
            escape(layout.series[*series]),
            adjective.to_lowercase()
        )),
        Some((most, _)) if *most > 0 => {
            Some(format!("{adjective} of all: {} of {count} conditions.", parts.join(", ")))
        }
        _ => None,
    }
}

/// The baseline against other stacks with its kind of controller.
fn like(layout: &Layout<'_>) -> Option<String> {
    let baseline = layout.baseline?;
    let is_higher_better = layout.headline.metric.better == Better::Higher;
    let (mut decided, mut level) = (Vec::new(), Vec::new());
    for (series, name) in layout.series.iter().enumerate() {
        if *name == baseline || controller(name) != controller(baseline) {
            continue;
        }
        let members = layout.groups.iter().flat_map(|group| &group.members);
        let pairs = members.filter(|member| member.series == series);
        let pairs: Vec<Paired> = pairs.filter_map(|member| layout.against_baseline(member.cell)).collect();
        let count = |is_above: bool| pairs.iter().filter(|pair| pair.is_decidedly(is_above)).count();
        let (ahead, behind) = (count(!is_higher_better), count(is_higher_better));
        if ahead + behind > 0 {
            let behind = if behind > 0 { format!(", behind in {behind}") } else { String::new() };
            decided.push(format!("<b>{}</b> in {ahead} of {}{behind}", escape(name), pairs.len()));
        } else if !pairs.is_empty() {
            level.push(format!("<b>{}</b>", escape(name)));
        }
    }
    let mut parts = Vec::new();
    if !decided.is_empty() {
        parts.push(format!("is decidedly ahead of {}", decided.join("; of ")));
    }
    if !level.is_empty() {
        parts.push(format!("cannot be told from {}", level.join(", ")));
    }
    let text = format!("Controller for controller, <b>{}</b> {}.", escape(baseline), parts.join("; it "));
    (!parts.is_empty()).then_some(text)
}

/// The kind of controller that a stack's name tells.
fn controller(name: &str) -> &str {
    let last = name.split_once(':').map_or(name, |(_, controller)| controller);
    let last = last.split('/').next().unwrap_or_default();
    if last == "standard" { "newreno" } else { last }
}

/// A group in one sentence: the baseline (or the best), then the best and the worst.
fn sentence(layout: &Layout<'_>, rankings: &Ranking<'_>) -> String {
    let label = escape(&rankings.group.label());
    let is_alone = rankings.group.conditions.is_empty();
    let place = if is_alone { String::new() } else { format!("<span class=\"where\">{label}:</span> ") };
    let best = rankings.best();
    if !best.1.is_finite() {
        return format!("{place}no stack finishes more than half of its runs before the deadline.");
    }
    let is_baseline = |(member, _): &&(&Member<'_>, f64)| Some(member.name) == layout.baseline;
    let subject = rankings.order.iter().find(is_baseline).copied().unwrap_or(best);
    let mut text = place + &opening(layout, subject);
    let is_subject = |other: (&Member<'_>, f64)| other.0.series == subject.0.series;
    let (good, bad) = match (layout.is_completion(), layout.headline.metric.better) {
        (true, _) => ("fastest", "slowest"),
        (false, Better::Higher) => ("highest", "lowest"),
        (false, _) => ("lowest", "highest"),
    };
    let worst = rankings.worst();
    if rankings.order.len() > 1 && subject.1.is_finite() {
        if is_subject(best) {
            text = format!("{text}, the {good}");
        } else if is_subject(worst) {
            text = format!("{text}, the {bad}");
        }
    }
    for (word, (member, median)) in [(good, best), (bad, worst)] {
        if rankings.order.len() < 2 || is_subject((member, median)) || !median.is_finite() {
            continue;
        }
        let paired = layout.against_baseline(member.cell).map(ratio).unwrap_or_default();
        let (name, value) = (escape(member.name), quantity(layout.headline.metric.unit, median));
        text = format!("{text}; {word} <b>{name}</b> {value}{paired}");
    }
    text + &others_unfinished(rankings, subject.0.series) + "."
}

/// The stacks beside the subject of a sentence that do not finish.
fn others_unfinished(rankings: &Ranking<'_>, subject: usize) -> String {
    let others =
        rankings.order.iter().filter(|(member, median)| member.series != subject && !median.is_finite());
    match others.map(|(member, _)| escape(member.name)).collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        [one] => format!("; {one} finishes at most half of its runs by the deadline"),
        several => format!("; {} finish at most half of their runs by the deadline", several.join(", ")),
    }
}

/// A number that no line breaks apart from its unit.
fn quantity(unit: Unit, value: f64) -> String {
    unit.text(value).replace(' ', "\u{a0}")
}

fn opening(layout: &Layout<'_>, (member, median): (&Member<'_>, f64)) -> String {
    let metric = layout.headline.metric;
    let (name, value) = (escape(member.name), quantity(metric.unit, median));
    if !median.is_finite() {
        let incomplete = Incomplete::of(member.cell);
        let done = incomplete.runs - incomplete.total();
        return format!("<b>{name}</b> finishes {done} of {} runs by the deadline", incomplete.runs);
    }
    if !layout.is_completion() {
        return format!("<b>{name}</b> has {} <b>{value}</b> (median)", escape(metric.label));
    }
    let limit = member.cell.limit.as_ref().map(|limit| limit.seconds).filter(|limit| *limit > 0.0);
    let limit = limit
        .map(|limit| format!(", {} the limit", quantity(Unit::Times, median / limit)))
        .unwrap_or_default();
    format!("<b>{name}</b> finishes in <b>{value}</b> (median){limit}")
}

/// The paired ratio with its interval, in parentheses.
fn ratio(paired: Paired) -> String {
    let Some(ratio) = paired.ratio.filter(|ratio| is_measured(*ratio)) else { return String::new() };
    let Some(interval) = paired.interval else {
        return format!(" ({ratio:.2} \u{d7}; too few runs to be sure)");
    };
    let high =
        if interval.high.is_finite() { format!("{:.2}", interval.high) } else { "\u{221e}".to_owned() };
    let open = if paired.is_decided() { "" } else { ": not decided" };
    format!(" ({ratio:.2}\u{a0}\u{d7}\u{a0}[{:.2},\u{a0}{high}]{open})", interval.low)
}

/// How many runs did not finish, and whose.
fn incomplete(layout: &Layout<'_>) -> Option<String> {
    let counted: Vec<(&str, Incomplete<'_>)> = layout
        .groups
        .iter()
        .flat_map(|group| &group.members)
        .map(|member| (member.name, Incomplete::of(member.cell)))
        .collect();
    let total: usize = counted.iter().map(|(_, incomplete)| incomplete.total()).sum();
    let runs: usize = counted.iter().map(|(_, incomplete)| incomplete.runs).sum();
    if total == 0 {
        return None;
    }
    let parts = layout.series.iter().filter_map(|name| {
        let of_this = counted.iter().filter(|(other, _)| other == name);
        let count: usize = of_this.map(|(_, incomplete)| incomplete.total()).sum();
        (count > 0).then(|| format!("{} {count}", escape(name)))
    });
    let parts: Vec<String> = parts.collect();
    let parts = if layout.series.len() > 1 { format!(" ({})", parts.join(", ")) } else { String::new() };
    let are = if total == 1 { "run is" } else { "runs are" };
    Some(format!(
        "<b>{total}</b> of {runs} {are} incomplete{parts}; they count as worse than all others, never as absent."
    ))
}
