//! How Chromium is started.

use std::path::PathBuf;

use super::Order;
use super::browser::host_of;
use crate::command::page::protocol::Protocol;

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
    /// `far` is the host at the far end and the address that stands for it.
    pub(super) fn new(order: &Order, far: Option<(&str, &str)>) -> Result<Self, String> {
        let mut arguments: Vec<String> = ALWAYS.iter().map(|&argument| argument.to_owned()).collect();
        arguments.push(format!("--user-data-dir={}", order.folder.join("profile").display()));
        if let Some((host, far)) = far {
            let others = order.others.map(|port| format!("MAP *:443 {far}:{port}, ")).unwrap_or_default();
            arguments.push(format!("--host-resolver-rules=MAP {host} {far}, {others}MAP * ~NOTFOUND"));
        }
        match order.protocol {
            Protocol::H3 => {
                let host = host_of(&order.url)?;
                let origins: Vec<String> = order.ports.iter().map(|port| format!("{host}:{port}")).collect();
                arguments.push(format!("--origin-to-force-quic-on={}", origins.join(",")));
            }
            // Other hosts come as they are.
            Protocol::H1 if order.others.is_some() => arguments.push("--disable-quic".to_owned()),
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
