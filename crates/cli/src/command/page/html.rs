//! The result as a page: bars for each path, the waterfall of each median run, all numbers.

pub(super) mod bars;
mod numbers;
pub(super) mod waterfall;

use std::fmt::Write as _;

use posthaste_report::html::{escape, frame};

use super::build;
use super::plan::{PagePlan, Plan};
use super::record::Temperature;
use super::table::time;
use super::tally::{Metric, Tally, baseline, is_ours};

/// Colours of the style sheet.
const HUES: usize = 8;

const FOOTER: &str = "<footer><p><b>How to read it.</b> Each run is a new browser profile on a new emulated path: a <i>cold</i> visit, then a \
    <i>warm</i> one over new connections, which may go on from the TLS and QUIC sessions of the first (0-RTT where browser and server do it) and find \
    nothing in the cache. Page load is the end of the load event, FCP and LCP are the first and largest contentful paint, all from the start of the \
    navigation; the last byte counts from the first request. Bars are medians with their 95 % interval, rings 95th percentiles (of fewer than 20 runs: \
    the slowest). A run that failed counts as slower than every other. Ratios are taken between runs of equal seed, then their median. The protocol of \
    every response was checked. Void runs, in which the emulator was late or interfaces dropped packets, were made again. Times include what the browser \
    takes to start a page on this machine, the same for all.</p></footer>\n";

/// One self-contained page.
pub(super) fn page(plan: &Plan, tally: &Tally) -> String {
    let links: Vec<(String, &str)> = plan
        .pages
        .iter()
        .enumerate()
        .map(|(index, page)| (format!("p{index}"), page.name.as_str()))
        .collect();
    let sections: String =
        plan.pages.iter().enumerate().map(|(index, page)| section(plan, tally, index, page)).collect();
    frame("Page loads in a browser", "Posthaste page", &links, &sections, FOOTER)
}

fn section(plan: &Plan, tally: &Tally, index: usize, page: &PagePlan) -> String {
    let heading = if index == 0 { "h1" } else { "h2" };
    let mut out = format!(
        "<section id=\"p{index}\">\n<div class=\"name\">{name}</div>\n<{heading}>The page {name} in a browser</{heading}>\n\
         <p class=\"question\">How long does {} take to load, by server and path?</p>\n",
        escape(&page.description),
        name = escape(&page.name),
    );
    out.push_str(&facts(plan, tally, page));
    out.push_str(&findings(plan, tally, page));
    out.push_str(&key(plan));
    for temperature in temperatures(plan) {
        let _ = write!(
            out,
            "<h3>Page load, {}</h3>\n<p class=\"caption\">Median and its interval; the ring is the 95th percentile. Shorter is better.</p>\n\
             <div class=\"panels\">\n",
            temperature.name()
        );
        for path in &plan.paths {
            out.push_str(&bars::figure(plan, tally, page, path, temperature));
        }
        out.push_str("</div>\n");
    }
    out.push_str("<h3>Waterfalls</h3>\n<p class=\"caption\">The cold visit whose load time is the median. A line is a request: pale while it waits to be \
                  sent, half while it waits for the response, full while the response arrives; the marks are FCP, LCP and the end of the load event. \
                  Point at a line for its name and times.</p>\n");
    for path in &plan.paths {
        out.push_str(&waterfall::details(plan, tally, page, path));
    }
    out.push_str("<h3>All numbers</h3>\n");
    for path in &plan.paths {
        out.push_str(&numbers::table(plan, tally, page, path));
    }
    out.push_str("</section>\n");
    out
}

pub(super) fn temperatures(plan: &Plan) -> impl Iterator<Item = Temperature> {
    Temperature::ALL.into_iter().take(1 + usize::from(plan.is_warm_wanted))
}

