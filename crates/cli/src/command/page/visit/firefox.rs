//! Firefox, by `WebDriver BiDi`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Order;
use super::bidi::Bidi;
use super::browser::{Browser, FIGURES, PATIENCE, QUIET, START_PATIENCE, WARM_UP, host_of};
use super::process::Process;
use super::remote::Remote;
use super::waterfall::Waterfall;
use crate::command::page::protocol::Protocol;
use crate::command::page::record::Visit;

/// What Firefox says on stderr once it listens, before the address.
const LISTENING: &str = "WebDriver BiDi listening on ws://";

/// What makes it a browser that does nothing but what it is asked to, beyond what remote control switches off by itself.
const QUIET_PREFERENCES: [(&str, bool); 10] = [
    ("app.normandy.enabled", false),
    ("app.update.enabled", false),
    ("browser.chrome.site_icons", false),
    ("browser.shell.checkDefaultBrowser", false),
    ("datareporting.policy.dataSubmissionEnabled", false),
    ("network.captive-portal-service.enabled", false),
    ("network.connectivity-service.enabled", false),
    ("network.dns.disablePrefetch", true),
    ("network.prefetch-next", false),
    ("toolkit.telemetry.enabled", false),
];

/// Run with the browser's own rights: closes all connections and drops all files; sessions of TLS and address tokens stay.
const FORGET: &str = "(Services.cache2.clear(),ChromeUtils.clearResourceCache(),\
    Services.obs.notifyObservers(null,'net:prune-all-connections'),true)";

/// A Firefox that runs.
pub(super) struct Firefox {
    bidi: Bidi,
    product: String,
    process: Process,
}

impl Firefox {
    /// Starts it. `far` is the host at the far end and the address that stands for it.
    pub(super) fn start(order: &Order, far: Option<(&str, &str)>) -> Result<Self, String> {
        let profile = order.folder.join("profile");
        let failed = |error: std::io::Error| {
            format!("cannot write the browser's profile {}: {error}", profile.display())
        };
        std::fs::create_dir_all(&profile).map_err(failed)?;
        std::fs::write(profile.join("user.js"), preferences(order, far)?).map_err(failed)?;
        let mut process = Process::start(command(order, &profile), &order.folder)?;
        let mut bidi = Bidi::connect(await_address(&mut process)?)?;
        // One hash is that of the servers that this command starts, more are the user's; other servers must prove who
        // they are.
        let is_trusted = order.is_awaited || order.spki.len() > 1;
        let capabilities =
            json!({ "capabilities": { "alwaysMatch": { "acceptInsecureCerts": is_trusted } } });
        let session = bidi.call("session.new", &capabilities, START_PATIENCE)?;
        let version = session["capabilities"]["browserVersion"].as_str().unwrap_or("?");
        let product = format!("Firefox/{version}");
        bidi.call("session.subscribe", &json!({ "events": ["network", "browsingContext.load"] }), PATIENCE)?;
        Ok(Self { bidi, product, process })
    }

    /// Opens a tab; its name.
    fn open_tab(&mut self) -> Result<String, String> {
        let made = self.bidi.call("browsingContext.create", &json!({ "type": "tab" }), PATIENCE)?;
        let context = made["context"].as_str().ok_or("the browser has made a tab without a name")?;
        Ok(context.to_owned())
    }

    fn close_tab(&mut self, tab: &str) -> Result<(), String> {
        self.bidi.call("browsingContext.close", &json!({ "context": tab }), PATIENCE).map(drop)
    }

    /// The value of a script, promises awaited, as JSON has it.
    fn evaluate(&mut self, context: &str, expression: &str) -> Result<Value, String> {
        let parameters = json!({
            "expression": format!("Promise.resolve({expression}).then(JSON.stringify)"),
            "target": { "context": context },
            "awaitPromise": true,
        });
        let answer = self.bidi.call("script.evaluate", &parameters, PATIENCE)?;
        let text = answer["result"]["value"].as_str();
        let value = text.and_then(|text| serde_json::from_str(text).ok());
        value.ok_or_else(|| format!("a script of ours has failed in the page: {answer}"))
    }

