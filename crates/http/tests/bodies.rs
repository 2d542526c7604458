//! Bodies both ways: streaming, trailers, back-pressure, and what is not the whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{App, PATIENCE, Server, body, by, fed, listen_with, sized, status};
use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use posthaste_endpoint::{Connection, Endpoint, RecvStream, SendStream, TransportConfig, default_transport};
use posthaste_http::{
    Body, BodyError, Client, ClientError, ClientOptions, Outcome, Request, Response, service_fn, text,
};
use posthaste_http3::encode;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// More than all windows and buffers between the ends together.
const HUGE: usize = 64 << 20;

/// What the server may hold of one request that its service does not read: the stream's window and what is on its way
/// to the service (`serve`).
const HELD: u64 = 2 << 20;

fn sample(length: usize) -> Bytes {
    (0..length).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn trailers(name: &'static str, value: &'static str) -> HeaderMap {
    [(HeaderName::from_static(name), HeaderValue::from_static(value))].into_iter().collect()
}

/// Sends back what comes, as it comes.
fn echo() -> impl App {
    service_fn(|request: Request| std::future::ready(Response::new(request.into_body())))
}

fn request(server: &Server, method: Method, body: Body) -> Request {
    http::Request::builder().method(method).uri(server.uri("/")).body(body).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn request_bodies_reach_services_and_come_back() {
    let server = Server::start(echo(), |_| {});
    let client = server.client();
    for method in [Method::POST, Method::PUT, Method::PATCH] {
        for length in [0, 1, 100, 100_000, 3_000_000] {
            let content = sample(length);
            let asked = request(&server, method.clone(), content.clone().into());
            let response = timeout(PATIENCE, client.send(asked)).await.expect("it hangs").unwrap();
            assert_eq!(response.content_length(), Some(length as u64), "the length of the request is known");
            assert!(body(response).await.unwrap() == content);
        }
    }
    assert_eq!(client.connections().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_stream_both_ways_at_a_time_and_end_with_trailers() {
    let server = Server::start(echo(), |_| {});
    let (feed, asked) = Body::channel();
    let client = server.client();
    let mut response = client.send(request(&server, Method::POST, asked)).await.unwrap();
    // Each piece comes back before the next is sent, so nothing waits for an end.
    for round in 0..20_u8 {
        let piece = vec![round; 1 + usize::from(round) * 200];
        feed.send(piece.clone()).await.unwrap();
        let mut back = Vec::new();
        while back.len() < piece.len() {
            let chunk = timeout(PATIENCE, response.chunk()).await.expect("a piece waits").unwrap().unwrap();
            back.extend_from_slice(&chunk);
        }
        assert_eq!(back, piece);
    }
    assert!(response.trailers().is_none());
    feed.finish_with(trailers("checksum", "7")).await.unwrap();
    assert_eq!(response.chunk().await.unwrap(), None);
    assert_eq!(response.trailers().unwrap()["checksum"], "7");
    assert_eq!(server.log.lines(1).await[0].3, Outcome::Complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_does_not_read_holds_its_client() {
    let (go, gone) = watch::channel(false);
    let server = Server::start(
        service_fn(move |request: Request| {
            let mut gone = gone.clone();
            async move {
                gone.wait_for(|go| *go).await.unwrap();
                let mut length = 0;
                let mut asked = request.into_body();
                while let Some(chunk) = asked.chunk().await.unwrap() {
                    length += chunk.len();
                }
                text(StatusCode::OK, &length.to_string())
            }
        }),
        |_| {},
    );
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&taken);
    let (feed, asked) = Body::channel();
    tokio::spawn(async move {
        for _ in 0..HUGE / 65_536 {
            feed.send(vec![0; 65_536]).await.unwrap();
            counted.fetch_add(65_536, Ordering::Relaxed);
        }
        feed.finish().await.unwrap();
    });
    let client = server.client();
    let sending = client.send(request(&server, Method::PUT, asked));
    let waiting = async {
        let mut before = u64::MAX;
        while taken.load(Ordering::Relaxed) != before {
            before = taken.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        // The client's own buffer holds some, too.
        let limit = HELD + 256 * 1024 + 3 * 65_536;
        assert!(before > 0 && before < limit, "{before} bytes were taken, {limit} are permitted");
        go.send_replace(true);
    };
    let (response, ()) = timeout(PATIENCE, async { tokio::join!(sending, waiting) }).await.expect("it hangs");
    let answer = body(response.unwrap()).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), format!("200 OK\n{HUGE}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_holds_the_response() {
    let made = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&made);
    let service = by(move |_: &str| {
        let (feed, response) = fed();
        let counted = Arc::clone(&counted);
        tokio::spawn(async move {
            for _ in 0..HUGE / 65_536 {
                feed.send(vec![0; 65_536]).await.unwrap();
                counted.fetch_add(65_536, Ordering::Relaxed);
            }
            feed.finish().await.unwrap();
        });
        response
    });
    let transport = default_transport();
    let unsent = transport.unsent_limit.get();
    let server = Server::start_at(listen_with(transport), service, |_| {});
    let response = server.client().get(&server.uri("/")).await.unwrap();
    let mut before = u64::MAX;
    while made.load(Ordering::Relaxed) != before {
        before = made.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let limit = HELD + unsent + 3 * 65_536;
    assert!(before > 0 && before < limit, "{before} bytes were made, {limit} are permitted");
    assert_eq!(body(response).await.unwrap().len(), HUGE);
}

/// A client by hand. The endpoint must stay as long as the connection.
async fn visit(server: &Server) -> (Endpoint, Connection) {
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let connection = endpoint.connect(&server.client_config(), server.address, "localhost").await.unwrap();
    (endpoint, connection)
}

/// A POST of which the head and this content are sent; the stream stays open.
async fn begin(
    connection: &Connection,
    announced: Option<usize>,
    content: &'static [u8],
) -> (SendStream, RecvStream) {
    let (mut send, recv) = connection.open_bi().await.unwrap();
    let mut head = http::Request::post("https://localhost/");
    if let Some(announced) = announced {
        head = head.header("content-length", announced);
    }
    let mut message = encode::request(&head.body(()).unwrap()).unwrap();
    encode::data_header(&mut message, content.len() as u64);
    send.write_bytes(message.into()).await.unwrap();
    send.write_all(content).await.unwrap();
    (send, recv)
}

/// Reads each request to its end, and tells what it was.
fn reader() -> (impl App, mpsc::UnboundedReceiver<Result<usize, BodyError>>) {
    let (tell, told) = mpsc::unbounded_channel();
    let service = service_fn(move |request: Request| {
        let tell = tell.clone();
        async move {
            let read = request.into_body().collect(1 << 20).await;
            tell.send(read.map(|whole| whole.len())).unwrap();
            status(StatusCode::OK)
        }
    });
    (service, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_the_whole_is_an_error_and_no_end() {
    let (service, mut told) = reader();
    let server = Server::start(service, |_| {});
    let (_endpoint, connection) = visit(&server).await;
    let mut next = async || timeout(PATIENCE, told.recv()).await.expect("it hangs").unwrap();

    let (mut send, _recv) = begin(&connection, Some(4), b"four").await;
    send.finish();
    assert_eq!(next().await.unwrap(), 4);

    // The client gives it up, whatever was announced.
    for announced in [None, Some(9), Some(4)] {
        let (mut send, _recv) = begin(&connection, announced, b"four").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        send.reset(0x10c);
        let error = next().await.unwrap_err();
        assert!(matches!(error, BodyError::Reset(0x10c)), "{announced:?}: {error}");
    }
    // It ends before its announced length, or goes beyond: no response, and the code for that.
    for (announced, received) in [(9, 4), (3, 4)] {
        let (mut send, mut recv) = begin(&connection, Some(announced), b"").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        send.write_all(&[0, 4, b'f', b'o', b'u', b'r']).await.unwrap();
        send.finish();
        let error = next().await.unwrap_err();
        let is_length = matches!(error, BodyError::Length { announced: a, received: r }
            if a == announced as u64 && r == received);
        assert!(is_length, "{error}");
        let end = timeout(PATIENCE, recv.read_to_end(10)).await.expect("it hangs");
        assert!(matches!(end, Err(posthaste_endpoint::ReadError::Reset(0x10e))), "{end:?}");
    }
    // A DATA frame that is cut off: the frame is broken, which ends the connection.
    let (mut send, _recv) = begin(&connection, None, b"").await;
    send.write_all(&[0, 4, b'f']).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    send.finish();
    let error = next().await.unwrap_err();
    assert!(matches!(error, BodyError::Malformed(_)), "{error}");
    timeout(PATIENCE, connection.closed()).await.expect("the connection stays");

    let (_endpoint, connection) = visit(&server).await;
    let (_send, _recv) = begin(&connection, None, b"four").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    connection.close(0x100, b"");
    let error = next().await.unwrap_err();
    assert!(matches!(error, BodyError::Lost(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_sending_is_given_up() {
    let (service, mut told) = reader();
    let server = Server::start(service, |options| options.stall_timeout = Duration::from_millis(200));
    let (_endpoint, connection) = visit(&server).await;
    let (send, _recv) = begin(&connection, Some(9), b"four").await;
    let error = timeout(PATIENCE, told.recv()).await.expect("it hangs").unwrap().unwrap_err();
    assert!(matches!(error, BodyError::Stalled(_)), "{error}");
    let stopped = timeout(PATIENCE, send.stopped()).await.expect("it is waited for").unwrap();
    assert_eq!(stopped, Some(0x10c));
}

/// Counts those that are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn until(is_true: impl Fn() -> bool) {
    let wait = async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("it does not happen");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_given_up_ends_its_service() {
    let alive = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&alive);
    let server = Server::start(
        service_fn(move |_: Request| {
            let alive = Alive::new(&count);
            async move {
                std::future::pending::<()>().await;
                drop(alive);
                status(StatusCode::OK)
            }
        }),
        |options| options.max_requests = 1,
    );
    // By a client that stops the response, and by one whose connection goes; each frees the only slot.
    for round in 0..4 {
        let client = server.client();
        let asking = client.clone();
        let uri = server.uri("/");
        let asking = tokio::spawn(async move { asking.get(&uri).await.map(drop) });
        until(|| alive.load(Ordering::Relaxed) == 1).await;
        if round % 2 == 0 {
            asking.abort();
        } else {
            client.close().await;
        }
        until(|| alive.load(Ordering::Relaxed) == 0).await;
        let lines = server.log.lines(round + 1).await;
        assert!(matches!(&lines[round], (_, None, 0, Outcome::Aborted(_))), "{lines:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_panics_harms_its_request_only() {
    let server = Server::start(
        service_fn(|request: Request| async move {
            match request.uri().path() {
                "/before" => panic!("on purpose, before the response"),
                "/within" => {
                    let pieces = futures::stream::iter(0..3).map(|piece| {
                        assert!(piece < 2, "on purpose, within the response");
                        Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from(vec![b'x'; 100_000])))
                    });
                    Response::new(Body::new(http_body_util::StreamBody::new(pieces)))
                }
                _ => text(StatusCode::OK, ""),
            }
        }),
        |_| {},
    );
    let client = server.client();
    for _ in 0..3 {
        let response = client.get(&server.uri("/before")).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        body(response).await.unwrap();
        let error = match client.get(&server.uri("/within")).await {
            Ok(response) => body(response).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(matches!(&error, ClientError::Reset { code } if code == "H3_INTERNAL_ERROR"), "{error}");
        assert_eq!(client.get(&server.uri("/")).await.unwrap().status(), StatusCode::OK);
    }
    assert_eq!(client.connections().len(), 1, "the connection goes on");
    let lines = server.log.lines(9).await;
    let failed = lines.iter().filter(|line| matches!(line.3, Outcome::Failed(_))).count();
    assert_eq!(failed, 6, "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_not_ready_holds_its_requests() {
    /// Ready when it is let.
    #[derive(Clone)]
    struct Gate(watch::Receiver<bool>);

    impl tower_service::Service<Request> for Gate {
        type Response = Response;
        type Error = std::convert::Infallible;
        type Future = std::future::Ready<Result<Response, Self::Error>>;

        fn poll_ready(
            &mut self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), Self::Error>> {
            let mut open = std::pin::pin!(self.0.wait_for(|open| *open));
            open.as_mut().poll(cx).map(|_| Ok(()))
        }

        fn call(&mut self, _: Request) -> Self::Future {
            assert!(*self.0.borrow(), "it was called before it was ready");
            std::future::ready(Ok(status(StatusCode::NO_CONTENT)))
        }
    }

    let (open, gate) = watch::channel(false);
    let server = Server::start(Gate(gate), |_| {});
    let client = server.client();
    let uri = server.uri("/");
    let early = timeout(Duration::from_millis(200), client.get(&uri)).await;
    assert!(early.is_err(), "it is answered before it is ready");
    // The waker of a future that is gone is not kept; a later poll sees the gate.
    open.send_replace(true);
    let response = timeout(PATIENCE, client.get(&uri)).await.expect("it hangs").unwrap();
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_response_says_of_its_length_is_what_comes() {
    let server = Server::start(
        by(|path: &str| match path {
            "/exact" => Response::new(Body::from("four")),
            "/unknown" => {
                let (feed, response) = fed();
                tokio::spawn(async move {
                    feed.send("four").await.unwrap();
                    feed.finish().await.unwrap();
                });
                response
            }
            "/none" => sized(StatusCode::NO_CONTENT, Bytes::from_static(b"four")),
            _ => status(StatusCode::EARLY_HINTS),
        }),
        |_| {},
    );
    let client = server.client();
    for (path, length, content) in
        [("/exact", Some(4), "four"), ("/unknown", None, "four"), ("/none", None, "")]
    {
        let response = client.get(&server.uri(path)).await.unwrap();
        assert_eq!(response.content_length(), length, "{path}");
        assert_eq!(body(response).await.unwrap(), content.as_bytes(), "{path}");
        let response = client.head(&server.uri(path)).await.unwrap();
        assert!(body(response).await.unwrap().is_empty(), "{path}");
    }
    // A service must answer; an informational response is no answer.
    let response = client.get(&server.uri("/hints")).await.unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_whose_source_fails_is_no_whole_request() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (sender, mut begun) = mpsc::unbounded_channel();
    let service = service_fn(move |request: Request| {
        let (tell, sender) = (tell.clone(), sender.clone());
        async move {
            sender.send(()).unwrap();
            tell.send(request.into_body().collect(1 << 20).await.map(|whole| whole.len())).unwrap();
            status(StatusCode::OK)
        }
    });
    let server = Server::start(service, |_| {});
    let (feed, asked) = Body::channel();
    let client = Client::new(ClientOptions::new(server.client_config()));
    let sending = client.send(request(&server, Method::PUT, asked));
    let feeding = async {
        feed.send("half").await.unwrap();
        // A request that is reset before its head has left would reach no service.
        timeout(PATIENCE, begun.recv()).await.expect("it hangs").unwrap();
        feed.fail("the disk is gone").await.unwrap();
    };
    let (result, ()) = tokio::join!(sending, feeding);
    let error = match result {
        Ok(response) => body(response).await.err(),
        Err(error) => Some(error),
    };
    // The server may have answered the fragment before the client knows of the failure.
    if let Some(error) = error {
        assert!(matches!(&error, ClientError::Body { reason } if reason == "the disk is gone"), "{error}");
    }
    let error = timeout(PATIENCE, told.recv()).await.expect("it hangs").unwrap().unwrap_err();
    assert!(matches!(error, BodyError::Reset(0x10c)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_knows_whether_the_server_has_all_of_its_upload() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let service = service_fn(move |request: Request| {
        let tell = tell.clone();
        async move {
            // Both answer before they have read anything; one reads on.
            if request.method() == Method::PUT {
                tokio::spawn(async move {
                    let whole = request.into_body().collect(HUGE).await;
                    tell.send(whole.map(|whole| whole.len()).ok()).unwrap();
                });
            }
            status(StatusCode::OK)
        }
    });
    let server = Server::start(service, |_| {});
    let client = server.client();
    let mut response =
        client.send(request(&server, Method::PUT, sample(3_000_000).into())).await.expect("a response");
    assert_eq!(response.chunk().await.unwrap(), None);
    assert!(timeout(PATIENCE, response.body_sent()).await.expect("it hangs").unwrap());
    assert!(response.body_sent().await.unwrap(), "it stays known");
    // All is there, so the connection may end.
    client.close().await;
    assert_eq!(timeout(PATIENCE, told.recv()).await.expect("it hangs"), Some(Some(3_000_000)));

    let client = server.client();
    let (feed, asked) = Body::channel();
    let mut response = client.send(request(&server, Method::POST, asked)).await.unwrap();
    assert!(!timeout(PATIENCE, response.body_sent()).await.expect("it hangs").unwrap(), "nobody reads it");
    drop(feed);
    let mut response = client.get(&server.uri("/")).await.unwrap();
    assert!(response.body_sent().await.unwrap(), "without a body there is nothing to wait for");
}

/// An event stream with nothing to tell.
#[tokio::test]
async fn a_response_may_be_silent_for_longer_than_the_idle_timeout() {
    let transport = TransportConfig { max_idle_timeout: Duration::from_secs(3), ..default_transport() };
    let service = service_fn(|_| async {
        let (sender, body) = Body::channel();
        tokio::spawn(async move {
            sender.send("first").await.unwrap();
            tokio::time::sleep(Duration::from_secs(7)).await;
            sender.send("last").await.unwrap();
            sender.finish().await.unwrap();
        });
        Response::new(body)
    });
    let keep_alive = Duration::from_millis(200);
    let server = Server::start_at(listen_with(transport), service, |options| options.keep_alive = keep_alive);
    let response = server.client().get(&server.uri("/")).await.unwrap();
    assert_eq!(body(response).await.unwrap(), b"firstlast");
}
