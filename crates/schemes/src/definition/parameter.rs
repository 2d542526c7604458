//! Parameters that follow a profile's name: `NAME@key=value[,key=value]`. A key is one of a policy, or a seam, whose
//! value then names another policy for it.

use posthaste_policy::Seam;
use serde::Deserialize as _;
use toml::de::ValueDeserializer;

use super::{Choice, Definition};
use crate::{ProfileError, built_in, registry};

/// The key for both seams of credit at once.
const BOTH_CREDITS: &str = "credit";

/// The profile's name and its parameters, where `text` has some. (A file's path may have an `@` of its own.)
pub(super) fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('@') {
        Some((base, parameters)) if parameters.contains('=') || built_in::text(base).is_some() => {
            (base, Some(parameters))
        }
        _ => (text, None),
    }
}

/// True if a profile of this name is in a file: its name without parameters ends in `.toml` or has a slash.
pub fn is_file(name: &str) -> bool {
    let (base, _) = split(name);
    let path = std::path::Path::new(base);
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
        || base.contains(std::path::is_separator)
}

/// The name of a profile with parameters, which [`split`] takes apart.
pub(super) fn join(base: &str, parameters: &[(String, String)]) -> String {
    if parameters.is_empty() {
        return base.to_owned();
    }
    let parameters: Vec<String> = parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{base}@{}", parameters.join(","))
}

/// The key by which a choice's parameter is meant whatever others have one of the same name.
fn full_key(choice: &Choice, key: &str) -> String {
    format!("{}.{key}", choice.seam.name())
}

impl Definition {
    /// The profile with all of these parameters.
    pub(super) fn with_all(mut self, parameters: Option<&str>) -> Result<Self, ProfileError> {
        for parameter in parameters.into_iter().flat_map(|parameters| parameters.split(',')) {
            let Some((key, value)) = parameter.split_once('=') else {
                return Err(self.parameter_error(format!(
                    "`{parameter}` is not a parameter: write key=value; {}",
                    self.keys_there_are()
                )));
            };
            self = self.with(key.trim(), value.trim())?;
        }
        Ok(self)
    }

    /// The profile with a parameter set; `key` is one of a policy's keys, or `seam.key`. `value` is as in TOML, but
    /// texts need no quotes. A `key` that is a seam (`ack`, `group`, `credit.stream`; `credit` for both seams of credit)
    /// gives it another policy, whose name is `value`. A policy of credit keeps the windows of the one before, any other
    /// has its own defaults.
    ///
    /// ```
    /// use posthaste_schemes::Definition;
    ///
    /// let few_acks = Definition::named("mobile")?.with("ack", "frequency")?.with("packets", "20")?;
    /// assert_eq!(few_acks.name(), "mobile@ack=frequency,packets=20");
    /// # Ok::<(), posthaste_schemes::ProfileError>(())
    /// ```
    ///
    /// # Errors
    /// [`ProfileError::Parameter`] for a key that no policy of the profile has or that several have, and for a value
    /// that is not valid; [`ProfileError::Invalid`] for one that contradicts others.
    pub fn with(mut self, key: &str, value: &str) -> Result<Self, ProfileError> {
        if let Some(places) = self.seams_of(key) {
            return self.with_policy(&places, key, value);
        }
        let index = self.choice_with(key)?;
        let name = key.rsplit_once('.').map_or(key, |(_, name)| name);
        let read = ValueDeserializer::parse(value).and_then(toml::Value::deserialize);
        let parsed = read.unwrap_or_else(|_| value.into());
        let choice = &mut self.choices[index];
        choice.values.insert(name.to_owned(), parsed);
        let outcome = choice.read();
        if let Err(error) = outcome {
            return Err(self.parameter_error(format!("`{key}={value}`: {}", error.message().trim())));
        }
        self.parameters.retain(|(known, _)| known != key);
        self.parameters.push((key.to_owned(), value.to_owned()));
        self.check()?;
        Ok(self)
    }

    /// The places of the seams that `key` names, if it names any.
    fn seams_of(&self, key: &str) -> Option<Vec<usize>> {
        let is_meant = |seam: Seam| {
            let is_credit = matches!(seam, Seam::StreamCredit | Seam::ConnectionCredit);
            seam.name() == key || (is_credit && key == BOTH_CREDITS)
        };
        let places: Vec<usize> =
            (0..self.choices.len()).filter(|index| is_meant(self.choices[*index].seam)).collect();
        (!places.is_empty()).then_some(places)
    }

    /// The profile with the policy `name` for the seams at `places`, which `key` names.
    fn with_policy(mut self, places: &[usize], key: &str, name: &str) -> Result<Self, ProfileError> {
        for place in places {
            let choice = &mut self.choices[*place];
            let Some(entry) = registry::find(choice.seam, name) else {
                let valid = registry::names(choice.seam);
                return Err(self.parameter_error(format!("`{key}={name}`: expected one of {valid}")));
            };
            choice.entry = entry;
            // Windows are windows to each policy of credit; elsewhere one key may mean two things.
            let is_credit = matches!(choice.seam, Seam::StreamCredit | Seam::ConnectionCredit);
            choice.values.retain(|known, _| is_credit && entry.keys().contains(&known));
            if let Err(error) = choice.read() {
                return Err(self.parameter_error(format!("`{key}={name}`: {}", error.message().trim())));
            }
        }
        // What was set before stays in the name: read again, it gives the same profile.
        self.parameters.push((key.to_owned(), name.to_owned()));
        self.check()?;
        Ok(self)
    }

    /// The place of the policy that `key` is a parameter of.
    fn choice_with(&self, key: &str) -> Result<usize, ProfileError> {
        let has = |choice: &Choice| {
            let keys = choice.entry.keys();
            keys.iter().any(|known| *known == key || full_key(choice, known) == key)
        };
        let having: Vec<usize> = (0..self.choices.len()).filter(|index| has(&self.choices[*index])).collect();
        match having[..] {
            [index] => Ok(index),
            [] => Err(self.parameter_error(format!("has no parameter `{key}`; {}", self.keys_there_are()))),
            _ => {
                let full: Vec<String> =
                    having.iter().map(|index| full_key(&self.choices[*index], key)).collect();
                Err(self.parameter_error(format!("which `{key}` is meant? {}", full.join(" or "))))
            }
        }
    }

    /// The parameters that the profile has, for messages.
    fn keys_there_are(&self) -> String {
        let full = |choice: &Choice| -> Vec<String> {
            choice.entry.keys().iter().map(|key| full_key(choice, key)).collect()
        };
        let keys: Vec<String> = self.choices.iter().flat_map(full).collect();
        format!("there are: {}; and SEAM=POLICY, as in `ack=frequency`", keys.join(", "))
    }
}
