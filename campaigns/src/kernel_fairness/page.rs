//! The figures as tables.

use std::collections::BTreeSet;
use std::fmt::Write;

use posthaste_report::markdown::head;

use super::cells::Cell;
use super::run::Conditions;
use super::summary::{Summary, bounds};
use crate::Result;
use crate::median;

/// What is said above the figures.
#[derive(Debug)]
pub(super) struct About<'a> {
    /// The command that wrote the page.
    pub(super) command: &'a str,
    pub(super) conditions: &'a Conditions,
    /// When and with what the runs were made.
    pub(super) origins: &'a str,
}

/// One row a cell.
pub(super) fn table(summaries: &[Summary]) -> String {
    let mut text = head(&[
        "profile",
        "next to",
        "rate, Mbit/s",
        "queue, BDP",
        "profile, Mbit/s",
        "a kernel flow, Mbit/s",
        "next to CUBIC instead",
        "share",
        "Jain",
        "harm",
        "runs",
        "lateness, p99",
    ]);
    for summary in summaries {
        let Summary { cell, contender, kernel, kernel_alone, share, shares, jain, harm, runs, lateness } =
            summary;
        let spread = if *runs > 1 { format!(" ({:.2} to {:.2})", shares.0, shares.1) } else { String::new() };
        let _ = writeln!(
            text,
            "| {} | {} x {} | {} | {} | {:.2} | {:.2} | {:.2} | {share:.2}{spread} | {jain:.3} | {:+.0} % | {runs} | {:.2} ms |",
            cell.contender,
            cell.flows,
            cell.rival.name(),
            cell.megabits,
            cell.buffer,
            contender / 1e6,
            kernel / 1e6,
            kernel_alone / 1e6,
            harm * 100.0,
            lateness * 1e3,
        );
    }
    text.truncate(text.trim_end().len());
    text
}

/// One row for each profile, controller and number of flows.
fn overview(summaries: &[Summary]) -> String {
    let mut text = head(&[
        "profile",
        "next to",
        "share, median of cells (least to greatest run)",
        "Jain, least",
        "harm, median (greatest)",
        "cells",
        "runs",
    ]);
    let groups: BTreeSet<_> = summaries
        .iter()
        .map(|summary| (summary.cell.contender.clone(), summary.cell.rival, summary.cell.flows))
        .collect();
    for (contender, rival, flows) in groups {
        let members: Vec<&Summary> = summaries
            .iter()
            .filter(|summary| {
                let cell = &summary.cell;
                cell.contender == contender && cell.rival == rival && cell.flows == flows
            })
            .collect();
        let figures = |figure: fn(&Summary) -> f64| members.iter().map(move |summary| figure(summary));
        let (share, harm) = (figures(|summary| summary.share), figures(|summary| summary.harm));
        let (least, greatest) =
            bounds(members.iter().flat_map(|summary| [summary.shares.0, summary.shares.1]));
        let _ = writeln!(
            text,
            "| {contender} | {flows} x {} | {:.2} ({least:.2} to {greatest:.2}) | {:.3} | {:+.0} % ({:+.0} %) | {} | {} |",
            rival.name(),
            median(share),
            figures(|summary| summary.jain).fold(f64::INFINITY, f64::min),
            median(harm.clone()) * 100.0,
            harm.fold(f64::NEG_INFINITY, f64::max) * 100.0,
            members.len(),
            members.iter().map(|summary| summary.runs).sum::<usize>(),
        );
    }
    text.truncate(text.trim_end().len());
    text
}

/// How far figures of cells can be trusted.
fn scatter(summaries: &[Summary], seconds: f64) -> String {
    let (fewest, most) = bounds(
        summaries.iter().map(|summary| summary.runs as f64).chain(summaries.is_empty().then_some(1.0)),
    );
    if most <= 1.0 {
        return format!(
            "A cell is one run, and one run of {seconds} s scatters: the same cell, run again, comes out otherwise. `--repeats` makes \
             more of them and shows how far apart they are."
        );
    }
    let runs = if fewest < most { format!("{fewest} to {most}") } else { fewest.to_string() };
    format!(
        "A cell is {runs} runs of {seconds} s: figures are their medians; behind the share stand the least and the greatest of a \
         run."
    )
}

