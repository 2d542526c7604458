//! Connections between exchanges, and exchanges whose responses nobody reads.

use std::time::Duration;

use http::StatusCode;
use posthaste_service::Body;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tower_service::Service as _;

use crate::common::PATIENCE;
use crate::recorder::{Recorder, Reply, When};
use crate::scene::{Scene, proxy};

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_nobody_uses_end() {
    for (time, most) in [(Duration::from_millis(100), 64), (PATIENCE, 0)] {
        let scene = Scene::with(
            When::Whole,
            |options| (options.keep_timeout, options.max_idle) = (time, most),
            |_| Reply::ok(b"it"),
        );
        let scene = scene.await;
        scene.is_well().await;
        scene.upstream.wait("an idle connection ends", |links| links[0].is_closed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_idle_connection_is_noticed_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut proxy = proxy(&format!("http://{}", listener.local_addr().unwrap()), |_| {});
    let request = http::Request::get("https://site.test/").body(Body::empty()).unwrap();
    let asking = async {
        let response = proxy.call(request).await.unwrap_or_else(|never| match never {});
        response.into_body().collect(100).await.unwrap()
    };
    let answering = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 1000]).await.unwrap() > 0);
        stream.write_all(&Reply::ok(b"it").bytes).await.unwrap();
        stream
    };
    let (body, mut stream) = tokio::join!(asking, answering);
    assert_eq!(body, "it");
    // The exchange is over on both sides.
    tokio::time::sleep(Duration::from_millis(100)).await;
    stream.shutdown().await.unwrap();
    let closed = timeout(PATIENCE / 2, stream.read(&mut [0; 10])).await;
    assert_eq!(closed.expect("the proxy keeps it").unwrap_or_default(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_goes_on_while_nobody_reads_the_response() {
    let upstream = Recorder::start(When::Head, |_| Reply::ok(b"early")).await;
    let mut proxy = proxy(&format!("http://{}", upstream.address), |_| {});
    let (feed, unannounced) = Body::channel();
    let request = http::Request::post("https://site.test/").body(unannounced).unwrap();
    feed.send("first").await.unwrap();
    let answered = timeout(PATIENCE, proxy.call(request)).await.expect("no response comes");
    let response = answered.unwrap_or_else(|never| match never {});
    assert_eq!(response.status(), StatusCode::OK);
    let feeding = async {
        for _ in 0..300 {
            feed.send(vec![0; 10_000]).await.unwrap();
        }
    };
    timeout(PATIENCE, feeding).await.expect("the upload waits for the reader of the response");
    drop(response);
}
