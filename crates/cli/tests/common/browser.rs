//! Tests that load pages in a real browser, over an emulated path.

use std::process::Command;

use super::{posthaste, run};

/// Whether pages can be loaded here; if not, stderr says why.
pub(crate) fn can_load_pages() -> bool {
    let has_browser = ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .any(|name| Command::new(name).arg("--version").output().is_ok());
    let (code, _, stderr) =
        run(posthaste().args(["emulate", "-q", "--isolate", "--down", "delay=0ms", "--", "true"]));
    if !has_browser || code == 1 {
        eprintln!("SKIPPED, nothing was tested: browser {has_browser}; {stderr}");
    }
    has_browser && code != 1
}

/// Command lines of processes that name this place.
pub(crate) fn processes_with(marker: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let words = ids.filter_map(|id| std::fs::read(format!("/proc/{id}/cmdline")).ok());
    let words = words.map(|words| String::from_utf8_lossy(&words).replace('\0', " "));
    words.filter(|words| words.contains(marker)).collect()
}
