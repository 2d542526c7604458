//! `[edge.request-id]`: which requests are known by which name, and who is told of it.

use serde::{Deserialize, Serialize};
use toml::Spanned;

/// `[edge.request-id]`. Each request has an id in the log in any case; this table is for others to know it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RequestIdConfig {
    /// The field's name. Default `x-request-id`.
    pub header: Spanned<String>,
    /// An id that a client in one of the networks of `trusted` sends is taken over. Default no.
    pub accept: bool,
    /// Upstreams get the field, in the place of what the client has sent. Default yes.
    pub upstream: bool,
    /// Responses have the field. Default yes.
    pub response: bool,
}

impl Default for RequestIdConfig {
    fn default() -> Self {
        let header = Spanned::new(0..0, "x-request-id".to_owned());
        Self { header, accept: false, upstream: true, response: true }
    }
}
