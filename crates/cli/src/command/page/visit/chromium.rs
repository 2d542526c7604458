//! Chromium, by its `DevTools` protocol.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Order;
use super::browser::{Browser, FIGURES, PATIENCE, QUIET, WARM_UP};
use super::devtools::DevTools;
use super::launch::Launch;
use super::remote::Remote;
use super::waterfall::Waterfall;
use crate::command::page::record::Visit;

/// The browser's own page on which connections can be closed; sessions stay.
const SOCKETS: &str = "chrome://net-internals/#sockets";
/// Before the load event the button is there, but nothing listens to it.
const FLUSH: &str = "(()=>{const b=document.getElementById('sockets-view-flush-button');\
    if(!b||document.readyState!=='complete')return false;b.click();return true})()";

/// A Chromium that runs.
pub(super) struct Chromium {
    devtools: DevTools,
}

impl Chromium {
    /// Starts it. `far` is the host at the far end and the address that stands for it.
    pub(super) fn start(order: &Order, far: Option<(&str, &str)>) -> Result<Self, String> {
        Ok(Self { devtools: DevTools::start(&Launch::new(order, far)?)? })
    }
}

impl Browser for Chromium {
    fn product(&mut self) -> Result<String, String> {
        let version = self.devtools.call(None, "Browser.getVersion", &json!({}), PATIENCE)?;
        Ok(version["product"].as_str().unwrap_or("a browser").to_owned())
    }

    fn warm_up(&mut self) -> Result<(), String> {
        let tab = Tab::open(&mut self.devtools, WARM_UP)?;
        settle(&mut self.devtools, Duration::from_millis(200))?;
        tab.close(&mut self.devtools)
    }

    fn visit(&mut self, order: &Order) -> Result<Visit, String> {
        let devtools = &mut self.devtools;
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
                    waterfall.take_devtools(&event.method, &event.parameters);
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
        waterfall.into_visit(&figures)
    }

    fn forget_all_but_sessions(&mut self) -> Result<(), String> {
        let devtools = &mut self.devtools;
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

    fn close(self: Box<Self>) {
        self.devtools.close();
    }
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
