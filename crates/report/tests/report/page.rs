//! The page as a whole: whole, self-contained, bounded, and true to its results.

use posthaste_report::experiment_result::ExperimentResult;
use posthaste_report::html::page;
use posthaste_report::result::{Outcome, Series};

use crate::data;

/// Elements without an end tag.
const VOID: [&str; 3] = ["meta", "br", "!doctype"];

/// Walks over all tags; fails where one is not closed, or closed that is not open. Text of scripts and styles is
/// skipped.
fn assert_well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        assert!(!tag.contains('<'), "a tag within a tag: <{tag}>");
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).expect("a name");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "near {}", &rest[..rest.len().min(80)]);
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
            if matches!(name, "script" | "style") {
                rest = &rest[rest.find(&format!("</{name}>")).expect("an end")..];
            }
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

/// Everything between `before` and the next `"`.
fn attributes<'a>(page: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    page.split(before).skip(1).map(|rest| rest.split('"').next().unwrap_or_default())
}

fn assert_drawn_within_bounds(page: &str) {
    for drawing in page.split("<svg viewBox=\"").skip(1) {
        let (size, rest) = drawing.split_once('"').expect("a size");
        let size: Vec<f64> = size.split(' ').map(|part| part.parse().expect("a number")).collect();
        let drawing = rest.split("</svg>").next().expect("a drawing");
        for (names, bound) in [
            ([" x=\"", " x1=\"", " x2=\"", " cx=\""], size[2]),
            ([" y=\"", " y1=\"", " y2=\"", " cy=\""], size[3]),
        ] {
            for name in names {
                for value in attributes(drawing, name) {
                    let value: f64 = value.parse().expect("a coordinate");
                    assert!((-1.0..=bound + 1.0).contains(&value), "{name}{value}\" beyond {bound}");
                }
            }
        }
        for path in attributes(drawing, " d=\"") {
            for number in
                path.split(|c: char| c.is_ascii_alphabetic() || c == ' ').filter(|part| !part.is_empty())
            {
                let number: f64 = number.parse().expect("a coordinate");
                assert!((-1.0..=size[2] + 1.0).contains(&number), "{number} in {path}");
            }
        }
    }
}

fn assert_sound(page: &str) {
    assert_well_formed(page);
    assert_drawn_within_bounds(page);
    assert!(!page.contains("NaN"), "a number that is none");
}

fn all() -> Vec<ExperimentResult> {
    vec![data::simple(50), data::fairness(), data::along_loss()]
}

#[test]
fn a_full_page_is_sound_and_of_bearable_size() {
    let page = page(&all());
    // To be looked at.
    std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/report.html"), &page)
        .expect("a writable directory");
    assert_sound(&page);
    assert!(page.len() < 3_000_000, "{} bytes for {} cells", page.len(), data::simple(1).cells.len());
}

#[test]
fn a_page_loads_nothing() {
    let page = page(&all());
    for outside in ["http:", "https:", "src=", "<link", "@import", "url(/", "url(\"", "fetch(", "XMLHttp"] {
        assert!(!page.contains(outside), "the page holds {outside}");
    }
}

#[test]
fn equal_results_give_equal_pages() {
    assert!(page(&all()) == page(&all()));
}

