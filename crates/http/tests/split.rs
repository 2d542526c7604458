//! One object over several connections: what comes is what is there, whatever the server and the network do.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use crate::common::{App, Server, fed, listen_with, sized, with};
use bytes::Bytes;
use http::{StatusCode, header};
use posthaste_endpoint::TransportConfig;
use posthaste_http::client::{Download, Piece, Single, SplitOptions, SplitReport};
use posthaste_http::{Client, ClientError, ClientOptions, Request, Response, StaticFiles, service_fn, text};
use tokio::time::timeout;

/// An object that is worth three connections.
const LARGE: usize = 3_000_000;

fn content(length: usize, seed: u8) -> Bytes {
    (0..length).map(|index| (index as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ seed).collect()
}

fn start(profile: &str, service: impl App) -> Server {
    let profile = posthaste_schemes::named(profile).unwrap();
    let transport = TransportConfig { profile, ..posthaste_endpoint::default_transport() };
    Server::start_at(listen_with(transport), service, |_| {})
}

fn client(server: &Server) -> Client {
    Client::new(ClientOptions::new(server.client_config().with_group_size(1)))
}

fn over(connections: usize) -> SplitOptions {
    SplitOptions { connections, is_adaptive: false, may_be_ungrouped: false }
}

/// Reads a download to its end; checks that nothing comes twice. `after` is told how much has come.
async fn collect(download: &mut Download, mut after: impl FnMut(u64)) -> Result<Vec<u8>, ClientError> {
    let mut pieces: Vec<(u64, Bytes)> = Vec::new();
    let mut sum = 0;
    while let Some(piece) = download.next().await? {
        match piece {
            Piece::Data { offset, data } => {
                sum += data.len() as u64;
                pieces.push((offset, data));
                after(sum);
            }
            Piece::Restart => {
                pieces.clear();
                sum = 0;
            }
        }
    }
    pieces.sort_by_key(|(offset, _)| *offset);
    let mut all = Vec::new();
    for (offset, data) in pieces {
        assert_eq!(offset, all.len() as u64, "bytes that are missing, or have come twice");
        all.extend_from_slice(&data);
    }
    Ok(all)
}

async fn fetch(client: &Client, server: &Server, options: &SplitOptions) -> (Vec<u8>, SplitReport) {
    let fetched = async {
        let mut download = client.download(&server.uri("/object"), options).await.unwrap();
        let all = collect(&mut download, |_| {}).await.unwrap();
        (all, download.report())
    };
    timeout(crate::common::PATIENCE, fetched).await.expect("the download hangs")
}

/// A service made of a function of the range that is asked for and the request's number, from 0 on.
fn parts<F: Fn(Option<Range<u64>>, usize) -> Response + Send + Sync + 'static>(answer: F) -> impl App {
    let shared = Arc::new((AtomicUsize::new(0), answer));
    service_fn(move |request: Request| {
        let field = request.headers().get(header::RANGE).map(|value| value.to_str().unwrap());
        let range = field.map(|field| {
            let (start, end) = field.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
            start.parse().unwrap()..end.parse::<u64>().map_or(u64::MAX, |last| last + 1)
        });
        let (asked, answer) = &*shared;
        std::future::ready(answer(range, asked.fetch_add(1, Ordering::Relaxed)))
    })
}

/// A part, or the whole without a range.
fn part(content: &Bytes, range: Option<Range<u64>>, tag: &str) -> Response {
    let length = content.len() as u64;
    match range.map(|range| range.start..range.end.min(length)) {
        None => with(sized(StatusCode::OK, content.clone()), header::ETAG, tag),
        Some(range) => {
            let field = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            let body = content.slice(range.start as usize..range.end as usize);
            let response = with(sized(StatusCode::PARTIAL_CONTENT, body), header::ETAG, tag);
            with(response, header::CONTENT_RANGE, &field)
        }
    }
}

/// The same response, fed slowly: 16 KiB a millisecond.
fn slowly(mut response: Response) -> Response {
    let (feed, slow) = fed();
    let whole = std::mem::replace(response.body_mut(), slow.into_body());
    tokio::spawn(async move {
        let mut bytes = whole.collect(usize::MAX).await.unwrap();
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(16 * 1024));
            tokio::time::sleep(Duration::from_millis(1)).await;
            if feed.send(piece).await.is_err() {
                return;
            }
        }
        feed.finish().await.ok();
    });
    response
}

