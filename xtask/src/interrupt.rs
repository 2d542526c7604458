//! Ctrl-C as an error: sleeps fail, and the guards of child processes end them on the way out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

use crate::Result;

/// How often a sleeper looks for it.
const TICK: Duration = Duration::from_millis(50);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT and SIGTERM do not end this process, but make [`sleep`] fail.
///
/// # Errors
/// The signals cannot be watched.
pub(crate) fn watch() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let [mut interrupt, mut terminate] = {
        let _context = runtime.enter();
        [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        eprintln!("interrupted: ending the other processes");
        INTERRUPTED.store(true, Ordering::Relaxed);
    });
    Ok(())
}

/// Sleeps.
///
/// # Errors
/// There was a signal, perhaps earlier.
pub(crate) fn sleep(time: Duration) -> Result<()> {
    let until = Instant::now() + time;
    loop {
        if INTERRUPTED.load(Ordering::Relaxed) {
            return Err("interrupted".into());
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(TICK));
    }
}
