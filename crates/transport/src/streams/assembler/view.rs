//! A look at all data of a stream that wait, for the code over its end.

use super::{Assembler, BLOCK};

impl Assembler {
    /// Shows `see` every run of bytes that has arrived and was not read, with its offset.
    pub(crate) fn each_run(&self, mut see: impl FnMut(u64, &[u8])) {
        let mut offset = self.read;
        for (data, _) in self.ready.iter() {
            see(offset, data);
            offset += data.len() as u64;
        }
        see(offset, &self.tail);
        for (number, block) in &self.blocks {
            let mut from = 0;
            while let Some(start) = block.present.next_set(from) {
                let end = block.present.next_clear(start);
                see(number * BLOCK + start as u64, block.data.get(start..end).unwrap_or_default());
                from = end;
            }
        }
    }
}
