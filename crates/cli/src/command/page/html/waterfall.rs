//! Request by request.

use std::fmt::Write as _;

use posthaste_report::html::escape;

use super::look;
use crate::command::page::plan::{PagePlan, PathPlan, Plan};
use crate::command::page::record::{Object, Record, Temperature, Visit};
use crate::command::page::table::time;
use crate::command::page::tally::Tally;

const WIDTH: f64 = 552.0;
/// Height of a request's line.
const LINE: f64 = 4.0;
const TOP: f64 = 16.0;

/// Strength of what a request is doing: waiting to be sent, waiting for the response, receiving it.
const STRENGTH: [f64; 3] = [0.18, 0.45, 1.0];

/// The waterfalls of all contestants over one path, on one time scale.
pub(in super::super) fn details(plan: &Plan, tally: &Tally, page: &PagePlan, path: &PathPlan) -> String {
    let mut shown: Vec<(usize, &Record, &Visit)> = Vec::new();
    let cells: Vec<_> =
        plan.contestants.iter().map(|one| tally.cell(&page.name, &path.name, &one.name)).collect();
    for (index, cell) in cells.iter().enumerate() {
        let median = cell.median_run(Temperature::Cold);
        if let Some((record, visit)) = median.and_then(|run| Some((run, run.visit(Temperature::Cold)?))) {
            shown.push((index, record, visit));
        }
    }
    let longest = shown.iter().map(|(_, _, visit)| visit.complete.max(visit.load)).fold(0.0, f64::max);
    let mut out = format!(
        "<details><summary>{}<span>{} to the right edge</span></summary><div class=\"panels\">\n",
        escape(&path.name),
        time(longest)
    );
    for (index, record, visit) in shown {
        out.push_str(&figure(plan, index, record, visit, longest));
    }
    out.push_str("</div></details>\n");
    out
}

fn figure(plan: &Plan, index: usize, record: &Record, visit: &Visit, longest: f64) -> String {
    let contestant = &plan.contestants[index];
    let height = TOP + LINE * visit.objects.len() as f64 + 4.0;
    let across = |time: f64| WIDTH * (time / longest.max(1e-9)).clamp(0.0, 1.0);
    let mut body = String::new();
    for (row, object) in visit.objects.iter().enumerate() {
        let y = TOP + LINE * (row as f64 + 0.5);
        let _ = write!(body, "<g><title>{}</title>", escape(&describe(object)));
        for (strength, (start, end)) in STRENGTH.into_iter().zip(phases(object)) {
            // A hair is seen where a time is too short.
            let (start, end) = (across(start), across(end).max(across(start) + 0.3));
            let _ = write!(body, "<path opacity=\"{strength}\" d=\"M{start:.1} {y:.0}H{end:.1}\"/>");
        }
        body.push_str("</g>");
    }
    let marks = [("FCP", visit.first_paint), ("LCP", visit.largest_paint), ("load", Some(visit.load))];
    let mut lines = String::new();
    for (name, at) in marks.into_iter().filter_map(|(name, at)| Some((name, at?))) {
        let x = across(at);
        let anchor = if x > WIDTH - 30.0 { " text-anchor=\"end\"" } else { "" };
        let _ = write!(
            lines,
            "<line class=\"limitline\" x1=\"{x:.1}\" y1=\"{TOP:.0}\" x2=\"{x:.1}\" y2=\"{height:.0}\"/><text class=\"unit\" x=\"{x:.1}\" y=\"11\"{anchor}>{name}</text>"
        );
    }
    format!(
        "<figure><figcaption>{name}<span>{}; run {}</span></figcaption><svg viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" aria-label=\"Requests of {name}\">\
         <g class=\"{}\"><g fill=\"none\" stroke=\"var(--c)\" stroke-width=\"3\">{body}</g></g>{lines}</svg></figure>\n",
        time(visit.load),
        record.key.round,
        look(index, &contestant.name),
        name = escape(&contestant.name),
    )
}

/// Start and end of waiting to be sent, waiting for the response, and receiving it.
fn phases(object: &Object) -> [(f64, f64); 3] {
    let end = object.end.unwrap_or(object.start);
    let sent = object.sent.unwrap_or(object.start).clamp(object.start, end.max(object.start));
    let head = object.head.unwrap_or(end).clamp(sent, end.max(sent));
    [(object.start, sent), (sent, head), (head, end)]
}

fn describe(object: &Object) -> String {
    let file = object.url.rsplit_once('/').map_or(object.url.as_str(), |(_, file)| file);
    let end = object.end.map_or_else(|| "never".to_owned(), time);
    format!("{file}, {} B, {}: {} to {end}", object.bytes, object.protocol, time(object.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_each_other_whatever_is_missing() {
        let object =
            Object { start: 1.0, sent: Some(2.0), head: Some(3.0), end: Some(4.0), ..Object::default() };
        assert_eq!(phases(&object), [(1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]);
        let early = Object { sent: Some(0.5), ..object.clone() };
        assert_eq!(phases(&early)[0], (1.0, 1.0));
        let failed = Object { sent: None, head: None, end: None, ..object };
        assert_eq!(phases(&failed), [(1.0, 1.0); 3]);
    }
}
