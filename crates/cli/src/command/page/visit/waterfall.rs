//! What the browser tells about its requests, gathered into one line a request.

mod bidi;
mod devtools;

use std::time::Instant;

use serde_json::Value;

use crate::command::page::record::{Object, Visit};

/// All requests so far, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Waterfall {
    requests: Vec<Request>,
    /// The browser's clock when the document was asked for, in its unit.
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
    /// Something has happened: it is looked whether the page is complete.
    fn look_round(&mut self) {
        let is_quiet = self.is_loaded && self.requests.iter().all(|request| request.is_over);
        self.quiet_since = is_quiet.then(Instant::now);
    }

    fn find(&mut self, id: &str) -> Option<&mut Request> {
        self.requests.iter_mut().find(|request| request.id == id)
    }

    /// A request is made; a redirect goes on under the same number.
    fn add(&mut self, id: String, object: Object) {
        if let Some(before) = self.find(&id) {
            before.is_over = true;
            before.id.clear();
        }
        self.requests.push(Request { id, object, is_over: false });
    }

    /// Since when the page is loaded and nothing is under way; `None` as long as it is not.
    pub(super) fn quiet_since(&self) -> Option<Instant> {
        self.quiet_since
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
mod tests;
