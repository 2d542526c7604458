//! Which demands of the RFCs the code cites: `cargo xtask compliance`.
//!
//! The demands are listed in `specs/`, the citations are comments (`// spec: rfc9000 4.1 slug`). A citation says that
//! somebody has read both and found them to agree; the tool keeps the two from drifting apart: a citation of what is
//! not listed is an error, and so is an exception for what the code cites.

mod citation;
mod report;
mod requirement;

use std::path::{Path, PathBuf};

use crate::Result;
use crate::workspace::root;
use citation::{Citation, Kind};
use report::Report;
use requirement::{List, Requirement};

/// The folder of the lists, relative to the root.
const LISTS: &str = "specs";

/// Folders whose Rust files are searched for citations, relative to the root.
const SEARCHED: [&str; 2] = ["crates", "interop/peers"];

/// Share of the MUSTs of all lists together, in percent, that must be cited as implemented or be excepted.
const LEAST_CITED: f64 = 95.0;

/// Share of the MUSTs that are not excepted, in percent, that tests must cite.
const LEAST_TESTED: f64 = 90.0;

/// `cargo xtask compliance`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// List the requirements that are neither cited as implemented nor excepted
    #[arg(long)]
    missing: bool,
    /// List the requirements that no test cites
    #[arg(long)]
    untested: bool,
    /// Print everything as JSON instead: each requirement with the places that cite it
    #[arg(long, conflicts_with_all = ["missing", "untested"])]
    json: bool,
}

/// One requirement and where it is cited.
#[derive(Debug)]
struct Entry {
    rfc: String,
    requirement: Requirement,
    implemented: Vec<String>,
    tested: Vec<String>,
}

impl Entry {
    fn is_cited(&self) -> bool {
        !self.implemented.is_empty() || self.requirement.except.is_some()
    }
}

/// Prints where the requirements stand. False if too few are cited or tested.
///
/// # Errors
/// A malformed list, a citation of an unknown requirement, or an exception for a requirement that is cited: all of them
/// are told at once.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let lists = read_lists(&root())?;
    let citations = citation::find(&root(), &SEARCHED)?;
    let entries = matched(lists, citations)?;
    let report = Report::new(&entries);
    if arguments.json {
        println!("{}", report.json(&entries)?);
    } else {
        print!("{}", report.table());
        if arguments.missing {
            print!("{}", report::listing(&entries, "missing", |entry| !entry.is_cited()));
        }
        if arguments.untested {
            let is_untested = |entry: &Entry| entry.requirement.except.is_none() && entry.tested.is_empty();
            print!("{}", report::listing(&entries, "untested", is_untested));
        }
    }
    let (cited, tested) = (report.cited_percent(), report.tested_percent());
    if cited < LEAST_CITED {
        eprintln!("{cited:.1} % are cited, {LEAST_CITED} % must be: `--missing` lists what is missing");
    }
    if tested < LEAST_TESTED {
        eprintln!("{tested:.1} % are tested, {LEAST_TESTED} % must be: `--untested` lists the others");
    }
    Ok(cited >= LEAST_CITED && tested >= LEAST_TESTED)
}

/// The lists of all RFCs, by their names.
fn read_lists(root: &Path) -> Result<Vec<List>> {
    let files = std::fs::read_dir(root.join(LISTS))?.map(|entry| Ok(entry?.path()));
    let mut paths = files.collect::<Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let read = |path: PathBuf| {
        let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|error| fault(&error))?;
        requirement::parse(&text).map_err(|error| fault(&error).into())
    };
    paths.into_iter().map(read).collect()
}

/// Gives each citation to its requirement.
fn matched(lists: Vec<List>, citations: Vec<Citation>) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = lists
        .into_iter()
        .flat_map(|list| {
            let List { rfc, requirements } = list;
            requirements.into_iter().map(move |requirement| Entry {
                rfc: rfc.clone(),
                requirement,
                implemented: Vec::new(),
                tested: Vec::new(),
            })
        })
        .collect();
    let mut faults = Vec::new();
    for citation in citations {
        let Citation { rfc, id, place, kind } = citation;
        let found = entries.iter_mut().find(|entry| entry.rfc == rfc && entry.requirement.id == id);
        let Some(entry) = found else {
            faults.push(format!("{place}: `{rfc} {id}` is not in the lists in specs/"));
            continue;
        };
        match kind {
            Kind::Implemented => entry.implemented.push(place),
            Kind::Tested => entry.tested.push(place),
        }
    }
    for entry in &entries {
        if let (Some(_), [place, ..]) = (&entry.requirement.except, entry.implemented.as_slice()) {
            let (rfc, id) = (&entry.rfc, &entry.requirement.id);
            faults.push(format!(
                "{place}: `{rfc} {id}` is cited here and excepted in specs/{rfc}.toml: drop one"
            ));
        }
    }
    if faults.is_empty() { Ok(entries) } else { Err(faults.join("\n").into()) }
}

#[cfg(test)]
mod tests;
