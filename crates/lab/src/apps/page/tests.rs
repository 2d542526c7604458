//! Pages: what is refused, what the built-in ones are, and how one is loaded.

use std::fmt::Write as _;
use std::sync::Arc;

use posthaste_units::{Duration, Time};

use super::{Page, PageError, PageLoad};
use crate::apps::fake::Bench;
use crate::apps::{App, Progress};
use crate::peer::{PeerEvent, Read, StreamKey};

fn ms(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// A page of two hosts with these objects: name, host, size (a TOML value), after, parse.
fn page(objects: &[(&str, &str, &str, &str, &str)]) -> Result<Page, PageError> {
    let mut text = "description = \"\"\nhosts = [\"a\", \"b\"]\n".to_owned();
    for (name, host, size, after, parse) in objects {
        let key = if size.starts_with('[') { "sizes" } else { "size" };
        let _ = write!(text, "[[objects]]\nname = \"{name}\"\nhost = \"{host}\"\n{key} = {size}\n");
        let _ = write!(text, "after = [{after}]\nparse = \"{parse}\"\n");
    }
    text.parse()
}

fn refusal(objects: &[(&str, &str, &str, &str, &str)]) -> String {
    page(objects).expect_err("a wrong page").to_string()
}

#[test]
fn the_built_in_pages_are_what_they_say() {
    let page = Page::named("gr-page").expect("a built-in page");
    assert_eq!((page.objects.len(), page.hosts.len()), (100, 3));
    assert_eq!((page.body_bytes(), page.depth()), (1_311_000, 3));
    let page = Page::named("news").expect("a built-in page");
    assert_eq!((page.objects.len(), page.hosts.len()), (59, 3));
    assert_eq!((page.body_bytes(), page.depth()), (2_000_000, 4));
    // html, app, headlines, a picture: four round trips, 30 + 60 + 10 ms of parsing.
    assert_eq!(page.least_time(Duration::from_millis(50)), Duration::from_millis(300));
    assert_eq!(Page::names().collect::<Vec<_>>(), ["gr-page", "news"]);
    let error = Page::named("nwes").expect_err("no such page").to_string();
    assert_eq!(error, "there is no page `nwes`; there are gr-page, news");
}

#[test]
fn wrong_pages_are_refused_by_the_names_of_what_is_wrong() {
    let html = ("html", "a", "\"1kB\"", "", "0ms");
    let other = ("other", "b", "\"1kB\"", "", "0ms");
    assert!(page(&[html, other]).is_ok());
    assert!(refusal(&[]).contains("one object at least"));
    assert_eq!(refusal(&[html, other, html]), "two objects have the name `html`");
    let series = ("image", "b", "[\"1kB\", \"2kB\"]", "", "0ms");
    let clash = ("image-2", "a", "\"1kB\"", "", "0ms");
    assert_eq!(refusal(&[html, series, clash]), "two objects have the name `image-2`");
    assert_eq!(refusal(&[html]), "no object is on the host `b`");
    assert_eq!(
        refusal(&[("html", "c", "\"1kB\"", "", "0ms")]),
        "object `html` is on the unknown host `c`; there are a, b"
    );
    assert_eq!(
        refusal(&[html, ("x", "b", "\"1kB\"", "\"htm\"", "0ms")]),
        "object `x` comes after `htm`, which the page does not have"
    );
    assert!(refusal(&[("x", "b", "[]", "", "0ms")]).starts_with("object `x` needs either `size` or `sizes`"));
    let cycle = [html, ("x", "b", "\"1B\"", "\"z\"", "0ms"), ("y", "b", "\"1B\"", "\"x\"", "0ms")];
    let cycle = [&cycle[..], &[("z", "b", "\"1B\"", "\"html\", \"y\"", "0ms")]].concat();
    assert_eq!(refusal(&cycle), "objects wait for each other: x after z after y after x");
    let own = [html, ("x", "b", "\"1B\"", "\"x\"", "0ms")];
    assert_eq!(refusal(&own), "objects wait for each other: x after x");
    // Downstream of a cycle is not the cycle.
    let tail = [("t", "a", "\"1B\"", "\"x\"", "0ms"), ("x", "b", "\"1B\"", "\"x\"", "0ms")];
    assert_eq!(refusal(&tail), "objects wait for each other: x after x");
    let hosts = "description = \"\"\nhosts = [\"a\", \"a\"]\n[[objects]]\nname = \"x\"\nhost = \"a\"\nsize = \"1B\"\n";
    assert_eq!(hosts.parse::<Page>().expect_err("one name twice").to_string(), "two hosts have the name `a`");
    let key = hosts.replace("\"a\", \"a\"", "\"a\"") + "weight = 3\n";
    let error = key.parse::<Page>().expect_err("an unknown key").to_string();
    assert!(error.contains("line 7") && error.contains("weight") && error.contains("parse"), "{error}");
}

#[test]
fn a_series_name_stands_for_all_of_it() {
    let page = page(&[
        ("html", "a", "\"1kB\"", "", "0ms"),
        ("style", "b", "[\"1kB\", \"2kB\", \"3kB\"]", "\"html\"", "0ms"),
        ("font", "b", "\"4kB\"", "\"style\"", "0ms"),
        ("late", "b", "\"5kB\"", "\"style-2\", \"html\"", "0ms"),
    ])
    .expect("a page");
    let names: Vec<&str> = page.objects.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["html", "style-1", "style-2", "style-3", "font", "late"]);
    let sizes: Vec<u64> = page.objects.iter().map(|object| object.bytes).collect();
    assert_eq!(sizes, [1000, 1000, 2000, 3000, 4000, 5000]);
    assert_eq!(
        (page.objects[4].after.as_slice(), page.objects[5].after.as_slice()),
        (&[1, 2, 3][..], &[0, 2][..])
    );
    assert_eq!(page.depth(), 3);
}

