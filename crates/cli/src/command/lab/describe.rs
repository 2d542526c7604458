//! `posthaste lab describe`.

use std::fmt::Write as _;

use posthaste_lab::experiment::{Experiment, PublishedRow};
use posthaste_units::ByteCount;

use super::cells_argument;
use crate::printer::shell_quote;

/// All about an experiment, for people.
pub(super) fn text(experiment: &Experiment) -> String {
    let mut text = format!("\x1b[1m{}\x1b[0m  {}\n", experiment.name, experiment.title);
    // Writing to a text cannot fail.
    let mut field = |label: &str, value: &str| {
        let _ = writeln!(text, "  {label:10} {value}");
    };
    field("question", &experiment.question);
    field("source", &experiment.source);
    if let Some(note) = &experiment.note {
        field("note", note);
    }
    field("metrics", &experiment.metrics.join(", "));
    let (cells, seeds) = (experiment.cells.len() as u64, experiment.seeds);
    field(
        "size",
        &format!("{cells} cells x {seeds} seeds = {} runs{}", cells * seeds, transferred(experiment)),
    );
    text.push_str("\n\x1b[1mgrid\x1b[0m\n");
    for axis in &experiment.axes {
        let _ = writeln!(text, "  {:10} {}", axis.name, axis.values.join(", "));
    }
    let product: usize = experiment.axes.iter().map(|axis| axis.values.len()).product();
    if product > experiment.cells.len() {
        let _ = writeln!(text, "  {} of the {product} cells are skipped", product - experiment.cells.len());
    }
    published(&experiment.published, &mut text);
    commands(experiment, &mut text);
    text
}

/// What the flows that a run waits for read, all runs together.
fn transferred(experiment: &Experiment) -> String {
    let flows = experiment.cells.iter().flat_map(|cell| &cell.spec.flows).filter(|flow| !flow.background);
    let bytes =
        flows.map(|flow| flow.workload.body_bytes().unwrap_or(0).saturating_mul(u64::from(flow.count)));
    let bytes = bytes.fold(0, u64::saturating_add).saturating_mul(experiment.seeds);
    if bytes == 0 { String::new() } else { format!(", about {} read in all", ByteCount::new(bytes)) }
}

fn published(rows: &[PublishedRow], text: &mut String) {
    if rows.is_empty() {
        return;
    }
    text.push_str("\n\x1b[1mpublished\x1b[0m\n");
    for row in rows {
        let columns: Vec<String> =
            row.columns.iter().map(|(heading, value)| format!("{heading} {value}")).collect();
        let _ = writeln!(text, "  {} row {}: {}", row.file, row.row, columns.join(", "));
        for figure in &row.figures {
            let cells =
                if figure.cells == 1 { "1 cell".to_owned() } else { format!("{} cells", figure.cells) };
            let _ = writeln!(text, "    compared with {} in {cells}", figure.metric);
        }
        if row.figures.is_empty() {
            text.push_str("    shown here only: no figure of one of these cells\n");
        }
    }
}

fn commands(experiment: &Experiment, text: &mut String) {
    let name = shell_quote(&experiment.name);
    let page = std::path::Path::new(&experiment.name).with_extension("html");
    let page = shell_quote(&page.file_name().unwrap_or_default().to_string_lossy());
    text.push_str("\n\x1b[1mcommands\x1b[0m\n");
    let _ = writeln!(text, "  posthaste lab run {name}");
    let _ = writeln!(text, "  posthaste lab run {name} --seeds 3 --html {page}");
    if let Some(cell) = experiment.cells.first() {
        let cells = cells_argument(experiment, cell);
        let _ = writeln!(text, "  posthaste lab run {name}{cells} --series 10ms --html {page}");
    }
}
