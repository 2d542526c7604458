//! A profile as a text names it: one policy of the registry for each seam, with parameters.

mod parameter;
mod text;

use std::path::Path;
use std::sync::Arc;

use posthaste_policy::slow_start::OWN;
use posthaste_policy::{Description, PolicyReport, Profile, ProfileReport, Seam};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use crate::entry::{Chosen, Entry, Required};
use crate::{ProfileError, built_in};
pub use parameter::is_file;

/// A profile as a text names it, before it is built.
///
/// A profile's TOML has a `description` and a table for each seam, whose only key names the policy:
///
/// ```toml
/// description = "what it is for"
/// [start.initial]
/// datagrams = 32
/// [slow_start.hystart_pp]
/// [congestion.cubic]
/// beta = 0.7
/// [silence.collapse]
/// [credit.stream.autotune]
/// initial = "1 MiB"
/// maximum = "16 MiB"
/// [credit.connection.autotune]
/// initial = "1536 KiB"
/// maximum = "24 MiB"
/// [ack.standard]
/// max_ack_delay = "25 ms"
/// [repair.none]
/// [group.plain]
/// ```
///
/// A seam that is left out has the policy of the default profile. Parameters may also follow a profile's name:
/// `NAME@key=value[,key=value]`; where two of its policies have a parameter of that name, `seam.key` says which is
/// meant (`cubic@credit.stream.maximum=4MiB`). A definition may lack a parameter that has no default
/// ([`Self::missing`]): it can be described, but not built.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The name, without parameters.
    base: Arc<str>,
    description: Arc<str>,
    /// One for each seam, in the order of [`Seam`].
    choices: Vec<Choice>,
    /// What was set besides the text: key and value, as they were written.
    parameters: Vec<(String, String)>,
}

/// The policy of one seam.
#[derive(Debug, Clone)]
struct Choice {
    seam: Seam,
    entry: &'static Entry,
    values: toml::Table,
}

impl Choice {
    fn read(&self) -> Result<Chosen, Error> {
        let text = toml::to_string(&self.values).unwrap_or_default();
        let table = DeTable::parse(&text)?;
        self.entry.read(Spanned::new(table.span(), DeValue::Table(table.into_inner())))
    }

    /// What the policy says of itself, and whether it leaves slow start unused. What does not parse was refused when
    /// it was set, so the text of the registry stands in for nothing in practice.
    fn describe(&self) -> (Description, bool) {
        self.read().map_or_else(
            |_| (Description::of(self.entry.text), false),
            |chosen| (chosen.description, chosen.has_own_startup),
        )
    }
}

