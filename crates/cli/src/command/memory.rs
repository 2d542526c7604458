//! Gives memory that a server no longer uses back to the system.
//!
//! mimalloc returns what has been free for a second, but it looks only at every ten-thousandth allocation that needs more
//! than a list of free blocks, and when a thread ends. A server whose crowd has left does too little for the first, and its
//! threads do not end. The crate has no safe function that makes it look; so a thread ends now and then.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(5);

/// Gives memory back now and then, without end.
pub(super) async fn keep_giving_back() {
    loop {
        sleep(PERIOD).await;
        // What a crowd has left behind can take a while: connections do not wait for it.
        let _ = spawn_blocking(give_back).await;
    }
}

/// Gives back what has been free for a second. Without another thread it does nothing: the next time there may be one.
fn give_back() {
    // Only a thread that has allocated something has anything to do at its end.
    let thread = thread::Builder::new().name("memory".to_owned()).spawn(|| drop(black_box(Box::new(0_u8))));
    if let Ok(thread) = thread {
        // It only ends. A thread that is detached as it ends can take the process with it: see `FAREWELL`.
        let _ = thread.join();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    /// Anonymous memory of this process, in bytes.
    fn anonymous_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    #[test]
    fn memory_that_is_free_goes_back_to_the_system() {
        // Beside other tests' threads more than half of it stays.
        let mut own = Command::new(std::env::current_exe().unwrap());
        let run = own.args(["--ignored", "--exact", "command::memory::tests::alone"]).output().unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    #[ignore = "measures its process: the test above runs it in one of its own"]
    fn alone() {
        const BLOCKS: usize = 2_000;
        const BLOCK: usize = 100_000;
        let before = anonymous_bytes();
        let blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|_| vec![7; BLOCK]).collect();
        assert!(anonymous_bytes() > before + (BLOCKS * BLOCK / 2) as u64);
        drop(black_box(blocks));
        thread::sleep(Duration::from_millis(1_500));
        give_back();
        let left = anonymous_bytes().saturating_sub(before);
        assert!(left < (BLOCKS * BLOCK / 4) as u64, "{left} bytes are left");
    }
}
