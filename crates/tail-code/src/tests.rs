use proptest::collection::vec;
use proptest::prelude::*;
use reed_solomon_simd::engine::{DefaultEngine, Naive};

use super::*;
use crate::decoder::Decoding;
use crate::encoder::Encoding;
use crate::engine::Task;

/// Bytes that differ from symbol to symbol.
fn data(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn shape(length: usize, size: usize, recovery: usize) -> Shape {
    Shape::new(length as u64, size as u64, recovery as u64).unwrap()
}

#[test]
fn shapes_are_within_limits() {
    let new = |length, size, recovery| Shape::new(length, size, recovery).err();
    assert_eq!(new(1, 64, 1), None);
    assert_eq!(new(2 << 20, 128, 16_384), None);
    assert_eq!(new(4 << 20, 2048, 1), None);
    assert_eq!(new(0, 64, 1), Some(ShapeError::Length));
    assert_eq!(new((4 << 20) + 1, 2048, 1), Some(ShapeError::Length));
    assert_eq!(new(u64::MAX, 64, 1), Some(ShapeError::Length));
    for size in [0, 1, 63, 65, 96, 2112, 1 << 40] {
        assert_eq!(new(1000, size, 1), Some(ShapeError::SymbolSize), "{size}");
    }
    assert_eq!(new(1000, 64, 0), Some(ShapeError::Count));
    assert_eq!(new(1000, 64, 32_769), Some(ShapeError::Count));
    assert_eq!(new((2 << 20) + 1, 64, 1), Some(ShapeError::Count));
}

#[test]
fn symbols_are_as_small_as_their_number_permits() {
    for (length, size) in [(1, 64), (1 << 20, 64), ((1 << 20) + 1, 128), (MAX_LENGTH, 128)] {
        assert_eq!(Shape::symbol_size_for(length), size);
        assert!(Shape::new(length as u64, size as u64, 1).is_ok());
    }
}

/// Every pattern of losses among at most six source and four recovery symbols.
#[test]
fn any_symbols_restore_the_block() {
    for source in 1..=6_usize {
        for recovery in 1..=4_usize {
            let length = source * 64 - 13;
            let data = data(length);
            let shape = shape(length, 64, recovery);
            let symbols = encode(shape, &data).unwrap();
            for pattern in 0..1_u32 << (source + recovery) {
                let arrived = |index: usize| pattern & (1 << index) != 0;
                let mut decoder = Decoder::new(shape);
                for index in (0..source).filter(|index| arrived(*index)) {
                    let range = index * 64..length.min((index + 1) * 64);
                    decoder.write(range.start, &data[range]);
                }
                for index in (0..recovery).filter(|index| arrived(source + index)) {
                    assert!(decoder.add_recovery(index, &symbols[index * 64..(index + 1) * 64], 64));
                }
                let missing = (0..source).filter(|index| !arrived(*index)).count();
                let has = (0..recovery).filter(|index| arrived(source + index)).count();
                assert_eq!(decoder.missing(), missing);
                assert_eq!(decoder.is_ready(), missing > 0 && has >= missing);
                let is_whole = missing == 0 || decoder.is_ready();
                let ranges = decoder.decode();
                assert_eq!(ranges.is_empty(), missing == 0 || has < missing);
                assert_eq!(decoder.get(0..length) == data, is_whole, "{source} {recovery} {pattern:b}");
            }
        }
    }
}

/// A process begins with the engine without large tables and goes on with the other.
#[test]
fn both_engines_make_the_same_symbols_and_restore_the_same() {
    for (length, size, recovery) in [(1000, 64, 4), (40_000, 64, 300), (70_001, 128, 90)] {
        let (data, shape) = (data(length), shape(length, size, recovery));
        let symbols = Encoding { shape, data: &data }.run(Naive::new()).unwrap();
        assert_eq!(Encoding { shape, data: &data }.run(DefaultEngine::new()).unwrap(), symbols);
        let mut decoder = Decoder::new(shape);
        decoder.write(0, &data[..size * 2]);
        decoder.write(size * 5, &data[size * 5..]);
        assert!(decoder.add_recovery(0, &symbols, usize::MAX));
        let light = Decoding(&decoder).run(Naive::new()).unwrap();
        assert_eq!(light.len(), 3);
        assert_eq!(Decoding(&decoder).run(DefaultEngine::new()).unwrap(), light);
    }
}

#[test]
fn the_greatest_block_is_restored() {
    let data = data(MAX_LENGTH);
    let shape = shape(MAX_LENGTH, 128, 6000);
    let symbols = encode(shape, &data).unwrap();
    let mut decoder = Decoder::new(shape);
    // Packets of 1,170 bytes, of which one in nine is lost.
    for (packet, bytes) in data.chunks(1170).enumerate().filter(|(packet, _)| packet % 9 != 4) {
        decoder.write(packet * 1170, bytes);
    }
    assert!(decoder.missing() > 3600 && decoder.missing() <= 6000, "{}", decoder.missing());
    assert!(decoder.add_recovery(0, &symbols, usize::MAX));
    let ranges = decoder.decode();
    assert_eq!(ranges.len(), data.chunks(1170).count() / 9);
    assert!(decoder.get(0..MAX_LENGTH) == data);
    assert_eq!(decoder.missing(), 0);
}

#[test]
fn recovery_symbols_are_bounded_and_whole() {
    let data = data(640);
    let shape = shape(640, 64, 8);
    let symbols = encode(shape, &data).unwrap();
    let mut decoder = Decoder::new(shape);
    decoder.write(0, &data[..384]);
    for (first, len) in [(0, 0), (0, 63), (0, 65), (8, 64), (usize::MAX, 64), (7, 128)] {
        assert!(!decoder.add_recovery(first, &symbols[..len], usize::MAX), "{first} {len}");
    }
    assert_eq!(decoder.recovery_bytes(), 0);
    assert!(decoder.add_recovery(0, &symbols[..256], 130));
    assert_eq!(decoder.recovery_bytes(), 128);
    // The same again, and more than are missing.
    assert!(decoder.add_recovery(0, &symbols[..128], usize::MAX));
    assert_eq!(decoder.recovery_bytes(), 128);
    assert!(decoder.add_recovery(0, &symbols, usize::MAX));
    assert_eq!(decoder.recovery_bytes(), 256);
    assert_eq!(decoder.decode().first(), Some(&(384..640)));
    assert_eq!(encode(shape, &data[1..]), None);
}

proptest! {
    /// Whatever arrives, in whatever pieces and order: what was written first holds, and a block whose bytes are the
    /// original's is restored.
    #[test]
    fn pieces_in_any_order(
        length in 1_usize..3000,
        pieces in vec((0_usize..3100, 0_usize..900), 0..12),
        recovery in 1_usize..20,
        kept in vec(any::<bool>(), 20),
    ) {
        let data = data(length);
        let shape = shape(length, 64, recovery);
        let symbols = encode(shape, &data).unwrap();
        let mut decoder = Decoder::new(shape);
        let mut has = vec![false; length];
        for (from, len) in pieces {
            let bytes: Vec<u8> = (from..from + len).map(|at| data.get(at).copied().unwrap_or(0xee)).collect();
            decoder.write(from, &bytes);
            has.iter_mut().skip(from).take(len).for_each(|has| *has = true);
        }
        let missing = has.chunks(64).filter(|symbol| symbol.contains(&false)).count();
        prop_assert_eq!(decoder.missing(), missing);
        for index in (0..recovery).filter(|index| kept[*index]) {
            prop_assert!(decoder.add_recovery(index, &symbols[index * 64..(index + 1) * 64], 64));
        }
        let is_ready = decoder.is_ready();
        let ranges = decoder.decode();
        prop_assert_eq!(ranges.iter().map(|range| range.len().div_ceil(64)).sum::<usize>(), if is_ready { missing } else { 0 });
        for (at, byte) in data.iter().enumerate().filter(|(at, _)| is_ready || has[*at]) {
            prop_assert_eq!(decoder.get(at..at + 1), &[*byte]);
        }
    }

    /// Symbols that are no code's restore something, never more than the block, and nothing panics.
    #[test]
    fn forged_symbols(
        length in 1_usize..2000,
        pieces in vec((0_usize..2100, vec(any::<u8>(), 0..400)), 0..8),
        forged in vec((0_usize..40, vec(any::<u8>(), 0..700)), 0..8),
    ) {
        let mut decoder = Decoder::new(shape(length, 64, 32));
        for (from, bytes) in &pieces {
            decoder.write(*from, bytes);
        }
        for (first, bytes) in &forged {
            decoder.add_recovery(*first, bytes, 2048);
            prop_assert!(decoder.recovery_bytes() <= 32 * 64);
        }
        for range in decoder.decode() {
            prop_assert!(range.end <= length && !range.is_empty());
        }
    }
}
