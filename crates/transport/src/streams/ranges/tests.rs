use super::*;

/// Offsets of the tests: each set of them is one number, a bit for an offset.
const OFFSETS: u64 = 8;

fn set_of(bits: u32) -> RangeSet {
    let mut set = RangeSet::default();
    for offset in (0..OFFSETS).filter(|offset| bits >> offset & 1 == 1) {
        set.insert(offset, offset + 1);
    }
    set
}

/// What is in a set, whose ranges must be in order, whole and apart.
fn bits_of(set: &RangeSet) -> u32 {
    let ranges: Vec<(u64, u64)> = set.0.iter().map(|(start, end)| (*start, *end)).collect();
    assert!(ranges.iter().all(|(start, end)| start < end), "{ranges:?}");
    assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?} overlap or touch");
    ranges.iter().fold(0, |bits, (start, end)| bits | span(*start, *end))
}

fn span(start: u64, end: u64) -> u32 {
    (start..end).fold(0, |bits, offset| bits | 1 << offset)
}

/// Exhaustive for eight offsets: from each of the 256 sets, each insertion, removal and question, empty and reversed ranges
/// included. As each set is reached, so is each sequence of them, however long.
#[test]
fn every_step_from_every_set_does_what_it_says() {
    for bits in 0..1_u32 << OFFSETS {
        assert_eq!(bits_of(&set_of(bits)), bits);
        assert_eq!(set_of(bits).is_empty(), bits == 0);
        let first = set_of(bits).first();
        assert_eq!(first.map(|(start, _)| start), (bits != 0).then(|| bits.trailing_zeros().into()));
        for start in 0..=OFFSETS {
            for end in 0..=OFFSETS {
                let piece = span(start, end);
                let (mut more, mut less) = (set_of(bits), set_of(bits));
                more.insert(start, end);
                less.remove(start, end);
                assert_eq!(bits_of(&more), bits | piece, "{bits:b} and {start}..{end}");
                assert_eq!(bits_of(&less), bits & !piece, "{bits:b} without {start}..{end}");
                if start < end {
                    let found: Vec<(u64, u64)> = set_of(bits).overlapping(start, end).collect();
                    assert!(found.windows(2).all(|pair| pair[0].0 > pair[1].0), "{found:?}, highest first");
                    let all = set_of(bits);
                    let expected = all.0.iter().filter(|(low, high)| **low < end && **high > start).count();
                    assert_eq!(found.len(), expected, "{bits:b} over {start}..{end}: {found:?}");
                }
            }
        }
    }
}
