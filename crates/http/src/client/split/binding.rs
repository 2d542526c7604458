//! What ties ranges of an object to the same state of it (RFC 9110 sections 13.1.5, 14 and 15.3.7).

use std::ops::Range;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::Single;

/// A date is a strong validator if the response was made so much later (RFC 9110 section 8.8.2.2).
const SETTLED: Duration = Duration::from_secs(1);

/// Reads a `content-range` of bytes: where they are, and of how many.
pub(super) fn content_range(headers: &HeaderMap) -> Option<(Range<u64>, u64)> {
    let field = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (unit, rest) = field.trim().split_once(' ')?;
    let (range, length) = rest.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    let (first, last, length): (u64, u64, u64) = (number(first)?, number(last)?, number(length)?);
    let is_sound = unit.eq_ignore_ascii_case("bytes") && first <= last && last < length;
    is_sound.then(|| (first..last + 1, length))
}

/// The state of an object that all its parts must be of.
#[derive(Debug, Clone)]
pub(super) struct Binding {
    /// `etag` or `last-modified`, and its value.
    validator: (HeaderName, HeaderValue),
    length: u64,
}

/// What a response to a request for a part is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The part, or its beginning: up to this byte.
    Part(u64),
    /// Of another state of the object.
    Changed,
    /// The server does not serve this part, but others may go on.
    Refused,
}

impl Binding {
    /// Binds to the state that a response to the first request (206, `length` bytes in all) is of.
    pub(super) fn to(headers: &HeaderMap, length: u64) -> Result<Self, Single> {
        let coding = headers.get(header::CONTENT_ENCODING);
        if coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(Single::Encoded);
        }
        if let Some(tag) = headers.get(header::ETAG) {
            if is_strong(tag) {
                return Ok(Self { validator: (header::ETAG, tag.clone()), length });
            }
            return Err(Single::NoValidator);
        }
        let date = |name| httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok();
        let is_settled = || {
            let age = date(header::DATE)?.duration_since(date(header::LAST_MODIFIED)?).ok()?;
            (age >= SETTLED).then(|| headers.get(header::LAST_MODIFIED).cloned())?
        };
        let value = is_settled().ok_or(Single::NoValidator)?;
        Ok(Self { validator: (header::LAST_MODIFIED, value), length })
    }

    /// The fields of a request for a part.
    pub(super) fn request_fields(&self, range: &Range<u64>) -> HeaderMap {
        let mut fields = HeaderMap::new();
        let text = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
        if let Ok(value) = HeaderValue::from_str(&text) {
            fields.insert(header::RANGE, value);
        }
        fields.insert(header::IF_RANGE, self.validator.1.clone());
        fields
    }

    /// Judges the response to such a request.
    pub(super) fn judge(&self, status: StatusCode, headers: &HeaderMap, asked: &Range<u64>) -> Verdict {
        let (name, value) = &self.validator;
        let is_same = headers.get(name).map(|found| found == value);
        match (status, is_same) {
            (StatusCode::PARTIAL_CONTENT, Some(false))
            | (StatusCode::OK | StatusCode::NOT_FOUND | StatusCode::GONE, Some(false) | None)
            | (StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE, _) => Verdict::Changed,
            (StatusCode::PARTIAL_CONTENT, _) => match content_range(headers) {
                Some((_, length)) if length != self.length => Verdict::Changed,
                Some((range, _)) if range.start == asked.start => Verdict::Part(range.end.min(asked.end)),
                _ => Verdict::Refused,
            },
            _ => Verdict::Refused,
        }
    }
}

fn is_strong(tag: &HeaderValue) -> bool {
    let tag = tag.as_bytes();
    tag.len() >= 2 && tag.starts_with(b"\"") && tag.ends_with(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(HeaderName, &str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn content_ranges() {
        for (field, expected) in [
            ("bytes 0-4/10", Some((0..5, 10))),
            ("BYTES 9-9/10", Some((9..10, 10))),
            ("bytes 5-4/10", None),
            ("bytes 0-10/10", None),
            ("bytes 0-4/*", None),
            ("bytes */10", None),
            ("bytes 0-+4/10", None),
            ("lines 0-4/10", None),
            ("bytes 0-18446744073709551615/18446744073709551615", None),
            ("0-4/10", None),
        ] {
            assert_eq!(content_range(&headers(&[(header::CONTENT_RANGE, field)])), expected, "{field}");
        }
        assert_eq!(content_range(&HeaderMap::new()), None);
    }

    #[test]
    fn only_strong_validators_bind() {
        let of = |fields: &[(HeaderName, &str)]| Binding::to(&headers(fields), 10).map(|_| ());
        assert_eq!(of(&[(header::ETAG, "\"a\"")]), Ok(()));
        assert_eq!(of(&[(header::ETAG, "W/\"a\"")]), Err(Single::NoValidator));
        assert_eq!(of(&[]), Err(Single::NoValidator));
        let (old, new) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:38 GMT");
        assert_eq!(of(&[(header::LAST_MODIFIED, old), (header::DATE, new)]), Ok(()));
        assert_eq!(of(&[(header::LAST_MODIFIED, old), (header::DATE, old)]), Err(Single::NoValidator));
        assert_eq!(of(&[(header::LAST_MODIFIED, old)]), Err(Single::NoValidator));
        let coded = [(header::ETAG, "\"a\""), (header::CONTENT_ENCODING, "gzip")];
        assert_eq!(of(&coded), Err(Single::Encoded));
    }

    #[test]
    fn verdicts() {
        let binding = Binding::to(&headers(&[(header::ETAG, "\"a\"")]), 100).unwrap();
        let judge = |status: u16, fields: &[(HeaderName, &str)]| {
            binding.judge(StatusCode::from_u16(status).unwrap(), &headers(fields), &(10..20))
        };
        let (same, other) = ((header::ETAG, "\"a\""), (header::ETAG, "\"b\""));
        let range = |text| (header::CONTENT_RANGE, text);
        assert_eq!(judge(206, &[same.clone(), range("bytes 10-19/100")]), Verdict::Part(20));
        assert_eq!(judge(206, &[range("bytes 10-14/100")]), Verdict::Part(15), "a shorter one is permitted");
        assert_eq!(judge(206, &[range("bytes 10-99/100")]), Verdict::Part(20));
        assert_eq!(judge(206, &[other.clone(), range("bytes 10-19/100")]), Verdict::Changed);
        assert_eq!(judge(206, &[same.clone(), range("bytes 10-19/101")]), Verdict::Changed);
        assert_eq!(judge(206, &[same.clone(), range("bytes 11-19/100")]), Verdict::Refused);
        assert_eq!(judge(206, std::slice::from_ref(&same)), Verdict::Refused);
        assert_eq!(judge(200, std::slice::from_ref(&other)), Verdict::Changed);
        assert_eq!(judge(200, &[]), Verdict::Changed);
        assert_eq!(judge(404, &[]), Verdict::Changed);
        assert_eq!(judge(416, &[range("bytes */5")]), Verdict::Changed);
        assert_eq!(judge(200, std::slice::from_ref(&same)), Verdict::Refused, "it ignores ranges now");
        assert_eq!(judge(503, &[]), Verdict::Refused);
        let fields = binding.request_fields(&(10..20));
        assert_eq!(fields[header::RANGE], "bytes=10-19");
        assert_eq!(fields[header::IF_RANGE], "\"a\"");
    }
}
