//! Firefox's events (`WebDriver BiDi`, modules network and browsingContext). Its clock is milliseconds since 1970.

use serde_json::Value;

use super::Waterfall;
use crate::command::page::record::Object;

/// The field that Firefox adds to the response to early data.
const EARLY_DATA: &str = "X-Firefox-Early-Data";

impl Waterfall {
    /// Takes an event of these modules.
    pub(in super::super) fn take_bidi(&mut self, method: &str, event: &Value) {
        match method {
            "browsingContext.load" => self.is_loaded = true,
            "network.beforeRequestSent" => self.begin_bidi(event),
            "network.responseCompleted" => self.complete(event),
            "network.fetchError" => self.fail(event),
            _ => return,
        }
        self.look_round();
    }

    fn begin_bidi(&mut self, event: &Value) {
        let request = &event["request"];
        let url = request["url"].as_str().unwrap_or_default();
        // What is in the document itself takes no network.
        if !url.starts_with("http") {
            return;
        }
        let time = request["timings"]["requestTime"].as_f64();
        let origin = *self.origin.get_or_insert(time.unwrap_or(0.0));
        let start = time.map_or(0.0, |time| (time - origin) / 1e3);
        let id = request["request"].as_str().unwrap_or_default().to_owned();
        self.add(id, Object { url: url.to_owned(), start, ..Object::default() });
    }

    fn complete(&mut self, event: &Value) {
        let (request, response) = (&event["request"], &event["response"]);
        let origin = self.origin;
        // A time that does not apply is 0.
        let at = |key: &str| {
            let time = request["timings"][key].as_f64().filter(|time| *time > 0.0)?;
            Some((time - origin?) / 1e3)
        };
        let Some(entry) = request["request"].as_str().and_then(|id| self.find(id)) else { return };
        entry.is_over = true;
        let object = &mut entry.object;
        response["protocol"].as_str().unwrap_or_default().clone_into(&mut object.protocol);
        object.status = response["status"].as_u64().and_then(|status| status.try_into().ok()).unwrap_or(0);
        object.is_cached = response["fromCache"].as_bool().unwrap_or(false);
        object.bytes = response["bytesReceived"].as_u64().unwrap_or(0);
        object.connecting = at("connectStart").zip(at("connectEnd"));
        // A request that leaves with the handshake (0-RTT) waits for none; Firefox notes it among the response's fields.
        let mut fields =
            response["headers"].as_array().into_iter().flatten().filter_map(|field| field["name"].as_str());
        let is_early = fields.any(|name| name.eq_ignore_ascii_case(EARLY_DATA));
        object.is_reused = object.connecting.is_none() && !is_early;
        object.end = at("responseEnd");
        if !object.is_cached {
            (object.sent, object.head) = (at("requestStart"), at("responseStart"));
        }
    }

    fn fail(&mut self, event: &Value) {
        let Some(entry) = event["request"]["request"].as_str().and_then(|id| self.find(id)) else { return };
        entry.is_over = true;
        entry.object.failure = Some(event["errorText"].as_str().unwrap_or("it failed").to_owned());
    }
}