    /// Lets so much time pass.
    fn settle(&mut self, time: Duration) -> Result<(), String> {
        let deadline = Instant::now() + time;
        while self.bidi.event(deadline)?.is_some() {}
        Ok(())
    }

    /// Waits until the page in this tab is complete.
    fn watch(&mut self, tab: &str, navigation: u64, order: &Order) -> Result<Waterfall, String> {
        let mut waterfall = Waterfall::default();
        let until = Instant::now() + Duration::from_secs_f64(order.timeout);
        loop {
            let quiet_at = waterfall.quiet_since().map(|since| since + QUIET);
            let deadline = quiet_at.unwrap_or(until).min(until);
            if let Some(event) = self.bidi.event(deadline)? {
                if event.parameters["context"].as_str() == Some(tab) {
                    waterfall.take_bidi(&event.method, &event.parameters);
                }
                // An answer is an event, too: a page that cannot be loaded has no other.
                self.bidi.answer(navigation)?;
            } else if quiet_at.is_some_and(|quiet_at| Instant::now() >= quiet_at) {
                return Ok(waterfall);
            } else {
                self.process.check()?;
                self.bidi.answer(navigation)?;
                let missing = waterfall.describe_missing();
                return Err(format!("the page was not there after {} s: {missing}", order.timeout));
            }
        }
    }
}

impl Browser for Firefox {
    fn product(&mut self) -> Result<String, String> {
        Ok(self.product.clone())
    }

    fn warm_up(&mut self) -> Result<(), String> {
        let tab = self.open_tab()?;
        let parameters = json!({ "context": tab, "url": WARM_UP, "wait": "complete" });
        self.bidi.call("browsingContext.navigate", &parameters, PATIENCE)?;
        self.settle(Duration::from_millis(200))?;
        self.close_tab(&tab)
    }

    fn visit(&mut self, order: &Order) -> Result<Visit, String> {
        let tab = self.open_tab()?;
        self.settle(Duration::from_millis(50))?;
        let parameters = json!({ "context": tab, "url": order.url, "wait": "none" });
        let navigation = self.bidi.send("browsingContext.navigate", &parameters)?;
        let waterfall = self.watch(&tab, navigation, order)?;
        let figures = self.evaluate(&tab, FIGURES)?;
        self.close_tab(&tab)?;
        waterfall.into_visit(&figures)
    }

    fn forget_all_but_sessions(&mut self) -> Result<(), String> {
        let windows =
            self.bidi.call("browsingContext.getTree", &json!({ "moz:scope": "chrome" }), PATIENCE)?;
        let window = windows["contexts"][0]["context"].as_str();
        let window = window.ok_or("this Firefox does not let its window be asked")?.to_owned();
        if self.evaluate(&window, FORGET)? != Value::Bool(true) {
            return Err("the browser has not closed its connections".to_owned());
        }
        // What was sent to close connections is on the path; so are the last acknowledgements.
        self.settle(Duration::from_secs(1))
    }

    fn close(mut self: Box<Self>) {
        if self.bidi.call("browser.close", &json!({}), PATIENCE).is_ok() {
            self.process.wait_for_the_end();
        }
    }
}

/// The program with its arguments. Without a port nobody could talk to it; 0 means a free one, on loopback only.
fn command(order: &Order, profile: &Path) -> Command {
    let mut command = Command::new(&order.browser);
    command.args(["--headless", "--no-remote", "--remote-debugging-port=0", "--remote-allow-system-access"]);
    command.arg("--profile").arg(profile).arg("about:blank").env("HOME", &order.folder);
    if let Some(net_log) = &order.net_log {
        command.env("MOZ_LOG", "timestamp,sync,nsHttp:3,neqo:4").env("MOZ_LOG_FILE", net_log);
    }
    command
}