fn facts(plan: &Plan, tally: &Tally, page: &PagePlan) -> String {
    let here = tally.records.iter().filter(|record| record.key.page == page.name && record.is_valid());
    let mut out = format!("<ul class=\"facts\"><li><b>{}</b> runs that count</li>", here.count());
    for path in &plan.paths {
        let _ = write!(out, "<li>{}: <b>{}</b></li>", escape(&path.name), escape(&path.description));
    }
    let _ = write!(out, "<li>browser: <b>{}</b></li>", escape(&tally.browsers().join(", ")));
    if let Some(builds) = build::describe(&tally.records) {
        let _ = write!(out, "<li>{}</li>", escape(&builds));
    }
    if let Some(rate) = tally.background_rate() {
        let _ =
            write!(out, "<li>background downloads: <b>{:.2} Mbit/s</b> together, median</li>", rate / 1e6);
    }
    if let Some(lateness) = tally.lateness() {
        let _ = write!(
            out,
            "<li>emulator late at p99: <b>{}</b> in the worst run; {} attempts void</li>",
            time(lateness),
            tally.voided()
        );
    }
    out.push_str("</ul>\n");
    if tally.was_interrupted {
        out.push_str("<p class=\"note\">Interrupted: some runs are missing.</p>\n");
    }
    out
}

/// For each path and visit, how ours stand against the baseline, where that is decided.
fn findings(plan: &Plan, tally: &Tally, page: &PagePlan) -> String {
    let base = &plan.contestants[baseline(plan)];
    let mut out = String::new();
    for path in &plan.paths {
        for temperature in temperatures(plan) {
            let base_cell = tally.cell(&page.name, &path.name, &base.name);
            for contestant in
                plan.contestants.iter().filter(|one| is_ours(&one.name) && one.name != base.name)
            {
                let cell = tally.cell(&page.name, &path.name, &contestant.name);
                let Some(paired) = cell.against(&base_cell, temperature) else { continue };
                let (Some(ratio), Some(interval)) = (paired.ratio, paired.interval) else { continue };
                if !paired.is_decided() {
                    continue;
                }
                let (class, word) = if ratio < 1.0 { ("", "less") } else { (" class=\"bad\"", "more") };
                let _ = writeln!(
                    out,
                    "<li{class}><b>{}</b> takes {:.0} % {word} time than {} <span class=\"where\">({}, {}; between {:+.0} and {:+.0} %)</span></li>",
                    escape(&contestant.name),
                    (ratio - 1.0).abs() * 100.0,
                    escape(&base.name),
                    escape(&path.name),
                    temperature.name(),
                    (interval.low - 1.0) * 100.0,
                    (interval.high - 1.0) * 100.0,
                );
            }
        }
    }
    if out.is_empty() { out } else { format!("<ul class=\"findings\">\n{out}</ul>\n") }
}

/// What each colour stands for.
fn key(plan: &Plan) -> String {
    let mut out = String::from("<ul class=\"key\">");
    for (index, contestant) in plan.contestants.iter().enumerate() {
        let ours = if is_ours(&contestant.name) { " class=\"ours\"" } else { "" };
        let _ = write!(
            out,
            "<li data-i=\"{index}\"{ours}><svg class=\"swatch\" viewBox=\"0 0 22 10\"><g class=\"{}\"><rect class=\"bar\" width=\"22\" height=\"10\"/></g></svg>\
             <span class=\"label\">{}</span> {}</li>",
            look(index, &contestant.name),
            escape(&contestant.name),
            contestant.protocol.alpn(),
        );
    }
    out.push_str("</ul>\n");
    out
}

/// Classes of a contestant's marks.
fn look(index: usize, name: &str) -> String {
    let ours = if is_ours(name) { " ours" } else { "" };
    format!("s h{} i{index}{ours}", index % HUES)
}

/// All metrics of the tables, in their order.
const METRICS: [Metric; 4] = [Metric::Load, Metric::FirstPaint, Metric::LargestPaint, Metric::Complete];

#[cfg(test)]
mod tests;
