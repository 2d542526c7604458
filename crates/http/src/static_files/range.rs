//! Byte ranges (RFC 9110 section 14).

/// What a `range` field asks of a representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeRequest {
    /// The whole: the field is malformed, of another unit, or asks for several ranges, which a server may
    /// ignore (RFC 9110 section 14.2).
    Whole,
    /// The bytes from `start` to before `end`; never empty.
    Part {
        /// The first byte.
        start: u64,
        /// The byte after the last.
        end: u64,
    },
    /// No byte of the representation: 416.
    Unsatisfiable,
}

/// Reads the value of a `range` field for a representation of `length` bytes.
pub(super) fn parse(field: &str, length: u64) -> RangeRequest {
    let Some((unit, set)) = field.split_once('=') else { return RangeRequest::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return RangeRequest::Whole;
    }
    let mut ranges =
        set.split(',').map(|range| range.trim_matches([' ', '\t'])).filter(|range| !range.is_empty());
    let (Some(range), None) = (ranges.next(), ranges.next()) else { return RangeRequest::Whole };
    let Some((first, last)) = range.split_once('-') else { return RangeRequest::Whole };
    match (position(first), position(last)) {
        (Position::Absent, Position::At(suffix)) => suffix_range(suffix, length),
        (Position::At(first), Position::Absent) if first < length => {
            RangeRequest::Part { start: first, end: length }
        }
        (Position::At(first), Position::At(last)) if first > last => RangeRequest::Whole,
        (Position::At(first), Position::At(last)) if first < length => {
            RangeRequest::Part { start: first, end: last.saturating_add(1).min(length) }
        }
        (Position::At(_), Position::Absent | Position::At(_)) => RangeRequest::Unsatisfiable,
        _ => RangeRequest::Whole,
    }
}

/// The last `suffix` bytes. Of an empty representation they are the whole: there is no other way to say so.
fn suffix_range(suffix: u64, length: u64) -> RangeRequest {
    match (suffix, length) {
        (0, _) => RangeRequest::Unsatisfiable,
        (_, 0) => RangeRequest::Whole,
        _ => RangeRequest::Part { start: length.saturating_sub(suffix), end: length },
    }
}

enum Position {
    Absent,
    At(u64),
    Malformed,
}

fn position(text: &str) -> Position {
    if text.is_empty() {
        Position::Absent
    } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large for an integer lies beyond every representation all the same.
        Position::At(text.parse().unwrap_or(u64::MAX))
    } else {
        Position::Malformed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{RangeRequest, parse};

    const fn part(start: u64, end: u64) -> RangeRequest {
        RangeRequest::Part { start, end }
    }

    #[test]
    fn table() {
        use RangeRequest::{Unsatisfiable, Whole};
        for (field, length, expected) in [
            ("bytes=0-499", 10_000, part(0, 500)),
            ("bytes=500-999", 10_000, part(500, 1000)),
            ("bytes=-500", 10_000, part(9500, 10_000)),
            ("bytes=9500-", 10_000, part(9500, 10_000)),
            ("bytes=0-0", 10_000, part(0, 1)),
            ("bytes=9999-9999", 10_000, part(9999, 10_000)),
            ("bytes=0-99999999999999999999999", 10_000, part(0, 10_000)),
            ("bytes=-99999999999999999999999", 10_000, part(0, 10_000)),
            ("BYTES=1-2", 10, part(1, 3)),
            ("bytes= 1-2 ", 10, part(1, 3)),
            ("bytes=,1-2,", 10, part(1, 3)),
            ("bytes=10000-", 10_000, Unsatisfiable),
            ("bytes=10000-10001", 10_000, Unsatisfiable),
            ("bytes=99999999999999999999999-", 10_000, Unsatisfiable),
            ("bytes=-0", 10_000, Unsatisfiable),
            ("bytes=0-", 0, Unsatisfiable),
            ("bytes=0-0", 0, Unsatisfiable),
            ("bytes=-5", 0, Whole),
            ("bytes=5-4", 10, Whole),
            ("bytes=0-1,3-4", 10, Whole),
            ("bytes=", 10, Whole),
            ("bytes=-", 10, Whole),
            ("bytes=1", 10, Whole),
            ("bytes=a-b", 10, Whole),
            ("bytes=1-b", 10, Whole),
            ("bytes=+1-2", 10, Whole),
            ("bytes=1-2-3", 10, Whole),
            ("bytes=--1", 10, Whole),
            ("lines=1-2", 10, Whole),
            ("1-2", 10, Whole),
            ("", 10, Whole),
        ] {
            assert_eq!(parse(field, length), expected, "{field} of {length}");
        }
    }

    proptest! {
        #[test]
        fn a_part_lies_within_and_is_never_empty(field in "bytes=[-0-9, ]{0,30}", length in any::<u64>()) {
            if let RangeRequest::Part { start, end } = parse(&field, length) {
                prop_assert!(start < end && end <= length);
            }
        }

        #[test]
        fn any_text_is_survived(field in ".{0,40}", length in any::<u64>()) {
            parse(&field, length);
        }
    }
}
