//! Chromium's events (`DevTools` protocol, domains Network and Page).

use serde_json::Value;

use super::Waterfall;
use crate::command::page::record::Object;

/// What a response says of caches that it may have come from; that in memory has an event of its own.
const CACHES: [&str; 2] = ["fromDiskCache", "fromPrefetchCache"];

impl Waterfall {
    /// Takes an event of the domains Network and Page.
    pub(in super::super) fn take_devtools(&mut self, method: &str, event: &Value) {
        match method {
            "Page.loadEventFired" => self.is_loaded = true,
            "Network.requestWillBeSent" => self.begin(event),
            "Network.requestServedFromCache" => self.spare(event),
            "Network.responseReceived" => self.respond(event),
            "Network.loadingFinished" => self.end(event, None),
            "Network.loadingFailed" => {
                let why = event["errorText"].as_str().unwrap_or("it failed").to_owned();
                self.end(event, Some(why));
            }
            _ => return,
        }
        self.look_round();
    }

    fn since_origin(&self, time: &Value) -> Option<f64> {
        Some(time.as_f64()? - self.origin?)
    }

    fn begin(&mut self, event: &Value) {
        let url = event["request"]["url"].as_str().unwrap_or_default();
        // What is in the document itself takes no network.
        if !url.starts_with("http") {
            return;
        }
        let id = event["requestId"].as_str().unwrap_or_default().to_owned();
        if self.origin.is_none() {
            self.origin = event["timestamp"].as_f64();
        }
        let start = self.since_origin(&event["timestamp"]).unwrap_or(0.0);
        let object = Object { url: url.to_owned(), start, ..Object::default() };
        // The answer before has no event of its own.
        if let (Some(status), Some(before)) = (event["redirectResponse"]["status"].as_u64(), self.find(&id)) {
            before.object.status = status as u16;
        }
        self.add(id, object);
    }

    /// The browser has it in its memory, and asks nobody. It says so before it shows the response that it has kept.
    fn spare(&mut self, event: &Value) {
        if let Some(request) = event["requestId"].as_str().and_then(|id| self.find(id)) {
            request.object.is_cached = true;
        }
    }

    fn respond(&mut self, event: &Value) {
        let response = &event["response"];
        let timing = &response["timing"];
        let at = |millis: &Value| {
            let millis = millis.as_f64().filter(|millis| *millis >= 0.0)?;
            Some(timing["requestTime"].as_f64()? - self.origin? + millis / 1e3)
        };
        let (sent, head) = (at(&timing["sendStart"]), at(&timing["receiveHeadersEnd"]));
        let connecting = at(&timing["connectStart"]).zip(at(&timing["connectEnd"]));
        let Some(request) = event["requestId"].as_str().and_then(|id| self.find(id)) else { return };
        let object = &mut request.object;
        response["protocol"].as_str().unwrap_or_default().clone_into(&mut object.protocol);
        object.status = response["status"].as_u64().unwrap_or(0) as u16;
        object.connection = response["connectionId"].as_u64().unwrap_or(0);
        object.is_reused = response["connectionReused"].as_bool().unwrap_or(false);
        if object.is_cached {
            // These times are of the request that has filled the memory.
            return;
        }
        object.is_cached = CACHES.iter().any(|cache| response[cache].as_bool() == Some(true));
        (object.sent, object.head, object.connecting) = (sent, head, connecting);
    }

    fn end(&mut self, event: &Value, failure: Option<String>) {
        let end = self.since_origin(&event["timestamp"]);
        let bytes = event["encodedDataLength"].as_f64();
        let Some(request) = event["requestId"].as_str().and_then(|id| self.find(id)) else { return };
        request.is_over = true;
        request.object.end = end;
        request.object.bytes = bytes.unwrap_or(0.0) as u64;
        request.object.failure = failure;
    }
}
