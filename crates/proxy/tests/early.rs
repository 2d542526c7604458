//! Early data (RFC 8470).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use posthaste_http::service::{Early, Handshake, HandshakeFailed};
use posthaste_http::{Body, Request};
use tokio::sync::watch;
use tower_service::Service;

use crate::recorder::{Recorder, Reply, When};
use crate::scene::proxy;

/// A handshake that is complete when it is told so.
struct Told(watch::Receiver<bool>, Arc<AtomicBool>);

impl Handshake for Told {
    fn is_complete(&self) -> bool {
        *self.0.borrow()
    }

    fn completed(&self) -> Pin<Box<dyn Future<Output = Result<(), HandshakeFailed>> + Send + '_>> {
        let mut told = self.0.clone();
        self.1.store(true, Ordering::Relaxed);
        Box::pin(async move { told.wait_for(|is| *is).await.map(|_| ()).map_err(HandshakeFailed::new) })
    }
}

/// The `early-data` fields that the upstream sees in the requests, and the status of the response.
async fn ask(is_complete: bool, was_early: bool, is_willing: bool) -> (Vec<Vec<String>>, StatusCode) {
    let upstream = Recorder::start(When::Whole, move |message| {
        let is_early = !message.all("early-data").is_empty();
        if is_early && !is_willing {
            return Reply::keep("HTTP/1.1 425 Too Early\r\nContent-Length: 0\r\n\r\n");
        }
        Reply::ok(b"")
    })
    .await;
    let mut proxy = proxy(&format!("http://{}", upstream.address), |_| {});
    let (tell, told) = watch::channel(is_complete);
    let waits = Arc::new(AtomicBool::new(false));
    let mut request: Request = http::Request::builder()
        .version(http::Version::HTTP_3)
        .uri("https://a.test/")
        .body(Body::empty())
        .unwrap();
    request.extensions_mut().insert(Early::new(Told(told, Arc::clone(&waits))));
    if was_early {
        request.headers_mut().insert("early-data", "1".parse().unwrap());
    }
    let asking = tokio::spawn(proxy.call(request));
    // The handshake ends when somebody waits for it.
    while !asking.is_finished() && !waits.load(Ordering::Relaxed) {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    tell.send_replace(true);
    let Ok(response) = asking.await.unwrap();
    let fields = upstream.messages();
    let fields = fields.iter().map(|it| it.all("early-data").into_iter().map(str::to_owned).collect());
    (fields.collect(), response.status())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_upstream_learns_of_early_data_and_may_ask_for_patience() {
    let one = || vec!["1".to_owned()];
    // Not early any more.
    assert_eq!(ask(true, false, false).await, (vec![vec![]], StatusCode::OK));
    assert_eq!(ask(false, false, true).await, (vec![one()], StatusCode::OK));
    // Once more behind the handshake.
    assert_eq!(ask(false, false, false).await, (vec![one(), vec![]], StatusCode::OK));
    // Somebody before this proxy must wait: only the client can ask again.
    assert_eq!(ask(true, true, false).await, (vec![one()], StatusCode::TOO_EARLY));
    assert_eq!(ask(false, true, false).await, (vec![one()], StatusCode::TOO_EARLY));
}
