//! The lists of requirements.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// How strongly a requirement is worded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// MUST, MUST NOT, REQUIRED or SHALL.
    Must,
    /// SHOULD or RECOMMENDED.
    Should,
}

/// One demand of an RFC.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Requirement {
    /// Section number and a slug: `4.1 excess-closes`.
    pub(super) id: String,
    pub(super) level: Level,
    /// What is demanded, in our own words.
    pub(super) text: String,
    /// Why it needs no citation.
    pub(super) except: Option<String>,
}

impl Requirement {
    /// The number of the top-level section: `4` of `4.1 excess-closes`.
    pub(super) fn group(&self) -> &str {
        self.id.split(['.', ' ']).next().unwrap_or_default()
    }
}

/// One file of `specs/`.
#[derive(Debug)]
pub(super) struct List {
    /// `rfc9000`.
    pub(super) rfc: String,
    pub(super) requirements: Vec<Requirement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rfc: String,
    #[serde(rename = "title")]
    _title: String,
    requirements: Vec<Requirement>,
}

/// Reads a list.
///
/// # Errors
/// Malformed TOML, an identifier of another form than `4.1 some-slug`, one that comes twice, or an empty text or
/// reason.
pub(super) fn parse(text: &str) -> Result<List, String> {
    let File { rfc, requirements, .. } = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut seen = BTreeSet::new();
    for requirement in &requirements {
        let id = &requirement.id;
        let is_well_formed =
            id.split_once(' ').is_some_and(|(section, slug)| is_section(section) && is_slug(slug));
        if !is_well_formed {
            return Err(format!(
                "`{id}`: an identifier is a section number and a slug, such as `4.1 excess-closes`"
            ));
        }
        if !seen.insert(id) {
            return Err(format!("`{id}` is listed twice"));
        }
        if requirement.text.trim().is_empty() {
            return Err(format!("`{id}` says nothing"));
        }
        if requirement.except.as_ref().is_some_and(|reason| reason.trim().is_empty()) {
            return Err(format!("`{id}` is excepted without a reason"));
        }
    }
    Ok(List { rfc, requirements })
}

/// True for `4` and `4.1.2`.
pub(super) fn is_section(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_slug(text: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.split('-').all(is_word)
}