#[test]
fn everything_that_one_wants_to_know_is_there() {
    let experiment = data::simple(20);
    let page = page(std::slice::from_ref(&experiment));
    let held =
        |text: &str| page.contains(&text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"));
    for cell in &experiment.cells {
        assert!(held(&cell.command), "no command: {}", cell.command);
        let limit = cell.limit.as_ref().expect("a limit");
        assert!(held(&limit.terms), "no limit: {}", limit.terms);
        for published in &cell.published {
            assert!(held(&published.source) && held("0.520 s"), "no figure of {}", published.source);
            assert!(held(published.verdict.as_deref().expect("a verdict")));
        }
    }
    for title in [
        "delivery rate",
        "pacing rate",
        "congestion window",
        "smoothed RTT",
        "queue of",
        "flow-control credit",
    ] {
        assert!(held(title), "no {title} over time");
    }
    for text in [&experiment.question, &experiment.source, &experiment.command] {
        assert!(held(text), "no {text}");
    }
    assert!(held("link rate 100 Mbit/s"));
}

#[test]
fn only_what_does_not_repeat_is_marked() {
    let page = page(&[data::simple(3)]);
    assert!(page.contains("noq:bbr3\u{2020}") && page.contains("\u{2020} Its controller"));
    assert!(!page.contains("quinn:bbr\u{2020}") && !page.contains("cubic\u{2020}"));
    let mut others = data::simple(3);
    others.cells.retain(|cell| cell.coordinates[2] != "noq:bbr3");
    assert!(!crate::page::page(&[others]).contains('\u{2020}'));
}

#[test]
fn a_cell_with_an_unrepeatable_rival_is_marked_too() {
    let mut experiment = data::fairness();
    for run in &mut experiment.cells[0].runs {
        "noq:bbr3".clone_into(&mut run.flows[1].stack);
    }
    let page = page(&[experiment]);
    assert!(page.contains(">cubic\u{2020}<") && !page.contains("modquic-cubic\u{2020}"));
}

#[test]
fn unfinished_runs_show() {
    let page = page(&[data::simple(50)]);
    assert!(page.contains("47 of 50") && page.contains("&gt;deadline"));
    assert!(page.contains("3 of 50 (3 by the deadline of 300 s)"));
}

#[test]
fn odd_results_give_sound_pages() {
    assert_sound(&page(&[]));
    assert_sound(&page(&[ExperimentResult::default()]));
    let mut experiment = data::simple(1);
    assert_sound(&page(std::slice::from_ref(&experiment)));
    experiment.cells.truncate(1);
    experiment.axes.truncate(1);
    assert_sound(&page(std::slice::from_ref(&experiment)));
    for cell in &mut experiment.cells {
        for run in &mut cell.runs {
            run.outcome = Outcome::Failed("the path is dead".to_owned());
            run.flows[0].completion = None;
        }
    }
    let dead = page(std::slice::from_ref(&experiment));
    assert_sound(&dead);
    assert!(dead.contains("the path is dead"));
    experiment.cells[0].runs.clear();
    let empty = page(&[experiment]);
    assert_sound(&empty);
    assert!(empty.contains("No run has been made yet."));
}

#[test]
fn odd_numbers_give_sound_pages() {
    let mut experiment = data::simple(8);
    for (index, cell) in experiment.cells.iter_mut().enumerate() {
        let value = [0.0, f64::NAN, f64::INFINITY, 1e300, 1e-300, -1.0][index % 6];
        cell.runs[0].flows[0].completion = Some(value);
        cell.runs[1].flows[0].goodput = value;
        if let Some(limit) = &mut cell.limit {
            limit.seconds = [value, 0.0, 1.0][index % 3];
        }
        if let Some(Series { times, gauges }) = &mut cell.runs[0].series {
            times.truncate(index % 4);
            for gauge in gauges {
                gauge.values.truncate(index % 3);
                gauge.values.iter_mut().for_each(|gauge| *gauge = Some(value));
            }
        }
    }
    assert_sound(&page(&[experiment]));
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "</title><script>alert('1')</script>&\"";
    let mut experiment = data::simple(2);
    for text in
        [&mut experiment.name, &mut experiment.title, &mut experiment.question, &mut experiment.source]
    {
        hostile.clone_into(text);
    }
    experiment.note = Some(hostile.to_owned());
    hostile.clone_into(&mut experiment.command);
    hostile.clone_into(&mut experiment.axes[2].values[1]);
    for cell in experiment.cells.iter_mut().filter(|cell| cell.coordinates[2] == "cubic") {
        hostile.clone_into(&mut cell.coordinates[2]);
        hostile.clone_into(&mut cell.command);
        cell.runs[0].outcome = Outcome::Failed(hostile.to_owned());
        cell.runs[0].flows[0].completion = None;
        if let Some(published) = cell.published.first_mut() {
            hostile.clone_into(&mut published.source);
            published.verdict = Some(hostile.to_owned());
        }
    }
    experiment.metrics.push(hostile.to_owned());
    let page = page(&[experiment]);
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert"));
    assert_sound(&page);
}
