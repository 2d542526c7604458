//! The memory that datagrams are received into, and that their data lives in until it is read.

use std::collections::VecDeque;
use std::io::IoSliceMut;

use bytes::BytesMut;
use quinn_udp::{BATCH_SIZE, RecvMeta};

/// Bytes of one reception: the largest UDP payload, and the largest run of datagrams that GRO makes of several.
const RECEPTION: usize = 64 * 1024;

/// Bytes of an arena: two full receptions.
const ARENA: usize = 2 * RECEPTION;

/// Bytes asked for with each arena that are never written, so that they cost addresses and no memory. mimalloc lays blocks of
/// up to 512 KiB together in 4 MiB, and returns these to the system only when all of them are free; what is larger it
/// returns by itself. (The C library does so from 128 KiB on.)
const UNTOUCHED: usize = 512 * 1024;

/// Arenas of one endpoint at most (16 MiB). A peer that sends little data in many datagrams, to a reader that is
/// slow, can pin this much; beyond, each datagram is copied into memory of its own.
const MAX_ARENAS: usize = 128;

/// Receptions taken at once while they are large: as much as stays in the processor's cache from the system's copy to
/// the reader's.
const LARGE_BATCH: usize = if BATCH_SIZE < 4 { BATCH_SIZE } else { 4 };

/// Bytes that the receptions of a batch have on average if they count as large.
const LARGE: usize = 8 * 1024;

/// Free arenas that an endpoint keeps while it has little to do.
const KEPT: usize = 2;

/// Spent arenas looked at for one that is free again before a new one is made.
const RECLAIM_ATTEMPTS: usize = 4;

/// What the system receives into: room for a batch of receptions, reused for ever.
///
/// Receptions are moved from here to arenas. Handing the receive buffers themselves out would save no work:
/// without `unsafe`, memory must be zeroed before the system may fill it, and zeroing a fresh buffer costs what
/// copying out of a hot one does.
pub(crate) struct ReceiveBuffers {
    memory: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
    /// Receptions of the last batch.
    filled: usize,
    /// The last batch had no room for more receptions.
    is_full: bool,
    /// Receptions to take at most next time.
    batch: usize,
}

impl ReceiveBuffers {
    pub(crate) fn new() -> Self {
        // Zeroed pages come untouched from the system: only what receptions use is ever resident.
        let memory = vec![0; RECEPTION * BATCH_SIZE];
        Self {
            memory,
            metas: [RecvMeta::default(); BATCH_SIZE],
            filled: 0,
            is_full: false,
            batch: BATCH_SIZE,
        }
    }

    /// Lets `receive` fill the buffers; it answers with the number of receptions.
    pub(crate) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> std::io::Result<usize>,
    ) -> std::io::Result<usize> {
        self.filled = 0;
        let mut buffers = self.memory.chunks_exact_mut(RECEPTION);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(buffers.next().unwrap_or_default()));
        let (slices, metas) = (slices.get_mut(..self.batch), self.metas.get_mut(..self.batch));
        let (slices, metas) = (slices.unwrap_or_default(), metas.unwrap_or_default());
        self.filled = receive(slices, metas)?.min(metas.len());
        self.is_full = self.filled == metas.len();
        let bytes: usize = metas.iter().take(self.filled).map(|meta| meta.len).sum();
        self.batch = if bytes > self.filled * LARGE { LARGE_BATCH } else { BATCH_SIZE };
        Ok(self.filled)
    }

    /// The last [`fill`](Self::fill) had no room for more: there may be more.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The receptions of the last [`fill`](Self::fill).
    pub(crate) fn receptions(&self) -> impl Iterator<Item = (&RecvMeta, &[u8])> {
        let receptions = self.metas.iter().zip(self.memory.chunks_exact(RECEPTION)).take(self.filled);
        receptions.map(|(meta, buffer)| (meta, buffer.get(..meta.len).unwrap_or(buffer)))
    }
}

/// Memory that received data lives in: receptions are laid one behind the other, and an arena is used again when
/// all data in it has been read.
pub(crate) struct Arenas {
    current: BytesMut,
    spent: VecDeque<BytesMut>,
}

impl Arenas {
    pub(crate) fn new() -> Self {
        Self { current: new_arena(), spent: VecDeque::new() }
    }

    /// Moves a reception to an arena, and answers with the datagrams of `stride` bytes in it (the last may be shorter).
    pub(crate) fn place(&mut self, reception: &[u8], stride: usize) -> Run {
        let whole = reception.len().max(1);
        let stride = if stride == 0 { whole } else { stride.min(whole) };
        if !self.make_room(reception.len()) {
            return Run { data: BytesMut::from(reception), stride, is_copied: true };
        }
        self.current.extend_from_slice(reception);
        Run { data: self.current.split(), stride, is_copied: false }
    }

    /// Makes the current arena one with room for `size` bytes; false if all memory allowed is in use.
    fn make_room(&mut self, size: usize) -> bool {
        if self.current.capacity() >= UNTOUCHED + size {
            return true;
        }
        if is_free(&mut self.current) {
            self.give_back();
            return true;
        }
        let next = match self.reclaim() {
            Some(arena) => arena,
            None if self.spent.len() + 1 < MAX_ARENAS => new_arena(),
            None => return false,
        };
        self.spent.push_back(std::mem::replace(&mut self.current, next));
        true
    }

    /// A spent arena in which no data is left, if one is near; the oldest are the likeliest. Those that are still
    /// in use go to the back, so that data which nobody reads does not hide the rest.
    fn reclaim(&mut self) -> Option<BytesMut> {
        for _ in 0..RECLAIM_ATTEMPTS.min(self.spent.len()) {
            let mut arena = self.spent.pop_front()?;
            if is_free(&mut arena) {
                self.give_back();
                return Some(arena);
            }
            self.spent.push_back(arena);
        }
        None
    }

    /// Returns the free arenas but for a few to the system. [`Self::give_back`] does that only as data arrive.
    pub(crate) fn trim(&mut self) {
        if self.spent.len() <= KEPT {
            return;
        }
        let mut kept = 0;
        self.spent.retain_mut(|arena| {
            let is_kept = kept < KEPT || !is_free(arena);
            kept += usize::from(is_kept);
            is_kept
        });
        self.spent.shrink_to(KEPT.max(2 * self.spent.len()));
    }

    /// Returns an arena to the system if there are more than the load needs: a free one beside the one just found.
    fn give_back(&mut self) {
        if self.spent.front_mut().is_some_and(is_free) {
            self.spent.pop_front();
        }
    }
}

/// The datagrams of one reception.
#[derive(Default)]
pub(crate) struct Run {
    data: BytesMut,
    stride: usize,
    /// Each gets memory of its own.
    is_copied: bool,
}

impl Iterator for Run {
    type Item = BytesMut;

    fn next(&mut self) -> Option<BytesMut> {
        if self.data.is_empty() {
            return None;
        }
        let is_last = self.data.len() <= self.stride;
        let datagram = if is_last { std::mem::take(&mut self.data) } else { self.data.split_to(self.stride) };
        Some(if self.is_copied { BytesMut::from(&datagram[..]) } else { datagram })
    }
}

fn new_arena() -> BytesMut {
    BytesMut::with_capacity(UNTOUCHED + ARENA)
}

/// Takes an arena back if no data in it is in use.
fn is_free(arena: &mut BytesMut) -> bool {
    arena.try_reclaim(UNTOUCHED + ARENA)
}

#[cfg(test)]
mod tests;
