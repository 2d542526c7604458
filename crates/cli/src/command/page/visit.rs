//! `posthaste page-visit`: the near end of a run. It starts a browser, loads a page, and prints what it saw as JSON.

mod browser;
mod devtools;
mod listening;
mod waterfall;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::background::Downloads;
use super::protocol::Protocol;
use super::record::{Seen, Visit};
use crate::args::PageVisit;
use crate::exit::{FAILED, Failure};
use crate::printer;
use browser::Launch;
use devtools::DevTools;
use waterfall::Waterfall;

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

/// Quiet for so long after the load event, a page is complete: scripts may still ask for more.
const QUIET: Duration = Duration::from_millis(500);

/// What the browser may take for anything but the network.
const PATIENCE: Duration = Duration::from_secs(20);

/// The browser's own page on which connections can be closed; sessions stay.
const SOCKETS: &str = "chrome://net-internals/#sockets";
/// Before the load event the button is there, but nothing listens to it.
const FLUSH: &str = "(()=>{const b=document.getElementById('sockets-view-flush-button');\
    if(!b||document.readyState!=='complete')return false;b.click();return true})()";

/// A page that makes the browser start what it starts at the first page.
const WARM_UP: &str = "data:text/html,<p>ready<script>performance.now()</script>";

/// Figures that the page itself knows; the greatest paint so far is told to observers only.
const FIGURES: &str = "new Promise(resolve=>{let largest=null;\
    try{new PerformanceObserver(list=>{for(const e of list.getEntries())largest=e.startTime})\
    .observe({type:'largest-contentful-paint',buffered:true})}catch{}\
    setTimeout(()=>{const n=performance.getEntriesByType('navigation')[0]??{};\
    const first=performance.getEntriesByName('first-contentful-paint')[0];\
    resolve({load:n.loadEventEnd,ready:n.domContentLoadedEventEnd,response:n.responseStart,\
    first:first?first.startTime:null,largest})},100)})";

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
    }
    let launch = Launch::new(order, far.as_deref())?;
    let mut devtools = DevTools::start(&launch)?;
    let version = devtools.call(None, "Browser.getVersion", &json!({}), PATIENCE)?;
    let browser = version["product"].as_str().unwrap_or("a browser").to_owned();
    let mut visits = Vec::new();
    let tab = Tab::open(&mut devtools, WARM_UP)?;
    settle(&mut devtools, Duration::from_millis(200))?;
    tab.close(&mut devtools)?;
    let downloads = match (order.background, &far) {
        (1.., Some(far)) => Some(Downloads::start(order.background, far, &order.folder)?),
        _ => None,
    };
    visits.push(visit(&mut devtools, order)?);
    if order.is_warm_wanted {
        forget_all_but_sessions(&mut devtools)?;
        let warm = visit(&mut devtools, order)?;
        if warm.objects.first().is_none_or(|document| document.is_reused) {
            return Err("the browser kept a connection for the second visit".to_owned());
        }
        visits.push(warm);
    }
    devtools.close();
    let background_rate = downloads.map(Downloads::finish).transpose()?;
    Ok(Seen { browser, visits, background_rate, failure: None })
}

/// A tab that is listened to.
struct Tab {
    target: String,
    session: String,
}

impl Tab {
    fn open(devtools: &mut DevTools, url: &str) -> Result<Self, String> {
        let text = |value: &Value, key: &str| {
            let text = value[key].as_str().map(str::to_owned);
            text.ok_or_else(|| format!("the browser has answered without a {key}"))
        };
        let made = devtools.call(None, "Target.createTarget", &json!({ "url": url }), PATIENCE)?;
        let target = text(&made, "targetId")?;
        let attach = json!({ "targetId": target, "flatten": true });
        let attached = devtools.call(None, "Target.attachToTarget", &attach, PATIENCE)?;
        Ok(Self { session: text(&attached, "sessionId")?, target })
    }

    fn call(&self, devtools: &mut DevTools, method: &str, parameters: &Value) -> Result<Value, String> {
        devtools.call(Some(&self.session), method, parameters, PATIENCE)
    }

    fn evaluate(&self, devtools: &mut DevTools, expression: &str) -> Result<Value, String> {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call(devtools, "Runtime.evaluate", &parameters)?;
        if answer.get("exceptionDetails").is_some() {
            return Err(format!("a script of ours has failed in the page: {answer}"));
        }
        Ok(answer["result"]["value"].clone())
    }

    fn close(&self, devtools: &mut DevTools) -> Result<(), String> {
        let parameters = json!({ "targetId": self.target });
        devtools.call(None, "Target.closeTarget", &parameters, PATIENCE).map(drop)
    }
}

/// Lets so much time pass.
fn settle(devtools: &mut DevTools, time: Duration) -> Result<(), String> {
    let deadline = Instant::now() + time;
    while devtools.event(deadline)?.is_some() {}
    Ok(())
}

/// Closes all connections and drops all files. What TLS and QUIC keep for the next connection stays.
fn forget_all_but_sessions(devtools: &mut DevTools) -> Result<(), String> {
    let tab = Tab::open(devtools, SOCKETS)?;
    let deadline = Instant::now() + PATIENCE;
    while tab.evaluate(devtools, FLUSH)? != Value::Bool(true) {
        if Instant::now() > deadline {
            return Err(format!("this browser has no {SOCKETS}, where connections are closed"));
        }
        settle(devtools, Duration::from_millis(50))?;
    }
    tab.call(devtools, "Network.clearBrowserCache", &json!({}))?;
    // What was sent to close connections is on the path; so are the last acknowledgements.
    settle(devtools, Duration::from_secs(1))?;
    tab.close(devtools)
}

/// Loads the page in a new tab.
fn visit(devtools: &mut DevTools, order: &Order) -> Result<Visit, String> {
    let tab = Tab::open(devtools, "about:blank")?;
    for domain in ["Page.enable", "Network.enable"] {
        tab.call(devtools, domain, &json!({}))?;
    }
    settle(devtools, Duration::from_millis(50))?;
    let mut waterfall = Waterfall::default();
    let began = Instant::now();
    let limit = Duration::from_secs_f64(order.timeout);
    let parameters = json!({ "url": order.url });
    // The answer comes with the response's head: what happens before it are events.
    let navigation = devtools.send(Some(&tab.session), "Page.navigate", &parameters)?;
    loop {
        let quiet_at = waterfall.quiet_since().map(|since| since + QUIET);
        let deadline = quiet_at.unwrap_or(began + limit).min(began + limit);
        if let Some(event) = devtools.event(deadline)? {
            if event.session.as_deref() == Some(&tab.session) {
                waterfall.take(&event.method, &event.parameters);
            }
            continue;
        }
        if quiet_at.is_some_and(|quiet_at| Instant::now() >= quiet_at) {
            break;
        }
        return Err(format!(
            "the page was not there after {} s: {}",
            order.timeout,
            waterfall.describe_missing()
        ));
    }
    let answer = devtools.answer(navigation)?;
    if let Some(error) = answer.as_ref().and_then(|answer| answer["errorText"].as_str()) {
        return Err(format!("{} cannot be loaded: {error}", order.url));
    }
    let figures = tab.evaluate(devtools, FIGURES)?;
    tab.close(devtools)?;
    judge(order, waterfall.into_visit(&figures)?)
}

/// Refuses a visit that does not show what it is for.
fn judge(order: &Order, visit: Visit) -> Result<Visit, String> {
    let wanted = order.protocol.alpn();
    let document = visit.objects.first().ok_or("the browser has asked for nothing")?;
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
