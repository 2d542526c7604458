//! URIs of requests: what a person may type, and references in redirects (RFC 3986 section 5).

use std::fmt;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

/// Why a URI cannot be fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{uri}`: {reason}")]
pub struct UriError {
    /// The URI as it was given.
    pub uri: String,
    /// What is wrong with it, and what would be right.
    pub reason: &'static str,
}

/// The part of a URI that a connection belongs to (RFC 6454).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Host name or address; an IPv6 address without brackets.
    pub host: String,
    /// UDP port; 443 if the URI names none.
    pub port: u16,
}

impl Origin {
    /// The origin of an absolute `https` URI.
    ///
    /// # Errors
    /// If the URI is of another scheme, or has no host.
    pub fn of(uri: &Uri) -> Result<Self, UriError> {
        let fail = |reason| UriError { uri: uri.to_string(), reason };
        if uri.scheme() != Some(&Scheme::HTTPS) {
            // spec: rfc9114 3.1.2 other-schemes-ensured
            return Err(fail("HTTP/3 needs a URL that begins with https://"));
        }
        let authority = uri.authority().ok_or_else(|| fail("the URL names no host"))?;
        if authority.as_str().contains('@') {
            return Err(fail("a user name in a URL is not supported; remove what stands before the @"));
        }
        // The crate looks for it each time.
        let written = authority.host();
        let host = written.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err(fail("the URL names no host"));
        }
        // The authority's own accessors take a port that is out of range for none.
        let port = match authority.as_str().strip_prefix(written) {
            Some("") => 443,
            Some(port) => match port.trim_start_matches(':').parse() {
                Ok(0) | Err(_) => return Err(fail("the port is not a number from 1 to 65535")),
                Ok(port) => port,
            },
            None => return Err(fail("the URL names no host")),
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_v6 = self.host.contains(':');
        let (open, close) = if is_v6 { ("[", "]") } else { ("", "") };
        write!(f, "https://{open}{}{close}", self.host)?;
        if self.port == 443 { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// Reads a URL as a person types it: without its fragment, and with the characters encoded that a URI does not
/// have (spaces, letters beyond ASCII).
///
/// # Errors
/// If it is no absolute `https` URL.
pub fn parse(text: &str) -> Result<Uri, UriError> {
    let fail = |reason| UriError { uri: text.to_owned(), reason };
    let without_fragment = text.trim().split('#').next().unwrap_or_default();
    let Some((scheme, rest)) = without_fragment.split_once("://") else {
        return Err(fail("this is no URL; one looks like https://localhost:4433/file"));
    };
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(authority_end);
    if !authority.is_ascii() {
        return Err(fail("the host name has letters beyond ASCII; write it in its xn-- form"));
    }
    let slash = if target.starts_with('/') { "" } else { "/" };
    let uri: Uri = format!("{scheme}://{authority}{slash}{}", encode_target(target))
        .parse()
        .map_err(|_| fail("this is no valid URL"))?;
    Origin::of(&uri).map_err(|error| fail(error.reason))?;
    Ok(uri)
}

/// Encodes what a path or query cannot contain (RFC 3986 sections 3.3 and 3.4), and leaves what it can.
fn encode_target(target: &str) -> String {
    use fmt::Write;

    let mut encoded = String::with_capacity(target.len());
    for byte in target.bytes() {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0..=b' ' | 0x7f.. => {
                // Writing to a string does not fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
            _ => encoded.push(char::from(byte)),
        }
    }
    encoded
}

/// Resolves a `location` against the URI of the request that it answers (RFC 3986 section 5.2).
///
/// # Errors
/// If the result is no absolute `https` URI: a redirect must not lead to an unprotected one.
pub fn resolve(base: &Uri, reference: &str) -> Result<Uri, UriError> {
    let fail = |reason| UriError { uri: reference.to_owned(), reason };
    let reference = reference.trim().split('#').next().unwrap_or_default();
    if has_scheme(reference) {
        return parse(reference);
    }
    if let Some(rest) = reference.strip_prefix("//") {
        return parse(&format!("https://{rest}"));
    }
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (reference, None),
    };
    let (path, query) = if path.is_empty() {
        (base.path().to_owned(), query.or(base.query()))
    } else if path.starts_with('/') {
        (remove_dot_segments(path), query)
    } else {
        let directory = base.path().rsplit_once('/').map_or("", |(directory, _)| directory);
        (remove_dot_segments(&format!("{directory}/{path}")), query)
    };
    let target = match query {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    let target: PathAndQuery =
        encode_target(&target).parse().map_err(|_| fail("the redirect leads to no valid URL"))?;
    let authority: Authority =
        base.authority().cloned().ok_or_else(|| fail("the redirect's base has no host"))?;
    Uri::builder()
        .scheme(Scheme::HTTPS)
        .authority(authority)
        .path_and_query(target)
        .build()
        .map_err(|_| fail("the redirect leads to no valid URL"))
}

/// RFC 3986 section 3.1: a letter, then letters, digits, `+`, `-` and `.`, up to a colon.
fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

/// RFC 3986 section 5.2.4, for a path that begins with a slash.
fn remove_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            name => kept.push(name),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_people_type() {
        for (text, expected) in [
            ("https://localhost:4433", "https://localhost:4433/"),
            ("https://localhost:4433?a=b", "https://localhost:4433/?a=b"),
            (" https://example.com/a b ", "https://example.com/a%20b"),
            ("https://example.com/%20", "https://example.com/%20"),
            ("https://example.com/é#part", "https://example.com/%C3%A9"),
            ("https://[::1]:4433/x", "https://[::1]:4433/x"),
            ("HTTPS://Example.com/", "https://Example.com/"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected);
        }
        for text in [
            "",
            "example.com",
            "http://example.com",
            "ftp://a/b",
            "https://",
            "https:///a",
            "https://a:0/",
            "https://a:70000/",
            "https://a:b/",
            "https://a:/",
            "https://user@a/",
            "https://mañana.com/",
            "/a",
            "https:a",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn origins() {
        for (uri, host, port, shown) in [
            ("https://a/b", "a", 443, "https://a"),
            ("https://A:443/", "a", 443, "https://a"),
            ("https://a:4433/", "a", 4433, "https://a:4433"),
            ("https://[::1]:1/", "::1", 1, "https://[::1]:1"),
        ] {
            let origin = Origin::of(&uri.parse().unwrap()).unwrap();
            assert_eq!((origin.host.as_str(), origin.port), (host, port));
            assert_eq!(origin.to_string(), shown);
        }
    }

    /// The examples of RFC 3986 section 5.4 that mean something to HTTP.
    #[test]
    fn references_of_rfc_3986() {
        let base: Uri = "https://a/b/c/d;p?q".parse().unwrap();
        for (reference, expected) in [
            ("g", "https://a/b/c/g"),
            ("./g", "https://a/b/c/g"),
            ("g/", "https://a/b/c/g/"),
            ("/g", "https://a/g"),
            ("//g", "https://g/"),
            ("?y", "https://a/b/c/d;p?y"),
            ("g?y", "https://a/b/c/g?y"),
            ("#s", "https://a/b/c/d;p?q"),
            ("g#s", "https://a/b/c/g"),
            (";x", "https://a/b/c/;x"),
            ("g;x=1/../y", "https://a/b/c/y"),
            ("", "https://a/b/c/d;p?q"),
            (".", "https://a/b/c/"),
            ("./", "https://a/b/c/"),
            ("..", "https://a/b/"),
            ("../", "https://a/b/"),
            ("../g", "https://a/b/g"),
            ("../..", "https://a/"),
            ("../../g", "https://a/g"),
            ("../../../g", "https://a/g"),
            ("/./g", "https://a/g"),
            ("/../g", "https://a/g"),
            ("g.", "https://a/b/c/g."),
            ("..g", "https://a/b/c/..g"),
            ("./g/.", "https://a/b/c/g/"),
            ("g/./h", "https://a/b/c/g/h"),
            ("g/../h", "https://a/b/c/h"),
            ("g?y/../x", "https://a/b/c/g?y/../x"),
            ("https://other:1/x", "https://other:1/x"),
        ] {
            assert_eq!(resolve(&base, reference).unwrap().to_string(), expected, "{reference}");
        }
        for reference in ["http://a/", "javascript:alert(1)", "ftp://a", "https://"] {
            assert!(resolve(&base, reference).is_err(), "{reference}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_only_https_comes_out(text in ".{0,40}") {
            let base: Uri = "https://a/b/c".parse().unwrap();
            for uri in [parse(&text), parse(&format!("https://{text}")), resolve(&base, &text)].into_iter().flatten() {
                prop_assert_eq!(uri.scheme_str(), Some("https"));
                prop_assert!(Origin::of(&uri).is_ok());
            }
        }
    }
}
