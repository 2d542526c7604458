//! The static table (RFC 9204 appendix A).

/// Number of entries.
const SIZE: usize = 99;

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

/// Slots by [`hash`], of which each name has its own.
const SLOTS: usize = 256;

/// A slot that no name has.
const EMPTY: u8 = u8::MAX;

/// Indices of the entries, those of one name together.
struct ByName {
    /// Indices in the order of their names' first entries, and in the table's order within a name.
    indices: [u8; SIZE],
    /// By index: true for the first entry of a name in `indices`.
    begins: [bool; SIZE + 1],
    /// By the hash of a name: place of its first index in `indices`.
    slots: [u8; SLOTS],
}

static BY_NAME: ByName = by_name();

/// The slot of a name. The factors are such that no two names of the table share one; `by_name` refuses others.
const fn hash(length: usize, last: u8, fifth_last: u8) -> usize {
    (length * 7 + last as usize * 55 + fifth_last as usize) % SLOTS
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which refuses what is out of range")]
const fn by_name() -> ByName {
    let mut sorted = ByName { indices: [0; SIZE], begins: [false; SIZE + 1], slots: [EMPTY; SLOTS] };
    let mut is_placed = [false; SIZE];
    let (mut first, mut place) = (0, 0);
    while first < SIZE {
        if !is_placed[first] {
            let name = STATIC_TABLE[first].0.as_bytes();
            let slot = hash(name.len(), name[name.len() - 1], name[name.len().saturating_sub(5)]);
            assert!(sorted.slots[slot] == EMPTY, "two names share a slot");
            sorted.slots[slot] = place as u8;
            sorted.begins[place] = true;
            let mut index = first;
            while index < SIZE {
                if is_same(STATIC_TABLE[index].0.as_bytes(), name) {
                    is_placed[index] = true;
                    sorted.indices[place] = index as u8;
                    place += 1;
                }
                index += 1;
            }
        }
        first += 1;
    }
    sorted.begins[SIZE] = true;
    sorted
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which refuses what is out of range")]
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Indices from the first entry of a name on; empty for a name that the table does not have.
fn with_name(name: &[u8]) -> &'static [u8] {
    let (Some(last), Some(fifth_last)) = (name.last(), name.get(name.len().saturating_sub(5))) else {
        return &[];
    };
    let place = BY_NAME.slots.get(hash(name.len(), *last, *fifth_last)).copied().unwrap_or(EMPTY);
    let indices = BY_NAME.indices.get(usize::from(place)..).unwrap_or_default();
    let first = indices.first().and_then(|index| STATIC_TABLE.get(usize::from(*index)));
    if first.is_none_or(|(first, _)| first.as_bytes() != name) {
        return &[];
    }
    let begins = BY_NAME.begins.get(usize::from(place) + 1..).unwrap_or_default();
    let count = begins.iter().position(|begins| *begins).map_or(0, |others| others + 1);
    indices.get(..count).unwrap_or_default()
}

/// Looks a field up; of several entries with its name the first is taken.
pub(super) fn find(name: &[u8], value: &[u8]) -> Match {
    let indices = with_name(name);
    // Values of one name mostly differ in their lengths or their last letters.
    let has_value = |index: &&u8| {
        STATIC_TABLE.get(usize::from(**index)).is_some_and(|(_, of_entry)| {
            let of_entry = of_entry.as_bytes();
            of_entry.len() == value.len() && of_entry.last() == value.last() && of_entry == value
        })
    };
    match (indices.iter().find(has_value), indices.first()) {
        (Some(index), _) => Match::Field(u64::from(*index)),
        (None, Some(first)) => Match::Name(u64::from(*first)),
        (None, None) => Match::None,
    }
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
        assert_eq!(find(b"a", b"0"), Match::None);
        assert_eq!(find(b"access-control-allow-headers", b"*"), Match::Field(75), "not next to the others");
        assert_eq!(find(b"accept-ranges", b"cytes"), Match::Name(32));
    }

    #[test]
    fn every_entry_is_its_own_first_match() {
        for (index, (name, value)) in (0..).zip(&STATIC_TABLE) {
            assert_eq!(find(name.as_bytes(), value.as_bytes()), Match::Field(index));
        }
    }
}
