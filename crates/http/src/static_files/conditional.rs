//! Validators and preconditions (RFC 9110 sections 8.8 and 13).

use std::fs::Metadata;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, header};

use super::stamp::is_settled;

/// What identifies the state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Validators {
    /// Entity tag, with its quotes and `W/` where it is weak.
    pub(super) etag: String,
    /// Time of modification in whole seconds, never in the future (RFC 9110 section 8.8.2.1).
    pub(super) modified: Option<SystemTime>,
}

impl Validators {
    /// Validators of a file, seen at `now`.
    ///
    /// The tag is made of the length, the time of modification and (on Unix) of inode change, in nanoseconds:
    /// whatever writes to a file moves one of them, and programs cannot set the latter. It is strong unless the
    /// file changed so recently that another change in the same tick of the file system's clock could go unseen.
    pub(super) fn of(metadata: &Metadata, now: SystemTime) -> Self {
        let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
        let since_epoch = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let weak = if is_settled(modified, now) { "" } else { "W/" };
        let etag = format!(
            "{weak}\"{:x}-{:x}-{:x}\"",
            metadata.len(),
            since_epoch.as_nanos(),
            inode_change_nanoseconds(metadata)
        );
        let modified = metadata.modified().ok().map(|modified| whole_seconds(modified.min(now)));
        Self { etag, modified }
    }
}

#[cfg(unix)]
fn inode_change_nanoseconds(metadata: &Metadata) -> i128 {
    use std::os::unix::fs::MetadataExt;

    i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn inode_change_nanoseconds(_: &Metadata) -> i128 {
    0
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// What the preconditions of a GET or HEAD request come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Answer as if there were no preconditions; a `range` field counts only if `range_applies`.
    Proceed {
        /// False when `if-range` names another state of the file.
        range_applies: bool,
    },
    /// 304: the client's copy is current.
    NotModified,
    /// 412: the file is not in the state that the client requires.
    Failed,
}

/// Evaluates the preconditions in the order of RFC 9110 section 13.2.2.
pub(super) fn evaluate(headers: &HeaderMap, validators: &Validators) -> Verdict {
    if let Some(tags) = combined(headers, &header::IF_MATCH) {
        if !matches_any(&tags, &validators.etag, Comparison::Strong) {
            return Verdict::Failed;
        }
    } else if let Some(date) = date(headers, &header::IF_UNMODIFIED_SINCE)
        && validators.modified.is_some_and(|modified| modified > date)
    {
        return Verdict::Failed;
    }
    if let Some(tags) = combined(headers, &header::IF_NONE_MATCH) {
        if matches_any(&tags, &validators.etag, Comparison::Weak) {
            return Verdict::NotModified;
        }
    } else if let Some(date) = date(headers, &header::IF_MODIFIED_SINCE)
        && validators.modified.is_some_and(|modified| modified <= date)
    {
        return Verdict::NotModified;
    }
    Verdict::Proceed { range_applies: range_applies(headers, validators) }
}

/// RFC 9110 section 13.1.5: a strong match of the tag, or exactly the date. A date as fresh as a weak tag is no
/// strong validator either.
fn range_applies(headers: &HeaderMap, validators: &Validators) -> bool {
    let Some(value) = headers.get(header::IF_RANGE) else { return true };
    let Ok(value) = value.to_str() else { return false };
    let value = value.trim();
    if value.starts_with('"') || value.starts_with("W/") {
        return strong_equal(value, &validators.etag);
    }
    let is_strong = !validators.etag.starts_with("W/");
    is_strong && httpdate::parse_http_date(value).is_ok_and(|date| Some(date) == validators.modified)
}

/// How entity tags are compared (RFC 9110 section 8.8.3.2).
#[derive(Clone, Copy)]
enum Comparison {
    Strong,
    Weak,
}

fn strong_equal(one: &str, other: &str) -> bool {
    !one.starts_with("W/") && one == other
}

fn weak_equal(one: &str, other: &str) -> bool {
    one.strip_prefix("W/").unwrap_or(one) == other.strip_prefix("W/").unwrap_or(other)
}

/// Whether a list of tags, or `*`, holds for a file that exists. Our tags contain no comma, so a tag of someone
/// else's that does is cut into pieces that match nothing.
fn matches_any(list: &str, etag: &str, comparison: Comparison) -> bool {
    list.split(',').map(str::trim).any(|tag| {
        tag == "*"
            || match comparison {
                Comparison::Strong => strong_equal(tag, etag),
                Comparison::Weak => weak_equal(tag, etag),
            }
    })
}

/// All values of a list field, joined (RFC 9110 section 5.3); bytes that are no text match nothing.
fn combined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter().peekable();
    values.peek()?;
    Some(values.map(|value| value.to_str().unwrap_or("")).collect::<Vec<_>>().join(","))
}

/// A field that is one date; an invalid one is ignored (RFC 9110 sections 13.1.3 and 13.1.4).
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    let mut values = headers.get_all(name).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    httpdate::parse_http_date(value.to_str().ok()?.trim()).ok()
}

#[cfg(test)]
mod tests;
