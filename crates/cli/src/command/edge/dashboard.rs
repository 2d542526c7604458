//! The dashboard: one page, which asks `/status` again and again.

use bytes::Bytes;
use http::HeaderValue;

use crate::identity::sha256;

const PAGE: &str = include_str!("dashboard/page.html");
const STYLE: &str = include_str!("dashboard/style.css");
const SCRIPT: &str = include_str!("dashboard/script.js");

/// The page, and what a browser may do with it.
#[derive(Debug, Clone)]
pub(super) struct Dashboard {
    pub(super) html: Bytes,
    /// `Content-Security-Policy`: this script and this style, questions to this listener, and nothing else.
    pub(super) policy: HeaderValue,
}

impl Dashboard {
    pub(super) fn new() -> Self {
        let html = PAGE.replacen("STYLE", STYLE, 1).replacen("SCRIPT", SCRIPT, 1);
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; img-src data:; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
            hash(SCRIPT),
            hash(STYLE),
        );
        // Letters, digits and punctuation are always a field's value.
        let policy = HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
        Self { html: html.into(), policy }
    }
}

/// As CSP names a text (CSP Level 3, section 2.3.1).
fn hash(text: &str) -> String {
    // Without a hash the policy permits no text, and the browser says so.
    format!("sha256-{}", sha256(text.as_bytes()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_needs_nothing_from_elsewhere() {
        let Dashboard { html, policy } = Dashboard::new();
        let (html, policy) = (str::from_utf8(&html).unwrap(), policy.to_str().unwrap());
        assert!(html.len() < 24 << 10, "{}", html.len());
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            let uses = html.replace("http://www.w3.org/2000/svg", "");
            assert!(!uses.contains(outside), "{outside}");
        }
        assert!(
            html.contains("'use strict'")
                && html.contains("prefers-color-scheme")
                && !html.contains("SCRIPT")
        );
        // openssl dgst -sha256 -binary | base64, of nothing.
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert!(policy.contains(&hash(SCRIPT)));
    }
}
