//! Selects the fields that the encoder puts into the dynamic table.
//!
//! What most requests of a phone repeat (its cookies, its user agent, the authority) is inserted when it is first sent.
//! Any other field is inserted when the same name and value are sent a second time, so that values of one use do not
//! push out what repeats. Secrets, and short cookies, which an attacker could guess, are never inserted (RFC 9204 section
//! 7.1.3).

use super::static_table::Match;

/// Cookies shorter than this, in bytes, are treated as secrets that can be guessed (RFC 9204 section 7.1.3).
const SHORT_COOKIE: usize = 20;

/// Fields that are remembered until they are seen a second time.
const REMEMBERED: usize = 64;

/// What becomes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insertion {
    /// It is not inserted: its values seldom repeat.
    Never,
    /// It is inserted when it is first sent.
    AtOnce,
    /// It is inserted when it is sent a second time.
    Repeated,
}

/// Decides by the field's name, which `found` has looked up in the static table.
pub(super) const fn insertion(found: Match) -> Insertion {
    let (Match::Field(index) | Match::Name(index)) = found else { return Insertion::Repeated };
    match index {
        // :authority, cookie, accept, accept-encoding, accept-language, user-agent.
        0 | 5 | 29 | 31 | 72 | 95 => Insertion::AtOnce,
        // :path, age, content-disposition, content-length, date, etag, if-modified-since, if-none-match, last-modified,
        // location, set-cookie, range, authorization, if-range.
        1..=4 | 6..=10 | 12 | 14 | 55 | 84 | 89 => Insertion::Never,
        _ => Insertion::Repeated,
    }
}

/// True for a field that is encoded as a literal, never indexed, whatever the caller says of it.
pub(crate) fn is_secret(name: &[u8], value: &[u8]) -> bool {
    match name {
        b"authorization" | b"proxy-authorization" => true,
        b"cookie" => value.len() < SHORT_COOKIE,
        _ => false,
    }
}

/// The fields that were sent last, by hashes: a collision costs an insertion and nothing else. Most connections send few
/// different ones, and have no memory for more.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    hashes: Vec<u32>,
    next: usize,
}

impl Repeats {
    /// True if the field is among those seen last; else it is now.
    pub(super) fn is_repeated(&mut self, name: &[u8], value: &[u8]) -> bool {
        // The high bits are folded into these.
        let hash = hash(hash(1, name), value) as u32;
        if self.hashes.contains(&hash) {
            return true;
        }
        match self.hashes.get_mut(self.next) {
            Some(slot) => *slot = hash,
            None => self.hashes.push(hash),
        }
        self.next = (self.next + 1) % REMEMBERED;
        false
    }
}

/// FNV-1a over words of eight bytes and the length, with the high bits folded in.
fn hash(seed: u64, text: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;

    let mut hash = seed ^ text.len() as u64;
    let mut words = text.chunks_exact(8);
    for word in &mut words {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        hash = (hash ^ word).wrapping_mul(PRIME);
        hash ^= hash >> 29;
    }
    for byte in words.remainder() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::super::static_table::{STATIC_TABLE, find};
    use super::*;

    #[test]
    fn names_are_judged_as_the_lists_say() {
        let of = |name: &str| insertion(find(name.as_bytes(), b"\0"));
        let names = |wanted: Insertion| -> Vec<&str> {
            let mut names: Vec<_> =
                STATIC_TABLE.iter().map(|(name, _)| *name).filter(|name| of(name) == wanted).collect();
            names.dedup();
            names
        };
        let at_once = [":authority", "cookie", "accept", "accept-encoding", "accept-language", "user-agent"];
        assert_eq!(names(Insertion::AtOnce), at_once);
        let never = [
            ":path",
            "age",
            "content-disposition",
            "content-length",
            "date",
            "etag",
            "if-modified-since",
            "if-none-match",
            "last-modified",
            "location",
            "set-cookie",
            "range",
            "authorization",
            "if-range",
        ];
        assert_eq!(names(Insertion::Never), never);
        assert_eq!(of("x-custom"), Insertion::Repeated);
    }

    #[test]
    fn secrets_are_told() {
        assert!(is_secret(b"authorization", b"Bearer of-any-length-whatsoever"));
        assert!(
            is_secret(b"cookie", &[b'x'; SHORT_COOKIE - 1]) && !is_secret(b"cookie", &[b'x'; SHORT_COOKIE])
        );
        assert!(!is_secret(b"user-agent", b""));
    }

    #[test]
    fn a_field_is_repeated_until_others_push_it_out() {
        let mut repeats = Repeats::default();
        assert!(!repeats.is_repeated(b"a", b"1") && repeats.is_repeated(b"a", b"1"));
        assert!(!repeats.is_repeated(b"a1", b""), "the boundary counts");
        for number in 0..REMEMBERED as u64 - 2 {
            assert!(!repeats.is_repeated(b"x", &number.to_be_bytes()));
        }
        assert!(repeats.is_repeated(b"a", b"1"));
        assert!(!repeats.is_repeated(b"b", b"") && !repeats.is_repeated(b"a", b"1"));
    }
}
