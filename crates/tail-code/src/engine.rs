//! Which of the crate's engines computes: they give the same symbols, and differ in what they cost.

use std::sync::atomic::{AtomicUsize, Ordering};

use reed_solomon_simd::engine::{DefaultEngine, Engine, Naive};

/// Bytes of blocks that a process computes without the fast engine's tables. These take 8 MiB and as many instructions
/// as ten blocks of 100 kB without them; most processes that fetch one object need no code, or one.
const LIGHT_WORK: usize = 1 << 20;

/// How many times the work of encoding a block its decoding is.
pub(crate) const DECODING: usize = 4;

/// What is done with an engine.
pub(crate) trait Task {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<E: Engine>(self, engine: E) -> Self::Output;
}

/// Does `task`, which is the work of encoding so many bytes: with tables that cost little to make until the process has
/// done enough for the large ones.
pub(crate) fn run<T: Task>(work: usize, task: T) -> T::Output {
    static DONE: AtomicUsize = AtomicUsize::new(0);
    let done = DONE.load(Ordering::Relaxed);
    if done.saturating_add(work) > LIGHT_WORK {
        // What is large pays for the tables, and so does all that follows.
        DONE.store(LIGHT_WORK, Ordering::Relaxed);
        return task.run(DefaultEngine::new());
    }
    DONE.fetch_add(work, Ordering::Relaxed);
    task.run(Naive::new())
}