/// The response's head, `bytes` of its body, and then nothing, or a reset.
fn cut_off(mut response: Response, bytes: usize, is_reset: bool) -> Response {
    let (feed, fragment) = fed();
    let whole = std::mem::replace(response.body_mut(), fragment.into_body());
    tokio::spawn(async move {
        let body = whole.collect(usize::MAX).await.unwrap();
        feed.send(body.slice(..bytes)).await.ok();
        if is_reset {
            feed.fail("no more").await.ok();
        } else {
            feed.closed().await;
        }
    });
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_brings_an_object_whole() {
    let folder = tempfile::tempdir().unwrap();
    let object = content(10_000_000, 0);
    std::fs::write(folder.path().join("object"), &object).unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    let server = start("mquic-cubic", StaticFiles::new(folder.path(), false).unwrap());
    let client = client(&server);
    let (all, report) = fetch(&client, &server, &over(3)).await;
    assert!(all == object);
    assert_eq!((report.single, report.is_grouped, report.lost), (None, true, 0), "{report:?}");
    assert!(report.ranges >= 2 && report.connections.len() >= 2, "{report:?}");
    assert_eq!(report.connections.iter().map(|(_, bytes)| bytes).sum::<u64>(), 10_000_000);
    // They are used again.
    let (all, _) = fetch(&client, &server, &over(3)).await;
    assert!(all == object);
    assert!(client.connections().len() <= 3);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_added_while_they_gain() {
    // Each response brings 16 MB a second at most: so every connection gains.
    let object = content(24_000_000, 4);
    let copy = object.clone();
    let server = start("cubic", parts(move |range, _| slowly(part(&copy, range, "\"a\""))));
    let options = SplitOptions { connections: 4, is_adaptive: true, may_be_ungrouped: true };
    let client = client(&server);
    let (all, report) = fetch(&client, &server, &options).await;
    assert!(all == object);
    assert_eq!(report.single, None, "{report:?}");
    let made = client.connections().len();
    assert!((2..=4).contains(&made), "{made}: {report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn small_objects_get_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let server = start("mquic-cubic", StaticFiles::new(folder.path(), false).unwrap());
    for length in [0, 1, 1000, 512 * 1024 - 1] {
        let object = content(length, 1);
        std::fs::write(folder.path().join("object"), &object).unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
        let client = client(&server);
        let (all, report) = fetch(&client, &server, &over(3)).await;
        assert!(all == object, "{length}");
        assert_eq!((report.single, client.connections().len()), (Some(Single::Small), 1), "{length}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_group_one_connection_does_unless_the_user_insists() {
    let object = content(LARGE, 2);
    let copy = object.clone();
    let server = start("cubic", parts(move |range, _| slowly(part(&copy, range, "\"a\""))));
    let single = client(&server);
    let (all, report) = fetch(&single, &server, &over(3)).await;
    assert!(all == object);
    assert_eq!((report.single, report.ranges), (Some(Single::NoGroup), 1));
    assert_eq!(single.connections().len(), 1);

    let several = client(&server);
    let options = SplitOptions { connections: 3, is_adaptive: false, may_be_ungrouped: true };
    let (all, report) = fetch(&several, &server, &options).await;
    assert!(all == object);
    assert_eq!((report.single, report.is_grouped, report.connections.len()), (None, false, 3), "{report:?}");
    assert_eq!(several.connections().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_divided_is_asked_for_once() {
    let object = content(LARGE, 3);
    for (reason, tag, is_coded, knows_ranges) in [
        (Single::NoRanges, "\"a\"", false, false),
        (Single::NoValidator, "W/\"a\"", false, true),
        (Single::Encoded, "\"a\"", true, true),
    ] {
        let copy = object.clone();
        let answer = move |range: Option<Range<u64>>, _| {
            let response = part(&copy, range.filter(|_| knows_ranges), tag);
            with(response, header::CONTENT_ENCODING, if is_coded { "gzip" } else { "identity" })
        };
        let server = start("mquic-cubic", parts(answer));
        let (all, report) = fetch(&client(&server), &server, &over(3)).await;
        assert!(all == object);
        assert_eq!((report.single, report.ranges), (Some(reason), 1));
        assert_eq!(server.log.lines(1).await.len(), 1, "{reason:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_about_ranges_is_answered_by_asking_without() {
    let object = content(LARGE, 4);
    for field in ["bytes 5-10/3000000", "bytes 0-99/*", "bytes 9-1/3", "x", "bytes 0-299999/2000000"] {
        let copy = object.clone();
        let answer = move |range: Option<Range<u64>>, number| match number {
            0 => with(part(&copy, range, "W/\"a\""), header::CONTENT_RANGE, field),
            _ => part(&copy, None, "\"a\""),
        };
        let server = start("mquic-cubic", parts(answer));
        let (all, _) = fetch(&client(&server), &server, &over(3)).await;
        assert!(all == object, "{field}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_changes_is_fetched_anew() {
    let (old, new) = (content(LARGE, 5), content(LARGE + 5, 6));
    for new_has_ranges in [false, true] {
        let (before, after) = (old.clone(), new.clone());
        let answer = move |range, number| match number {
            0 => slowly(part(&before, range, "\"old\"")),
            _ if new_has_ranges => part(&after, range, "\"new\""),
            _ => part(&after, None, "\"new\""),
        };
        let server = start("mquic-cubic", parts(answer));
        let (all, report) = fetch(&client(&server), &server, &over(3)).await;
        assert!(all == new, "neither the old nor a mixture");
        assert_eq!(report.single, Some(Single::Changed));
    }
    // It may be gone, too.
    let answer = move |range, number| match number {
        0 => slowly(part(&old, range, "\"old\"")),
        _ => text(StatusCode::NOT_FOUND, ""),
    };
    let server = start("mquic-cubic", parts(answer));
    let mut download = client(&server).download(&server.uri("/object"), &over(3)).await.unwrap();
    let error = collect(&mut download, |_| {}).await.unwrap_err();
    assert!(matches!(error, ClientError::Changed { status: StatusCode::NOT_FOUND, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_response_goes_on_where_parts_are_refused() {
    let object = content(LARGE, 7);
    for status in [StatusCode::SERVICE_UNAVAILABLE, StatusCode::OK] {
        let copy = object.clone();
        let answer = move |range, number| match (number, status) {
            (0, _) => slowly(part(&copy, range, "\"a\"")),
            (_, StatusCode::OK) => part(&copy, None, "\"a\""),
            _ => text(status, ""),
        };
        let server = start("mquic-cubic", parts(answer));
        let (all, report) = fetch(&client(&server), &server, &over(3)).await;
        assert!(all == object);
        assert_eq!((report.single, report.ranges, report.lost), (None, 3, 2), "{status}");
        assert_eq!(report.connections.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shorter_parts_than_asked_for_are_taken() {
    let object = content(LARGE, 8);
    let copy = object.clone();
    let answer = move |range: Option<Range<u64>>, number| {
        let range = range.map(|range| range.start..range.end.min(range.start + 300_000));
        if number == 0 { slowly(part(&copy, range, "\"a\"")) } else { part(&copy, range, "\"a\"") }
    };
    let server = start("mquic-cubic", parts(answer));
    let (all, report) = fetch(&client(&server), &server, &over(3)).await;
    assert!(all == object);
    assert!(report.ranges >= 10 && report.lost == 0, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_breaks_off_or_stands_still_is_fetched_by_others() {
    let object = content(LARGE, 9);
    for is_reset in [true, false] {
        let copy = object.clone();
        let answer = move |range, number| match number {
            0 => slowly(part(&copy, range, "\"a\"")),
            1 => cut_off(part(&copy, range, "\"a\""), 100_000, is_reset),
            _ => part(&copy, range, "\"a\""),
        };
        let server = start("mquic-cubic", parts(answer));
        let (all, report) = fetch(&client(&server), &server, &over(3)).await;
        assert!(all == object);
        assert_eq!((report.single, report.lost), (None, 1), "{report:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_ends_is_replaced_by_the_others() {
    let object = content(LARGE, 10);
    for victim in 0..3 {
        let copy = object.clone();
        let server = start("mquic-cubic", parts(move |range, _| slowly(part(&copy, range, "\"a\""))));
        let client = client(&server);
        let mut download = client.download(&server.uri("/object"), &over(3)).await.unwrap();
        let mut is_done = false;
        let end = |sum| {
            if sum > 1_000_000 && !std::mem::replace(&mut is_done, true) {
                client.hang_up_one(victim);
            }
        };
        let all = timeout(crate::common::PATIENCE, collect(&mut download, end)).await.unwrap().unwrap();
        assert!(all == object);
        assert_eq!(download.report().lost, 1, "{:?}", download.report());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_connection_takes_the_download_with_it() {
    let object = content(LARGE, 11);
    let server = start("mquic-cubic", parts(move |range, _| slowly(part(&object, range, "\"a\""))));
    let client = client(&server);
    let mut download = client.download(&server.uri("/object"), &over(3)).await.unwrap();
    let end = |sum| {
        if sum > 1_000_000 {
            (0..3).for_each(|victim| client.hang_up_one(victim));
        }
    };
    let error = timeout(crate::common::PATIENCE, collect(&mut download, end)).await.unwrap().unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. } | ClientError::Lost { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adaptive_download_begins_with_what_earlier_ones_found() {
    let adaptive = SplitOptions { is_adaptive: true, ..over(4) };
    // What is known, and how many connections carry the object: no period of this download is over before the first
    // of them, so that only what is known can decide.
    for (known, expected) in [("1 1000 2 2000 4 4000", 2..=4), ("1 1000 2 1000", 1..=1)] {
        let object = content(LARGE, 12);
        let copy = object.clone();
        let server = start("mquic-cubic", parts(move |range, _| slowly(part(&copy, range, "\"a\""))));
        let options = ClientOptions::new(server.client_config().with_group_size(1));
        let gains = Arc::clone(&options.connection_gains);
        let origin = server.uri("").to_string();
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        assert_eq!(gains.import(&format!("{origin} 127.0.0.1 {now} {known}")), 1);
        let (all, report) = fetch(&Client::new(options), &server, &adaptive).await;
        assert!(all == object);
        assert!(expected.contains(&report.connections.len()), "{known}: {report:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adaptive_download_keeps_what_it_finds() {
    let object = content(4 * LARGE, 13);
    let server = start("mquic-cubic", parts(move |range, _| slowly(part(&object, range, "\"a\""))));
    let options = ClientOptions::new(server.client_config().with_group_size(1));
    let gains = Arc::clone(&options.connection_gains);
    fetch(&Client::new(options), &server, &SplitOptions { is_adaptive: true, ..over(8) }).await;
    // 16 MB/s at most: the second period of 100 ms is over before the object is here.
    assert!(gains.len() == 1 && gains.export().contains(" 127.0.0.1 "), "{}", gains.export());
}
