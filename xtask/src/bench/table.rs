//! Tables of results, for a terminal and for a page.

use std::fmt::Write as _;

use crate::median;

/// A heading, titles and rows of as many cells.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) heading: String,
    pub(super) titles: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    /// With its columns side by side.
    pub(super) fn plain(&self) -> String {
        let mut widths = vec![0; self.titles.len()];
        for row in std::iter::once(&self.titles).chain(&self.rows) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.len().max(*width);
            }
        }
        let mut text = format!("\n{}\n", self.heading);
        for row in std::iter::once(&self.titles).chain(&self.rows) {
            for (index, (&width, cell)) in widths.iter().zip(row).enumerate() {
                let _ = if index == 0 {
                    write!(text, "{cell:<width$}")
                } else {
                    write!(text, "  {cell:>width$}")
                };
            }
            text.push('\n');
        }
        text
    }

    /// As Markdown.
    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let marks = "---|".repeat(self.titles.len());
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}:\n\n{}|{marks}\n{rows}\n", self.heading, line(&self.titles))
    }
}

/// The median of `values` with the least and the greatest in brackets, to so many decimals.
pub(super) fn spread(values: &[f64], decimals: usize) -> String {
    let (least, greatest) = values
        .iter()
        .fold((f64::MAX, f64::MIN), |(least, greatest), &value| (value.min(least), value.max(greatest)));
    if values.is_empty() {
        return "-".to_owned();
    }
    format!("{:.decimals$} [{least:.decimals$}-{greatest:.decimals$}]", median(values.iter().copied()))
}

/// The ratio of two medians to two decimals; nothing without either.
pub(super) fn ratio(own: &[f64], base: &[f64]) -> String {
    let (own, base) = (median(own.iter().copied()), median(base.iter().copied()));
    if own > 0.0 && base > 0.0 { format!("{:.2}", own / base) } else { "-".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Table, ratio, spread};

    #[test]
    fn a_table_has_the_same_cells_in_both_forms() {
        let words = |words: [&str; 2]| words.map(str::to_owned).to_vec();
        let table = Table {
            heading: "1 in flight".to_owned(),
            titles: words(["", "us"]),
            rows: vec![words(["quinn", "4.0"]), words(["ours", "3.25"])],
        };
        assert_eq!(table.plain(), "\n1 in flight\n         us\nquinn   4.0\nours   3.25\n");
        assert_eq!(
            table.markdown(),
            "1 in flight:\n\n|  | us |\n|---|---|\n| quinn | 4.0 |\n| ours | 3.25 |\n\n"
        );
    }

    #[test]
    fn cells_are_medians_with_their_spread_and_ratios_of_medians() {
        assert_eq!(spread(&[3.0, 1.0, 2.0], 1), "2.0 [1.0-3.0]");
        assert_eq!(spread(&[], 1), "-");
        assert_eq!(ratio(&[3.0, 1.0, 2.0], &[4.0]), "0.50");
        assert_eq!(ratio(&[3.0], &[]), "-", "a peer that was not chosen is no base");
        assert_eq!(ratio(&[], &[3.0]), "-", "nor has one that failed a ratio");
    }
}
