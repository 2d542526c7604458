//! What the figures say, in sentences: computed, not written.

use super::svg::escape;
use crate::metric::{Better, Unit};
use crate::report::layout::{Group, Incomplete, Layout, Member};

/// Groups that get a sentence each; of more than these, the most telling do.
const MAX_SENTENCES: usize = 6;

/// The list of findings, as HTML.
pub(super) fn list(layout: &Layout<'_>) -> String {
    let mut items: Vec<String> = Vec::new();
    let sentences: Vec<(f64, String)> =
        layout.groups.iter().filter_map(|group| sentence(layout, group)).collect();
    items.extend(chosen(sentences).into_iter().map(|text| format!("<li>{text}</li>")));
    if let Some(text) = incomplete(layout) {
        items.push(format!(r#"<li class="bad">{text}</li>"#));
    }
    if items.is_empty() {
        String::new()
    } else {
        format!("<ul class=\"findings\">\n{}\n</ul>\n", items.join("\n"))
    }
}

/// The sentences of the groups in which stacks differ most, in the groups' order.
fn chosen(sentences: Vec<(f64, String)>) -> Vec<String> {
    let mut weights: Vec<f64> = sentences.iter().map(|(weight, _)| *weight).collect();
    weights.sort_by(|a, b| b.total_cmp(a));
    let least = weights.get(MAX_SENTENCES - 1).copied().unwrap_or(f64::NEG_INFINITY);
    let telling = sentences.into_iter().filter(|(weight, _)| *weight >= least).take(MAX_SENTENCES);
    telling.map(|(_, text)| text).collect()
}

struct Standing<'a> {
    member: &'a Member<'a>,
    median: f64,
}

/// A group in one sentence, and how far its stacks lie apart.
fn sentence(layout: &Layout<'_>, group: &Group<'_>) -> Option<(f64, String)> {
    let metric = layout.headline.metric;
    let mut standings: Vec<Standing<'_>> = group
        .members
        .iter()
        .filter_map(|member| Some(Standing { member, median: layout.sample(member.cell).summary()?.p50 }))
        .collect();
    standings.sort_by(|a, b| match metric.better {
        Better::Higher => b.median.total_cmp(&a.median),
        Better::Lower | Better::Neither => a.median.total_cmp(&b.median),
    });
    let best = standings.first()?;
    let place = format!("<span class=\"where\">{}:</span> ", escape(&group.label()));
    if !best.median.is_finite() {
        return Some((
            f64::INFINITY,
            format!("{place}no stack finishes half of its runs before the deadline."),
        ));
    }
    let mut text = place + &opening(layout, best);
    let mut clauses: Vec<String> = Vec::new();
    let rest = &standings[1..];
    let is_baseline = |standing: &&Standing<'_>| Some(standing.member.name) == layout.baseline;
    let baseline = rest.iter().find(is_baseline);
    let worst = rest.last().filter(|worst| Some(worst.member.name) != layout.baseline);
    for standing in baseline.into_iter().chain(worst) {
        clauses.push(clause(metric.unit, best, standing));
    }
    if let Some(paired) = layout.against_baseline(best.member.cell) {
        if let (Some(base), Some(ratio)) = (layout.baseline, paired.ratio.filter(|ratio| ratio.is_finite())) {
            let sure = if paired.is_decided() { "" } else { " (the interval includes 1: not decided)" };
            let interval = paired.interval.filter(|interval| interval.high.is_finite());
            let interval =
                interval.map(|i| format!(", 95 % CI {:.2} to {:.2}", i.low, i.high)).unwrap_or_default();
            clauses.push(format!("run by run {ratio:.2} \u{d7} {}{interval}{sure}", escape(base)));
        }
    }
    if !clauses.is_empty() {
        text = format!("{text}; {}", clauses.join("; "));
    }
    let weight = rest.last().map_or(1.0, |worst| (worst.median / best.median).abs());
    let weight = if weight.is_finite() { weight.max(1.0 / weight.max(1e-9)) } else { f64::MAX };
    Some((weight, text + "."))
}

fn opening(layout: &Layout<'_>, best: &Standing<'_>) -> String {
    let metric = layout.headline.metric;
    let name = escape(best.member.name);
    let value = metric.unit.text(best.median);
    if !layout.is_completion() {
        let side = match metric.better {
            Better::Lower => "the least",
            Better::Higher => "the most",
            Better::Neither => "the smallest value",
        };
        return format!("<b>{name}</b> has {side} {}, <b>{value}</b> in the median", escape(metric.label));
    }
    let limit = best.member.cell.limit.as_ref().map(|limit| limit.seconds).filter(|limit| *limit > 0.0);
    let limit = limit.map(|limit| format!(", {} the limit", Unit::Times.text(best.median / limit)));
    format!("<b>{name}</b> finishes in <b>{value}</b> (median){}", limit.unwrap_or_default())
}

fn clause(unit: Unit, best: &Standing<'_>, other: &Standing<'_>) -> String {
    let name = escape(other.member.name);
    if !other.median.is_finite() {
        return format!("{name} finishes fewer than half of its runs before the deadline");
    }
    let factor = other.median / best.median;
    let factor =
        if factor.is_finite() && factor > 1.0 { format!(" ({factor:.2} \u{d7})") } else { String::new() };
    format!("{name} {}{factor}", unit.text(other.median))
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
        "<b>{total}</b> of {runs} {are} incomplete{parts}; they count as slower than all others, never as absent."
    ))
}
