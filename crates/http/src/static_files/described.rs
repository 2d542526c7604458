//! What responses say of a file.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, header};

use super::conditional::Validators;
use super::value;
use crate::service::Coding;

/// One state of a file, described once for all responses.
#[derive(Debug, Clone)]
pub(super) struct Described {
    /// In bytes.
    pub(super) length: u64,
    pub(super) validators: Validators,
    etag: HeaderValue,
    modified: Option<HeaderValue>,
    content_type: HeaderValue,
    coding: Option<Coding>,
    /// Whether another client gets the same content in another coding.
    pub(super) varies: bool,
}

impl Described {
    /// Describes the file of this name, seen at `now`.
    pub(super) fn new(path: &Path, metadata: &Metadata, now: SystemTime) -> Self {
        let validators = Validators::of(metadata, now);
        Self {
            length: metadata.len(),
            etag: value(&validators.etag),
            modified: validators.modified.map(|modified| value(&httpdate::fmt_http_date(modified))),
            content_type: content_type(path),
            coding: None,
            varies: false,
            validators,
        }
    }

    /// The same for content in this coding, whose tag is no other's.
    pub(super) fn in_coding(mut self, coding: Coding) -> Self {
        let tag = self.validators.etag.trim_end_matches('"');
        self.validators.etag = format!("{tag}-{coding}\"");
        Self { etag: value(&self.validators.etag), coding: Some(coding), ..self }
    }

    /// Adds what a client may keep and how it asks whether that is still current. The files' types are the server's
    /// word: `nosniff` keeps a browser from guessing another.
    pub(super) fn validate(&self, fields: &mut HeaderMap) {
        fields.insert(header::ETAG, self.etag.clone());
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(modified) = &self.modified {
            fields.insert(header::LAST_MODIFIED, modified.clone());
        }
        if self.varies {
            fields.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
    }

    /// Adds what describes `length` bytes of the content.
    pub(super) fn describe(&self, length: u64, fields: &mut HeaderMap) {
        fields.insert(header::CONTENT_TYPE, self.content_type.clone());
        fields.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if let Some(coding) = self.coding {
            fields.insert(header::CONTENT_ENCODING, coding.field_value());
        }
    }
}

/// The type by the name's extension; text is taken for UTF-8.
pub(super) fn content_type(path: &Path) -> HeaderValue {
    let guess = mime_guess::from_path(path).first_or_octet_stream();
    let is_text =
        guess.type_() == "text" || matches!(guess.essence_str(), "application/json" | "image/svg+xml");
    if is_text && guess.get_param("charset").is_none() {
        value(&format!("{}; charset=utf-8", guess.essence_str()))
    } else {
        value(guess.as_ref())
    }
}
