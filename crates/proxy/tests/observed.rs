//! What a log of an upstream is told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use posthaste_http::Body;
use posthaste_proxy::{Proxy, ProxyOptions, Upstream, UpstreamFailure, UpstreamHealth, UpstreamLog};
use tokio::time::timeout;

use crate::common::{PATIENCE, Server, body};
use crate::recorder::{Recorder, Reply, When};

#[derive(Default)]
struct Log {
    connected: AtomicUsize,
    ended: AtomicUsize,
    answered: Mutex<Vec<Duration>>,
    failures: Mutex<Vec<UpstreamFailure>>,
}

impl UpstreamLog for Log {
    fn connected(&self, time: Duration) {
        assert!(time < PATIENCE);
        self.connected.fetch_add(1, Ordering::SeqCst);
    }

    fn disconnected(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    fn answered(&self, time: Duration) {
        self.answered.lock().unwrap().push(time);
    }

    fn failed(&self, reason: UpstreamFailure) {
        self.failures.lock().unwrap().push(reason);
    }
}

/// A server in front of this URL, and what its upstream's log is told.
fn front(url: &str, head_timeout: Duration) -> (Server, Proxy, Arc<Log>) {
    let log = Arc::new(Log::default());
    let upstream = Upstream::parse(url, None).unwrap().observed(Arc::clone(&log) as _);
    let options = ProxyOptions { head_timeout, connect_timeout: PATIENCE, ..ProxyOptions::default() };
    let proxy = Proxy::new(upstream, options).unwrap();
    (Server::start(proxy.clone(), |_| {}), proxy, log)
}

/// The response's status; `None` if the stream was reset before it.
async fn send(server: &Server, method: Method) -> Option<u16> {
    let request = http::Request::builder().method(method).uri(server.uri("/"));
    let exchange = async {
        let response = server.client().send(request.body(Body::empty()).unwrap()).await.ok()?;
        let status = response.status().as_u16();
        // It may break off.
        let _ = body(response).await;
        Some(status)
    };
    timeout(PATIENCE, exchange).await.expect("no answer")
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "an upstream that is slow in real time")]
async fn connections_and_answers_are_told() {
    let slow = Duration::from_millis(50);
    let upstream = Recorder::start(When::Whole, move |_| {
        std::thread::sleep(slow);
        Reply::ok(b"ok")
    });
    let upstream = upstream.await;
    let (server, proxy, log) = front(&format!("http://{}", upstream.address), PATIENCE);
    for _ in 0..3 {
        assert_eq!(send(&server, Method::GET).await, Some(200));
    }
    let answered = log.answered.lock().unwrap().clone();
    assert!(answered.len() == 3 && answered.iter().all(|time| *time >= slow), "{answered:?}");
    assert_eq!((log.connected.load(Ordering::SeqCst), log.ended.load(Ordering::SeqCst)), (1, 0));
    assert!(log.failures.lock().unwrap().is_empty());
    let states = proxy.upstreams();
    assert_eq!((states[0].health, states[0].open), (UpstreamHealth::Well, 0));
    assert_eq!(states[0].url, format!("http://{}", upstream.address));
    drop((server, proxy));
    timeout(PATIENCE, async {
        while log.ended.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("the connection's end is not told");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_is_told_with_its_reason() {
    let replies = [
        (Reply::close(""), 502, UpstreamFailure::Response),
        (
            Reply::keep("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
            502,
            UpstreamFailure::Response,
        ),
        (Reply::close("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), 200, UpstreamFailure::Body),
    ];
    for (reply, status, reason) in replies {
        let upstream = Recorder::start(When::Whole, move |_| reply.clone()).await;
        let (server, _, log) = front(&format!("http://{}", upstream.address), PATIENCE);
        let got = send(&server, Method::POST).await;
        assert!(
            got.is_none_or(|got| got == status) && (got.is_some() || reason == UpstreamFailure::Body),
            "{got:?}"
        );
        assert_eq!(*log.failures.lock().unwrap(), [reason]);
    }
    let silent = Recorder::start(When::Never, |_| Reply::ok(b"")).await;
    let (server, _, log) = front(&format!("http://{}", silent.address), Duration::from_millis(100));
    assert_eq!(send(&server, Method::GET).await, Some(504));
    assert_eq!(*log.failures.lock().unwrap(), [UpstreamFailure::HeadTimeout]);
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (server, _, log) = front(&format!("http://{}", nobody.local_addr().unwrap()), PATIENCE);
    assert_eq!(send(&server, Method::POST).await, Some(502));
    assert_eq!(*log.failures.lock().unwrap(), [UpstreamFailure::Connect]);
    assert_eq!((log.connected.load(Ordering::SeqCst), log.answered.lock().unwrap().len()), (0, 0));
}
