//! What the browser tells about its requests, gathered into one line a request.

use std::time::Instant;

use serde_json::Value;

use crate::command::page::record::{Object, Visit};

/// What a response says of caches that it may have come from; that in memory has an event of its own.
const CACHES: [&str; 2] = ["fromDiskCache", "fromPrefetchCache"];

/// All requests so far, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Waterfall {
    requests: Vec<Request>,
    /// The browser's clock when the document was asked for.
    origin: Option<f64>,
    is_loaded: bool,
    /// When nothing was under way any more.
    quiet_since: Option<Instant>,
}

#[derive(Debug)]
struct Request {
    id: String,
    object: Object,
    is_over: bool,
}

impl Waterfall {
    /// Takes an event of the domains Network and Page.
    pub(super) fn take(&mut self, method: &str, event: &Value) {
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
        let is_quiet = self.is_loaded && self.requests.iter().all(|request| request.is_over);
        self.quiet_since = is_quiet.then(Instant::now);
    }

    /// Since when the page is loaded and nothing is under way; `None` as long as it is not.
    pub(super) fn quiet_since(&self) -> Option<Instant> {
        self.quiet_since
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
        // A redirect goes on under the same number.
        if let Some(before) = self.find(&id) {
            before.is_over = true;
            before.id.clear();
        }
        let start = self.since_origin(&event["timestamp"]).unwrap_or(0.0);
        let object = Object { url: url.to_owned(), start, ..Object::default() };
        self.requests.push(Request { id, object, is_over: false });
    }

    fn find(&mut self, id: &str) -> Option<&mut Request> {
        self.requests.iter_mut().find(|request| request.id == id)
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

    /// What was still under way, for people.
    pub(super) fn describe_missing(&self) -> String {
        let missing: Vec<&str> = self
            .requests
            .iter()
            .filter(|request| !request.is_over)
            .map(|request| request.object.url.as_str())
            .collect();
        match (missing.first(), self.requests.is_empty()) {
            (_, true) => "nothing has been asked for".to_owned(),
            (None, _) => "every request was answered, and yet the load event did not come".to_owned(),
            (Some(first), _) => {
                format!(
                    "{} of {} requests were unanswered, such as {first}",
                    missing.len(),
                    self.requests.len()
                )
            }
        }
    }

    /// The visit, with the figures that the page itself knows (in milliseconds).
    pub(super) fn into_visit(self, figures: &Value) -> Result<Visit, String> {
        let seconds =
            |key: &str| figures[key].as_f64().filter(|millis| *millis > 0.0).map(|millis| millis / 1e3);
        let objects: Vec<Object> = self.requests.into_iter().map(|request| request.object).collect();
        let complete = objects.iter().filter_map(|object| object.end).fold(0.0, f64::max);
        Ok(Visit {
            load: seconds("load").ok_or("the page does not say when it was loaded")?,
            first_paint: seconds("first"),
            largest_paint: seconds("largest"),
            response: seconds("response"),
            complete,
            bytes: objects.iter().map(|object| object.bytes).sum(),
            objects,
        })
    }
}

#[cfg(test)]
#[path = "waterfall_tests.rs"]
mod tests;
