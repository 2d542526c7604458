//! Links that a client learns of before the response: `early-hints` (RFC 8297).

use http::header::{self, HeaderMap, HeaderValue};
use http::{HeaderName, Method};
use posthaste_service::{EarlyHints, Request};

/// What the fetch is for, by browsers (Fetch Metadata Request Headers).
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The fields of a 103; `None` without a link.
///
/// # Errors
/// The place of a value that is not a link such as `</style.css>; rel=preload; as=style`.
pub(crate) fn links<'a>(values: impl Iterator<Item = &'a str>) -> Result<Option<HeaderMap>, usize> {
    let mut fields = HeaderMap::new();
    for (at, value) in values.enumerate() {
        let is_link = value.starts_with('<') && value.contains(">;") && value.contains("rel=");
        let value = HeaderValue::from_str(value).ok().filter(|_| is_link);
        fields.append(header::LINK, value.ok_or(at)?);
    }
    Ok((!fields.is_empty()).then_some(fields))
}

/// Hints at `fields` if a browser asks for a page: nothing else follows links.
pub(crate) fn send(request: &Request, fields: Option<&HeaderMap>) {
    let Some((fields, hints)) = fields.zip(request.extensions().get::<EarlyHints>()) else { return };
    if request.method() == Method::GET && is_navigation(request.headers()) {
        hints.send(fields.clone());
    }
}

fn is_navigation(request: &HeaderMap) -> bool {
    if let Some(mode) = request.get(FETCH_MODE) {
        return mode == "navigate";
    }
    let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("text/html"));
    request.get_all(header::ACCEPT).iter().any(accepts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_checked_when_they_are_read() {
        assert_eq!(links([].into_iter()), Ok(None));
        let good = ["</a.css>; rel=preload; as=style", "<https://b.test>;rel=preconnect"];
        assert_eq!(links(good.into_iter()).unwrap().unwrap().get_all(header::LINK).iter().count(), 2);
        for bad in ["/a.css", "</a.css>", "</a.css>; as=style", "a </a>; rel=preload", "</a>; rel=a\nb: c"] {
            assert_eq!(links([good[0], bad].into_iter()), Err(1), "{bad}");
        }
    }

    #[test]
    fn only_pages_are_hinted_at() {
        let is = |fields: &[(HeaderName, &'static str)]| {
            let fields = fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            is_navigation(&fields.collect())
        };
        let page = (header::ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8");
        assert!(is(std::slice::from_ref(&page)) && is(&[(FETCH_MODE, "navigate")]));
        assert!(!is(&[page, (FETCH_MODE, "no-cors")]));
        assert!(!is(&[]) && !is(&[(header::ACCEPT, "*/*")]));
    }
}
