//! The static table (RFC 9204 appendix A).

/// Number of entries.
const SIZE: usize = 99;

/// Length of the longest name.
const LONGEST_NAME: usize = 32;

/// Names and values by index.
pub(super) static STATIC_TABLE: [(&str, &str); SIZE] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

/// What the static table has for a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// Name and value, at this index.
    Field(u64),
    /// The name, at this index.
    Name(u64),
    /// Nothing.
    None,
}

/// Indices of the entries by the length of their names: few entries share one, so that few names are compared.
struct ByNameLength {
    /// Indices, those of shorter names first, in the table's order within a length.
    indices: [u8; SIZE],
    /// By length: place of its first index in `indices`; the next length's is its end.
    starts: [u8; LONGEST_NAME + 2],
}

static BY_NAME_LENGTH: ByNameLength = by_name_length();

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which refuses what is out of range")]
const fn by_name_length() -> ByNameLength {
    let mut sorted = ByNameLength { indices: [0; SIZE], starts: [0; LONGEST_NAME + 2] };
    let (mut length, mut place) = (0, 0);
    while length <= LONGEST_NAME {
        sorted.starts[length] = place as u8;
        let mut index = 0;
        while index < SIZE {
            if STATIC_TABLE[index].0.len() == length {
                sorted.indices[place] = index as u8;
                place += 1;
            }
            index += 1;
        }
        length += 1;
    }
    sorted.starts[length] = place as u8;
    assert!(place == SIZE, "a name is longer than LONGEST_NAME");
    sorted
}

/// Indices of the entries whose names have this length.
fn with_name_length(length: usize) -> &'static [u8] {
    let ByNameLength { indices, starts } = &BY_NAME_LENGTH;
    match (starts.get(length), starts.get(length + 1)) {
        (Some(start), Some(end)) => indices.get(usize::from(*start)..usize::from(*end)).unwrap_or_default(),
        _ => &[],
    }
}

/// Looks a field up; of several entries with its name the first is taken.
pub(super) fn find(name: &[u8], value: &[u8]) -> Match {
    let mut found = Match::None;
    for index in with_name_length(name.len()) {
        let Some((entry_name, entry_value)) = STATIC_TABLE.get(usize::from(*index)) else { continue };
        // Names of one length mostly differ in their last letter.
        if entry_name.as_bytes().last() == name.last() && entry_name.as_bytes() == name {
            if entry_value.as_bytes() == value {
                return Match::Field(u64::from(*index));
            }
            if found == Match::None {
                found = Match::Name(u64::from(*index));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_names_are_found() {
        assert_eq!(find(b":status", b"200"), Match::Field(25));
        assert_eq!(find(b":status", b"500"), Match::Field(71), "not only among the first of the name");
        assert_eq!(find(b":status", b"418"), Match::Name(24));
        assert_eq!(find(b"x-frame-options", b"sameorigin"), Match::Field(98));
        assert_eq!(find(b":authority", b"localhost"), Match::Name(0));
        assert_eq!(find(b"x-unheard-of", b""), Match::None);
        assert_eq!(find(b"", b""), Match::None);
        assert_eq!(find(&[b'a'; 1000], b""), Match::None);
    }

    #[test]
    fn every_entry_is_its_own_first_match() {
        for (index, (name, value)) in (0..).zip(&STATIC_TABLE) {
            assert_eq!(find(name.as_bytes(), value.as_bytes()), Match::Field(index));
        }
    }
}
