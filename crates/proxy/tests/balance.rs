//! Several upstreams, some of which die and come back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};
use posthaste_http::Body;
use posthaste_proxy::{HealthCheck, Proxy, ProxyOptions, Upstream};
use tokio::net::TcpSocket;
use tokio::time::{sleep, timeout};

use crate::common::{PATIENCE, Server, body};
use crate::recorder::{Recorder, Reply, When};

fn balanced(upstreams: &[SocketAddr], configure: impl FnOnce(&mut ProxyOptions)) -> Proxy {
    let mut options = ProxyOptions { connect_timeout: PATIENCE, ..ProxyOptions::default() };
    configure(&mut options);
    let upstream = |address| Upstream::new(&format!("http://{address}").parse().unwrap(), None).unwrap();
    Proxy::balanced(upstreams.iter().map(upstream), options).unwrap()
}

/// An upstream that answers with its name.
async fn named(name: &'static str) -> Recorder {
    Recorder::start(When::Whole, move |_| Reply::ok(name.as_bytes())).await
}

/// The status, and who has answered.
async fn ask(server: &Server, method: &Method) -> (u16, String) {
    let request = http::Request::builder().method(method).uri(server.uri("/")).body(Body::empty()).unwrap();
    let response = timeout(PATIENCE, server.client().send(request)).await.expect("no answer").unwrap();
    let status = response.status().as_u16();
    (status, String::from_utf8(body(response).await.unwrap()).unwrap())
}

/// An address where nobody listens as long as the socket does not.
fn nobody() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[tokio::test]
async fn open_requests_decide_who_gets_the_next() {
    // The first upstream never answers: its request stays open.
    let silent = Recorder::start(When::Never, |_| Reply::ok(b"")).await;
    let second = named("second").await;
    let server = Server::start(balanced(&[silent.address, second.address], |_| {}), |_| {});
    let client = server.client();
    let uri = server.uri("/");
    let first = tokio::spawn(async move { client.get(&uri).await.map(|_| ()) });
    silent.wait("the first upstream gets the first request", |links| links.len() == 1).await;
    for _ in 0..3 {
        assert_eq!(ask(&server, &Method::GET).await, (200, "second".to_owned()));
    }
    assert_eq!(second.messages().len(), 3);
    first.abort();
}

#[tokio::test]
async fn an_upstream_that_dies_costs_no_request_and_comes_back() {
    let (socket, dead) = nobody();
    let second = named("second").await;
    let server = Server::start(balanced(&[dead, second.address], |_| {}), |_| {});
    for _ in 0..10 {
        assert_eq!(ask(&server, &Method::GET).await, (200, "second".to_owned()));
    }
    // It is back: when its time is over, it gets requests again.
    let back = Recorder::on(socket.listen(16).unwrap(), When::Whole, |_| Reply::ok(b"first"));
    let returned = async {
        while ask(&server, &Method::GET).await != (200, "first".to_owned()) {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, returned).await.expect("it gets no requests");
    assert!(!back.messages().is_empty());
}

#[tokio::test]
async fn what_may_not_be_repeated_is_not() {
    let breaks = Recorder::start(When::Whole, |_| Reply::close("")).await;
    let second = named("second").await;
    let server = Server::start(balanced(&[breaks.address, second.address], |_| {}), |_| {});
    assert_eq!(ask(&server, &Method::POST).await.0, 502);
    assert!(second.messages().is_empty());
    assert_eq!(ask(&server, &Method::GET).await, (200, "second".to_owned()));
    // The same failure of the only upstream.
    let server = Server::start(balanced(&[breaks.address], |_| {}), |_| {});
    assert_eq!(ask(&server, &Method::GET).await.0, 502);
}

#[tokio::test]
async fn what_was_never_sent_goes_to_another_upstream_whatever_it_is() {
    let (_socket, dead) = nobody();
    let second = named("second").await;
    let server = Server::start(balanced(&[dead, second.address], |_| {}), |_| {});
    let client = server.client();
    // As many as before the first upstream is left out.
    for method in [Method::POST, Method::PATCH, Method::from_bytes(b"REPORT").unwrap()] {
        let asked = http::Request::builder().method(&method).uri(server.uri("/")).body("form".into());
        let response = timeout(PATIENCE, client.send(asked.unwrap())).await.expect("no answer").unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{method}");
        assert_eq!(second.messages().last().unwrap().body, b"form");
    }
    assert_eq!(second.messages().len(), 3, "each once");
}

#[tokio::test]
async fn health_checks_take_upstreams_out_and_bring_them_back() {
    let is_well = Arc::new(AtomicBool::new(true));
    let judged = Arc::clone(&is_well);
    let first = Recorder::start(When::Whole, move |message| {
        if message.target == "/healthz" && !judged.load(Ordering::Relaxed) {
            return Reply::keep("HTTP/1.1 503 Not Well\r\nContent-Length: 0\r\n\r\n");
        }
        Reply::ok(b"first")
    })
    .await;
    let health = HealthCheck {
        path: "/healthz".parse().unwrap(),
        every: Duration::from_millis(20),
        timeout: PATIENCE,
        failures: 2,
    };
    let server = Server::start(balanced(&[first.address], |options| options.health = Some(health)), |_| {});
    assert_eq!(ask(&server, &Method::GET).await, (200, "first".to_owned()));
    for (well, status) in [(false, StatusCode::SERVICE_UNAVAILABLE), (true, StatusCode::OK)] {
        is_well.store(well, Ordering::Relaxed);
        let turned = async {
            while ask(&server, &Method::GET).await.0 != status.as_u16() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, turned).await.unwrap_or_else(|_| panic!("no {status}"));
    }
    let checks: Vec<_> = first.messages().into_iter().filter(|it| it.target == "/healthz").collect();
    // Two that fail, and one that succeeds.
    assert!(checks.len() >= 3);
    assert_eq!(checks[0].all("user-agent"), ["posthaste-health"]);
    assert_eq!(checks[0].all("host"), [first.address.to_string()]);
}

#[tokio::test]
async fn all_that_cannot_be_reached_is_502() {
    let (_sockets, addresses): (Vec<_>, Vec<_>) = [nobody(), nobody()].into_iter().unzip();
    let server = Server::start(balanced(&addresses, |_| {}), |_| {});
    for _ in 0..8 {
        assert_eq!(ask(&server, &Method::GET).await.0, 502);
    }
}
