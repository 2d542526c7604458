//! A file of rules as it is written; `mod.rs` says what each key means.

use std::collections::BTreeMap;

use posthaste_units::Rate;
use serde::Deserialize;
use toml::Spanned;

use crate::experiment::file::{Column, OneOrMany};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleSetFile {
    pub(super) scheme: String,
    pub(super) source: String,
    pub(super) file: Spanned<String>,
    #[serde(default)]
    pub(super) note: Option<String>,
    #[serde(default)]
    pub(super) axes: BTreeMap<String, Column>,
    #[serde(default)]
    pub(super) experiments: BTreeMap<Spanned<String>, Budget>,
    pub(super) rule: Vec<Spanned<RuleFile>>,
    #[serde(default)]
    pub(super) remark: Vec<Spanned<RemarkFile>>,
}

/// How often an experiment's cells are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Budget {
    pub(super) seeds: u64,
    #[serde(default = "quick")]
    pub(super) quick: u64,
}

/// The short form shows that all can be judged, no more.
pub(super) fn quick() -> u64 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RuleFile {
    #[serde(default)]
    pub(super) choose: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    pub(super) experiment: Option<String>,
    #[serde(default)]
    pub(super) axes: BTreeMap<String, Column>,
    #[serde(default)]
    pub(super) at: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    pub(super) baseline: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) figure: Vec<FigureFile>,
    #[serde(default)]
    pub(super) cannot_hold: Option<String>,
    #[serde(default)]
    pub(super) not_measured: Option<String>,
    #[serde(default)]
    pub(super) not_reproduced: Option<String>,
    #[serde(default)]
    pub(super) repeats: Option<String>,
    #[serde(default)]
    pub(super) fitted: Option<String>,
    #[serde(default)]
    pub(super) reading: Option<String>,
    #[serde(default)]
    pub(super) varied: Option<String>,
    #[serde(default)]
    pub(super) to_be_known: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(clippy::struct_excessive_bools, reason = "keys of a file, each by itself")]
pub(super) struct FigureFile {
    #[serde(default)]
    pub(super) name: Option<String>,
    pub(super) judge: Judge,
    pub(super) measure: String,
    #[serde(default = "value")]
    pub(super) column: String,
    #[serde(default)]
    pub(super) part: Option<usize>,
    #[serde(default)]
    pub(super) unit: Option<String>,
    #[serde(default)]
    pub(super) at_least: bool,
    #[serde(default)]
    pub(super) is_shown: bool,
    #[serde(default)]
    pub(super) at: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    pub(super) baseline: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub(super) against_row: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub(super) against_column: Option<String>,
    #[serde(default)]
    pub(super) over: Option<Over>,
    #[serde(default)]
    pub(super) along: Option<String>,
    #[serde(default)]
    pub(super) flow: usize,
    #[serde(default)]
    pub(super) share_of: Option<Rate>,
    #[serde(default)]
    pub(super) times_rtt: bool,
    #[serde(default)]
    pub(super) over_rtt: bool,
    #[serde(default)]
    pub(super) plus: f64,
    #[serde(default)]
    pub(super) divide_by: Option<f64>,
    #[serde(default)]
    pub(super) floor: Option<Bound>,
    #[serde(default)]
    pub(super) ceiling: Option<Bound>,
    #[serde(default)]
    pub(super) claims: Vec<ClaimFile>,
}

fn value() -> String {
    "value".to_owned()
}

/// How ours and the published figure are set beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Judge {
    Value,
    Effect,
    Reduction,
    Gain,
    Speedup,
    Ratio,
    Slope,
    RSquared,
    Claims,
    Shown,
}

/// How several cells make one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Over {
    Mean,
    Least,
    Greatest,
}

/// What no sender can be below, or above, in the printed unit.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bound {
    pub(super) value: f64,
    pub(super) because: String,
}

/// A comparison of two cells that a row makes in words.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimFile {
    pub(super) says: String,
    #[serde(default)]
    pub(super) measure: Option<String>,
    #[serde(default)]
    pub(super) here: BTreeMap<String, String>,
    pub(super) than: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) from: Option<f64>,
    #[serde(default)]
    pub(super) to: Option<f64>,
}

/// `[[remark]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemarkFile {
    pub(super) choose: BTreeMap<String, OneOrMany>,
    pub(super) text: String,
}
