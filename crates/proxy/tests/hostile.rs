//! Clients that move, hang up or send too much.

use std::time::Duration;

use http::{Method, StatusCode};
use posthaste_http::Body;

use crate::common::{Server, body};
use crate::raw::{End, Raw, data, end, request};
use crate::recorder::{Link, Recorder, Reply, When};
use crate::scene::{Scene, proxy};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_moves_while_it_uploads_uploads_the_whole() {
    let scene = Scene::with(When::Whole, |_| {}, |message| Reply::ok(&message.body)).await;
    let (feed, rest) = Body::channel();
    let asked = scene.request(&Method::PUT, "/", rest);
    let sending = tokio::spawn({
        let client = scene.client.clone();
        async move { body(client.send(asked).await.unwrap()).await.unwrap() }
    });
    for piece in 0..6_u8 {
        feed.send(vec![piece; 100_000]).await.unwrap();
        if piece % 2 == 0 {
            let arrived = usize::from(piece) * 100_000;
            scene
                .upstream
                .wait("a piece is missing", |links| links.iter().any(|link| link.bytes.len() > arrived))
                .await;
            scene.client.rebind("127.0.0.1:0".parse().unwrap()).unwrap();
        }
    }
    feed.finish().await.unwrap();
    let whole: Vec<u8> = (0..6).flat_map(|piece| vec![piece; 100_000]).collect();
    assert!(sending.await.unwrap() == whole, "what came back is not what was sent");
    assert!(scene.upstream.messages()[0].body == whole);
    let report = &scene.client.connections()[0];
    assert_eq!(scene.upstream.messages().len(), 1, "{report:?}");
}

/// Rapid reset (CVE-2023-44487): each request is whole, and given up as soon as it is sent.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_reset_at_once_leave_nothing() {
    let scene = Scene::new(|message| match message.target.as_str() {
        "/well" => Reply::ok(b""),
        _ => Reply::keep(""),
    })
    .await;
    let raw = Raw::connect(&scene.server).await;
    let mut asked = 0;
    for count in 0..2000 {
        let Ok((mut send, recv)) = raw.try_open().await else { break };
        let _ = send.write_all(&request("GET", &[])).await;
        send.reset(0x10c);
        drop(recv);
        asked += 1;
        if count % 500 == 0 {
            // Others are served meanwhile.
            scene.is_well().await;
        }
    }
    assert!(asked >= 500, "{asked}");
    let others_end = |links: &[Link]| links.iter().filter(|link| !link.is_closed).count() <= 1;
    scene.upstream.wait("requests that nobody wants stay", others_end).await;
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_fields_are_refused() {
    let scene = Scene::new(|_| Reply::ok(b"")).await;
    let raw = Raw::connect(&scene.server).await;
    let fields = vec![("x", ""); 10_000];
    let end = raw.ask(&request("GET", &fields)).await;
    assert_eq!(end, End::Status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.as_u16()));
    assert!(scene.upstream.links().is_empty());
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_stands_still_is_408() {
    let upstream = Recorder::start(When::Whole, |message| Reply::ok(&message.body)).await;
    let front = proxy(&format!("http://{}", upstream.address), |_| {});
    let short = Duration::from_millis(200);
    let server =
        Server::start(front, |options| (options.header_timeout, options.stall_timeout) = (short, short));
    let raw = Raw::connect(&server).await;
    let head = request("POST", &[("content-length", "5")]);
    let (mut half, recv) = raw.open().await;
    half.write_all(&head[..head.len() / 2]).await.unwrap();
    assert_eq!(end(recv).await, End::Status(408));
    assert!(upstream.links().is_empty());
    let (mut send, recv) = raw.open().await;
    send.write_all(&[&head[..], &data("fou")].concat()).await.unwrap();
    assert_eq!(end(recv).await, End::Status(408));
    let closed = |links: &[Link]| links.iter().all(|link| link.is_closed);
    let links = upstream.wait("the connection ends", closed).await;
    assert!(links.iter().all(|link| link.messages().is_empty()), "{links:?}");
    drop((half, send));
}