/// The browser's settings, as the file `user.js` has them.
fn preferences(order: &Order, far: Option<(&str, &str)>) -> Result<String, String> {
    let mut all: Vec<(&str, Value)> =
        QUIET_PREFERENCES.iter().map(|&(name, value)| (name, Value::Bool(value))).collect();
    if let Some((_, far)) = far {
        all.push(("network.dns.forceResolve", far.into()));
    }
    match order.protocol {
        Protocol::H3 => {
            // One port stands for all of a host's: the mapping knows hosts only.
            let host = host_of(&order.url)?;
            let port = order.ports.first().ok_or("there is no port to force QUIC on")?;
            let mapping = format!("{host};h3=:{port}");
            all.push(("network.http.http3.alt-svc-mapping-for-testing", mapping.into()));
            all.push(("network.http.http3.force-use-alt-svc-mapping-for-testing", true.into()));
            all.push(("network.http.http3.disable_when_third_party_roots_found", false.into()));
        }
        Protocol::H2 => all.push(("network.http.http3.enable", false.into())),
        Protocol::H1 => {
            all.push(("network.http.http3.enable", false.into()));
            all.push(("network.http.http2.enabled", false.into()));
        }
    }
    let mut text = String::new();
    for (name, value) in all {
        writeln!(text, "user_pref({}, {value});", Value::from(name)).map_err(|error| error.to_string())?;
    }
    Ok(text)
}

/// Waits until the browser says where it listens.
fn await_address(process: &mut Process) -> Result<SocketAddr, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(address) = said_address(&process.said()) {
            return Ok(address);
        }
        process.check()?;
        if Instant::now() > deadline {
            return Err(format!("the browser does not listen to commands{}", process.last_words()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The address in a whole line of what the browser has said.
fn said_address(said: &str) -> Option<SocketAddr> {
    let (_, rest) = said.split_once(LISTENING)?;
    rest.split_once('\n')?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(protocol: Protocol) -> Order {
        Order {
            browser: "firefox".into(),
            url: "https://page.test:4001/x".to_owned(),
            protocol,
            spki: Vec::new(),
            far_host: Some("page.test".to_owned()),
            ports: vec![4001, 4002],
            is_awaited: true,
            requests: None,
            background: 0,
            is_warm_wanted: true,
            relayed: Vec::new(),
            others: None,
            timeout: 1.0,
            folder: "/nonexistent".into(),
            net_log: None,
        }
    }

    #[test]
    fn the_address_is_taken_from_a_whole_line() {
        let said = "*** headless\nWebDriver BiDi listening on ws://127.0.0.1:3352";
        assert_eq!(said_address(said), None, "the rest of the port may still come");
        let address = said_address(&format!("{said}9\nmore"));
        assert_eq!(address, Some("127.0.0.1:33529".parse().unwrap()));
    }

    #[test]
    fn each_protocol_has_its_settings_and_names_lead_to_the_far_end() {
        let far = Some(("page.test", "192.0.2.7"));
        let of = |protocol| preferences(&order(protocol), far).unwrap();
        let (h3, h2, h1) = (of(Protocol::H3), of(Protocol::H2), of(Protocol::H1));
        for text in [&h3, &h2, &h1] {
            assert!(text.contains("user_pref(\"network.dns.forceResolve\", \"192.0.2.7\");\n"), "{text}");
        }
        assert!(h3.contains("\"page.test;h3=:4001\"") && !h3.contains("http3.enable"), "{h3}");
        let off = "user_pref(\"network.http.http3.enable\", false);";
        assert!(h2.contains(off) && !h2.contains("http2"), "{h2}");
        assert!(h1.contains(off) && h1.contains("\"network.http.http2.enabled\", false"), "{h1}");
        let near = preferences(&order(Protocol::H2), None).unwrap();
        assert!(!near.contains("forceResolve"), "{near}");
    }
}
