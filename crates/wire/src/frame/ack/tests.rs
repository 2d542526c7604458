use std::collections::BTreeSet;

use super::*;

/// What a frame's numbers say by section 19.3.1, with no arithmetic that could overflow; `None` if one is negative.
fn numbers(largest: i128, first: i128, rest: &[[i128; 2]]) -> Option<Vec<RangeInclusive<u64>>> {
    let range = |start: i128, end: i128| Some(u64::try_from(start).ok()?..=u64::try_from(end).ok()?);
    let mut smallest = largest - first;
    let mut ranges = vec![range(smallest, largest)?];
    for [gap, span] in rest {
        let largest = smallest - gap - 2;
        smallest = largest - span;
        ranges.push(range(smallest, largest)?);
    }
    Some(ranges)
}

/// Exhaustive: each largest number up to 12, each first range up to 13, and up to two further ranges with each gap and
/// length up to 5, as well as the same from the largest integer on. The bytes behind it are no part of it.
#[test]
fn every_small_frame_is_read_as_section_19_3_1_has_it() {
    let pairs: Vec<[u64; 2]> = (0..=5).flat_map(|gap| (0..=5).map(move |span| [gap, span])).collect();
    let one = pairs.iter().map(|pair| vec![*pair]);
    let two = pairs.iter().flat_map(|pair| pairs.iter().map(move |other| vec![*pair, *other]));
    let rests: Vec<Vec<[u64; 2]>> = std::iter::once(Vec::new()).chain(one).chain(two).collect();
    let tops = (0..=12).flat_map(|largest| (0..=13).map(move |first| (largest, first)));
    let ends = [(varint::MAX, 0), (varint::MAX, varint::MAX - 12), (varint::MAX, varint::MAX)];
    for (largest, first) in tops.chain(ends) {
        for rest in &rests {
            let mut bytes = Vec::new();
            for value in [largest, 7, rest.len() as u64, first].iter().chain(rest.iter().flatten()) {
                varint::write(&mut bytes, *value);
            }
            let length = bytes.len();
            bytes.extend([0xff; 8]);
            let wide: Vec<[i128; 2]> = rest.iter().map(|pair| pair.map(i128::from)).collect();
            let expected = numbers(largest.into(), first.into(), &wide);
            let mut reader = Reader::new(&bytes);
            let read = decode(&mut reader, false);
            assert_eq!(read.is_err(), expected.is_none(), "{largest} {first} {rest:?}");
            if let (Ok(frame), Some(ranges)) = (read, expected) {
                assert_eq!((frame.ranges, frame.delay), (ranges, 7));
                assert_eq!(reader.position(), length);
            }
            for cut in 0..length {
                assert!(decode(&mut Reader::new(&bytes[..cut]), false).is_err(), "cut at {cut}");
            }
        }
    }
}

/// Exhaustive: each set of the numbers below 12, at 0 and at each length of integer, with each bound on the frame's size. What is
/// written is the highest ranges, as many as fit, and reads as what it was.
#[test]
fn every_small_set_is_written_as_far_as_it_fits_and_read_back() {
    const NUMBERS: u64 = 12;
    for base in [0, 58, 16_380, (1 << 30) - 6, varint::MAX - NUMBERS] {
        for set in 1..1_u64 << NUMBERS {
            let members: BTreeSet<u64> = (0..NUMBERS).filter(|bit| set >> bit & 1 == 1).collect();
            let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
            for number in members.iter().rev().map(|number| base + number) {
                match ranges.last_mut() {
                    Some(range) if *range.start() == number + 1 => *range = number..=*range.end(),
                    _ => ranges.push(number..=number),
                }
            }
            let whole = AckFrame { delay: 3, ranges: ranges.clone(), ecn: None };
            for limit in 0..=whole.encoded_len() {
                let mut bytes = Vec::new();
                let count = write(&mut bytes, 3, ranges.iter().cloned(), None, limit);
                assert!(bytes.len() <= limit, "{bytes:?} in {limit}");
                let part = AckFrame { ranges: ranges[..count].to_vec(), ..whole.clone() };
                assert_eq!(part.encoded_len(), bytes.len());
                let more =
                    AckFrame { ranges: ranges[..(count + 1).min(ranges.len())].to_vec(), ..whole.clone() };
                assert!(count == ranges.len() || more.encoded_len() > limit, "one more would fit");
                if count > 0 {
                    let mut reader = Reader::new(&bytes[1..]);
                    assert_eq!(decode(&mut reader, false).ok(), Some(part));
                    assert!(reader.is_empty());
                }
            }
        }
    }
}
