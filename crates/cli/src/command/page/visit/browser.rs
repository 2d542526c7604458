//! How the browser is found and started.

use std::path::{Path, PathBuf};

use super::Order;
use crate::command::page::protocol::Protocol;

/// Names that Chromium has.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/// A program with its arguments.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) folder: PathBuf,
}

/// What makes it a browser that does nothing but what it is asked to. Without its sandbox, as a new network namespace
/// is one already and root cannot have it; it loads nothing but the pages that are compared.
const ALWAYS: [&str; 17] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--mute-audio",
    "--window-size=1366,768",
    "--remote-debugging-pipe",
];

impl Launch {
    pub(super) fn new(order: &Order, far: Option<&str>) -> Result<Self, String> {
        let mut arguments: Vec<String> = ALWAYS.iter().map(|&argument| argument.to_owned()).collect();
        arguments.push(format!("--user-data-dir={}", order.folder.join("profile").display()));
        match (&order.far_host, far) {
            (Some(host), Some(far)) => {
                arguments.push(format!("--host-resolver-rules=MAP {host} {far}, MAP * ~NOTFOUND"));
            }
            (Some(_), None) => return Err("there is no path: POSTHASTE_FAR is not set".to_owned()),
            (None, _) => {}
        }
        match order.protocol {
            Protocol::H3 => {
                let host = host_of(&order.url)?;
                let origins: Vec<String> = order.ports.iter().map(|port| format!("{host}:{port}")).collect();
                arguments.push(format!("--origin-to-force-quic-on={}", origins.join(",")));
            }
            Protocol::H2 => arguments.push("--disable-quic".to_owned()),
            Protocol::H1 => arguments.extend(["--disable-quic", "--disable-http2"].map(str::to_owned)),
        }
        if !order.spki.is_empty() {
            // `--ignore-certificate-errors` does not reach QUIC.
            arguments.push(format!("--ignore-certificate-errors-spki-list={}", order.spki.join(",")));
        }
        if let Some(net_log) = &order.net_log {
            arguments.push(format!("--log-net-log={}", net_log.display()));
        }
        arguments.push("about:blank".to_owned());
        Ok(Self { program: order.browser.clone(), arguments, folder: order.folder.clone() })
    }
}

fn host_of(url: &str) -> Result<String, String> {
    let uri: http::Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
    uri.host().map(str::to_owned).ok_or_else(|| format!("{url} has no host"))
}

/// The browser of this name or place. `chromium` stands for all its names.
pub(in crate::command::page) fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names: &[&str] = if name == NAMES[0] { &NAMES } else { &[name] };
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|file| is_program(file)))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// True if the program is a snap, whose `/tmp` is another one. Its links lead to `snap` itself.
pub(in crate::command::page) fn is_snap(program: &Path) -> bool {
    let target = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    target.starts_with("/snap") || target.file_name().is_some_and(|name| name == "snap")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snap_is_known_by_where_its_link_leads() {
        let folder = tempfile::tempdir().unwrap();
        let (snap, link) = (folder.path().join("snap"), folder.path().join("chromium"));
        std::fs::write(&snap, "").unwrap();
        std::os::unix::fs::symlink(&snap, &link).unwrap();
        assert!(is_snap(&link) && is_snap(Path::new("/snap/bin/chromium")));
        assert!(!is_snap(Path::new("/usr/bin/google-chrome")));
    }
}