impl Definition {
    /// The built-in profile with this name, parameters included.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`] with the names that there are; [`ProfileError::Parameter`] for a parameter that the
    /// profile does not have, or a value that is out of range.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        let (base, parameters) = parameter::split(name);
        let text = built_in::text(base)
            .ok_or_else(|| ProfileError::Unknown { name: base.to_owned(), valid: built_in::names() })?;
        Self::from_toml(base, text)?.with_all(parameters)
    }

    /// The profile with this name, or in the file with this path ([`is_file`]); parameters included.
    ///
    /// # Errors
    /// As [`Self::named`] and [`Self::from_toml`]; [`ProfileError::File`] if the file cannot be read.
    pub fn find(name: &str) -> Result<Self, ProfileError> {
        if !is_file(name) {
            return Self::named(name);
        }
        let (base, parameters) = parameter::split(name);
        let path = Path::new(base);
        let text = std::fs::read_to_string(path)
            .map_err(|error| ProfileError::File { path: base.to_owned(), message: error.to_string() })?;
        let stem = path.file_stem().map_or(base.into(), |stem| stem.to_string_lossy());
        match Self::from_toml(&stem, &text) {
            // The line is one of this file.
            Err(ProfileError::Invalid { line, message, .. }) => {
                Err(ProfileError::Invalid { name: base.to_owned(), line, message })
            }
            definition => definition?.with_all(parameters),
        }
    }

    /// A profile from its TOML text; `name` is for reports.
    ///
    /// # Errors
    /// [`ProfileError::Invalid`] for a text that is not TOML, for keys and policies that are unknown, for values out
    /// of range and for policies that do not go together; the message lists what is valid.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, ProfileError> {
        let (description, choices) = text::read(text).map_err(|fault| {
            let text::Fault { at, message } = fault;
            let line = at.and_then(|at| text.get(..at)).map(|before| before.matches('\n').count() + 1);
            ProfileError::Invalid { name: name.to_owned(), line, message }
        })?;
        let definition =
            Self { base: name.into(), description: description.into(), choices, parameters: Vec::new() };
        definition.check()?;
        Ok(definition)
    }

    /// Refuses policies that do not go together.
    fn check(&self) -> Result<(), ProfileError> {
        let invalid =
            |message| Err(ProfileError::Invalid { name: self.base.to_string(), line: None, message });
        for Choice { seam, entry, .. } in &self.choices {
            for need in entry.needs {
                let other = self.choices.iter().find(|choice| choice.seam == need.seam);
                if let Some(other) = other
                    && !other.entry.properties.contains(&need.property)
                {
                    return invalid(format!(
                        "{}.{} does not go with {}.{}: {}",
                        seam.name(),
                        entry.name(),
                        other.seam.name(),
                        other.entry.name(),
                        need.reason
                    ));
                }
            }
        }
        // Windows are compared where factories are put together; what is missing is no reason not to look.
        self.assemble().map(drop)
    }

    /// The profile as far as its parameters are known: policies that lack one are those of the default profile.
    fn assemble(&self) -> Result<Profile, ProfileError> {
        let mut builder = Profile::builder(&self.name()).description(&self.description);
        for choice in &self.choices {
            let install = choice.read().ok().and_then(|chosen| chosen.install);
            let stand_in = || text::default_choice(choice.seam).read().ok().and_then(|chosen| chosen.install);
            if let Some(install) = install.or_else(stand_in) {
                builder = install(builder, choice.seam);
            }
        }
        Ok(builder.build()?)
    }

    /// The profile's name, with the parameters that were set besides its text.
    pub fn name(&self) -> String {
        parameter::join(&self.base, &self.parameters)
    }

    /// What the profile is for, in a sentence.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its policies, with their claims and constants.
    pub fn describe(&self) -> ProfileReport {
        let mut has_own_startup = false;
        let mut policies = Vec::new();
        for choice in &self.choices {
            let (Description { text, constants, breaks }, own) = choice.describe();
            has_own_startup |= own;
            policies.push(PolicyReport { seam: choice.seam, text, constants, breaks });
        }
        if has_own_startup
            && let Some(report) = policies.iter_mut().find(|report| report.seam == Seam::SlowStart)
        {
            *report =
                PolicyReport { seam: Seam::SlowStart, text: OWN, constants: Vec::new(), breaks: Vec::new() };
        }
        ProfileReport { name: self.name(), description: self.description.to_string(), policies }
    }

    /// A parameter that must be set before the profile can be used; `None` if it is complete.
    pub fn missing(&self) -> Option<&'static Required> {
        let lacks = |choice: &Choice| {
            let is_set = |key: &str| choice.values.contains_key(key);
            let is_missing = |required: &&Required| !is_set(required.key) && !required.or.is_some_and(is_set);
            choice.entry.requires.iter().find(is_missing)
        };
        self.choices.iter().find_map(lacks)
    }

    /// The profile with an example's value for each parameter that is missing.
    ///
    /// # Errors
    /// None for policies whose examples are valid, which a test sees to.
    pub fn with_examples(self) -> Result<Self, ProfileError> {
        match self.missing() {
            Some(required) => self.with(required.key, required.example)?.with_examples(),
            None => Ok(self),
        }
    }

    /// The profile.
    ///
    /// # Errors
    /// [`ProfileError::Parameter`] if one is missing, with what to write.
    pub fn build(&self) -> Result<Profile, ProfileError> {
        match self.missing() {
            Some(Required { key, what, example, .. }) => {
                Err(self
                    .parameter_error(format!("needs `{key}`, {what}: write `{}@{key}={example}`", self.base)))
            }
            None => self.assemble(),
        }
    }

    fn parameter_error(&self, message: String) -> ProfileError {
        ProfileError::Parameter { name: self.base.to_string(), message }
    }
}
