//! The outcome as one page: what was saved, waterfalls side by side, all figures.

use std::fmt::Write as _;

use posthaste_report::html::{escape, frame};

use super::super::html::{bars, waterfall};
use super::super::plan::PathPlan;
use super::super::record::Temperature;
use super::super::table::time;
use super::outcome::{Outcome, Row, Verdict, as_it_is};
use super::text::range;

const FOOTER: &str = "<footer><p><b>How to read it.</b> Each run is a new browser profile on a new emulated path: a <i>cold</i> visit, then a \
    <i>warm</i> one over new connections, which may go on from the TLS or QUIC sessions of the first and find nothing in the cache. Page load is the \
    end of the load event, FCP and LCP are the first and largest contentful paint, all from the start of the navigation. Figures are medians with \
    their range over the runs. What is saved is the median ratio of runs whose paths had the same seed, with its 95 % interval; where that does not \
    exclude zero, the difference may be chance, and is marked so; among twenty figures without a difference, one may seem to be decided. Runs in which the emulation was late were made again. Times include what the \
    browser takes to start a page on this machine, which is the same on both sides and makes differences look smaller.</p></footer>\n";

/// One self-contained page.
pub(super) fn page(outcome: &Outcome<'_>) -> String {
    let mut out = format!(
        "<section id=\"proof\">\n<div class=\"name\">{}</div>\n<h1>{} through the edge</h1>\n\
         <p class=\"question\">How much sooner is the page there for visitors on mobile networks?</p>\n",
        escape(&outcome.site.host),
        escape(&outcome.site.url),
    );
    out.push_str(&findings(outcome));
    out.push_str(&facts(outcome));
    out.push_str("<h3>Waterfalls</h3>\n<p class=\"caption\">The cold visit whose load time is the median, both sides on one time scale. A line is a \
                  request: pale while it waits to be sent, half while it waits for the response, full while the response arrives; the marks are FCP, LCP \
                  and the end of the load event. Point at a line for its name and times.</p>\n");
    for path in &outcome.plan.paths {
        let details = waterfall::details(outcome.plan, outcome.tally, &outcome.plan.pages[0], path);
        out.push_str(&details.replacen("<details>", "<details open>", 1));
    }
    out.push_str("<h3>Page load</h3>\n");
    for temperature in Temperature::ALL.into_iter().take(1 + usize::from(outcome.plan.is_warm_wanted)) {
        let _ = write!(
            out,
            "<p class=\"caption\">{}: median and its interval; the ring is the 95th percentile. Shorter is better.</p>\n<div class=\"panels\">\n",
            temperature.name()
        );
        for path in &outcome.plan.paths {
            out.push_str(&bars::figure(
                outcome.plan,
                outcome.tally,
                &outcome.plan.pages[0],
                path,
                temperature,
            ));
        }
        out.push_str("</div>\n");
    }
    out.push_str("<h3>All figures</h3>\n");
    for path in &outcome.plan.paths {
        out.push_str(&table(outcome, path));
    }
    out.push_str("<h3>What was compared</h3>\n<ul class=\"findings\">\n");
    for remark in &outcome.remarks {
        let _ = writeln!(out, "<li>{}</li>", escape(remark));
    }
    out.push_str("</ul>\n</section>\n");
    frame(&format!("{} through the edge", outcome.site.host), "Posthaste edge prove", &[], &out, FOOTER)
}

/// One sentence per path and kind of visit, about the load time.
fn findings(outcome: &Outcome<'_>) -> String {
    let mut out = String::from("<ul class=\"findings\">\n");
    for row in outcome.rows.iter().filter(|row| row.metric == "page load") {
        let Some((base, edge)) = row.as_it_is.zip(row.edge) else { continue };
        let (class, words) = match row.verdict {
            Verdict::Faster => (" class=\"lead\"", format!("<b>{}</b> time", row.saved_text())),
            Verdict::Slower => (" class=\"bad\"", format!("<b>{}</b> time", row.saved_text())),
            Verdict::MayBeChance => ("", format!("{} time, which <b>may be chance</b>", row.saved_text())),
            Verdict::Unknown => continue,
        };
        let _ = writeln!(
            out,
            "<li{class}>Over {}, {} visit: the page loads in {} instead of {}, {words} <span class=\"where\">({})</span></li>",
            escape(row.path),
            row.visit,
            time(edge.median),
            time(base.median),
            escape(&row.plan.description),
        );
    }
    out + "</ul>\n"
}

fn facts(outcome: &Outcome<'_>) -> String {
    let counted = outcome.tally.records.iter().filter(|record| record.is_valid()).count();
    let mut out = format!(
        "<ul class=\"facts\"><li><b>{counted}</b> runs that count</li><li>{}</li><li>through the edge: <b>HTTP/3</b>, profile \
         <b>{}</b></li><li>browser: <b>{}</b></li>",
        escape(&as_it_is(outcome.site)),
        escape(outcome.profile),
        escape(&outcome.tally.browsers().join(", ")),
    );
    if let Some(lateness) = outcome.tally.lateness() {
        let _ = write!(
            out,
            "<li>emulator late at p99: <b>{}</b> in the worst run; {} attempts void</li>",
            time(lateness),
            outcome.tally.voided()
        );
    }
    out + "</ul>\n"
}

fn table(outcome: &Outcome<'_>, path: &PathPlan) -> String {
    let mut out = format!(
        "<div class=\"scroll\"><table><thead><tr><th>{}</th><th>as it is</th><th>through the edge</th><th>time</th><th></th></tr></thead><tbody>",
        escape(&path.name)
    );
    for row in outcome.of_path(path) {
        out.push_str(&line(row));
    }
    out + "</tbody></table></div>\n"
}

fn line(row: &Row<'_>) -> String {
    let class = match row.verdict {
        Verdict::Faster => " class=\"faster\"",
        Verdict::Slower => " class=\"slower\"",
        _ => "",
    };
    format!(
        "<tr><td>{}, {}</td><td>{}</td><td>{}</td><td{class}>{}</td><td>{}</td></tr>",
        row.metric,
        row.visit,
        range(row.as_it_is),
        range(row.edge),
        row.saved_text(),
        row.verdict.label()
    )
}
