//! ACK (RFC 9000 section 19.3).

use std::ops::RangeInclusive;

use crate::error::Fault;
use crate::varint::{self, Reader};

/// Wire type without ECN counts.
pub const TYPE: u64 = 0x02;
/// Wire type with ECN counts.
pub const TYPE_ECN: u64 = 0x03;

/// Fewest bytes that one more range takes: the bound on how many ranges a frame of a given size may announce.
const MIN_RANGE_LEN: usize = 2;

/// ACK: which packets have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckFrame {
    /// The ACK Delay field as sent: units of 2^`ack_delay_exponent` microseconds.
    pub delay: u64,
    /// Packet numbers that have arrived, highest range first, disjoint and not adjacent; never empty.
    pub ranges: Vec<RangeInclusive<u64>>,
    /// ECN counts, if the frame carries them (type 0x03).
    pub ecn: Option<EcnCounts>,
}

/// Cumulative ECN counts of one packet number space (section 19.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EcnCounts {
    /// Packets that arrived with ECT(0).
    pub ect0: u64,
    /// Packets that arrived with ECT(1).
    pub ect1: u64,
    /// Packets that arrived with CE.
    pub ce: u64,
}

impl AckFrame {
    /// The highest packet number that is acknowledged; 0 if `ranges` is empty, which no decoded frame has.
    pub fn largest(&self) -> u64 {
        self.ranges.first().map_or(0, |range| *range.end())
    }

    /// Appends the frame with all its ranges. Nothing is written if there are none.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        write(buffer, self.delay, self.ranges.iter().cloned(), self.ecn, usize::MAX);
    }

    /// Bytes that [`AckFrame::write`] appends.
    pub fn encoded_len(&self) -> usize {
        let mut ranges = self.ranges.iter();
        let Some(first) = ranges.next() else { return 0 };
        let mut smallest = *first.start();
        let mut len = 1
            + head_len(self.delay, first)
            + varint::len(self.ranges.len() as u64 - 1)
            + self.ecn.map_or(0, EcnCounts::encoded_len);
        for range in ranges {
            len += varint::len(smallest.saturating_sub(*range.end()).saturating_sub(2));
            len += varint::len(range.end().saturating_sub(*range.start()));
            smallest = *range.start();
        }
        len
    }
}

impl EcnCounts {
    fn encoded_len(self) -> usize {
        varint::len(self.ect0) + varint::len(self.ect1) + varint::len(self.ce)
    }
}

/// Bytes of everything up to the first range, without the type, the range count and the ECN counts.
fn head_len(delay: u64, first: &RangeInclusive<u64>) -> usize {
    let span = first.end().saturating_sub(*first.start());
    varint::len(*first.end()) + varint::len(delay) + varint::len(span)
}

/// Appends an ACK frame with as many of the highest ranges as fit in `limit` bytes, and returns how many that
/// are. If not even the first fits, or there is none, nothing is written and the result is 0.
///
/// `ranges` come highest first, neither overlapping nor adjacent; what follows a range that breaks this is left
/// out (and asserted against in debug builds).
pub fn write(
    buffer: &mut Vec<u8>,
    delay: u64,
    ranges: impl Iterator<Item = RangeInclusive<u64>>,
    ecn: Option<EcnCounts>,
    limit: usize,
) -> usize {
    let start = buffer.len();
    let Some(room) = limit.checked_sub(1) else { return 0 };
    buffer.push(if ecn.is_some() { TYPE_ECN } else { TYPE } as u8);
    let count = write_body(buffer, delay, ranges, ecn, room);
    if count == 0 {
        buffer.truncate(start);
    }
    count
}

/// Appends what follows the type; as [`write`], which says more.
pub(super) fn write_body(
    buffer: &mut Vec<u8>,
    delay: u64,
    mut ranges: impl Iterator<Item = RangeInclusive<u64>>,
    ecn: Option<EcnCounts>,
    limit: usize,
) -> usize {
    let Some(first) = ranges.next() else { return 0 };
    let count_len = 1;
    let fixed = head_len(delay, &first) + count_len + ecn.map_or(0, EcnCounts::encoded_len);
    let Some(mut room) = limit.checked_sub(fixed) else { return 0 };
    varint::write(buffer, *first.end());
    varint::write(buffer, delay);
    // The count is known only at the end. It nearly always fits one byte; where it outgrows its place, the
    // ranges written so far move up once.
    let count_at = buffer.len();
    let mut count_len = 1;
    buffer.push(0);
    varint::write(buffer, first.end().saturating_sub(*first.start()));
    let mut smallest = *first.start();
    let mut more: u64 = 0;
    for range in ranges {
        let gap = smallest.checked_sub(*range.end()).and_then(|distance| distance.checked_sub(2));
        let span = range.end().checked_sub(*range.start());
        let (Some(gap), Some(span)) = (gap, span) else {
            debug_assert!(false, "ACK ranges overlap, touch or ascend");
            break;
        };
        let growth = varint::len(more + 1) - count_len;
        let Some(left) = room.checked_sub(varint::len(gap) + varint::len(span) + growth) else { break };
        room = left;
        if growth > 0 {
            buffer.splice(count_at..count_at, std::iter::repeat_n(0, growth));
            count_len += growth;
        }
        varint::write(buffer, gap);
        varint::write(buffer, span);
        smallest = *range.start();
        more += 1;
    }
    patch_count(buffer, count_at, count_len, more);
    if let Some(counts) = ecn {
        varint::write(buffer, counts.ect0);
        varint::write(buffer, counts.ect1);
        varint::write(buffer, counts.ce);
    }
    more as usize + 1
}

/// Writes `count` into the `len` bytes at `at`, which are exactly what its varint takes.
fn patch_count(buffer: &mut [u8], at: usize, len: usize, count: u64) {
    let length_bits = match len {
        1 => 0,
        2 => 0x4000,
        _ => 0x8000_0000,
    };
    let bytes = (count | length_bits).to_be_bytes();
    if let (Some(place), Some(value)) = (buffer.get_mut(at..at + len), bytes.get(bytes.len() - len..)) {
        place.copy_from_slice(value);
    }
}

/// Decodes what follows the type.
pub(super) fn decode(reader: &mut Reader<'_>, has_ecn: bool) -> Result<AckFrame, Fault> {
    const BELOW_ZERO: Fault = Fault::encoding("ACK range below packet number 0");
    let mut largest = reader.varint()?;
    let delay = reader.varint()?;
    let count = reader.varint()?;
    let mut smallest = largest.checked_sub(reader.varint()?).ok_or(BELOW_ZERO)?;
    // Refused before anything is allocated: a count costs the peer 8 bytes at most.
    let count = usize::try_from(count).ok().filter(|count| *count <= reader.remaining() / MIN_RANGE_LEN);
    let count = count.ok_or(Fault::encoding("ACK announces more ranges than the packet holds"))?;
    let mut ranges = Vec::with_capacity(count + 1);
    ranges.push(smallest..=largest);
    for _ in 0..count {
        let gap = reader.varint()?;
        let span = reader.varint()?;
        // spec: rfc9000 19.3.1 negative-number-closes
        largest = smallest.checked_sub(gap + 2).ok_or(BELOW_ZERO)?;
        smallest = largest.checked_sub(span).ok_or(BELOW_ZERO)?;
        ranges.push(smallest..=largest);
    }
    let ecn = if has_ecn {
        Some(EcnCounts { ect0: reader.varint()?, ect1: reader.varint()?, ce: reader.varint()? })
    } else {
        None
    };
    Ok(AckFrame { delay, ranges, ecn })
}

#[cfg(test)]
mod tests;
