//! A block from what has arrived of it, and recovery symbols.

use std::ops::Range;

use reed_solomon_simd::engine::Engine;
use reed_solomon_simd::rate::{DefaultRateDecoder, RateDecoder};

use crate::Shape;
use crate::engine::{self, DECODING, Task};

/// What has arrived of one block and its recovery symbols.
///
/// The work of [`Self::write`] and [`Self::add_recovery`] grows with the bytes given to them. [`Self::decode`] costs in
/// the order of [`Shape::decoder_memory`] and a fixed part of about a millisecond.
#[derive(Debug)]
pub struct Decoder {
    shape: Shape,
    /// The block, with the zeros that fill its last symbol.
    data: Vec<u8>,
    /// One bit for each byte of it that is there.
    present: Vec<u64>,
    /// For each symbol: bytes that are not there.
    absent: Vec<u16>,
    /// Symbols with absent bytes.
    missing: usize,
    /// Recovery symbols, in the order in which they came, and their numbers.
    recovery: Vec<u8>,
    indices: Vec<u16>,
    /// One bit for each recovery symbol that is there.
    has_recovery: Vec<u64>,
}

impl Decoder {
    /// Nothing has arrived.
    pub fn new(shape: Shape) -> Self {
        let (count, size) = (shape.source_count(), shape.symbol_size());
        let padded = count * size;
        // Sizes of symbols fit, and the padding is shorter than one.
        let mut decoder = Self {
            shape,
            data: vec![0; padded],
            present: vec![0; padded / 64],
            absent: vec![size as u16; count],
            missing: count,
            recovery: Vec::new(),
            indices: Vec::new(),
            has_recovery: vec![0; shape.recovery_count().div_ceil(64)],
        };
        for at in shape.length()..padded {
            set(&mut decoder.present, at);
        }
        if let Some(last) = decoder.absent.last_mut() {
            *last -= (padded - shape.length()) as u16;
        }
        decoder
    }

    /// The measures of the block.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Source symbols that are not whole.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// Bytes of recovery symbols that are kept.
    pub fn recovery_bytes(&self) -> usize {
        self.recovery.len()
    }

    /// `bytes` of the block at `offset`; what reaches beyond its end is dropped. Where they overlap others, the first hold.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len()).min(self.shape.length());
        let size = self.shape.symbol_size();
        let mut from = offset;
        while from < end {
            let symbol = from / size;
            let to = end.min((symbol + 1) * size);
            if let Some(part) = bytes.get(from - offset..to - offset) {
                self.write_symbol(symbol, from, part);
            }
            from = to;
        }
    }

    /// Bytes of one symbol.
    fn write_symbol(&mut self, symbol: usize, from: usize, part: &[u8]) {
        let Some(absent) = self.absent.get_mut(symbol).filter(|absent| **absent > 0) else { return };
        let Some(target) = self.data.get_mut(from..from + part.len()) else { return };
        if usize::from(*absent) == part.len() && part.len() == self.shape.symbol_size() {
            target.copy_from_slice(part);
            let words = from / 64..(from + part.len()) / 64;
            if let Some(words) = self.present.get_mut(words) {
                words.fill(u64::MAX);
            }
            *absent = 0;
        } else {
            for (index, (target, byte)) in target.iter_mut().zip(part).enumerate() {
                if !is_set(&self.present, from + index) {
                    set(&mut self.present, from + index);
                    *target = *byte;
                    *absent -= 1;
                }
            }
        }
        self.missing -= usize::from(*absent == 0);
    }

    /// Recovery symbols from number `first` on, of which as many new ones are kept as fit into `room` bytes. False if they
    /// are not whole symbols of this code: then nothing is kept.
    pub fn add_recovery(&mut self, first: usize, symbols: &[u8], room: usize) -> bool {
        let size = self.shape.symbol_size();
        let count = symbols.len() / size;
        let is_whole = count > 0 && symbols.len().is_multiple_of(size);
        if !is_whole || first.saturating_add(count) > self.shape.recovery_count() {
            return false;
        }
        let mut room = room / size;
        for (symbol, index) in symbols.chunks_exact(size).zip(first..) {
            // More than are missing are of no use.
            if room > 0 && self.indices.len() < self.missing && !is_set(&self.has_recovery, index) {
                set(&mut self.has_recovery, index);
                self.recovery.extend_from_slice(symbol);
                self.indices.push(index as u16);
                room -= 1;
            }
        }
        true
    }

    /// True if something is missing, and can be restored.
    pub fn is_ready(&self) -> bool {
        self.missing > 0 && self.indices.len() >= self.missing
    }

    /// Restores what is missing. Returns the ranges of the block that lacked bytes, each of whole symbols, or of what the
    /// last has; none if the block is whole, or there are too few recovery symbols.
    pub fn decode(&mut self) -> Vec<Range<usize>> {
        if !self.is_ready() {
            return Vec::new();
        }
        let size = self.shape.symbol_size();
        let task = Decoding(&*self);
        let Some(restored) = engine::run(DECODING * self.shape.length(), task) else { return Vec::new() };
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (symbol, bytes) in restored {
            let from = symbol * size;
            let to = (from + size).min(self.shape.length());
            self.write(from, &bytes);
            match ranges.last_mut().filter(|last| last.end == from) {
                Some(last) => last.end = to,
                None => ranges.push(from..to),
            }
        }
        ranges
    }

    /// Bytes of the block, zeros where they have not arrived; empty if the range is not within it.
    pub fn get(&self, range: Range<usize>) -> &[u8] {
        self.data.get(range).unwrap_or_default()
    }
}

/// The symbols that are missing, in order, with their numbers.
pub(crate) struct Decoding<'a>(pub(crate) &'a Decoder);

impl Task for Decoding<'_> {
    type Output = Option<Vec<(usize, Vec<u8>)>>;

    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Decoder { shape, absent, data, recovery, indices, .. } = self.0;
        let size = shape.symbol_size();
        let (source, count) = (shape.source_count(), shape.recovery_count());
        let mut decoder = DefaultRateDecoder::new(source, count, size, engine, None).ok()?;
        for (index, (symbol, absent)) in data.chunks_exact(size).zip(absent).enumerate() {
            if *absent == 0 {
                decoder.add_original_shard(index, symbol).ok()?;
            }
        }
        for (symbol, index) in recovery.chunks_exact(size).zip(indices) {
            decoder.add_recovery_shard(usize::from(*index), symbol).ok()?;
        }
        let result = decoder.decode().ok()?;
        Some(result.restored_original_iter().map(|(index, symbol)| (index, symbol.to_vec())).collect())
    }
}

fn is_set(words: &[u64], at: usize) -> bool {
    words.get(at / 64).is_some_and(|word| word & (1 << (at % 64)) != 0)
}

fn set(words: &mut [u64], at: usize) {
    if let Some(word) = words.get_mut(at / 64) {
        *word |= 1 << (at % 64);
    }
}
