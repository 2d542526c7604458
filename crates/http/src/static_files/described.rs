//! What responses say of a file.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, header};

use super::conditional::Validators;
use super::value;

/// One state of a file, described once for all responses.
#[derive(Debug, Clone)]
pub(super) struct Described {
    /// In bytes.
    pub(super) length: u64,
    pub(super) validators: Validators,
    etag: HeaderValue,
    modified: Option<HeaderValue>,
    content_type: HeaderValue,
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
            validators,
        }
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
    }

    /// Adds what describes `length` bytes of the content.
    pub(super) fn describe(&self, length: u64, fields: &mut HeaderMap) {
        fields.insert(header::CONTENT_TYPE, self.content_type.clone());
        fields.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
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
