//! Reads a profile's TOML: which policy each seam has, with which parameters.

use posthaste_policy::Seam;
use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::Choice;
use crate::registry;

/// Where a text is not a profile, and why.
pub(super) struct Fault {
    /// The offset in the text, where the fault is at one place.
    pub(super) at: Option<usize>,
    /// What is wrong, and what would be right.
    pub(super) message: String,
}

impl Fault {
    fn at(at: usize, message: impl Into<String>) -> Self {
        Self { at: Some(at), message: message.into() }
    }
}

impl From<toml::de::Error> for Fault {
    fn from(error: toml::de::Error) -> Self {
        Self { at: error.span().map(|span| span.start), message: error.message().trim().to_owned() }
    }
}

/// A policy's parameters that are no defaults of its own.
type Values = &'static [(&'static str, &'static str)];

/// The policies of the default profile.
const DEFAULTS: [(Seam, &str, Values); 9] = [
    (Seam::Start, "initial", &[]),
    (Seam::SlowStart, "hystart_pp", &[]),
    (Seam::Congestion, "cubic", &[]),
    (Seam::Silence, "collapse", &[]),
    // The connection has 1.5 times a stream's window: with less, two streams that share it stall each other.
    (Seam::StreamCredit, "autotune", &[("initial", "1 MiB"), ("maximum", "16 MiB")]),
    (Seam::ConnectionCredit, "autotune", &[("initial", "1536 KiB"), ("maximum", "24 MiB")]),
    (Seam::Ack, "standard", &[]),
    (Seam::Repair, "none", &[]),
    (Seam::Group, "plain", &[]),
];

/// The keys of a profile, for messages.
const KEYS: &str =
    "`description`, `start`, `slow_start`, `congestion`, `silence`, `credit`, `ack`, `repair`, `group`";

/// What the default profile has for a seam.
#[expect(clippy::expect_used, reason = "a constant; tests build all of it")]
pub(super) fn default_choice(seam: Seam) -> Choice {
    let (_, name, values) = DEFAULTS.iter().find(|(known, ..)| *known == seam).expect("each seam is there");
    let entry = registry::find(seam, name).expect("a policy of the registry");
    let value = |(key, value): &(&str, &str)| ((*key).to_owned(), toml::Value::from(*value));
    Choice { seam, entry, values: values.iter().map(value).collect() }
}

/// A description, and one choice for each seam.
pub(super) fn read(text: &str) -> Result<(String, Vec<Choice>), Fault> {
    let mut description = String::new();
    let mut choices: Vec<Choice> = DEFAULTS.iter().map(|(seam, ..)| default_choice(*seam)).collect();
    let mut choose = |choice: Choice| {
        if let Some(place) = choices.iter_mut().find(|known| known.seam == choice.seam) {
            *place = choice;
        }
    };
    for (key, value) in DeTable::parse(text)?.into_inner() {
        let at = key.span().start;
        match key.get_ref().as_ref() {
            "description" => {
                let text = value.get_ref().as_str().map(str::to_owned);
                description = text.ok_or_else(|| Fault::at(value.span().start, "`description` is a text"))?;
            }
            "credit" => read_credit(at, value, &mut choose)?,
            name => {
                let seam = DEFAULTS.iter().map(|(seam, ..)| *seam).find(|seam| seam.name() == name);
                let seam = seam.ok_or_else(|| {
                    Fault::at(at, format!("unknown field `{name}`, expected one of {KEYS}"))
                })?;
                choose(read_choice(seam, at, value)?);
            }
        }
    }
    Ok((description, choices))
}

/// The two tables of the seam `credit`.
fn read_credit(at: usize, value: Spanned<DeValue<'_>>, choose: &mut impl FnMut(Choice)) -> Result<(), Fault> {
    for (key, value) in table(at, "credit", value)? {
        let at = key.span().start;
        let seam = match key.get_ref().as_ref() {
            "stream" => Seam::StreamCredit,
            "connection" => Seam::ConnectionCredit,
            other => {
                let message = format!("unknown field `{other}`, expected `stream` or `connection`");
                return Err(Fault::at(at, message));
            }
        };
        choose(read_choice(seam, at, value)?);
    }
    Ok(())
}

/// One seam's table: a policy's name, which holds its parameters.
fn read_choice(seam: Seam, at: usize, value: Spanned<DeValue<'_>>) -> Result<Choice, Fault> {
    let policies = table(at, seam.name(), value)?;
    let valid = || format!("one policy of {}", registry::names(seam));
    let mut policies = policies.into_iter();
    let Some((key, value)) = policies.next() else {
        return Err(Fault::at(at, format!("`{}` names no policy: expected {}", seam.name(), valid())));
    };
    if let Some((second, _)) = policies.next() {
        let at = second.span().start.max(key.span().start);
        return Err(Fault::at(at, format!("`{}` has two policies: expected {}", seam.name(), valid())));
    }
    let (at, name) = (key.span().start, key.get_ref().as_ref());
    let entry = registry::find(seam, name).ok_or_else(|| {
        Fault::at(at, format!("unknown policy `{name}` for `{}`, expected {}", seam.name(), valid()))
    })?;
    // Faults of values are found where they stand, with the line; a table that lacks a value is at its name.
    entry.read(value.clone()).map_err(|error| {
        let fault = Fault::from(error);
        Fault { at: fault.at.or(Some(at)), ..fault }
    })?;
    Ok(Choice { seam, entry, values: toml::Table::deserialize(ValueDeserializer::from(value))? })
}

/// The table that stands for `name`.
fn table<'i>(at: usize, name: &str, value: Spanned<DeValue<'i>>) -> Result<DeTable<'i>, Fault> {
    match value.into_inner() {
        DeValue::Table(table) => Ok(table),
        other => Err(Fault::at(at, format!("`{name}` is a table, not a {}", other.type_str()))),
    }
}
