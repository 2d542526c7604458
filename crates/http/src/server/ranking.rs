//! Default priorities of responses by their content, for clients that give none.

use http::{HeaderMap, header};
use posthaste_http3::Priority;

/// Media types and what they begin with, in the order in which a page needs them: what blocks rendering first, then data,
/// then what is shown while it comes.
const BY_TYPE: [(&str, Priority); 13] = [
    ("text/html", at(1)),
    ("text/css", at(2)),
    ("text/javascript", at(2)),
    ("application/javascript", at(2)),
    ("font/", at(2)),
    ("application/wasm", at(2)),
    ("text/event-stream", side_by_side(3)),
    ("image/", side_by_side(4)),
    ("video/", side_by_side(5)),
    ("audio/", side_by_side(5)),
    ("application/octet-stream", side_by_side(6)),
    ("application/zip", side_by_side(6)),
    ("application/gzip", side_by_side(6)),
];

const fn at(urgency: u8) -> Priority {
    Priority { urgency, incremental: false }
}

const fn side_by_side(urgency: u8) -> Priority {
    Priority { urgency, incremental: true }
}

/// The priority of a response with these fields; that of RFC 9218 section 4 for all other types.
pub(super) fn by_type(response: &HeaderMap) -> Priority {
    let kind = response.get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes).unwrap_or_default();
    let is = |name: &str| {
        let named = kind.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()));
        // A whole type ends there, or parameters follow.
        named && (name.ends_with('/') || matches!(kind.get(name.len()), None | Some(b';' | b' ')))
    };
    BY_TYPE.iter().find(|(name, _)| is(name)).map_or_else(Priority::default, |(_, priority)| *priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_ranked_by_when_a_page_needs_them() {
        let of = |kind: &str| {
            let fields = [(header::CONTENT_TYPE, kind.parse().unwrap())].into_iter().collect();
            let Priority { urgency, incremental } = by_type(&fields);
            (urgency, incremental)
        };
        for (kind, expected) in [
            ("text/html; charset=utf-8", (1, false)),
            ("Text/CSS", (2, false)),
            ("font/woff2", (2, false)),
            ("application/json", (3, false)),
            ("text/html5", (3, false)),
            ("image", (3, false)),
            ("", (3, false)),
            ("image/webp", (4, true)),
            ("video/mp4", (5, true)),
            ("application/zip", (6, true)),
        ] {
            assert_eq!(of(kind), expected, "{kind}");
        }
        assert_eq!(by_type(&HeaderMap::new()), Priority::default());
    }
}
