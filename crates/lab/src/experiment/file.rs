//! An experiment file as it is written.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::error::Fault;
use super::traces::{self, Traces};
use super::{MAX_SEEDS, check, grid, span};
use crate::spec::RunSpec;

/// The file, its parts not yet put together.
#[derive(Debug)]
pub(super) struct File {
    pub(super) title: String,
    pub(super) question: String,
    pub(super) source: String,
    pub(super) note: Option<String>,
    pub(super) baseline: Option<Spanned<String>>,
    pub(super) subject: Option<Spanned<String>>,
    pub(super) seeds: u64,
    pub(super) metrics: Vec<String>,
    pub(super) published: Vec<Spanned<PublishedFile>>,
    /// `[run]`, valid as it stands.
    pub(super) run: toml::Table,
    pub(super) axes: Vec<Spanned<AxisFile>>,
    pub(super) skips: Vec<Spanned<BTreeMap<String, OneOrMany>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    title: Spanned<String>,
    question: String,
    source: String,
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    baseline: Option<Spanned<String>>,
    #[serde(default)]
    subject: Option<Spanned<String>>,
    #[serde(default)]
    seeds: Option<Spanned<u64>>,
    metrics: Spanned<Vec<Spanned<String>>>,
    run: Spanned<toml::Table>,
    #[serde(default)]
    axis: Vec<Spanned<AxisFile>>,
    #[serde(default)]
    skip: Vec<Spanned<BTreeMap<String, OneOrMany>>>,
    #[serde(default)]
    published: Vec<Spanned<PublishedFile>>,
}

/// `[run]` read where it stands, for its errors' sake.
#[derive(Deserialize)]
struct RunOnly {
    run: RunSpec,
}

/// `[[axis]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisFile {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) key: Option<Spanned<OneOrMany>>,
    pub(super) values: Vec<Spanned<toml::Value>>,
}

/// A text or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of texts")]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn all(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// `[[published]]`; see the module `published`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedFile {
    pub(super) file: String,
    #[serde(default)]
    pub(super) rows: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    pub(super) axes: BTreeMap<String, Column>,
    #[serde(default)]
    pub(super) at: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    pub(super) metric: Option<String>,
    #[serde(default)]
    pub(super) value: Option<String>,
    #[serde(default)]
    pub(super) unit: Option<String>,
    #[serde(default)]
    pub(super) note: Option<String>,
    #[serde(default)]
    pub(super) verdict: Option<String>,
}

/// Which column gives an axis's value, and how its texts are called on the axis.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a column's name, or { column = \"...\", labels = { text = \"label\" } }"
)]
pub(crate) enum Column {
    Name(String),
    Labelled { column: String, labels: BTreeMap<String, OneOrMany> },
}

/// The text of a file, unless it is larger than `bound` bytes.
pub(super) fn read_bounded(path: &Path, bound: u64) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    file.take(bound + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > bound {
        return Err(format!("it is larger than {bound} bytes"));
    }
    Ok(text)
}

/// The description of a single run, whose text is that of an experiment's `[run]` with its heading.
pub(super) fn parse_run(text: &str, traces: &Traces<'_>) -> Result<RunSpec, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Alone {
        run: Spanned<toml::Table>,
    }
    let Alone { run } = from_toml(text)?;
    read_template(text, &run, traces)
}

/// `[run]` as it stands, checked.
fn read_template(text: &str, run: &Spanned<toml::Table>, traces: &Traces<'_>) -> Result<RunSpec, Fault> {
    let template = if traces::has_files(&run.get_ref().clone().into()) {
        // Where traces are read first, the places of faults are lost and found again by what messages quote.
        grid::read_run(run.get_ref().clone(), traces)
    } else {
        from_toml(text).map(|RunOnly { run }| Ok(run))?
    };
    template
        .and_then(|template| check::runnable(&template).map(|()| template))
        .map_err(|message| Fault::at(span::pinpoint(text, run.span(), &message), message))
}

/// Reads the file and checks `[run]` as it stands.
pub(super) fn parse(text: &str, traces: &Traces<'_>) -> Result<File, Fault> {
    let raw: Raw = from_toml(text)?;
    read_template(text, &raw.run, traces)?;
    if raw.title.get_ref().trim().is_empty() || raw.title.get_ref().contains('\n') {
        return Err(Fault::at(raw.title.span(), "the title must be one line"));
    }
    let seeds = match &raw.seeds {
        None => 1,
        Some(seeds) if (1..=MAX_SEEDS).contains(seeds.get_ref()) => *seeds.get_ref(),
        Some(seeds) => {
            let message = format!("seeds = {}: from 1 to {MAX_SEEDS} are possible", seeds.get_ref());
            return Err(Fault::at(seeds.span(), message));
        }
    };
    if raw.metrics.get_ref().is_empty() {
        let message = format!("metrics is empty: name at least one of {}", check::metric_names());
        return Err(Fault::at(raw.metrics.span(), message));
    }
    for metric in raw.metrics.get_ref() {
        check::metric(metric.get_ref()).map_err(|message| Fault::at(metric.span(), message))?;
    }
    Ok(File {
        title: raw.title.into_inner(),
        question: raw.question,
        source: raw.source,
        note: raw.note,
        baseline: raw.baseline,
        subject: raw.subject,
        seeds,
        metrics: raw.metrics.into_inner().into_iter().map(Spanned::into_inner).collect(),
        published: raw.published,
        run: raw.run.into_inner(),
        axes: raw.axis,
        skips: raw.skip,
    })
}

/// Reads a text; faults have their place.
pub(crate) fn from_toml<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Fault> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let message = error.message().to_owned();
        Fault { span: error.span().map(|span| span::pinpoint(text, span, &message)), message }
    })
}
