use serde_json::json;

use super::*;

fn request(waterfall: &mut Waterfall, id: &str, url: &str, timestamp: f64) {
    let event = json!({ "requestId": id, "timestamp": timestamp, "request": { "url": url } });
    waterfall.take_devtools("Network.requestWillBeSent", &event);
}

fn finish(waterfall: &mut Waterfall, id: &str, timestamp: f64) {
    let event = json!({ "requestId": id, "timestamp": timestamp, "encodedDataLength": 100.0 });
    waterfall.take_devtools("Network.loadingFinished", &event);
}

#[test]
fn times_count_from_the_request_for_the_document() {
    let mut waterfall = Waterfall::default();
    request(&mut waterfall, "1", "https://a/", 50.0);
    let response = json!({ "requestId": "1", "response": {
        "protocol": "h3", "status": 200, "connectionId": 7, "connectionReused": false,
        "timing": { "requestTime": 50.001, "connectStart": 1.0, "connectEnd": 101.0, "sendStart": 102.0,
                    "receiveHeadersEnd": 202.0 } } });
    waterfall.take_devtools("Network.responseReceived", &response);
    finish(&mut waterfall, "1", 50.5);
    assert!(waterfall.quiet_since().is_none(), "the load event has not come");
    waterfall.take_devtools("Page.loadEventFired", &json!({}));
    assert!(waterfall.quiet_since().is_some());
    request(&mut waterfall, "2", "https://a/late", 50.75);
    assert!(waterfall.quiet_since().is_none(), "a script has asked for more");
    assert!(waterfall.describe_missing().starts_with("1 of 2 requests"));
    finish(&mut waterfall, "2", 51.0);
    let figures = json!({ "load": 600.0, "first": 300.0, "largest": null, "response": 203.0 });
    let visit = waterfall.into_visit(&figures).unwrap();
    let document = &visit.objects[0];
    assert_eq!((document.protocol.as_str(), document.status, document.connection), ("h3", 200, 7));
    let near = |time: Option<f64>, wanted: f64| assert!((time.unwrap() - wanted).abs() < 1e-9, "{time:?}");
    near(document.head, 0.203);
    near(document.connecting.map(|(start, end)| end - start), 0.1);
    near(document.end, 0.5);
    near(visit.largest_paint.or(Some(visit.complete)), 1.0);
    assert_eq!((visit.bytes, visit.load, visit.first_paint), (200, 0.6, Some(0.3)));
}

#[test]
fn what_fails_or_is_redirected_stays_in_the_list() {
    let mut waterfall = Waterfall::default();
    request(&mut waterfall, "1", "https://a/", 1.0);
    request(&mut waterfall, "1", "https://a/page", 1.5);
    request(&mut waterfall, "2", "data:,", 1.6);
    let failed = json!({ "requestId": "1", "timestamp": 2.0, "errorText": "net::ERR_X" });
    waterfall.take_devtools("Network.loadingFailed", &failed);
    waterfall.take_devtools("Page.loadEventFired", &json!({}));
    assert!(waterfall.quiet_since().is_some());
    let visit = waterfall.into_visit(&json!({ "load": 1.0 })).unwrap();
    let seen: Vec<_> =
        visit.objects.iter().map(|object| (object.url.as_str(), object.failure.is_some())).collect();
    assert_eq!(seen, [("https://a/", false), ("https://a/page", true)]);
    assert!(Waterfall::default().into_visit(&json!({})).is_err());
}

#[test]
fn what_comes_from_any_cache_is_known() {
    let mut waterfall = Waterfall::default();
    let timing = json!({ "requestTime": 1.0, "sendStart": 1.0, "receiveHeadersEnd": 2.0 });
    for (id, cache) in [("1", "none"), ("2", "fromDiskCache"), ("3", "fromPrefetchCache"), ("4", "memory")] {
        request(&mut waterfall, id, &format!("https://a/{cache}"), 1.0);
        let mut response =
            json!({ "protocol": "h3", "status": 200, "fromDiskCache": false, "timing": timing });
        if cache == "memory" {
            waterfall.take_devtools("Network.requestServedFromCache", &json!({ "requestId": id }));
        } else {
            response[cache] = true.into();
        }
        waterfall
            .take_devtools("Network.responseReceived", &json!({ "requestId": id, "response": response }));
        finish(&mut waterfall, id, 1.5);
    }
    let visit = waterfall.into_visit(&json!({ "load": 1.0 })).unwrap();
    let cached: Vec<bool> = visit.objects.iter().map(|object| object.is_cached).collect();
    assert_eq!(cached, [false, true, true, true]);
    assert!(visit.objects[0].sent.is_some() && visit.objects[3].sent.is_none(), "nothing was sent for it");
}

