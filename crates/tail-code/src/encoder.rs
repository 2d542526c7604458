//! Recovery symbols from a block.

use reed_solomon_simd::engine::Engine;
use reed_solomon_simd::rate::{DefaultRateEncoder, RateEncoder};

use crate::Shape;
use crate::engine::{self, Task};

/// All recovery symbols of the block `data`, one after the other. `None` if `data` is not as long as `shape` says.
pub fn encode(shape: Shape, data: &[u8]) -> Option<Vec<u8>> {
    if data.len() != shape.length() {
        return None;
    }
    engine::run(shape.length(), Encoding { shape, data })
}

pub(crate) struct Encoding<'a> {
    pub(crate) shape: Shape,
    pub(crate) data: &'a [u8],
}

impl Task for Encoding<'_> {
    type Output = Option<Vec<u8>>;

    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self { shape, data } = self;
        let size = shape.symbol_size();
        let (source, recovery) = (shape.source_count(), shape.recovery_count());
        let mut encoder = DefaultRateEncoder::new(source, recovery, size, engine, None).ok()?;
        let mut padded = Vec::new();
        for symbol in data.chunks(size) {
            if symbol.len() == size {
                encoder.add_original_shard(symbol).ok()?;
            } else {
                padded.extend_from_slice(symbol);
                padded.resize(size, 0);
                encoder.add_original_shard(&padded).ok()?;
            }
        }
        let result = encoder.encode().ok()?;
        let mut symbols = Vec::with_capacity(recovery * size);
        for symbol in result.recovery_iter() {
            symbols.extend_from_slice(symbol);
        }
        Some(symbols)
    }
}
