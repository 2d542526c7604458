//! Recovery symbols from a block.

use reed_solomon_simd::ReedSolomonEncoder;

use crate::Shape;

/// All recovery symbols of the block `data`, one after the other. `None` if `data` is not as long as `shape` says.
pub fn encode(shape: Shape, data: &[u8]) -> Option<Vec<u8>> {
    let size = shape.symbol_size();
    if data.len() != shape.length() {
        return None;
    }
    let mut encoder = ReedSolomonEncoder::new(shape.source_count(), shape.recovery_count(), size).ok()?;
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
    let mut recovery = Vec::with_capacity(shape.recovery_count() * size);
    for symbol in result.recovery_iter() {
        recovery.extend_from_slice(symbol);
    }
    Some(recovery)
}