/// An event of Firefox about a request, with times in milliseconds after the first one's.
fn of_firefox(id: &str, url: &str, times: &[(&str, f64)], response: &Value) -> Value {
    let mut timings = serde_json::Map::new();
    for (key, millis) in times {
        timings.insert((*key).to_owned(), json!(1.7e12 + millis));
    }
    json!({ "request": { "request": id, "url": url, "timings": timings }, "response": response })
}

#[test]
fn firefox_tells_the_same_of_its_requests() {
    let mut waterfall = Waterfall::default();
    let page = [("requestTime", 0.0), ("connectStart", 10.0), ("connectEnd", 110.0), ("requestStart", 111.0)];
    let rest = [("responseStart", 211.0), ("responseEnd", 250.0)];
    let whole: Vec<_> = page.into_iter().chain(rest).collect();
    let response = json!({ "protocol": "h3", "status": 200, "fromCache": false, "bytesReceived": 355 });
    waterfall.take_bidi("network.beforeRequestSent", &of_firefox("1", "https://a/", &page, &Value::Null));
    waterfall.take_bidi("network.responseCompleted", &of_firefox("1", "https://a/", &whole, &response));
    waterfall.take_bidi(
        "network.beforeRequestSent",
        &of_firefox("2", "data:,", &[("requestTime", 255.0)], &Value::Null),
    );
    let picture = [("requestTime", 260.0), ("connectStart", -1.7e12)];
    waterfall.take_bidi("network.beforeRequestSent", &of_firefox("3", "https://a/p", &picture, &Value::Null));
    waterfall.take_bidi("browsingContext.load", &json!({}));
    assert!(waterfall.quiet_since().is_none(), "the picture is under way");
    let broken = json!({ "request": { "request": "3" }, "errorText": "NS_ERROR_X" });
    waterfall.take_bidi("network.fetchError", &broken);
    assert!(waterfall.quiet_since().is_some());
    let visit = waterfall.into_visit(&json!({ "load": 600.0 })).unwrap();
    let [document, picture] = visit.objects.as_slice() else { panic!("{visit:?}") };
    assert_eq!((document.protocol.as_str(), document.status, document.bytes), ("h3", 200, 355));
    let near = |time: Option<f64>, wanted: f64| assert!((time.unwrap() - wanted).abs() < 1e-3, "{time:?}");
    near(document.connecting.map(|(start, end)| end - start), 0.1);
    near(document.sent, 0.111);
    near(document.head, 0.211);
    near(document.end, 0.25);
    assert!(!document.is_reused && !document.is_cached);
    near(Some(picture.start), 0.26);
    assert_eq!(picture.failure.as_deref(), Some("NS_ERROR_X"));
}

#[test]
fn a_connection_that_firefox_has_already_is_known() {
    let mut waterfall = Waterfall::default();
    let times = [("requestTime", 0.0), ("connectStart", -1.7e12), ("connectEnd", -1.7e12)];
    let response = json!({ "protocol": "h3", "status": 200, "fromCache": true });
    waterfall.take_bidi("network.beforeRequestSent", &of_firefox("1", "https://a/", &times, &Value::Null));
    waterfall.take_bidi("network.responseCompleted", &of_firefox("1", "https://a/", &times, &response));
    let visit = waterfall.into_visit(&json!({ "load": 1.0 })).unwrap();
    assert!(visit.objects[0].is_reused && visit.objects[0].is_cached);

    let mut waterfall = Waterfall::default();
    let early =
        json!([{ "name": "X-Firefox-Early-Data", "value": { "type": "string", "value": "accepted" } }]);
    let response = json!({ "protocol": "h3", "status": 200, "headers": early });
    waterfall.take_bidi("network.beforeRequestSent", &of_firefox("1", "https://a/", &times, &Value::Null));
    waterfall.take_bidi("network.responseCompleted", &of_firefox("1", "https://a/", &times, &response));
    let visit = waterfall.into_visit(&json!({ "load": 1.0 })).unwrap();
    assert!(!visit.objects[0].is_reused, "it came with the handshake");
}
