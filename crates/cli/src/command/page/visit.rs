//! `posthaste page-visit`: the near end of a run. It starts a browser, loads a page, and prints what it saw as JSON.

mod bidi;
mod browser;
mod chromium;
mod devtools;
mod firefox;
mod launch;
mod listening;
mod process;
mod remote;
mod waterfall;

use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::background::Downloads;
use super::protocol::Protocol;
use super::record::{Seen, Visit};
use crate::args::PageVisit;
use crate::exit::{FAILED, Failure};
use crate::printer;
#[cfg(feature = "edge")]
pub(super) use browser::is_firefox;
pub(super) use browser::{find as find_browser, is_snap};

/// What is to be visited, and how.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) browser: PathBuf,
    pub(super) url: String,
    pub(super) protocol: Protocol,
    /// Hashes of public keys whose certificates are trusted whatever they say.
    pub(super) spki: Vec<String>,
    /// The host that is at the far end of the path; no other can be reached. None: names mean what they always do.
    pub(super) far_host: Option<String>,
    /// Ports of that host that QUIC is forced on, and that must be listened on before the visit.
    pub(super) ports: Vec<u16>,
    /// TCP ports that must be listened on, too.
    pub(super) relayed: Vec<u16>,
    /// The far end's port that port 443 of every other host is reached through; without one, no other host is reached.
    pub(super) others: Option<u16>,
    /// True if the server is one that this run has started, and may not listen yet.
    pub(super) is_awaited: bool,
    /// Requests that a whole page takes, where that is known.
    pub(super) requests: Option<usize>,
    /// Downloads beside the visits.
    pub(super) background: u16,
    /// A second visit follows, over new connections.
    pub(super) is_warm_wanted: bool,
    /// Seconds that a visit may take.
    pub(super) timeout: f64,
    /// Folder for the browser's profile and whatever it says.
    pub(super) folder: PathBuf,
    /// The browser's own trace of its network.
    pub(super) net_log: Option<PathBuf>,
}

pub(crate) fn run(args: &PageVisit) -> Result<ExitCode, Failure> {
    let text = std::fs::read(&args.order).map_err(Failure::runtime)?;
    let order: Order = serde_json::from_slice(&text).map_err(Failure::runtime)?;
    let outcome = carry_out(&order);
    let code = if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) };
    let seen = outcome.unwrap_or_else(|failure| Seen { failure: Some(failure), ..Seen::default() });
    printer::json_line(&seen).map_err(Failure::runtime)?;
    Ok(code)
}

fn carry_out(order: &Order) -> Result<Seen, String> {
    let far = std::env::var("POSTHASTE_FAR").ok();
    if order.is_awaited {
        listening::wait(order.protocol, &order.ports)?;
        listening::wait(Protocol::H2, &order.relayed)?;
    }
    let mut browser = browser::start(order, far.as_deref())?;
    let product = browser.product()?;
    let mut visits = Vec::new();
    browser.warm_up()?;
    let downloads = match (order.background, &far) {
        (1.., Some(far)) => Some(Downloads::start(order.background, far, &order.folder)?),
        _ => None,
    };
    visits.push(judge(order, browser.visit(order)?)?);
    if order.is_warm_wanted {
        browser.forget_all_but_sessions()?;
        let warm = judge(order, browser.visit(order)?)?;
        if warm.objects.first().is_none_or(|document| document.is_reused) {
            return Err("the browser kept a connection for the second visit".to_owned());
        }
        visits.push(warm);
    }
    browser.close();
    let background_rate = downloads.map(Downloads::finish).transpose()?;
    Ok(Seen { browser: product, visits, background_rate, failure: None })
}

/// Refuses a visit that does not show what it is for.
fn judge(order: &Order, visit: Visit) -> Result<Visit, String> {
    let wanted = order.protocol.alpn();
    let document = visit.objects.first().ok_or("the browser has asked for nothing")?;
    if (300..400).contains(&document.status) {
        let next = visit.objects.get(1).map_or("nowhere", |object| object.url.as_str());
        return Err(format!("{} redirects to {next}: give the URL of the page itself", order.url));
    }
    if document.protocol != wanted {
        return Err(format!("the document came by {}, not by {wanted}", document.protocol));
    }
    if !(200..300).contains(&document.status) {
        return Err(format!("the document came with status {}", document.status));
    }
    let Some(requests) = order.requests else { return Ok(visit) };
    let wrong = visit.objects.iter().find(|object| {
        object.failure.is_some() || object.status != 200 || object.protocol != wanted || object.is_cached
    });
    if let Some(object) = wrong {
        return Err(format!(
            "{} came by {:?} with status {}{}{}",
            object.url,
            object.protocol,
            object.status,
            if object.is_cached { ", from a cache" } else { "" },
            object.failure.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
        ));
    }
    if visit.objects.len() != requests {
        return Err(format!("the browser has made {} requests, not {requests}", visit.objects.len()));
    }
    Ok(visit)
}
