//! Which browsers there are, how one is found, and what each can do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Order;
use super::chromium::Chromium;
use super::firefox::Firefox;
use crate::command::page::record::Visit;

/// Names that Chromium has.
const CHROMIUM_NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/// Names that Firefox has.
const FIREFOX_NAMES: [&str; 2] = ["firefox", "firefox-esr"];

/// What a browser may take for anything but the network.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// The same for its start, which took more than 20 s on two cores at a load above 15.
pub(super) const START_PATIENCE: Duration = Duration::from_secs(90);

/// Quiet for so long after the load event, a page is complete: scripts may still ask for more.
pub(super) const QUIET: Duration = Duration::from_millis(500);

/// A page that makes the browser start what it starts at the first page.
pub(super) const WARM_UP: &str = "data:text/html,<p>ready<script>performance.now()</script>";

/// Figures that the page itself knows, a promise; the greatest paint so far is told to observers only.
pub(super) const FIGURES: &str = "new Promise(resolve=>{let largest=null;\
    try{new PerformanceObserver(list=>{for(const e of list.getEntries())largest=e.startTime})\
    .observe({type:'largest-contentful-paint',buffered:true})}catch{}\
    setTimeout(()=>{const n=performance.getEntriesByType('navigation')[0]??{};\
    const first=performance.getEntriesByName('first-contentful-paint')[0];\
    resolve({load:n.loadEventEnd,ready:n.domContentLoadedEventEnd,response:n.responseStart,\
    first:first?first.startTime:null,largest})},100)})";

/// A browser that loads pages one after the other. Errors are for people.
pub(super) trait Browser {
    /// Name and version.
    fn product(&mut self) -> Result<String, String>;
    /// Starts what it starts at its first page.
    fn warm_up(&mut self) -> Result<(), String>;
    /// Loads the page in a new tab.
    fn visit(&mut self, order: &Order) -> Result<Visit, String>;
    /// Closes all connections and drops all files. What TLS and QUIC keep for the next connection stays.
    fn forget_all_but_sessions(&mut self) -> Result<(), String>;
    /// Ends it as a user would.
    fn close(self: Box<Self>);
}

/// Starts the browser that `order` names, whose pages come from `far`.
pub(super) fn start(order: &Order, far: Option<&str>) -> Result<Box<dyn Browser>, String> {
    let far = match (&order.far_host, far) {
        (Some(_), None) => return Err("there is no path: POSTHASTE_FAR is not set".to_owned()),
        (Some(host), Some(far)) => Some((host.as_str(), far)),
        (None, _) => None,
    };
    if is_firefox(&order.browser) {
        Ok(Box::new(Firefox::start(order, far)?))
    } else {
        Ok(Box::new(Chromium::start(order, far)?))
    }
}

/// True if a program of this name is Firefox.
pub(in crate::command::page) fn is_firefox(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.to_string_lossy().starts_with(FIREFOX_NAMES[0]))
}

/// The host that a URL names.
pub(super) fn host_of(url: &str) -> Result<String, String> {
    let uri: http::Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
    uri.host().map(str::to_owned).ok_or_else(|| format!("{url} has no host"))
}

/// The browser of this name or place. `chromium` and `firefox` stand for all their names.
pub(in crate::command::page) fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let families: [&[&str]; 2] = [&CHROMIUM_NAMES, &FIREFOX_NAMES];
    let family = families.into_iter().find(|family| family.first() == Some(&name));
    let own = [name];
    let names = family.unwrap_or(&own);
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
    fn firefox_is_known_by_its_name() {
        for (program, expected) in [
            ("/usr/bin/firefox-esr", true),
            ("/opt/firefox/firefox", true),
            ("firefox-nightly", true),
            ("/opt/firefox/chromium", false),
        ] {
            assert_eq!(is_firefox(Path::new(program)), expected, "{program}");
        }
    }

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