/// The cells without figures, as a section of its own.
fn missing(cells: &[&Cell]) -> String {
    if cells.is_empty() {
        return String::new();
    }
    let mut text =
        "\n\n## Not measured\nEvery run of these cells, or of their baselines, was void:".to_owned();
    for cell in cells {
        let _ = write!(text, "\n- {cell}");
    }
    text
}

/// The whole page.
pub(super) fn page(summaries: &[Summary], about: &About<'_>, not_measured: &[&Cell]) -> Result<String> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let version = kernel.split('-').next().unwrap_or_default().trim();
    let About { command, conditions, origins } = about;
    let Conditions { rtt, warm_up, seconds } = conditions;
    let (overview, table) = (overview(summaries), table(summaries));
    let (scatter, missing) = (scatter(summaries, *seconds), missing(not_measured));
    Ok(format!(
        "# Posthaste next to the kernel's TCP\n\
         <!-- Written by `{command}`; do not edit. -->\n\
         One download by `posthaste get` from `posthaste serve` shares a bottleneck (`posthaste emulate`, drop-tail, {rtt} ms \
         there and back)\nwith downloads by the kernel's TCP (Linux {version}). All begin at once; {seconds} s are counted \
         after {warm_up} s, as programs read them.\n{origins}\n{scatter}\n\n\
         - **share**: the profile's part of all goodput, as a multiple of its fair part: 1 is fair, above it takes more.\n\
         - **Jain**: the index over all flows; 1 if all are equal.\n\
         - **harm**: what a kernel flow loses, as part of what it has next to one more kernel CUBIC flow in the profile's \
         place; below zero it gains.\n\
         - **lateness**: of the emulator's packets, in the worst run of the cell or its baseline. Runs beyond 1 ms, or with \
         packets dropped outside the\n  model, are void and made again.\n\n\
         Published as found: no run that was valid is left out.\n\n\
         ## In short\n{overview}\n\n## Cell by cell\n{table}{missing}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::cells::{Cell, Contender, Rival};
    use super::*;

    #[test]
    fn the_page_has_a_row_for_each_cell_and_each_group() {
        let cell = |megabits| Cell {
            contender: Contender::Profile("standard".to_owned()),
            rival: Rival::Bbr,
            flows: 4,
            megabits,
            buffer: 0.25,
        };
        let summary = |megabits, share, runs| Summary {
            cell: cell(megabits),
            runs,
            contender: 2e6,
            kernel: 1.5e6,
            kernel_alone: 1.25e6,
            share,
            shares: (share - 0.125, share + 0.25),
            jain: 0.9,
            harm: -0.2,
            lateness: 2e-4,
        };
        let conditions = Conditions { rtt: 40.0, warm_up: 5.0, seconds: 20.0 };
        let about = About { command: "the command", conditions: &conditions, origins: "Measured one day." };
        let text = page(&[summary(10.0, 0.5, 3), summary(100.0, 1.5, 2)], &about, &[]).unwrap();
        assert!(
            text.contains("Written by `the command`") && text.contains("read them.\nMeasured one day.\n"),
            "{text}"
        );
        let row = "| standard | 4 x bbr | 10 | 0.25 | 2.00 | 1.50 | 1.25 | 0.50 (0.38 to 0.75) | 0.900 | -20 % | 3 | 0.20 ms |";
        assert!(text.contains(row), "{text}");
        let group = "| standard | 4 x bbr | 1.00 (0.38 to 1.75) | 0.900 | -20 % (-20 %) | 2 | 5 |";
        assert!(text.contains(group), "{text}");
        assert!(text.contains("A cell is 2 to 3 runs of 20 s") && !text.contains("scatters"), "{text}");
        assert!(!text.contains("Not measured"), "{text}");

        let gone = [cell(30.0), Cell { flows: 1, ..cell(30.0) }];
        let text = page(&[summary(10.0, 0.5, 1)], &about, &gone.iter().collect::<Vec<_>>()).unwrap();
        assert!(text.contains("one run of 20 s scatters") && text.contains("| 0.50 | 0.900 |"), "{text}");
        let missing = "\n## Not measured\nEvery run of these cells, or of their baselines, was void:\n\
                       - standard, 4 x bbr, 30 Mbit/s, 0.25 BDP\n- standard, 1 x bbr, 30 Mbit/s, 0.25 BDP\n";
        assert!(text.ends_with(missing), "{text}");
        assert!(page(&[], &about, &gone.iter().collect::<Vec<_>>()).is_ok(), "nothing at all");
    }
}