/// Two hosts; `tail` needs both of what `html` leads to.
fn small() -> Arc<Page> {
    let page = page(&[
        ("html", "a", "\"1000B\"", "", "5ms"),
        ("style", "b", "\"100B\"", "\"html\"", "0ms"),
        ("script", "a", "\"200B\"", "\"html\"", "20ms"),
        ("tail", "b", "\"300B\"", "\"style\", \"script\"", "0ms"),
    ]);
    Arc::new(page.expect("a page"))
}

#[test]
fn objects_are_wanted_once_what_they_need_is_read_and_parsed() {
    let mut bench = Bench::start(PageLoad::new(small(), vec![0, 1], ms(3)));
    assert_eq!(bench.fire(), ms(3));
    assert_eq!((bench.peers.at(0).connects, bench.peers.at(1).connects), (1, 0));
    bench.event_at(0, ms(10), PeerEvent::Connected);
    bench.respond(0, 0, 1000, ms(20));
    assert_eq!(bench.peers.at(1).connects, 0, "nobody knows yet of the other host");
    assert_eq!(bench.fire(), ms(25));
    assert_eq!((bench.peers.at(0).streams.len(), bench.peers.at(1).connects), (2, 1));
    bench.event_at(1, ms(35), PeerEvent::Connected);
    bench.respond(0, 1, 200, ms(40));
    bench.respond(1, 0, 100, ms(50));
    assert_eq!(bench.peers.at(1).streams.len(), 1, "the script is still being parsed");
    assert_eq!(bench.fire(), ms(60));
    assert_eq!(bench.app.progress(), Progress::Working);
    bench.respond(1, 1, 300, ms(70));
    let report = bench.app.report();
    assert_eq!((bench.app.progress(), bench.app.next_timeout()), (Progress::Idle, None));
    assert_eq!((report.started, report.connected), (Some(ms(3)), Some(ms(10))));
    assert_eq!((report.finished, report.bytes), (Some(ms(70)), 1600));
    let waterfall: Vec<_> =
        report.exchanges.iter().map(|one| (one.object, one.requested, one.finished, one.bytes)).collect();
    let expected = [
        (0, ms(3), ms(20), 1000),
        (2, ms(25), ms(40), 200),
        (1, ms(25), ms(50), 100),
        (3, ms(60), ms(70), 300),
    ];
    assert_eq!(waterfall, expected);
}

#[test]
fn one_connection_can_serve_all_hosts_and_lets_objects_wait_for_streams() {
    let mut bench = Bench::start(PageLoad::new(small(), vec![7, 7], Time::ZERO));
    bench.peers.at(7).permits = 1;
    bench.event_at(7, ms(10), PeerEvent::Connected);
    bench.respond(7, 0, 1000, ms(20));
    assert_eq!(bench.fire(), ms(25));
    assert_eq!(bench.peers.at(7).streams.len(), 1);
    assert_eq!(bench.app.next_timeout(), None, "only the peer can end the wait");
    bench.peers.at(7).permits = 1;
    bench.event_at(7, ms(30), PeerEvent::Available);
    bench.respond(7, 1, 100, ms(40));
    bench.peers.at(7).permits = 9;
    bench.event_at(7, ms(45), PeerEvent::Available);
    bench.respond(7, 2, 200, ms(50));
    assert_eq!(bench.fire(), ms(70));
    bench.respond(7, 3, 300, ms(80));
    let report = bench.app.report();
    assert_eq!(bench.peers.at(7).connects, 1);
    let order: Vec<_> = report.exchanges.iter().map(|one| (one.object, one.requested)).collect();
    assert_eq!(
        order,
        [(0, ms(0)), (1, ms(25)), (2, ms(25)), (3, ms(70))],
        "the page's order, wanted when it was"
    );
}

