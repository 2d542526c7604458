//! One stack against the best of all others, group by group: who that is at the median and at the 95th percentile, and
//! by how much the subject is slower.

use super::layout::{Group, Layout, Member};
use crate::metric::{Better, Statistic};

/// A ratio below which a difference is taken for chance.
const TOLERANCE: f64 = 1.005;

/// What is compared.
const STATISTICS: [(Statistic, &str); 2] = [(Statistic::P50, "median"), (Statistic::P95, "p95")];

/// Lines of text: a table with a line a group, then how many groups the subject is first in. Nothing without a subject or
/// where less is not better.
pub(crate) fn lines(layout: &Layout<'_>) -> Vec<String> {
    let Some(subject) = layout.experiment.subject.as_deref() else { return Vec::new() };
    if layout.headline.metric.better != Better::Lower {
        return Vec::new();
    }
    let labels: Vec<String> = layout.groups.iter().map(Group::label).collect();
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let mut lines = vec![
        String::new(),
        format!("{subject} against the best of all others: its {} over theirs", layout.headline.metric.label),
        format!("  {:width$}  {:>7}  {:24}  {:>7}  best at p95", "", "median", "best at the median", "p95"),
    ];
    let mut verdicts = [Verdict::default(); STATISTICS.len()];
    for (group, label) in layout.groups.iter().zip(&labels) {
        let found = STATISTICS.map(|(statistic, _)| compare(layout, group, subject, statistic));
        for (verdict, found) in verdicts.iter_mut().zip(&found) {
            verdict.count(found.as_ref(), label);
        }
        let [(median, best), (p95, best_p95)] = [shown(found[0].as_ref()), shown(found[1].as_ref())];
        lines.push(format!("  {label:width$}  {median:>7}  {best:24}  {p95:>7}  {best_p95}"));
    }
    for ((_, name), verdict) in STATISTICS.iter().zip(&verdicts) {
        lines.push(format!("  {name}: {}", verdict.text(subject)));
    }
    lines
}

/// What a group says.
struct Found<'a> {
    best: &'a str,
    /// The subject's figure over the best other one's; infinite if the subject meets its deadline.
    ratio: f64,
}

fn shown<'a>(found: Option<&Found<'a>>) -> (String, &'a str) {
    found.map_or(("-".to_owned(), "-"), |found| (format!("{:.3}", found.ratio), found.best))
}

fn compare<'a>(
    layout: &Layout<'a>,
    group: &Group<'a>,
    subject: &str,
    statistic: Statistic,
) -> Option<Found<'a>> {
    let value = |member: &Member<'a>| statistic.of(&layout.sample(member.cell).summary()?);
    let own = group.members.iter().find(|member| member.name == subject).and_then(value)?;
    let others = group.members.iter().filter(|member| member.name != subject);
    let (best, least) = others
        .filter_map(|member| Some((member.name, value(member)?)))
        .min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    (least > 0.0 && least.is_finite()).then(|| Found { best, ratio: own / least })
}

/// How a subject does over all groups.
#[derive(Debug, Clone, Copy, Default)]
struct Verdict<'a> {
    groups: usize,
    first: usize,
    worst: f64,
    worst_in: &'a str,
}

impl<'a> Verdict<'a> {
    fn count(&mut self, found: Option<&Found<'_>>, label: &'a str) {
        let Some(found) = found else { return };
        self.groups += 1;
        self.first += usize::from(found.ratio <= TOLERANCE);
        if found.ratio > self.worst {
            (self.worst, self.worst_in) = (found.ratio, label);
        }
    }

    fn text(&self, subject: &str) -> String {
        let Self { groups, first, worst, worst_in } = self;
        format!("{subject} is first (within 0.5 %) in {first} of {groups}; at worst {worst:.3} ({worst_in})")
    }
}

#[cfg(test)]
mod tests;
