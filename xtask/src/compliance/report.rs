//! Counting and printing.

use std::fmt::Write as _;

use serde::Serialize;

use super::Entry;
use super::requirement::Level;
use crate::Result;

/// How the MUSTs of one section, one RFC, or all of them stand.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) total: usize,
    /// Cited outside of tests.
    pub(super) implemented: usize,
    /// Cited in tests.
    pub(super) tested: usize,
    pub(super) excepted: usize,
    /// Neither implemented nor excepted.
    pub(super) missing: usize,
}

impl Counts {
    fn add(&mut self, entry: &Entry) {
        let count = |when: bool| usize::from(when);
        self.total += 1;
        self.implemented += count(!entry.implemented.is_empty());
        self.tested += count(!entry.tested.is_empty());
        self.excepted += count(entry.requirement.except.is_some());
        self.missing += count(!entry.is_cited());
    }

    fn row(&self, name: &str) -> String {
        let Self { total, implemented, tested, excepted, missing } = self;
        format!("{name:<18}{total:>7}{implemented:>13}{tested:>8}{excepted:>10}{missing:>9}\n")
    }
}

/// The counts of one RFC.
#[derive(Debug, Serialize)]
struct OfRfc {
    rfc: String,
    all: Counts,
    /// By top-level section, in the order of the list.
    sections: Vec<(String, Counts)>,
}

/// The counts of all RFCs.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    rfcs: Vec<OfRfc>,
    all: Counts,
    shoulds: Counts,
}

impl Report {
    pub(super) fn new(entries: &[Entry]) -> Self {
        let mut report = Self { rfcs: Vec::new(), all: Counts::default(), shoulds: Counts::default() };
        for entry in entries {
            if entry.requirement.level == Level::Should {
                report.shoulds.add(entry);
                continue;
            }
            report.all.add(entry);
            if report.rfcs.last().is_none_or(|last| last.rfc != entry.rfc) {
                let rfc = entry.rfc.clone();
                report.rfcs.push(OfRfc { rfc, all: Counts::default(), sections: Vec::new() });
            }
            let Some(of_rfc) = report.rfcs.last_mut() else { continue };
            of_rfc.all.add(entry);
            let group = entry.requirement.group();
            if of_rfc.sections.last().is_none_or(|(last, _)| last != group) {
                of_rfc.sections.push((group.to_owned(), Counts::default()));
            }
            if let Some((_, counts)) = of_rfc.sections.last_mut() {
                counts.add(entry);
            }
        }
        report
    }

    /// Share of the MUSTs that are cited as implemented, or excepted.
    pub(super) fn cited_percent(&self) -> f64 {
        percent(self.all.total - self.all.missing, self.all.total)
    }

    /// Share of the MUSTs that are not excepted which a test cites.
    pub(super) fn tested_percent(&self) -> f64 {
        percent(self.all.tested, self.all.total - self.all.excepted)
    }

    /// The table for people.
    pub(super) fn table(&self) -> String {
        let head = format!(
            "{:<18}{:>7}{:>13}{:>8}{:>10}{:>9}\n",
            "MUSTs of", "total", "implemented", "tested", "excepted", "missing"
        );
        let mut table = head;
        for OfRfc { rfc, all, sections } in &self.rfcs {
            table.push_str(&all.row(rfc));
            for (section, counts) in sections {
                table.push_str(&counts.row(&format!("  section {section}")));
            }
        }
        table.push_str(&self.all.row("all"));
        table.push_str(&self.shoulds.row("SHOULDs listed"));
        let (cited, tested) = (self.cited_percent(), self.tested_percent());
        let _ = writeln!(
            table,
            "{cited:.1} % of the MUSTs are cited or excepted; {tested:.1} % of those not excepted are cited by tests"
        );
        table
    }

    /// The counts and every requirement, as JSON.
    pub(super) fn json(&self, entries: &[Entry]) -> Result<String> {
        let requirements: Vec<_> = entries.iter().map(Row::from).collect();
        let whole = Whole {
            cited_percent: self.cited_percent(),
            tested_percent: self.tested_percent(),
            counts: self,
            requirements,
        };
        Ok(serde_json::to_string_pretty(&whole)?)
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    cited_percent: f64,
    tested_percent: f64,
    counts: &'a Report,
    requirements: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    rfc: &'a str,
    id: &'a str,
    level: Level,
    text: &'a str,
    except: Option<&'a str>,
    implemented: &'a [String],
    tested: &'a [String],
}

impl<'a> From<&'a Entry> for Row<'a> {
    fn from(entry: &'a Entry) -> Self {
        Self {
            rfc: &entry.rfc,
            id: &entry.requirement.id,
            level: entry.requirement.level,
            text: &entry.requirement.text,
            except: entry.requirement.except.as_deref(),
            implemented: &entry.implemented,
            tested: &entry.tested,
        }
    }
}

/// The requirements for which `is_listed` holds, one a line.
pub(super) fn listing(entries: &[Entry], what: &str, is_listed: impl Fn(&Entry) -> bool) -> String {
    let mut lines = format!("\n{what}:\n");
    for entry in entries.iter().filter(|entry| is_listed(entry)) {
        let _ = writeln!(lines, "{} {}: {}", entry.rfc, entry.requirement.id, entry.requirement.text);
    }
    lines
}

/// 100 for a share of nothing.
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 }
}