#[test]
fn a_page_fails_with_any_of_its_connections_and_streams() {
    let begun = || {
        let mut bench = Bench::start(PageLoad::new(small(), vec![0, 1], Time::ZERO));
        bench.event_at(0, ms(10), PeerEvent::Connected);
        bench.respond(0, 0, 1000, ms(20));
        bench.fire();
        bench
    };
    let mut closed = begun();
    closed.event_at(1, ms(30), PeerEvent::Closed(Some("no route".to_owned())));
    assert_eq!(closed.app.report().failure.as_deref(), Some("no route"));

    let mut reset = begun();
    reset.peers.at(0).streams[1].incoming.push_back(Read::Reset);
    reset.event_at(0, ms(30), PeerEvent::Readable(StreamKey(1)));
    assert_eq!(reset.app.report().failure.as_deref(), Some("script: the stream was reset"));
    reset.event_at(1, ms(40), PeerEvent::Closed(Some("later".to_owned())));
    assert_eq!(
        reset.app.report().failure.as_deref(),
        Some("script: the stream was reset"),
        "the first counts"
    );
    for bench in [closed, reset] {
        assert_eq!((bench.app.progress(), bench.app.next_timeout()), (Progress::Failed, None));
        assert_eq!(bench.app.report().exchanges.len(), 1);
    }
}

#[test]
fn an_object_in_parts_is_whole_and_its_parts_wait_for_nothing() {
    for (bytes, parts) in [(1000, 4), (1003, 4), (2, 4), (0, 1), (7, 0)] {
        let page = Page::in_parts(bytes, parts);
        assert_eq!(page.body_bytes(), bytes);
        assert_eq!(page.objects.len(), parts.max(1) as usize);
        assert_eq!(page.depth(), 1);
    }
}

#[test]
fn critical_objects_come_in_parts_over_all_connections() {
    let mut text = "description = \"\"\nhosts = [\"a\"]\n".to_owned();
    for (name, size, more) in [
        ("html", "30001B", "critical = true"),
        ("style", "25000B", "critical = true\nafter = [\"html\"]"),
        ("crumb", "19999B", "critical = true\nafter = [\"html\"]"),
        ("image", "90000B", "after = [\"html\"]"),
    ] {
        let _ = write!(text, "[[objects]]\nname = \"{name}\"\nhost = \"a\"\nsize = \"{size}\"\n{more}\n");
    }
    let page: Arc<Page> = Arc::new(text.parse().expect("a page"));
    let mut bench = Bench::start(PageLoad::new(Arc::clone(&page), vec![0], ms(1)).with_split_critical(true));
    bench.peers.at(0).legs = 3;
    bench.fire();
    bench.event_at(0, ms(10), PeerEvent::Connected);
    assert_eq!(bench.peers.at(0).opened_on, [0, 1, 2]);
    bench.respond(0, 1, 10_000, ms(20));
    bench.respond(0, 0, 10_000, ms(30));
    assert_eq!((bench.app.report().bytes, bench.app.report().exchanges.len()), (20_000, 0));
    bench.respond(0, 2, 10_001, ms(40));
    // The style sheet in two, what is too small for two parts and what is not critical over the first.
    assert_eq!(bench.peers.at(0).opened_on[3..], [0, 1, 0, 0]);
    for (stream, bytes) in [(3, 12_500), (4, 12_500), (5, 19_999), (6, 90_000)] {
        bench.respond(0, stream, bytes, ms(50));
    }
    let report = bench.app.report();
    assert_eq!((report.bytes, report.finished), (page.body_bytes(), Some(ms(50))));
    let first = &report.exchanges[0];
    assert_eq!((first.object, first.requested, first.bytes), (0, ms(1), 30_001));
    assert_eq!((first.first_byte, first.finished, report.exchanges.len()), (ms(20), ms(40), 4));

    // Unless that is asked for, all comes over the first.
    let mut bench = Bench::start(PageLoad::new(page, vec![0], ms(1)));
    bench.peers.at(0).legs = 3;
    bench.fire();
    bench.event_at(0, ms(10), PeerEvent::Connected);
    assert_eq!(bench.peers.at(0).opened_on, [0]);
}
